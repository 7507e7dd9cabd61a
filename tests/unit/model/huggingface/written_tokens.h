/* SPDX-License-Identifier: MIT */
/* Metadata written from tokenizer files that a test makes. */
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

/* The metadata, which the caller frees; a refusal fails the test. */
struct gguf *accepted(const struct tokens_files *files);

/* Checks that the files are refused with this text. */
void refused(const struct tokens_files *files, const char *says);

/* A byte-level BPE of "a", "b" and "ab", with these parts; all of them are JSON. Valid until the next
 * call. */
struct bytes bytes_json(const char *pre, const char *more_of_model, const char *more);

/* A SentencePiece BPE whose token 3 is U+2581. Valid until the next call. */
struct bytes characters_json(const char *normalizer, const char *pre, const char *more);

void expect_text(const struct gguf *gguf, const char *key, const char *expected);

/* The id under this key; -1: absent. */
int64_t id(const struct gguf *gguf, const char *key);

/* The flag under this key, which must exist. */
bool flag(const struct gguf *gguf, const char *key);

#endif
