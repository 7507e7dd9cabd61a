/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CHOOSE_WANTS_H
#define BROKER_CHOOSE_WANTS_H

/* What requests in the queue want of a worker, as numbers: their kind, the model's name, and, once they were
 * begun, the very model by its digest. Where one finds no worker with room, none of the same number does, but
 * for its size: of large ones a smaller one waits for the larger one before it, on purpose.
 *
 * There are few numbers, as what is asked for each is asked in every turn of the loop. Requests that name no
 * model have their own; of names and digests each has one while there is one to give, and what comes beyond
 * that shares one, where each may have to wait for all before it. While workers start any name may turn out
 * to be served, so clients can make up as many as they like. So names that no worker has told have but a part
 * of the numbers, of which one client has a few, and share others than those that are known: who makes up
 * names crowds himself. A name that a worker tells later is known from then on: what waits for it is given
 * the number of a known one (queue_know). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "broker/books/request.h"

#define WANTS_MAX          64 /* numbers are below */
#define WANTS_UNKNOWN_MAX  24 /* for models that are not known */
#define WANTS_UNKNOWN_EACH 4  /* and of those for one client's */

/* The numbers that are shared, one for each kind, by requests for models that are not known. */
#define WANTS_SHARED_UNKNOWN (WANTS_MAX - REQUEST_KINDS)

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
    size_t n[WANTS_MAX];            /* requests that want it; 0: the number is free */
    bool unknown[WANTS_MAX];        /* nobody has asked for it who knew the model */
    struct id128 client[WANTS_MAX]; /* who asked first */
};

/* The number of what a request of this client and queued_kind wants, which is counted; and counted off again.
 */
unsigned wants_enter(struct wants *wants, const struct request *request);
void wants_leave(struct wants *wants, unsigned number);

/* This model is known from now on: numbers that are its own count no longer among the others. */
void wants_know(struct wants *wants, struct bytes model);

#endif
