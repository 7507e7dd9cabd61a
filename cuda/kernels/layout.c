/* SPDX-License-Identifier: MIT */
/* Packing of weights for the kernels, in plain C: run once at load.
 *
 * Each quantized format is a function for one block of 32 or 256 columns that takes the file's fields
 * (gguf/blocks.h) apart into bytes, one for each weight, and puts them where layout.h says. */

#include "cuda/kernels/layout.h"

#include <string.h>

#include "gguf/blocks.h"

/* Bytes of 256 columns in each plane. */
static const struct layout layout_f32 = {1, {1024}}, layout_f16 = {1, {512}}, layout_bf16 = {1, {512}},
                           layout_q8_0 = {2, {256, 16}}, layout_q4_0 = {2, {128, 16}},
                           layout_q4_1 = {2, {128, 32}}, layout_q5_0 = {3, {128, 16, 32}},
                           layout_q5_1 = {3, {128, 32, 32}}, layout_q2_k = {3, {64, 16, 4}},
                           layout_q3_k = {4, {64, 16, 32, 2}}, layout_q4_k = {2, {128, 16}},
                           layout_q5_k = {3, {128, 16, 32}}, layout_q6_k = {4, {128, 16, 64, 2}},
                           layout_iq4_nl = {2, {128, 16}}, layout_iq4_xs = {3, {128, 8, 2}},
                           layout_mxfp4 = {2, {128, 8}};

/* A row of the list without a layout does not compile. */
#define LAYOUT(name, id, number, elements, bytes) [FORMAT_##name] = &layout_##id,
static const struct layout *const layouts[FORMAT_LIMIT] = {FORMATS(LAYOUT)};
#undef LAYOUT

const struct layout *layout_of(enum format format)
{
    return (unsigned)format < FORMAT_LIMIT ? layouts[format] : NULL;
}

size_t layout_row_bytes(const struct layout *layout, uint32_t plane, uint32_t n_columns)
{
    return (size_t)(layout_padded(n_columns) / LAYOUT_COLUMNS) * layout->plane_bytes[plane];
}

static size_t plane_size(const struct layout *layout, uint32_t plane, uint32_t n_rows, uint32_t n_columns)
{
    return (n_rows * layout_row_bytes(layout, plane, n_columns) + 255) / 256 * 256;
}

size_t layout_bytes(const struct layout *layout, uint32_t n_rows, uint32_t n_columns)
{
    size_t bytes = 0;
    for (uint32_t p = 0; p < layout->n_planes; p++)
        bytes += plane_size(layout, p, n_rows, n_columns);
    return bytes;
}

void layout_place(const struct layout *layout, uint32_t n_rows, uint32_t n_columns, void *memory,
                  void *ret_planes[LAYOUT_PLANES])
{
    uint8_t *at = memory;
    for (uint32_t p = 0; p < LAYOUT_PLANES; p++) {
        ret_planes[p] = p < layout->n_planes ? at : NULL;
        at += p < layout->n_planes ? plane_size(layout, p, n_rows, n_columns) : 0;
    }
}

/* ---- what formats share ---- */

/* The low four bits of a block's 32 weights. */
static void put_nibbles(const uint8_t quants[32], uint8_t out[16])
{
    for (int i = 0; i < 16; i++)
        out[i] = (uint8_t)((quants[i] & 15) | quants[i + 16] << 4);
}

/* Bit `bit` of each. */
static void put_bits(const uint8_t quants[32], int bit, uint8_t out[4])
{
    for (int i = 0; i < 4; i++) {
        unsigned bits = 0;
        for (int c = 0; c < 8; c++)
            bits |= (quants[4 * c + i] >> bit & 1u) << c;
        out[i] = (uint8_t)bits;
    }
}

/* Bits `bit` and the next of each. */
static void put_pairs(const uint8_t quants[32], int bit, uint8_t out[8])
{
    for (int i = 0; i < 8; i++) {
        unsigned bits = 0;
        for (int c = 0; c < 4; c++)
            bits |= (quants[16 * (i / 4) + 4 * c + i % 4] >> bit & 3u) << 2 * c;
        out[i] = (uint8_t)bits;
    }
}

