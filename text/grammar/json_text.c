/* SPDX-License-Identifier: MIT */
/* See json_text.h. Strings, values, objects and arrays are rules that stay frames of their own: what may
 * stand in a string is then found out once for all strings (mask.c). */

#include "text/grammar/json_text.h"

#include <stdio.h>
#include <string.h>

#define MOST_BLANKS 20

void json_text_init(struct json_text *json, struct rules *rules)
{
    const uint32_t none = UINT32_MAX;
    *json = (struct json_text){rules, none, none, none, none, none, none, none};
}

static const struct expression *set(struct rules *rules, const struct code_range *ranges, uint32_t n)
{
    return expression_chars(rules, ranges, n, false);
}
#define SET(rules, ...)                                                                                      \
    set((rules), (const struct code_range[]){__VA_ARGS__},                                                   \
        sizeof((const struct code_range[]){__VA_ARGS__}) / sizeof(struct code_range))

#define HEX                                                                                                  \
    {'0', '9'}, {'A', 'F'},                                                                                  \
    {                                                                                                        \
        'a', 'f'                                                                                             \
    }

static const struct expression *sequence(struct rules *rules, const struct expression *const *parts,
                                         uint32_t n, bool choice)
{
    struct expression_list list = {0};
    for (uint32_t i = 0; i < n; i++)
        expression_push(rules, &list, parts[i]);
    return choice ? expression_choice(rules, &list) : expression_sequence(rules, &list);
}
#define PARTS(...)                                                                                           \
    (const struct expression *const[]){__VA_ARGS__},                                                         \
        sizeof((const struct expression *const[]){__VA_ARGS__}) / sizeof(const struct expression *)
#define SEQUENCE(rules, ...) sequence((rules), PARTS(__VA_ARGS__), false)
#define CHOICE(rules, ...)   sequence((rules), PARTS(__VA_ARGS__), true)

/* The rule of that place, which is a frame of its own, made by `body` when it is first wanted. */
static const struct expression *rule(struct json_text *json, uint32_t *place, const char *name,
                                     const struct expression *(*body)(struct json_text *json))
{
    if (*place == UINT32_MAX) {
        uint32_t made = rules_add(json->rules, name);
        if (made == UINT32_MAX)
            return NULL;
        *place = made; /* before its body, which may name it */
        const struct expression *expression = body(json);
        json->rules->items[made].body = expression ? expression : expression_empty(json->rules);
        json->rules->items[made].apart = true;
        if (!expression)
            return NULL;
    }
    return expression_rule(json->rules, *place);
}

/* ---- white space, brackets ---- */

static const struct expression *blank_body(struct json_text *json)
{
    struct rules *r = json->rules;
    const struct expression *indent = expression_repeat(r, SET(r, {' ', ' '}, {'\t', '\t'}), 0, MOST_BLANKS);
    return CHOICE(r, expression_text(r, " "), SEQUENCE(r, expression_text(r, "\n"), indent));
}

const struct expression *json_text_blank(struct json_text *json)
{
    return expression_optional(json->rules, rule(json, &json->blank, "blank", blank_body));
}

const struct expression *json_text_bracketed(struct json_text *json, const char *open,
                                             const struct expression *inner, const char *close)
{
    struct rules *r = json->rules;
    return SEQUENCE(r, expression_text(r, open), json_text_blank(json), inner, json_text_blank(json),
                    expression_text(r, close));
}

const struct expression *json_text_next_item(struct json_text *json, const struct expression *item)
{
    return SEQUENCE(json->rules, expression_text(json->rules, ","), json_text_blank(json), item);
}

const struct expression *json_text_member(struct json_text *json, const struct expression *key,
                                          const struct expression *value)
{
    return SEQUENCE(json->rules, key, expression_text(json->rules, ":"), json_text_blank(json), value);
}

const struct expression *json_text_items(struct json_text *json, const struct expression *item,
                                         uint32_t least, uint32_t most)
{
    struct rules *r = json->rules;
    if (most == 0)
        return expression_empty(r);
    uint32_t behind = most == GRAMMAR_UNBOUNDED ? most : most - 1;
    const struct expression *list = SEQUENCE(
        r, item, expression_repeat(r, json_text_next_item(json, item), least > 0 ? least - 1 : 0, behind));
    return least == 0 ? expression_optional(r, list) : list;
}

/* ---- strings ---- */

