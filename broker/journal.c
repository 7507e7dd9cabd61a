/* SPDX-License-Identifier: MIT */
/* The journal's memory.
 *
 * A log is a list of chunks that double from 512 bytes to 32 KiB, so a short request is cheap and a long one
 * costs an allocation in hundreds of frames. A chunk holds records back to back: a small header, the frame,
 * padding to 8 bytes. Records never move, so a page may point into them.
 *
 * What a log is charged is max(reserved, memory): as long as it stays within its reservation, appending never
 * touches the common purse and cannot fail for lack of it. */

#include "broker/journal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_MIN ((size_t)512)
#define CHUNK_MAX ((size_t)32 << 10)

/* A frame of one token: its msgpack keys and numbers take about 100 bytes, the record's header 16, and the
 * rest is text and the unused end of the last chunk. */
#define TOKEN_BYTES   192
#define LOGPROB_BYTES 12
#define END_BYTES     1024 /* the end frame: usage, timing, an error text */

struct journal_chunk {
    struct journal_chunk *next;
    uint64_t end_seq; /* ids of the log up to the end of this chunk */
    size_t len, cap;
    uint8_t data[];
};

struct record {
    uint64_t seq; /* index of the frame's first id */
    uint32_t n_ids;
    uint32_t len; /* of the frame that follows */
};

static size_t record_bytes(size_t len)
{
    return sizeof(struct record) + ((len + 7) & ~(size_t)7);
}

uint64_t journal_charge(const struct journal_log *log)
{
    return log->reserved > log->memory ? log->reserved : log->memory;
}

uint64_t journal_worst_case(uint32_t max_tokens, uint32_t logprobs, uint64_t overhead)
{
    return overhead + END_BYTES + (uint64_t)max_tokens * (TOKEN_BYTES + (uint64_t)logprobs * LOGPROB_BYTES);
}

bool journal_could_hold(const struct journal *journal, uint64_t bytes)
{
    uint64_t alive = journal->used - journal->settled;
    return bytes <= journal->limit && alive <= journal->limit - bytes;
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

/* The size of the chunk that a record of `need` bytes would have to be added in; 0: the last one has room. */
static size_t next_chunk(const struct journal_log *log, size_t need)
{
    if (log->last && log->last->cap - log->last->len >= need)
        return 0;
    size_t cap = log->last ? log->last->cap * 2 : CHUNK_MIN;
    if (cap > CHUNK_MAX)
        cap = CHUNK_MAX;
    return cap < need ? need : cap;
}

static uint64_t growth_by_chunk(const struct journal_log *log, size_t cap)
{
    uint64_t memory = log->memory + sizeof(struct journal_chunk) + cap;
    return memory > journal_charge(log) ? memory - journal_charge(log) : 0;
}

uint64_t journal_growth(const struct journal_log *log, size_t len)
{
    size_t cap = next_chunk(log, record_bytes(len));
    return cap > 0 ? growth_by_chunk(log, cap) : 0;
}

static int add_chunk(struct journal *journal, struct journal_log *log, size_t cap)
{
    uint64_t more = growth_by_chunk(log, cap);
    if (more > 0 && !journal_has_room(journal, more))
        return JOURNAL_E_FULL;
    struct journal_chunk *chunk = malloc(sizeof *chunk + cap);
    if (!chunk)
        return -ENOMEM;
    *chunk = (struct journal_chunk){.end_seq = log->count, .cap = cap};
    if (log->last)
        log->last->next = chunk;
    else
        log->first = chunk;
    log->last = chunk;
    log->memory += sizeof *chunk + cap;
    journal->used += more;
    return 0;
}

int journal_append(struct journal *journal, struct journal_log *log, uint32_t n_ids, uint32_t text_bytes,
                   const void *frame, size_t len)
{
    size_t need = record_bytes(len), cap = next_chunk(log, need);
    int r = cap > 0 ? add_chunk(journal, log, cap) : 0;
    if (r != 0)
        return r;
    struct journal_chunk *chunk = log->last;
    struct record *record = (struct record *)(chunk->data + chunk->len);
    *record = (struct record){.seq = log->count, .n_ids = n_ids, .len = (uint32_t)len};
    memcpy(record + 1, frame, len);
    chunk->len += need;
    log->count += n_ids;
    log->text_bytes += text_bytes;
    chunk->end_seq = log->count;
    return 0;
}

/* Gives the unused end of the last chunk back to the allocator. */
static void trim(struct journal_log *log)
{
    struct journal_chunk **last = &log->first;
    while (*last && (*last)->next)
        last = &(*last)->next;
    if (!*last || (*last)->len == (*last)->cap)
        return;
    struct journal_chunk *smaller = realloc(*last, sizeof *smaller + (*last)->len);
    if (!smaller)
        return;
    log->memory -= smaller->cap - smaller->len;
    smaller->cap = smaller->len;
    *last = log->last = smaller;
}

void journal_settle(struct journal *journal, struct journal_log *log, uint64_t overhead)
{
    uint64_t before = journal_charge(log);
    trim(log);
    uint64_t kept = log->memory + overhead;
    if (log->reserved > kept)
        log->reserved = kept;
    journal->used -= before - journal_charge(log);
    journal->settled += journal_charge(log);
    log->settled = true;
}

void journal_release(struct journal *journal, struct journal_log *log)
{
    journal->used -= journal_charge(log);
    if (log->settled)
        journal->settled -= journal_charge(log);
    for (struct journal_chunk *chunk = log->first, *next; chunk; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    *log = (struct journal_log){0};
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
    for (const struct journal_chunk *chunk = log->first; chunk; chunk = chunk->next) {
        if (chunk->end_seq < next)
            continue;
        for (size_t at = 0; at < chunk->len;) {
            const struct record *record = (const struct record *)(chunk->data + at);
            at += record_bytes(record->len);
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
    return 0;
}

void journal_page_deinit(struct journal_page *page)
{
    free(page->items);
    *page = (struct journal_page){0};
}
