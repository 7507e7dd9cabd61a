/* SPDX-License-Identifier: MIT */
/* Products with sixteen activation rows at once, by the tiles of AMX: one instruction multiplies 16 rows of
 * activations by 16 rows of weights, 32 columns of each, into 256 exact integers.
 *
 * What follows is what blocks.c and superblocks.c do with such integers, in the same order:
 * an output has the bits that it has there. A pair of groups is unpacked a piece of columns at a time; the
 * piece stays in the first-level cache while all rows of the call meet it, and their sums wait in `out`.
 *
 * Tile instructions hardly overlap with one another or with the scaling, so their number is what counts. */

#include "cpu/kernels/tile.h"
#include "cpu/kernels/unpack.h"

#define SIXTEEN_TIMES _Pragma("GCC unroll 16")

enum {
    SIDE = KERNELS_MANY, /* rows of a tile of activations, and of weights */
    PIECE = 512,         /* columns that are unpacked at once */
    BLOCKS = PIECE / KERNELS_BLOCK,
    SUPERBLOCK = 256 / KERNELS_BLOCK, /* blocks of a superblock */
    TILE_BYTES = SIDE * KERNELS_BLOCK,
    AHEAD = 2, /* blocks whose integers are under way while those of another are scaled */
    IN_FLIGHT = 4,
};

/* A piece of two groups; a lane is a row of weights. */
struct piece {
    _Alignas(64) int8_t weights[BLOCKS][TILE_BYTES]; /* of a block: [4 columns][16 rows][4] */
    rows_f32 scales[BLOCKS];                         /* of blocks; in superblocks their whole numbers */
    rows_f32 others[BLOCKS]; /* minimums of blocks, or the scales of their second halves */
    rows_f32 super_scales[BLOCKS / SUPERBLOCK], super_mins[BLOCKS / SUPERBLOCK];
};

/* Sixteen rows of activations from a column on: tiles in the order of columns. */
struct strip {
    const int8_t *tiles;        /* [blocks][16 rows][32] */
    const float *scales, *sums; /* [blocks][16 rows] */
};

static struct strip strip_at(const struct activations *x, uint32_t row, uint32_t column)
{
    size_t block = (size_t)row / SIDE * (x->stride / KERNELS_BLOCK) + column / KERNELS_BLOCK;
    return (struct strip){x->tiles + block * TILE_BYTES, x->tile_scales + block * SIDE,
                          x->tile_sums + block * SIDE};
}

/* ---- tiles: 0 holds integers, 1 activations, 2 weights, of `columns` columns ---- */

static void shape_tiles(uint8_t columns)
{
    /* The operand of LDTILECFG, Intel's manual volume 1, 18.3. */
    struct __attribute__((packed)) {
        uint8_t palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } shapes = {.palette = 1, .row_bytes = {64, columns, 64}, .rows = {SIDE, SIDE, columns / 4}};
    _Static_assert(sizeof shapes == 64, "as the processor reads it");
    _tile_loadconfig(&shapes);
}

LANES_INLINE void multiply_tiles(const int8_t *x, const int8_t *weights, int32_t ret[SIDE][SIDE])
{
    _tile_zero(0);
    _tile_loadd(1, x, KERNELS_BLOCK);
    _tile_loadd(2, weights, 64);
    _tile_dpbssd(0, 1, 2);
    _tile_stored(0, ret, 64);
}

LANES_INLINE rows_f32 floats_of(const int32_t row[SIDE])
{
    return (rows_f32)_mm512_cvtepi32_ps(_mm512_load_si512(row));
}

/* ---- the frame ---- */

/* Unpacks block i of a format from `packed`, and its pair `apart` bytes on, to its place in the piece. */
typedef void unpack_block(const void *packed, size_t apart, uint32_t i, struct piece *piece);

/* Adds the products of a piece's n_blocks with a strip to out[16][stride]. */
typedef void add_piece(const struct piece *piece, const struct strip *strip, uint32_t n_blocks, float *out,
                       size_t stride);

