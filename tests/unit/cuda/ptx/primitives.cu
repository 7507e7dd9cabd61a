/* SPDX-License-Identifier: MIT */
/* A kernel for each primitive of simt.h, compiled by nvcc for the interpreter and by the host's compiler for
 * the emulator. `in` and `out` are arrays of words, [..][threads of the block] unless a kernel says
 * otherwise. */

#include "cuda/device/simt.h"

#define KERNEL(name) extern "C" __global__ void name(const uint32_t *in, uint32_t *out)
#define EACH                                                                                                 \
    const uint32_t n = blockDim.x, i = threadIdx.x;                                                          \
    (void)n

static __device__ inline float float_at(const uint32_t *in, uint32_t i)
{
    return simt_of_bits(in[i]);
}

/* ---- warp matrix products ---- */

/* in: a [16][k], b [8][k] by columns, c [16][8]; out: [16][8]. Fragments as simt.h says they lie; `per`
 * values to a register, n_words to a row. */
template <class Sum>
static __device__ inline void load_fragments(const uint32_t *in, uint32_t a[4], uint32_t b[2], Sum sums[4])
{
    const uint32_t g = threadIdx.x / 4, t = threadIdx.x % 4, n_words = 8;
    const uint32_t *of_b = in + 16 * n_words, *of_c = of_b + 8 * n_words;
    for (uint32_t r = 0; r < 4; r++) {
        a[r] = in[(g + 8 * (r % 2)) * n_words + t + 4 * (r / 2)];
        union {
            uint32_t bits;
            Sum value;
        } sum = {of_c[(g + 8 * (r / 2)) * 8 + 2 * t + r % 2]};
        sums[r] = sum.value;
    }
    for (uint32_t r = 0; r < 2; r++)
        b[r] = of_b[g * n_words + t + 4 * r];
}

template <class Sum> static __device__ inline void store_sums(const Sum sums[4], uint32_t *out)
{
    const uint32_t g = threadIdx.x / 4, t = threadIdx.x % 4;
    for (uint32_t r = 0; r < 4; r++)
        ((Sum *)out)[(g + 8 * (r / 2)) * 8 + 2 * t + r % 2] = sums[r];
}

KERNEL(product_s8)
{
    uint32_t a[4], b[2];
    int32_t sums[4];
    simt_start();
    load_fragments(in, a, b, sums);
    simt_mma_s8(sums, a, b);
    store_sums(sums, out);
}

KERNEL(product_f16)
{
    uint32_t a[4], b[2];
    float sums[4];
    simt_start();
    load_fragments(in, a, b, sums);
    simt_mma_f16(sums, a, b);
    store_sums(sums, out);
}

/* in and out: registers, a [4], b [2] and d [4] of each lane, whatever they hold. */
KERNEL(registers_s8)
{
    EACH;
    simt_start();
    const uint32_t a[4] = {in[i], in[n + i], in[2 * n + i], in[3 * n + i]},
                   b[2] = {in[4 * n + i], in[5 * n + i]};
    int32_t d[4];
    for (uint32_t r = 0; r < 4; r++)
        d[r] = (int32_t)in[(6 + r) * n + i];
    simt_mma_s8(d, a, b);
    for (uint32_t r = 0; r < 4; r++)
        out[r * n + i] = (uint32_t)d[r];
}

KERNEL(registers_f16)
{
    EACH;
    simt_start();
    const uint32_t a[4] = {in[i], in[n + i], in[2 * n + i], in[3 * n + i]},
                   b[2] = {in[4 * n + i], in[5 * n + i]};
    float d[4];
    for (uint32_t r = 0; r < 4; r++)
        d[r] = float_at(in, (6 + r) * n + i);
    simt_mma_f16(d, a, b);
    for (uint32_t r = 0; r < 4; r++)
        out[r * n + i] = simt_bits(d[r]);
}

/* ---- arithmetic ---- */

KERNEL(dp4a)
{
    EACH;
    simt_start();
    out[i] = (uint32_t)simt_dp4a((int32_t)in[i], (int32_t)in[n + i], (int32_t)in[2 * n + i]);
}

KERNEL(permute)
{
    EACH;
    simt_start();
    out[i] = simt_permute(in[i], in[n + i], in[2 * n + i]);
}

KERNEL(halves)
{
    EACH;
    simt_start();
    out[i] = simt_add_halves(in[i], in[n + i]);
    out[n + i] = simt_multiply_halves(in[i], in[n + i]);
}

KERNEL(nearest)
{
    EACH;
    simt_start();
    out[i] = (uint32_t)simt_nearest(float_at(in, i));
}

