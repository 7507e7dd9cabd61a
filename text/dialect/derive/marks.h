/* SPDX-License-Identifier: MIT */
#ifndef TEXT_DIALECT_DERIVE_MARKS_H
#define TEXT_DIALECT_DERIVE_MARKS_H

/* Compares texts of templates without splitting marks: "<|START_THINKING|>" and "<|START_ACTION|>" have no
 * common prefix. A mark is a text in angle brackets on one line, or capitals in square brackets. */

#include <stdbool.h>
#include <stddef.h>

#include "common/bytes.h"

/* A part of a text. */
struct span {
    const char *at;
    size_t len;
};

static inline struct span span_of(const char *text)
{
    return (struct span){text, strlen(text)};
}

/* The part from `from` (at most the length) on, and the part before `to`. */
struct span span_from(struct span span, size_t from);
struct span span_to(struct span span, size_t to);
struct span span_trim(struct span span);
struct span span_trim_left(struct span span);
struct span span_trim_right(struct span span);

bool span_equal(struct span a, struct span b);
bool span_is_blank(struct span span);
bool span_ends_with(struct span span, struct span end);
/* The position of its first, or last, occurrence; `span.len`: none. */
size_t span_find(struct span span, struct span what);
size_t span_find_last(struct span span, struct span what);

/* The length of the common prefix, or suffix. With `counted`, a digit of `a` equals its successor in `b`: the
 * number of a call. */
size_t spans_common_prefix(struct span a, struct span b, bool counted);
size_t spans_common_suffix(struct span a, struct span b, bool counted);

/* Whether b is a with one digit increased by one. */
bool spans_equal_counted(struct span a, struct span b);

/* The position of the mark that ends the text; `len`: it ends with no mark. */
size_t span_last_mark(struct span span);
/* The length of the mark that begins here; 0: none. */
size_t span_mark_at(struct span span, size_t at);

#endif
