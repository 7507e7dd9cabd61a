/* SPDX-License-Identifier: MIT */
/* Strings and numbers. A format is a regular expression for texts that every reader of that format takes. */

#include <math.h>
#include <string.h>

#include "text/grammar/json_schema/internal.h"
#include "text/grammar/regex.h"

#define DATE                                                                                                 \
    "([0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)-"                                                  \
    "((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8])" \
    ")"
#define TIME  "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
#define LABEL "[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?"
#define OCTET "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"

static const struct {
    const char *name, *pattern;
} formats[] = {
    {"date", DATE},
    {"time", TIME},
    {"date-time", DATE "T" TIME},
    {"duration",
     "P([0-9]{1,4}W|([0-9]{1,4}Y)?([0-9]{1,4}M)?[0-9]{1,4}D|T[0-9]{1,4}(H|M|S)|T[0-9]{1,4}H[0-9]{1,4}M|"
     "[0-9]{1,4}DT[0-9]{1,4}H)"},
    {"uuid", "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"},
    {"email", "[a-zA-Z0-9_+-]{1,32}(\\.[a-zA-Z0-9_+-]{1,32}){0,3}@" LABEL "(\\." LABEL "){0,3}\\.[a-z]{2,8}"},
    {"hostname", LABEL "(\\." LABEL "){0,3}\\.[a-z]{2,8}"},
    {"ipv4", OCTET "\\." OCTET "\\." OCTET "\\." OCTET},
    {"uri", "https?://" LABEL "(\\." LABEL "){0,3}(:[1-9][0-9]{0,3})?(/[a-zA-Z0-9._~-]{0,64}){0,8}"
            "(\\?[a-zA-Z0-9._~=&-]{0,128})?(#[a-zA-Z0-9._~-]{0,64})?"},
};

static const struct expression *of_regex(struct schema_reader *reader, const char *keyword, struct bytes text,
                                         bool search)
{
    const struct regex_style style = {json_text_spelling, search};
    const struct expression *expression = NULL;
    struct error reason = {0};
    int r = regex_expression(text, &style, reader->rules, &expression, &reason);
    if (r != 0)
        return schema_refuse(reader, "%s: %.180s", keyword, r > 0 ? reason.text : "out of memory");
    return json_text_quoted(&reader->json, expression);
}

static const struct expression *of_format(struct schema_reader *reader, const json_t *format)
{
    const char *name = json_string_value(format);
    for (size_t i = 0; name && i < sizeof formats / sizeof *formats; i++)
        if (strcmp(formats[i].name, name) == 0)
            return of_regex(reader, "format", bytes_of_string(formats[i].pattern), false);
    return schema_refuse(reader, "the format \"%.40s\" is not supported", name ? name : "?");
}

const struct expression *schema_string(struct schema_reader *reader, const json_t *schema)
{
    const json_t *pattern = json_object_get(schema, "pattern"), *format = json_object_get(schema, "format");
    uint32_t least, most;
    if (!schema_count(reader, schema, "minLength", 0, &least) ||
        !schema_count(reader, schema, "maxLength", GRAMMAR_UNBOUNDED, &most))
        return NULL;
    bool counted = least > 0 || most != GRAMMAR_UNBOUNDED;
    if ((pattern != NULL) + (format != NULL) + counted > 1)
        return schema_refuse(reader, "only one of pattern, format and minLength/maxLength is supported");
    if (least > most)
        return schema_refuse(reader, "no string can have minLength characters");
    if (pattern && !json_is_string(pattern))
        return schema_refuse(reader, "pattern is not a string");
    if (pattern)
        return of_regex(reader, "pattern",
                        (struct bytes){json_string_value(pattern), json_string_length(pattern)}, true);
    if (format)
        return of_format(reader, format);
    if (!counted)
        return json_text_string(&reader->json);
    return json_text_quoted(
        &reader->json, expression_repeat(reader->rules, json_text_character(&reader->json), least, most));
}

/* A bound of a number; false: refused. */
static bool read_bound(struct schema_reader *reader, const json_t *schema, const char *keyword, bool integer,
                       bool up, int64_t *bound, bool *ret_there)
{
    const json_t *value = json_object_get(schema, keyword);
    double number = json_number_value(value);
    *ret_there = value != NULL;
    if (!value)
        return true;
    if (!json_is_number(value)) {
        schema_refuse(reader, "%s is not a number", keyword);
        return false;
    }
    if (number != floor(number) && !integer) {
        schema_refuse(reader, "%s is %g; numbers with fractions support only whole bounds", keyword, number);
        return false;
    }
    /* Of an integer a bound between two numbers is the next one inside; beyond all that is made it is none.
     */
    number = up ? floor(number) : ceil(number);
    number = number > JSON_MOST_BOUND    ? JSON_MOST_BOUND
             : number < -JSON_MOST_BOUND ? -JSON_MOST_BOUND
                                         : number;
    *bound = (int64_t)number;
    return true;
}

/* Takes an exclusive bound into account beside the other one. */
static void take_exclusive(const json_t *schema, const char *keyword, int64_t exclusive, bool up,
                           int64_t *bound, bool *open)
{
    double number = json_number_value(json_object_get(schema, keyword));
    bool whole = number == floor(number);
    if (up ? exclusive < *bound : exclusive > *bound)
        *bound = exclusive, *open = whole;
    else if (exclusive == *bound)
        *open = *open || whole;
}

const struct expression *schema_number(struct schema_reader *reader, const json_t *schema, bool integer)
{
    struct json_bounds bounds = {.low = -JSON_MOST_BOUND, .high = JSON_MOST_BOUND};
    int64_t low = 0, high = 0;
    bool has[4];
    if (!read_bound(reader, schema, "minimum", integer, false, &bounds.low, &has[0]) ||
        !read_bound(reader, schema, "maximum", integer, true, &bounds.high, &has[1]) ||
        !read_bound(reader, schema, "exclusiveMinimum", integer, false, &low, &has[2]) ||
        !read_bound(reader, schema, "exclusiveMaximum", integer, true, &high, &has[3]))
        return NULL;
    if (!has[0] && !has[1] && !has[2] && !has[3])
        return integer ? json_text_integer(&reader->json) : json_text_number(&reader->json);
    if (has[2])
        take_exclusive(schema, "exclusiveMinimum", low, false, &bounds.low, &bounds.low_open);
    if (has[3])
        take_exclusive(schema, "exclusiveMaximum", high, true, &bounds.high, &bounds.high_open);
    const struct expression *number =
        bounds.low <= bounds.high ? json_text_between(&reader->json, &bounds, !integer) : NULL;
    return number ? number : schema_refuse(reader, "no number lies within the bounds");
}
