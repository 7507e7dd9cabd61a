/* SPDX-License-Identifier: MIT */
/* See book.h. Pieces stand in an array, found through chained hash buckets, in a list by when they were last
 * used. Place 0 is none, so that fresh memory is an empty book. A prompt's pieces are used from the last to
 * the first, so that its end is forgotten before its beginning, which more prompts share. */

#include "gateway/fleet/book.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define NONE   0
#define NOBODY 0 /* pools are numbered from 1 on */

struct book_piece {
    uint64_t hash;
    uint32_t holders[BOOK_HOLDERS]; /* the latest first; NOBODY behind them */
    uint32_t next_in_bucket;
    uint32_t older, newer;
};

/* ---- places ---- */

/* Multiplication by an odd number that nobody knows, of which high bits are used (M. Dietzfelbinger et al.,
 * "A reliable randomized algorithm for the closest-pair problem", 1997): pools send hashes. */
static uint32_t *bucket_of(const struct book *book, uint64_t hash)
{
    const uint64_t mixed = hash * ((book->seed | 1) * 0x9e3779b97f4a7c15u);
    return &book->buckets[mixed >> 40 & (book->most - 1)];
}

static struct book_piece *find(const struct book *book, uint64_t hash)
{
    uint32_t at = book->pieces ? *bucket_of(book, hash) : NONE;
    while (at != NONE && book->pieces[at].hash != hash)
        at = book->pieces[at].next_in_bucket;
    return at != NONE ? &book->pieces[at] : NULL;
}

static void leave_list(struct book *book, const struct book_piece *piece)
{
    *(piece->older != NONE ? &book->pieces[piece->older].newer : &book->oldest) = piece->newer;
    *(piece->newer != NONE ? &book->pieces[piece->newer].older : &book->newest) = piece->older;
}

static void become_newest(struct book *book, struct book_piece *piece)
{
    const uint32_t at = (uint32_t)(piece - book->pieces);
    piece->older = book->newest;
    piece->newer = NONE;
    *(book->newest != NONE ? &book->pieces[book->newest].newer : &book->oldest) = at;
    book->newest = at;
}

static void become_oldest(struct book *book, struct book_piece *piece)
{
    const uint32_t at = (uint32_t)(piece - book->pieces);
    piece->older = NONE;
    piece->newer = book->oldest;
    *(book->oldest != NONE ? &book->pieces[book->oldest].older : &book->newest) = at;
    book->oldest = at;
}

static bool is_empty(const struct book_piece *piece)
{
    return piece->holders[0] == NOBODY;
}

/* That of a piece that nobody has, one that was never used, or the oldest piece's. */
static uint32_t make_place(struct book *book)
{
    const uint32_t at = book->oldest;
    if (book->n < book->most && (at == NONE || !is_empty(&book->pieces[at])))
        return ++book->n;
    uint32_t *link = bucket_of(book, book->pieces[at].hash);
    while (*link != at)
        link = &book->pieces[*link].next_in_bucket;
    *link = book->pieces[at].next_in_bucket;
    leave_list(book, &book->pieces[at]);
    return at;
}

static bool make_memory(struct book *book)
{
    if (book->pieces)
        return true;
    const uint32_t most = book->most > 0 ? book->most : BOOK_PIECES;
    struct book_piece *pieces = calloc((size_t)most + 1, sizeof *pieces);
    uint32_t *buckets = calloc(most, sizeof *buckets);
    if (!pieces || !buckets) {
        free(pieces);
        free(buckets);
        return false;
    }
    book->pieces = pieces;
    book->buckets = buckets;
    book->most = most;
    return true;
}

/* The piece as the latest one, made if need be. */
static struct book_piece *use(struct book *book, uint64_t hash)
{
    struct book_piece *piece = find(book, hash);
    if (piece) {
        leave_list(book, piece);
    } else {
        const uint32_t at = make_place(book);
        uint32_t *bucket = bucket_of(book, hash);
        piece = &book->pieces[at];
        *piece = (struct book_piece){.hash = hash, .next_in_bucket = *bucket};
        *bucket = at;
    }
    become_newest(book, piece);
    return piece;
}

/* ---- who has what ---- */

struct found { /* the pools that a prompt's pieces name */
    size_t n;
    uint32_t numbers[BOOK_FOUND], pieces[BOOK_FOUND];
};

static void note_found(struct found *found, uint32_t number, uint32_t pieces)
{
    if (number == NOBODY || found->n == BOOK_FOUND)
        return;
    for (size_t i = 0; i < found->n; i++)
        if (found->numbers[i] == number)
            return; /* for a deeper piece */
    found->numbers[found->n] = number;
    found->pieces[found->n++] = pieces;
}

static uint32_t pieces_of(const struct found *found, uint32_t number)
{
    for (size_t i = 0; i < found->n; i++)
        if (found->numbers[i] == number)
            return found->pieces[i];
    return 0;
}

void book_find(const struct book *book, const struct prompt_pieces *prompt, const uint32_t *numbers, size_t n,
               uint32_t *ret_pieces)
{
    struct found found = {.n = 0};
    for (uint32_t at = prompt->n; at-- > 0;) {
        const struct book_piece *piece = find(book, prompt->hashes[at]);
        for (int i = 0; piece && i < BOOK_HOLDERS; i++)
            note_found(&found, piece->holders[i], at + 1);
    }
    for (size_t i = 0; i < n; i++)
        ret_pieces[i] = pieces_of(&found, numbers[i]);
}

static void remove_holder(struct book_piece *piece, uint32_t number)
{
    int kept = 0;
    for (int i = 0; i < BOOK_HOLDERS; i++)
        if (piece->holders[i] != number)
            piece->holders[kept++] = piece->holders[i];
    while (kept < BOOK_HOLDERS)
        piece->holders[kept++] = NOBODY;
}

static void add_holder(struct book_piece *piece, uint32_t number)
{
    remove_holder(piece, number);
    memmove(&piece->holders[1], &piece->holders[0], (BOOK_HOLDERS - 1) * sizeof *piece->holders);
    piece->holders[0] = number;
}

void book_add(struct book *book, const struct prompt_pieces *prompt, uint32_t number)
{
    if (!make_memory(book))
        return;
    for (uint32_t i = prompt->n; i-- > 0;)
        add_holder(use(book, prompt->hashes[i]), number);
}

void book_drop(struct book *book, const struct prompt_pieces *prompt, uint32_t from, uint32_t number)
{
    if (from < prompt->n)
        book_strike(book, &prompt->hashes[from], prompt->n - from, number);
}

void book_note(struct book *book, const uint64_t *hashes, size_t n, uint32_t number)
{
    if (!make_memory(book))
        return;
    for (size_t i = 0; i < n; i++)
        add_holder(use(book, hashes[i]), number);
}

void book_strike(struct book *book, const uint64_t *hashes, size_t n, uint32_t number)
{
    for (size_t i = 0; i < n; i++) {
        struct book_piece *piece = find(book, hashes[i]);
        if (!piece || is_empty(piece))
            continue;
        remove_holder(piece, number);
        if (!is_empty(piece))
            continue;
        leave_list(book, piece);
        become_oldest(book, piece);
    }
}

void book_deinit(struct book *book)
{
    free(book->pieces);
    free(book->buckets);
    *book = (struct book){0};
}
