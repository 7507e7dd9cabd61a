/* SPDX-License-Identifier: MIT */
#ifndef TEXT_TOKENIZER_TOKENIZER_CHARACTERS_H
#define TEXT_TOKENIZER_TOKENIZER_CHARACTERS_H

/* The kind "gemma4": BPE over characters, with ranked merges inside lines. Private to the tokenizer's
 * sources. */

#include "common/bytes.h"
#include "common/error.h"
#include "gguf/gguf.h"
#include "text/tokenizer/merge.h"
#include "text/tokenizer/merge_ranks.h"
#include "text/tokenizer/vocabulary.h"

struct characters {
    struct merge_ranks ranks;
    struct byte_tokens bytes;
};

struct characters_scratch { /* zeroed: ready to use; reused for fragment after fragment */
    struct merger merger;
    struct buffer text;
};

/* Reads tokenizer.ggml.merges, and finds the byte tokens or the unknown token (`unknown`; -1: none) for what
 * the vocabulary cannot spell. -EINVAL with a reason; -ENOMEM. deinit in either case. */
int characters_init(struct characters *characters, const struct vocabulary *vocabulary,
                    const struct gguf *gguf, int32_t unknown, struct error *err);
void characters_deinit(struct characters *characters);

/* Appends the ids of a text, which must be valid UTF-8. 0 or -ENOMEM. */
int characters_encode(const struct characters *characters, const struct vocabulary *vocabulary,
                      struct characters_scratch *scratch, struct bytes text, struct ids *ret_ids);
void characters_scratch_deinit(struct characters_scratch *scratch);

#endif