/* Places of 32 weights in a table, which stand in the file as Q4_0's nibbles do. */
static void put_places(const uint8_t nibbles[16], uint8_t out[16])
{
    for (int c = 0; c < 4; c++)
        for (int i = 0; i < 4; i += 2) {
            const uint8_t *two = nibbles + 4 * c + i;
            out[4 * c + i / 2] = (uint8_t)((two[0] & 15) | (two[1] & 15) << 4);
            out[4 * c + 2 + i / 2] = (uint8_t)(two[0] >> 4 | (two[1] >> 4) << 4);
        }
}

/* Where the planes of row `row` begin. */
struct place {
    uint8_t *planes[LAYOUT_PLANES];
};

/* ---- 32 columns to a scale: block b of a row ---- */

static void pack_q8_0(const void *blocks, uint32_t b, const struct place *to)
{
    const struct block_q8_0 *block = (const struct block_q8_0 *)blocks + b;
    memcpy(to->planes[0] + layout_quant_place(32 * b), block->quants, 16);
    memcpy(to->planes[0] + layout_quant_place(32 * b + 16), block->quants + 16, 16);
    memcpy(to->planes[1] + (size_t)b * 2, &block->scale, 2);
}

static void pack_q4_0(const void *blocks, uint32_t b, const struct place *to)
{
    const struct block_q4_0 *block = (const struct block_q4_0 *)blocks + b;
    memcpy(to->planes[0] + (size_t)b * 16, block->quants, 16);
    memcpy(to->planes[1] + (size_t)b * 2, &block->scale, 2);
}

static void pack_q4_1(const void *blocks, uint32_t b, const struct place *to)
{
    const struct block_q4_1 *block = (const struct block_q4_1 *)blocks + b;
    memcpy(to->planes[0] + (size_t)b * 16, block->quants, 16);
    memcpy(to->planes[1] + (size_t)b * 4, &block->scale, 4); /* and the minimum */
}

/* Bit 4 of 32 weights, which the file has in the order of columns. */
static void put_fifth_bits(const uint8_t high[4], uint8_t out[4])
{
    uint8_t bits[32];
    for (int i = 0; i < 32; i++)
        bits[i] = high[i / 8] >> (i % 8) & 1;
    put_bits(bits, 0, out);
}

static void pack_q5_0(const void *blocks, uint32_t b, const struct place *to)
{
    const struct block_q5_0 *block = (const struct block_q5_0 *)blocks + b;
    memcpy(to->planes[0] + (size_t)b * 16, block->quants, 16);
    memcpy(to->planes[1] + (size_t)b * 2, &block->scale, 2);
    put_fifth_bits(block->high, to->planes[2] + (size_t)b * 4);
}

static void pack_q5_1(const void *blocks, uint32_t b, const struct place *to)
{
    const struct block_q5_1 *block = (const struct block_q5_1 *)blocks + b;
    memcpy(to->planes[0] + (size_t)b * 16, block->quants, 16);
    memcpy(to->planes[1] + (size_t)b * 4, &block->scale, 4); /* and the minimum */
    put_fifth_bits(block->high, to->planes[2] + (size_t)b * 4);
}

_Static_assert(offsetof(struct block_q4_1, min) == offsetof(struct block_q4_1, scale) + 2 &&
                   offsetof(struct block_q5_1, min) == offsetof(struct block_q5_1, scale) + 2,
               "a scale and its minimum are copied as one");

static void pack_iq4_nl(const void *blocks, uint32_t b, const struct place *to)
{
    const struct block_iq4_nl *block = (const struct block_iq4_nl *)blocks + b;
    put_places(block->quants, to->planes[0] + (size_t)b * 16);
    memcpy(to->planes[1] + (size_t)b * 2, &block->scale, 2);
}

