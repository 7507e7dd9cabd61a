/* SPDX-License-Identifier: MIT */
#ifndef MODEL_HUGGINGFACE_TOKENS_KIND_H
#define MODEL_HUGGINGFACE_TOKENS_KIND_H

/* Which of the tokenizers that Quern has a tokenizer.json describes. */

#include <jansson.h>
#include <stdbool.h>

#include "common/error.h"

struct tokens_kind {
    const char *pre;    /* tokenizer.ggml.pre of a BPE of bytes; NULL: SentencePiece's, of characters */
    bool whole_words;   /* of the former: words that are tokens are taken whole, whatever merges say */
    bool says_whole;    /* that is otherwise than with that name */
    bool space_prefix;  /* of the latter */
    bool gemma4;        /* of the latter, merged by rank; whoever knows the model sets it */
    bool nfc;           /* texts are brought into that form */
    const char *before; /* token that the post-processor puts before a text and behind it; NULL: none. They */
    const char *behind; /* live as long as the JSON */
};

/* -EINVAL names the key whose value is not known: model, normalizer, pre_tokenizer, post_processor. */
int tokens_kind_of(const json_t *tokenizer, struct tokens_kind *ret_kind, struct error *err);

#endif
