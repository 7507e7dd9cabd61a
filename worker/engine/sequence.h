/* SPDX-License-Identifier: MIT */
#ifndef WORKER_ENGINE_SEQUENCE_H
#define WORKER_ENGINE_SEQUENCE_H

/* One request inside the engine: its ids, its text, and how far the backend has been asked to go.
 *
 * Three counts order its life: `computed` ≤ `n_planned`, and `ids.len` ≤ `n_planned`. computed: positions
 * submitted to the backend. n_planned: ids there will be when every submitted step is done. ids.len: ids the
 * host has read. The fields are the engine's and the scheduler's; functions here touch no other module. */

#include <stdbool.h>
#include <stdint.h>

#include "common/bytes.h"
#include "worker/engine/engine.h"
#include "worker/engine/text.h"
#include "worker/model/tokenizer.h"

#include <uthash.h>

struct sequence {
    /* what was asked */
    uint64_t tag;
    struct sampling sampling;
    struct ids stop_ids; /* the model's and the request's */
    uint32_t n_logprobs;
    uint32_t n_prompt;
    uint32_t end_position; /* n_prompt + max_tokens */
    int32_t priority;
    uint64_t deadline_ns; /* 0 = none */
    uint64_t arrival;     /* grows with each request */

    /* what it made */
    struct ids ids; /* prompt, then output */
    struct text text;
    uint64_t submitted_ns, first_ns, last_ns;

    /* where it stands */
    bool running;       /* holds a slot; else it waits */
    bool cancelled;     /* the owner wants it gone */
    bool preempted;     /* gives its slot back when no step of it is in flight */
    bool ended;         /* its last event is out; lives on only until its steps are done */
    uint32_t slot;      /* when running */
    uint32_t in_flight; /* submitted steps that have not been read */
    uint32_t n_prefill; /* positions below it are fed from ids, those above from the slot's last sample */
    uint32_t computed, n_planned;
    uint32_t n_blocks;
    uint32_t *blocks; /* [⌈end_position / 32⌉] room */

    struct sequence *prev, *next; /* in the waiting list */
    UT_hash_handle hh;            /* by tag, among those alive */
};

/* Copies the request. 0 or -ENOMEM. */
int sequence_new(const struct engine_request *request, struct ids_view end_ids, uint64_t arrival,
                 uint64_t now, struct sequence **ret_sequence);
struct sequence *sequence_free(struct sequence *sequence);

/* Order of admission: priority, then the earlier deadline, then arrival. */
bool sequence_goes_before(const struct sequence *a, const struct sequence *b);

/* Order of seniority: priority, then arrival. It never changes, so the most senior always finishes. */
bool sequence_is_senior(const struct sequence *a, const struct sequence *b);

/* Takes the id that the backend sampled and how it judged it; appends its text to `out`, and at an end the
 * text that was withheld. 0 or -ENOMEM. */
int sequence_accept(struct sequence *sequence, const struct tokenizer *tokenizer, int32_t id,
                    enum backend_end verdict, struct buffer *out, enum engine_end *ret_end);

#endif
