/* SPDX-License-Identifier: MIT */
/* Pieces stand in an array, found through chained hash buckets, in a list by when they were last used. Number
 * 0 is none, so that fresh memory is an empty book, and untouched until it is needed.
 *
 * A prompt's pieces are used from the last to the first: those that more prompts share are the newer ones,
 * and what is forgotten first is the end of a prompt, without which its beginning still has some worth.
 *
 * Changes are remembered as the hashes of their pieces, in a ring; whether a piece was added or dropped is
 * looked up when somebody asks. So a copy is right when it has the last change of each piece, and a scan may
 * take its time: what changes meanwhile has a later number. */

#include "broker/choose/prefixes.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/random.h>

#define NONE 0

struct known_piece {
    uint64_t hash;
    uint64_t workers; /* a bit for each that has it */
    uint32_t next_in_bucket;
    uint32_t older, newer;
    bool stored;
};

/* ---- life ---- */

int prefixes_init(struct prefixes *prefixes, uint32_t most)
{
    *prefixes = (struct prefixes){.most = most, .mask = 1};
    while (prefixes->mask < most)
        prefixes->mask = prefixes->mask * 2 + 1;
    prefixes->pieces = calloc((size_t)most + 1, sizeof *prefixes->pieces);
    prefixes->buckets = calloc((size_t)prefixes->mask + 1, sizeof *prefixes->buckets);
    if (prefixes->pieces && prefixes->buckets)
        return 0;
    prefixes_deinit(prefixes);
    return -ENOMEM;
}

void prefixes_deinit(struct prefixes *prefixes)
{
    free(prefixes->pieces);
    free(prefixes->buckets);
    free(prefixes->changes);
    *prefixes = (struct prefixes){0};
}

/* ---- places ---- */

static uint32_t find(const struct prefixes *prefixes, uint64_t hash)
{
    uint32_t at = prefixes->n > 0 ? prefixes->buckets[hash & prefixes->mask] : NONE;
    while (at != NONE && prefixes->pieces[at].hash != hash)
        at = prefixes->pieces[at].next_in_bucket;
    return at;
}

static void leave_list(struct prefixes *prefixes, uint32_t at)
{
    const struct known_piece *piece = &prefixes->pieces[at];
    *(piece->older != NONE ? &prefixes->pieces[piece->older].newer : &prefixes->oldest) = piece->newer;
    *(piece->newer != NONE ? &prefixes->pieces[piece->newer].older : &prefixes->newest) = piece->older;
}

static void become_newest(struct prefixes *prefixes, uint32_t at)
{
    struct known_piece *piece = &prefixes->pieces[at];
    piece->older = prefixes->newest;
    piece->newer = NONE;
    *(prefixes->newest != NONE ? &prefixes->pieces[prefixes->newest].newer : &prefixes->oldest) = at;
    prefixes->newest = at;
}

static bool is_had(const struct known_piece *piece)
{
    return piece->workers != 0 || piece->stored;
}

/* Whether somebody has the piece may have changed. */
static void note_change(struct prefixes *prefixes, const struct known_piece *piece, bool was_had)
{
    if (!prefixes->changes || is_had(piece) == was_had)
        return;
    prefixes->changes[prefixes->next_change++ % PREFIXES_CHANGES] = piece->hash;
    prefixes->n_had += was_had ? -1 : 1;
}

/* Changes who has it. */
static void set_holders(struct prefixes *prefixes, uint32_t at, uint64_t workers, bool stored)
{
    struct known_piece *piece = &prefixes->pieces[at];
    const bool was_had = is_had(piece);
    piece->workers = workers;
    piece->stored = stored;
    note_change(prefixes, piece, was_had);
}

/* A place for a new piece: one that was never used, or the oldest one's. */
static uint32_t make_place(struct prefixes *prefixes)
{
    if (prefixes->n < prefixes->most)
        return ++prefixes->n;
    uint32_t at = prefixes->oldest;
    uint32_t *link = &prefixes->buckets[prefixes->pieces[at].hash & prefixes->mask];
    while (*link != at)
        link = &prefixes->pieces[*link].next_in_bucket;
    *link = prefixes->pieces[at].next_in_bucket;
    leave_list(prefixes, at);
    set_holders(prefixes, at, 0, false);
    return at;
}

static uint32_t add_piece(struct prefixes *prefixes, uint64_t hash)
{
    uint32_t at = make_place(prefixes), *bucket = &prefixes->buckets[hash & prefixes->mask];
    prefixes->pieces[at] = (struct known_piece){.hash = hash, .next_in_bucket = *bucket};
    *bucket = at;
    return at;
}

