/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_EMBEDDING_H
#define ENGINE_EMBEDDING_H

/* The last step of an embedding: from what a backend summed to the vector that is told. */

#include <stdbool.h>
#include <stdint.h>

/* The vector of length one (Euclidean norm) in the direction of the sums, and so of their mean: how many rows
 * were summed makes no difference to it. In double, in the order of the numbers; rounded to float once. False
 * where there is no direction: all zero, or something that is not finite. */
bool embedding_of_sums(const double *sums, uint32_t n, float *ret_embedding);

#endif
