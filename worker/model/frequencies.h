/* SPDX-License-Identifier: MIT */
#ifndef WORKER_MODEL_FREQUENCIES_H
#define WORKER_MODEL_FREQUENCIES_H

/* How fast the pairs of a rotary description turn: what every backend's tables of angles begin with. */

#include <stdbool.h>

#include "worker/model/description.h"

/* Radians a position of each pair, [dims / 2]: base, linear scaling and the file's own factors (may be NULL).
 */
void rotary_frequencies(const struct rotary *rotary, const float *factors, double *ret_frequencies);

/* Do heads of the two turn by the same angles? */
bool rotary_is_alike(const struct rotary *a, const struct rotary *b);

#endif