/* A format's measures, all constants. */
struct measures {
    uint32_t columns, bytes; /* of a packed block */
    uint8_t depth;           /* columns of a tile */
};

LANES_INLINE void multiply_pieces(const struct group_product *product, uint32_t first, uint32_t n,
                                  const struct measures format, unpack_block *unpack, add_piece *add)
{
    const uint8_t *packed = product->group;
    const size_t stride = product->out_stride;
    struct piece piece;
    shape_tiles(format.depth);
    for (uint32_t i = first; i < first + n; i++)
        rows_f32_store(product->out + i * stride, rows_f32_splat(0));
    for (uint32_t column = 0; column < product->n_columns; column += PIECE) {
        uint32_t left = product->n_columns - column;
        uint32_t here = left < PIECE ? left : PIECE;
        for (uint32_t i = 0; i < here / format.columns; i++, packed += format.bytes) {
            if (product->from_memory)
                ask_at_once(product, packed, format.bytes);
            unpack(packed, product->apart, i, &piece);
        }
        for (uint32_t i = first; i < first + n; i += SIDE) {
            struct strip strip = strip_at(product->x, i, column);
            add(&piece, &strip, here / KERNELS_BLOCK, product->out + i * stride, stride);
        }
    }
    _tile_release();
}

/* ---- one scale to 32 columns ---- */

LANES_INLINE void add_blocks(const struct piece *piece, const struct strip *strip, uint32_t n_blocks,
                             float *out, size_t stride)
{
    _Alignas(64) int32_t dots[IN_FLIGHT][SIDE][SIDE];
    rows_f32 sums[SIDE];
    SIXTEEN_TIMES
    for (int i = 0; i < SIDE; i++)
        sums[i] = rows_f32_load(out + (size_t)i * stride, sizeof(float) * KERNELS_ROWS);
    for (uint32_t b = 0; b < AHEAD && b < n_blocks; b++)
        multiply_tiles(strip->tiles + (size_t)b * TILE_BYTES, piece->weights[b], dots[b]);
    for (uint32_t b = 0; b < n_blocks; b++) {
        uint32_t next = b + AHEAD;
        if (next < n_blocks)
            multiply_tiles(strip->tiles + (size_t)next * TILE_BYTES, piece->weights[next],
                           dots[next % IN_FLIGHT]);
        SIXTEEN_TIMES
        for (int i = 0; i < SIDE; i++) {
            rows_f32 factor = piece->scales[b] * rows_f32_splat(strip->scales[b * SIDE + (uint32_t)i]);
            sums[i] = rows_f32_fma(floats_of(dots[b % IN_FLIGHT][i]), factor, sums[i]);
        }
    }
    SIXTEEN_TIMES
    for (int i = 0; i < SIDE; i++)
        rows_f32_store(out + (size_t)i * stride, sums[i]);
}

LANES_INLINE void store_block(struct piece *piece, uint32_t i, const rows_u8 w[8], uint8_t offset)
{
    UNROLLED
    for (int c = 0; c < 8; c++)
        _mm512_store_si512(piece->weights[i] + 64 * c, (__m512i)(w[c] - offset));
}

LANES_INLINE void unpack_q8_0(const void *packed, size_t apart, uint32_t i, struct piece *piece)
{
    const struct packed_q8_0 *block = packed;
    rows_u8 w[8];
    piece->scales[i] = rows_f32_from_f16(block->scales, apart);
    UNROLLED
    for (int c = 0; c < 8; c++)
        w[c] = rows_u8_load(block->quants + 32 * c, apart);
    store_block(piece, i, w, 0);
}

LANES_INLINE void unpack_q4_0(const void *packed, size_t apart, uint32_t i, struct piece *piece)
{
    const struct packed_q4_0 *block = packed;
    rows_u8 w[8];
    piece->scales[i] = rows_f32_from_f16(block->scales, apart);
    load_nibbles(block->nibbles, apart, w);
    store_block(piece, i, w, 8);
}

