/* SPDX-License-Identifier: MIT */
#ifndef MODEL_HUGGINGFACE_TOKENS_KIND_H
#define MODEL_HUGGINGFACE_TOKENS_KIND_H

/* Determines which of Quern's tokenizers a tokenizer.json describes. */

#include <jansson.h>
#include <stdbool.h>

#include "common/error.h"

struct tokens_kind {
    const char *pre;    /* tokenizer.ggml.pre of byte-level BPE; NULL: SentencePiece's, on characters */
    bool whole_words;   /* byte-level: words that are tokens are taken whole, whatever the merges */
    bool says_whole;    /* this differs from the default of `pre` */
    bool space_prefix;  /* characters */
    bool gemma4;        /* characters, merged by rank; set by the caller, who knows the model */
    bool nfc;           /* texts are normalized to NFC */
    const char *before; /* tokens that the post-processor puts before and after a text; NULL: none. They */
    const char *behind; /* live as long as the JSON */
};

/* -EINVAL names the key with an unknown value: model, normalizer, pre_tokenizer, post_processor. */
int tokens_kind_of(const json_t *tokenizer, struct tokens_kind *ret_kind, struct error *err);

#endif
