/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_RANKING_H
#define ENGINE_RANKING_H

/* The head of a model that ranks: from the final state of a pair's last row, which a backend gives as the
 * sums of a slot that embeds, to the scores of its labels.
 *
 * It is a few rows, so the engine computes them itself, in double and in the order of the numbers: equal
 * states give equal bits, whatever the device. */

#include <stdbool.h>
#include <stdint.h>

#include "model/model.h"

struct ranking { /* zeroed: the model does not rank */
    uint32_t n_labels, n_embd;
    bool shares;    /* scores are the softmax of what the head gives */
    float *weights; /* [n_labels][n_embd] */
    float *bias;    /* [n_labels], zeros if the head has none */
};

/* Copies the model's head, if it has one. 0 or -ENOMEM. */
int ranking_init(struct ranking *ranking, const struct model *model);
void ranking_deinit(struct ranking *ranking);

/* The scores of a final state, [n_embd] → [n_labels], rounded to float once. False if one is not finite. */
bool ranking_of_state(const struct ranking *ranking, const double *state, float *ret_scores);

#endif
