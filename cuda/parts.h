/* SPDX-License-Identifier: MIT */
#ifndef CUDA_PARTS_H
#define CUDA_PARTS_H

/* The parts of a backend, and how much of the device's memory each of them gets. */

#include "cuda/host/memory/copies.h"
#include "cuda/host/memory/pools.h"
#include "cuda/host/memory/states.h"
#include "cuda/host/step.h"
#include "engine/backend/backend.h"

/* The sizes to serve. */
struct sizes {
    uint32_t n_slots, n_context, max_rows;
    uint32_t n_blocks;      /* of the first group */
    uint32_t n_snapshots;   /* of states; 0: the model has none */
    uint32_t library_rows;  /* rows from which the library computes products; 0: it computes none */
    bool library_by_choice; /* only those for which that was measured to be faster */
    enum stream_k_rule shares;
};

struct backend {
    struct backend_config config;
    struct sizes sizes;
    struct device *device;
    struct pools pools;
    struct device_states states;
    struct device_weights weights;
    struct workspace workspace;
    struct device_slots slots;
    struct steps steps;
    struct copies copies;
    struct library_products large;
    struct pass pass;
    struct choices choices;             /* no launches: nothing was measured */
    size_t memory_bytes, weight_memory; /* of the device, without what is given back */
    size_t pinned_memory;               /* of the host, taken on opening */
    struct device_counts opened;        /* counts after opening: measurements, recordings, the gate */
    uint32_t large_from;                /* of the pass, while the library's memory is given back */
};

/* Decides how many slots, snapshots of states and KV blocks there are: as many as requested, or as fit. The
 * device must be open, and the other sizes set. 0; -ENOMEM, and err says what is needed and what would
 * fit. */
int parts_choose_sizes(struct backend *backend, struct error *err);

/* Allocates everything: weights, KV blocks, workspace, slots, steps. 0, -ENOMEM, or a fault of the device. */
int parts_take(struct backend *backend, struct error *err);

#endif
