/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FLEET_BOOK_H
#define GATEWAY_FLEET_BOOK_H

/* Which pools probably have which beginnings of prompts, piece by piece (proto/prompts/pieces.h): what this
 * gateway has sent them, and what they publish (published.h). A piece names at most four pools, the latest
 * first; more would find hardly more. So a pool may be named for a conversation's piece and not for the
 * system prompt's before it, and what counts is the deepest piece that names it: pieces are chained, and
 * caches evict the deepest first. The book has a fixed number of pieces and forgets those that were used
 * least recently. The place of a piece that no pool has any more is the next to be used.
 *
 * Pools are known by numbers from 1 on. What a pool had is forgotten by giving the pool another number. */

#include <stddef.h>
#include <stdint.h>

#include "proto/prompts/pieces.h"

#define BOOK_PIECES  2097152 /* 40 bytes each; memory is used as pieces are added */
#define BOOK_HOLDERS 4
#define BOOK_FOUND   64 /* most pools of one prompt that are found, those of the deepest pieces */

struct book { /* zeroed: empty */
    struct book_piece *pieces;
    uint32_t *buckets;
    uint32_t most,
        n; /* most: 0 before the first piece; set before it, a power of two: another size; n: used */
    uint32_t oldest, newest; /* least and most recently used */
    uint64_t seed; /* set before the first piece: nobody can choose hashes that meet in one bucket */
};

/* ret_pieces[i]: how many leading pieces of the prompt the pool with the number numbers[i] has. */
void book_find(const struct book *book, const struct prompt_pieces *prompt, const uint32_t *numbers, size_t n,
               uint32_t *ret_pieces);

/* The pool processes the prompt, or has. Without memory nothing is remembered. */
void book_add(struct book *book, const struct prompt_pieces *prompt, uint32_t number);

/* The pool does not have the pieces from `from` on after all. */
void book_drop(struct book *book, const struct prompt_pieces *prompt, uint32_t from, uint32_t number);

/* The pool says that it has these pieces, or has them no more. */
void book_note(struct book *book, const uint64_t *hashes, size_t n, uint32_t number);
void book_strike(struct book *book, const uint64_t *hashes, size_t n, uint32_t number);

void book_deinit(struct book *book);

#endif
