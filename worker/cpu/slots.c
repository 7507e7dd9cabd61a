/* SPDX-License-Identifier: MIT */
/* Slots. A slot owns copies of all it was opened with, so that the engine's request may go first. */

#include "worker/cpu/slots.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int slot_init(struct slot *slot, const struct backend_slot *params, uint32_t table_size, uint32_t n_vocab)
{
    *slot = (struct slot){.params = *params, .table_size = table_size, .last_id = -1};
    bool penalty = params->sampling.repetition_penalty != 1.0f;
    slot->stop_ids = calloc(params->n_stop_ids + 1, sizeof *slot->stop_ids);
    slot->table = calloc(table_size, sizeof *slot->table);
    if (penalty)
        slot->counts = calloc(n_vocab, sizeof *slot->counts);
    if (!slot->stop_ids || !slot->table || (penalty && !slot->counts)) {
        slot_deinit(slot);
        return -ENOMEM;
    }
    if (params->n_stop_ids)
        memcpy(slot->stop_ids, params->stop_ids, params->n_stop_ids * sizeof *slot->stop_ids);
    slot->params.stop_ids = slot->stop_ids;
    slot->params.history = NULL;
    for (uint32_t i = 0; i < params->n_history; i++)
        slot_count(slot, n_vocab, params->history[i], 1);
    slot->open = true;
    return 0;
}

void slot_deinit(struct slot *slot)
{
    free(slot->stop_ids);
    free(slot->table);
    free(slot->counts);
    *slot = (struct slot){0};
}

void slot_count(struct slot *slot, uint32_t n_vocab, int32_t id, int by)
{
    if (!slot->counts || id < 0 || (uint32_t)id >= n_vocab)
        return;
    int count = slot->counts[id] + by;
    slot->counts[id] = (uint16_t)(count < 0 ? 0 : count > UINT16_MAX ? UINT16_MAX : count);
}

enum backend_end slot_accept(struct slot *slot, uint32_t n_vocab, int32_t id, uint32_t length)
{
    slot->last_id = id;
    slot_count(slot, n_vocab, id, 1);
    for (uint32_t i = 0; i < slot->params.n_stop_ids; i++)
        if (slot->stop_ids[i] == id)
            return BACKEND_END_STOP;
    return length >= slot->params.end_position ? BACKEND_END_LENGTH : BACKEND_RUNNING;
}
