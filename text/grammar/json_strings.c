/* SPDX-License-Identifier: MIT */
/* See json_strings.h. What may follow a backslash in most strings is one rule: it is then found out once. */

#include "text/grammar/json_strings.h"

#include <string.h>

#include "text/grammar/characters.h"

#define LAST_CONTROL    0x1fu
#define FIRST_NON_ASCII 0x80u
#define LAST_OF_PLANE   0xffffu

/* ---- \uXXXX ---- */

static const struct expression *nibbles(struct rules *r, uint32_t first, uint32_t last)
{
    struct code_range ranges[3];
    uint32_t n = 0;
    if (first < 10)
        ranges[n++] = (struct code_range){'0' + first, '0' + (last < 10 ? last : 9)};
    if (last >= 10) {
        uint32_t from = first < 10 ? 0 : first - 10;
        ranges[n++] = (struct code_range){'a' + from, 'a' + last - 10};
        ranges[n++] = (struct code_range){'A' + from, 'A' + last - 10};
    }
    return expression_chars(r, ranges, n, false);
}

/* Numbers of so many hexadecimal digits, from the one to the other. */
static const struct expression *hex_between(struct rules *r, uint32_t digits, uint32_t first, uint32_t last)
{
    if (digits == 0)
        return expression_empty(r);
    const uint32_t shift = 4 * (digits - 1), low = (1u << shift) - 1;
    uint32_t from = first >> shift, to = last >> shift;
    struct expression_list list = {0};
    if (from == to)
        return expression_then(r, nibbles(r, from, from),
                               hex_between(r, digits - 1, first & low, last & low));
    if (first & low) {
        expression_push(
            r, &list,
            expression_then(r, nibbles(r, from, from), hex_between(r, digits - 1, first & low, low)));
        from++;
    }
    bool part = (last & low) != low;
    if (part)
        expression_push(r, &list,
                        expression_then(r, nibbles(r, to, to), hex_between(r, digits - 1, 0, last & low)));
    if (from <= to - part)
        expression_push(r, &list,
                        expression_then(r, nibbles(r, from, to - part), hex_between(r, digits - 1, 0, low)));
    return expression_choice(r, &list);
}

/* Of code points beyond U+FFFF whose first halves are the same. */
static void push_pairs(struct rules *r, struct expression_list *list, uint32_t high, uint32_t high_last,
                       uint32_t low, uint32_t low_last)
{
    const struct expression *first = hex_between(r, 4, 0xd800 + high, 0xd800 + high_last);
    const struct expression *second = hex_between(r, 4, 0xdc00 + low, 0xdc00 + low_last);
    expression_push(r, list,
                    expression_then(r, first, expression_then(r, expression_text(r, "\\u"), second)));
}

/* Appends what may follow \u for the code points of a range without surrogates. */
static void push_codes(struct rules *r, struct expression_list *list, uint32_t first, uint32_t last)
{
    if (first <= LAST_OF_PLANE)
        expression_push(r, list, hex_between(r, 4, first, last < LAST_OF_PLANE ? last : LAST_OF_PLANE));
    if (last <= LAST_OF_PLANE)
        return;
    first = first > LAST_OF_PLANE ? first - LAST_OF_PLANE - 1 : 0;
    last -= LAST_OF_PLANE + 1;
    uint32_t from = first >> 10, to = last >> 10;
    if (from == to) {
        push_pairs(r, list, from, from, first & 0x3ff, last & 0x3ff);
        return;
    }
    if (first & 0x3ff)
        push_pairs(r, list, from, from, first & 0x3ff, 0x3ff);
    from += (first & 0x3ff) != 0;
    bool part = (last & 0x3ff) != 0x3ff;
    if (part)
        push_pairs(r, list, to, to, 0, last & 0x3ff);
    if (from <= to - part)
        push_pairs(r, list, from, to - part, 0, 0x3ff);
}

/* ---- what follows a backslash ---- */

static bool has(const struct expression *chars, uint32_t point)
{
    for (uint32_t i = 0; i < chars->n; i++)
        if (point >= chars->ranges[i].first && point <= chars->ranges[i].last)
            return true;
    return false;
}

/* Letters for the characters of the set that have one. */
static const struct expression *letters(struct rules *r, const struct expression *chars)
{
    static const char named[] = "\"\\/\b\f\n\r\t", names[] = "\"\\/bfnrt";
    struct code_range ranges[sizeof names];
    uint32_t n = 0;
    for (uint32_t i = 0; names[i]; i++)
        if (has(chars, (uint8_t)named[i]))
            ranges[n++] = (struct code_range){(uint8_t)names[i], (uint8_t)names[i]};
    return n > 0 ? expression_chars(r, ranges, n, false) : NULL;
}

