/* SPDX-License-Identifier: MIT */
#ifndef MODEL_HUGGINGFACE_TOKENS_H
#define MODEL_HUGGINGFACE_TOKENS_H

/* tokenizer.json and what stands beside it, written as GGUF's metadata. */

#include "common/bytes.h"
#include "common/error.h"
#include "gguf/gguf_writer.h"

/* The texts of files. One without a length is not there; only the first must be. */
struct tokens_files {
    struct bytes tokenizer;  /* tokenizer.json */
    struct bytes config;     /* tokenizer_config.json */
    struct bytes generation; /* generation_config.json */
    struct bytes chat;       /* chat_template.jinja */
};

/* Two kinds are known, both BPE: of bytes, behind a pre-tokenizer that is known by its expression, and
 * SentencePiece's, of characters with bytes to fall back on. Anything else, which would split some texts
 * otherwise than the model was trained with, is refused: -EINVAL names file and key. -ENOMEM. What follows
 * from tokenizer_config.json's class alone is not looked at; its template, tokens and flags are. */
int tokens_write(const struct tokens_files *files, struct gguf_writer *writer, struct error *err);

#endif
