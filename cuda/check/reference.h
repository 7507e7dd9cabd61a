/* SPDX-License-Identifier: MIT */
#ifndef CUDA_CHECK_REFERENCE_H
#define CUDA_CHECK_REFERENCE_H

/* The reference for kernels, a number or a row at a time, in plain C from the file's weights: the gate
 * compares a device with it. Sums are in double, so any difference is the kernel's rounding or error. */

#include "model/model.h"

/* A row of activations as products read it (kernels.h): quants in the order of layout_quant_place. */
struct reference_row {
    const float *values;
    const int8_t *quants;
    const float *scales;
    bool bfloat16; /* the product uses values, which are rounded to bfloat16 like the weights */
};

/* Output `output` of a matrix, with its bias. *ret_size: the sum of its terms' magnitudes, to which the
 * tolerance is relative. `scratch`: a float for each column. */
double reference_product(const struct model_tensor *matrix, uint32_t output, const struct reference_row *x,
                         float *scratch, double *ret_size);

/* Writes n columns of a norm to ret_y; copies x if the model lacks the vector. ret_y may be x. */
void reference_norm(const struct norm *norm, const struct model_tensor *vector, const double *x, uint32_t n,
                    float *scratch, double *ret_y);

/* A row of a table of embeddings, as floats. */
void reference_row_of(const struct model_tensor *table, uint32_t row, float *ret_row);

double reference_activation(enum activation activation, double x);
/* The factor of a gate's activation. */
double reference_factor(enum activation activation, double up);

/* Rotates a head, [dim], at a position; `frequencies` are from rotary_frequencies. */
void reference_turn(const struct rotary *rotary, const double *frequencies, uint32_t position, double *head);

/* The scale of a layer's queries at a position. */
double reference_query_scale(const struct layer_traits *traits, uint32_t position);

/* Attention of one query over keys and values of positions 0 … position, each [dim], `stride` floats apart.
 * The query is rotated and scaled; `sink` is its head's, NULL: none. Returns the largest magnitude of the
 * values that it sees. */
struct reference_attention {
    const float *keys, *values;
    uint32_t dim, stride, position, window;
    float cap;
    const float *sink;
};
double reference_attend(const struct reference_attention *attention, const float *query, double *ret_out);

#endif
