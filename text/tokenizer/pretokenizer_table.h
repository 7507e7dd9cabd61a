/* SPDX-License-Identifier: MIT */
#ifndef TEXT_TOKENIZER_PRETOKENIZER_TABLE_H
#define TEXT_TOKENIZER_PRETOKENIZER_TABLE_H

/* The pre-tokenizers that are known, as data. Private to pretokenizer.c and its tests. */

#include "text/tokenizer/pretokenizer.h"

enum { PRETOKENIZER_MAX_EXPRESSIONS = 6 };

struct pretokenizer_expressions {
    struct pretokenizer_traits traits;
    const char *names; /* as tokenizer.ggml.pre has them: separated by blanks, with one at either end */
    const char *patterns[PRETOKENIZER_MAX_EXPRESSIONS + 1]; /* PCRE2, applied in turn; ended by NULL */
};

/* By name; an empty one is "default". NULL: not known. */
const struct pretokenizer_expressions *pretokenizer_find(struct bytes name);

#endif
