/* SPDX-License-Identifier: MIT */
#ifndef CUDA_HOST_LIBRARY_PRODUCTS_H
#define CUDA_HOST_LIBRARY_PRODUCTS_H

/* Large products by NVIDIA's cuBLASLt, if requested (backend_cuda_config.library_rows): products of a layer's
 * matrices in steps with many rows, some of them a prompt's.
 *
 * Each matrix in turn is unpacked to bfloat16 in one shared panel, or read in place if the file has bfloat16;
 * rows become bfloat16 in another panel; the library sums in float. Quern's own products read packed weights,
 * and rows in 8 bits (in float if the weights are floats), so a row gets different bits here. F32 matrices
 * keep the own products, because a file with 32 bits per weight wants more precision than bfloat16 has; so do
 * routed experts, their router, and the head.
 *
 * For quantized files the library is closer to the exact product, for 16-bit files further away. NMSE of the
 * worst of 100 rows on a tiny model, Quern's and the library's: Q8_0 6.3e-4 and 2.3e-4, Q4_K_M 7.4e-4 and
 * 1.9e-4, F16 1.6e-7 and 1.7e-4, BF16 1.3e-7 and 6.8e-5. Quern's products of five rows or more give the same
 * bits for any number of rows; the library's depend on the bucket, and so on the size of the step.
 *
 * Rows are padded with zeros to the smallest *bucket* that holds them, a multiple of 128. When the backend
 * opens, the library's heuristics choose an algorithm once for each shape and bucket; the choice is logged
 * and run once, so its code is on the device. The panels and the library's 32 MiB are part of the workspace:
 * nothing is allocated afterwards, unless they were given back (cuda/give_back.h). */

#include "cuda/device/cublas_lt.h"
#include "cuda/host/weights.h"
#include "cuda/host/memory/workspace.h"

#define LIBRARY_PRODUCTS_SHAPES 16

/* Products of up to a fixed number of rows. */
struct library_bucket {
    cublas_lt_layout x, out;
    struct cublas_lt_choice choice;
};

/* A shape of products: that of a matrix, and the distances between rows of its input and output. */
struct library_shape {
    uint32_t n_outputs, n_columns; /* columns padded to 256 */
    uint32_t x_stride, out_stride;
    bool has_bias;
    bool refused; /* the library has no algorithm for it: Quern's own kernels are used */
    cublas_lt_desc desc;
    cublas_lt_layout weights;
    struct library_bucket *buckets; /* [n_buckets] */
};

struct library_products {
    struct cublas_lt calls;
    cublas_lt_handle handle; /* NULL: there is no library */
    uint32_t first_rows;     /* of the first bucket */
    uint32_t most_rows;      /* of the last */
    uint32_t n_buckets;
    struct library_shape shapes[LIBRARY_PRODUCTS_SHAPES];
    uint32_t n_shapes;
    size_t weight_bytes, x_bytes;
    /* These are NULL while they are given back; then the library computes no products. */
    uint16_t *weights; /* of the largest matrix */
    uint16_t *x;       /* [most_rows][the widest stride] */
    void *scratch;     /* the library's own */
};

/* Opens the newest version of the library that starts on the current device. 0; -ENOENT, -ENODEV: there is
 * none, or none starts, with the reason of each; Quern's own products are then used. */
int library_products_open(struct library_products *large, struct error *err);
void library_products_close(struct library_products *large); /* nothing may be queued any more */

/* Whether the model has a matrix that the library may multiply; if not, the library is not opened. */
bool library_products_wants(const struct model *model);

/* Takes or counts its memory, for steps of least_rows to most_rows rows. */
void library_products_take(struct library_products *large, struct device_memory *memory,
                           const struct model *model, uint32_t least_rows, uint32_t most_rows);

/* Frees that memory, which nothing queued uses, and takes it again, zeroed. Both return the number of device
 * bytes freed or taken; taking returns 0 if the device lacks them. */
size_t library_products_give_back(struct library_products *large, struct device *device);
size_t library_products_take_again(struct library_products *large, struct device *device);

/* Call it once the weights are loaded: chooses an algorithm for each shape and bucket and runs each, on the
 * workspace's memory. Reports each shape to `say`. 0, or a fault that names the call and the shape. */
int library_products_plan(struct library_products *large, struct device *device,
                          const struct device_weights *weights, const struct model *model,
                          const struct workspace *workspace, const struct backend_config *config);

/* Whether the library computes this product of a layer, with rows x_stride apart. The others are left to
 * kernels_multiply: F32, shapes that the library refused, and shapes for which there was no room. */
bool library_products_takes(const struct library_products *large, const struct device_product *product,
                            uint32_t x_stride);

bool library_products_takes_any(const struct library_products *large);

/* As kernels_multiply, for up to most_rows rows; outs must have room for the rows of the bucket. */
int library_products_multiply(const struct library_products *large, struct device_stream *queue,
                              const struct device_product *products, uint32_t n_products,
                              const struct device_activations *x, const struct multiply_step *step);

#endif
