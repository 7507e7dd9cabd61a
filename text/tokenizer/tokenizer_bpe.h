/* SPDX-License-Identifier: MIT */
#ifndef TEXT_TOKENIZER_TOKENIZER_BPE_H
#define TEXT_TOKENIZER_TOKENIZER_BPE_H

/* The kind "gpt2": byte-level BPE, ranked merges inside the words of a pre-tokenizer. Private to the
 * tokenizer's sources. */

#include "common/bytes.h"
#include "common/error.h"
#include "gguf/gguf.h"
#include "text/tokenizer/merge.h"
#include "text/tokenizer/pretokenizer.h"
#include "text/tokenizer/vocabulary.h"

struct bpe;

struct bpe_scratch { /* a zeroed one is ready; reused from fragment to fragment */
    struct pretokenizer_scratch split;
    struct merger merger;
    struct buffer spelled;
};

/* Reads tokenizer.ggml.pre and tokenizer.ggml.merges. -EINVAL with the reason; -ENOMEM. */
int bpe_new(const struct vocabulary *vocabulary, const struct gguf *gguf, struct bpe **ret_bpe,
            struct error *err);
struct bpe *bpe_free(struct bpe *bpe);

const struct pretokenizer_traits *bpe_traits(const struct bpe *bpe);

/* Appends the ids of a piece of text, which is valid UTF-8. 0 or -ENOMEM. */
int bpe_encode(const struct bpe *bpe, const struct vocabulary *vocabulary, struct bpe_scratch *scratch,
               struct bytes text, struct ids *ret_ids);
void bpe_scratch_deinit(struct bpe_scratch *scratch);

/* Appends the bytes that a spelling stands for; characters that stand for no byte stay as they are. 0 or
 * -ENOMEM. */
int bpe_unspell(struct bytes spelling, struct buffer *ret_bytes);

#endif
