/* SPDX-License-Identifier: MIT */
#ifndef MODEL_HYPERPARAMETERS_RANKING_H
#define MODEL_HYPERPARAMETERS_RANKING_H

/* How embeddings are pooled, and the labels of a model that ranks pairs of texts instead. */

#include "gguf/gguf.h"
#include "model/architecture.h"

#define HYPERPARAMETERS_LABELS "classifier.output_labels"

/* Checks params->pooling, which was read, and completes n_labels and rank_shares: as many labels as the
 * file's list has, or one without a list. Scores of several labels are their softmax; a single score is used
 * as it is. 0, or -EINVAL with a reason: an unknown pooling, an architecture without such a head, a list that
 * is not of texts, or is empty or longer than MODEL_MOST_LABELS. */
int hyperparameters_read_ranking(const struct gguf *gguf, const struct architecture *architecture,
                                 struct model_params *params, struct error *err);

#endif
