/* SPDX-License-Identifier: MIT */
/* A recursive descent. Anchors are looked for at the ends of the outermost alternatives only; anywhere else
 * they would be assertions, which an automaton that makes text cannot look back for. */

#include "text/grammar/regex.h"

#include <errno.h>
#include <string.h>

#include "text/grammar/characters.h"

struct regex_reader {
    struct text_cursor at;
    struct rules *rules;
    const struct regex_style *style;
    struct error *err;
    uint32_t depth;
    bool anchored; /* the outermost alternative has ended with $ */
};

static const struct code_range digits[] = {{'0', '9'}};
static const struct code_range words[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
static const struct code_range spaces[] = {{'\t', '\r'}, {' ', ' '}};
static const struct code_range line_ends[] = {{'\n', '\n'}, {'\r', '\r'}};

static int invalid(struct regex_reader *reader, const char *what)
{
    return error_set(reader->err, GRAMMAR_E_INVALID, "regex: at byte %zu: %s", reader->at.pos, what);
}

static const struct expression *spell(struct regex_reader *reader, const struct code_range *ranges,
                                      uint32_t n, bool negated)
{
    const struct expression *chars = expression_chars(reader->rules, ranges, n, negated);
    return chars && reader->style->spell ? reader->style->spell(reader->style->arg, chars) : chars;
}

/* The class that an escape names, or NULL. */
static const struct code_range *class_of(int c, uint32_t *ret_n, bool *ret_negated)
{
    *ret_negated = c == 'D' || c == 'W' || c == 'S';
    switch (c | 0x20) {
    case 'd':
        *ret_n = sizeof digits / sizeof *digits;
        return digits;
    case 'w':
        *ret_n = sizeof words / sizeof *words;
        return words;
    case 's':
        *ret_n = sizeof spaces / sizeof *spaces;
        return spaces;
    default:
        return NULL;
    }
}

/* A class inside a set: its ranges, or those of all other characters. */
static int add_class(struct regex_reader *reader, struct code_set *set, const struct code_range *ranges,
                     uint32_t n, bool negated)
{
    const struct expression *chars = expression_chars(reader->rules, ranges, n, negated);
    int r = chars ? 0 : -ENOMEM;
    for (uint32_t i = 0; r == 0 && i < chars->n; i++)
        r = code_set_add(reader->rules, set, chars->ranges[i]);
    return r;
}

static int read_set_item(struct regex_reader *reader, struct code_set *set)
{
    struct code_range range;
    uint32_t n;
    bool negated;
    const struct code_range *class =
        cursor_peek(&reader->at) == '\\' ? class_of(cursor_peek_second(&reader->at), &n, &negated) : NULL;
    if (class) {
        reader->at.pos += 2;
        return add_class(reader, set, class, n, negated);
    }
    const char *reason;
    if (!cursor_range(&reader->at, CURSOR_REGEX, &range, &reason))
        return invalid(reader, reason);
    return code_set_add(reader->rules, set, range);
}

static int read_set(struct regex_reader *reader, const struct expression **ret_expression)
{
    struct code_set set = {0};
    reader->at.pos++;
    bool negated = cursor_take(&reader->at, "^");
    do { /* a ] that comes first is a character */
        int r = read_set_item(reader, &set);
        if (r != 0)
            return r;
    } while (cursor_peek(&reader->at) != ']');
    reader->at.pos++;
    *ret_expression = spell(reader, set.ranges, set.n, negated);
    return 0;
}

static int read_sequence(void *arg, const struct expression **ret_expression);

static int read_group(struct regex_reader *reader, const struct expression **ret_expression)
{
    reader->at.pos++;
    if (cursor_take(&reader->at, "?")) {
        bool named = cursor_take(&reader->at, "P<") ||
                     (cursor_peek(&reader->at) == '<' && cursor_peek_second(&reader->at) != '=' &&
                      cursor_peek_second(&reader->at) != '!' && cursor_take(&reader->at, "<"));
        while (named && cursor_peek(&reader->at) >= 0 && cursor_peek(&reader->at) != '>')
            reader->at.pos++;
        if (named ? !cursor_take(&reader->at, ">") : !cursor_take(&reader->at, ":"))
            return invalid(reader, "assertions and flags, (?…), are not supported");
    }
    const char *reason;
    int r = cursor_group(&reader->at, &reader->depth, reader->rules, read_sequence, reader, ret_expression,
                         &reason);
    return reason ? invalid(reader, reason) : r;
}

static int read_escape(struct regex_reader *reader, const struct expression **ret_expression)
{
    uint32_t n;
    bool negated;
    int c = cursor_peek_second(&reader->at);
    const struct code_range *class = class_of(c, &n, &negated);
    if (class) {
        reader->at.pos += 2;
        *ret_expression = spell(reader, class, n, negated);
        return 0;
    }
    struct code_range range;
    if (c >= '0' && c <= '9')
        return invalid(reader, "back references are not supported");
    if (c == 'b' || c == 'B' || c == 'A' || c == 'Z' || c == 'z')
        return invalid(reader, "assertions (\\b and others) are not supported");
    if (!cursor_character(&reader->at, CURSOR_REGEX, &range.first))
        return invalid(reader, "unsupported escape");
    range.last = range.first;
    *ret_expression = spell(reader, &range, 1, false);
    return 0;
}

/* An item without its repeats. */
static int read_single(struct regex_reader *reader, const struct expression **ret_expression)
{
    struct code_range range;
    switch (cursor_peek(&reader->at)) {
    case '(':
        return read_group(reader, ret_expression);
    case '[':
        return read_set(reader, ret_expression);
    case '\\':
        return read_escape(reader, ret_expression);
    case '.':
        reader->at.pos++;
        *ret_expression = spell(reader, line_ends, 2, true);
        return 0;
    case '*':
    case '+':
    case '?':
    case '{':
        return invalid(reader, "nothing to repeat");
    case '^':
    case '$':
        return invalid(reader, "^ and $ are supported only at the ends of the whole expression");
    default:
        if (!cursor_character(&reader->at, CURSOR_REGEX, &range.first))
            return invalid(reader, "not UTF-8");
        range.last = range.first;
        *ret_expression = spell(reader, &range, 1, false);
        return 0;
    }
}

static int read_repeats(struct regex_reader *reader, const struct expression **expression)
{
    struct repeat repeat;
    int r = cursor_repeat(&reader->at, false, &repeat);
    if (r > 0)
        *expression = expression_repeat(reader->rules, *expression, repeat.least, repeat.most);
    if (r > 0 && cursor_take(&reader->at, "+"))
        return invalid(reader, "possessive quantifiers are not supported");
    if (r > 0)
        cursor_take(&reader->at, "?");
    return r < 0 ? invalid(reader, "invalid repetition: expected {m}, {m,} or {m,n} with m ≤ n ≤ 65536") : 0;
}

/* Whether an anchor for the end is next, which may be followed by nothing but another alternative. */
static bool at_end_anchor(const struct regex_reader *reader)
{
    int after = cursor_peek_second(&reader->at);
    return reader->depth == 0 && cursor_peek(&reader->at) == '$' && (after < 0 || after == '|');
}

static int read_item(void *arg, bool *ret_end, const struct expression **ret_item)
{
    struct regex_reader *reader = arg;
    int c = cursor_peek(&reader->at);
    reader->anchored = at_end_anchor(reader);
    reader->at.pos += reader->anchored;
    *ret_end = reader->anchored || c < 0 || c == '|' || (c == ')' && reader->depth > 0);
    if (*ret_end)
        return 0;
    if (c == ')')
        return invalid(reader, "unmatched )");
    int r = read_single(reader, ret_item);
    return r == 0 ? read_repeats(reader, ret_item) : r;
}

/* One that searches has anything before and behind it, where no anchor stands. */
static int read_sequence(void *arg, const struct expression **ret_expression)
{
    struct regex_reader *reader = arg;
    struct expression_list list = {0};
    const struct expression *anything = NULL;
    const bool outermost = reader->depth == 0, searches = outermost && reader->style->search;
    if (searches)
        anything = expression_repeat(reader->rules, spell(reader, NULL, 0, true), 0, GRAMMAR_UNBOUNDED);
    const bool begins = outermost && cursor_take(&reader->at, "^");
    if (searches && !begins)
        expression_push(reader->rules, &list, anything);
    int r = cursor_items(reader->rules, read_item, reader, &list);
    if (r != 0)
        return r;
    if (searches && !reader->anchored)
        expression_push(reader->rules, &list, anything);
    *ret_expression = expression_sequence(reader->rules, &list);
    return 0;
}

int regex_expression(struct bytes text, const struct regex_style *style, struct rules *rules,
                     const struct expression **ret_expression, struct error *err)
{
    struct regex_reader reader = {.at = {text.data, text.len, 0}, .rules = rules, .style = style, .err = err};
    const struct expression *expression = NULL;
    int r = cursor_choice(&reader.at, rules, read_sequence, &reader, &expression);
    if (r == 0 && !expression)
        return error_set(err, GRAMMAR_E_INVALID, "regex: too large");
    if (r == 0)
        *ret_expression = expression;
    return r;
}

int regex_read(struct bytes text, struct rules *rules, struct error *err)
{
    static const struct regex_style whole = {0};
    const struct expression *body;
    int r = regex_expression(text, &whole, rules, &body, err);
    if (r != 0)
        return r;
    rules->root = rules_add(rules, "root");
    if (rules->root == UINT32_MAX)
        return -ENOMEM;
    rules->items[rules->root].body = body;
    return 0;
}
