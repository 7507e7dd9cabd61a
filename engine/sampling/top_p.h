/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_SAMPLING_TOP_P_H
#define ENGINE_SAMPLING_TOP_P_H

/* About where top-p ends in a whole row, by a few passes over all logits and without sorting. */

#include <stdbool.h>
#include <stdint.h>

#define TOP_P_FEW 4096 /* ids that one by one cost less than another pass over all */

struct top_p_row {
    const float *logits; /* [n] */
    const float *masses; /* [n] logits_masses */
    uint32_t n;
    float best, temperature; /* the largest logit, and what masses were made with */
    uint64_t total;          /* of all masses */
};

/* Logits from `least` to below `below`: the id with which the masses, summed in the order of the contract,
 * reach the target has one of these. */
struct top_p_border {
    float least, below;  /* +∞: none is above */
    uint32_t n_above;    /* ids whose logit is `below` or more: all of them are kept */
    uint64_t mass_above; /* less than the target */
};

/* A border of few ids, unless many have the same logit. False: even all masses are less than the target. */
bool top_p_find(const struct top_p_row *row, uint64_t target, struct top_p_border *ret_border);

#endif
