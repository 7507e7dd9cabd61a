/* SPDX-License-Identifier: MIT */
/* See hyperparameters_ranking.h. Which row the head reads, and what becomes of its numbers, no file says: it
 * is the architecture's. Elsewhere a rank would be computed from a row that was trained for something else.
 */

#include "model/hyperparameters_ranking.h"

#include <errno.h>
#include <stdio.h>

static int count_labels(const struct gguf *gguf, const char *key, uint32_t *ret_n, struct error *err)
{
    const struct gguf_value *list = gguf_find(gguf, key);
    if (!list) {
        *ret_n = 1;
        return 0;
    }
    if (list->type != GGUF_ARRAY || list->array.type != GGUF_STRING)
        return error_set(err, -EINVAL, "hyperparameter %s: expected a list of texts", key);
    if (list->array.n < 1 || list->array.n > MODEL_MOST_LABELS)
        return error_set(err, -EINVAL, "hyperparameter %s has %llu labels; 1 to %d are possible", key,
                         (unsigned long long)list->array.n, MODEL_MOST_LABELS);
    *ret_n = (uint32_t)list->array.n;
    return 0;
}

int hyperparameters_read_ranking(const struct gguf *gguf, const struct architecture *architecture,
                                 struct model_params *params, struct error *err)
{
    char key[96];
    if (params->pooling > POOLING_RANK)
        return error_set(err, -EINVAL,
                         "hyperparameter %s.pooling_type is %u, which is not known (0 none, 1 mean, 2 cls, 3 "
                         "last and 4 rank are)",
                         architecture->name, (unsigned)params->pooling);
    if (params->pooling != POOLING_RANK)
        return 0;
    if (!architecture->ranks)
        return error_set(err, -EINVAL,
                         "hyperparameter %s.pooling_type is 4 (rank), which is not supported in a %s model",
                         architecture->name, architecture->name);
    snprintf(key, sizeof key, "%s." HYPERPARAMETERS_LABELS, architecture->name);
    int r = count_labels(gguf, key, &params->n_labels, err);
    params->rank_shares = params->n_labels > 1;
    return r;
}
