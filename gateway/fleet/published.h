/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FLEET_PUBLISHED_H
#define GATEWAY_FLEET_PUBLISHED_H

/* Copies a pool's published book of prefixes into this gateway's (book.h): first all of it, in parts, then
 * about once a second what has changed. The pool says when it no longer knows its changes, as after a
 * restart; then all of it is copied again, and what the pool had before is forgotten. Prompts sent to the
 * pool count as held there from the moment they are sent.
 *
 * A pool's reports are trusted up to a limit: at most PUBLISHED_MOST pieces come or go in a minute, and the
 * book starts over at most PUBLISHED_BEGINNINGS times a minute; the rest is requested in the next minute. So
 * a pool that reports too much takes only a bounded part of the book and of the time. */

#include "gateway/fleet/book.h"
#include "gateway/fleet/pool.h"
#include "proto/bounds.h"

#define PUBLISHED_MOST       (BOOK_PIECES / 8) /* per pool and minute; twice what a broker has */
#define PUBLISHED_BEGINNINGS 2
#define PUBLISHED_PART       PROTO_MAX_PIECES /* changes in one answer: if it has this many, there are more */
#define PUBLISHED_LEAST      256              /* the least that an answer counts for: it takes time too */

struct published { /* zeroed: nothing is known */
    uint64_t boot, next;
    uint32_t at;
    uint32_t client;      /* the pool's client that was asked (pool.n_clients) */
    bool asked;           /* a question is unanswered */
    bool failed;          /* the pool refused, which was logged */
    uint64_t due_ns;      /* when to ask next */
    uint64_t answers;     /* received */
    uint32_t pieces;      /* that it has, according to the pool */
    bool exceeded;        /* it reported more than is accepted in a minute, which was logged */
    uint64_t minute_ns;   /* when the current minute began; in it: */
    uint32_t told, begun; /* pieces that have come or gone; times the book started over */
};

/* What an answer requires of the caller. */
enum published_news {
    PUBLISHED_NOTHING,
    PUBLISHED_BEGINS,   /* give the pool another number before taking the answer */
    PUBLISHED_TOO_SOON, /* it starts over too often: call published_wait, and do not take the answer */
};

/* Whether it is time to ask the pool. */
bool published_is_due(const struct published *published, const struct pool *pool, uint64_t now);

/* The question to ask. `secret`: the fleet's. */
struct quern_prefixes_wish published_wish(const struct published *published, const char *secret);

/* The question was sent, or could not be. */
void published_asked(struct published *published, const struct pool *pool, bool sent, uint64_t now);

/* Inspects the answer before it is taken. */
enum published_news published_look(const struct published *published, const struct quern_prefixes *told,
                                   uint64_t now);

/* Enters an answer into the book under the pool's number. True if the pool has reported so much that it is
 * not asked again before the next minute, and this was not logged yet. */
bool published_take(struct published *published, const struct quern_prefixes *told, struct book *book,
                    uint32_t number, uint64_t now);

/* The answer is not taken: the pool is asked the same in the next minute. True if this was not logged yet. */
bool published_wait(struct published *published);

/* No answer came: the pool is asked the same again. */
void published_miss(struct published *published, uint64_t now);

/* The pool refused, or separates prompts differently: it is asked again later, from the beginning. True if
 * this was not logged yet. */
bool published_fail(struct published *published, uint64_t now);

#endif
