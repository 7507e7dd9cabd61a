/* SPDX-License-Identifier: MIT */
/* Packing and unpacking of weight groups, in plain C: run once at load, and by the plain path.
 *
 * Each format is a loop over eight rows that takes the file's block (worker/gguf/blocks.h) apart and puts its
 * fields where packing.h says. Unpacking is written from packing.h's layout and not from the file's, so that
 * a test which compares it with the file format's own conversion proves both. */

#include "worker/cpu/packing.h"

#include <string.h>

#include "worker/cpu/kernels.h"
#include "worker/gguf/blocks.h"

#define ROWS KERNELS_ROWS

/* Where column k of a run of chunks lies for row r. */
static inline size_t chunk_at(uint32_t k, int r)
{
    return (size_t)(k / 4) * 32 + (size_t)r * 4 + k % 4;
}

/* n columns of one row into a run of chunks. */
static inline void put_chunks(const void *columns, uint32_t n, int r, uint8_t *chunks)
{
    for (uint32_t k = 0; k < n; k += 4)
        memcpy(chunks + chunk_at(k, r), (const uint8_t *)columns + k, 4);
}

static void pack_words(const uint8_t *const rows[8], uint32_t n, uint8_t *out)
{
    for (uint32_t k = 0; k < n; k++)
        for (int r = 0; r < ROWS; r++)
            memcpy(out + ((size_t)k * ROWS + (size_t)r) * 4, rows[r] + (size_t)k * 4, 4);
}

static void pack_halves(const uint8_t *const rows[8], uint32_t n, uint8_t *out)
{
    for (uint32_t k = 0; k < n; k++)
        for (int r = 0; r < ROWS; r++)
            memcpy(out + ((size_t)k * ROWS + (size_t)r) * 2, rows[r] + (size_t)k * 2, 2);
}

static void unpack_f32(const uint8_t *group, uint32_t n, float *out)
{
    memcpy(out, group, (size_t)n * ROWS * sizeof *out);
}

static void unpack_f16(const uint8_t *group, uint32_t n, float *out)
{
    const uint16_t *halves = (const void *)group;
    for (uint32_t i = 0; i < n * ROWS; i++)
        out[i] = format_f16_to_f32(halves[i]);
}

static void unpack_bf16(const uint8_t *group, uint32_t n, float *out)
{
    const uint16_t *halves = (const void *)group;
    for (uint32_t i = 0; i < n * ROWS; i++)
        out[i] = format_bf16_to_f32(halves[i]);
}

/* ---- 32 columns to a scale ---- */

static void pack_q8_0(const uint8_t *const rows[8], uint32_t n_blocks, uint8_t *out)
{
    struct packed_q8_0 *packed = (void *)out;
    for (int r = 0; r < ROWS; r++) {
        const struct block_q8_0 *blocks = (const void *)rows[r];
        for (uint32_t b = 0; b < n_blocks; b++) {
            packed[b].scales[r] = blocks[b].scale;
            put_chunks(blocks[b].quants, 32, r, packed[b].quants);
        }
    }
}

static void unpack_q8_0(const uint8_t *group, uint32_t n_blocks, float *out)
{
    const struct packed_q8_0 *packed = (const void *)group;
    for (uint32_t b = 0; b < n_blocks; b++, packed++)
        for (uint32_t k = 0; k < 32; k++)
            for (int r = 0; r < ROWS; r++)
                *out++ = format_f16_to_f32(packed->scales[r]) * (float)(int8_t)packed->quants[chunk_at(k, r)];
}

static void pack_q4_0(const uint8_t *const rows[8], uint32_t n_blocks, uint8_t *out)
{
    struct packed_q4_0 *packed = (void *)out;
    for (int r = 0; r < ROWS; r++) {
        const struct block_q4_0 *blocks = (const void *)rows[r];
        for (uint32_t b = 0; b < n_blocks; b++) {
            packed[b].scales[r] = blocks[b].scale;
            put_chunks(blocks[b].quants, 16, r, packed[b].nibbles);
        }
    }
}

static int small_nibble(const struct packed_q4_0 *packed, uint32_t k, int r)
{
    int byte = packed->nibbles[chunk_at(k % 16, r)];
    return k < 16 ? byte & 15 : byte >> 4;
}

