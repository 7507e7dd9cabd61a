/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_CUDA_KERNELS_INPUTS_H
#define TESTS_UNIT_CUDA_KERNELS_INPUTS_H

/* Rows of activations for tests of products. */

#include "cuda/kernels/kernels.h"
#include "cuda/kernels/layout.h"
#include "tests/unit/cuda/kernels/on_device.h"

/* Activations as floats on the host, as floats and quants on the device, and the values of the quants. */
struct inputs {
    struct device_activations x;
    float *values, *rounded; /* [n_rows][stride] */
};

static inline struct inputs make_inputs(uint32_t n_columns, uint32_t n_rows,
                                        void (*fill)(float *row, uint32_t i, uint32_t n_columns))
{
    struct inputs inputs = {.x.stride = layout_padded(n_columns)};
    size_t stride = inputs.x.stride, n = n_rows * stride;
    inputs.values = calloc(n, sizeof(float));
    for (uint32_t i = 0; i < n_rows; i++)
        fill(inputs.values + i * stride, i, n_columns);
    inputs.x.values = on_device(inputs.values, n * sizeof(float));
    inputs.x.quants = on_device(NULL, n);
    inputs.x.scales = on_device(NULL, n / 32 * sizeof(float));
    inputs.x.sums = on_device(NULL, n / 32 * sizeof(float));
    ck_assert_int_eq(kernels_quantize(queue, &inputs.x, n_columns, n_rows), 0);
    const int8_t *quants = from_device(inputs.x.quants, n);
    const float *scales = from_device(inputs.x.scales, n / 32 * sizeof(float));
    inputs.rounded = calloc(n, sizeof(float));
    for (size_t i = 0; i < n; i++)
        inputs.rounded[i] =
            scales[i / 32] * (float)quants[i / stride * stride + layout_quant_place((uint32_t)(i % stride))];
    return inputs;
}

static inline void free_inputs(struct inputs *inputs)
{
    free(inputs->values);
    free(inputs->rounded);
}

/* The same rows from `first` on. */
static inline struct device_activations inputs_from(const struct inputs *inputs, uint32_t first)
{
    const size_t at = (size_t)first * inputs->x.stride;
    return (struct device_activations){.values = inputs->x.values + at,
                                       .quants = inputs->x.quants + at,
                                       .scales = inputs->x.scales + at / 32,
                                       .sums = inputs->x.sums + at / 32,
                                       .stride = inputs->x.stride};
}

#endif
