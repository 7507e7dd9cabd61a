/* SPDX-License-Identifier: MIT */
#ifndef CUDA_CHECK_INSPECT_COMPARE_H
#define CUDA_CHECK_INSPECT_COMPARE_H

/* What every part of an inspection uses: bringing rows to the host, and comparing them. The tolerance is one
 * kernel's rounding, relative to the size of the terms that it sums. Results are those of inspect_part. */

#include "cuda/check/inspect.h"

#define OFF_PRODUCT   2e-5
#define OFF_LARGE     1e-4 /* tensor cores cut off what they add */
#define OFF_ROW       2e-4 /* norms, turned heads, activations */
#define OFF_HALF      1e-3 /* what is stored as f16 */
#define OFF_ATTENTION 2e-3 /* weights are f16 */

/* What is compared: a kernel's work, of a tensor where it has one. */
struct inspect_site {
    const char *kernel;
    const struct model_tensor *tensor; /* NULL: none */
    uint32_t layer, row;               /* of the pass */
    double off;
};

/* ---- from the device ---- */

/* The picked rows of an array: to[i] is row picked[i]. */
int inspect_bring_rows(struct inspection *look, const void *from, size_t row_bytes, void *to);
int inspect_bring_activations(struct inspection *look, const struct device_activations *from,
                              struct held *to);

/* ---- verdicts ---- */

bool inspect_agree(double found, double expected, double size, double off);

/* Says that they do not agree; 0 where `expected` is NaN: the model itself is broken. */
int inspect_differ(struct inspection *look, const struct inspect_site *site, uint32_t column, double found,
                   double expected);

/* Columns of a row with what they should be, measured by the largest. */
int inspect_compare(struct inspection *look, const struct inspect_site *site, const float *found,
                    const double *expected, uint32_t n);

/* Picked row i of activations: its values should be `expected`, [n_columns], and its quants those. */
int inspect_activations(struct inspection *look, const char *kernel, uint32_t layer, uint32_t i,
                        const struct held *held, const double *expected, uint32_t n_columns);

/* A product's outputs for the picked rows, [INSPECTION_PICKED][stride]: a few, and any NaN. */
int inspect_product(struct inspection *look, const char *kernel, const struct model_tensor *matrix,
                    const struct held *x, const float *found, uint32_t stride);

/* The same of a layer's matrix, whose product may be the library's (library_products.h). */
int inspect_layer_product(struct inspection *look, const char *kernel, uint32_t layer, enum tensor_role role,
                          const struct held *x, const float *found, uint32_t stride);

#endif