/* Codes of the set's characters, of ASCII only the control characters unless `ascii`; NULL: it has none. */
static const struct expression *codes(struct rules *r, const struct expression *chars, bool ascii)
{
    const struct code_range spelled[] = {{1, ascii ? FIRST_NON_ASCII - 1 : LAST_CONTROL},
                                         {FIRST_NON_ASCII, GRAMMAR_MOST_POINT}};
    struct expression_list list = {0};
    for (uint32_t i = 0; i < chars->n; i++)
        for (uint32_t j = 0; j < 2; j++) {
            uint32_t first =
                chars->ranges[i].first > spelled[j].first ? chars->ranges[i].first : spelled[j].first;
            uint32_t last = chars->ranges[i].last < spelled[j].last ? chars->ranges[i].last : spelled[j].last;
            if (first <= last)
                push_codes(r, &list, first, last);
        }
    if (list.n == 0)
        return NULL;
    return expression_then(r, expression_text(r, "u"), expression_choice(r, &list));
}

static const struct expression *all(struct rules *r)
{
    return expression_chars(r, NULL, 0, true);
}

static const struct expression *escape_of(struct rules *r, const struct expression *chars, bool ascii)
{
    struct expression_list list = {0};
    const struct expression *letter = letters(r, chars), *code = codes(r, chars, ascii);
    if (letter)
        expression_push(r, &list, letter);
    if (code)
        expression_push(r, &list, code);
    return list.n > 0 ? expression_choice(r, &list) : NULL;
}

static const struct expression *escape_body(struct json_text *json)
{
    return escape_of(json->rules, all(json->rules), false);
}

static const struct expression *any_escape_body(struct json_text *json)
{
    return escape_of(json->rules, all(json->rules), true);
}

/* Whether the set has all that is ever escaped. */
static bool has_all_escapes(const struct expression *chars)
{
    static const struct code_range needed[] = {{1, LAST_CONTROL}, {'"', '"'},
                                               {'/', '/'},        {'\\', '\\'},
                                               {0x80, 0xd7ff},    {0xe000, GRAMMAR_MOST_POINT}};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        bool there = false;
        for (uint32_t j = 0; j < chars->n && !there; j++)
            there = chars->ranges[j].first <= needed[i].first && chars->ranges[j].last >= needed[i].last;
        if (!there)
            return false;
    }
    return true;
}

/* ---- characters ---- */

/* Those of the set that may stand as they are; NULL: none. */
static const struct expression *plain_of(struct rules *r, const struct expression *chars)
{
    struct code_range *plain = arena_take(&r->arena, (size_t)chars->n * 3 + 1, sizeof *plain);
    uint32_t n = 0;
    for (uint32_t i = 0; plain && i < chars->n; i++) {
        const uint32_t cuts[][2] = {{' ', '"' - 1}, {'"' + 1, '\\' - 1}, {'\\' + 1, GRAMMAR_MOST_POINT}};
        struct code_range range = chars->ranges[i];
        for (uint32_t j = 0; j < 3; j++) {
            uint32_t first = range.first > cuts[j][0] ? range.first : cuts[j][0];
            uint32_t last = range.last < cuts[j][1] ? range.last : cuts[j][1];
            if (first <= last)
                plain[n++] = (struct code_range){first, last};
        }
    }
    return n > 0 ? expression_chars(r, plain, n, false) : NULL;
}

const struct expression *json_string_spelling(void *arg, const struct expression *chars)
{
    struct json_text *json = arg;
    struct rules *r = json->rules;
    struct expression_list list = {0};
    const struct expression *plain = plain_of(r, chars);
    const struct expression *escape = has_all_escapes(chars)
                                          ? json_text_rule(json, &json->escape, "escape", escape_body)
                                          : escape_of(r, chars, false);
    if (plain)
        expression_push(r, &list, plain);
    if (escape)
        expression_push(r, &list, expression_then(r, expression_text(r, "\\"), escape));
    return expression_choice(r, &list);
}

const struct expression *json_string_character(struct json_text *json)
{
    static const struct code_range none[] = {{0x7f, 0x7f}};
    return json_string_spelling(json, expression_chars(json->rules, none, 1, true));
}

const struct expression *json_string_quoted(struct json_text *json, const struct expression *text)
{
    const struct expression *quote = expression_text(json->rules, "\"");
    return expression_then(json->rules, quote, expression_then(json->rules, text, quote));
}

static const struct expression *string_body(struct json_text *json)
{
    static const struct code_range escaped[] = {{0, LAST_CONTROL}, {'"', '"'}, {'\\', '\\'}, {0x7f, 0x7f}};
    struct rules *r = json->rules;
    const struct expression *escape = json_text_rule(json, &json->any_escape, "any-escape", any_escape_body);
    const struct expression *character = expression_or(r, expression_chars(r, escaped, 4, true),
                                                       expression_then(r, expression_text(r, "\\"), escape));
    return json_string_quoted(json, expression_repeat(r, character, 0, GRAMMAR_UNBOUNDED));
}

