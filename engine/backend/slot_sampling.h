/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_BACKEND_SLOT_SAMPLING_H
#define ENGINE_BACKEND_SLOT_SAMPLING_H

/* What sampling on the host needs to know about a slot: its parameters, the ids so far, and where it ends. */

#include "engine/backend/backend.h"

struct slot_sampling {
    struct backend_slot params; /* sampling and stop_ids are copies; history is below */
    int32_t *stop_ids;          /* [params.n_stop_ids] */
    struct token_use *uses;     /* [n_vocab]; NULL while no penalty uses them */
    int32_t *history;           /* [n_history ≤ most_history] if sampling uses it, or NULL */
    uint32_t n_history, most_history;
    uint32_t n_vocab;
};

/* Copies what it needs from `params`, for a sequence of at most most_ids. 0; -ENOMEM, and it stays closed. */
int slot_sampling_init(struct slot_sampling *sampling, const struct backend_slot *params, uint32_t n_vocab,
                       uint32_t most_ids);
/* Does nothing for a closed one, which is all zeros. */
void slot_sampling_deinit(struct slot_sampling *sampling);

/* Counts an id of the output for penalties, and stores it; ignores ids outside the vocabulary. */
void slot_sampling_count(struct slot_sampling *sampling, int32_t id);

/* Samples the id at index `position` of the sequence. `mask`, `allowed`: as in struct sampler_row. -1: none.
 */
int32_t slot_sampling_sample(const struct slot_sampling *sampling, struct sampler *sampler,
                             const float *logits, uint64_t position, const uint32_t *mask,
                             const uint32_t *allowed);

/* Records that `id` was sampled as the last of `length` ids: counts and stores it, and returns whether the
 * sequence ends. */
enum backend_end slot_sampling_accept(struct slot_sampling *sampling, int32_t id, uint32_t length);

#endif
