/* SPDX-License-Identifier: MIT */
/* See ranking.h. The weights are copied because the model's files may be gone once the backend is open. */

#include "engine/ranking.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "model/rank_head.h"

int ranking_init(struct ranking *ranking, const struct model *model)
{
    const struct model_params *params = &model->params;
    *ranking = (struct ranking){0};
    if (!model->tensors[TENSOR_RANK_HEAD].weight)
        return 0;
    ranking->n_labels = params->n_labels;
    ranking->n_embd = params->n_embd;
    ranking->shares = params->rank_shares;
    ranking->weights = calloc((size_t)params->n_labels * params->n_embd, sizeof *ranking->weights);
    ranking->bias = calloc(params->n_labels, sizeof *ranking->bias);
    if (!ranking->weights || !ranking->bias) {
        ranking_deinit(ranking);
        return -ENOMEM;
    }
    rank_head_read(model, ranking->weights, ranking->bias);
    return 0;
}

void ranking_deinit(struct ranking *ranking)
{
    free(ranking->weights);
    free(ranking->bias);
    *ranking = (struct ranking){0};
}

/* In place; exact to the last bits however large the numbers are. */
static void share(double *scores, uint32_t n)
{
    double most = scores[0], sum = 0;
    for (uint32_t i = 1; i < n; i++)
        most = scores[i] > most ? scores[i] : most;
    for (uint32_t i = 0; i < n; i++)
        sum += scores[i] = exp(scores[i] - most);
    for (uint32_t i = 0; i < n; i++)
        scores[i] /= sum;
}

bool ranking_of_state(const struct ranking *ranking, const double *state, float *ret_scores)
{
    double scores[MODEL_MOST_LABELS];
    for (uint32_t i = 0; i < ranking->n_labels; i++) {
        const float *row = ranking->weights + (size_t)i * ranking->n_embd;
        scores[i] = (double)ranking->bias[i];
        for (uint32_t j = 0; j < ranking->n_embd; j++)
            scores[i] += (double)row[j] * state[j];
        if (!isfinite((float)scores[i]))
            return false;
    }
    if (ranking->shares)
        share(scores, ranking->n_labels);
    for (uint32_t i = 0; i < ranking->n_labels; i++)
        ret_scores[i] = (float)scores[i];
    return true;
}
