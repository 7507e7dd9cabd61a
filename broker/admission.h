/* SPDX-License-Identifier: MIT */
#ifndef BROKER_ADMISSION_H
#define BROKER_ADMISSION_H

/* Whether a request may enter the queue, and when to come back if not.
 *
 * The queue is bounded in requests and in bytes of what was asked; the journal bounds all requests together.
 * Beyond, a client is told `overloaded` with a time to wait, estimated from how fast requests end. */

#include <stddef.h>
#include <stdint.h>

#include "broker/request.h"

#define ADMISSION_MAX_QUEUED       8192
#define ADMISSION_MAX_QUEUED_BYTES ((size_t)64 << 20)

struct admission { /* zeroed but for the limits and the secret: idle */
    size_t max_queued, max_queued_bytes;
    uint64_t secret; /* from which seeds are drawn */
    uint64_t draws;
    size_t queued, queued_bytes;
    double ended_per_s; /* over the last few seconds */
    uint64_t window_ns; /* start of the second being counted */
    uint32_t window_ended;
};

/* True when a message of `bytes` may be queued. */
bool admission_has_room(const struct admission *admission, size_t bytes);

/* The request entered or left the queue. */
void admission_queued(struct admission *admission, size_t bytes);
void admission_dequeued(struct admission *admission, size_t bytes);

/* A request ended; feeds the estimate. */
void admission_ended(struct admission *admission, uint64_t now);

/* When to try again: the time in which an eighth of the queue drains, 100 ms to 10 s. */
uint32_t admission_retry_ms(const struct admission *admission);

/* A seed for whoever chose none; never the same twice. */
uint64_t admission_draw_seed(struct admission *admission);

/* The fixed part of a request: fills in from what was asked all that the broker itself needs (seed, limits,
 * deadline, policy, cost), on the clock of its arrival. `seed` is taken when the client chose none. */
void admission_fix(struct request *request, const struct generation *generation, uint64_t seed, uint64_t now);

#endif