const struct expression *json_text_character(struct json_text *json)
{
    static const struct code_range escaped[] = {{0, 0x1f}, {'"', '"'}, {'\\', '\\'}, {0x7f, 0x7f}};
    struct rules *r = json->rules;
    const struct expression *letter = SET(r, {'"', '"'}, {'/', '/'}, {'\\', '\\'}, {'b', 'b'}, {'f', 'f'},
                                          {'n', 'n'}, {'r', 'r'}, {'t', 't'});
    return CHOICE(r, expression_chars(r, escaped, 4, true),
                  expression_then(r, expression_text(r, "\\"), letter));
}

/* The same, or a code point as \u. */
static const struct expression *any_character(struct json_text *json)
{
    struct rules *r = json->rules;
    const struct expression *hex = SET(r, HEX);
    /* Code points of \u: not 0, no half of a pair; or a pair. */
    const struct expression *zeroes = expression_text(r, "0");
    const struct expression *low =
        SEQUENCE(r, zeroes,
                 CHOICE(r, SEQUENCE(r, SET(r, {'1', '9'}, {'A', 'F'}, {'a', 'f'}), hex, hex),
                        SEQUENCE(r, zeroes,
                                 CHOICE(r, SEQUENCE(r, SET(r, {'1', '9'}, {'A', 'F'}, {'a', 'f'}), hex),
                                        SEQUENCE(r, zeroes, SET(r, {'1', '9'}, {'A', 'F'}, {'a', 'f'}))))));
    const struct expression *middle =
        SEQUENCE(r, SET(r, {'1', '9'}, {'A', 'C'}, {'E', 'F'}, {'a', 'c'}, {'e', 'f'}), hex, hex, hex);
    const struct expression *d = SET(r, {'D', 'D'}, {'d', 'd'});
    const struct expression *high = SEQUENCE(r, d, SET(r, {'0', '7'}), hex, hex);
    const struct expression *pair =
        SEQUENCE(r, d, SET(r, {'8', '9'}, {'A', 'B'}, {'a', 'b'}), hex, hex, expression_text(r, "\\u"), d,
                 SET(r, {'C', 'F'}, {'c', 'f'}), hex, hex);
    const struct expression *code =
        SEQUENCE(r, expression_text(r, "\\u"), CHOICE(r, low, middle, high, pair));
    return CHOICE(r, json_text_character(json), code);
}

const struct expression *json_text_quoted(struct json_text *json, const struct expression *text)
{
    const struct expression *quote = expression_text(json->rules, "\"");
    return SEQUENCE(json->rules, quote, text, quote);
}

static const struct expression *string_body(struct json_text *json)
{
    return json_text_quoted(json, expression_repeat(json->rules, any_character(json), 0, GRAMMAR_UNBOUNDED));
}

const struct expression *json_text_string(struct json_text *json)
{
    return rule(json, &json->string, "string", string_body);
}

static bool has(const struct expression *chars, uint32_t point)
{
    for (uint32_t i = 0; i < chars->n; i++)
        if (point >= chars->ranges[i].first && point <= chars->ranges[i].last)
            return true;
    return false;
}

const struct expression *json_text_spelling(struct rules *rules, const struct expression *chars)
{
    static const char named[] = "\b\f\n\r\t", names[] = "bfnrt";
    struct expression_list list = {0};
    struct code_range *plain = arena_take(&rules->arena, (size_t)chars->n * 3 + 1, sizeof *plain);
    uint32_t n = 0;
    if (!plain)
        return NULL;
    for (uint32_t i = 0; i < chars->n; i++) {
        /* What is left of the range beside control characters, the quote and the backslash. */
        const uint32_t cuts[][2] = {{' ', '"' - 1}, {'"' + 1, '\\' - 1}, {'\\' + 1, GRAMMAR_MOST_POINT}};
        struct code_range range = chars->ranges[i];
        for (uint32_t j = 0; j < 3; j++) {
            uint32_t first = range.first > cuts[j][0] ? range.first : cuts[j][0];
            uint32_t last = range.last < cuts[j][1] ? range.last : cuts[j][1];
            if (first <= last)
                plain[n++] = (struct code_range){first, last};
        }
    }
    if (n > 0)
        expression_push(rules, &list, expression_chars(rules, plain, n, false));
    if (has(chars, '"'))
        expression_push(rules, &list, expression_text(rules, "\\\""));
    if (has(chars, '\\'))
        expression_push(rules, &list, expression_text(rules, "\\\\"));
    for (uint32_t c = 1; c < ' '; c++) {
        char text[8];
        const char *short_name = strchr(named, (int)c);
        if (short_name)
            snprintf(text, sizeof text, "\\%c", names[short_name - named]);
        else
            snprintf(text, sizeof text, "\\u%04x", c);
        if (has(chars, c))
            expression_push(rules, &list, expression_text(rules, text));
    }
    return expression_choice(rules, &list);
}

