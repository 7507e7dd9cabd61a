/* SPDX-License-Identifier: MIT */
#ifndef CUDA_HOST_SLOTS_H
#define CUDA_HOST_SLOTS_H

/* Slots: their memory on the device, and what the host knows about them.
 *
 * The device advances a slot. The host follows when it reads results; until then it knows only bounds.
 * Opening or trimming a slot writes an image in a small ring of pinned memory, which is copied in stream
 * order: earlier steps see the old slot, later ones the new one. A snapshot is copied to its recurrent state
 * in the same way. */

#include "cuda/kernels/kernels.h"
#include "cuda/host/memory/memory.h"
#include "cuda/host/memory/states.h"
#include "engine/backend/backend.h"

#define SLOTS_MOST_LOGPROBS 32 /* of one sampled id */
#define SLOTS_IMAGES        8

struct device_slot {
    bool open;
    bool spoiled;    /* a step of it was abandoned: it can only be closed */
    bool astray;     /* a wrong draft took its state beyond its position: a trim must come first */
    bool by_history; /* its sampling depends on earlier ids: its drafts are not verified */
    bool repeats;    /* DRY applies to it */
    bool greedy;     /* its best id is sampled, and it wants no log probabilities */
    bool has_last; /* whether, when every flight is done and it has not ended, a sampled id is not yet fed */
    enum backend_end end; /* as read */
    uint32_t position;    /* as read */
    uint32_t most;        /* the most positions when every flight is done */
    uint32_t in_flight;   /* flights with sets of it, and those of them that sample */
    uint32_t sampling;
    uint32_t n_blocks; /* told */
    uint32_t n_logprobs;
    uint64_t checked; /* the step that last had a set of it */
};

struct slot_image {
    struct slot_state *state;
    int32_t *stop_ids;        /* [STATE_MOST_STOP_IDS] */
    struct slot_bias *biases; /* [STATE_MOST_BIASES] */
    struct token_use *uses;   /* [n_vocab] */
    int32_t *history;         /* [n_context] */
    struct slot_sequences *sequences;
    uint32_t *breakers; /* [⌈n_vocab / 32⌉] */
    bool queued;        /* a copy from it may still be in flight */
};

struct device_slots {
    struct device *device;
    const struct device_states *states;
    struct slots on_device;
    struct device_slot *slots; /* [n_slots] */
    struct slot_image images[SLOTS_IMAGES];
    uint32_t next_image;
};

struct slots_shape {
    uint32_t n_slots, n_context; /* ≥ 1 */
    uint32_t n_groups, n_vocab;
};

/* Takes or counts the slots' device memory. -ENOMEM: of the host. */
int device_slots_init(struct device_slots *slots, struct device_memory *memory,
                      const struct slots_shape *shape);
void device_slots_deinit(struct device_slots *slots);

/* Copies the ids that may ever be sampled, [⌈n_vocab / 32⌉], to the device. 0 or a fault. */
int device_slots_set_mask(struct device_slots *slots, const uint32_t *mask);

/* As backend_ops.slot_open, slot_close and trim; open and trim may give a fault of the device too. */
int device_slots_open(struct device_slots *slots, uint32_t slot, const struct backend_slot *params);
void device_slots_close(struct device_slots *slots, uint32_t slot);
int device_slots_trim(struct device_slots *slots, uint32_t slot, uint32_t position, uint32_t snapshot);

#endif
