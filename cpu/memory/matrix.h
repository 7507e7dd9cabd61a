/* SPDX-License-Identifier: MIT */
#ifndef CPU_MEMORY_MATRIX_H
#define CPU_MEMORY_MATRIX_H

/* Weight matrices in the kernels' layout, and products divided among the threads. */

#include "common/error.h"
#include "cpu/kernels/kernels.h"
#include "cpu/memory/memory.h"
#include "cpu/kernels/packing.h"
#include "cpu/memory/placement.h"
#include "common/system/threads.h"
#include "model/tensors.h"

struct matrix {
    const struct gguf_tensor *tensor; /* source, */
    uint32_t first_row, run, apart;   /* and its rows, as in struct model_tensor */
    const struct packing *packing;
    uint32_t n_rows, n_columns; /* outputs, inputs */
    uint32_t count;             /* of such matrices: experts; else 1 */
    uint32_t n_groups;          /* of eight rows, in one matrix; the last is padded with zero rows */
    size_t group_bytes;
    uint8_t *groups; /* [count][n_groups][group_bytes] */
    float *bias;     /* [count][n_groups · 8], or NULL */
};

/* Describes the tensor of a role as a matrix, without memory. -EINVAL names a format that cannot be
 * multiplied. */
int matrix_describe(struct matrix *matrix, const struct model_tensor *from, struct error *err);

/* Allocates its memory, and that of its bias if `from` has one. */
void matrix_place(struct matrix *matrix, const struct model_tensor *from, struct placement *placement);

/* Fills in the bias, if there is one. */
void matrix_copy_bias(struct matrix *matrix, const struct model_tensor *from);

/* The range of the file's rows from which groups first … end − 1 are packed: *ret_n rows of the tensor from
 * *ret_first on. It may include rows of other roles, but none of this matrix's other groups. */
void matrix_rows_of(const struct matrix *matrix, uint32_t first, uint32_t end, uint64_t *ret_first,
                    uint64_t *ret_n);

/* Packs groups first … end − 1 of the count · n_groups. Threads may pack different groups concurrently.
 * `zeros` is a row's worth of zero bytes, tensor->size ÷ rows. */
void matrix_pack(struct matrix *matrix, uint32_t first, uint32_t end, const uint8_t *zeros);

/* Bytes of one row in the file, and where a matrix's rows begin in it. */
size_t matrix_row_bytes(const struct gguf_tensor *tensor);
const uint8_t *matrix_rows(const struct matrix *matrix);

/* One row of the first matrix as floats, with the same values as in the file. */
void matrix_read_row(const struct matrix *matrix, uint32_t row, float *ret_row);

/* Rows first … first + n − 1 of x times one of a matrix's count, to the same rows of out. */
struct product {
    const struct matrix *matrix;
    float *out;        /* [rows][out_stride] */
    size_t out_stride; /* at least n_groups · 8 */
    uint32_t n, first;
    uint32_t index; /* of that matrix */
};

/* Settings of all products of a backend. */
struct multiplier {
    const struct kernels *kernels;
    struct threads *threads;
    bool float_activations;
    float **scratch; /* [threads]: with float_activations, 8 · the most columns of a matrix */
};

/* Computes the products of x. Called inside a run by every member, with its index as `thread`. The caller
 * puts barriers before and after. */
void multiplier_share(const struct multiplier *multiplier, const struct product *products,
                      uint32_t n_products, const struct activations *x, uint32_t thread);

#endif
