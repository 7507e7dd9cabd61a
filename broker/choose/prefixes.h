/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CHOOSE_PREFIXES_H
#define BROKER_CHOOSE_PREFIXES_H

/* Remembers which worker has processed which prompt prefixes, and which of them the prefix store has, by the
 * hashes of their pieces (proto/prompts/pieces.h). The table holds a fixed number of pieces and forgets the
 * least recently used ones. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/prompts/pieces.h"

#define PREFIXES_MOST_WORKERS 64
#define PREFIXES_CHANGES      65536 /* how many recent changes are remembered */

struct prefixes { /* zeroed: knows nothing, and learns nothing */
    struct known_piece *pieces;
    uint32_t *buckets;
    uint32_t mask, most, n;
    uint32_t oldest, newest; /* least and most recently used */
    uint64_t *changes;       /* [PREFIXES_CHANGES], hashes; NULL: changes are not numbered */
    uint64_t next_change;    /* the number of the next change; the first number is random */
    uint32_t n_had;          /* pieces that some worker or the store has, while changes are numbered */
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

/* ---- for readers that keep a copy of what all workers together have ----
 *
 * A change is a piece that some worker or the store now has, or that none has any more. A reader that knows
 * all changes up to a number asks for the later ones. Any other reader notes the number of the next change,
 * scans the book, and then asks for the changes from that number on. */

/* Begins to number changes, from a random number on, so that a reader that knows the book of another broker
 * is not taken for one that knows this book. 0; -ENOMEM, or -EAGAIN without random numbers. */
int prefixes_publish(struct prefixes *prefixes);

/* Whether the changes from this number on are remembered. */
bool prefixes_remembers(const struct prefixes *prefixes, uint64_t from);

struct prefixes_delta {
    uint64_t *added, *dropped; /* the caller's; both have room for `most` hashes */
    size_t n_added, n_dropped;
};

/* At most `most` changes from this number on, which must be remembered. A piece that changed several times is
 * reported in its present state. Returns the number of the first change not included. */
uint64_t prefixes_changes(const struct prefixes *prefixes, uint64_t from, size_t most,
                          struct prefixes_delta *ret_delta);

/* At most `most` of the pieces that some worker or the store has, from place `at` on (0: the first). Returns
 * the place at which to continue; 0: there are no more. */
uint32_t prefixes_scan(const struct prefixes *prefixes, uint32_t at, size_t most, uint64_t *ret_hashes,
                       size_t *ret_n);

#endif
