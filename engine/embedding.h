/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_EMBEDDING_H
#define ENGINE_EMBEDDING_H

/* The last step of an embedding: from a backend's sums to the client's vector. */

#include <stdbool.h>
#include <stdint.h>

/* The vector of length one (Euclidean norm) in the direction of the sums, which is also that of their mean,
 * so the number of summed rows makes no difference. Computed in double, in the order of the numbers, and
 * rounded to float once. False if there is no direction: all sums are zero, or one is not finite. */
bool embedding_of_sums(const double *sums, uint32_t n, float *ret_embedding);

#endif
