/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CHOOSE_TARGETS_H
#define BROKER_CHOOSE_TARGETS_H

/* What each queued request needs from a worker, as a small number: its *target* is its kind, the model's name
 * and, once it has begun, the model's digest. If no worker has room for one request of a target, none has
 * room for another of the same target, except by size: a smaller request waits behind a larger one on
 * purpose.
 *
 * There are few numbers, because every turn of the loop goes through all of them. Requests without a model's
 * name have separate numbers. Names and digests get one each while numbers last; further ones share one
 * number and may wait for each other. While workers start, any name may turn out to be served, so clients can
 * invent names. Names that no worker has announced therefore get only some of the numbers, a single client
 * only a few of those, and the remaining unknown names do not share a number with known names: a client that
 * invents names delays only itself. When a worker announces such a name, the requests that wait for it get
 * the number of a known one (queue_know). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "broker/books/request.h"

#define TARGETS_MAX          64 /* numbers are smaller */
#define TARGETS_UNKNOWN_MAX  20 /* for unknown models */
#define TARGETS_UNKNOWN_EACH 4  /* of those, for one client */

/* The numbers shared by requests for unknown models, one for each kind. */
#define TARGETS_SHARED_UNKNOWN (TARGETS_MAX - REQUEST_KINDS)

struct target {
    uint32_t kind; /* enum request_kind */
    uint32_t begun;
    uint8_t digest[16]; /* if it has begun */
    uint32_t model_len;
    char model[PROTO_MAX_NAME_BYTES];
};
_Static_assert(sizeof(struct target) == 28 + PROTO_MAX_NAME_BYTES, "no padding: they are compared as bytes");

struct targets { /* zeroed: empty */
    struct target items[TARGETS_MAX];
    size_t n[TARGETS_MAX];            /* requests of this target; 0: the number is free */
    bool unknown[TARGETS_MAX];        /* all its requests are for unknown models */
    struct id128 client[TARGETS_MAX]; /* of its first request */
};

/* Counts a request and returns the number of its target (reads its client, queued_kind, model and digest).
 * targets_leave counts one less. */
unsigned targets_enter(struct targets *targets, const struct request *request);
void targets_leave(struct targets *targets, unsigned number);

/* Marks the model as known: its numbers no longer count among the unknown. */
void targets_know(struct targets *targets, struct bytes model);

#endif
