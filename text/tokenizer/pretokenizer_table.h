/* SPDX-License-Identifier: MIT */
#ifndef TEXT_TOKENIZER_PRETOKENIZER_TABLE_H
#define TEXT_TOKENIZER_PRETOKENIZER_TABLE_H

/* The table of known pre-tokenizers. Private to pretokenizer.c and its tests. */

#include "text/tokenizer/pretokenizer.h"

enum { PRETOKENIZER_MAX_EXPRESSIONS = 6 };

struct pretokenizer_expressions {
    struct pretokenizer_traits traits;
    const char *names; /* values of tokenizer.ggml.pre, each with a space before and after it */
    const char
        *patterns[PRETOKENIZER_MAX_EXPRESSIONS + 1]; /* PCRE2, applied one after the other; NULL-terminated */
};

/* Finds a row by name; "" means "default". NULL if the name is unknown. */
const struct pretokenizer_expressions *pretokenizer_find(struct bytes name);

#endif
