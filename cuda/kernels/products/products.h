/* SPDX-License-Identifier: MIT */
#ifndef CUDA_KERNELS_PRODUCTS_PRODUCTS_H
#define CUDA_KERNELS_PRODUCTS_PRODUCTS_H

/* Up to KERNELS_PRODUCTS products in one launch; each has a range of blockIdx.x for its rows. */

#include "cuda/kernels/weight_blocks.h"

struct products {
    struct device_matrix matrices[KERNELS_PRODUCTS];
    float *outs[KERNELS_PRODUCTS];
    uint32_t out_strides[KERNELS_PRODUCTS];
    uint32_t row_bytes[KERNELS_PRODUCTS]; /* of plane 0 of the matrix */
    uint32_t n;
};

/* The share of a block of threads: rows of one product from `row` on. */
struct block_share {
    uint32_t product, row;
};

/* The share of block `block`, if blocks take rows_each rows each. */
static __device__ inline struct block_share share_of(const struct products &products, uint32_t block,
                                                     uint32_t rows_each)
{
    uint32_t p = 0;
    while (block * rows_each >= products.matrices[p].n_rows)
        block -= (products.matrices[p++].n_rows + rows_each - 1) / rows_each;
    return block_share{p, block * rows_each};
}

/* For a kernel whose blocks take rows_each rows. */
static __device__ inline struct block_share share_of_block(const struct products &products,
                                                           uint32_t rows_each)
{
    return share_of(products, blockIdx.x, rows_each);
}

/* Stores the output of row `row` of a block's share and row x_row of x, if both exist. */
static __device__ inline void store_product(const struct products &products, const struct block_share &share,
                                            uint32_t row, uint32_t x_row, uint32_t n_x_rows, float sum)
{
    const struct device_matrix &matrix = products.matrices[share.product];
    row += share.row;
    if (row < matrix.n_rows && x_row < n_x_rows)
        products.outs[share.product][(size_t)x_row * products.out_strides[share.product] + row] =
            sum + (matrix.bias ? matrix.bias[row] : 0);
}

static inline uint32_t blocks_of(const struct products *products, uint32_t rows_each)
{
    uint32_t n = 0;
    for (uint32_t p = 0; p < products->n; p++)
        n += (products->matrices[p].n_rows + rows_each - 1) / rows_each;
    return n;
}

/* Collects the products of a launch. False: a format that layout.h does not have, or more columns than x. */
static inline bool products_collect(struct products *products, const struct device_product *given, uint32_t n,
                                    const struct device_activations *x)
{
    if (n > KERNELS_PRODUCTS)
        return false;
    for (products->n = 0; products->n < n; products->n++) {
        const struct device_product *product = &given[products->n];
        const struct layout *layout = layout_of(product->matrix->format);
        if (!layout || product->matrix->padded_columns > x->stride)
            return false;
        products->matrices[products->n] = *product->matrix;
        products->outs[products->n] = product->out;
        products->out_strides[products->n] = product->out_stride;
        products->row_bytes[products->n] =
            (uint32_t)layout_row_bytes(layout, 0, product->matrix->padded_columns);
    }
    return true;
}

/* Element i of 16 bytes of F32, F16 or BF16 weights. */
template <enum format F> static __device__ inline float float_weight(const struct simt_16 &words, uint32_t i)
{
    if (F == FORMAT_F32) {
        union {
            uint32_t bits;
            float value;
        } word = {words.words[i]};
        return word.value;
    }
    uint16_t bits = (uint16_t)(words.words[i / 2] >> 16 * (i % 2));
    return F == FORMAT_F16 ? simt_float(half_t{bits}) : simt_float(bf16_t{bits});
}

/* out = x · weights on tensor cores (tiles.cu), for any number of rows, in the way step->way. An output's
 * bits depend only on its two rows. */
int multiply_tiles(struct device_stream *queue, const struct products *products,
                   const struct device_activations *x, const struct multiply_step *step);

/* The same with wide tiles, some of them divided as `shares` says (stream_k.cu). */
int multiply_stream_k(struct device_stream *queue, const struct products *products,
                      const struct device_activations *x, uint32_t n_rows, const struct stream_k *shares,
                      const struct multiply_scratch *scratch);

#endif
