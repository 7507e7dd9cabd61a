/* SPDX-License-Identifier: MIT */
#ifndef TEXT_TOKENIZER_PRETOKENIZER_H
#define TEXT_TOKENIZER_PRETOKENIZER_H

/* Splits text into words before byte-level BPE, with the regular expressions that the model was trained with.
 * GGUF files name them in tokenizer.ggml.pre.
 *
 * Private to the tokenizer's sources. Immutable after creation. */

#include <stdbool.h>
#include <stddef.h>

#include "common/bytes.h"
#include "common/error.h"

struct pretokenizer_traits {
    bool whole_words; /* a word that is in the vocabulary becomes that token, regardless of merges */
    bool adds_bos;    /* if the file has no tokenizer.ggml.add_bos_token */
};

struct pretokenizer;

/* Opens one by name; "" means "default". -EINVAL if the name is unknown; the error contains it. -ENOMEM. */
int pretokenizer_new(struct bytes name, struct pretokenizer **ret_pretokenizer, struct error *err);
struct pretokenizer *pretokenizer_free(struct pretokenizer *pretokenizer);

const struct pretokenizer_traits *pretokenizer_traits(const struct pretokenizer *pretokenizer);

struct word {
    size_t start, len;
};

/* The memory that one thread splits in; reused for text after text. Zeroed: ready to use. */
struct pretokenizer_scratch {
    struct word *words; /* [n] the result, in order, covering the text without gaps */
    size_t n, cap;
    struct word *spare;
    size_t spare_cap;
    void *match_data, *match_context, *jit_stack;
};

/* Splits a text, which must be valid UTF-8, into scratch->words. 0 or -ENOMEM. */
int pretokenizer_split(const struct pretokenizer *pretokenizer, struct bytes text,
                       struct pretokenizer_scratch *scratch);
void pretokenizer_scratch_deinit(struct pretokenizer_scratch *scratch);

#endif
