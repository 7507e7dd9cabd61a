/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_CPU_MEMORY_TAKE_MATRIX_H
#define TESTS_UNIT_CPU_MEMORY_TAKE_MATRIX_H

/* Makes a separate matrix, with its own memory and bias, ready to be packed. */

#include <check.h>

#include "cpu/memory/matrix.h"

static inline void take_matrix(struct matrix *matrix, struct memory *memory, const struct model_tensor *from)
{
    struct placement counted = {0}, placement = {0};
    void *base;
    ck_assert_int_eq(matrix_describe(matrix, from, NULL), 0);
    matrix_place(matrix, from, &counted);
    ck_assert_int_eq(memory_take(memory, counted.size, &base), 0);
    placement.base = base;
    matrix_place(matrix, from, &placement);
    matrix_copy_bias(matrix, from);
}

#endif