LANES_INLINE void unpack_q5_0(const void *packed, size_t apart, uint32_t i, struct piece *piece)
{
    const struct packed_q5_0 *block = packed;
    rows_u8 w[8];
    piece->scales[i] = rows_f32_from_f16(block->low.scales, apart);
    load_fives(block, apart, w);
    store_block(piece, i, w, 16);
}

/* ---- superblocks ---- */

/* The integers of blocks, by their number modulo IN_FLIGHT; those of second halves apart, where halves have a
 * scale each. */
struct dots {
    _Alignas(64) int32_t first[IN_FLIGHT][SIDE][SIDE], second[IN_FLIGHT][SIDE][SIDE];
};

LANES_INLINE void multiply_block(const struct piece *piece, const struct strip *strip, uint32_t b,
                                 const bool halves, struct dots *dots)
{
    const int8_t *x = strip->tiles + (size_t)b * TILE_BYTES, *weights = piece->weights[b];
    multiply_tiles(x, weights, dots->first[b % IN_FLIGHT]);
    if (halves)
        multiply_tiles(x + 16, weights + TILE_BYTES / 2, dots->second[b % IN_FLIGHT]);
}

LANES_INLINE void add_superblocks(const struct piece *piece, const struct strip *strip, uint32_t n_blocks,
                                  const bool halves, const bool minimums, float *out, size_t stride)
{
    struct dots dots;
    rows_f32 inner[SIDE]; /* before the superblock's scale */
    for (uint32_t b = 0; b < AHEAD; b++)
        multiply_block(piece, strip, b, halves, &dots);
    for (uint32_t s = 0; s < n_blocks / SUPERBLOCK; s++) {
        uint32_t first = SUPERBLOCK * s, end = first + SUPERBLOCK;
        SIXTEEN_TIMES
        for (int i = 0; i < SIDE; i++)
            inner[i] = rows_f32_splat(0);
        for (uint32_t b = first; b < end; b++) {
            if (b + AHEAD < n_blocks)
                multiply_block(piece, strip, b + AHEAD, halves, &dots);
            SIXTEEN_TIMES
            for (int i = 0; i < SIDE; i++) {
                rows_f32 dot = floats_of(dots.first[b % IN_FLIGHT][i]) * piece->scales[b];
                if (halves)
                    dot = rows_f32_fma(floats_of(dots.second[b % IN_FLIGHT][i]), piece->others[b], dot);
                inner[i] = rows_f32_fma(dot, rows_f32_splat(strip->scales[b * SIDE + (uint32_t)i]), inner[i]);
            }
        }
        SIXTEEN_TIMES
        for (int i = 0; i < SIDE; i++) {
            rows_f32 sum = rows_f32_load(out + (size_t)i * stride, sizeof(float) * KERNELS_ROWS);
            sum = rows_f32_fma(inner[i], piece->super_scales[s], sum);
            if (minimums) {
                rows_f32 mins = rows_f32_splat(0);
                UNROLLED
                for (uint32_t b = first; b < end; b++)
                    mins = rows_f32_fma(piece->others[b], rows_f32_splat(strip->sums[b * SIDE + (uint32_t)i]),
                                        mins);
                sum = rows_f32_fma(mins, -piece->super_mins[s], sum);
            }
            rows_f32_store(out + (size_t)i * stride, sum);
        }
    }
}

LANES_INLINE void add_with_minimums(const struct piece *piece, const struct strip *strip, uint32_t n_blocks,
                                    float *out, size_t stride)
{
    add_superblocks(piece, strip, n_blocks, false, true, out, stride);
}

LANES_INLINE void add_halves(const struct piece *piece, const struct strip *strip, uint32_t n_blocks,
                             float *out, size_t stride)
{
    add_superblocks(piece, strip, n_blocks, true, false, out, stride);
}

