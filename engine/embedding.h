/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_EMBEDDING_H
#define ENGINE_EMBEDDING_H

/* The last step of an embedding: from the sums of a backend to the vector that the client gets. */

#include <stdbool.h>
#include <stdint.h>

/* The vector of length one (Euclidean norm) in the direction of the sums, and so of their mean: how many rows
 * were summed makes no difference to it. In double, in the order of the numbers; rounded to float once. False
 * where there is no direction: all zero, or something that is not finite. */
bool embedding_of_sums(const double *sums, uint32_t n, float *ret_embedding);

#endif
