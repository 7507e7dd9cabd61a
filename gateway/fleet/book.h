/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FLEET_BOOK_H
#define GATEWAY_FLEET_BOOK_H

/* Which pools probably have which beginnings of prompts: what this gateway has sent them, piece by piece
 * (proto/prompts/pieces.h). A piece names at most four pools, the latest first; more would find hardly more.
 * So a pool may be named for a conversation's piece and not for the system prompt's before it, and what
 * counts is the deepest piece that names it: pieces are chained, and caches evict the deepest first. The book
 * has a fixed number of pieces and forgets those that were used least recently. */

#include <stddef.h>
#include <stdint.h>

#include "proto/prompts/pieces.h"

#define BOOK_PIECES  131072 /* about 96 bytes each */
#define BOOK_HOLDERS 4

struct book { /* zeroed: empty */
    struct book_piece *pieces;
};

/* ret_pieces[i]: how many leading pieces of the prompt the pool with the number numbers[i] has. */
void book_find(const struct book *book, const struct prompt_pieces *prompt, const uint32_t *numbers, size_t n,
               uint32_t *ret_pieces);

/* The pool processes the prompt, or has. Without memory less is remembered. */
void book_add(struct book *book, const struct prompt_pieces *prompt, uint32_t number);

/* The pool does not have the pieces from `from` on after all. */
void book_drop(struct book *book, const struct prompt_pieces *prompt, uint32_t from, uint32_t number);

/* Forgets what a pool had: it is gone. */
void book_forget(struct book *book, uint32_t number);

void book_deinit(struct book *book);

#endif
