/* SPDX-License-Identifier: MIT */
/* Embedding rows, read from the file's own blocks (gguf/blocks.h): a row is a few kilobytes, so each
 * thread takes single elements out of them, whatever the format. */

#include "cuda/kernels/weight_blocks.h"
#include "gguf/blocks.h"

#include <errno.h>

#define THREADS 256

static __device__ inline float half_of(uint16_t bits)
{
    return simt_float(half_t{bits});
}

/* Element k of blocks of 32 that keep element i and i + 16 in one byte. */
static __device__ inline int nibble_of(const uint8_t quants[16], uint32_t k)
{
    return quants[k % 16] >> (k < 16 ? 0 : 4) & 15;
}

static __device__ inline int fifth_bit_of(const uint8_t high[4], uint32_t k)
{
    return (high[k / 8] >> (k % 8) & 1) << 4;
}

/* block_k_scale_min, on the device. */
static __device__ inline void scale_min_of(const uint8_t scales[12], uint32_t g, int *ret_scale, int *ret_min)
{
    if (g < 4) {
        *ret_scale = scales[g] & 63;
        *ret_min = scales[g + 4] & 63;
    } else {
        *ret_scale = (scales[g + 4] & 15) | (scales[g - 4] >> 6) << 4;
        *ret_min = scales[g + 4] >> 4 | (scales[g] >> 6) << 4;
    }
}

static __device__ inline float k_value(uint16_t scale, uint16_t min, const uint8_t scales[12], uint32_t g,
                                       int q)
{
    int s, m;
    scale_min_of(scales, g, &s, &m);
    return half_of(scale) * (float)s * (float)q - half_of(min) * (float)m;
}

/* A weight of a format with a table. */
template <enum format F> static __device__ inline float table_value(int place)
{
    return (float)(int8_t)from_table<F>((uint32_t)place);
}

/* ---- element k of a row, of each format of the list ---- */

static __device__ inline float f32_value(const void *row, uint32_t k)
{
    return ((const float *)row)[k];
}

static __device__ inline float f16_value(const void *row, uint32_t k)
{
    return simt_float(((const half_t *)row)[k]);
}

static __device__ inline float bf16_value(const void *row, uint32_t k)
{
    return simt_float(((const bf16_t *)row)[k]);
}

static __device__ inline float q8_0_value(const void *row, uint32_t k)
{
    const struct block_q8_0 *block = (const struct block_q8_0 *)row + k / 32;
    return half_of(block->scale) * (float)block->quants[k % 32];
}

static __device__ inline float q4_0_value(const void *row, uint32_t k)
{
    const struct block_q4_0 *block = (const struct block_q4_0 *)row + k / 32;
    return half_of(block->scale) * (float)(nibble_of(block->quants, k % 32) - 8);
}

static __device__ inline float q4_1_value(const void *row, uint32_t k)
{
    const struct block_q4_1 *block = (const struct block_q4_1 *)row + k / 32;
    return half_of(block->scale) * (float)nibble_of(block->quants, k % 32) + half_of(block->min);
}

static __device__ inline float q5_0_value(const void *row, uint32_t k)
{
    const struct block_q5_0 *block = (const struct block_q5_0 *)row + k / 32;
    int q = nibble_of(block->quants, k % 32) | fifth_bit_of(block->high, k % 32);
    return half_of(block->scale) * (float)(q - 16);
}

static __device__ inline float q5_1_value(const void *row, uint32_t k)
{
    const struct block_q5_1 *block = (const struct block_q5_1 *)row + k / 32;
    int q = nibble_of(block->quants, k % 32) | fifth_bit_of(block->high, k % 32);
    return half_of(block->scale) * (float)q + half_of(block->min);
}

static __device__ inline float iq4_nl_value(const void *row, uint32_t k)
{
    const struct block_iq4_nl *block = (const struct block_iq4_nl *)row + k / 32;
    return half_of(block->scale) * table_value<FORMAT_IQ4_NL>(nibble_of(block->quants, k % 32));
}

static __device__ inline float mxfp4_value(const void *row, uint32_t k)
{
    const struct block_mxfp4 *block = (const struct block_mxfp4 *)row + k / 32;
    return scale_of_exponent(block->exponent) * table_value<FORMAT_MXFP4>(nibble_of(block->quants, k % 32));
}

