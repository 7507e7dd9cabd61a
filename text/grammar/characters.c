/* SPDX-License-Identifier: MIT */
/* See characters.h. Everything checks the length before it looks. */

#include "text/grammar/characters.h"

#include <errno.h>
#include <string.h>

#include "common/utf8.h"

bool cursor_take(struct text_cursor *cursor, const char *what)
{
    size_t len = strlen(what);
    if (cursor->len - cursor->pos < len || memcmp(cursor->data + cursor->pos, what, len) != 0)
        return false;
    cursor->pos += len;
    return true;
}

uint32_t cursor_line(const struct text_cursor *cursor)
{
    uint32_t line = 1;
    for (size_t i = 0; i < cursor->pos; i++)
        line += cursor->data[i] == '\n';
    return line;
}

static size_t length_of(uint8_t first)
{
    return first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

size_t characters_point(const uint8_t *text, uint32_t *ret_point)
{
    size_t n = length_of(text[0]);
    uint32_t point = n == 1 ? text[0] : text[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++)
        point = point << 6 | (text[i] & 0x3fu);
    *ret_point = point;
    return n;
}

static bool read_utf8(struct text_cursor *cursor, uint32_t *ret_point)
{
    const uint8_t *s = cursor->data + cursor->pos;
    size_t n = length_of(s[0]);
    if (cursor->len - cursor->pos < n || utf8_valid((struct bytes){s, n}) != n)
        return false;
    cursor->pos += characters_point(s, ret_point);
    return true;
}

static int hex_digit(int c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static bool read_hex(struct text_cursor *cursor, int digits, uint32_t *ret_point)
{
    uint32_t point = 0;
    for (int i = 0; i < digits; i++) {
        int digit = hex_digit(cursor_peek(cursor));
        if (digit < 0)
            return false;
        point = point << 4 | (uint32_t)digit;
        cursor->pos++;
    }
    *ret_point = point;
    return point <= GRAMMAR_MOST_POINT && (point < 0xd800 || point > 0xdfff);
}

static bool read_escape(struct text_cursor *cursor, enum cursor_dialect dialect, uint32_t *ret_point)
{
    static const char names[] = "nrtfv", values[] = "\n\r\t\f\v";
    int c = cursor_peek(cursor);
    const char *name = c > 0 ? strchr(names, c) : NULL;
    cursor->pos += c >= 0;
    if (c == 'x')
        return read_hex(cursor, 2, ret_point);
    if (c == 'u')
        return read_hex(cursor, 4, ret_point);
    if (c == 'U' && dialect == CURSOR_GBNF)
        return read_hex(cursor, 8, ret_point);
    if (name) {
        *ret_point = (uint8_t)values[name - names];
        return true;
    }
    /* Punctuation stands for itself; letters and digits would mean something that is not known here. */
    bool punctuation =
        c > ' ' && c < 0x7f && !((c | 0x20) >= 'a' && (c | 0x20) <= 'z') && !(c >= '0' && c <= '9');
    *ret_point = (uint32_t)c;
    return punctuation;
}

bool cursor_character(struct text_cursor *cursor, enum cursor_dialect dialect, uint32_t *ret_point)
{
    if (cursor->pos == cursor->len)
        return false;
    if (cursor->data[cursor->pos] != '\\')
        return read_utf8(cursor, ret_point);
    cursor->pos++;
    return read_escape(cursor, dialect, ret_point);
}

bool cursor_range(struct text_cursor *cursor, enum cursor_dialect dialect, struct code_range *ret_range,
                  const char **ret_reason)
{
    struct code_range range;
    *ret_reason = "character set: missing ] or not a character";
    if (!cursor_character(cursor, dialect, &range.first))
        return false;
    range.last = range.first;
    bool dash = cursor_peek(cursor) == '-' && cursor_peek_second(cursor) != ']';
    cursor->pos += dash;
    *ret_reason = "character range: the end is not a character";
    if (dash && !cursor_character(cursor, dialect, &range.last))
        return false;
    *ret_reason = "character range out of order";
    *ret_range = range;
    return range.first <= range.last;
}

static bool read_count(struct text_cursor *cursor, uint32_t *ret_count)
{
    uint32_t count = 0;
    size_t start = cursor->pos;
    for (int c = cursor_peek(cursor); c >= '0' && c <= '9' && count <= GRAMMAR_MOST_REPEATS;
         c = cursor_peek(cursor)) {
        count = count * 10 + (uint32_t)(c - '0');
        cursor->pos++;
    }
    *ret_count = count;
    return cursor->pos > start && count <= GRAMMAR_MOST_REPEATS;
}

int cursor_repeat(struct text_cursor *cursor, bool after_blanks, struct repeat *ret_repeat)
{
    size_t start = cursor->pos;
    while (after_blanks && (cursor_peek(cursor) == ' ' || cursor_peek(cursor) == '\t'))
        cursor->pos++;
    int c = cursor_peek(cursor);
    if (c != '*' && c != '+' && c != '?' && c != '{') {
        cursor->pos = start;
        return 0;
    }
    cursor->pos++;
    if (c != '{') {
        *ret_repeat = (struct repeat){c == '+', c == '?' ? 1 : GRAMMAR_UNBOUNDED};
        return 1;
    }
    struct repeat repeat = {0};
    bool least = read_count(cursor, &repeat.least);
    repeat.most = repeat.least;
    if (cursor_take(cursor, ",")) {
        bool most = read_count(cursor, &repeat.most);
        if (!most && cursor_peek(cursor) == '}' && least)
            repeat.most = GRAMMAR_UNBOUNDED;
        else if (!most)
            return -1;
    } else if (!least) {
        return -1;
    }
    if (!cursor_take(cursor, "}") || repeat.least > repeat.most || repeat.least > GRAMMAR_MOST_REPEATS)
        return -1;
    *ret_repeat = repeat;
    return 1;
}

int cursor_choice(struct text_cursor *cursor, struct rules *rules, alternative_reader *read, void *reader,
                  const struct expression **ret_expression)
{
    struct expression_list list = {0};
    do {
        const struct expression *alternative = NULL;
        int r = read(reader, &alternative);
        if (r != 0)
            return r;
        expression_push(rules, &list, alternative);
    } while (cursor_take(cursor, "|"));
    *ret_expression = expression_choice(rules, &list);
    return 0;
}

int cursor_group(struct text_cursor *cursor, uint32_t *depth, struct rules *rules, alternative_reader *read,
                 void *reader, const struct expression **ret_expression, const char **ret_reason)
{
    *ret_reason = *depth == CURSOR_MOST_DEPTH ? "groups nested too deeply" : NULL;
    if (*ret_reason)
        return 0;
    ++*depth;
    int r = cursor_choice(cursor, rules, read, reader, ret_expression);
    --*depth;
    if (r == 0 && !cursor_take(cursor, ")"))
        *ret_reason = "unmatched (";
    return r;
}

int cursor_items(struct rules *rules, item_reader *read, void *reader, struct expression_list *list)
{
    for (;;) {
        const struct expression *item = NULL;
        bool end = false;
        int r = read(reader, &end, &item);
        if (r != 0 || end)
            return r;
        expression_push(rules, list, item);
    }
}

int characters_append(struct buffer *out, uint32_t point)
{
    uint8_t bytes[4];
    size_t n = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    if (n == 1) {
        bytes[0] = (uint8_t)point;
    } else {
        for (size_t i = n - 1; i > 0; i--, point >>= 6)
            bytes[i] = (uint8_t)(0x80 | (point & 0x3f));
        bytes[0] = (uint8_t)((0xf00u >> n) | point);
    }
    return buffer_append(out, bytes, n);
}

int code_set_add(struct rules *rules, struct code_set *set, struct code_range range)
{
    if (set->n == set->cap) {
        uint32_t cap = set->cap ? set->cap * 2 : 8;
        struct code_range *ranges = arena_take(&rules->arena, cap, sizeof *ranges);
        if (!ranges)
            return -ENOMEM;
        if (set->n > 0)
            memcpy(ranges, set->ranges, set->n * sizeof *ranges);
        set->ranges = ranges;
        set->cap = cap;
    }
    set->ranges[set->n++] = range;
    return 0;
}
