/* SPDX-License-Identifier: MIT */
#ifndef WORKER_PREPARE_PREPARE_H
#define WORKER_PREPARE_PREPARE_H

/* Turns prompts into ids, and texts of grammars into grammars, on threads of its own, so that a large text
 * delays no step.
 *
 *     preparer_add ──▶ waiting ──a lane──▶ being prepared ──▶ done ──preparer_deliver──▶ its `done` is called
 *
 * Higher priorities, −1,000 to 1,000, go first; each step is worth 30 s of waiting. Within a priority the
 * order is that of arrival, except that a text yields to those that arrive before its own preparation could
 * have ended: a short prompt does not wait for a row of long ones, and no long one waits for ever.
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

/* The preparation of one prompt: embedded in the owner's request, and zeroed at first. While it waits or is
 * being prepared, it and the prompt must not move or change. */
struct preparation {
    const struct prompt *prompt;
    struct bytes tools; /* of a conversation: what the model may call, JSON; "" = nothing */
    /* For questions: ids of a text (prompt_encode_text), `bare` or not, text of ids (prompt_decode), or ids
     * of a conversation, and its text if that is `written` (prompt_encode_chat). */
    bool question, bare, written;
    const struct grammar_text *grammar; /* NULL: none */
    const struct generation *wording;   /* whose texts for sampling become ids; NULL: none */
    bool dry;                           /* words_with_dry of it */
    int32_t priority;
    /* Called by preparer_deliver; never after preparer_remove returned true. It may free the owner. */
    void (*done)(void *arg, struct preparation *preparation);
    void *arg;
    /* outcome */
    bool ok;
    struct ids ids;         /* of an ok one; the owner's to free */
    struct buffer text;     /* the same, of a question for a text */
    struct grammar *made;   /* its grammar, or NULL; a reference that the owner frees */
    struct words words;     /* of `wording`; the owner's to deinit */
    bool inside;            /* of a prompt with a budget for thoughts: it leaves the model inside one */
    struct refusal refusal; /* of another */

    struct preparation *next, *prev; /* the preparer's own, as all below */
    uint64_t expected_ns;
    size_t bytes;
};

/* Starts a thread, and with `brief_lane` a second one for brief texts, which then need not wait for a long
 * one in progress. They have the caller's CPU affinity. The encoder outlives the preparer and does not
 * change. 0 or -errno with a reason. */
int preparer_new(const struct prompt_encoder *encoder, bool brief_lane, struct preparer **ret_preparer,
                 struct error *err);

/* Ends the threads after their current work. False if that takes longer than `ms`: thread and preparer are
 * left as they are, and only the end of the process is safe. Takes NULL. Undelivered preparations remain
 * their owners'. */
bool preparer_free(struct preparer *preparer, uint32_t ms);

/* Queues it. False: the bounds above are reached. */
bool preparer_add(struct preparer *preparer, struct preparation *preparation);

/* Cancels a preparation. True: it is its owner's again; false: it is being prepared, and `done` will be
 * called. */
bool preparer_remove(struct preparer *preparer, struct preparation *preparation);

/* Calls `done` of finished preparations, in order; returns their number. */
uint32_t preparer_deliver(struct preparer *preparer);

/* A descriptor to poll: readable while there is something to deliver. */
int preparer_fd(const struct preparer *preparer);

/* Those added and not yet delivered or taken back. */
uint32_t preparer_pending(const struct preparer *preparer);

/* When the longest preparation in progress began (clock_ns); 0 if there is none. */
uint64_t preparer_busy_since(struct preparer *preparer);

#endif
