/* SPDX-License-Identifier: MIT */
#ifndef CPU_MEMORY_STATES_H
#define CPU_MEMORY_STATES_H

/* The state that recurrent layers keep for each sequence: of fixed size, in float, one per slot.
 *
 * A state consists of the parts of its layers, one after the other. The part of a delta net:
 *
 *   tail  [n_taps − 1][queries, keys, values]   rows before the convolution, the oldest first
 *   heads [value heads][value_dim / 8][key_dim][8]   S, eight of its rows beside one another
 *
 * Lengths are rounded up to eight, with zeros as padding. A sequence begins with zeros. */

#include "common/error.h"
#include "cpu/memory/memory.h"
#include "engine/backend/backend.h"
#include "model/model.h"

/* Lengths of a delta net's vectors, rounded up to 8: for a head, and for all heads as in the convolution. */
struct delta_widths {
    uint32_t key_dim, value_dim;
    uint32_t queries, keys, values; /* of a row before the convolution */
    uint32_t row;                   /* all three together */
    size_t tail, head;              /* numbers of the tail, and of one head */
};

struct delta_widths delta_widths_of(const struct delta_net *net);

struct states {
    size_t n;         /* numbers of one state; 0: the model has no states */
    size_t *offsets;  /* [n_layers]: start of a layer's part */
    float *slots;     /* [n_slots][n] */
    float *snapshots; /* [n_snapshots][n] */
    uint32_t n_snapshots;
};

/* Bytes of one state. */
size_t states_bytes(const struct model *model);

/* Allocates the slots' states, and as many snapshots as the configuration requests or suggests. -ENOMEM names
 * the amount needed. */
int states_init(struct states *states, const struct backend_config *config, struct memory *memory,
                struct error *err);

/* An id that also differs for snapshots of different geometry or order; `kv` is that of the blocks. */
uint64_t states_layout(const struct states *states, uint64_t kv);

/* The state of a slot; NULL: the model has none. */
static inline float *states_of(const struct states *states, uint32_t slot)
{
    return states->n > 0 ? states->slots + slot * states->n : NULL;
}

static inline float *states_snapshot(const struct states *states, uint32_t snapshot)
{
    return states->snapshots + snapshot * states->n;
}

#endif