const struct expression *json_string_any(struct json_text *json)
{
    return json_text_rule(json, &json->string, "string", string_body);
}

const struct expression *json_string_literal(struct json_text *json, struct bytes text)
{
    struct rules *r = json->rules;
    struct expression_list list = {0};
    const uint8_t *data = text.data;
    for (size_t i = 0; i < text.len;) {
        size_t end = i;
        while (end < text.len && data[end] >= ' ' && data[end] < 0x80 && data[end] != '"' &&
               data[end] != '\\')
            end++;
        if (end > i) {
            expression_push(r, &list, expression_literal(r, (struct bytes){data + i, end - i}));
            i = end;
            continue;
        }
        struct code_range range;
        i += characters_point(data + i, &range.first);
        range.last = range.first;
        expression_push(r, &list,
                        range.first == 0 ? expression_text(r, "\\u0000")
                                         : json_string_spelling(json, expression_chars(r, &range, 1, false)));
    }
    return expression_sequence(r, &list);
}

/* ---- strings that are none of a list ---- */

struct other {
    struct json_text *json;
    const struct bytes *names;
    const struct expression *rest;   /* any text to the end */
    const struct expression *beyond; /* a character that no name has in most places, and then the rest */
};

/* Whether it is spelled in `beyond`. */
static bool is_beyond(uint32_t point)
{
    return point < ' ' || point >= FIRST_NON_ASCII || point == '"' || point == '\\' || point == '/';
}

/* A character that is none of these, and then the rest. What is not plain ASCII goes on alike in every place
 * where no name needs it, and is made once for them. */
static const struct expression *other_character(const struct other *other, const struct code_range *taken,
                                                uint32_t n)
{
    static const struct code_range ascii[] = {
        {0, ' ' - 1}, {'"', '"'}, {'\\', '\\'}, {FIRST_NON_ASCII, GRAMMAR_MOST_POINT}};
    struct rules *r = other->json->rules;
    struct code_range *barred = arena_take(&r->arena, (size_t)n + 4, sizeof *barred);
    bool plain = barred != NULL;
    for (uint32_t i = 0; i < n && plain; i++)
        plain = !is_beyond(taken[i].first);
    if (!plain) {
        const struct expression *chars = expression_chars(r, taken, n, true);
        return expression_then(r, chars ? json_string_spelling(other->json, chars) : NULL, other->rest);
    }
    memcpy(barred, ascii, sizeof ascii);
    if (n > 0)
        memcpy(barred + 4, taken, n * sizeof *taken);
    return expression_or(r, expression_then(r, expression_chars(r, barred, n + 4, true), other->rest),
                         other->beyond);
}

/* Of names[first … end − 1], which agree in their first `at` bytes: what may follow those bytes. */
static const struct expression *other_tail(const struct other *other, uint32_t first, uint32_t end, size_t at)
{
    struct rules *r = other->json->rules;
    const struct bytes *names = other->names;
    struct expression_list list = {0};
    struct code_range *taken = arena_take(&r->arena, (size_t)(end - first) + 1, sizeof *taken);
    uint32_t n = 0;
    if (!taken)
        return NULL;
    bool is_name = first < end && names[first].len == at;
    first += is_name;
    if (!is_name)
        expression_push(r, &list, expression_empty(r));
    while (first < end) {
        const uint8_t *s = (const uint8_t *)names[first].data + at;
        uint32_t same = first, point;
        size_t len = characters_point(s, &point);
        while (same < end && names[same].len >= at + len &&
               memcmp((const uint8_t *)names[same].data + at, s, len) == 0)
            same++;
        expression_push(r, &list,
                        expression_then(r, json_string_literal(other->json, (struct bytes){s, len}),
                                        other_tail(other, first, same, at + len)));
        taken[n++] = (struct code_range){point, point};
        first = same;
    }
    expression_push(r, &list, other_character(other, taken, n));
    return expression_choice(r, &list);
}

const struct expression *json_string_other(struct json_text *json, const struct bytes *names, uint32_t n)
{
    static const struct code_range wide[] = {{FIRST_NON_ASCII, GRAMMAR_MOST_POINT}};
    struct rules *r = json->rules;
    const struct expression *rest =
        expression_shared(r, expression_repeat(r, json_string_spelling(json, all(r)), 0, GRAMMAR_UNBOUNDED));
    const struct expression *escape = expression_then(
        r, expression_text(r, "\\"), json_text_rule(json, &json->escape, "escape", escape_body));
    const struct expression *beyond = expression_shared(
        r, expression_then(r, expression_or(r, expression_chars(r, wide, 1, false), escape), rest));
    const struct other other = {json, names, rest, beyond};
    return json_string_quoted(json, other_tail(&other, 0, n, 0));
}
