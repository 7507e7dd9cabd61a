/* SPDX-License-Identifier: MIT */
/* See marks.h. */

#include "text/dialect/derive/marks.h"

#include <string.h>

#include "text/dialect/blank.h"

#define MOST_MARK 96 /* bytes; marks of templates have up to fifty */

struct span span_from(struct span span, size_t from)
{
    if (from > span.len)
        from = span.len;
    return (struct span){span.at + from, span.len - from};
}

struct span span_to(struct span span, size_t to)
{
    return (struct span){span.at, to < span.len ? to : span.len};
}

struct span span_trim_left(struct span span)
{
    while (span.len > 0 && is_blank(span.at[0])) {
        span.at++;
        span.len--;
    }
    return span;
}

struct span span_trim_right(struct span span)
{
    while (span.len > 0 && is_blank(span.at[span.len - 1]))
        span.len--;
    return span;
}

struct span span_trim(struct span span)
{
    return span_trim_left(span_trim_right(span));
}

bool span_equal(struct span a, struct span b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

bool span_is_blank(struct span span)
{
    return span_trim(span).len == 0;
}

bool span_ends_with(struct span span, struct span end)
{
    return end.len <= span.len && span_equal(span_from(span, span.len - end.len), end);
}

size_t span_find(struct span span, struct span what)
{
    const char *found = span.len > 0 && what.len > 0 ? memmem(span.at, span.len, what.at, what.len) : NULL;
    return found ? (size_t)(found - span.at) : span.len;
}

size_t span_find_last(struct span span, struct span what)
{
    if (what.len == 0 || what.len > span.len)
        return span.len;
    for (size_t at = span.len - what.len + 1; at-- > 0;)
        if (memcmp(span.at + at, what.at, what.len) == 0)
            return at;
    return span.len;
}

/* ---- marks ---- */

static bool is_capital(char c)
{
    return (c >= 'A' && c <= 'Z') || c == '_' || c == '/';
}

size_t span_mark_at(struct span span, size_t at)
{
    if (at >= span.len)
        return 0;
    const size_t end = at + MOST_MARK < span.len ? at + MOST_MARK : span.len;
    if (span.at[at] == '<') {
        for (size_t i = at + 1; i < end && span.at[i] != '<' && span.at[i] != '\n'; i++)
            if (span.at[i] == '>')
                return i + 1 - at;
    } else if (span.at[at] == '[') {
        for (size_t i = at + 1; i < end && (is_capital(span.at[i]) || span.at[i] == ']'); i++)
            if (span.at[i] == ']')
                return i > at + 1 ? i + 1 - at : 0;
    }
    return 0;
}

/* The mark that has `cut` inside: its bounds. False: none has. */
static bool mark_around(struct span span, size_t cut, size_t *ret_begin, size_t *ret_end)
{
    for (size_t back = 1; back <= cut && back < MOST_MARK; back++) {
        const size_t begin = cut - back, len = span_mark_at(span, begin);
        if (len > back) {
            *ret_begin = begin;
            *ret_end = begin + len;
            return true;
        }
    }
    return false;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Whether the bytes are the same, or count. */
static bool same(char a, char b, bool counted)
{
    return a == b || (counted && is_digit(a) && is_digit(b) && b == a + 1);
}

size_t spans_common_prefix(struct span a, struct span b, bool counted)
{
    size_t n = 0, begin, end, last;
    while (n < a.len && n < b.len && same(a.at[n], b.at[n], counted))
        n++;
    do {
        last = n;
        if (mark_around(a, n, &begin, &end))
            n = begin;
        if (mark_around(b, n, &begin, &end))
            n = begin;
    } while (n != last);
    return n;
}

size_t spans_common_suffix(struct span a, struct span b, bool counted)
{
    size_t n = 0, begin, end, last;
    while (n < a.len && n < b.len && same(a.at[a.len - 1 - n], b.at[b.len - 1 - n], counted))
        n++;
    do {
        last = n;
        if (mark_around(a, a.len - n, &begin, &end))
            n = a.len - end;
        if (mark_around(b, b.len - n, &begin, &end))
            n = b.len - end;
    } while (n != last);
    return n;
}

bool spans_equal_counted(struct span a, struct span b)
{
    bool equal = a.len == b.len;
    for (size_t i = 0; i < a.len && equal; i++)
        equal = same(a.at[i], b.at[i], true);
    return equal;
}

size_t span_last_mark(struct span span)
{
    for (size_t back = 2; back <= span.len && back <= MOST_MARK; back++)
        if (span_mark_at(span, span.len - back) == back)
            return span.len - back;
    return span.len;
}
