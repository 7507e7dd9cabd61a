/* SPDX-License-Identifier: MIT */
#ifndef BROKER_WANTS_H
#define BROKER_WANTS_H

/* What requests in the queue want of a worker, as numbers: their kind, the model's name, and, once they were
 * begun, the very model by its digest. Where one finds no worker with room, none of the same number does, but
 * for its size: of large ones a smaller one waits for the larger one before it, on purpose.
 *
 * There are few numbers. While workers start any name may turn out to be served, so clients can make up as
 * many as they like, and what is asked for each number is asked in every turn of the loop. Requests that name
 * no model have their own; of names and digests each has one while there is one to give, and what comes
 * beyond that shares one. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "broker/request.h"

#define WANTS_MAX 64 /* numbers are below */

struct want {
    uint32_t kind; /* enum request_kind */
    uint32_t begun;
    uint8_t digest[16]; /* when it was begun */
    uint32_t model_len;
    char model[PROTO_MAX_NAME_BYTES];
};
_Static_assert(sizeof(struct want) == 28 + PROTO_MAX_NAME_BYTES, "no padding: they are compared as bytes");

struct wants { /* zeroed: empty */
    struct want items[WANTS_MAX];
    size_t n[WANTS_MAX]; /* requests that want it; 0: the number is free */
};

/* The number of what a request of this queued_kind wants, which is counted; and counted off again. */
unsigned wants_enter(struct wants *wants, const struct request *request);
void wants_leave(struct wants *wants, unsigned number);

#endif
