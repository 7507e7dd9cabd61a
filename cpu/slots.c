/* SPDX-License-Identifier: MIT */
/* Slots. A slot owns copies of all it was opened with, so that the engine's request may go first. */

#include "cpu/slots.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int slot_init(struct slot *slot, const struct backend_slot *params, const struct slot_shape *shape,
              float *state, const float *from)
{
    const uint32_t n_vocab = shape->n_vocab;
    *slot = (struct slot){.params = *params,
                          .n_groups = shape->n_groups,
                          .table_size = shape->table_size,
                          .position = params->position,
                          .state = state,
                          .n_state = shape->n_state,
                          .last_id = -1};
    bool needs_uses = sampling_needs_uses(&params->sampling);
    bool needs_history = sampling_needs_history(&params->sampling);
    slot->stop_ids = calloc(params->n_stop_ids + 1, sizeof *slot->stop_ids);
    slot->tables[0] = calloc((size_t)shape->n_groups * shape->table_size, sizeof *slot->tables[0]);
    if (needs_uses)
        slot->uses = calloc(n_vocab, sizeof *slot->uses);
    if (needs_history) {
        slot->most_history = shape->table_size * BACKEND_BLOCK_TOKENS;
        if (slot->most_history < params->n_history)
            slot->most_history = params->n_history;
        slot->history = malloc(((size_t)slot->most_history + 1) * sizeof *slot->history);
    }
    if (params->embeds)
        slot->sums = calloc(shape->n_embd, sizeof *slot->sums);
    slot->params.sampling = (struct sampling){0};
    if (sampling_copy(&params->sampling, &slot->params.sampling) < 0 || !slot->stop_ids || !slot->tables[0] ||
        (needs_uses && !slot->uses) || (needs_history && !slot->history) || (params->embeds && !slot->sums)) {
        slot_deinit(slot);
        return -ENOMEM;
    }
    for (uint32_t g = 1; g < slot->n_groups; g++)
        slot->tables[g] = slot->tables[g - 1] + slot->table_size;
    if (params->n_stop_ids)
        memcpy(slot->stop_ids, params->stop_ids, params->n_stop_ids * sizeof *slot->stop_ids);
    slot->params.stop_ids = slot->stop_ids;
    slot->params.history = NULL;
    for (uint32_t i = 0; i < params->n_history; i++) {
        if (i >= params->n_prompt)
            slot_count(slot, n_vocab, params->history[i]);
        else if (slot->uses && params->history[i] >= 0 && (uint32_t)params->history[i] < n_vocab)
            slot->uses[params->history[i]].in_prompt = 1;
        if (slot->history && i < params->n_prompt)
            slot->history[slot->n_history++] = params->history[i];
    }
    if (state && from)
        memcpy(state, from, shape->n_state * sizeof *state);
    else if (state)
        memset(state, 0, shape->n_state * sizeof *state);
    slot->open = true;
    return 0;
}

void slot_deinit(struct slot *slot)
{
    free(slot->stop_ids);
    free(slot->tables[0]);
    free(slot->uses);
    free(slot->history);
    free(slot->sums);
    sampling_deinit(&slot->params.sampling);
    *slot = (struct slot){0};
}

void slot_count(struct slot *slot, uint32_t n_vocab, int32_t id)
{
    if (slot->uses && id >= 0 && (uint32_t)id < n_vocab)
        token_use_count(&slot->uses[id]);
    if (slot->history && slot->n_history < slot->most_history)
        slot->history[slot->n_history++] = id;
}

void slot_tell(struct slot *slot, const struct backend_blocks *blocks)
{
    for (uint32_t g = 0; g < slot->n_groups && blocks->n > 0; g++)
        memcpy(slot->tables[g] + slot->n_blocks, blocks[g].ids, blocks[g].n * sizeof *slot->tables[g]);
    slot->n_blocks += blocks->n;
}

void slot_accept(struct slot *slot, uint32_t n_vocab, int32_t id, uint32_t length)
{
    slot->last_id = id;
    slot_count(slot, n_vocab, id);
    if (length >= slot->params.end_position)
        slot->end = BACKEND_END_LENGTH;
    for (uint32_t i = 0; i < slot->params.n_stop_ids; i++)
        if (slot->stop_ids[i] == id)
            slot->end = BACKEND_END_STOP;
}

void slot_trim(struct slot *slot, uint32_t position)
{
    if (position > slot->position || slot->spoiled)
        return;
    uint32_t keep = backend_blocks_for(position);
    if (slot->state && position > 0 && position < slot->position) {
        slot->spoiled = true; /* nothing leads back to the state that it had there */
        return;
    }
    if (slot->state && position == 0)
        memset(slot->state, 0, slot->n_state * sizeof *slot->state);
    slot->position = position;
    slot->n_blocks = keep < slot->n_blocks ? keep : slot->n_blocks;
    slot->last_id = -1;
    slot->end = BACKEND_RUNNING;
}
