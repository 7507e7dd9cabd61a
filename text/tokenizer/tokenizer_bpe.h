/* SPDX-License-Identifier: MIT */
#ifndef TEXT_TOKENIZER_TOKENIZER_BPE_H
#define TEXT_TOKENIZER_TOKENIZER_BPE_H

/* The kind "gpt2": byte-level BPE, with ranked merges inside the words of a pre-tokenizer. Private to the
 * tokenizer's sources. */

#include "common/bytes.h"
#include "common/error.h"
#include "gguf/gguf.h"
#include "text/tokenizer/merge.h"
#include "text/tokenizer/merge_ranks.h"
#include "text/tokenizer/pretokenizer.h"
#include "text/tokenizer/vocabulary.h"

struct bpe;

struct bpe_scratch { /* zeroed: ready to use; reused for fragment after fragment */
    struct pretokenizer_scratch split;
    struct merger merger;
    struct buffer spelled;
};

/* Reads tokenizer.ggml.pre and tokenizer.ggml.merges, and tokenizer.whole_words, which overrides the
 * pre-tokenizer's default for whether words that are tokens are taken whole. -EINVAL with a reason;
 * -ENOMEM. */
int bpe_new(const struct vocabulary *vocabulary, const struct gguf *gguf, struct bpe **ret_bpe,
            struct error *err);
struct bpe *bpe_free(struct bpe *bpe);

const struct pretokenizer_traits *bpe_traits(const struct bpe *bpe);

/* Appends the ids of a text, which must be valid UTF-8. 0 or -ENOMEM. */
int bpe_encode(const struct bpe *bpe, const struct vocabulary *vocabulary, struct bpe_scratch *scratch,
               struct bytes text, struct ids *ret_ids);
void bpe_scratch_deinit(struct bpe_scratch *scratch);

/* Appends the bytes that a spelling encodes. Characters that encode no byte are copied. 0 or -ENOMEM. */
int bpe_unspell(struct bytes spelling, struct buffer *ret_bytes);

#endif
