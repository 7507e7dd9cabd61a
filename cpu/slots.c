/* SPDX-License-Identifier: MIT */
/* Slots: what a sequence has beside its sampling. */

#include "cpu/slots.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Where there is one, to a snapshot, or with NULL to zeros. */
static void set_state(struct slot *slot, const float *from)
{
    if (slot->state && from)
        memcpy(slot->state, from, slot->n_state * sizeof *slot->state);
    else if (slot->state)
        memset(slot->state, 0, slot->n_state * sizeof *slot->state);
    slot->astray = false;
}

int slot_init(struct slot *slot, const struct backend_slot *params, const struct slot_shape *shape,
              float *state, const float *from)
{
    *slot = (struct slot){.n_groups = shape->n_groups,
                          .table_size = shape->table_size,
                          .position = params->position,
                          .state = state,
                          .n_state = shape->n_state,
                          .last_id = -1};
    const int r =
        slot_sampling_init(&slot->sampling, params, shape->n_vocab, shape->table_size * BACKEND_BLOCK_TOKENS);
    slot->tables[0] = calloc((size_t)shape->n_groups * shape->table_size, sizeof *slot->tables[0]);
    if (params->embeds)
        slot->sums = calloc(shape->n_embd, sizeof *slot->sums);
    if (r < 0 || !slot->tables[0] || (params->embeds && !slot->sums)) {
        slot_deinit(slot);
        return -ENOMEM;
    }
    for (uint32_t g = 1; g < slot->n_groups; g++)
        slot->tables[g] = slot->tables[g - 1] + slot->table_size;
    set_state(slot, from);
    slot->open = true;
    return 0;
}

void slot_deinit(struct slot *slot)
{
    free(slot->tables[0]);
    free(slot->sums);
    slot_sampling_deinit(&slot->sampling);
    *slot = (struct slot){0};
}

void slot_tell(struct slot *slot, const struct backend_blocks *blocks)
{
    for (uint32_t g = 0; g < slot->n_groups && blocks->n > 0; g++)
        memcpy(slot->tables[g] + slot->n_blocks, blocks[g].ids, blocks[g].n * sizeof *slot->tables[g]);
    slot->n_blocks += blocks->n;
}

void slot_accept(struct slot *slot, int32_t id, uint32_t length)
{
    slot->last_id = id;
    slot->end = slot_sampling_accept(&slot->sampling, id, length);
}

void slot_trim(struct slot *slot, uint32_t position, const float *from)
{
    if (position > slot->position || slot->spoiled)
        return;
    uint32_t keep = backend_blocks_for(position);
    const bool moves = position < slot->position || slot->astray;
    if (slot->state && moves && position > 0 && !from) {
        slot->spoiled = true; /* nothing leads back to the state that it had there */
        return;
    }
    if (moves)
        set_state(slot, position > 0 ? from : NULL);
    slot->position = position;
    slot->n_blocks = keep < slot->n_blocks ? keep : slot->n_blocks;
    slot->last_id = -1;
    slot->end = BACKEND_RUNNING;
}