/* ---- strings that are none of a list ---- */

/* Of names[first … end − 1], which agree in their first `at` bytes: what may follow those bytes. */
static const struct expression *other_tail(struct json_text *json, const struct bytes *names, uint32_t first,
                                           uint32_t end, size_t at, const struct expression *rest)
{
    struct rules *r = json->rules;
    struct expression_list list = {0};
    struct code_range *taken = arena_take(&r->arena, (size_t)(end - first) + 4, sizeof *taken);
    uint32_t n = 0;
    if (!taken)
        return NULL;
    bool is_name = first < end && names[first].len == at;
    first += is_name;
    if (!is_name)
        expression_push(r, &list, expression_empty(r));
    while (first < end) {
        const uint8_t *s = (const uint8_t *)names[first].data + at;
        size_t len = s[0] < 0x80 ? 1 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
        uint32_t same = first, point = len == 1 ? s[0] : s[0] & (0x7fu >> len);
        for (size_t i = 1; i < len; i++)
            point = point << 6 | (s[i] & 0x3fu);
        while (same < end && names[same].len >= at + len &&
               memcmp((const uint8_t *)names[same].data + at, s, len) == 0)
            same++;
        expression_push(r, &list,
                        expression_then(r, expression_literal(r, (struct bytes){s, len}),
                                        other_tail(json, names, first, same, at + len, rest)));
        taken[n++] = (struct code_range){point, point};
        first = same;
    }
    taken[n++] = (struct code_range){0, 0x1f};
    taken[n++] = (struct code_range){'"', '"'};
    taken[n++] = (struct code_range){'\\', '\\'};
    expression_push(r, &list, expression_then(r, expression_chars(r, taken, n, true), rest));
    return expression_choice(r, &list);
}

const struct expression *json_text_other_string(struct json_text *json, const struct bytes *names, uint32_t n)
{
    static const struct code_range never[] = {{0, 0x1f}, {'"', '"'}, {'\\', '\\'}};
    struct rules *r = json->rules;
    const struct expression *rest =
        expression_repeat(r, expression_chars(r, never, 3, true), 0, GRAMMAR_UNBOUNDED);
    return json_text_quoted(json, other_tail(json, names, 0, n, 0, rest));
}

/* ---- numbers ---- */

static const struct expression *some_digits(struct rules *r, uint32_t least, uint32_t most)
{
    return expression_repeat(r, SET(r, {'0', '9'}), least, most);
}

static const struct expression *natural(struct rules *r, uint32_t most_digits)
{
    return CHOICE(r, expression_text(r, "0"),
                  SEQUENCE(r, SET(r, {'1', '9'}), some_digits(r, 0, most_digits - 1)));
}

static const struct expression *fraction(struct rules *r)
{
    return expression_then(r, expression_text(r, "."), some_digits(r, 1, 15));
}

static const struct expression *number_body(struct json_text *json)
{
    struct rules *r = json->rules;
    const struct expression *sign = expression_optional(r, SET(r, {'+', '+'}, {'-', '-'}));
    const struct expression *exponent =
        SEQUENCE(r, SET(r, {'E', 'E'}, {'e', 'e'}), sign, some_digits(r, 1, 2));
    return SEQUENCE(r, expression_optional(r, expression_text(r, "-")), natural(r, 15),
                    expression_optional(r, fraction(r)), expression_optional(r, exponent));
}

static const struct expression *integer_body(struct json_text *json)
{
    struct rules *r = json->rules;
    return SEQUENCE(r, expression_optional(r, expression_text(r, "-")), natural(r, 18));
}

const struct expression *json_text_number(struct json_text *json)
{
    return rule(json, &json->number, "number", number_body);
}

const struct expression *json_text_integer(struct json_text *json)
{
    return rule(json, &json->integer, "integer", integer_body);
}

