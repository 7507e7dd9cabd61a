/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CHOOSE_GROWTH_H
#define BROKER_CHOOSE_GROWTH_H

/* Reserves room in the journal as tokens are generated.
 *
 * A queued request has a few kilobytes of the journal. When it starts, and again while it runs, it gets
 * *credit*: the total number of ids it may generate, for which room is reserved. Its worker pauses it there,
 * with all frames safe, until it gets more. No answer is cut short.
 *
 * When the journal is full, the youngest requests wait. There is always room for everything the oldest
 * request may still generate and then, once that has ended, for everything any other request may. So one
 * request can always finish, and then frees its room. All but the oldest are also limited by their session's
 * share.
 *
 * An eighth of the journal is for queued requests, and no request may need more than three quarters of it. */

#include <stdbool.h>
#include <stdint.h>

#include "broker/books/journal.h"
#include "broker/books/ledger.h"
#include "broker/books/request.h"
#include "broker/choose/admission.h"
#include "broker/choose/worker.h"
#include "common/heap.h"

/* How many ids ahead credit is given, as far as a fraction of the free room allows. */
#define GROWTH_LEAST_IDS 64
#define GROWTH_MOST_IDS  8192

enum {
    GROWTH_E_FULL = 1, /* the journal is full */
    GROWTH_E_SHARE     /* its client or tenant has used its share */
};

struct growth {
    struct journal *journal;
    struct ledger *ledger;
    struct admission *admission;
    uint64_t order;          /* requests started so far; after a recovery, in order of admission */
    struct heap started;     /* running requests, the oldest first */
    struct heap needs;       /* the same, the one that may still need the most bytes first */
    struct request *waiting; /* requests that wait for credit: utlist, the oldest first */
    uint32_t n_waiting;      /* their number */
    uint32_t n_full;         /* of these, how many wait because the journal is full */
};

void growth_init(struct growth *growth, struct journal *journal, struct ledger *ledger,
                 struct admission *admission);
void growth_deinit(struct growth *growth);

/* Sets the journal's limit if no option does: enough for an answer to the end of the context in every slot of
 * these workers, at least JOURNAL_LIMIT_BYTES, at most `room`. It never falls. */
void growth_follow(struct growth *growth, const struct worker *workers, uint32_t n, uint64_t room);

/* Sets how many ids a request may generate, and the bytes of each. Call it before the request starts; `most`
 * is at most growth_most_ids. */
void growth_plan(struct request *request, uint64_t most, uint32_t token_bytes);

/* The maximum number of ids of `token_bytes` each that any request may make in this journal. */
uint64_t growth_most_ids(const struct journal *journal, uint32_t token_bytes);

/* Gives a request that leaves the queue its first credit; one that started before keeps its credit. 0;
 * -ENOMEM; a code above: it must stay in the queue, perhaps because others already wait for room. */
int growth_start(struct growth *growth, struct request *request);

/* Takes the first credit back: the request stays in the queue after all. */
void growth_withdraw(struct growth *growth, struct request *request);

/* Restores the credit of a request that an earlier broker had started; growth_plan comes first. 0 or -ENOMEM.
 */
int growth_restore(struct growth *growth, struct request *request, uint64_t credit);

/* Whether a running request has used so much of its credit that it has to ask for more. */
static inline bool growth_is_due(const struct request *request)
{
    return request->log.count >= request->growth.ask_at;
}

/* Asks for more credit: true if it rose. Otherwise it still has enough, or waits for growth_retry. */
bool growth_ask(struct growth *growth, struct request *request);

/* Asks again for the waiting requests, the oldest first, and calls back for each whose credit rose. */
void growth_retry(struct growth *growth, void (*credited)(void *arg, struct request *request), void *arg);

/* The request ends; its log must not be settled yet. Does nothing if it has not started. */
void growth_left(struct growth *growth, struct request *request);

#endif
