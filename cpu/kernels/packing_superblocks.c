/* SPDX-License-Identifier: MIT */
/* Packing of the formats with 256 columns to a scale (packing.c says how packings are written). */

#include "cpu/kernels/packing_internal.h"
#include "gguf/blocks.h"

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

void pack_q4_k(const uint8_t *const rows[8], uint32_t n_blocks, uint8_t *out)
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

void pack_q5_k(const uint8_t *const rows[8], uint32_t n_blocks, uint8_t *out)
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

void unpack_q4_k(const uint8_t *group, uint32_t n_blocks, float *out)
{
    const struct packed_q4_k *packed = (const void *)group;
    for (uint32_t b = 0; b < n_blocks; b++)
        out = unpack_k_block(&packed[b], NULL, out);
}

void unpack_q5_k(const uint8_t *group, uint32_t n_blocks, float *out)
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

void pack_q6_k(const uint8_t *const rows[8], uint32_t n_blocks, uint8_t *out)
{
    struct packed_q6_k *packed = (void *)out;
    for (int r = 0; r < ROWS; r++) {
        const struct block_q6_k *blocks = (const void *)rows[r];
        for (uint32_t b = 0; b < n_blocks; b++)
            pack_q6_k_row(&blocks[b], r, &packed[b]);
    }
}

void unpack_q6_k(const uint8_t *group, uint32_t n_blocks, float *out)
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

/* ---- Q2_K and Q3_K: pairs of bits ---- */

/* In the file as here: 32 bytes a half of 128 columns, each with a pair of bits of four blocks. */
static void put_pairs(const uint8_t quants[64], int r, uint8_t pairs[2][8 * 32])
{
    for (int half = 0; half < 2; half++)
        put_chunks(quants + 32 * half, 32, r, pairs[half]);
}

static int pair_of(const uint8_t pairs[2][8 * 32], uint32_t j, uint32_t k, int r)
{
    return pairs[j / 4][chunk_at(k, r)] >> (2 * (j % 4)) & 3;
}

void pack_q2_k(const uint8_t *const rows[8], uint32_t n_blocks, uint8_t *out)
{
    struct packed_q2_k *packed = (void *)out;
    for (int r = 0; r < ROWS; r++) {
        const struct block_q2_k *blocks = (const void *)rows[r];
        for (uint32_t b = 0; b < n_blocks; b++) {
            packed[b].scales[r] = blocks[b].scale;
            packed[b].min_scales[r] = blocks[b].min;
            for (int g = 0; g < 16; g++)
                packed[b].block_scales[g / 2][g % 2][r] = blocks[b].scales[g];
            put_pairs(blocks[b].quants, r, packed[b].pairs);
        }
    }
}

void unpack_q2_k(const uint8_t *group, uint32_t n_blocks, float *out)
{
    const struct packed_q2_k *packed = (const void *)group;
    for (uint32_t b = 0; b < n_blocks; b++, packed++)
        for (uint32_t j = 0; j < 8; j++)
            for (uint32_t k = 0; k < 32; k++)
                for (int r = 0; r < ROWS; r++) {
                    int both = packed->block_scales[j][k / 16][r];
                    float scale = format_f16_to_f32(packed->scales[r]) * (float)(both & 15);
                    float min = format_f16_to_f32(packed->min_scales[r]) * (float)(both >> 4);
                    *out++ = scale * (float)pair_of(packed->pairs, j, k, r) - min;
                }
}

void pack_q3_k(const uint8_t *const rows[8], uint32_t n_blocks, uint8_t *out)
{
    struct packed_q3_k *packed = (void *)out;
    for (int r = 0; r < ROWS; r++) {
        const struct block_q3_k *blocks = (const void *)rows[r];
        for (uint32_t b = 0; b < n_blocks; b++) {
            packed[b].scales[r] = blocks[b].scale;
            for (int g = 0; g < 16; g++)
                packed[b].block_scales[g / 2][g % 2][r] = (int8_t)block_q3_k_scale(blocks[b].scales, g);
            put_pairs(blocks[b].quants, r, packed[b].pairs);
            put_chunks(blocks[b].high, 32, r, packed[b].tops);
        }
    }
}

void unpack_q3_k(const uint8_t *group, uint32_t n_blocks, float *out)
{
    const struct packed_q3_k *packed = (const void *)group;
    for (uint32_t b = 0; b < n_blocks; b++, packed++)
        for (uint32_t j = 0; j < 8; j++)
            for (uint32_t k = 0; k < 32; k++)
                for (int r = 0; r < ROWS; r++) {
                    int top = packed->tops[chunk_at(k, r)] >> j & 1;
                    int q = (pair_of(packed->pairs, j, k, r) | top << 2) - 4;
                    int scale = packed->block_scales[j][k / 16][r];
                    *out++ = format_f16_to_f32(packed->scales[r]) * (float)scale * (float)q;
                }
}

/* ---- IQ4_XS ---- */

void pack_iq4_xs(const uint8_t *const rows[8], uint32_t n_blocks, uint8_t *out)
{
    struct packed_iq4_xs *packed = (void *)out;
    for (int r = 0; r < ROWS; r++) {
        const struct block_iq4_xs *blocks = (const void *)rows[r];
        for (uint32_t b = 0; b < n_blocks; b++) {
            packed[b].scales[r] = blocks[b].scale;
            for (int j = 0; j < 8; j++) {
                packed[b].block_scales[j][r] = (int8_t)block_iq4_xs_scale(&blocks[b], j);
                put_chunks(blocks[b].quants + 16 * j, 16, r, packed[b].nibbles[j]);
            }
        }
    }
}

void unpack_iq4_xs(const uint8_t *group, uint32_t n_blocks, float *out)
{
    const struct packed_iq4_xs *packed = (const void *)group;
    for (uint32_t b = 0; b < n_blocks; b++, packed++)
        for (uint32_t j = 0; j < 8; j++)
            for (uint32_t k = 0; k < 32; k++)
                for (int r = 0; r < ROWS; r++) {
                    int byte = packed->nibbles[j][chunk_at(k % 16, r)];
                    int value = block_iq4_values[k < 16 ? byte & 15 : byte >> 4];
                    float scale = format_f16_to_f32(packed->scales[r]) * (float)packed->block_scales[j][r];
                    *out++ = scale * (float)value;
                }
}
