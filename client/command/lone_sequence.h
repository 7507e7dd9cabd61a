/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_LONE_SEQUENCE_H
#define CLIENT_COMMAND_LONE_SEQUENCE_H

/* A single sequence on a backend, without an engine: for verbs and tests that examine logits or speed. */

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "engine/backend/backends.h"

/* Opens the model at `path` and finds the device of that name. 0 or -errno with a reason. */
int lone_sequence_open_model(const char *path, const char *device, struct model **ret_model,
                             struct backend_choice *ret_backend, struct error *err);

struct lone_sequence;

struct lone_sequence_config {
    const struct model *model; /* must outlive it */
    struct backend_choice backend;
    uint32_t n_context; /* most ids of the sequence */
    uint32_t chunk;     /* most ids of one step */
    uint32_t n_threads; /* 0: all cores */
    bool float_activations, portable, profile;
    enum backend_kv_type kv_type;
    uint32_t library_rows; /* as in backend_cuda_config; the backend's messages go to stderr */
    void (*loaded)(void *arg, uint64_t done, uint64_t total); /* as in backend_config, or NULL */
    void *loaded_arg;
};

/* If "auto" chose a device that cannot be opened, uses the CPU, and prints a line on stderr. */
int lone_sequence_new(const struct lone_sequence_config *config, struct lone_sequence **ret_sequence,
                      struct error *err);
struct lone_sequence *lone_sequence_free(struct lone_sequence *sequence);

/* Appends n ids to the sequence, in steps of up to `chunk`. `logits` gets the last id's [n_vocab], or with
 * `all` every id's [n][n_vocab]; NULL: none. -errno with a reason. */
int lone_sequence_feed(struct lone_sequence *sequence, const int32_t *ids, uint32_t n, bool all,
                       float *logits, struct error *err);

/* Appends n > 0 ids, in the same steps, and returns the greedily sampled next one in `*ret_id`, as a server
 * does with a prompt. */
int lone_sequence_prefill(struct lone_sequence *sequence, const int32_t *ids, uint32_t n, int32_t *ret_id,
                          struct error *err);

/* Appends `*id` and replaces it by the greedily sampled next id: a step of decoding. */
int lone_sequence_decode(struct lone_sequence *sequence, int32_t *id, struct error *err);

/* Cuts the sequence to its first `position` ids. In a model with states `position` is 0, or the length after
 * the last lone_sequence_feed without logits. */
void lone_sequence_rewind(struct lone_sequence *sequence, uint32_t position);

/* As backend_ops.profile; 0 rows if it was not requested. */
uint32_t lone_sequence_profile(struct lone_sequence *sequence, const struct backend_kernel **ret_kernels);

/* Whether it is on the CPU because the device that "auto" chose could not be opened. */
bool lone_sequence_fell_back(const struct lone_sequence *sequence);

void lone_sequence_info(const struct lone_sequence *sequence, struct backend_info *ret_info);

#endif
