/* SPDX-License-Identifier: MIT */
#ifndef CUDA_CHECK_INSPECT_COMPARE_H
#define CUDA_CHECK_INSPECT_COMPARE_H

/* Functions common to all parts of an inspection: they copy rows to the host, and compare them. The tolerance
 * is one kernel's rounding, relative to the size of the terms that it sums. Results are those of
 * inspect_part. */

#include "cuda/check/inspect.h"

#define OFF_PRODUCT   2e-5
#define OFF_LARGE     1e-4 /* tensor cores truncate sums */
#define OFF_ROW       2e-4 /* norms, rotated heads, activations */
#define OFF_HALF      1e-3 /* values stored as f16 */
#define OFF_ATTENTION 2e-3 /* weights are f16 */

/* The place of a comparison, for verdicts: a kernel, and its tensor if it has one. */
struct inspect_site {
    const char *kernel;
    const struct model_tensor *tensor; /* NULL: none */
    uint32_t layer, row;               /* of the pass */
    double off;
};

/* ---- from the device ---- */

/* Copies the picked rows of an array: to[i] is row picked[i]. */
int inspect_bring_rows(struct inspection *look, const void *from, size_t row_bytes, void *to);
int inspect_bring_activations(struct inspection *look, const struct device_activations *from,
                              struct held *to);

/* ---- verdicts ---- */

bool inspect_agree(double found, double expected, double size, double off);

/* Sets the verdict that the two differ; returns 0 if `expected` is NaN, because then the model itself is
 * broken. */
int inspect_differ(struct inspection *look, const struct inspect_site *site, uint32_t column, double found,
                   double expected);

/* Compares columns of a row with the expected ones, relative to the largest of these. */
int inspect_compare(struct inspection *look, const struct inspect_site *site, const float *found,
                    const double *expected, uint32_t n);

/* Checks picked row i of activations: its values must be `expected`, [n_columns], and its quants must match
 * them. */
int inspect_activations(struct inspection *look, const char *kernel, uint32_t layer, uint32_t i,
                        const struct held *held, const double *expected, uint32_t n_columns);

/* Checks the norms of the picked rows of the stream, and holds them; without a vector rows stay as they
 * are. */
int inspect_norm(struct inspection *look, const char *kernel, uint32_t layer, const struct norm *norm,
                 const struct model_tensor *vector);

/* Checks a product's outputs for the picked rows, [INSPECTION_PICKED][stride]: a few of them, and all for
 * NaN. */
int inspect_product(struct inspection *look, const char *kernel, const struct model_tensor *matrix,
                    const struct held *x, const float *found, uint32_t stride);

/* The same for a layer's matrix, whose product the library may compute (library_products.h). */
int inspect_layer_product(struct inspection *look, const char *kernel, uint32_t layer, enum tensor_role role,
                          const struct held *x, const float *found, uint32_t stride);

#endif
