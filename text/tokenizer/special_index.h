/* SPDX-License-Identifier: MIT */
#ifndef TEXT_TOKENIZER_SPECIAL_INDEX_H
#define TEXT_TOKENIZER_SPECIAL_INDEX_H

/* Which special tokens begin at a place of a text, longest first: one automaton for all of them.
 *
 * Private to special.c. Immutable after creation. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text/tokenizer/vocabulary.h"

/* Two sets of tokens are kept apart: those that always count, and all. */
enum special_set { SPECIAL_USER_DEFINED, SPECIAL_ALL };

struct special_node;
struct special_edge;

struct special_index {
    struct special_node *nodes; /* [0] is the root */
    uint32_t n, cap;
    struct special_edge *edges; /* hash table, open addressing */
    uint32_t edge_mask;
    uint32_t from_root[256]; /* the root's edges again: most bytes of a text ask for no more; 0: none */
};

/* Collects them from the vocabulary. Spellings that are empty or not UTF-8 never occur in a text and are left
 * out. 0, -ENOMEM, or -E2BIG when there is more of them than any vocabulary has; all zero on failure. */
int special_index_init(struct special_index *index, const struct vocabulary *vocabulary);
void special_index_deinit(struct special_index *index);

/* Reads a text from its end: one step for each byte, from state 0. The new state; *steps grows by the work
 * done, which is O(1) a byte on the average. */
uint32_t special_index_step(const struct special_index *index, uint32_t state, uint8_t byte, size_t *steps);

/* The longest token of the set, of at most `limit` bytes, that begins at the byte which led to this state (or
 * to the state that an earlier call returned): a state whose length and id can be asked for, or 0. O(log n)
 * in the number of tokens that begin there. */
uint32_t special_index_longest(const struct special_index *index, uint32_t state, enum special_set set,
                               uint32_t limit);
uint32_t special_index_len(const struct special_index *index, uint32_t state);
int32_t special_index_id(const struct special_index *index, uint32_t state);

#endif
