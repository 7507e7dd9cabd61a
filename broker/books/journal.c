/* SPDX-License-Identifier: MIT */
/* The journal's memory.
 *
 * A log is a list of chunks that double from 512 bytes to 32 KiB, so a short request is cheap and a long one
 * costs an allocation in hundreds of frames. A chunk holds records back to back: a small header, the frame,
 * padding to 8 bytes. Records never move, so a page may point into them. A record counts when the length of
 * its chunk says so, which is the last store: who is killed before left nothing, and after, all of it.
 *
 * What a log is charged is max(reserved, memory): as long as it stays within its reservation, appending never
 * touches the common purse and cannot fail for lack of it. */

#include "broker/books/journal.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"

#define CHUNK_MIN ((size_t)512) /* its header included */
#define CHUNK_MAX ((size_t)32 << 10)
#define MAGIC     0x4c4e524au /* "JRNL" */

#define MADE_PART 4 /* of the limit, beyond it: for what is there and took more than was reserved */

/* A frame of one token: its msgpack keys and numbers take about 100 bytes, the record's header 24, and the
 * rest is text and the unused end of the last chunk. */
#define TOKEN_BYTES   192
#define LOGPROB_BYTES 12
#define PIECE_BYTES   12   /* two of msgpack's; a token of a text has four or five on average */
#define END_BYTES     1024 /* the end frame: usage, timing, an error text */

struct journal_chunk {
    uint32_t magic;
    uint32_t index; /* among the log's */
    uint64_t owner;
    _Atomic uint64_t len; /* of the data */
    /* Of this process: */
    uint64_t cap;
    uint64_t end_seq; /* ids of the log up to the end of this chunk */
    struct journal_chunk *next;
    uint8_t data[];
};

struct record {
    uint64_t seq; /* index of the frame's first id */
    uint32_t n_ids;
    uint32_t text_bytes;
    uint32_t len; /* of the frame that follows */
    uint32_t check;
};

static uint64_t length(const struct journal_chunk *chunk)
{
    return atomic_load_explicit(&chunk->len, memory_order_relaxed);
}

static void set_length(struct journal_chunk *chunk, uint64_t len)
{
    atomic_store_explicit(&chunk->len, len, memory_order_release);
}

/* Of a frame at this place of this log. */
static uint32_t check_of(uint64_t owner, const struct record *record)
{
    return (uint32_t)hash64(record + 1, record->len, owner ^ record->seq << 20 ^ record->n_ids);
}

static size_t record_bytes(size_t len)
{
    return sizeof(struct record) + ((len + 7) & ~(size_t)7);
}

uint64_t journal_charge(const struct journal_log *log)
{
    return log->reserved > log->memory ? log->reserved : log->memory;
}

uint64_t journal_start_bytes(uint64_t overhead)
{
    return overhead + END_BYTES;
}

uint32_t journal_token_bytes(uint32_t logprobs, bool pieces)
{
    return TOKEN_BYTES + logprobs * (LOGPROB_BYTES + (pieces ? PIECE_BYTES : 0));
}

bool journal_may_drop_unread(const struct journal *journal)
{
    return journal->unread > journal->limit / JOURNAL_UNREAD_PART;
}

uint64_t journal_free(const struct journal *journal)
{
    uint64_t most = journal->limit / JOURNAL_UNREAD_PART;
    uint64_t unread = journal->unread < most ? journal->unread : most;
    uint64_t taken = journal->used - journal->settled + unread;
    return taken < journal->limit ? journal->limit - taken : 0;
}

bool journal_could_hold(const struct journal *journal, uint64_t bytes)
{
    return bytes <= journal_free(journal);
}

bool journal_has_room(const struct journal *journal, uint64_t bytes)
{
    return bytes <= journal->limit && journal->used <= journal->limit - bytes;
}

int journal_reserve(struct journal *journal, struct journal_log *log, uint64_t bytes)
{
    if (!journal_has_room(journal, bytes))
        return JOURNAL_E_FULL;
    journal->used += bytes;
    log->reserved = bytes;
    return 0;
}

/* Bytes that the last chunk has room for. */
static uint64_t tail(const struct journal_log *log)
{
    return log->last ? log->last->cap - length(log->last) : 0;
}

uint64_t journal_reservation(const struct journal_log *log, uint64_t overhead, uint64_t ahead)
{
    return overhead + log->memory + (ahead > tail(log) ? ahead - tail(log) : 0);
}