static void unpack_q4_0(const uint8_t *group, uint32_t n_blocks, float *out)
{
    const struct packed_q4_0 *packed = (const void *)group;
    for (uint32_t b = 0; b < n_blocks; b++, packed++)
        for (uint32_t k = 0; k < 32; k++)
            for (int r = 0; r < ROWS; r++)
                *out++ = format_f16_to_f32(packed->scales[r]) * (float)(small_nibble(packed, k, r) - 8);
}

static void pack_q5_0(const uint8_t *const rows[8], uint32_t n_blocks, uint8_t *out)
{
    struct packed_q5_0 *packed = (void *)out;
    for (int r = 0; r < ROWS; r++) {
        const struct block_q5_0 *blocks = (const void *)rows[r];
        for (uint32_t b = 0; b < n_blocks; b++) {
            packed[b].low.scales[r] = blocks[b].scale;
            put_chunks(blocks[b].quants, 16, r, packed[b].low.nibbles);
            memset(packed[b].tops + chunk_at(0, r), 0, 4);
            for (uint32_t k = 0; k < 32; k++)
                packed[b].tops[chunk_at(k % 4, r)] |=
                    (uint8_t)((blocks[b].high[k / 8] >> (k % 8) & 1) << (k / 4));
        }
    }
}

static void unpack_q5_0(const uint8_t *group, uint32_t n_blocks, float *out)
{
    const struct packed_q5_0 *packed = (const void *)group;
    for (uint32_t b = 0; b < n_blocks; b++, packed++)
        for (uint32_t k = 0; k < 32; k++)
            for (int r = 0; r < ROWS; r++) {
                int top = packed->tops[chunk_at(k % 4, r)] >> (k / 4) & 1;
                int q = (small_nibble(&packed->low, k, r) | top << 4) - 16;
                *out++ = format_f16_to_f32(packed->low.scales[r]) * (float)q;
            }
}

/* ---- 256 columns to a scale ---- */

/* What the file's Q4_K and Q5_K share. Their nibbles are pairs of blocks as the packed ones are. */
static void pack_k_row(const struct block_q4_k *block, const uint8_t quants[128], int r,
                       struct packed_q4_k *packed)
{
    packed->scales[r] = block->scale;
    packed->min_scales[r] = block->min;
    for (int j = 0; j < 8; j++)
        block_k_scale_min(block->scales, j, &packed->block_scales[j][r], &packed->block_mins[j][r]);
    for (int pair = 0; pair < 4; pair++)
        put_chunks(quants + 32 * pair, 32, r, packed->nibbles[pair]);
}

static void pack_q4_k(const uint8_t *const rows[8], uint32_t n_blocks, uint8_t *out)
{
    struct packed_q4_k *packed = (void *)out;
    for (int r = 0; r < ROWS; r++) {
        const struct block_q4_k *blocks = (const void *)rows[r];
        for (uint32_t b = 0; b < n_blocks; b++)
            pack_k_row(&blocks[b], blocks[b].quants, r, &packed[b]);
    }
}

_Static_assert(offsetof(struct block_q5_k, high) == offsetof(struct block_q4_k, quants),
               "what stands before the quants is the same in both");

static void pack_q5_k(const uint8_t *const rows[8], uint32_t n_blocks, uint8_t *out)
{
    struct packed_q5_k *packed = (void *)out;
    for (int r = 0; r < ROWS; r++) {
        const struct block_q5_k *blocks = (const void *)rows[r];
        for (uint32_t b = 0; b < n_blocks; b++) {
            pack_k_row((const void *)&blocks[b], blocks[b].quants, r, &packed[b].low);
            put_chunks(blocks[b].high, 32, r, packed[b].tops);
        }
    }
}

/* Block j's column k in [pair of blocks][chunk]. */
static int nibble_of(const uint8_t nibbles[4][8 * 32], uint32_t j, uint32_t k, int r)
{
    int byte = nibbles[j / 2][chunk_at(k, r)];
    return j % 2 ? byte >> 4 : byte & 15;
}

/* `tops` NULL: Q4_K. */
static float *unpack_k_block(const struct packed_q4_k *packed, const uint8_t *tops, float *out)
{
    for (uint32_t j = 0; j < 8; j++)
        for (uint32_t k = 0; k < 32; k++)
            for (int r = 0; r < ROWS; r++) {
                int q = nibble_of(packed->nibbles, j, k, r);
                if (tops)
                    q += (tops[chunk_at(k, r)] >> j & 1) * 16;
                float scale = format_f16_to_f32(packed->scales[r]) * (float)packed->block_scales[j][r];
                float min = format_f16_to_f32(packed->min_scales[r]) * (float)packed->block_mins[j][r];
                *out++ = scale * (float)q - min;
            }
    return out;
}

