/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_SAMPLING_TOP_P_H
#define ENGINE_SAMPLING_TOP_P_H

/* Finds approximately where top-p ends in a whole row, by a few passes over all logits, without sorting. */

#include <stdbool.h>
#include <stdint.h>

#define TOP_P_FEW 4096 /* processing this many ids one by one costs less than another pass over all */

struct top_p_row {
    const float *logits; /* [n] */
    const float *masses; /* [n] logits_masses */
    uint32_t n;
    float best, temperature; /* the largest logit, and the masses' temperature */
    uint64_t total;          /* of all masses */
};

/* Logits ≥ `least` and < `below`. One of these belongs to the id with which the masses, summed in sampling
 * order, reach the target. */
struct top_p_border {
    float least, below;  /* +∞: no upper bound */
    uint32_t n_above;    /* ids whose logit is ≥ `below`: all of them are kept */
    uint64_t mass_above; /* less than the target */
};

/* Finds a border with few ids, unless many have the same logit. False: the sum of all masses is less than the
 * target. */
bool top_p_find(const struct top_p_row *row, uint64_t target, struct top_p_border *ret_border);

#endif