static void pack_mxfp4(const void *blocks, uint32_t b, const struct place *to)
{
    const struct block_mxfp4 *block = (const struct block_mxfp4 *)blocks + b;
    put_places(block->quants, to->planes[0] + (size_t)b * 16);
    to->planes[1][b] = block->exponent;
}

/* ---- 256 columns to a scale ---- */

/* What Q4_K and Q5_K share: the header of layout.h. */
static void put_k_header(const struct block_q4_k *block, uint8_t out[16])
{
    uint32_t tops = 0;
    memcpy(out, &block->scale, 2);
    memcpy(out + 2, &block->min, 2);
    for (int g = 0; g < 8; g++) {
        uint8_t scale, min;
        block_k_scale_min(block->scales, g, &scale, &min);
        out[4 + g] = (uint8_t)((scale & 15) | min << 4);
        tops |= ((uint32_t)(scale >> 4) | (uint32_t)(min >> 4) << 2) << 4 * g;
    }
    memcpy(out + 12, &tops, 4);
}

/* The file's pairs of blocks: 32 bytes, the first block low, the second high. */
static void take_pair(const uint8_t bytes[32], int second, uint8_t quants[32])
{
    for (int i = 0; i < 32; i++)
        quants[i] = second ? bytes[i] >> 4 : bytes[i] & 15;
}

static void pack_q4_k(const void *blocks, uint32_t b, const struct place *to)
{
    const struct block_q4_k *block = (const struct block_q4_k *)blocks + b;
    uint8_t quants[32];
    put_k_header(block, to->planes[1] + (size_t)b * 16);
    for (int g = 0; g < 8; g++) {
        take_pair(block->quants + g / 2 * 32, g % 2, quants);
        put_nibbles(quants, to->planes[0] + ((size_t)b * 8 + (size_t)g) * 16);
    }
}

_Static_assert(offsetof(struct block_q5_k, high) == offsetof(struct block_q4_k, quants),
               "what stands before the quants is the same in both");

static void pack_q5_k(const void *blocks, uint32_t b, const struct place *to)
{
    const struct block_q5_k *block = (const struct block_q5_k *)blocks + b;
    uint8_t quants[32];
    put_k_header((const void *)block, to->planes[1] + (size_t)b * 16);
    for (int g = 0; g < 8; g++) {
        take_pair(block->quants + g / 2 * 32, g % 2, quants);
        for (int i = 0; i < 32; i++)
            quants[i] |= (uint8_t)((block->high[i] >> g & 1) << 4);
        put_nibbles(quants, to->planes[0] + ((size_t)b * 8 + (size_t)g) * 16);
        put_bits(quants, 4, to->planes[2] + ((size_t)b * 8 + (size_t)g) * 4);
    }
}

/* In the file, halves of 128: of block g's 32 columns the nibbles lie in bytes 32 (g % 2) of the half's 64,
 * high ones for its last two blocks; and two of each byte's top bits for each of its four blocks. */
static void pack_q6_k(const void *blocks, uint32_t b, const struct place *to)
{
    const struct block_q6_k *block = (const struct block_q6_k *)blocks + b;
    uint8_t quants[32];
    memcpy(to->planes[1] + (size_t)b * 16, block->scales, 16);
    memcpy(to->planes[3] + (size_t)b * 2, &block->scale, 2);
    for (int g = 0; g < 8; g++) {
        take_pair(block->low + g / 4 * 64 + g % 2 * 32, g % 4 / 2, quants);
        for (int i = 0; i < 32; i++)
            quants[i] |= (uint8_t)((block->high[g / 4 * 32 + i] >> 2 * (g % 4) & 3) << 4);
        put_nibbles(quants, to->planes[0] + ((size_t)b * 8 + (size_t)g) * 16);
        put_pairs(quants, 4, to->planes[2] + ((size_t)b * 8 + (size_t)g) * 8);
    }
}

