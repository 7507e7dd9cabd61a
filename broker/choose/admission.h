/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CHOOSE_ADMISSION_H
#define BROKER_CHOOSE_ADMISSION_H

/* Decides whether a request may enter, and when to try again if not.
 *
 * The queue is bounded in requests, in bytes of what was asked, and in bytes that waiting requests have of
 * the journal, which is an eighth of it; of each a session has a share of its own (share.h), and so it has of
 * the journal while its requests grow (growth.h). A client's tenants divide its share. A tenant that stands
 * alone (struct party) has a share like a session's, but all tenants of one session together leave an eighth
 * to others. Beyond, a client is told `overloaded` with what is full, and a time to wait that is estimated
 * from how fast requests end. */

#include <stddef.h>
#include <stdint.h>

#include "broker/books/journal.h"
#include "broker/books/request.h"
#include "broker/choose/share.h"
#include "common/error.h"

#define ADMISSION_MAX_QUEUED       8192
#define ADMISSION_MAX_QUEUED_BYTES ((size_t)64 << 20)

#define ADMISSION_JOURNAL_PART 8 /* of the journal: for requests that have not started */

struct admission { /* zeroed but for the limits, the secret and the shares' seed: idle */
    size_t max_queued, max_queued_bytes;
    size_t max_client_requests; /* of one client, that have not ended; 0: no bound */
    struct shares shares;
    uint64_t secret; /* from which seeds are drawn */
    uint64_t draws;
    size_t queued, queued_bytes;
    uint64_t waiting_bytes; /* of the journal: what queued requests have there that have not started */
    double ended_per_s;     /* over the last few seconds */
    uint64_t window_ns;     /* start of the second being counted */
    uint32_t window_ended;
};

/* Whether the party may queue a message of `bytes`: PROTO_OK, or PROTO_OVERLOADED with what is full. */
enum proto_error admission_check_queue(const struct admission *admission, const struct party *party,
                                       size_t bytes, struct error *reason);

/* The same of the journal, of which it takes `bytes` at first; PROTO_TOO_LONG when its ids could take `most`
 * bytes in the end, and no request may have as many. */
enum proto_error admission_check_journal(const struct admission *admission, const struct party *party,
                                         uint64_t bytes, uint64_t most, const struct journal *journal,
                                         struct error *reason);

/* Whether a running request may have `bytes` more of the journal, of which so many are `free`, by the share
 * of its client and its tenant. */
bool admission_may_grow(const struct admission *admission, const struct request *request, uint64_t bytes,
                        uint64_t free);

/* The room that is reserved for it changes by so many bytes. Before it does. */
void admission_grows(struct request *request, int64_t bytes);

/* Counts the request, whose room in the journal is reserved, for its client and tenant: until
 * admission_ended, or admission_withdrawn if it was never queued. 0 or -ENOMEM. */
int admission_entered(struct admission *admission, struct request *request);
void admission_withdrawn(struct admission *admission, struct request *request);

/* It entered or left the queue. */
void admission_queued(struct admission *admission, struct request *request);
void admission_dequeued(struct admission *admission, struct request *request);

/* Bytes of a message of which not all have come: they count as queued, for the party, until they are let go.
 * The caller has checked that there is room. 0 or -ENOMEM. _let_go takes one that holds nothing. */
struct admission_hold {
    size_t bytes;
    struct share *share, *tenant_share; /* the second: NULL without a tenant */
};
int admission_hold(struct admission *admission, const struct party *party, size_t bytes,
                   struct admission_hold *ret_hold);
void admission_let_go(struct admission *admission, struct admission_hold *hold);

/* It ended, and its log is not settled yet; feeds the estimate. */
void admission_ended(struct admission *admission, struct request *request, uint64_t now);

/* When to try again: the time in which an eighth of the queue drains, 100 ms to 10 s; a second while nothing
 * has ended. */
uint32_t admission_retry_ms(const struct admission *admission, uint64_t now);

/* A seed for requests without one; never the same twice. */
uint64_t admission_draw_seed(struct admission *admission);

/* The fixed part of a request: fills in from what was asked all that the broker itself needs (seed, limits,
 * deadline, policy, cost), on the clock of its arrival. `seed` is taken when the client chose none. */
void admission_fix(struct request *request, const struct generation *generation, uint64_t seed, uint64_t now);

#endif
