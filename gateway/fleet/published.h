/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FLEET_PUBLISHED_H
#define GATEWAY_FLEET_PUBLISHED_H

/* A pool's published book of prefixes, copied into this gateway's (book.h): all of it first, in parts, and
 * about once a second what has changed. The pool says when its changes are unknown, as after its restart;
 * then it is all of it again, and what the pool had before is forgotten. Prompts that were sent there count
 * as held from the moment they are sent.
 *
 * A pool is believed what it says of itself, but not that more than PUBLISHED_MOST pieces have come or gone
 * in a minute, nor that all begins anew more than PUBLISHED_BEGINNINGS times in one: what is more is asked
 * for in the next minute. So a pool that tells too much takes a bounded part of the book and of the time. */

#include "gateway/fleet/book.h"
#include "gateway/fleet/pool.h"
#include "proto/bounds.h"

#define PUBLISHED_MOST       (BOOK_PIECES / 8) /* of a pool in a minute; twice what a broker has */
#define PUBLISHED_BEGINNINGS 2
#define PUBLISHED_PART       PROTO_MAX_PIECES /* changes of one answer: if it has as many, there are more */
#define PUBLISHED_LEAST      256              /* that an answer counts for at least: it takes time too */

struct published { /* zeroed: nothing is known */
    uint64_t boot, next;
    uint32_t at;
    uint32_t client;      /* of the pool, that was asked (pool.n_clients) */
    bool asked;           /* without an answer yet */
    bool failed;          /* the pool refused, which was logged */
    uint64_t due_ns;      /* when to ask next */
    uint64_t answers;     /* that have come */
    uint32_t pieces;      /* that it has, as it says */
    bool exceeded;        /* it told more than is taken in a minute, which was logged */
    uint64_t minute_ns;   /* when the present minute began; in it: */
    uint32_t told, begun; /* pieces that have come or gone; times that all began anew */
};

/* What an answer asks of the caller. */
enum published_news {
    PUBLISHED_NOTHING,
    PUBLISHED_BEGINS,   /* before the answer is taken: the pool gets another number */
    PUBLISHED_TOO_SOON, /* it begins too often: published_wait, and the answer is not taken */
};

/* Whether it is time to ask the pool. */
bool published_is_due(const struct published *published, const struct pool *pool, uint64_t now);

/* What to ask. `secret`: of the fleet. */
struct quern_prefixes_wish published_wish(const struct published *published, const char *secret);

/* The question was sent, or could not be. */
void published_asked(struct published *published, const struct pool *pool, bool sent, uint64_t now);

/* What the answer means, before it is taken. */
enum published_news published_look(const struct published *published, const struct quern_prefixes *told,
                                   uint64_t now);

/* Takes an answer into the book, under the pool's number. True if the pool has told so much that it is not
 * asked before the next minute, and that was not logged yet. */
bool published_take(struct published *published, const struct quern_prefixes *told, struct book *book,
                    uint32_t number, uint64_t now);

/* The answer is not taken: the pool is asked the same in the next minute. True if that was not logged yet. */
bool published_wait(struct published *published);

/* No answer came: the pool is asked the same again. */
void published_miss(struct published *published, uint64_t now);

/* The pool refused, or its prompts are not ours: it is asked again later, from the beginning. True if that
 * was not logged yet. */
bool published_fail(struct published *published, uint64_t now);

#endif
