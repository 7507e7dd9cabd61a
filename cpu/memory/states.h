/* SPDX-License-Identifier: MIT */
#ifndef CPU_MEMORY_STATES_H
#define CPU_MEMORY_STATES_H

/* What recurrent layers keep of each sequence: one size whatever its length, in float, a slot's own.
 *
 * A state is the parts of its layers, one after the other, and of a delta net
 *
 *   tail  [n_taps − 1][queries, keys, values]   rows before the convolution, the oldest first
 *   heads [value heads][value_dim / 8][key_dim][8]   S, eight of its rows beside one another
 *
 * Lengths are rounded up to eight, and zeros stand where that adds something. A sequence begins with zeros.
 */

#include "common/error.h"
#include "cpu/memory/memory.h"
#include "engine/backend/backend.h"
#include "model/model.h"

/* Lengths of a delta net's vectors, rounded up to 8: of a head, and of all heads as the convolution sees
 * them. */
struct delta_widths {
    uint32_t key_dim, value_dim;
    uint32_t queries, keys, values; /* of a row before the convolution */
    uint32_t row;                   /* all three together */
    size_t tail, head;              /* numbers of the tail, and of one head */
};

struct delta_widths delta_widths_of(const struct delta_net *net);

struct states {
    size_t n;         /* numbers of one state; 0: the model has none */
    size_t *offsets;  /* [n_layers]: where a layer's part begins */
    float *slots;     /* [n_slots][n] */
    float *snapshots; /* [n_snapshots][n] */
    uint32_t n_snapshots;
};

/* Bytes of one state. */
size_t states_bytes(const struct model *model);

/* Takes the states of the slots, and as many snapshots as the configuration asks for, or suggests. -ENOMEM
 * names what would have been needed. */
int states_init(struct states *states, const struct backend_config *config, struct memory *memory,
                struct error *err);

/* Tells blocks and snapshots of another geometry or order apart, `kv` being what does so for blocks. */
uint64_t states_layout(const struct states *states, uint64_t kv);

/* The state of a slot; NULL where the model has none. */
static inline float *states_of(const struct states *states, uint32_t slot)
{
    return states->n > 0 ? states->slots + slot * states->n : NULL;
}

static inline float *states_snapshot(const struct states *states, uint32_t snapshot)
{
    return states->snapshots + snapshot * states->n;
}

#endif
