/* SPDX-License-Identifier: MIT */
#ifndef MODEL_CONVERT_SYNTH_VOCABULARY_H
#define MODEL_CONVERT_SYNTH_VOCABULARY_H

/* A made-up vocabulary of the SentencePiece kind: part of synth_write. */

#include "gguf/gguf_writer.h"

/* <unk> <s> </s>, 256 bytes, the space and 94 printable characters; the minimum of a vocabulary, plus a few
 * pieces. */
#define SYNTH_LEAST_VOCABULARY 360

/* Adds tokenizer.ggml.* with `size` tokens. -ENOMEM. */
int synth_vocabulary(struct gguf_writer *writer, uint32_t size);

#endif