static void unpack_q4_k(const uint8_t *group, uint32_t n_blocks, float *out)
{
    const struct packed_q4_k *packed = (const void *)group;
    for (uint32_t b = 0; b < n_blocks; b++)
        out = unpack_k_block(&packed[b], NULL, out);
}

static void unpack_q5_k(const uint8_t *group, uint32_t n_blocks, float *out)
{
    const struct packed_q5_k *packed = (const void *)group;
    for (uint32_t b = 0; b < n_blocks; b++)
        out = unpack_k_block(&packed[b].low, packed[b].tops, out);
}

/* In the file, halves of 128 elements: 64 bytes of nibbles each, where the low nibbles of 32 bytes are block
 * 0 (1 for the next 32) and the high ones block 2 (3); 32 bytes of top bits each, two for every block. */
static void pack_q6_k_row(const struct block_q6_k *block, int r, struct packed_q6_k *packed)
{
    packed->scales[r] = block->scale;
    for (int i = 0; i < 16; i++)
        packed->block_scales[i / 2][i % 2][r] = block->scales[i];
    for (uint32_t pair = 0; pair < 4; pair++) {
        /* Blocks 2 · pair and 2 · pair + 1: the same nibble of neighbouring runs of 32 bytes. */
        const uint8_t *runs = block->low + pair / 2 * 64;
        int shift = pair % 2 ? 4 : 0;
        for (uint32_t k = 0; k < 32; k++)
            packed->nibbles[pair][chunk_at(k, r)] =
                (uint8_t)((runs[k] >> shift & 15) | (runs[32 + k] >> shift & 15) << 4);
    }
    for (int half = 0; half < 2; half++)
        put_chunks(block->high + 32 * half, 32, r, packed->tops[half]);
}

static void pack_q6_k(const uint8_t *const rows[8], uint32_t n_blocks, uint8_t *out)
{
    struct packed_q6_k *packed = (void *)out;
    for (int r = 0; r < ROWS; r++) {
        const struct block_q6_k *blocks = (const void *)rows[r];
        for (uint32_t b = 0; b < n_blocks; b++)
            pack_q6_k_row(&blocks[b], r, &packed[b]);
    }
}

static void unpack_q6_k(const uint8_t *group, uint32_t n_blocks, float *out)
{
    const struct packed_q6_k *packed = (const void *)group;
    for (uint32_t b = 0; b < n_blocks; b++, packed++)
        for (uint32_t j = 0; j < 8; j++)
            for (uint32_t k = 0; k < 32; k++)
                for (int r = 0; r < ROWS; r++) {
                    int top = packed->tops[j / 4][chunk_at(k, r)] >> (2 * (j % 4)) & 3;
                    int q = (nibble_of(packed->nibbles, j, k, r) | top << 4) - 32;
                    int scale = packed->block_scales[j][k / 16][r];
                    *out++ = format_f16_to_f32(packed->scales[r]) * (float)scale * (float)q;
                }
}

static const struct packing packings[FORMAT_LIMIT] = {
    [FORMAT_F32] = {false, 1, 8 * 4, pack_words, unpack_f32},
    [FORMAT_F16] = {false, 1, 8 * 2, pack_halves, unpack_f16},
    [FORMAT_BF16] = {false, 1, 8 * 2, pack_halves, unpack_bf16},
    [FORMAT_Q8_0] = {true, 32, sizeof(struct packed_q8_0), pack_q8_0, unpack_q8_0},
    [FORMAT_Q4_0] = {true, 32, sizeof(struct packed_q4_0), pack_q4_0, unpack_q4_0},
    [FORMAT_Q5_0] = {true, 32, sizeof(struct packed_q5_0), pack_q5_0, unpack_q5_0},
    [FORMAT_Q4_K] = {true, 256, sizeof(struct packed_q4_k), pack_q4_k, unpack_q4_k},
    [FORMAT_Q5_K] = {true, 256, sizeof(struct packed_q5_k), pack_q5_k, unpack_q5_k},
    [FORMAT_Q6_K] = {true, 256, sizeof(struct packed_q6_k), pack_q6_k, unpack_q6_k},
};

const struct packing *packing_of(enum format format)
{
    return (unsigned)format < FORMAT_LIMIT && packings[format].pack ? &packings[format] : NULL;
}
