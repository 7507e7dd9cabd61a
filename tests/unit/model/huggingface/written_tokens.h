/* SPDX-License-Identifier: MIT */
/* What is written of tokenizer files that a test makes up. */
#ifndef TESTS_UNIT_MODEL_HUGGINGFACE_WRITTEN_TOKENS_H
#define TESTS_UNIT_MODEL_HUGGINGFACE_WRITTEN_TOKENS_H

#include "model/huggingface/tokens.h"

#include <stdbool.h>
#include <stdint.h>

#define BYTES_PRE "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":true}"
#define SPACE     "\xe2\x96\x81" /* U+2581 */
#define REPLACE   "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"" SPACE "\"}"
#define PREPEND   "{\"type\":\"Prepend\",\"prepend\":\"" SPACE "\"}"
#define GEMMA                                                                                                \
    "{\"type\":\"Split\",\"pattern\":{\"String\":\" "                                                        \
    "\"},\"behavior\":\"MergedWithPrevious\",\"invert\":false}"
#define NORMALIZERS(parts) "{\"type\":\"Sequence\",\"normalizers\":[" parts "]}"

/* The metadata, to be freed by the caller; a refusal fails the test. */
struct gguf *accepted(const struct tokens_files *files);

/* They are refused, with these words. */
void refused(const struct tokens_files *files, const char *says);

/* Bytes' BPE of "a", "b" and "ab", with these parts; all of them are JSON. Valid until the next call. */
struct bytes bytes_json(const char *pre, const char *more_of_model, const char *more);

/* SentencePiece's, whose word 3 is U+2581. Valid until the next call. */
struct bytes characters_json(const char *normalizer, const char *pre, const char *more);

void expect_text(const struct gguf *gguf, const char *key, const char *expected);

/* -1: it is not there. */
int64_t id(const struct gguf *gguf, const char *key);

/* Which has to be there. */
bool flag(const struct gguf *gguf, const char *key);

#endif