static __device__ inline float iq4_xs_value(const void *row, uint32_t k)
{
    const struct block_iq4_xs *block = (const struct block_iq4_xs *)row + k / 256;
    const uint32_t g = k % 256 / 32;
    const int low = block->scales_low[g / 2] >> (g % 2 * 4) & 15, high = block->scales_high >> (g * 2) & 3;
    return half_of(block->scale) * (float)((low | high << 4) - 32) *
           table_value<FORMAT_IQ4_XS>(nibble_of(block->quants + g * 16, k % 32));
}

/* Element k % 256 of a half's pairs of bits. */
static __device__ inline int pair_of(const uint8_t quants[64], uint32_t k)
{
    return quants[k / 128 * 32 + k % 32] >> (k % 128 / 32 * 2) & 3;
}

static __device__ inline float q2_k_value(const void *row, uint32_t k)
{
    const struct block_q2_k *block = (const struct block_q2_k *)row + k / 256;
    const int scales = block->scales[k % 256 / 16];
    return half_of(block->scale) * (float)(scales & 15) * (float)pair_of(block->quants, k % 256) -
           half_of(block->min) * (float)(scales >> 4);
}

static __device__ inline float q3_k_value(const void *row, uint32_t k)
{
    const struct block_q3_k *block = (const struct block_q3_k *)row + k / 256;
    const uint32_t g = k % 256 / 16;
    const int low = block->scales[g % 8] >> (g / 8 * 4) & 15,
              high = block->scales[8 + g % 4] >> (g / 4 * 2) & 3;
    const int q = pair_of(block->quants, k % 256) | (block->high[k % 32] >> k % 256 / 32 & 1) << 2;
    return half_of(block->scale) * (float)((low | high << 4) - 32) * (float)(q - 4);
}

static __device__ inline float q4_k_value(const void *row, uint32_t k)
{
    const struct block_q4_k *block = (const struct block_q4_k *)row + k / 256;
    const uint32_t g = k % 256 / 32;
    int q = block->quants[g / 2 * 32 + k % 32] >> (g % 2 * 4) & 15;
    return k_value(block->scale, block->min, block->scales, g, q);
}

static __device__ inline float q5_k_value(const void *row, uint32_t k)
{
    const struct block_q5_k *block = (const struct block_q5_k *)row + k / 256;
    const uint32_t g = k % 256 / 32;
    int q = block->quants[g / 2 * 32 + k % 32] >> (g % 2 * 4) & 15;
    q |= (block->high[k % 32] >> g & 1) << 4;
    return k_value(block->scale, block->min, block->scales, g, q);
}

static __device__ inline float q6_k_value(const void *row, uint32_t k)
{
    const struct block_q6_k *block = (const struct block_q6_k *)row + k / 256;
    const uint32_t half = k % 256 / 128, run = k % 128 / 32, i = k % 32;
    int q = block->low[half * 64 + run % 2 * 32 + i] >> (run / 2 * 4) & 15;
    q |= (block->high[half * 32 + i] >> (2 * run) & 3) << 4;
    return half_of(block->scale) * (float)block->scales[k % 256 / 16] * (float)(q - 32);
}

static __device__ float element(enum format format, const void *row, uint32_t k)
{
#define CASE(name, id, number, elements, bytes)                                                              \
    case FORMAT_##name:                                                                                      \
        return id##_value(row, k);
    switch (format) {
        FORMATS(CASE)
    case FORMAT_LIMIT:
        break;
    }
#undef CASE
    return NAN; /* kernels_embed refuses it */
}

struct table {
    enum format format;
    uint32_t n_rows, n_columns;
    const uint8_t *rows; /* NULL: no such table */
    size_t row_bytes;
};

