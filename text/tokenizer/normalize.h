/* SPDX-License-Identifier: MIT */
#ifndef TEXT_TOKENIZER_NORMALIZE_H
#define TEXT_TOKENIZER_NORMALIZE_H

/* Unicode normalization form C (UAX #15), for tokenizers that were trained on normalized text only. */

#include <stddef.h>
#include <stdint.h>

#include "common/bytes.h"

struct normalizer {      /* zeroed: ready to use; reused for text after text */
    int32_t *characters; /* [capacity] */
    int32_t *sorted;     /* [sorted_capacity] */
    size_t capacity, sorted_capacity;
    struct buffer text;
};

/* Sets *ret_text to the text in form C: to `text` itself if it is known to be normalized, else to a buffer of
 * the normalizer that is valid until the next call. `text` must be valid UTF-8. O(n) time and memory. 0 or
 * -ENOMEM. */
int normalize_nfc(struct normalizer *normalizer, struct bytes text, struct bytes *ret_text);
void normalizer_deinit(struct normalizer *normalizer);

#endif