void journal_extend(struct journal *journal, struct journal_log *log, uint64_t bytes)
{
    journal->used -= journal_charge(log);
    log->reserved = bytes;
    journal->used += journal_charge(log);
}

uint64_t journal_written(const struct journal_log *log)
{
    return log->memory - tail(log);
}

/* The size of the chunk that a record of `need` bytes would have to be added in; 0: the last one has room. It
 * is smaller where it would outgrow what is reserved, and a smaller one would not. */
static size_t next_chunk(const struct journal_log *log, size_t need)
{
    if (tail(log) >= need)
        return 0;
    size_t size = log->last ? (sizeof *log->last + log->last->cap) * 2 : CHUNK_MIN;
    if (size > CHUNK_MAX)
        size = CHUNK_MAX;
    size_t fit = size;
    while (fit > CHUNK_MIN && log->memory + fit > log->reserved)
        fit /= 2;
    if (log->memory + fit <= log->reserved && fit - sizeof *log->last >= need)
        size = fit;
    while (size - sizeof *log->last < need)
        size *= 2;
    return size;
}

static uint64_t growth_by_chunk(const struct journal_log *log, size_t size)
{
    uint64_t memory = log->memory + size;
    return memory > journal_charge(log) ? memory - journal_charge(log) : 0;
}

uint64_t journal_growth(const struct journal_log *log, size_t len)
{
    size_t size = next_chunk(log, record_bytes(len));
    return size > 0 ? growth_by_chunk(log, size) : 0;
}

static void link_chunk(struct journal_log *log, struct journal_chunk *chunk, size_t size)
{
    chunk->next = NULL;
    chunk->cap = size - sizeof *chunk;
    chunk->end_seq = log->count;
    if (log->last)
        log->last->next = chunk;
    else
        log->first = chunk;
    log->last = chunk;
    log->n_chunks++;
    log->memory += size;
}

static int add_chunk(struct journal *journal, struct journal_log *log, size_t size)
{
    uint64_t more = growth_by_chunk(log, size);
    if (more > 0 && journal->used + more > journal->limit + journal->limit / MADE_PART)
        return JOURNAL_E_FULL;
    struct journal_chunk *chunk = journal->vault ? vault_take(journal->vault, size, &size) : malloc(size);
    if (!chunk)
        return -ENOMEM;
    chunk->magic = MAGIC;
    chunk->index = log->n_chunks;
    chunk->owner = log->owner;
    set_length(chunk, 0);
    link_chunk(log, chunk, size);
    journal->used += more;
    if (journal->vault)
        vault_keep(journal->vault, chunk);
    return 0;
}

int journal_append(struct journal *journal, struct journal_log *log, uint32_t n_ids, uint32_t text_bytes,
                   const void *frame, size_t len)
{
    size_t need = record_bytes(len), size = next_chunk(log, need);
    int r = size > 0 ? add_chunk(journal, log, size) : 0;
    if (r != 0)
        return r;
    struct journal_chunk *chunk = log->last;
    struct record *record = (struct record *)(chunk->data + length(chunk));
    *record =
        (struct record){.seq = log->count, .n_ids = n_ids, .text_bytes = text_bytes, .len = (uint32_t)len};
    memcpy(record + 1, frame, len);
    record->check = check_of(log->owner, record);
    set_length(chunk, length(chunk) + need);
    log->count += n_ids;
    log->text_bytes += text_bytes;
    chunk->end_seq = log->count;
    return 0;
}

/* Gives the unused end of the last chunk back. */
static void trim(struct journal *journal, struct journal_log *log)
{
    struct journal_chunk **last = &log->first;
    while (*last && (*last)->next)
        last = &(*last)->next;
    if (!*last || length(*last) == (*last)->cap)
        return;
    size_t size = sizeof **last + length(*last), before = sizeof **last + (*last)->cap;
    if (journal->vault) {
        size = vault_shrink(journal->vault, *last, size);
    } else {
        struct journal_chunk *smaller = realloc(*last, size);
        if (!smaller)
            return;
        *last = log->last = smaller;
    }
    (*last)->cap = size - sizeof **last;
    log->memory -= before - size;
}

void journal_settle(struct journal *journal, struct journal_log *log, uint64_t overhead)
{
    uint64_t before = journal_charge(log);
    trim(journal, log);
    uint64_t kept = log->memory + overhead;
    if (log->reserved > kept)
        log->reserved = kept;
    journal->used -= before - journal_charge(log);
    journal->settled += journal_charge(log);
    journal->unread += journal_charge(log);
    log->settled = log->unread = true;
}