KERNEL(from_half)
{
    EACH;
    simt_start();
    out[i] = simt_bits(simt_float(half_t{(uint16_t)in[i]}));
}

KERNEL(from_bf16)
{
    EACH;
    simt_start();
    out[i] = simt_bits(simt_float(bf16_t{(uint16_t)in[i]}));
}

KERNEL(to_half)
{
    EACH;
    simt_start();
    out[i] = simt_half(float_at(in, i)).bits;
}

KERNEL(to_bf16)
{
    EACH;
    simt_start();
    out[i] = simt_bf16(float_at(in, i)).bits;
}

/* A product that is rounded before it is added to, and one that is not. */
KERNEL(multiply_add)
{
    EACH;
    simt_start();
    const float a = float_at(in, i), b = float_at(in, n + i), c = float_at(in, 2 * n + i);
    out[i] = simt_bits(simt_multiply(a, b) + c);
    out[n + i] = simt_bits(fmaf(a, b, c));
}

/* ---- between lanes ---- */

KERNEL(shuffle)
{
    EACH;
    simt_start();
    const uint32_t lane = in[3 * n + i];
    const uint64_t both = in[i] | (uint64_t)in[n + i] << 32, other = simt_shuffle(both, lane);
    out[i] = (uint32_t)other;
    out[n + i] = (uint32_t)(other >> 32);
    out[2 * n + i] = simt_bits(simt_shuffle(float_at(in, 2 * n + i), lane));
}

KERNEL(shuffle_xor)
{
    EACH;
    simt_start();
    for (uint32_t bit = 0; bit < 5; bit++)
        out[bit * n + i] = simt_shuffle_xor(in[i], 1u << bit);
}

KERNEL(ballot)
{
    EACH;
    simt_start();
    out[i] = simt_ballot(in[i] > 99);
}

KERNEL(sums)
{
    EACH;
    simt_start();
    out[i] = simt_warp_sum(in[i]);
    out[n + i] = simt_bits(simt_warp_sum(float_at(in, n + i)));
}

KERNEL(largest)
{
    EACH;
    simt_start();
    out[i] = simt_warp_max(in[i]);
    out[n + i] = simt_bits(simt_warp_max(float_at(in, n + i)));
}

/* Lanes part and meet again: each goes round as often as its word says. */
KERNEL(parted)
{
    EACH;
    simt_start();
    uint32_t total = 0;
    for (uint32_t k = 0; k < in[i]; k++)
        total += k % 2 ? in[n + k] : 3 * in[n + k];
    if (i % 2)
        total += 7;
    out[i] = simt_warp_sum(total);
    out[n + i] = total;
}

/* ---- memory ---- */

/* out[0 … 2]: of all threads; from out[n] on: of each. */
KERNEL(atomics)
{
    EACH;
    simt_start();
    simt_atomic_add(&out[0], in[i]);
    simt_atomic_max(&out[1], in[i]);
    simt_atomic_and(&out[2], in[i]);
    out[2 * n + i] = simt_atomic_add(&out[n + i], in[i]);
}

/* out: float; uint64_t [2]; in: float [n], uint64_t [n] */
KERNEL(atomics_of_other_types)
{
    EACH;
    simt_start();
    const uint64_t wide = ((const uint64_t *)(in + n))[i];
    simt_atomic_add((float *)out, float_at(in, i));
    simt_atomic_add((uint64_t *)(out + 2), wide);
    simt_atomic_max((uint64_t *)(out + 4), wide);
}

/* in, out: [n][4] */
KERNEL(loads)
{
    EACH;
    simt_prefetch(in);
    simt_start();
    const struct simt_16 words = simt_load16(in + 4 * i), fresh = simt_fresh16(in + 4 * (n - 1 - i));
    for (uint32_t k = 0; k < 4; k++)
        out[4 * i + k] = words.words[k] ^ fresh.words[k] << 1;
}

KERNEL(barriers)
{
    EACH;
    simt_start();
    uint32_t *shared = simt_shared<uint32_t>();
    shared[i] = in[i];
    simt_warp_barrier();
    const uint32_t of_warp = shared[i ^ 5];
    simt_barrier();
    out[i] = of_warp;
    out[n + i] = shared[(i + 37) % n];
}

KERNEL(fences)
{
    EACH;
    simt_start();
    out[i] = in[i];
    simt_fence();
    out[n + i] = in[i] + 1;
    simt_fence_system();
    out[2 * n + i] = in[i] + 2;
}
