/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CHOOSE_PREFIXES_H
#define BROKER_CHOOSE_PREFIXES_H

/* Remembers which worker has read which beginnings of prompts, and which of them the prefix store has.
 *
 * The broker has no tokenizer, so a prompt is cut into pieces of equal bytes. A piece stands for itself and
 * everything before it: its hash includes the previous hash, and the first one the form of the prompt, its
 * space and its salt (request_set_cache_space). Only hashes are compared. A collision would merely send a
 * request to a worker without its prefix: the worker's own cache compares ids. The book holds a fixed number
 * of pieces, and forgets those not asked for the longest. */

#include <stdint.h>

#include "proto/message.h"

#define PREFIXES_PIECE_BYTES  256
#define PREFIXES_PIECE_TOKENS 64   /* of a prompt of ids exactly; of a text, roughly */
#define PREFIXES_MOST_PIECES  4096 /* of one prompt: what stands behind the first MiB is not looked at */
#define PREFIXES_MOST_WORKERS 64

/* The pieces of a prompt, one hash each; one block of memory, which free() frees. */
struct prompt_pieces {
    uint32_t n;
    uint64_t hashes[];
};

/* Cuts a prompt; the end that fills no piece is left out. NULL when there is none: the prompt is shorter, or
 * not to be cached, or out of memory. The secret keeps clients from choosing prompts of equal hashes. */
struct prompt_pieces *prefixes_cut(const struct generation *generation, uint64_t secret);

struct prefixes { /* zeroed: knows nothing, and learns nothing */
    struct known_piece *pieces;
    uint32_t *buckets;
    uint32_t mask, most, n;
    uint32_t oldest, newest; /* used */
};

/* Room for `most` pieces, about 36 bytes each, taken from the kernel as they come. 0 or -ENOMEM. */
int prefixes_init(struct prefixes *prefixes, uint32_t most);
void prefixes_deinit(struct prefixes *prefixes);

/* How many pieces of the prompt each of the first n_workers has, from its beginning on. */
void prefixes_find(const struct prefixes *prefixes, const struct prompt_pieces *prompt, uint32_t n_workers,
                   uint32_t *ret_n);

/* The worker reads, or has read, all of them. */
void prefixes_add(struct prefixes *prefixes, const struct prompt_pieces *prompt, uint32_t worker);

/* It has not read them after all, from the piece `from` on. */
void prefixes_drop(struct prefixes *prefixes, const struct prompt_pieces *prompt, uint32_t from,
                   uint32_t worker);

/* The worker is gone, and what it had with it. */
void prefixes_forget(struct prefixes *prefixes, uint32_t worker);

/* The prefix store that workers share has all of them too, whatever becomes of the worker that read them. */
void prefixes_store(struct prefixes *prefixes, const struct prompt_pieces *prompt);

/* How many pieces of the prompt the store has, from its beginning on. */
uint32_t prefixes_stored(const struct prefixes *prefixes, const struct prompt_pieces *prompt);

#endif
