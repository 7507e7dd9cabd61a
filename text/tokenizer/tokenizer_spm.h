/* SPDX-License-Identifier: MIT */
#ifndef TEXT_TOKENIZER_TOKENIZER_SPM_H
#define TEXT_TOKENIZER_TOKENIZER_SPM_H

/* The kind "llama": SentencePiece-style merges by score. Private to the tokenizer's sources. */

#include <stdbool.h>
#include <stdint.h>

#include "common/bytes.h"
#include "common/error.h"
#include "text/tokenizer/merge.h"
#include "text/tokenizer/vocabulary.h"

struct spm {
    int32_t byte_ids[256]; /* -1 where the vocabulary has no token for a byte */
    int32_t unknown;       /* or -1 */
    bool words_apart;      /* no token reaches from one word into the next: words are tokenized one by one */
};

struct spm_scratch { /* a zeroed one is ready; reused from fragment to fragment */
    struct merger merger;
    struct buffer text;
};

/* Checks that the vocabulary has scores, and that whatever it cannot spell has a byte token or the unknown
 * token `unknown` (or -1). -EINVAL with the reason. */
int spm_init(struct spm *spm, const struct vocabulary *vocabulary, int32_t unknown, struct error *err);

/* Appends the ids of a piece of text, which is valid UTF-8; `prefix` puts a space before it. 0 or -ENOMEM. */
int spm_encode(const struct spm *spm, const struct vocabulary *vocabulary, struct spm_scratch *scratch,
               struct bytes text, bool prefix, struct ids *ret_ids);
void spm_scratch_deinit(struct spm_scratch *scratch);

/* The byte that a token spelled <0x00> … <0xFF> stands for, or -1. */
int spm_byte_of(struct bytes text);

#endif
