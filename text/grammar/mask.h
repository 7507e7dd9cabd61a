/* SPDX-License-Identifier: MIT */
#ifndef TEXT_GRAMMAR_MASK_H
#define TEXT_GRAMMAR_MASK_H

/* Which tokens of the vocabulary may follow a state. */

#include "text/grammar/machine.h"
#include "text/grammar/token_trie.h"

/* Words of a mask over so many ids: bit id % 32 of word id / 32. */
static inline uint32_t mask_words(uint32_t n_vocab)
{
    return n_vocab / 32 + (n_vocab % 32 != 0);
}

/* Writes ret_bits [mask_words(trie->n_vocab)]: set for each id whose bytes leave a way to go on, or to end.
 * 0, MACHINE_E_LIMIT, -ENOMEM. A machine is used with one trie only, whose masks it remembers. */
int mask_of(struct machine *machine, const struct token_trie *trie, uint32_t state, uint32_t *ret_bits);

#endif
