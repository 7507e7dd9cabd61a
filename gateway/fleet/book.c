/* SPDX-License-Identifier: MIT */
/* See book.h. uthash keeps its entries in the order of their addition: one that is used is taken out and
 * added again, so the first is the one that was used least recently. A prompt's pieces are used from the last
 * to the first, so that its end is forgotten before its beginning, which more prompts share. */

#include "gateway/fleet/book.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#define NOBODY 0 /* pools are numbered from 1 on */

struct book_piece {
    uint64_t hash;
    uint32_t holders[BOOK_HOLDERS]; /* the latest first; NOBODY behind them */
    UT_hash_handle hh;
};

static struct book_piece *find(const struct book *book, uint64_t hash)
{
    struct book_piece *piece;
    HASH_FIND(hh, book->pieces, &hash, sizeof hash, piece);
    return piece;
}

void book_find(const struct book *book, const struct prompt_pieces *prompt, const uint32_t *numbers, size_t n,
               uint32_t *ret_pieces)
{
    size_t left = n;
    memset(ret_pieces, 0, n * sizeof *ret_pieces);
    for (uint32_t at = prompt->n; at-- > 0 && left > 0;) {
        const struct book_piece *piece = find(book, prompt->hashes[at]);
        if (!piece)
            continue;
        for (size_t i = 0; i < n; i++) {
            bool has = false;
            for (int j = 0; j < BOOK_HOLDERS; j++)
                has |= piece->holders[j] == numbers[i];
            if (!has || ret_pieces[i] > 0)
                continue;
            ret_pieces[i] = at + 1;
            left--;
        }
    }
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

static void forget(struct book *book, struct book_piece *piece)
{
    HASH_DEL(book->pieces, piece);
    free(piece);
}

/* The piece as the latest one, made if need be; NULL when out of memory. */
static struct book_piece *use(struct book *book, uint64_t hash)
{
    struct book_piece *piece = find(book, hash);
    if (piece)
        HASH_DEL(book->pieces, piece);
    else if (HASH_COUNT(book->pieces) >= BOOK_PIECES)
        forget(book, book->pieces);
    if (!piece && !(piece = calloc(1, sizeof *piece)))
        return NULL;
    piece->hash = hash;
    HASH_ADD(hh, book->pieces, hash, sizeof piece->hash, piece);
    if (piece->hh.tbl)
        return piece;
    free(piece);
    return NULL;
}

void book_add(struct book *book, const struct prompt_pieces *prompt, uint32_t number)
{
    for (uint32_t i = prompt->n; i-- > 0;) {
        struct book_piece *piece = use(book, prompt->hashes[i]);
        if (piece)
            add_holder(piece, number);
    }
}

void book_drop(struct book *book, const struct prompt_pieces *prompt, uint32_t from, uint32_t number)
{
    for (uint32_t i = from; i < prompt->n; i++) {
        struct book_piece *piece = find(book, prompt->hashes[i]);
        if (piece)
            remove_holder(piece, number);
    }
}

void book_forget(struct book *book, uint32_t number)
{
    struct book_piece *piece, *next;
    HASH_ITER(hh, book->pieces, piece, next)
    {
        remove_holder(piece, number);
        if (piece->holders[0] == NOBODY)
            forget(book, piece);
    }
}

void book_deinit(struct book *book)
{
    struct book_piece *piece, *next;
    HASH_ITER(hh, book->pieces, piece, next)
    {
        forget(book, piece);
    }
}
