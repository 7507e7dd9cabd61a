/* SPDX-License-Identifier: MIT */
#ifndef TEXT_TOKENIZER_TOKENIZER_SPM_H
#define TEXT_TOKENIZER_TOKENIZER_SPM_H

/* The kind "llama": SentencePiece, merges by score. Private to the tokenizer's sources. */

#include <stdbool.h>
#include <stdint.h>

#include "common/bytes.h"
#include "common/error.h"
#include "text/tokenizer/merge.h"
#include "text/tokenizer/vocabulary.h"

struct spm {
    struct byte_tokens bytes;
    bool words_apart; /* no token spans two words, so words are tokenized one at a time */
};

struct spm_scratch { /* zeroed: ready to use; reused for fragment after fragment */
    struct merger merger;
    struct buffer text;
};

/* Checks that the vocabulary has scores, and either all byte tokens or an unknown token (`unknown`; -1: none)
 * for what it cannot spell. -EINVAL with a reason. */
int spm_init(struct spm *spm, const struct vocabulary *vocabulary, int32_t unknown, struct error *err);

/* Appends the ids of a text, which must be valid UTF-8; `prefix` puts a space before it. 0 or -ENOMEM. */
int spm_encode(const struct spm *spm, const struct vocabulary *vocabulary, struct spm_scratch *scratch,
               struct bytes text, bool prefix, struct ids *ret_ids);
void spm_scratch_deinit(struct spm_scratch *scratch);

#endif
