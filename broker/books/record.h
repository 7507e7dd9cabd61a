/* SPDX-License-Identifier: MIT */
#ifndef BROKER_BOOKS_RECORD_H
#define BROKER_BOOKS_RECORD_H

/* The record of a request in the vault: what the next broker must know of it besides its frames.
 *
 * It is written as a whole at admission, with the body. Each later step of the request is a single store, so
 * whenever this process is killed the record shows the state before the step or after it. These functions
 * ignore a request without a record, as some tests have them. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "broker/books/client_keys.h"
#include "broker/books/request.h"
#include "broker/books/vault.h"

/* Who has the request. */
struct record_holder {
    uint32_t index;       /* place of the worker */
    uint32_t incarnation; /* 0: nobody */
};

/* A block for a record whose body is not whole yet, which is written to `bytes`. Not kept. */
struct record_room {
    struct request_record *record; /* NULL: there is none */
    uint8_t *bytes;                /* [len], of the body */
    size_t len;
};
int record_room_take(struct vault *vault, size_t len, struct record_room *ret_room); /* 0; -ENOMEM */
void record_room_give(struct vault *vault, struct record_room *room);                /* takes an empty one */

/* The body is whole: its block becomes the request's, and the room is empty. Not kept yet. */
void record_fill(struct request *request, struct record_room *room);

/* Takes a block with a copy of the body, which becomes the request's, and its hash. Not kept yet. 0; -ENOMEM:
 * the vault is full. */
int record_make(struct vault *vault, struct request *request, const void *body, size_t len);

/* The request is admitted: writes all of it and keeps the block. `client_key`: the bytes of the key it counts
 * for; NULL: none. */
void record_keep(struct vault *vault, const struct request *request,
                 const uint8_t client_key[CLIENT_KEY_BYTES]);

/* The steps: credit, before the worker is told; assigned, before it is sent; taken back from a worker;
 * another epoch, because its worker died or leaves; cancelled; another session. */
void record_credited(const struct request *request);
void record_assigned(const struct request *request, struct record_holder holder);
void record_returned(const struct request *request);
void record_moved(const struct request *request);
void record_cancelled(const struct request *request);
void record_attached(const struct request *request);

/* Its end is in the log: gives back the body. */
void record_ended(struct vault *vault, struct request *request);

/* How many bytes the body had as it came, be it there or not; 0 without a record. */
size_t record_body_bytes(const struct request *request);

/* Its client has all of it. */
void record_taken(const struct request *request);

/* It is forgotten. */
void record_forget(struct vault *vault, struct request *request);

/* ---- what an earlier process left ---- */

/* Whether a kept block of the vault is a whole record; *ret_owner: the owner of its log, which grows from one
 * admission to the next. */
bool record_is_one(const void *block, size_t size, uint64_t *ret_owner);

/* Only its keys: for ledger_add. */
struct request_key record_key(const void *block);

struct restored {
    struct record_holder holder;
    struct id128 session; /* who has it now */
    uint64_t reserved;    /* of the journal, before it started */
    uint64_t credit;      /* ids that it may make; 0: it had not started */
    uint64_t most;        /* then: that it may make at all */
    bool taken;           /* its client has all of it */
    bool stands_alone;    /* the tenant that it names, if it does */
    bool has_client_key;
    uint8_t client_key[CLIENT_KEY_BYTES];
};

/* Sets the request as its record says: everything except what *ret_restored holds, its log, its lists and its
 * end. */
void record_restore(struct request *request, void *block, struct restored *ret_restored);

#endif
