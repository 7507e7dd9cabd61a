/* SPDX-License-Identifier: MIT */
#ifndef MODEL_HUGGINGFACE_TOKENS_H
#define MODEL_HUGGINGFACE_TOKENS_H

/* tokenizer.json and its companions, written as GGUF's metadata. */

#include "common/bytes.h"
#include "common/error.h"
#include "gguf/gguf_writer.h"

/* The contents of files. Empty: missing. Only the first is required. */
struct tokens_files {
    struct bytes tokenizer;  /* tokenizer.json */
    struct bytes config;     /* tokenizer_config.json */
    struct bytes generation; /* generation_config.json */
    struct bytes chat;       /* chat_template.jinja */
    /* The character tokenizer is GGUF's "gemma4", which merges by rank, instead of "llama". Tokens that mark
     * channels and tools are then parsed in every text, as in its files. */
    bool gemma4;
};

/* Two kinds are supported, both BPE: byte-level, with a pre-tokenizer recognized by its expression, and
 * SentencePiece's, on characters with byte fallback. Anything else would split some texts differently from
 * training and is rejected: -EINVAL names file and key. -ENOMEM. The class in tokenizer_config.json is
 * ignored; its template, tokens and flags are used. */
int tokens_write(const struct tokens_files *files, struct gguf_writer *writer, struct error *err);

#endif
