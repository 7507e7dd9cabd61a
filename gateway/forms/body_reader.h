/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FORMS_BODY_READER_H
#define GATEWAY_FORMS_BODY_READER_H

/* The bodies of requests, from JSON to parameters, without holding up the gateway's loop.
 *
 *   body_read ──small, and little was read in this turn──▶ read at once ─────────────┐
 *       └──────any other──▶ queue ──the reader's thread──▶ body_reader_deliver ──▶ then, on the loop
 *
 * One body of 8 MB takes the better part of a second to parse at worst, and its tree can be far larger than
 * itself. So a thread reads them one after the other: there is one tree at a time, of a bounded size
 * (json_memory.h), and it is gone when the parameters have been copied out of it. Small bodies are not kept
 * waiting by large ones.
 *
 * All functions are called on the loop's thread. */

#include "common/error.h"
#include "gateway/http/budget.h"
#include "gateway/http/exchange.h"
#include "gateway/core/parameters.h"

struct body_reader;

/* One body on its way. A handler embeds it in what it allocates for its request, and sets the first part. */
struct body_reading {
    const struct json_row *rows;
    struct parameters *into; /* initialized; may be the first member of what the rows take into */
    /* What there is to be done once the rows have been read; NULL: nothing. On the reader's thread, so it
     * touches nothing but the reading. 0 or REFUSED. */
    int (*finish)(struct body_reading *reading, struct refusal *refusal);
    /* Called once, on the loop. `exchange` is NULL when there is no one to answer: the client has gone, or
     * the body was refused and the refusal has been sent. Frees, or goes on. */
    void (*then)(struct body_reading *reading);

    struct exchange *exchange; /* set by body_read, like all that follows */
    struct buffer body;
    size_t counted; /* bytes of `body` in the gateway's budget of bodies */
    int result;
    struct refusal refusal;
    struct body_reading *next, *prev;
};

/* Starts the thread. Trees of bodies may have `tree_bytes`. -errno with a reason. */
int body_reader_start(size_t tree_bytes, struct body_reader **ret_reader, struct error *err);

/* Waits for what is being read, hands over everything submitted (there is no one left to answer) and ends the
 * thread. Takes NULL. */
struct body_reader *body_reader_stop(struct body_reader *reader);

/* Reads the body of the exchange, which is taken from it. What the parameters then take in memory counts
 * among the gateway's bodies (and its key's), until parameters_deinit; where there is no room for that, the
 * request is refused with 429. `then` may be called before this returns. */
void body_read(struct exchange *exchange, struct body_reading *reading);

/* A new turn of the loop: hands over what has been read, and lets small bodies be read at once again. */
void body_reader_deliver(struct body_reader *reader);

/* Much memory has been freed: the thread gives it back to the system when no body waits. It takes too long
 * for the loop, since the allocator has to look for it. */
void body_reader_tidy(struct body_reader *reader);

/* Readable when there is something to hand over. */
int body_reader_fd(const struct body_reader *reader);

#endif
