/* SPDX-License-Identifier: MIT */
/* See json_text.h. Strings, values, objects and arrays are rules that stay frames of their own: what may
 * stand in a string is then found out once for all strings (mask.c). */

#include "text/grammar/json_text.h"

#include "text/grammar/json_strings.h"

#define MOST_BLANKS 20

void json_text_init(struct json_text *json, struct rules *rules)
{
    const uint32_t none = UINT32_MAX;
    *json = (struct json_text){rules, none, none, none, none, none, none, none, none, none};
}

static const struct expression *set(struct rules *rules, const struct code_range *ranges, uint32_t n)
{
    return expression_chars(rules, ranges, n, false);
}
#define SET(rules, ...)                                                                                      \
    set((rules), (const struct code_range[]){__VA_ARGS__},                                                   \
        sizeof((const struct code_range[]){__VA_ARGS__}) / sizeof(struct code_range))

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

const struct expression *json_text_rule(struct json_text *json, uint32_t *place, const char *name,
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
    return expression_optional(json->rules, json_text_rule(json, &json->blank, "blank", blank_body));
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
    return json_text_rule(json, &json->number, "number", number_body);
}

const struct expression *json_text_integer(struct json_text *json)
{
    return json_text_rule(json, &json->integer, "integer", integer_body);
}

/* ---- any value ---- */

static const struct expression *object_body(struct json_text *json)
{
    const struct expression *member = json_text_member(json, json_string_any(json), json_text_value(json));
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
    return CHOICE(r, json_text_object(json), json_text_array(json), json_string_any(json),
                  json_text_number(json), expression_text(r, "true"), expression_text(r, "false"),
                  expression_text(r, "null"));
}

const struct expression *json_text_value(struct json_text *json)
{
    return json_text_rule(json, &json->value, "value", value_body);
}

const struct expression *json_text_object(struct json_text *json)
{
    return json_text_rule(json, &json->object, "object", object_body);
}

const struct expression *json_text_array(struct json_text *json)
{
    return json_text_rule(json, &json->array, "array", array_body);
}
