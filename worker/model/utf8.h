/* SPDX-License-Identifier: MIT */
#ifndef WORKER_MODEL_UTF8_H
#define WORKER_MODEL_UTF8_H

/* Is a text UTF-8: no overlong form, no surrogate, nothing beyond U+10FFFF? */

#include <stdbool.h>
#include <utf8proc.h>

#include "common/bytes.h"

static inline bool utf8_is_valid(struct bytes text)
{
    const uint8_t *at = text.data, *end = at + text.len;
    while (at < end) {
        utf8proc_int32_t point;
        utf8proc_ssize_t n = *at < 0x80 ? 1 : utf8proc_iterate(at, end - at, &point);
        if (n <= 0)
            return false;
        at += n;
    }
    return true;
}

#endif
