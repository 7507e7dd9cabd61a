/* SPDX-License-Identifier: MIT */
#ifndef TEXT_TOKENIZER_NORMALIZE_H
#define TEXT_TOKENIZER_NORMALIZE_H

/* Unicode's normalization form C (UAX #15): what can be written as one character, or as a letter and its
 * marks in several orders, is written one way. For tokenizers that were trained on such texts alone. */

#include <stddef.h>
#include <stdint.h>

#include "common/bytes.h"

struct normalizer {      /* a zeroed one is ready; reused from text to text */
    int32_t *characters; /* [capacity] */
    int32_t *sorted;     /* [sorted_capacity] */
    size_t capacity, sorted_capacity;
    struct buffer text;
};

/* *ret_text is the text in form C: itself where nothing is to be changed for sure, else the normalizer's,
 * until its next one. Time and memory are O(n). The text is valid UTF-8. 0 or -ENOMEM. */
int normalize_nfc(struct normalizer *normalizer, struct bytes text, struct bytes *ret_text);
void normalizer_deinit(struct normalizer *normalizer);

#endif