/* Numbers of as many digits as both texts have, from the one to the other. */
static const struct expression *digits_between(struct rules *r, const char *low, const char *high)
{
    size_t n = strlen(low);
    char nines[20] = {0}, zeroes[20] = {0};
    if (n == 0)
        return expression_empty(r);
    memset(nines, '9', n);
    memset(zeroes, '0', n);
    if (strcmp(low, zeroes) == 0 && strcmp(high, nines) == 0)
        return some_digits(r, (uint32_t)n, (uint32_t)n);
    const struct expression *first = expression_literal(r, (struct bytes){low, 1});
    if (low[0] == high[0])
        return expression_then(r, first, digits_between(r, low + 1, high + 1));
    struct expression_list list = {0};
    expression_push(r, &list, expression_then(r, first, digits_between(r, low + 1, nines + 1)));
    if (high[0] - low[0] > 1)
        expression_push(r, &list,
                        expression_then(r, SET(r, {(uint32_t)low[0] + 1, (uint32_t)high[0] - 1}),
                                        some_digits(r, (uint32_t)n - 1, (uint32_t)n - 1)));
    expression_push(r, &list,
                    expression_then(r, expression_literal(r, (struct bytes){high, 1}),
                                    digits_between(r, zeroes + 1, high + 1)));
    return expression_choice(r, &list);
}

/* Whole numbers, 0 ≤ low ≤ high. */
static const struct expression *naturals_between(struct rules *r, int64_t low, int64_t high)
{
    struct expression_list list = {0};
    for (int64_t least = 0, most = 9; least <= high; least = most + 1, most = most * 10 + 9) {
        char from[24], to[24];
        if (most < low)
            continue;
        snprintf(from, sizeof from, "%lld", (long long)(low > least ? low : least));
        snprintf(to, sizeof to, "%lld", (long long)(high < most ? high : most));
        expression_push(r, &list, digits_between(r, from, to));
    }
    return expression_choice(r, &list);
}

/* Appends the amounts, without sign, from low ≥ 0 to high; open bounds are not among them. */
static void push_amounts(struct rules *r, struct expression_list *list, const char *sign,
                         const struct json_bounds *bounds, bool fractions)
{
    int64_t low = bounds->low + bounds->low_open, high = bounds->high - bounds->high_open;
    const struct expression *minus = expression_text(r, sign);
    if (low <= high)
        expression_push(r, list, SEQUENCE(r, minus, naturals_between(r, low, high)));
    if (!fractions || bounds->low >= bounds->high)
        return;
    /* What has a fraction: more than low, less than high. Behind an open bound it is not all zeroes. */
    const struct expression *some =
        SEQUENCE(r, expression_text(r, "."), some_digits(r, 0, 14), SET(r, {'1', '9'}));
    const struct expression *first = expression_then(r, naturals_between(r, bounds->low, bounds->low), some);
    expression_push(r, list, expression_then(r, minus, first));
    if (bounds->low + 1 < bounds->high)
        expression_push(
            r, list, SEQUENCE(r, minus, naturals_between(r, bounds->low + 1, bounds->high - 1), fraction(r)));
}

const struct expression *json_text_between(struct json_text *json, const struct json_bounds *bounds,
                                           bool fractions)
{
    struct rules *r = json->rules;
    struct expression_list list = {0};
    if (bounds->high >= 0) {
        struct json_bounds above = *bounds;
        if (above.low < 0)
            above.low = 0, above.low_open = false;
        push_amounts(r, &list, "", &above, fractions);
    }
    if (bounds->low < 0) { /* amounts below zero: the bounds change places */
        struct json_bounds below = {.low = -bounds->high,
                                    .low_open = bounds->high_open,
                                    .high = -bounds->low,
                                    .high_open = bounds->low_open};
        if (bounds->high >= 0)
            below.low = 0, below.low_open = true; /* 0 itself is above */
        push_amounts(r, &list, "-", &below, fractions);
    }
    return list.n > 0 ? expression_choice(r, &list) : NULL;
}

/* ---- any value ---- */

static const struct expression *object_body(struct json_text *json)
{
    const struct expression *member = json_text_member(json, json_text_string(json), json_text_value(json));
    return json_text_bracketed(json, "{", json_text_items(json, member, 0, GRAMMAR_UNBOUNDED), "}");
}

static const struct expression *array_body(struct json_text *json)
{
    return json_text_bracketed(json, "[", json_text_items(json, json_text_value(json), 0, GRAMMAR_UNBOUNDED),
                               "]");
}

static const struct expression *value_body(struct json_text *json)
{
    struct rules *r = json->rules;
    return CHOICE(r, json_text_object(json), json_text_array(json), json_text_string(json),
                  json_text_number(json), expression_text(r, "true"), expression_text(r, "false"),
                  expression_text(r, "null"));
}

const struct expression *json_text_value(struct json_text *json)
{
    return rule(json, &json->value, "value", value_body);
}

const struct expression *json_text_object(struct json_text *json)
{
    return rule(json, &json->object, "object", object_body);
}

const struct expression *json_text_array(struct json_text *json)
{
    return rule(json, &json->array, "array", array_body);
}
