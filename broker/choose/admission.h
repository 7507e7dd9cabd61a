/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CHOOSE_ADMISSION_H
#define BROKER_CHOOSE_ADMISSION_H

/* Whether a request may enter, and when to come back if not.
 *
 * The queue is bounded in requests and in bytes of what was asked, the journal in bytes of what may be made;
 * of each a session has a share of its own (share.h). A client's tenants divide its share. A tenant that
 * stands alone (struct party) has a share like a session's, but all tenants of one session together leave an
 * eighth to others. Beyond, a client is told `overloaded` with what is full, and a time to wait that is
 * estimated from how fast requests end. */

#include <stddef.h>
#include <stdint.h>

#include "broker/books/journal.h"
#include "broker/books/request.h"
#include "broker/choose/share.h"
#include "common/error.h"

#define ADMISSION_MAX_QUEUED       8192
#define ADMISSION_MAX_QUEUED_BYTES ((size_t)64 << 20)

struct admission { /* zeroed but for the limits, the secret and the shares' seed: idle */
    size_t max_queued, max_queued_bytes;
    size_t max_client_requests; /* of one client, that have not ended; 0: no bound */
    struct shares shares;
    uint64_t secret; /* from which seeds are drawn */
    uint64_t draws;
    size_t queued, queued_bytes;
    double ended_per_s; /* over the last few seconds */
    uint64_t window_ns; /* start of the second being counted */
    uint32_t window_ended;
};

/* Whether the party may queue a message of `bytes`: PROTO_OK, or PROTO_OVERLOADED with what is full. */
enum proto_error admission_check_queue(const struct admission *admission, const struct party *party,
                                       size_t bytes, struct error *reason);

/* The same of `bytes` of the journal; PROTO_TOO_LONG when no client could ever have them. */
enum proto_error admission_check_journal(const struct admission *admission, const struct party *party,
                                         uint64_t bytes, const struct journal *journal, struct error *reason);

/* The request, whose room in the journal is reserved, counts for its client and its tenant: until
 * admission_ended, or until admission_withdrawn, if it never was queued. 0 or -ENOMEM. */
int admission_entered(struct admission *admission, struct request *request);
void admission_withdrawn(struct admission *admission, struct request *request);

/* It entered or left the queue. */
void admission_queued(struct admission *admission, const struct request *request);
void admission_dequeued(struct admission *admission, const struct request *request);

/* It ended, and its log is not settled yet; feeds the estimate. */
void admission_ended(struct admission *admission, struct request *request, uint64_t now);

/* When to try again: the time in which an eighth of the queue drains, 100 ms to 10 s; a second while nothing
 * has ended. */
uint32_t admission_retry_ms(const struct admission *admission, uint64_t now);

/* Most tokens that a request can make. */
static inline uint32_t admission_most_tokens(const struct generation *generation)
{
    uint32_t unsaid = generation->embed ? 0 : PROTO_MAX_TOKENS_UNSAID;
    return generation->max_tokens ? generation->max_tokens : unsaid;
}

/* A seed for requests without one; never the same twice. */
uint64_t admission_draw_seed(struct admission *admission);

/* The fixed part of a request: fills in from what was asked all that the broker itself needs (seed, limits,
 * deadline, policy, cost), on the clock of its arrival. `seed` is taken when the client chose none. */
void admission_fix(struct request *request, const struct generation *generation, uint64_t seed, uint64_t now);

#endif
