/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_DIRECT_H
#define CLIENT_COMMAND_DIRECT_H

/* One sequence on a backend, without an engine: for verbs and tests that look at logits or speed. */

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "worker/engine/backend.h"

/* Opens the model at `path` and finds the device of that name. 0 or -errno with a reason. */
int direct_open(const char *path, const char *device, struct model **ret_model,
                const struct backend_ops **ret_backend, struct error *err);

struct direct;

struct direct_config {
    const struct model *model; /* outlives it */
    const struct backend_ops *backend;
    uint32_t n_context; /* most ids of the sequence */
    uint32_t chunk;     /* most ids of one step */
    uint32_t n_threads; /* 0: all cores */
    bool float_activations, portable;
};

int direct_new(const struct direct_config *config, struct direct **ret_direct, struct error *err);
struct direct *direct_free(struct direct *direct);

/* Appends n ids to the sequence, in steps of up to `chunk`. `logits` gets the last id's [n_vocab], or with
 * `all` every id's [n][n_vocab]; NULL: none. -errno with a reason. */
int direct_feed(struct direct *direct, const int32_t *ids, uint32_t n, bool all, float *logits,
                struct error *err);

/* Appends the id that `*id` names and puts the greedily sampled next one there: a step of decoding. */
int direct_decode(struct direct *direct, int32_t *id, struct error *err);

/* Cuts the sequence to its first `position` ids. */
void direct_rewind(struct direct *direct, uint32_t position);

void direct_info(const struct direct *direct, struct backend_info *ret_info);

#endif
