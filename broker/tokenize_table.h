/* SPDX-License-Identifier: MIT */
#ifndef BROKER_TOKENIZE_TABLE_H
#define BROKER_TOKENIZE_TABLE_H

/* Tokenize requests that wait for a worker's answer: which client asked, under which ref. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/message.h"

#define TOKENIZE_TABLE_MAX  256
#define TOKENIZE_TIMEOUT_MS 10000

struct tokenize_question {
    bool used;
    uint64_t ref; /* ours */
    uint64_t client_ref;
    struct id128 session;
    uint32_t worker; /* index */
    uint64_t until;  /* clock_ns */
};

struct tokenize_table { /* zeroed: empty */
    uint64_t next_ref;
    size_t n;
    struct tokenize_question questions[TOKENIZE_TABLE_MAX];
};

/* Remembers a question; the ref to put to the worker. False when TOKENIZE_TABLE_MAX wait. */
bool tokenize_table_add(struct tokenize_table *table, struct id128 session, uint64_t client_ref,
                        uint32_t worker, uint64_t now, uint64_t *ret_ref);

/* Takes the question of an answer out; false when there is none with this ref from this worker. */
bool tokenize_table_take(struct tokenize_table *table, uint64_t ref, uint32_t worker,
                         struct tokenize_question *ret_question);

/* Takes out one question that has waited too long, or, with lost_worker ≥ 0, one of that worker's; false when
 * there is none. */
bool tokenize_table_expire(struct tokenize_table *table, uint64_t now, int lost_worker,
                           struct tokenize_question *ret_question);

#endif