/* Q4_K and Q5_K, of `bits` bits. */
LANES_INLINE void unpack_with_minimums(const struct packed_q4_k *block, const uint8_t *tops, const int bits,
                                       size_t apart, uint32_t i, struct piece *piece)
{
    uint32_t first = SUPERBLOCK * i;
    piece->super_scales[i] = rows_f32_from_f16(block->scales, apart);
    piece->super_mins[i] = rows_f32_from_f16(block->min_scales, apart);
    for (uint32_t b = 0; b < SUPERBLOCK; b++) {
        piece->scales[first + b] = rows_f32_from_i32(rows_i32_from_u8(block->block_scales[b], apart));
        piece->others[first + b] = rows_f32_from_i32(rows_i32_from_u8(block->block_mins[b], apart));
    }
    for (int p = 0; p < 4; p++, first += 2) {
        rows_u8 even[8], odd[8];
        load_pair(block->nibbles[p], tops, apart, bits, p, even, odd);
        store_block(piece, first, even, 0);
        store_block(piece, first + 1, odd, 0);
    }
}

LANES_INLINE void unpack_q4_k(const void *packed, size_t apart, uint32_t i, struct piece *piece)
{
    unpack_with_minimums(packed, NULL, 4, apart, i, piece);
}

LANES_INLINE void unpack_q5_k(const void *packed, size_t apart, uint32_t i, struct piece *piece)
{
    const struct packed_q5_k *block = packed;
    unpack_with_minimums(&block->low, block->tops, 5, apart, i, piece);
}

LANES_INLINE void unpack_q6_k(const void *packed, size_t apart, uint32_t i, struct piece *piece)
{
    const struct packed_q6_k *block = packed;
    uint32_t first = SUPERBLOCK * i;
    piece->super_scales[i] = rows_f32_from_f16(block->scales, apart);
    for (uint32_t b = 0; b < SUPERBLOCK; b++) {
        piece->scales[first + b] = rows_f32_from_i32(rows_i32_from_i8(block->block_scales[b][0], apart));
        piece->others[first + b] = rows_f32_from_i32(rows_i32_from_i8(block->block_scales[b][1], apart));
    }
    for (int p = 0; p < 4; p++, first += 2) {
        rows_u8 even[8], odd[8];
        load_pair(block->nibbles[p], block->tops[p / 2], apart, 6, p, even, odd);
        store_block(piece, first, even, 32);
        store_block(piece, first + 1, odd, 32);
    }
}

#define DEFINE_MANY(name, columns, block, depth, unpack, add)                                                \
    void name(const struct group_product *product, uint32_t first, uint32_t n)                               \
    {                                                                                                        \
        multiply_pieces(product, first, n, (struct measures){columns, sizeof(block), depth}, unpack, add);   \
    }

DEFINE_MANY(multiply_q8_0_amx, 32, struct packed_q8_0, 32, unpack_q8_0, add_blocks)
DEFINE_MANY(multiply_q4_0_amx, 32, struct packed_q4_0, 32, unpack_q4_0, add_blocks)
DEFINE_MANY(multiply_q5_0_amx, 32, struct packed_q5_0, 32, unpack_q5_0, add_blocks)
DEFINE_MANY(multiply_q4_k_amx, 256, struct packed_q4_k, 32, unpack_q4_k, add_with_minimums)
DEFINE_MANY(multiply_q5_k_amx, 256, struct packed_q5_k, 32, unpack_q5_k, add_with_minimums)
DEFINE_MANY(multiply_q6_k_amx, 256, struct packed_q6_k, 16, unpack_q6_k, add_halves)

void quantize_amx(const struct activations *x, uint32_t row)
{
    size_t n_blocks = x->stride / KERNELS_BLOCK, from = row * n_blocks;
    size_t to = row / SIDE * n_blocks * SIDE + row % SIDE;
    quantize_avx512(x, row);
    if (!x->tiles)
        return;
    for (size_t b = 0; b < n_blocks; b++, from++, to += SIDE) {
        memcpy(x->tiles + to * KERNELS_BLOCK, x->quants + from * KERNELS_BLOCK, KERNELS_BLOCK);
        x->tile_scales[to] = x->scales[from];
        x->tile_sums[to] = x->sums[from];
    }
}
