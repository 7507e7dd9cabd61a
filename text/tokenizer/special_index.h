/* SPDX-License-Identifier: MIT */
#ifndef TEXT_TOKENIZER_SPECIAL_INDEX_H
#define TEXT_TOKENIZER_SPECIAL_INDEX_H

/* Finds the special tokens that start at a position of a text, the longest first, with one automaton for all.
 *
 * Private to special.c. Immutable after creation. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text/tokenizer/vocabulary.h"

/* The set of tokens to look for: those that always count, or all. */
enum special_set { SPECIAL_USER_DEFINED, SPECIAL_ALL };

struct special_node;
struct special_edge;

struct special_index {
    struct special_node *nodes; /* [0] is the root */
    uint32_t n, cap;
    struct special_edge *edges; /* hash table, open addressing */
    uint32_t edge_mask;
    uint32_t from_root[256]; /* a copy of the root's edges, which serve most bytes of a text; 0: none */
};

/* Builds the automaton from a vocabulary. Spellings that are empty or not UTF-8 cannot occur in a text and
 * are omitted. 0; -ENOMEM; -E2BIG if there are implausibly many. Zeroed on failure. */
int special_index_init(struct special_index *index, const struct vocabulary *vocabulary);
void special_index_deinit(struct special_index *index);

/* Feeds one byte and returns the new state. Feed the bytes of a text from its end to its start, beginning in
 * state 0. Adds the work to *steps; it is O(1) per byte, amortized. */
uint32_t special_index_step(const struct special_index *index, uint32_t state, uint8_t byte, size_t *steps);

/* Finds the longest token of the set that starts at the byte last fed and has at most `limit` bytes. `state`
 * is the current state, or the result of an earlier call. Returns a state for the next two functions, or 0.
 * O(log n) for n tokens that start there. */
uint32_t special_index_longest(const struct special_index *index, uint32_t state, enum special_set set,
                               uint32_t limit);
uint32_t special_index_len(const struct special_index *index, uint32_t state);
int32_t special_index_id(const struct special_index *index, uint32_t state);

#endif
