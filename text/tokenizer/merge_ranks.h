/* SPDX-License-Identifier: MIT */
#ifndef TEXT_TOKENIZER_MERGE_RANKS_H
#define TEXT_TOKENIZER_MERGE_RANKS_H

/* The list of merges of a byte-pair vocabulary, tokenizer.ggml.merges: pairs of tokens that become one, in
 * order of priority. Private to the tokenizer's sources. */

#include "common/error.h"
#include "gguf/gguf.h"
#include "text/tokenizer/merge.h"
#include "text/tokenizer/vocabulary.h"

struct ranked_merge {
    uint64_t pair; /* left id ‖ right id */
    uint32_t rank; /* the place in the list */
    int32_t whole; /* id; -1: a free slot */
};

struct merge_ranks {
    struct ranked_merge *slots; /* open addressing */
    uint32_t mask;
};

/* Reads the list, which a vocabulary of `kind` needs. -EINVAL with a reason: it is missing, or an entry does
 * not consist of two tokens whose joined spelling is a token. -ENOMEM. Call deinit in either case; a zeroed
 * struct may be deinitialized too. */
int merge_ranks_init(struct merge_ranks *ranks, const struct vocabulary *vocabulary, const struct gguf *gguf,
                     const char *kind, struct error *err);
void merge_ranks_deinit(struct merge_ranks *ranks);

/* A merge_find over symbols that are token ids; symbols without a token (-1) are never merged. */
bool merge_ranks_find(const void *ranks, const struct merge_symbol *left, const struct merge_symbol *right,
                      int32_t *ret_id, uint32_t *ret_priority);

#endif
