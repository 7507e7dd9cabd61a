/* SPDX-License-Identifier: MIT */
#ifndef TEXT_TOKENIZER_PRETOKENIZER_H
#define TEXT_TOKENIZER_PRETOKENIZER_H

/* Cuts text into words before byte-level BPE, by the regular expressions that a model was trained with.
 *
 * GGUF files name them in tokenizer.ggml.pre. Private to the tokenizer's sources. Immutable after creation.
 */

#include <stdbool.h>
#include <stddef.h>

#include "common/bytes.h"
#include "common/error.h"

struct pretokenizer_traits {
    bool whole_words; /* a word that is a token is that token, whatever the merges say */
    bool adds_bos;    /* where tokenizer.ggml.add_bos_token says nothing */
};

struct pretokenizer;

/* By name; an empty one is "default". -EINVAL for a name that is not known, with the name; -ENOMEM. */
int pretokenizer_new(struct bytes name, struct pretokenizer **ret_pretokenizer, struct error *err);
struct pretokenizer *pretokenizer_free(struct pretokenizer *pretokenizer);

const struct pretokenizer_traits *pretokenizer_traits(const struct pretokenizer *pretokenizer);

struct word {
    size_t start, len;
};

/* What one thread needs while it splits; reused from text to text. A zeroed one is ready. */
struct pretokenizer_scratch {
    struct word *words; /* the result, in order, without gaps */
    size_t n, cap;
    struct word *spare;
    size_t spare_cap;
    void *match_data, *match_context, *jit_stack;
};

/* Splits valid UTF-8. 0; -ENOMEM. */
int pretokenizer_split(const struct pretokenizer *pretokenizer, struct bytes text,
                       struct pretokenizer_scratch *scratch);
void pretokenizer_scratch_deinit(struct pretokenizer_scratch *scratch);

#endif
