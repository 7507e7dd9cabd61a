/* SPDX-License-Identifier: MIT */
#ifndef CUDA_HOST_MEMORY_STATES_H
#define CUDA_HOST_MEMORY_STATES_H

/* The states that recurrent layers keep of sequences, in device memory: one for each slot, and snapshots,
 * which are copies of states (their contents: kernels.h). Copies are made in the order of the stream. */

#include "cuda/host/memory/memory.h"
#include "cuda/kernels/kernels.h"
#include "model/model.h"

struct device_states {
    struct state_pool pool;
    size_t *offsets; /* [n_layers]: where a layer's part begins */
};

/* Numbers of one state; 0: the model has no recurrent layers. */
size_t device_states_numbers(const struct model *model);

/* Takes or counts the device's memory. -ENOMEM: of the host. */
int device_states_init(struct device_states *states, struct device_memory *memory, const struct model *model,
                       uint32_t n_slots, uint32_t n_snapshots);
void device_states_deinit(struct device_states *states);

/* Zeroes a slot's state, copies it to a snapshot, or restores it from one. 0 or a fault. Does nothing if
 * there are no states. */
int device_states_clear(const struct device_states *states, struct device_stream *stream, uint32_t slot);
int device_states_keep(const struct device_states *states, struct device_stream *stream, uint32_t slot,
                       uint32_t snapshot);
int device_states_restore(const struct device_states *states, struct device_stream *stream, uint32_t slot,
                          uint32_t snapshot);

/* A number that differs for blocks and snapshots of a different geometry; `kv` is that for blocks alone. */
uint64_t device_states_layout(const struct device_states *states, const struct model *model, uint64_t kv);

#endif
