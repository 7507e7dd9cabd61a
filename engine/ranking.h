/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_RANKING_H
#define ENGINE_RANKING_H

/* The head of a model that ranks: it maps the final state of a pair's last row, which a backend returns as
 * the sums of a slot that embeds, to the scores of the labels.
 *
 * It has only a few rows, so the engine computes it, in double and in the order of the numbers: equal states
 * give equal bits on any device. */

#include <stdbool.h>
#include <stdint.h>

#include "model/model.h"

struct ranking { /* zeroed: the model does not rank */
    uint32_t n_labels, n_embd;
    bool shares;    /* scores are the softmax of the head's outputs */
    float *weights; /* [n_labels][n_embd] */
    float *bias;    /* [n_labels], zeros if the head has none */
};

/* Copies the model's head, if it has one. 0 or -ENOMEM. */
int ranking_init(struct ranking *ranking, const struct model *model);
void ranking_deinit(struct ranking *ranking);

/* The scores of a final state, [n_embd] → [n_labels], rounded to float once. False if a score is not
 * finite. */
bool ranking_of_state(const struct ranking *ranking, const double *state, float *ret_scores);

#endif
