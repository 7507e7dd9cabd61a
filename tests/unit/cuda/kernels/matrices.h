/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_CUDA_KERNELS_MATRICES_H
#define TESTS_UNIT_CUDA_KERNELS_MATRICES_H

/* Matrices for tests of products. */

#include "cuda/kernels/kernels.h"
#include "cuda/kernels/layout.h"
#include "tests/unit/cuda/kernels/on_device.h"
#include "tests/unit/cpu/random_weights.h"

/* A matrix on the device, and as floats on the host. */
struct weights {
    struct device_matrix matrix;
    float *floats, *bias; /* [n_rows][n_columns], [n_rows] or NULL */
};

static inline struct weights make_weights(enum format format, uint32_t n_rows, uint32_t n_columns,
                                          bool with_bias)
{
    const struct layout *layout = layout_of(format);
    size_t bytes = layout_bytes(layout, n_rows, n_columns);
    uint8_t *file = random_row(format, (size_t)n_rows * n_columns), *packed = aligned_alloc(256, bytes);
    uint8_t *planes[LAYOUT_PLANES];
    layout_place(layout, n_rows, n_columns, packed, (void **)planes);
    layout_pack(format, file, n_rows, n_columns, planes);
    struct weights weights = {.matrix = {.format = format,
                                         .n_rows = n_rows,
                                         .n_columns = n_columns,
                                         .padded_columns = layout_padded(n_columns)}};
    layout_place(layout, n_rows, n_columns, on_device(packed, bytes), (void **)weights.matrix.planes);
    weights.floats = malloc((size_t)n_rows * n_columns * sizeof(float));
    for (uint32_t i = 0; i < n_rows; i++)
        format_traits(format)->to_float(file + i * format_bytes(format, n_columns),
                                        weights.floats + (size_t)i * n_columns, n_columns);
    if (with_bias) {
        weights.bias = malloc(n_rows * sizeof(float));
        for (uint32_t i = 0; i < n_rows; i++)
            weights.bias[i] = random_float();
        weights.matrix.bias = on_device(weights.bias, n_rows * sizeof(float));
    }
    free(file);
    free(packed);
    return weights;
}

static inline void free_weights(struct weights *weights)
{
    free(weights->floats);
    free(weights->bias);
}

static inline void fill_random(float *row, uint32_t i, uint32_t n_columns)
{
    for (uint32_t k = 0; k < n_columns; k++)
        row[k] = random_float() * (float)(1 + i % 3);
}

#endif
