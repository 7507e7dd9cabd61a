/* SPDX-License-Identifier: MIT */
/* Packing and unpacking of weight groups, in plain C: run once at load, and by the plain path.
 *
 * Each format is a loop over eight rows that takes the file's block apart and puts its fields where packing.h
 * says. Unpacking is written from packing.h's layout and not from the file's, so that a test which compares
 * it with the file format's own conversion proves both. */

#include "worker/cpu/packing.h"

#include <string.h>

#include "worker/cpu/kernels.h"

static float half_at(const uint8_t *p, int i)
{
    uint16_t half;
    memcpy(&half, p + 2 * i, sizeof half);
    return format_f16_to_f32(half);
}

/* Where column k of a run of chunks lies for row r. */
static inline size_t chunk_at(uint32_t k, int r)
{
    return (size_t)(k / 4) * 32 + (size_t)r * 4 + k % 4;
}

static void pack_words(const uint8_t *const rows[8], uint32_t n, uint8_t *out)
{
    for (uint32_t k = 0; k < n; k++)
        for (int r = 0; r < 8; r++)
            memcpy(out + ((size_t)k * 8 + (size_t)r) * 4, rows[r] + (size_t)k * 4, 4);
}

static void pack_halves(const uint8_t *const rows[8], uint32_t n, uint8_t *out)
{
    for (uint32_t k = 0; k < n; k++)
        for (int r = 0; r < 8; r++)
            memcpy(out + ((size_t)k * 8 + (size_t)r) * 2, rows[r] + (size_t)k * 2, 2);
}

static void unpack_f32(const uint8_t *group, uint32_t n, float *out)
{
    memcpy(out, group, (size_t)n * 8 * sizeof *out);
}

static void unpack_f16(const uint8_t *group, uint32_t n, float *out)
{
    for (uint32_t i = 0; i < n * 8; i++)
        out[i] = half_at(group, (int)i);
}

static void unpack_bf16(const uint8_t *group, uint32_t n, float *out)
{
    for (uint32_t i = 0; i < n * 8; i++) {
        uint16_t value;
        memcpy(&value, group + (size_t)i * 2, sizeof value);
        out[i] = format_bf16_to_f32(value);
    }
}

/* The file's Q8_0: scale f16, 32 signed bytes. */
static void pack_q8_0(const uint8_t *const rows[8], uint32_t n_blocks, uint8_t *out)
{
    for (uint32_t b = 0; b < n_blocks; b++, out += PACKED_Q8_0_BYTES) {
        for (int r = 0; r < 8; r++) {
            const uint8_t *in = rows[r] + (size_t)b * 34;
            memcpy(out + 2 * r, in, 2);
            for (uint32_t k = 0; k < 32; k += 4)
                memcpy(out + 16 + chunk_at(k, r), in + 2 + k, 4);
        }
    }
}

static void unpack_q8_0(const uint8_t *group, uint32_t n_blocks, float *out)
{
    for (uint32_t b = 0; b < n_blocks; b++, group += PACKED_Q8_0_BYTES, out += 32 * 8)
        for (uint32_t k = 0; k < 32; k++)
            for (int r = 0; r < 8; r++)
                out[k * 8 + (uint32_t)r] = half_at(group, r) * (float)(int8_t)group[16 + chunk_at(k, r)];
}

/* The file's Q4_0: scale f16; 16 bytes, low nibbles elements 0–15, high 16–31. */
static void pack_q4_0(const uint8_t *const rows[8], uint32_t n_blocks, uint8_t *out)
{
    for (uint32_t b = 0; b < n_blocks; b++, out += PACKED_Q4_0_BYTES) {
        for (int r = 0; r < 8; r++) {
            const uint8_t *in = rows[r] + (size_t)b * 18;
            memcpy(out + 2 * r, in, 2);
            for (uint32_t k = 0; k < 16; k += 4)
                memcpy(out + 16 + chunk_at(k, r), in + 2 + k, 4);
        }
    }
}

static void unpack_q4_0(const uint8_t *group, uint32_t n_blocks, float *out)
{
    for (uint32_t b = 0; b < n_blocks; b++, group += PACKED_Q4_0_BYTES, out += 32 * 8)
        for (uint32_t k = 0; k < 32; k++)
            for (int r = 0; r < 8; r++) {
                int byte = group[16 + chunk_at(k % 16, r)];
                int nibble = k < 16 ? byte & 15 : byte >> 4;
                out[k * 8 + (uint32_t)r] = half_at(group, r) * (float)(nibble - 8);
            }
}