void journal_taken(struct journal *journal, struct journal_log *log)
{
    if (log->unread)
        journal->unread -= journal_charge(log);
    log->unread = false;
}

void journal_release(struct journal *journal, struct journal_log *log)
{
    journal_taken(journal, log);
    journal->used -= journal_charge(log);
    if (log->settled)
        journal->settled -= journal_charge(log);
    for (struct journal_chunk *chunk = log->first, *next; chunk; chunk = next) {
        next = chunk->next;
        if (journal->vault)
            vault_give(journal->vault, chunk);
        else
            free(chunk);
    }
    *log = (struct journal_log){0};
}

/* ---- what an earlier process left ---- */

bool journal_is_chunk(const void *block, size_t size, uint64_t *ret_owner, uint32_t *ret_index)
{
    const struct journal_chunk *chunk = block;
    if (size < sizeof *chunk || chunk->magic != MAGIC || length(chunk) > size - sizeof *chunk)
        return false;
    *ret_owner = chunk->owner;
    *ret_index = chunk->index;
    return true;
}

bool journal_restore(struct journal *journal, struct journal_log *log, void *block, size_t size)
{
    struct journal_chunk *chunk = block;
    uint64_t charge = journal_charge(log), len = length(chunk), at = 0;
    if (chunk->index != log->n_chunks)
        return false;
    link_chunk(log, chunk, size);
    while (len - at >= sizeof(struct record)) {
        const struct record *record = (const struct record *)(chunk->data + at);
        if (record->len > len - at - sizeof *record || record_bytes(record->len) > len - at ||
            record->seq != log->count || record->check != check_of(log->owner, record))
            break;
        log->count += record->n_ids;
        log->text_bytes += record->text_bytes;
        at += record_bytes(record->len);
    }
    set_length(chunk, at);
    chunk->end_seq = log->count;
    journal->used += journal_charge(log) - charge;
    return at == len;
}

struct bytes journal_last(const struct journal_log *log)
{
    struct bytes last = {0};
    const struct journal_chunk *chunk = NULL;
    for (const struct journal_chunk *c = log->first; c; c = c->next)
        chunk = length(c) > 0 ? c : chunk; /* the last one may have been begun, and no more */
    for (size_t at = 0; chunk && at < length(chunk);) {
        const struct record *record = (const struct record *)(chunk->data + at);
        last = (struct bytes){record + 1, record->len};
        at += record_bytes(record->len);
    }
    return last;
}

static int page_add(struct journal_page *page, const struct record *record)
{
    if (page->n == page->cap) {
        size_t cap = page->cap ? page->cap * 2 : 64;
        struct bytes *items = realloc(page->items, cap * sizeof *items);
        if (!items)
            return -ENOMEM;
        page->items = items;
        page->cap = cap;
    }
    if (page->n == 0)
        page->from = record->seq;
    page->items[page->n++] = (struct bytes){record + 1, record->len};
    page->next = record->seq + record->n_ids;
    return 0;
}

int journal_read(const struct journal_log *log, uint64_t next, size_t limit, struct journal_page *page)
{
    page->n = 0;
    page->from = page->next = next < log->count ? next : log->count;
    page->done = false;
    page->bytes = 0;
    const struct record *last = NULL;
    for (const struct journal_chunk *chunk = log->first; chunk; chunk = chunk->next) {
        if (chunk->end_seq < next && chunk->next)
            continue;
        for (size_t at = 0; at < length(chunk);) {
            const struct record *record = (const struct record *)(chunk->data + at);
            at += record_bytes(record->len);
            last = record;
            /* A frame without ids (the tail of a text, the end) at `next` may be missing too. */
            if (record->seq < next && record->seq + record->n_ids <= next)
                continue;
            if (page->n > 0 && page->bytes + record->len > limit)
                return 0;
            int r = page_add(page, record);
            if (r < 0)
                return r;
            page->bytes += record->len;
        }
    }
    page->done = true;
    /* It says how the request ended, which who has all ids may not know. */
    return page->n == 0 && log->settled && last ? page_add(page, last) : 0;
}

void journal_page_deinit(struct journal_page *page)
{
    free(page->items);
    *page = (struct journal_page){0};
}
