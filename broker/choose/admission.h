/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CHOOSE_ADMISSION_H
#define BROKER_CHOOSE_ADMISSION_H

/* Decides whether a request may enter, and if not, when to try again.
 *
 * The queue is bounded in requests, in bytes of their messages, and in bytes of the journal reserved for
 * waiting requests (an eighth of it). A session has a share of each (share.h), and of the journal while its
 * requests grow (growth.h). A client's tenants divide its share. A tenant that stands alone (struct party)
 * has a share like a session's, but all tenants of one session together leave an eighth to others. Beyond its
 * share a client gets `overloaded`, with the limit reached and a retry time estimated from how fast requests
 * end. */

#include <stddef.h>
#include <stdint.h>

#include "broker/books/journal.h"
#include "broker/books/request.h"
#include "broker/choose/share.h"
#include "common/error.h"

#define ADMISSION_MAX_QUEUED       8192
#define ADMISSION_MAX_QUEUED_BYTES ((size_t)64 << 20)

#define ADMISSION_JOURNAL_PART 8 /* of the journal: for requests that have not started */

struct admission { /* zeroed except for the limits, the secret and the shares' seed: idle */
    size_t max_queued, max_queued_bytes;
    size_t max_client_requests; /* unfinished ones of one client; 0: no limit */
    struct shares shares;
    uint64_t secret; /* for drawing seeds */
    uint64_t draws;
    size_t queued, queued_bytes;
    uint64_t waiting_bytes; /* of the journal, reserved for queued requests that have not started */
    double ended_per_s;     /* over the last few seconds */
    uint64_t window_ns;     /* start of the second being counted */
    uint32_t window_ended;
};

/* Whether the party may queue a message of `bytes`: PROTO_OK, or PROTO_OVERLOADED with the limit reached. */
enum proto_error admission_check_queue(const struct admission *admission, const struct party *party,
                                       size_t bytes, struct error *reason);

/* The same for the journal: the request takes `bytes` of it at first. PROTO_TOO_LONG: its ids could take up
 * to `most` bytes, more than any request may have. */
enum proto_error admission_check_journal(const struct admission *admission, const struct party *party,
                                         uint64_t bytes, uint64_t most, const struct journal *journal,
                                         struct error *reason);

/* Whether the shares of its client and its tenant allow a running request `bytes` more of the journal, which
 * has `free` bytes left. */
bool admission_may_grow(const struct admission *admission, const struct request *request, uint64_t bytes,
                        uint64_t free);

/* Counts a change of the request's reservation by this many bytes, which the caller is about to make. */
void admission_grows(struct request *request, int64_t bytes);

/* Counts a request, whose room in the journal is already reserved, for its client and tenant: until
 * admission_ended, or admission_withdrawn if it was never queued. 0 or -ENOMEM. */
int admission_entered(struct admission *admission, struct request *request);
void admission_withdrawn(struct admission *admission, struct request *request);

/* The request entered or left the queue. */
void admission_queued(struct admission *admission, struct request *request);
void admission_dequeued(struct admission *admission, struct request *request);

/* Bytes of a message that arrives in parts: they count as queued for the party until admission_let_go. The
 * caller has checked that there is room. 0 or -ENOMEM. admission_let_go takes a zeroed hold. */
struct admission_hold {
    size_t bytes;
    struct share *share, *tenant_share; /* the second: NULL without a tenant */
};
int admission_hold(struct admission *admission, const struct party *party, size_t bytes,
                   struct admission_hold *ret_hold);
void admission_let_go(struct admission *admission, struct admission_hold *hold);

/* The request ended, and its log is not settled yet. Updates the estimate of the retry time. */
void admission_ended(struct admission *admission, struct request *request, uint64_t now);

/* The retry time: how long an eighth of the queue takes to drain, 100 ms to 10 s; a second while nothing has
 * ended. */
uint32_t admission_retry_ms(const struct admission *admission, uint64_t now);

/* A seed for requests without one; never the same twice. */
uint64_t admission_draw_seed(struct admission *admission);

/* Sets the fields of a request that the broker needs itself (seed, limits, deadline, policy, cost). `now` is
 * the time of its arrival; `seed` is used if the client chose none. */
void admission_fix(struct request *request, const struct generation *generation, uint64_t seed, uint64_t now);

#endif