/* ---- who has what ---- */

void prefixes_find(const struct prefixes *prefixes, const struct prompt_pieces *prompt, uint32_t n_workers,
                   uint32_t *ret_n)
{
    uint64_t left = n_workers < 64 ? (1ull << n_workers) - 1 : UINT64_MAX;
    for (uint32_t i = 0; left != 0; i++) {
        uint32_t at = i < prompt->n ? find(prefixes, prompt->hashes[i]) : NONE;
        uint64_t have = at != NONE ? prefixes->pieces[at].workers : 0;
        for (uint64_t rest = left & ~have; rest != 0; rest &= rest - 1)
            ret_n[__builtin_ctzll(rest)] = i;
        left &= have;
    }
}

void prefixes_add(struct prefixes *prefixes, const struct prompt_pieces *prompt, uint32_t worker)
{
    if (prefixes->most == 0)
        return;
    for (uint32_t i = prompt->n; i-- > 0;) {
        uint32_t at = find(prefixes, prompt->hashes[i]);
        if (at != NONE)
            leave_list(prefixes, at);
        else
            at = add_piece(prefixes, prompt->hashes[i]);
        become_newest(prefixes, at);
        set_holders(prefixes, at, prefixes->pieces[at].workers | 1ull << worker, prefixes->pieces[at].stored);
    }
}

static void remove_worker(struct prefixes *prefixes, uint32_t at, uint32_t worker)
{
    const struct known_piece *piece = &prefixes->pieces[at];
    set_holders(prefixes, at, piece->workers & ~(1ull << worker), piece->stored);
}

void prefixes_drop(struct prefixes *prefixes, const struct prompt_pieces *prompt, uint32_t from,
                   uint32_t worker)
{
    for (uint32_t i = from; i < prompt->n; i++) {
        uint32_t at = find(prefixes, prompt->hashes[i]);
        if (at != NONE)
            remove_worker(prefixes, at, worker);
    }
}

void prefixes_forget(struct prefixes *prefixes, uint32_t worker)
{
    for (uint32_t i = 1; i <= prefixes->n; i++)
        remove_worker(prefixes, i, worker);
}

void prefixes_store(struct prefixes *prefixes, const struct prompt_pieces *prompt)
{
    for (uint32_t i = 0; i < prompt->n; i++) {
        uint32_t at = find(prefixes, prompt->hashes[i]);
        if (at != NONE)
            set_holders(prefixes, at, prefixes->pieces[at].workers, true);
    }
}

uint32_t prefixes_stored(const struct prefixes *prefixes, const struct prompt_pieces *prompt)
{
    uint32_t n = 0;
    for (; n < prompt->n; n++) {
        uint32_t at = find(prefixes, prompt->hashes[n]);
        if (at == NONE || !prefixes->pieces[at].stored)
            break;
    }
    return n;
}

/* ---- copies ---- */

int prefixes_publish(struct prefixes *prefixes)
{
    uint64_t random;
    if (getrandom(&random, sizeof random, 0) != sizeof random)
        return -EAGAIN;
    prefixes->changes = calloc(PREFIXES_CHANGES, sizeof *prefixes->changes);
    prefixes->next_change = 1 + (random >> 1);
    return prefixes->changes ? 0 : -ENOMEM;
}

bool prefixes_remembers(const struct prefixes *prefixes, uint64_t from)
{
    return from > 0 && from <= prefixes->next_change && prefixes->next_change - from <= PREFIXES_CHANGES;
}

uint64_t prefixes_changes(const struct prefixes *prefixes, uint64_t from, size_t most,
                          struct prefixes_delta *ret_delta)
{
    ret_delta->n_added = ret_delta->n_dropped = 0;
    for (; from < prefixes->next_change && most > 0; from++, most--) {
        const uint64_t hash = prefixes->changes[from % PREFIXES_CHANGES];
        const uint32_t at = find(prefixes, hash);
        if (at != NONE && is_had(&prefixes->pieces[at]))
            ret_delta->added[ret_delta->n_added++] = hash;
        else
            ret_delta->dropped[ret_delta->n_dropped++] = hash;
    }
    return from;
}

uint32_t prefixes_scan(const struct prefixes *prefixes, uint32_t at, size_t most, uint64_t *ret_hashes,
                       size_t *ret_n)
{
    *ret_n = 0;
    for (at = at > 0 ? at : 1; at <= prefixes->n; at++) {
        if (*ret_n == most)
            return at;
        if (is_had(&prefixes->pieces[at]))
            ret_hashes[(*ret_n)++] = prefixes->pieces[at].hash;
    }
    return 0;
}
