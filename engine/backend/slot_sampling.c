/* SPDX-License-Identifier: MIT */
/* It owns copies of all it was opened with, so that the engine's request may go first. */

#include "engine/backend/slot_sampling.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void take_history(struct slot_sampling *sampling, const struct backend_slot *params)
{
    for (uint32_t i = 0; i < params->n_history; i++) {
        const int32_t id = params->history[i];
        if (i >= params->n_prompt)
            slot_sampling_count(sampling, id);
        else if (sampling->uses && id >= 0 && (uint32_t)id < sampling->n_vocab)
            sampling->uses[id].in_prompt = 1;
        if (sampling->history && i < params->n_prompt)
            sampling->history[sampling->n_history++] = id;
    }
}

int slot_sampling_init(struct slot_sampling *sampling, const struct backend_slot *params, uint32_t n_vocab,
                       uint32_t most_ids)
{
    const bool needs_uses = sampling_needs_uses(&params->sampling);
    const bool needs_history = sampling_needs_history(&params->sampling);
    *sampling = (struct slot_sampling){.params = *params, .n_vocab = n_vocab};
    sampling->stop_ids = calloc(params->n_stop_ids + 1, sizeof *sampling->stop_ids);
    if (needs_uses)
        sampling->uses = calloc(n_vocab, sizeof *sampling->uses);
    if (needs_history) {
        sampling->most_history = most_ids < params->n_history ? params->n_history : most_ids;
        sampling->history = malloc(((size_t)sampling->most_history + 1) * sizeof *sampling->history);
    }
    sampling->params.sampling = (struct sampling){0};
    if (sampling_copy(&params->sampling, &sampling->params.sampling) < 0 || !sampling->stop_ids ||
        (needs_uses && !sampling->uses) || (needs_history && !sampling->history)) {
        slot_sampling_deinit(sampling);
        return -ENOMEM;
    }
    if (params->n_stop_ids)
        memcpy(sampling->stop_ids, params->stop_ids, params->n_stop_ids * sizeof *sampling->stop_ids);
    sampling->params.stop_ids = sampling->stop_ids;
    sampling->params.history = NULL;
    take_history(sampling, params);
    return 0;
}

void slot_sampling_deinit(struct slot_sampling *sampling)
{
    free(sampling->stop_ids);
    free(sampling->uses);
    free(sampling->history);
    sampling_deinit(&sampling->params.sampling);
    *sampling = (struct slot_sampling){0};
}

void slot_sampling_count(struct slot_sampling *sampling, int32_t id)
{
    if (sampling->uses && id >= 0 && (uint32_t)id < sampling->n_vocab)
        token_use_count(&sampling->uses[id]);
    if (sampling->history && sampling->n_history < sampling->most_history)
        sampling->history[sampling->n_history++] = id;
}

int32_t slot_sampling_sample(const struct slot_sampling *sampling, struct sampler *sampler,
                             const float *logits, uint64_t position, const uint32_t *mask,
                             const uint32_t *allowed)
{
    const bool too_early = position < sampling->params.stops_from;
    const struct sampler_row row = {.logits = logits,
                                    .position = position,
                                    .barred = sampling->stop_ids,
                                    .n_barred = too_early ? sampling->params.n_stop_ids : 0,
                                    .uses = sampling->uses,
                                    .history = sampling->history,
                                    .n_history = sampling->n_history,
                                    .n_prompt = sampling->params.n_prompt,
                                    .mask = mask,
                                    .allowed = allowed};
    return sampler_sample(sampler, &sampling->params.sampling, &row);
}

enum backend_end slot_sampling_accept(struct slot_sampling *sampling, int32_t id, uint32_t length)
{
    slot_sampling_count(sampling, id);
    for (uint32_t i = 0; i < sampling->params.n_stop_ids; i++)
        if (sampling->stop_ids[i] == id)
            return BACKEND_END_STOP;
    return length >= sampling->params.end_position ? BACKEND_END_LENGTH : BACKEND_RUNNING;
}
