/* SPDX-License-Identifier: MIT */
#ifndef TEXT_GRAMMAR_MACHINE_MASK_H
#define TEXT_GRAMMAR_MACHINE_MASK_H

/* The tokens of the vocabulary that may follow a state. */

#include "text/grammar/machine/machine.h"
#include "text/grammar/token_trie.h"

/* Words of a mask over n ids: bit id % 32 of word id / 32. */
static inline uint32_t mask_words(uint32_t n_vocab)
{
    return n_vocab / 32 + (n_vocab % 32 != 0);
}

/* Writes ret_bits [mask_words(trie->n_vocab)]: set for each id after whose bytes the text can continue or
 * end. 0, MACHINE_E_LIMIT, -ENOMEM. Use one trie per machine, which caches its masks. */
int mask_of(struct machine *machine, const struct token_trie *trie, uint32_t state, uint32_t *ret_bits);

#endif