/* The file's Q5_0: scale f16; 32 bits, the fifth of each element; 16 bytes as in Q4_0. */
static void pack_q5_0(const uint8_t *const rows[8], uint32_t n_blocks, uint8_t *out)
{
    for (uint32_t b = 0; b < n_blocks; b++, out += PACKED_Q5_0_BYTES) {
        memset(out + PACKED_Q5_0_BITS, 0, 32);
        for (int r = 0; r < 8; r++) {
            const uint8_t *in = rows[r] + (size_t)b * 22;
            memcpy(out + 2 * r, in, 2);
            for (uint32_t k = 0; k < 16; k += 4)
                memcpy(out + 16 + chunk_at(k, r), in + 6 + k, 4);
            for (uint32_t k = 0; k < 32; k++)
                out[PACKED_Q5_0_BITS + chunk_at(k % 4, r)] |=
                    (uint8_t)((in[2 + k / 8] >> (k % 8) & 1) << (k / 4));
        }
    }
}

static void unpack_q5_0(const uint8_t *group, uint32_t n_blocks, float *out)
{
    for (uint32_t b = 0; b < n_blocks; b++, group += PACKED_Q5_0_BYTES, out += 32 * 8)
        for (uint32_t k = 0; k < 32; k++)
            for (int r = 0; r < 8; r++) {
                int byte = group[16 + chunk_at(k % 16, r)];
                int nibble = k < 16 ? byte & 15 : byte >> 4;
                int top = group[PACKED_Q5_0_BITS + chunk_at(k % 4, r)] >> (k / 4) & 1;
                out[k * 8 + (uint32_t)r] = half_at(group, r) * (float)((nibble | top << 4) - 16);
            }
}

/* Scale and minimum j of the 12 bytes that hold eight of each in 6 bits. */
static void scale_and_min(const uint8_t *packed, int j, uint8_t *ret_scale, uint8_t *ret_min)
{
    if (j < 4) {
        *ret_scale = packed[j] & 63;
        *ret_min = packed[j + 4] & 63;
    } else {
        *ret_scale = (uint8_t)((packed[j + 4] & 15) | (packed[j - 4] >> 6) << 4);
        *ret_min = (uint8_t)(packed[j + 4] >> 4 | (packed[j] >> 6) << 4);
    }
}

/* What the file's Q4_K and Q5_K share: two f16, 12 bytes of scales, and 128 bytes of nibbles, each 32 of them
 * a pair of blocks of 32. */
static void pack_k_row(const uint8_t *in, const uint8_t *nibbles, int r, uint8_t *out)
{
    memcpy(out + 2 * r, in, 2);
    memcpy(out + 16 + 2 * r, in + 2, 2);
    for (int j = 0; j < 8; j++)
        scale_and_min(in + 4, j, out + PACKED_Q4_K_SCALES + 8 * j + r, out + PACKED_Q4_K_MINS + 8 * j + r);
    for (uint32_t k = 0; k < 128; k += 4)
        memcpy(out + PACKED_Q4_K_NIBBLES + chunk_at(k, r), nibbles + k, 4);
}

static void pack_q4_k(const uint8_t *const rows[8], uint32_t n_blocks, uint8_t *out)
{
    for (uint32_t b = 0; b < n_blocks; b++, out += PACKED_Q4_K_BYTES)
        for (int r = 0; r < 8; r++) {
            const uint8_t *in = rows[r] + (size_t)b * 144;
            pack_k_row(in, in + 16, r, out);
        }
}

static void pack_q5_k(const uint8_t *const rows[8], uint32_t n_blocks, uint8_t *out)
{
    for (uint32_t b = 0; b < n_blocks; b++, out += PACKED_Q5_K_BYTES)
        for (int r = 0; r < 8; r++) {
            const uint8_t *in = rows[r] + (size_t)b * 176;
            pack_k_row(in, in + 48, r, out);
            for (uint32_t k = 0; k < 32; k += 4)
                memcpy(out + PACKED_Q5_K_BITS + chunk_at(k, r), in + 16 + k, 4);
        }
}

static int nibble_of(const uint8_t *nibbles, uint32_t block, uint32_t k, int r)
{
    int byte = nibbles[block / 2 * 256 + chunk_at(k, r)];
    return block % 2 ? byte >> 4 : byte & 15;
}

static void unpack_q4_or_q5_k(const uint8_t *group, uint32_t n_blocks, float *out, const uint32_t bytes)
{
    for (uint32_t b = 0; b < n_blocks; b++, group += bytes)
        for (uint32_t j = 0; j < 8; j++)
            for (uint32_t k = 0; k < 32; k++)
                for (int r = 0; r < 8; r++) {
                    int q = nibble_of(group + PACKED_Q4_K_NIBBLES, j, k, r);
                    if (bytes == PACKED_Q5_K_BYTES)
                        q += (group[PACKED_Q5_K_BITS + chunk_at(k, r)] >> j & 1) * 16;
                    float scale = half_at(group, r) * (float)group[PACKED_Q4_K_SCALES + 8 * (int)j + r];
                    float min = half_at(group + 16, r) * (float)group[PACKED_Q4_K_MINS + 8 * (int)j + r];
                    *out++ = scale * (float)q - min;
                }
}

