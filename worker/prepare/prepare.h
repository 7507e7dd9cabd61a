/* SPDX-License-Identifier: MIT */
#ifndef WORKER_PREPARE_PREPARE_H
#define WORKER_PREPARE_PREPARE_H

/* Turns prompts into ids, and texts of grammars into grammars, on separate threads, so that a large text
 * delays no step.
 *
 *     preparer_add ──▶ waiting ──a lane──▶ being prepared ──▶ done ──preparer_deliver──▶ its `done` is called
 *
 * Higher priorities, −1,000 to 1,000, go first; each step counts as 30 s of waiting. Within a priority,
 * prompts go in order of arrival, except that a prompt yields to shorter ones that arrive before its own
 * preparation could have ended: a short prompt does not wait behind many long ones, and no long one waits
 * forever.
 *
 * The preparer belongs to the thread that created it, which makes all calls. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/bytes.h"
#include "common/error.h"
#include "worker/prepare/grammars.h"
#include "worker/prepare/prompt.h"
#include "worker/prepare/words.h"

#define PREPARE_MOST       1024                /* waiting at once */
#define PREPARE_MOST_BYTES ((size_t)128 << 20) /* their texts together: 32 of the largest messages */

struct preparer;

/* The preparation of one prompt: embedded in the owner's request, initially zero. While it waits or is being
 * prepared, it and the prompt must not move or change. */
struct preparation {
    const struct prompt *prompt;
    struct bytes tools; /* of a conversation: what the model may call, JSON; "" = nothing */
    /* For questions: the ids of a text (prompt_encode_text; `bare`: without BOS and EOS), the text of ids
     * (prompt_decode), or the ids of a conversation (prompt_encode_chat), with its text if `written`. */
    bool question, bare, written;
    const struct grammar_text *grammar; /* NULL: none */
    const struct generation *wording;   /* its texts for sampling become ids; NULL: none */
    bool dry;                           /* words_with_dry of `wording` */
    int32_t priority;
    /* Called by preparer_deliver; never after preparer_remove returned true. It may free the owner. */
    void (*done)(void *arg, struct preparation *preparation);
    void *arg;
    /* outcome */
    bool ok;
    struct ids ids;         /* if ok; the owner frees them */
    struct buffer text;     /* the same, for a question that asks for a text */
    struct grammar *made;   /* its grammar, or NULL; a reference that the owner frees */
    struct words words;     /* of `wording`; the owner deinits them */
    bool inside;            /* for a prompt with a budget for thoughts: it ends inside a thought */
    struct refusal refusal; /* if not ok */

    struct preparation *next, *prev; /* for the preparer only, like everything below */
    uint64_t expected_ns;
    size_t bytes;
};

/* Starts a thread, and with `brief_lane` a second one for brief texts, which then need not wait for a long
 * one in progress. They have the caller's CPU affinity. The encoder must outlive the preparer and not change.
 * 0 or -errno with a reason. */
int preparer_new(const struct prompt_encoder *encoder, bool brief_lane, struct preparer **ret_preparer,
                 struct error *err);

/* Ends the threads after their current work. False if that takes longer than `ms`: threads and preparer are
 * left as they are, and the process can only exit. Takes NULL. Undelivered preparations go back to their
 * owners. */
bool preparer_free(struct preparer *preparer, uint32_t ms);

/* Queues it. False: one of the limits above is reached. */
bool preparer_add(struct preparer *preparer, struct preparation *preparation);

/* Cancels a preparation. True: it belongs to its owner again; false: it is being prepared, and `done` will be
 * called. */
bool preparer_remove(struct preparer *preparer, struct preparation *preparation);

/* Calls `done` of finished preparations, in order; returns their number. */
uint32_t preparer_deliver(struct preparer *preparer);

/* A descriptor to poll: readable while there is something to deliver. */
int preparer_fd(const struct preparer *preparer);

/* The number of preparations that were added and not yet delivered or taken back. */
uint32_t preparer_pending(const struct preparer *preparer);

/* When the longest-running preparation in progress began (clock_ns); 0: none. */
uint64_t preparer_busy_since(struct preparer *preparer);

#endif
