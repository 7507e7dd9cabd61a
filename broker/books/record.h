/* SPDX-License-Identifier: MIT */
#ifndef BROKER_BOOKS_RECORD_H
#define BROKER_BOOKS_RECORD_H

/* The record of a request in the vault: everything about it, except its frames, that the next broker needs.
 *
 * It is written as a whole at admission, with the body. Each later step of the request is a single store, so
 * if this process is killed, the record shows the state before or after the step. These functions ignore a
 * request without a record, which some tests use. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "broker/books/client_keys.h"
#include "broker/books/request.h"
#include "broker/books/vault.h"

/* The worker that has the request. */
struct record_holder {
    uint32_t index;       /* its place */
    uint32_t incarnation; /* 0: none */
};

/* A block for a record whose body is still incomplete; its parts are written to `bytes`. Not kept. */
struct record_room {
    struct request_record *record; /* NULL: there is none */
    uint8_t *bytes;                /* [len], of the body */
    size_t len;
};
int record_room_take(struct vault *vault, size_t len, struct record_room *ret_room); /* 0; -ENOMEM */
void record_room_give(struct vault *vault, struct record_room *room); /* frees it; it may be empty */

/* The body is complete: its block becomes the request's, and the room is empty. Not kept yet. */
void record_fill(struct request *request, struct record_room *room);

/* Allocates a block for the request with a copy of the body, and sets the body's hash. Not kept yet. 0;
 * -ENOMEM: the vault is full. */
int record_make(struct vault *vault, struct request *request, const void *body, size_t len);

/* The request is admitted: writes the whole record and keeps the block. `client_key`: the bytes of the key it
 * counts for; NULL: none. */
void record_keep(struct vault *vault, const struct request *request,
                 const uint8_t client_key[CLIENT_KEY_BYTES]);

/* Steps: the request got credit (call before the worker is told); it is assigned (call before sending); a
 * worker returned it; it has a new epoch, because its worker died or is leaving; it was cancelled; it was
 * attached to another session. */
void record_credited(const struct request *request);
void record_assigned(const struct request *request, struct record_holder holder);
void record_returned(const struct request *request);
void record_moved(const struct request *request);
void record_cancelled(const struct request *request);
void record_attached(const struct request *request);

/* The request's end is in the log: frees the body. */
void record_ended(struct vault *vault, struct request *request);

/* Bytes of the body as it arrived, even if it was freed since; 0 without a record. */
size_t record_body_bytes(const struct request *request);

/* The request's client has received all of it. */
void record_taken(const struct request *request);

/* The request is forgotten. */
void record_forget(struct vault *vault, struct request *request);

/* ---- recovery from the vault ---- */

/* Whether a kept block of the vault is a complete record; *ret_owner: the owner of its log, a number that
 * grows with every admission. */
bool record_is_one(const void *block, size_t size, uint64_t *ret_owner);

/* The record's key only, for ledger_add. */
struct request_key record_key(const void *block);

struct restored {
    struct record_holder holder;
    struct id128 session; /* its current session */
    uint64_t reserved;    /* bytes of the journal, before it started */
    uint64_t credit;      /* ids that it may generate for now; 0: it had not started */
    uint64_t most;        /* if it had started: ids that it may generate in all */
    bool taken;           /* its client has received all of it */
    bool stands_alone;    /* the tenant that it names, if any, stands alone (struct tenancy) */
    bool has_client_key;
    uint8_t client_key[CLIENT_KEY_BYTES];
};

/* Restores the request from its record: everything except the contents of *ret_restored, its log, its lists
 * and its end. */
void record_restore(struct request *request, void *block, struct restored *ret_restored);

#endif
