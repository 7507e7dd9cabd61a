/* SPDX-License-Identifier: MIT */
#ifndef CUDA_KERNELS_SAMPLING_DESCENT_H
#define CUDA_KERNELS_SAMPLING_DESCENT_H

/* Searches over all candidates of a row by a block of threads, for kernels only. Top-k, top-p and the most
 * likely ids all need to know how far to go down the order of keys until the amounts, 1 or the probability
 * each, reach a target. The answer is a radix descent, one digit of the key each round, in bounded time
 * whatever the logits. Probabilities are fixed-point integers, so their sums have no order. */

#include "cuda/kernels/sampling/candidates.h"

#define DIGIT_BITS  8
#define DIGITS      (1u << DIGIT_BITS)
#define ALL_WARPS   (CANDIDATES_THREADS / SIMT_LANES)
#define DIGITS_EACH (DIGITS / SIMT_LANES) /* per lane of the warp that finds the digit */

struct descent_shared {
    float chunk[CANDIDATES_CHUNK];
    uint64_t amounts[DIGITS];
    uint64_t target;
    uint64_t keys[ALL_WARPS];
    double sums[ALL_WARPS];
    uint32_t digit, n;
};

/* As engine/sampling/philox.c: the words of a block of the generator, in one of its spaces. */
__device__ static inline void random_block(uint64_t position, uint64_t seed, uint32_t block, uint32_t space,
                                           uint32_t *ret)
{
    uint32_t a = (uint32_t)position, b = (uint32_t)(position >> 32), c = block, d = space;
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t p = 0xD2511F53ull * a, q = 0xCD9E8D57ull * c;
        a = (uint32_t)(q >> 32) ^ b ^ k0;
        c = (uint32_t)(p >> 32) ^ d ^ k1;
        b = (uint32_t)q;
        d = (uint32_t)p;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    ret[0] = a;
    ret[1] = b;
    ret[2] = c;
    ret[3] = d;
}

/* Calls f(logit, id) for every candidate, one thread each. f must not synchronize. */
template <class F>
__device__ static inline void each_candidate(const struct sampled_row *row, struct descent_shared *shared,
                                             F f)
{
    for (uint32_t i = threadIdx.x; i < row->n_list; i += CANDIDATES_THREADS)
        f(key_logit(row->list[i]), key_id(row->list[i]));
    for (uint32_t base = 0; !row->list && base < row->n_vocab; base += CANDIDATES_CHUNK) {
        const uint32_t n = take_chunk(row, base, shared->chunk);
        for (uint32_t i = threadIdx.x; i < n; i += CANDIDATES_THREADS)
            if (is_finite(shared->chunk[i]))
                f(shared->chunk[i], base + i);
    }
    simt_barrier();
}

/* The largest value of all threads, returned to each. */
__device__ static inline uint64_t block_max(struct descent_shared *shared, uint64_t value)
{
    value = simt_warp_max(value);
    simt_barrier();
    if (threadIdx.x % SIMT_LANES == 0)
        shared->keys[threadIdx.x / SIMT_LANES] = value;
    simt_barrier();
    for (uint32_t i = 0; i < ALL_WARPS; i++)
        value = shared->keys[i] > value ? shared->keys[i] : value;
    return value;
}

template <class T> __device__ static inline T block_sum(T *parts, T value)
{
    value = simt_warp_sum(value);
    simt_barrier();
    if (threadIdx.x % SIMT_LANES == 0)
        parts[threadIdx.x / SIMT_LANES] = value;
    simt_barrier();
    value = 0;
    for (uint32_t i = 0; i < ALL_WARPS; i++)
        value += parts[i];
    return value;
}

__device__ static inline uint64_t mass_of(float logit, float best, float temperature)
{
    return (uint64_t)(expf((logit - best) / temperature) * (float)MASS_ONE);
}

/* Finds the digit, from the largest down, at which the amounts reach the target, and the rest of the target
 * there. DIGITS: none does. One warp. */
__device__ static inline void find_digit(struct descent_shared *shared)
{
    const uint32_t lane = threadIdx.x % SIMT_LANES, first = DIGITS - 1 - lane * DIGITS_EACH;
    uint64_t own = 0;
    for (uint32_t i = 0; i < DIGITS_EACH; i++)
        own += shared->amounts[first - i];
    uint64_t sum = own; /* of this lane's digits and all larger ones */
    for (uint32_t apart = 1; apart < SIMT_LANES; apart *= 2) {
        uint64_t other = simt_shuffle(sum, (lane - apart) % SIMT_LANES);
        sum += lane >= apart ? other : 0;
    }
    const uint64_t target = shared->target;
    const uint32_t reached = simt_ballot(sum >= target);
    simt_warp_barrier();
    if (reached == 0) {
        if (lane == 0)
            shared->digit = DIGITS;
    } else if (sum >= target && sum - own < target) {
        uint64_t left = target - (sum - own);
        uint32_t digit = first;
        while (shared->amounts[digit] < left)
            left -= shared->amounts[digit--];
        shared->digit = digit;
        shared->target = left;
    }
}

/* The smallest key that is kept when candidates are taken in descending order of key(logit, id) until their
 * amounts reach `target`, ≥ 1; 0 keeps all. A candidate with key 0 takes no part. amount(logit) is a
 * candidate's amount. */
template <class K, class F>
__device__ static inline uint64_t key_threshold(const struct sampled_row *row, struct descent_shared *shared,
                                                uint64_t target, K key_of_candidate, F amount)
{
    uint64_t prefix = 0;
    if (threadIdx.x == 0)
        shared->target = target;
    for (int shift = 64 - DIGIT_BITS; shift >= 0; shift -= DIGIT_BITS) {
        simt_barrier();
        for (uint32_t i = threadIdx.x; i < DIGITS; i += CANDIDATES_THREADS)
            shared->amounts[i] = 0;
        simt_barrier();
        each_candidate(row, shared, [=](float logit, uint32_t id) {
            const uint64_t key = key_of_candidate(logit, id);
            const bool open = shift == 64 - DIGIT_BITS || key >> (shift + DIGIT_BITS) == prefix;
            if (key > 0 && open)
                simt_atomic_add(&shared->amounts[key >> shift & (DIGITS - 1)], amount(logit));
        });
        if (threadIdx.x < SIMT_LANES)
            find_digit(shared);
        simt_barrier();
        if (shared->digit == DIGITS)
            return 0;
        prefix = prefix << DIGIT_BITS | shared->digit;
    }
    return prefix;
}

#endif
