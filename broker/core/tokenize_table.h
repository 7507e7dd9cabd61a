/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CORE_TOKENIZE_TABLE_H
#define BROKER_CORE_TOKENIZE_TABLE_H

/* Unanswered tokenize and detokenize requests: the client that asked, its ref, and the worker that was asked;
 * large ones keep their message while they wait for a worker. A client may hold as many questions and bytes
 * as it leaves free (share.h). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/bytes.h"
#include "proto/message.h"

#define TOKENIZE_TABLE_MAX       256
#define TOKENIZE_TABLE_MAX_BYTES ((size_t)32 << 20) /* of messages that wait for a worker */
#define TOKENIZE_TIMEOUT_MS      10000
#define TOKENIZE_NO_WORKER       UINT32_MAX

struct tokenize_question {
    bool used;
    uint64_t ref; /* ours; ascending */
    uint64_t client_ref;
    enum message_kind kind;
    struct id128 session, client;
    uint32_t key;                          /* number of the client's key; 0: none */
    uint32_t worker;                       /* index; TOKENIZE_NO_WORKER: waiting for one */
    uint64_t until;                        /* clock_ns */
    struct buffer message;                 /* as received, while it waits */
    struct bytes model;                    /* inside the message; "" = any */
    struct tokenize_question *next, *prev; /* list of waiting ones */
};

struct tokenize_table { /* zeroed: empty */
    uint64_t next_ref;
    size_t n;
    size_t waiting_bytes;
    struct tokenize_question *waiting; /* utlist: questions that wait for a worker, the oldest first */
    struct tokenize_question questions[TOKENIZE_TABLE_MAX];
};

enum { TOKENIZE_E_FULL = 1 }; /* the table is full, or the client has used its share of it */

/* Adds a question; *ret_ref is for the message to the worker. Of `asked` only session, client, key, kind and
 * client_ref are used. 0 or TOKENIZE_E_FULL. */
int tokenize_table_add(struct tokenize_table *table, const struct tokenize_question *asked, uint32_t worker,
                       uint64_t now, uint64_t *ret_ref);

/* Adds a question that waits for a worker, with a copy of the message; `model` points into `message`. 0,
 * TOKENIZE_E_FULL (also for bytes), or -ENOMEM. */
int tokenize_table_keep(struct tokenize_table *table, const struct tokenize_question *asked,
                        struct bytes message, struct bytes model, uint64_t now);

/* A client's unanswered questions, and the bytes of those that wait for a worker. */
struct tokenize_had {
    size_t questions, bytes;
};
struct tokenize_had tokenize_table_had(const struct tokenize_table *table, const struct id128 *client);

/* A waiting question goes to this worker. Returns its message, which the caller frees. */
struct buffer tokenize_table_asked(struct tokenize_table *table, struct tokenize_question *question,
                                   uint32_t worker);

/* Removes the question that this worker answers; false if there is none with this ref. A removed question,
 * here and below, no longer has a message. */
bool tokenize_table_take(struct tokenize_table *table, uint64_t ref, uint32_t worker,
                         struct tokenize_question *ret_question);

/* Removes one question that has waited too long, or, with lost_worker ≥ 0, one asked of that worker; false:
 * there is none. */
bool tokenize_table_expire(struct tokenize_table *table, uint64_t now, int lost_worker,
                           struct tokenize_question *ret_question);

void tokenize_table_deinit(struct tokenize_table *table);

#endif
