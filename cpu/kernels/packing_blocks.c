/* SPDX-License-Identifier: MIT */
/* Packing of the formats with 32 columns to a scale (packing.c says how packings are written). */

#include "cpu/kernels/packing_internal.h"
#include "gguf/blocks.h"

void pack_q8_0(const uint8_t *const rows[8], uint32_t n_blocks, uint8_t *out)
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

void unpack_q8_0(const uint8_t *group, uint32_t n_blocks, float *out)
{
    const struct packed_q8_0 *packed = (const void *)group;
    for (uint32_t b = 0; b < n_blocks; b++, packed++)
        for (uint32_t k = 0; k < 32; k++)
            for (int r = 0; r < ROWS; r++)
                *out++ = format_f16_to_f32(packed->scales[r]) * (float)(int8_t)packed->quants[chunk_at(k, r)];
}

void pack_q4_0(const uint8_t *const rows[8], uint32_t n_blocks, uint8_t *out)
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

static int nibble_at(const uint8_t nibbles[4 * 32], uint32_t k, int r)
{
    int byte = nibbles[chunk_at(k % 16, r)];
    return k < 16 ? byte & 15 : byte >> 4;
}

void unpack_q4_0(const uint8_t *group, uint32_t n_blocks, float *out)
{
    const struct packed_q4_0 *packed = (const void *)group;
    for (uint32_t b = 0; b < n_blocks; b++, packed++)
        for (uint32_t k = 0; k < 32; k++)
            for (int r = 0; r < ROWS; r++)
                *out++ = format_f16_to_f32(packed->scales[r]) * (float)(nibble_at(packed->nibbles, k, r) - 8);
}

/* The fifth bits of one row: bit k of the file's is column k's. */
static void put_tops(const uint8_t high[4], int r, uint8_t tops[32])
{
    memset(tops + chunk_at(0, r), 0, 4);
    for (uint32_t k = 0; k < 32; k++)
        tops[chunk_at(k % 4, r)] |= (uint8_t)((high[k / 8] >> (k % 8) & 1) << (k / 4));
}

static int five_bits_at(const struct packed_q5_0 *packed, uint32_t k, int r)
{
    int top = packed->tops[chunk_at(k % 4, r)] >> (k / 4) & 1;
    return nibble_at(packed->low.nibbles, k, r) | top << 4;
}

void pack_q5_0(const uint8_t *const rows[8], uint32_t n_blocks, uint8_t *out)
{
    struct packed_q5_0 *packed = (void *)out;
    for (int r = 0; r < ROWS; r++) {
        const struct block_q5_0 *blocks = (const void *)rows[r];
        for (uint32_t b = 0; b < n_blocks; b++) {
            packed[b].low.scales[r] = blocks[b].scale;
            put_chunks(blocks[b].quants, 16, r, packed[b].low.nibbles);
            put_tops(blocks[b].high, r, packed[b].tops);
        }
    }
}

void unpack_q5_0(const uint8_t *group, uint32_t n_blocks, float *out)
{
    const struct packed_q5_0 *packed = (const void *)group;
    for (uint32_t b = 0; b < n_blocks; b++, packed++)
        for (uint32_t k = 0; k < 32; k++)
            for (int r = 0; r < ROWS; r++) {
                int q = five_bits_at(packed, k, r) - 16;
                *out++ = format_f16_to_f32(packed->low.scales[r]) * (float)q;
            }
}

/* ---- what Q4_0 and Q5_0 are with a minimum or a table in the place of an offset ---- */

void pack_q4_1(const uint8_t *const rows[8], uint32_t n_blocks, uint8_t *out)
{
    struct packed_q4_1 *packed = (void *)out;
    for (int r = 0; r < ROWS; r++) {
        const struct block_q4_1 *blocks = (const void *)rows[r];
        for (uint32_t b = 0; b < n_blocks; b++) {
            packed[b].low.scales[r] = blocks[b].scale;
            packed[b].mins[r] = blocks[b].min;
            put_chunks(blocks[b].quants, 16, r, packed[b].low.nibbles);
        }
    }
}

