/* SPDX-License-Identifier: MIT */
#ifndef TEXT_GRAMMAR_TOKEN_TRIE_H
#define TEXT_GRAMMAR_TOKEN_TRIE_H

/* The vocabulary as a trie over the bytes that tokens add to a text.
 *
 * Nodes are in depth-first order, so a walk can skip the subtree of a node. Tokens that add no text, such as
 * control tokens, are not in it. Immutable. */

#include <stdint.h>

#include "text/tokenizer/tokenizer.h"

struct token_trie {
    uint32_t n_nodes; /* without the root, which has no byte and no token */
    uint8_t *bytes;   /* [n_nodes]: the byte that leads to a node */
    uint8_t *depths;  /* [n_nodes]: bytes from the root, ≥ 1 */
    uint32_t *skips;  /* [n_nodes]: the node after the node's subtree */
    uint32_t *firsts; /* [n_nodes + 1]: a node's ids are ids[firsts[i] … firsts[i + 1] − 1] */
    int32_t *ids;
    uint32_t n_vocab;
};

#define TOKEN_TRIE_MOST_BYTES 255 /* of a token; longer ones are omitted */

/* Ignores ids from n_vocab on. 0 or -ENOMEM. */
int token_trie_make(const struct tokenizer *tokenizer, uint32_t n_vocab, struct token_trie *ret_trie);
void token_trie_deinit(struct token_trie *trie);

#endif
