/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_CUDA_PTX_PRIMITIVES_H
#define TESTS_UNIT_CUDA_PTX_PRIMITIVES_H

/* Kernels that on_emulator.c queues on the emulated device. */

#include <string.h>

#include "cuda/kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Queues the kernel of this name in primitives.cu with one block of n_threads. -ENOENT: there is none. */
int launch_primitive(struct device_stream *stream, const char *name, uint32_t n_threads, const void *in,
                     void *out);

/* A launch, with its arguments as stored in memory. */
struct kept_launch {
    uint32_t grid[2], n_threads, shared_bytes, n_parameters;
    struct {
        uint8_t bytes[512];
        size_t n;
    } parameters[4];
};

/* Queues the product with the thin tile, for at most eight rows of x: multiply_thin<1>. */
int launch_thin(struct device_stream *stream, const struct device_product *product,
                const struct device_activations *x, uint32_t n_rows, struct kept_launch *ret_launch);

/* Queues attention over keys and values in f16, for at most 64 rows: attend<16, kv_f16>. */
int launch_attention(struct device_stream *stream, const struct attention_step *step,
                     const struct slots *slots, const struct step_row *rows, uint32_t n_rows,
                     struct kept_launch *ret_launch);

#ifdef __cplusplus
}

template <class T> static inline void keep(struct kept_launch *launch, const T &argument)
{
    auto &to = launch->parameters[launch->n_parameters++];
    static_assert(sizeof argument <= sizeof to.bytes, "an argument is too large");
    memcpy(to.bytes, &argument, sizeof argument);
    to.n = sizeof argument;
}
#endif

#endif