/* A thread per column; blockIdx.y is the row. Dead rows, and ids that no table has, become zeros. */
static __global__ void embed_rows(const struct step_row *rows, struct table ids, struct table positions,
                                  float scale, float *stream, uint32_t stride)
{
    simt_start();
    const struct step_row row = rows[blockIdx.y];
    const uint32_t column = blockIdx.x * THREADS + threadIdx.x;
    float value = 0;
    if (column >= stride)
        return;
    if (row.position != ROW_DEAD && column < ids.n_columns && (uint32_t)row.id < ids.n_rows) {
        value = scale * element(ids.format, ids.rows + (size_t)row.id * ids.row_bytes, column);
        if (positions.rows && row.position < positions.n_rows)
            value += element(positions.format, positions.rows + row.position * positions.row_bytes, column);
    }
    stream[(size_t)blockIdx.y * stride + column] = value;
}

static struct table table_of(const struct device_matrix *matrix)
{
    if (!matrix)
        return table{};
    return table{matrix->format, matrix->n_rows, matrix->n_columns, (const uint8_t *)matrix->planes[0],
                 format_bytes(matrix->format, matrix->n_columns)};
}

int kernels_embed(struct device_stream *queue, const struct embed_step *embed, const struct step_row *rows,
                  uint32_t n_rows)
{
    const struct device_matrix *positions = embed->positions;
    if (!layout_of(embed->embedding->format) || (positions && !layout_of(positions->format)))
        return -EINVAL;
    return simt_launch(queue, "embed", embed_rows, {(embed->stride + THREADS - 1) / THREADS, n_rows, 1},
                       {THREADS, 1, 1}, 0, rows, table_of(embed->embedding), table_of(positions),
                       embed->scale, embed->stream, embed->stride);
}

/* ---- the layers' own embeddings ---- */

#define INPUT_WARPS 4 /* of a block */

/* A warp to a layer's part of a row; blockIdx.y is the row. Lanes take neighbouring numbers. */
static __global__ void layer_inputs(struct layer_inputs_step step, struct table table,
                                    const struct step_row *rows)
{
    simt_start();
    const uint32_t layer = blockIdx.x * INPUT_WARPS + threadIdx.x / SIMT_LANES;
    const uint32_t lane = threadIdx.x % SIMT_LANES;
    const struct step_row row = rows[blockIdx.y];
    const bool is_there = row.position != ROW_DEAD && (uint32_t)row.id < table.n_rows;
    if (layer >= step.n_layers)
        return;
    const float *projected =
        step.projected + (size_t)blockIdx.y * step.projected_stride + (size_t)layer * step.n;
    const uint8_t *of_token = table.rows + (is_there ? (size_t)row.id * table.row_bytes : 0);
    float *out = step.out + (size_t)blockIdx.y * step.stride + (size_t)layer * step.part;
    float mean = 0, squares = 0;
    if (is_centered(step.norm.kind)) {
        for (uint32_t i = lane; i < step.n; i += SIMT_LANES)
            mean += projected[i] * step.factor;
        mean = simt_warp_sum(mean) / (float)step.n;
    }
    for (uint32_t i = lane; i < step.n; i += SIMT_LANES) {
        const float x = projected[i] * step.factor - mean;
        squares = fmaf(x, x, squares);
    }
    const float factor = 1.0f / sqrtf(simt_warp_sum(squares) / (float)step.n + step.norm.epsilon);
    const float scale = sqrtf((float)step.n);
    for (uint32_t i = lane; i < step.n; i += SIMT_LANES) {
        const float bias = is_centered(step.norm.kind) && step.vector.bias ? step.vector.bias[i] : 0;
        const float normed = fmaf((projected[i] * step.factor - mean) * factor, step.vector.weight[i], bias);
        const float token = is_there ? element(table.format, of_token, layer * step.n + i) : 0;
        out[i] = fmaf(scale, token, normed) * 0.70710678f;
    }
}

int kernels_layer_inputs(struct device_stream *queue, const struct layer_inputs_step *inputs,
                         const struct step_row *rows, uint32_t n_rows)
{
    if (!layout_of(inputs->table->format) || inputs->table->n_columns < inputs->n_layers * inputs->n)
        return -EINVAL;
    return simt_launch(queue, "layer_inputs", layer_inputs,
                       {(inputs->n_layers + INPUT_WARPS - 1) / INPUT_WARPS, n_rows, 1},
                       {INPUT_WARPS * SIMT_LANES, 1, 1}, 0, *inputs, table_of(inputs->table), rows);
}
