/* SPDX-License-Identifier: MIT */
#ifndef TEXT_TOKENIZER_SPECIAL_H
#define TEXT_TOKENIZER_SPECIAL_H

/* Tokens that stand in the text as a whole: user-defined ones always, control and unknown ones on demand.
 *
 * Private to the tokenizer's sources. They are cut out before the rest is tokenized. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/bytes.h"
#include "text/tokenizer/special_index.h"
#include "text/tokenizer/vocabulary.h"

struct specials {
    struct special_index index;
    bool strip_right; /* white space after them belongs to them (Phi-3) */
};

struct fragment {
    size_t start, len;
    int32_t id; /* of the token that stands here; -1: ordinary text */
};

struct fragments { /* a zeroed one is empty and ready */
    struct fragment *items;
    size_t n, cap;
    size_t steps; /* the work that finding them took: a few for each byte */
};

/* Collects them from the vocabulary. 0, -ENOMEM, or -E2BIG when their spellings are longer, all together,
 * than those of any vocabulary; all zero on failure. */
int specials_init(struct specials *specials, const struct vocabulary *vocabulary);
void specials_deinit(struct specials *specials);

/* Cuts `text` (at most TOKENIZER_MAX_TEXT bytes) at its special tokens: of overlapping ones the longest wins,
 * then the leftmost. Control tokens count only with `control_too`, and only where no byte of them is set in
 * `from_user` (a byte for each of the text; NULL: none is). 0 or -ENOMEM. */
int specials_split(const struct specials *specials, const struct vocabulary *vocabulary, struct bytes text,
                   bool control_too, const uint8_t *from_user, struct fragments *ret_fragments);
void fragments_deinit(struct fragments *fragments);

#endif
