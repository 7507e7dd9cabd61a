/* SPDX-License-Identifier: MIT */
#ifndef BROKER_BOOKS_JOURNAL_H
#define BROKER_BOOKS_JOURNAL_H

/* The journal keeps every frame of every request as it was sent, so that a client can get missed frames
 * again.
 *
 * A `journal` is the memory budget of the whole broker; a `journal_log` holds the frames of one request. Room
 * is reserved ahead of a request's frames (broker/choose/growth.h); when the request ends, unused room is
 * released. `used` counts allocated bytes, bookkeeping included. The journal does not parse messages: the
 * caller says which tokens and bytes a frame covers.
 *
 * Frames are in the vault, where the next broker finds them (journal_restore). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "broker/books/vault.h"
#include "common/bytes.h"

/* The limit unless an option sets it or the workers need more (growth_follow). */
#define JOURNAL_LIMIT_BYTES ((uint64_t)256 << 20)

/* Bytes of the vault for a journal with this limit, and the inverse: twice the limit, since blocks are not
 * filled to the last byte, and room for the records of requests. */
#define JOURNAL_VAULT_MORE ((uint64_t)256 << 20)
static inline uint64_t journal_vault_bytes(uint64_t limit)
{
    return 2 * limit + JOURNAL_VAULT_MORE;
}
static inline uint64_t journal_limit_in(uint64_t vault_bytes)
{
    return vault_bytes > JOURNAL_VAULT_MORE ? (vault_bytes - JOURNAL_VAULT_MORE) / 2 : 0;
}

struct journal {
    struct vault *vault; /* NULL: frames are on the heap */
    uint64_t limit;      /* bytes */
    uint64_t used;       /* bytes charged: per log the larger of its reservation and its memory */
    /* Of those, charged to logs whose requests have ended: evicting all of them would free this much. */
    uint64_t settled;
    uint64_t unread; /* of `settled`, bytes that clients have not confirmed */
};

struct journal_chunk;

struct journal_log { /* zeroed except for the owner: empty, nothing reserved */
    uint64_t owner;  /* identifies its frames in the vault */
    uint32_t n_chunks;
    struct journal_chunk *first, *last;
    uint64_t memory;     /* bytes allocated, overhead included */
    uint64_t reserved;   /* bytes promised */
    bool settled;        /* its request ended */
    bool unread;         /* and its client has not confirmed all of it */
    uint64_t count;      /* token ids so far: the next seq */
    uint64_t text_bytes; /* bytes of text so far: the next off */
    /* Of those, ids and bytes made before the request was resumed here (journal_resume): the log begins
     * behind them. */
    uint64_t given, given_text;
};

/* Ids in the log. */
static inline uint64_t journal_made(const struct journal_log *log)
{
    return log->count - log->given;
}

/* Starts an empty log for a request that has already made this many ids and bytes of text elsewhere. */
static inline void journal_resume(struct journal_log *log, uint64_t ids, uint64_t text_bytes)
{
    log->count = log->given = ids;
    log->text_bytes = log->given_text = text_bytes;
}

enum { JOURNAL_E_FULL = 1 };

/* Bytes to reserve for a request before its first id: room for its end, and the caller's `overhead`. */
uint64_t journal_start_bytes(uint64_t overhead);

/* Bytes to reserve for an id: a separate frame with `logprobs` entries, including the bytes of their ids if
 * `pieces`. Tokens with long texts use what tokens with short ones leave. */
uint32_t journal_token_bytes(uint32_t logprobs, bool pieces);

/* The maximum number of bytes that the ids of one request may take. */
static inline uint64_t journal_most_of_one(const struct journal *journal)
{
    return journal->limit - journal->limit / 4;
}

/* Unread answers up to this part of the journal are not dropped to admit other requests. If all were kept, a
 * few clients that never read could block everyone. */
#define JOURNAL_UNREAD_PART 2

/* Whether unread logs may be released to make room for new ones. */
bool journal_may_drop_unread(const struct journal *journal);

/* Bytes available to new requests if everything that may be forgotten were forgotten. */
uint64_t journal_free(const struct journal *journal);

/* Whether `bytes` could be reserved in that case. */
bool journal_could_hold(const struct journal *journal, uint64_t bytes);

/* Whether `bytes` are free: neither reserved nor in use. */
bool journal_has_room(const struct journal *journal, uint64_t bytes);

/* Bytes by which a frame of `len` bytes would increase the log's charge: 0 within its reservation. */
uint64_t journal_growth(const struct journal_log *log, size_t len);

/* Reserves `bytes` for a zeroed log. 0 or JOURNAL_E_FULL. */
int journal_reserve(struct journal *journal, struct journal_log *log, uint64_t bytes);

/* The reservation a log needs for `ahead` more bytes of frames and `overhead`. */
uint64_t journal_reservation(const struct journal_log *log, uint64_t overhead, uint64_t ahead);

/* Changes the reservation without a check: the caller has made room. */
void journal_extend(struct journal *journal, struct journal_log *log, uint64_t bytes);

/* Bytes of the log's frames, with their headers. */
uint64_t journal_written(const struct journal_log *log);

/* Appends a copy of the log's next frame, which has `n_ids` ids and `text_bytes` of text. 0; -ENOMEM;
 * JOURNAL_E_FULL: the log has outgrown its reservation, and there is no room in the journal nor in the extra
 * quarter of the limit kept for tokens already generated. On failure the log is unchanged. */
int journal_append(struct journal *journal, struct journal_log *log, uint32_t n_ids, uint32_t text_bytes,
                   const void *frame, size_t len);

/* The request ended and nothing more is appended: releases what was reserved beyond the memory in use, except
 * `overhead` bytes. The log counts as unread. */
void journal_settle(struct journal *journal, struct journal_log *log, uint64_t overhead);

/* The client has all of a settled log. */
void journal_taken(struct journal *journal, struct journal_log *log);

/* The log's charge to the journal: the larger of its reservation and its memory. */
uint64_t journal_charge(const struct journal_log *log);

/* Frees the frames and the reservation; the log is zeroed. */
void journal_release(struct journal *journal, struct journal_log *log);

/* ---- recovery from the vault ---- */

/* Whether a kept block of the vault is part of a log; its owner, and its index there. */
bool journal_is_chunk(const void *block, size_t size, uint64_t *ret_owner, uint32_t *ret_index);

/* Appends a block of the vault to its owner's log, in order of their index from 0 on. At a damaged frame the
 * log is cut off and the function returns false; the log's further blocks are then useless. */
bool journal_restore(struct journal *journal, struct journal_log *log, void *block, size_t size);

/* The last frame; empty if there is none. */
struct bytes journal_last(const struct journal_log *log);

/* A page of frames for a client that has the first `next` ids. */
struct journal_page {
    struct bytes *items; /* [n], borrowed from the log: valid until it is released */
    size_t n;
    size_t cap;
    size_t bytes;        /* of the frames */
    uint64_t from, next; /* ids covered */
    bool done;           /* the page reaches the end of the log */
};

/* Fills the page with whole frames of at most `limit` bytes in total, but with at least one frame if there is
 * one. Starts at the first frame that has an id from `next` on; without such a frame, at the last frame of an
 * ended request. The page's array is reused; a zeroed page is valid. 0 or -ENOMEM. */
int journal_read(const struct journal_log *log, uint64_t next, size_t limit, struct journal_page *page);
void journal_page_deinit(struct journal_page *page);

#endif
