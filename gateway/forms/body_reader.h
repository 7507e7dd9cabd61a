/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FORMS_BODY_READER_H
#define GATEWAY_FORMS_BODY_READER_H

/* Parses bodies of requests into parameters without delaying the gateway's loop.
 *
 *   body_read ──small, and little was read in this turn──▶ read at once ─────────────┐
 *       └──────any other──▶ queue ──the reader's thread──▶ body_reader_deliver ──▶ then, on the loop
 *
 * A body of 8 MB can take most of a second to parse, and its tree can be far larger. So a thread reads one
 * at a time: there is one tree, of bounded size (json_memory.h), which is freed once the parameters are
 * copied. Small bodies do not wait for large ones.
 *
 * All functions are called on the loop's thread. */

#include "common/error.h"
#include "gateway/http/budget.h"
#include "gateway/http/exchange.h"
#include "gateway/core/parameters.h"

struct body_reader;

/* One body in progress. A handler embeds it in its request, and sets the first part. */
struct body_reading {
    const struct json_row *rows;
    struct parameters *into; /* initialized; may be the first member of a larger struct for the rows */
    /* Called after the rows have been read; may be NULL. Runs on the reader's thread, so it may use only the
     * reading. 0 or REFUSED. */
    int (*finish)(struct body_reading *reading, struct refusal *refusal);
    /* Called once, on the loop. `exchange` is NULL if no answer is needed: the client has left, or the body
     * was rejected and the error sent. Frees the reading, or continues. */
    void (*then)(struct body_reading *reading);

    struct exchange *exchange; /* set by body_read, like all members below */
    struct buffer body;
    size_t counted; /* bytes of `body` in the gateway's budget of bodies */
    int result;
    struct refusal refusal;
    struct body_reading *next, *prev;
};

/* Starts the thread. A body's tree may take `tree_bytes`. 0 or -errno with a reason. */
int body_reader_start(size_t tree_bytes, struct body_reader **ret_reader, struct error *err);

/* Raises the bytes that a tree may take, if `tree_bytes` is more and there is address space for it. */
void body_reader_allow(struct body_reader *reader, size_t tree_bytes);

/* Waits for the body being read, delivers all submitted ones without an exchange, and ends the thread. Takes
 * NULL. */
struct body_reader *body_reader_stop(struct body_reader *reader);

/* Takes and reads the body of the exchange. The memory of the parameters counts in the gateway's budget of
 * bodies (and the key's) until parameters_deinit; without room, the request gets 429. `then` may be called
 * before this returns. */
void body_read(struct exchange *exchange, struct body_reading *reading);

/* A new turn of the loop: delivers finished bodies, and allows small bodies to be read at once again. */
void body_reader_deliver(struct body_reader *reader);

/* Much memory has been freed: the thread returns it to the system when no body waits; on the loop this would
 * take too long. */
void body_reader_tidy(struct body_reader *reader);

/* Readable when there is a body to deliver. */
int body_reader_fd(const struct body_reader *reader);

#endif
