/* SPDX-License-Identifier: MIT */
/* Products of F32, F16 and BF16 weights with float activations.
 *
 * A group is [column][8 rows]. Even and odd columns are summed apart, then added: two chains of dependent
 * additions keep a single row from waiting on its own latency. */

#include "cpu/kernels/tile.h"

LANES_INLINE rows_f32 load_f32(const uint8_t *group, size_t apart, uint32_t k)
{
    return rows_f32_load((const float *)(const void *)group + (size_t)k * KERNELS_ROWS, apart);
}

LANES_INLINE rows_f32 load_f16(const uint8_t *group, size_t apart, uint32_t k)
{
    return rows_f32_from_f16((const uint16_t *)(const void *)group + (size_t)k * KERNELS_ROWS, apart);
}

LANES_INLINE rows_f32 load_bf16(const uint8_t *group, size_t apart, uint32_t k)
{
    return rows_f32_from_bf16((const uint16_t *)(const void *)group + (size_t)k * KERNELS_ROWS, apart);
}

typedef rows_f32 load_column(const uint8_t *group, size_t apart, uint32_t k);

/* Parts first_part … first_part + n_parts − 1 of the group; n and n_parts are constants. */
LANES_INLINE void float_parts(const struct group_product *product, uint32_t first, const int n,
                              const int first_part, const int n_parts, load_column *load)
{
    const uint8_t *group = product->group;
    const uint32_t n_columns = product->n_columns;
    const size_t stride = product->x->stride;
    const float *rows = product->x->values + first * stride;
    rows_f32 even[LANES_PARTS][TILE_MAX], odd[LANES_PARTS][TILE_MAX];
    UNROLLED
    for (int p = 0; p < n_parts; p++)
        UNROLLED
    for (int i = 0; i < n; i++)
        even[p][i] = odd[p][i] = rows_f32_splat(0);
    uint32_t k = 0;
    for (; k + 1 < n_columns; k += 2)
        UNROLLED
    for (int p = 0; p < n_parts; p++) {
        const size_t apart = apart_of(product, first_part + p);
        rows_f32 w0 = load(group, apart, k), w1 = load(group, apart, k + 1);
        UNROLLED
        for (int i = 0; i < n; i++) {
            even[p][i] = rows_f32_fma(w0, rows_f32_splat(rows[(size_t)i * stride + k]), even[p][i]);
            odd[p][i] = rows_f32_fma(w1, rows_f32_splat(rows[(size_t)i * stride + k + 1]), odd[p][i]);
        }
    }
    UNROLLED
    for (int p = 0; p < n_parts; p++) {
        float *out = product->out + first * product->out_stride + (first_part + p) * LANES_ROWS;
        if (k < n_columns) {
            rows_f32 w = load(group, apart_of(product, first_part + p), k);
            UNROLLED
            for (int i = 0; i < n; i++)
                even[p][i] = rows_f32_fma(w, rows_f32_splat(rows[(size_t)i * stride + k]), even[p][i]);
        }
        UNROLLED
        for (int i = 0; i < n; i++)
            rows_f32_store(out + (size_t)i * product->out_stride, even[p][i] + odd[p][i]);
    }
}

/* As many parts together as registers hold the sums of. */
LANES_INLINE void float_tile(const struct group_product *product, uint32_t first, const int n,
                             load_column *load)
{
    if (n * LANES_PARTS <= TILE_MAX)
        float_parts(product, first, n, 0, LANES_PARTS, load);
    else
        for (int part = 0; part < LANES_PARTS; part++)
            float_parts(product, first, n, part, 1, load);
}

DEFINE_MULTIPLY(multiply_f32, float_tile, load_f32)
DEFINE_MULTIPLY(multiply_f16, float_tile, load_f16)
DEFINE_MULTIPLY(multiply_bf16, float_tile, load_bf16)