/* In the file, halves of 128: byte i of a half's 32 has a pair of bits for column i of each of its four
 * blocks. */
static void take_pairs(const uint8_t bytes[64], int g, uint8_t quants[32])
{
    for (int i = 0; i < 32; i++)
        quants[i] = bytes[g / 4 * 32 + i] >> 2 * (g % 4) & 3;
}

static void pack_q2_k(const void *blocks, uint32_t b, const struct place *to)
{
    const struct block_q2_k *block = (const struct block_q2_k *)blocks + b;
    uint8_t quants[32];
    memcpy(to->planes[1] + (size_t)b * 16, block->scales, 16);
    memcpy(to->planes[2] + (size_t)b * 4, &block->scale, 2);
    memcpy(to->planes[2] + (size_t)b * 4 + 2, &block->min, 2);
    for (int g = 0; g < 8; g++) {
        take_pairs(block->quants, g, quants);
        put_pairs(quants, 0, to->planes[0] + ((size_t)b * 8 + (size_t)g) * 8);
    }
}

static void pack_q3_k(const void *blocks, uint32_t b, const struct place *to)
{
    const struct block_q3_k *block = (const struct block_q3_k *)blocks + b;
    uint8_t quants[32];
    memcpy(to->planes[3] + (size_t)b * 2, &block->scale, 2);
    for (int g = 0; g < 16; g++)
        to->planes[1][(size_t)b * 16 + (size_t)g] = (uint8_t)block_q3_k_scale(block->scales, g);
    for (int g = 0; g < 8; g++) {
        take_pairs(block->quants, g, quants);
        put_pairs(quants, 0, to->planes[0] + ((size_t)b * 8 + (size_t)g) * 8);
        for (int i = 0; i < 32; i++)
            quants[i] = block->high[i] >> g & 1;
        put_bits(quants, 0, to->planes[2] + ((size_t)b * 8 + (size_t)g) * 4);
    }
}

static void pack_iq4_xs(const void *blocks, uint32_t b, const struct place *to)
{
    const struct block_iq4_xs *block = (const struct block_iq4_xs *)blocks + b;
    memcpy(to->planes[2] + (size_t)b * 2, &block->scale, 2);
    for (int g = 0; g < 8; g++) {
        to->planes[1][(size_t)b * 8 + (size_t)g] = (uint8_t)block_iq4_xs_scale(block, g);
        put_places(block->quants + (size_t)g * 16, to->planes[0] + ((size_t)b * 8 + (size_t)g) * 16);
    }
}

typedef void pack_block(const void *blocks, uint32_t b, const struct place *to);

/* Single numbers stay as in the file. */
#define pack_f32  NULL
#define pack_f16  NULL
#define pack_bf16 NULL

/* A row of the list without a function does not compile. */
#define PACKER(name, id, number, elements, bytes) [FORMAT_##name] = pack_##id,
static pack_block *const packers[FORMAT_LIMIT] = {FORMATS(PACKER)};
#undef PACKER

void layout_pack(enum format format, const uint8_t *rows, uint32_t n_rows, uint32_t n_columns,
                 uint8_t *const planes[LAYOUT_PLANES])
{
    const struct layout *layout = layout_of(format);
    const uint32_t n_blocks = n_columns / format_traits(format)->block_elements;
    const size_t file_bytes = format_bytes(format, n_columns);
    for (uint32_t row = 0; row < n_rows; row++, rows += file_bytes) {
        struct place to = {0};
        for (uint32_t p = 0; p < layout->n_planes; p++) {
            size_t bytes = layout_row_bytes(layout, p, n_columns);
            to.planes[p] = planes[p] + row * bytes;
            if (n_columns % LAYOUT_COLUMNS != 0)
                memset(to.planes[p], 0, bytes);
        }
        if (!packers[format]) {
            memcpy(to.planes[0], rows, file_bytes);
            continue;
        }
        for (uint32_t b = 0; b < n_blocks; b++)
            packers[format](rows, b, &to);
    }
}
