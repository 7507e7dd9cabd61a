/* SPDX-License-Identifier: MIT */
#ifndef CPU_SLOTS_H
#define CPU_SLOTS_H

/* Sequences in the backend: block tables, sampler state, and stop conditions. */

#include "engine/backend/backend.h"
#include "engine/backend/slot_sampling.h"

struct slot {
    bool open;
    bool spoiled; /* a step with it was abandoned: it can only be closed */
    struct slot_sampling sampling;
    uint32_t *tables[BACKEND_MOST_GROUPS]; /* [n_groups]: [table_size], n_blocks of them in use */
    uint32_t n_groups, table_size, n_blocks;
    uint32_t position;    /* ids whose keys and values are computed */
    int32_t last_id;      /* sampled and not yet fed; −1: none */
    enum backend_end end; /* how the sequence ended */
    double *sums;         /* [n_embd] of final states, if it embeds; else NULL */
    float *state;         /* of recurrent layers (states.h), zeroed when it opens; NULL: the model has none */
    size_t n_state;       /* numbers of that */
    bool astray;          /* a wrong draft took the state beyond the position: a trim must come first */
    uint64_t checked;     /* the last step with a set of it */
};

/* Common to all slots of a backend. */
struct slot_shape {
    uint32_t n_groups, table_size, n_vocab, n_embd;
    size_t n_state; /* numbers of a state; 0: none */
};

/* Opens a slot with the given memory for its state, [n_state], which becomes a copy of `from`, or zeros if
 * that is NULL. 0 or -ENOMEM. slot_deinit closes it; closing a closed slot does nothing. */
int slot_init(struct slot *slot, const struct backend_slot *params, const struct slot_shape *shape,
              float *state, const float *from);
void slot_deinit(struct slot *slot);

/* Appends blocks to the table of each group, which must have room. */
void slot_tell(struct slot *slot, const struct backend_blocks *blocks);

/* Records that `id` was sampled as the last of `length` ids: counts and stores it, and notes whether the
 * sequence ends. */
void slot_accept(struct slot *slot, int32_t id, uint32_t length);

/* As backend_ops.trim; `from` is the snapshot, NULL: none. */
void slot_trim(struct slot *slot, uint32_t position, const float *from);

#endif
