/* SPDX-License-Identifier: MIT */
#ifndef COMMON_SYSTEM_SPARSE_H
#define COMMON_SYSTEM_SPARSE_H

/* What is made for the most that there can be, and of which little may be used. */

#include <stddef.h>

/* Zeros, n times `size` bytes. Large ones are a mapping, whose pages come with the first touch, also where
 * malloc() fills what it gives (MALLOC_PERTURB_). Small ones come from the heap, where sanitizers know their
 * ends. NULL: there is not enough memory. */
void *sparse_new(size_t n, size_t size);

/* Frees what was made with the same n and size; returns NULL. */
void *sparse_free(void *array, size_t n, size_t size);

#endif