void unpack_q4_1(const uint8_t *group, uint32_t n_blocks, float *out)
{
    const struct packed_q4_1 *packed = (const void *)group;
    for (uint32_t b = 0; b < n_blocks; b++, packed++)
        for (uint32_t k = 0; k < 32; k++)
            for (int r = 0; r < ROWS; r++)
                *out++ =
                    format_f16_to_f32(packed->low.scales[r]) * (float)nibble_at(packed->low.nibbles, k, r) +
                    format_f16_to_f32(packed->mins[r]);
}

void pack_q5_1(const uint8_t *const rows[8], uint32_t n_blocks, uint8_t *out)
{
    struct packed_q5_1 *packed = (void *)out;
    for (int r = 0; r < ROWS; r++) {
        const struct block_q5_1 *blocks = (const void *)rows[r];
        for (uint32_t b = 0; b < n_blocks; b++) {
            packed[b].low.low.scales[r] = blocks[b].scale;
            packed[b].mins[r] = blocks[b].min;
            put_chunks(blocks[b].quants, 16, r, packed[b].low.low.nibbles);
            put_tops(blocks[b].high, r, packed[b].low.tops);
        }
    }
}

void unpack_q5_1(const uint8_t *group, uint32_t n_blocks, float *out)
{
    const struct packed_q5_1 *packed = (const void *)group;
    for (uint32_t b = 0; b < n_blocks; b++, packed++)
        for (uint32_t k = 0; k < 32; k++)
            for (int r = 0; r < ROWS; r++)
                *out++ =
                    format_f16_to_f32(packed->low.low.scales[r]) * (float)five_bits_at(&packed->low, k, r) +
                    format_f16_to_f32(packed->mins[r]);
}

void pack_iq4_nl(const uint8_t *const rows[8], uint32_t n_blocks, uint8_t *out)
{
    struct packed_iq4_nl *packed = (void *)out;
    for (int r = 0; r < ROWS; r++) {
        const struct block_iq4_nl *blocks = (const void *)rows[r];
        for (uint32_t b = 0; b < n_blocks; b++) {
            packed[b].low.scales[r] = blocks[b].scale;
            put_chunks(blocks[b].quants, 16, r, packed[b].low.nibbles);
        }
    }
}

void unpack_iq4_nl(const uint8_t *group, uint32_t n_blocks, float *out)
{
    const struct packed_iq4_nl *packed = (const void *)group;
    for (uint32_t b = 0; b < n_blocks; b++, packed++)
        for (uint32_t k = 0; k < 32; k++)
            for (int r = 0; r < ROWS; r++)
                *out++ = format_f16_to_f32(packed->low.scales[r]) *
                         (float)block_iq4_values[nibble_at(packed->low.nibbles, k, r)];
}

void pack_mxfp4(const uint8_t *const rows[8], uint32_t n_blocks, uint8_t *out)
{
    struct packed_mxfp4 *packed = (void *)out;
    for (int r = 0; r < ROWS; r++) {
        const struct block_mxfp4 *blocks = (const void *)rows[r];
        for (uint32_t b = 0; b < n_blocks; b++) {
            packed[b].exponents[r] = blocks[b].exponent;
            put_chunks(blocks[b].quants, 16, r, packed[b].nibbles);
        }
    }
}

void unpack_mxfp4(const uint8_t *group, uint32_t n_blocks, float *out)
{
    const struct packed_mxfp4 *packed = (const void *)group;
    for (uint32_t b = 0; b < n_blocks; b++, packed++)
        for (uint32_t k = 0; k < 32; k++)
            for (int r = 0; r < ROWS; r++)
                *out++ = block_mxfp4_scale(packed->exponents[r]) *
                         (float)block_mxfp4_values[nibble_at(packed->nibbles, k, r)];
}
