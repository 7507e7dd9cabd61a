/* SPDX-License-Identifier: MIT */
#ifndef MODEL_FREQUENCIES_H
#define MODEL_FREQUENCIES_H

/* Frequencies of the pairs of a rotary description, for every backend's tables of angles. */

#include <stdbool.h>

#include "model/model.h"

/* Radians a position of each pair, [dims / 2]: base, scaling and the file's own factors (may be NULL). */
void rotary_frequencies(const struct rotary *rotary, const float *factors, double *ret_frequencies);

/* The factors of a model's frequencies, [rope_dims / 2], for sequences of up to n_context positions; NULL if
 * it has none. */
const float *rotary_factors(const struct model *model, uint32_t n_context);

/* Do heads of the two turn by the same angles? */
bool rotary_is_alike(const struct rotary *a, const struct rotary *b);

#endif
