/* SPDX-License-Identifier: MIT */
#ifndef MODEL_FREQUENCIES_H
#define MODEL_FREQUENCIES_H

/* Frequencies of rotary pairs, for every backend's tables of angles. */

#include <stdbool.h>

#include "model/model.h"

/* Radians per position for each pair, [dims / 2], from base, scaling and the file's own factors (may be
 * NULL). */
void rotary_frequencies(const struct rotary *rotary, const float *factors, double *ret_frequencies);

/* The factors for a model's frequencies, [rope_dims / 2], for sequences of up to n_context positions; NULL:
 * none. */
const float *rotary_factors(const struct model *model, uint32_t n_context);

/* Whether heads of both turn by the same angles. */
bool rotary_is_alike(const struct rotary *a, const struct rotary *b);

#endif