static void unpack_q4_k(const uint8_t *group, uint32_t n_blocks, float *out)
{
    unpack_q4_or_q5_k(group, n_blocks, out, PACKED_Q4_K_BYTES);
}

static void unpack_q5_k(const uint8_t *group, uint32_t n_blocks, float *out)
{
    unpack_q4_or_q5_k(group, n_blocks, out, PACKED_Q5_K_BYTES);
}

/* The file's Q6_K, in two halves of 128 elements: 64 bytes of nibbles each, where the low nibbles of 32 bytes
 * are block 0 (1 for the next 32) and the high ones block 2 (3); 32 bytes of top bits each, two for every
 * block; then 16 signed scales, one for 16 elements, and the f16 scale. */
static void pack_q6_k_row(const uint8_t *in, int r, uint8_t *out)
{
    const uint8_t *low = in, *top = in + 128, *scales = in + 192;
    memcpy(out + 2 * r, in + 208, 2);
    for (int i = 0; i < 16; i++)
        out[PACKED_Q6_K_SCALES + 8 * i + r] = scales[i];
    for (uint32_t pair = 0; pair < 4; pair++) {
        /* Blocks 2 · pair and 2 · pair + 1: the same nibble of neighbouring runs of 32 bytes. */
        const uint8_t *runs = low + pair / 2 * 64;
        int shift = pair % 2 ? 4 : 0;
        uint8_t *to = out + PACKED_Q6_K_NIBBLES + (size_t)pair * 256;
        for (uint32_t k = 0; k < 32; k++)
            to[chunk_at(k, r)] = (uint8_t)((runs[k] >> shift & 15) | (runs[32 + k] >> shift & 15) << 4);
    }
    for (uint32_t k = 0; k < 64; k += 4)
        memcpy(out + PACKED_Q6_K_BITS + chunk_at(k, r), top + k, 4);
}

static void pack_q6_k(const uint8_t *const rows[8], uint32_t n_blocks, uint8_t *out)
{
    for (uint32_t b = 0; b < n_blocks; b++, out += PACKED_Q6_K_BYTES)
        for (int r = 0; r < 8; r++)
            pack_q6_k_row(rows[r] + (size_t)b * 210, r, out);
}

static void unpack_q6_k(const uint8_t *group, uint32_t n_blocks, float *out)
{
    for (uint32_t b = 0; b < n_blocks; b++, group += PACKED_Q6_K_BYTES)
        for (uint32_t j = 0; j < 8; j++)
            for (uint32_t k = 0; k < 32; k++)
                for (int r = 0; r < 8; r++) {
                    int top = group[PACKED_Q6_K_BITS + j / 4 * 256 + chunk_at(k, r)] >> (2 * (j % 4)) & 3;
                    int q = (nibble_of(group + PACKED_Q6_K_NIBBLES, j, k, r) | top << 4) - 32;
                    int scale = (int8_t)group[PACKED_Q6_K_SCALES + 8 * (2 * j + k / 16) + (uint32_t)r];
                    *out++ = half_at(group, r) * (float)scale * (float)q;
                }
}

static const struct packing packings[FORMAT_LIMIT] = {
    [FORMAT_F32] = {false, 1, 8 * 4, pack_words, unpack_f32},
    [FORMAT_F16] = {false, 1, 8 * 2, pack_halves, unpack_f16},
    [FORMAT_BF16] = {false, 1, 8 * 2, pack_halves, unpack_bf16},
    [FORMAT_Q8_0] = {true, 32, PACKED_Q8_0_BYTES, pack_q8_0, unpack_q8_0},
    [FORMAT_Q4_0] = {true, 32, PACKED_Q4_0_BYTES, pack_q4_0, unpack_q4_0},
    [FORMAT_Q5_0] = {true, 32, PACKED_Q5_0_BYTES, pack_q5_0, unpack_q5_0},
    [FORMAT_Q4_K] = {true, 256, PACKED_Q4_K_BYTES, pack_q4_k, unpack_q4_k},
    [FORMAT_Q5_K] = {true, 256, PACKED_Q5_K_BYTES, pack_q5_k, unpack_q5_k},
    [FORMAT_Q6_K] = {true, 256, PACKED_Q6_K_BYTES, pack_q6_k, unpack_q6_k},
};

const struct packing *packing_of(enum format format)
{
    return (unsigned)format < FORMAT_LIMIT && packings[format].pack ? &packings[format] : NULL;
}
