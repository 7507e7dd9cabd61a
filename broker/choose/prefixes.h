/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CHOOSE_PREFIXES_H
#define BROKER_CHOOSE_PREFIXES_H

/* Remembers which worker has processed which beginnings of prompts, and which of them the prefix store has,
 * by the hashes of their pieces (proto/prompts/pieces.h). The table holds a fixed number of pieces and
 * forgets the least recently used ones. */

#include <stdint.h>

#include "proto/prompts/pieces.h"

#define PREFIXES_MOST_WORKERS 64

struct prefixes { /* zeroed: knows nothing, and learns nothing */
    struct known_piece *pieces;
    uint32_t *buckets;
    uint32_t mask, most, n;
    uint32_t oldest, newest; /* least and most recently used */
};

/* Room for `most` pieces of about 36 bytes; memory is used as pieces are added. 0 or -ENOMEM. */
int prefixes_init(struct prefixes *prefixes, uint32_t most);
void prefixes_deinit(struct prefixes *prefixes);

/* ret_n[w]: how many leading pieces of the prompt worker w has, for the first n_workers. */
void prefixes_find(const struct prefixes *prefixes, const struct prompt_pieces *prompt, uint32_t n_workers,
                   uint32_t *ret_n);

/* The worker processes, or has processed, all pieces of the prompt. */
void prefixes_add(struct prefixes *prefixes, const struct prompt_pieces *prompt, uint32_t worker);

/* The worker does not have the pieces from `from` on after all. */
void prefixes_drop(struct prefixes *prefixes, const struct prompt_pieces *prompt, uint32_t from,
                   uint32_t worker);

/* The worker's process is gone: forgets what it had. */
void prefixes_forget(struct prefixes *prefixes, uint32_t worker);

/* The workers' prefix store has all pieces of the prompt too, even after the worker that processed them. */
void prefixes_store(struct prefixes *prefixes, const struct prompt_pieces *prompt);

/* How many leading pieces of the prompt the store has. */
uint32_t prefixes_stored(const struct prefixes *prefixes, const struct prompt_pieces *prompt);

#endif
