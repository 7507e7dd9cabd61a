/* SPDX-License-Identifier: MIT */
/* A recursive descent over the text, which need not be UTF-8 until it was looked at: characters of literals
 * and sets are decoded one by one, and one that is none is an error at its line. Nesting is bounded, so that
 * no text exhausts the stack. */

#include "text/grammar/gbnf.h"

#include <errno.h>
#include <string.h>

#include "text/grammar/characters.h"
#include "text/grammar/json_schema/json_schema.h"

#define MOST_REPEATS 2 /* of one item: a+? is a* */

struct gbnf_reader {
    struct text_cursor at;
    struct rules *rules;
    struct error *err;
    uint32_t depth;
    uint32_t rule; /* that is being read */
    struct json_schemas schemas;
};

static int invalid(struct gbnf_reader *reader, const char *what)
{
    return error_set(reader->err, GRAMMAR_E_INVALID, "grammar: line %u: %s", cursor_line(&reader->at), what);
}

static bool is_name_char(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static void skip_blanks(struct gbnf_reader *reader)
{
    for (int c = cursor_peek(&reader->at); c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '#';
         c = cursor_peek(&reader->at)) {
        if (c == '#')
            while (cursor_peek(&reader->at) != '\n' && cursor_peek(&reader->at) >= 0)
                reader->at.pos++;
        else
            reader->at.pos++;
    }
}

static struct bytes read_name(struct gbnf_reader *reader)
{
    size_t start = reader->at.pos;
    while (is_name_char(cursor_peek(&reader->at)))
        reader->at.pos++;
    return (struct bytes){reader->at.data + start, reader->at.pos - start};
}

/* Whether `name ::=` is next: then the rule before it has ended. */
static bool at_definition(struct gbnf_reader *reader)
{
    struct text_cursor before = reader->at;
    bool is = read_name(reader).len > 0;
    skip_blanks(reader);
    is = is && cursor_take(&reader->at, "::=");
    reader->at = before;
    return is;
}

static int read_literal(struct gbnf_reader *reader, const struct expression **ret_expression)
{
    struct buffer text = {0};
    reader->at.pos++;
    int r = 0;
    while (r == 0 && cursor_peek(&reader->at) != '"') {
        uint32_t point = 0;
        if (cursor_peek(&reader->at) < 0 || cursor_peek(&reader->at) == '\n')
            r = invalid(reader, "unterminated literal");
        else if (!cursor_character(&reader->at, CURSOR_GBNF, &point))
            r = invalid(reader, "invalid escape or byte in a literal");
        else
            r = characters_append(&text, point);
    }
    reader->at.pos += r == 0;
    if (r == 0)
        *ret_expression = expression_literal(reader->rules, (struct bytes){text.data, text.len});
    buffer_deinit(&text);
    return r;
}

static int read_set(struct gbnf_reader *reader, const struct expression **ret_expression)
{
    struct code_set set = {0};
    reader->at.pos++;
    bool negated = cursor_take(&reader->at, "^");
    int r = 0;
    while (r == 0 && cursor_peek(&reader->at) != ']') {
        struct code_range range;
        const char *reason;
        if (!cursor_range(&reader->at, CURSOR_GBNF, &range, &reason))
            return invalid(reader, reason);
        r = code_set_add(reader->rules, &set, range);
    }
    reader->at.pos += r == 0;
    *ret_expression = expression_chars(reader->rules, set.ranges, set.n, negated);
    return r;
}

static int read_sequence(void *arg, const struct expression **ret_expression);

static int read_group(struct gbnf_reader *reader, const struct expression **ret_expression)
{
    const char *reason;
    reader->at.pos++;
    int r = cursor_group(&reader->at, &reader->depth, reader->rules, read_sequence, reader, ret_expression,
                         &reason);
    return reason ? invalid(reader, reason) : r;
}

static int read_reference(struct gbnf_reader *reader, const struct expression **ret_expression)
{
    uint32_t rule = rules_named(reader->rules, read_name(reader));
    if (rule == UINT32_MAX && reader->rules->n == GRAMMAR_MOST_RULES)
        return invalid(reader, "too many rules");
    *ret_expression = expression_rule(reader->rules, rule);
    return 0;
}

/* A schema, behind %json. Its errors name its rule: that is more than a line, where a program wrote the text.
 */
static int read_schema(struct gbnf_reader *reader, const struct expression **ret_expression)
{
    struct error reason = {0};
    size_t taken = 0;
    skip_blanks(reader);
    if (cursor_peek(&reader->at) != '{')
        return invalid(reader, "expected a JSON object after %json");
    int r = json_schema_embed(
        &reader->schemas, (struct bytes){reader->at.data + reader->at.pos, reader->at.len - reader->at.pos},
        &taken, ret_expression, &reason);
    reader->at.pos += taken;
    return r == GRAMMAR_E_INVALID ? error_set(reader->err, r, "grammar: the rule \"%s\": %s",
                                              reader->rules->items[reader->rule].name, reason.text)
                                  : r;
}

/* An item without its repeats. */
static int read_single(struct gbnf_reader *reader, const struct expression **ret_expression)
{
    static const struct code_range all = {0, GRAMMAR_MOST_POINT};
    int c = cursor_peek(&reader->at);
    if (c == '"')
        return read_literal(reader, ret_expression);
    if (c == '[')
        return read_set(reader, ret_expression);
    if (c == '(')
        return read_group(reader, ret_expression);
    if (is_name_char(c))
        return read_reference(reader, ret_expression);
    if (cursor_take(&reader->at, "%json"))
        return read_schema(reader, ret_expression);
    if (c != '.')
        return invalid(reader, "expected a literal, set, group, schema or rule name");
    reader->at.pos++;
    *ret_expression = expression_chars(reader->rules, &all, 1, false);
    return 0;
}

static int read_repeats(struct gbnf_reader *reader, const struct expression **expression)
{
    struct repeat repeat;
    int r, n = 0;
    while ((r = cursor_repeat(&reader->at, true, &repeat)) > 0 && n++ < MOST_REPEATS)
        *expression = expression_repeat(reader->rules, *expression, repeat.least, repeat.most);
    if (r > 0)
        return invalid(reader, "repetitions nested too deeply");
    return r < 0 ? invalid(reader, "invalid repetition: expected {m}, {m,} or {m,n} with m ≤ n ≤ 65536") : 0;
}

static int read_item(void *arg, bool *ret_end, const struct expression **ret_item)
{
    struct gbnf_reader *reader = arg;
    skip_blanks(reader);
    int c = cursor_peek(&reader->at);
    *ret_end = c < 0 || c == '|' || c == ')' || (is_name_char(c) && at_definition(reader));
    if (*ret_end)
        return 0;
    int r = read_single(reader, ret_item);
    return r == 0 ? read_repeats(reader, ret_item) : r;
}

static int read_sequence(void *arg, const struct expression **ret_expression)
{
    struct gbnf_reader *reader = arg;
    struct expression_list list = {0};
    int r = cursor_items(reader->rules, read_item, reader, &list);
    if (r == 0)
        *ret_expression = expression_sequence(reader->rules, &list);
    return r;
}

static int read_rule(struct gbnf_reader *reader)
{
    struct bytes name = read_name(reader);
    const struct expression *body = NULL;
    if (name.len == 0 || name.len >= sizeof reader->rules->items->name)
        return invalid(reader, "expected a rule name: at most 63 of a-z A-Z 0-9 - _");
    skip_blanks(reader);
    if (!cursor_take(&reader->at, "::="))
        return invalid(reader, "expected ::= after the rule name");
    uint32_t rule = rules_named(reader->rules, name);
    if (rule == UINT32_MAX)
        return invalid(reader, "too many rules");
    if (reader->rules->items[rule].body)
        return error_set(reader->err, GRAMMAR_E_INVALID, "grammar: duplicate rule \"%s\"",
                         reader->rules->items[rule].name);
    reader->rule = rule;
    int r = cursor_choice(&reader->at, reader->rules, read_sequence, reader, &body);
    if (r == 0 && cursor_peek(&reader->at) == ')')
        r = invalid(reader, "unmatched )");
    if (r == 0 && !body)
        r = error_set(reader->err, GRAMMAR_E_INVALID, "grammar: too large");
    reader->rules->items[rule].body = body;
    return r;
}

int gbnf_read(struct bytes text, struct rules *rules, struct error *err)
{
    struct gbnf_reader reader = {.at = {text.data, text.len, 0}, .rules = rules, .err = err};
    json_schemas_init(&reader.schemas, rules);
    skip_blanks(&reader);
    while (cursor_peek(&reader.at) >= 0) {
        int r = read_rule(&reader);
        if (r != 0)
            return r;
        skip_blanks(&reader);
    }
    for (uint32_t i = 0; i < rules->n; i++)
        if (!rules->items[i].body)
            return error_set(err, GRAMMAR_E_INVALID, "grammar: undefined rule \"%s\"", rules->items[i].name);
    uint32_t n = rules->n;
    rules->root = rules_named(rules, BYTES_LITERAL("root"));
    return rules->root < n ? 0 : error_set(err, GRAMMAR_E_INVALID, "grammar: undefined rule \"root\"");
}
