/* SPDX-License-Identifier: MIT */
#ifndef TEXT_TOKENIZER_SPECIAL_H
#define TEXT_TOKENIZER_SPECIAL_H

/* Special tokens, which are cut out of a text as a whole before the rest is tokenized: user-defined tokens
 * always, control and unknown tokens on request.
 *
 * Private to the tokenizer's sources. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/bytes.h"
#include "text/tokenizer/special_index.h"
#include "text/tokenizer/vocabulary.h"

struct specials {
    struct special_index index;
    bool strip_right; /* white space after a special token is dropped with it (Phi-3) */
};

struct fragment {
    size_t start, len;
    int32_t id; /* of the special token; -1: ordinary text */
};

struct fragments { /* zeroed: empty, ready to use */
    struct fragment *items;
    size_t n, cap;
    size_t steps; /* that finding them took: a few per byte */
};

/* Collects the special tokens of a vocabulary. 0; -ENOMEM; -E2BIG if their spellings are implausibly long in
 * total. Zeroed on failure. */
int specials_init(struct specials *specials, const struct vocabulary *vocabulary);
void specials_deinit(struct specials *specials);

/* Splits `text` (at most TOKENIZER_MAX_TEXT bytes) at its special tokens. Of overlapping tokens the longest
 * wins, then the leftmost. Control tokens are found only with `control_too`, and only if none of their bytes
 * is marked in `from_user` (one byte per byte of the text; NULL: none is marked). 0 or -ENOMEM. */
int specials_split(const struct specials *specials, const struct vocabulary *vocabulary, struct bytes text,
                   bool control_too, const uint8_t *from_user, struct fragments *ret_fragments);
void fragments_deinit(struct fragments *fragments);

#endif
