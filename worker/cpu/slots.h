/* SPDX-License-Identifier: MIT */
#ifndef WORKER_CPU_SLOTS_H
#define WORKER_CPU_SLOTS_H

/* Sequences as the backend sees them: block table, sampler state, and what ends them. */

#include "worker/engine/backend.h"

struct slot {
    bool open;
    struct backend_slot params; /* stop_ids are the slot's own; history is not kept */
    int32_t *stop_ids;          /* [params.n_stop_ids] */
    uint16_t *counts;           /* [n_vocab] of prompt and output; NULL while the penalty is off */
    uint32_t *table;            /* [table_size], n_blocks of them in use */
    uint32_t table_size, n_blocks;
    int32_t last_id; /* sampled last; −1 before */
};

/* 0 or -ENOMEM. slot_deinit leaves it closed; closing a closed slot does nothing. */
int slot_init(struct slot *slot, const struct backend_slot *params, uint32_t table_size, uint32_t n_vocab);
void slot_deinit(struct slot *slot);

/* Counts an id for the penalty, or takes that back. Ids outside the vocabulary count nothing. */
void slot_count(struct slot *slot, uint32_t n_vocab, int32_t id, int by);

/* The sequence, now of `length` ids, ends in `id`: is that its end? Remembers the id. */
enum backend_end slot_accept(struct slot *slot, uint32_t n_vocab, int32_t id, uint32_t length);

#endif
