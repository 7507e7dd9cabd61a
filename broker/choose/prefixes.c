/* SPDX-License-Identifier: MIT */
/* Pieces stand in an array, found through chained hash buckets, in a list by when they were last used. Number
 * 0 is none, so that fresh memory is an empty book, and untouched until it is needed.
 *
 * A prompt's pieces are used from the last to the first: those that more prompts share are the newer ones,
 * and what is forgotten first is the end of a prompt, without which its beginning still has some worth. */

#include "broker/choose/prefixes.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

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
        prefixes->pieces[at].workers |= 1ull << worker;
    }
}

void prefixes_drop(struct prefixes *prefixes, const struct prompt_pieces *prompt, uint32_t from,
                   uint32_t worker)
{
    for (uint32_t i = from; i < prompt->n; i++) {
        uint32_t at = find(prefixes, prompt->hashes[i]);
        if (at != NONE)
            prefixes->pieces[at].workers &= ~(1ull << worker);
    }
}

void prefixes_forget(struct prefixes *prefixes, uint32_t worker)
{
    for (uint32_t i = 1; i <= prefixes->n; i++)
        prefixes->pieces[i].workers &= ~(1ull << worker);
}

void prefixes_store(struct prefixes *prefixes, const struct prompt_pieces *prompt)
{
    for (uint32_t i = 0; i < prompt->n; i++) {
        uint32_t at = find(prefixes, prompt->hashes[i]);
        if (at != NONE)
            prefixes->pieces[at].stored = true;
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
