/* SPDX-License-Identifier: MIT */
/* Products of F32, F16 and BF16 weights with float activations.
 *
 * A group is [column][8 rows]. Even and odd columns are summed apart, then added: two chains of dependent
 * additions keep a single row from waiting on its own latency. */

#include "worker/cpu/kernels_tile.h"

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

LANES_INLINE void float_tile(const struct group_product *product, uint32_t first, const int n,
                             rows_f32 (*load)(const uint8_t *, size_t, uint32_t))
{
    const uint8_t *group = product->group;
    const size_t apart = product->apart;
    const uint32_t n_columns = product->n_columns;
    const size_t stride = product->x->stride;
    const float *rows = product->x->values + first * stride;
    rows_f32 even[TILE_MAX], odd[TILE_MAX];
    UNROLLED
    for (int i = 0; i < n; i++)
        even[i] = odd[i] = rows_f32_splat(0);
    uint32_t k = 0;
    for (; k + 1 < n_columns; k += 2) {
        rows_f32 w0 = load(group, apart, k), w1 = load(group, apart, k + 1);
        UNROLLED
        for (int i = 0; i < n; i++) {
            even[i] = rows_f32_fma(w0, rows_f32_splat(rows[(size_t)i * stride + k]), even[i]);
            odd[i] = rows_f32_fma(w1, rows_f32_splat(rows[(size_t)i * stride + k + 1]), odd[i]);
        }
    }
    if (k < n_columns) {
        rows_f32 w = load(group, apart, k);
        UNROLLED
        for (int i = 0; i < n; i++)
            even[i] = rows_f32_fma(w, rows_f32_splat(rows[(size_t)i * stride + k]), even[i]);
    }
    UNROLLED
    for (int i = 0; i < n; i++)
        rows_f32_store(product->out + (first + (size_t)i) * product->out_stride, even[i] + odd[i]);
}

DEFINE_MULTIPLY(multiply_f32, float_tile, load_f32)
DEFINE_MULTIPLY(multiply_f16, float_tile, load_f16)
DEFINE_MULTIPLY(multiply_bf16, float_tile, load_bf16)
