/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CHOOSE_TARGETS_H
#define BROKER_CHOOSE_TARGETS_H

/* What each queued request needs of a worker, as a small number: its *target* is its kind, the model's name
 * and, once it has begun, the digest of the very model. If no worker has room for one request of a target,
 * none has room for another of the same target, except by size: a smaller request waits behind a larger one
 * on purpose.
 *
 * Numbers are few, because every turn of the loop asks about each. Requests that name no model have numbers
 * of their own. Names and digests get one each while numbers last; those beyond share one number and may
 * wait for all before them. While workers start, any name may turn out to be served, so clients can invent
 * as many names as they like. Names that no worker has announced therefore get only a part of the numbers,
 * a single client only a few of those, and what is left shares other numbers than known names do: a client
 * that invents names delays only itself. When a worker announces such a name, the requests that wait for it
 * get the number of a known one (queue_know). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "broker/books/request.h"

#define TARGETS_MAX          64 /* numbers are below */
#define TARGETS_UNKNOWN_MAX  24 /* for models that are not known */
#define TARGETS_UNKNOWN_EACH 4  /* and of those for one client's */

/* The numbers that are shared, one for each kind, by requests for models that are not known. */
#define TARGETS_SHARED_UNKNOWN (TARGETS_MAX - REQUEST_KINDS)

struct target {
    uint32_t kind; /* enum request_kind */
    uint32_t begun;
    uint8_t digest[16]; /* when it was begun */
    uint32_t model_len;
    char model[PROTO_MAX_NAME_BYTES];
};
_Static_assert(sizeof(struct target) == 28 + PROTO_MAX_NAME_BYTES, "no padding: they are compared as bytes");

struct targets { /* zeroed: empty */
    struct target items[TARGETS_MAX];
    size_t n[TARGETS_MAX];            /* requests of this target; 0: the number is free */
    bool unknown[TARGETS_MAX];        /* asked for only by requests whose model is not known */
    struct id128 client[TARGETS_MAX]; /* who asked first */
};

/* Counts a request in and returns the number of its target (its client, queued_kind, model and digest are
 * read); leave counts one off. */
unsigned targets_enter(struct targets *targets, const struct request *request);
void targets_leave(struct targets *targets, unsigned number);

/* Marks the model as known: its numbers no longer count among the unknown. */
void targets_know(struct targets *targets, struct bytes model);

#endif
