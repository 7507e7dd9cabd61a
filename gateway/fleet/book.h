/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FLEET_BOOK_H
#define GATEWAY_FLEET_BOOK_H

/* Records which pools probably have which prompt prefixes, piece by piece (proto/prompts/pieces.h): what this
 * gateway has sent them, and what they publish (published.h). A piece names at most four pools, the latest
 * first; naming more would find few more hits. So a pool may be named by a piece of a conversation but not by
 * the pieces of the system prompt before it. The deepest piece that names it counts: pieces are chained, and
 * caches evict the deepest first. The book holds a fixed number of pieces and forgets the least recently used
 * ones. The place of a piece that no pool has any more is reused first.
 *
 * Pools are identified by numbers from 1 on. To forget what a pool had, give the pool another number. */

#include <stddef.h>
#include <stdint.h>

#include "proto/prompts/pieces.h"

#define BOOK_PIECES  2097152 /* 40 bytes each; memory is used as pieces are added */
#define BOOK_HOLDERS 4
#define BOOK_FOUND   64 /* the most pools found for one prompt: those of the deepest pieces */

struct book { /* zeroed: empty */
    struct book_piece *pieces;
    uint32_t *buckets;
    uint32_t most, n;        /* places, 0 before the first piece (or set before, a power of two); used ones */
    uint32_t oldest, newest; /* least and most recently used */
    uint64_t seed; /* set before the first piece: nobody can choose hashes that collide in one bucket */
};

/* ret_pieces[i]: how many leading pieces of the prompt the pool with the number numbers[i] has. */
void book_find(const struct book *book, const struct prompt_pieces *prompt, const uint32_t *numbers, size_t n,
               uint32_t *ret_pieces);

/* The pool processes the prompt, or has processed it. If out of memory, nothing is remembered. */
void book_add(struct book *book, const struct prompt_pieces *prompt, uint32_t number);

/* The pool does not have the pieces from `from` on after all. */
void book_drop(struct book *book, const struct prompt_pieces *prompt, uint32_t from, uint32_t number);

/* The pool says that it has these pieces, or no longer has them. */
void book_note(struct book *book, const uint64_t *hashes, size_t n, uint32_t number);
void book_strike(struct book *book, const uint64_t *hashes, size_t n, uint32_t number);

void book_deinit(struct book *book);

#endif
