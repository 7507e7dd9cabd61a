/* SPDX-License-Identifier: MIT */
/* Filters of single values: text, numbers, JSON, defaults. Those of lists are in list_filters.c.
 *
 * A filter's first argument is the value before the bar. */

#include "text/template/jinja/library/library.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "text/template/jinja/string_ops.h"
#include "text/template/jinja/arithmetic.h"
#include "text/template/jinja/operators.h"
#include "text/template/jinja/print.h"

static int trim(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    const struct jinja_string *text, *set;
    int r = jinja_string_argument(run, a, 1, "chars", &set);
    if (r == 0)
        r = jinja_text_of(run, a->items[0], &text);
    return r != 0 ? r : jinja_strip(run, text, JINJA_LEFT | JINJA_RIGHT, set, ret_value);
}

static int change_case(struct jinja_run *run, const struct jinja_arguments *a, enum jinja_case change,
                       struct jinja_value *ret_value)
{
    const struct jinja_string *text;
    int r = jinja_text_of(run, a->items[0], &text);
    return r != 0 ? r : jinja_change_case(run, text, change, ret_value);
}

static int lower(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return change_case(run, a, JINJA_LOWER, ret_value);
}

static int upper(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return change_case(run, a, JINJA_UPPER, ret_value);
}

static int title(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return change_case(run, a, JINJA_TITLE_WORDS, ret_value);
}

static int capitalize(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return change_case(run, a, JINJA_CAPITAL, ret_value);
}

static int string(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    const struct jinja_string *text;
    int r = jinja_text_of(run, a->items[0], &text);
    return r != 0 ? r : jinja_of_part(run, text, 0, text->len, ret_value);
}

static int replace(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    const struct jinja_string *text, *from, *to;
    int64_t times;
    int r = jinja_text_of(run, a->items[0], &text);
    if (r == 0)
        r = jinja_string_argument(run, a, 1, "old", &from);
    if (r == 0)
        r = jinja_string_argument(run, a, 2, "new", &to);
    if (r == 0)
        r = jinja_int_argument(run, a, 3, "count", -1, &times);
    if (r == 0 && (!from || !to))
        return jinja_fail(run, -EINVAL, "replace takes two strings");
    if (r != 0)
        return r;
    struct jinja_string plain = *text;
    plain.html = false; /* the filter escapes nothing, unlike the method */
    return jinja_replace(run, &plain, from, to, times, ret_value);
}

static int escape(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    const struct jinja_string *text;
    int r = jinja_text_of(run, a->items[0], &text);
    return r != 0 ? r : jinja_escape(run, text, ret_value);
}

static int force_escape(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    const struct jinja_string *text;
    int r = jinja_text_of(run, a->items[0], &text);
    if (r != 0)
        return r;
    struct jinja_string plain = *text;
    plain.html = false;
    return jinja_escape(run, &plain, ret_value);
}

static int safe(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    const struct jinja_string *text;
    struct jinja_builder builder = {.html = true};
    int r = jinja_text_of(run, a->items[0], &text);
    if (r == 0)
        r = jinja_append_string(run, &builder, text);
    return r != 0 ? r : jinja_of_builder(run, &builder, ret_value);
}

/* "%s …" | format(a, b) or format(name=a) */
static int format(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    const struct jinja_string *text;
    struct jinja_value values;
    int r = jinja_text_of(run, a->items[0], &text);
    if (r == 0)
        r = a->n_named > 0 ? jinja_new_dict(run, &values) : jinja_new_list(run, a->n, &values);
    if (r == 0 && a->n_named == 0)
        values.list->is_tuple = true;
    for (size_t i = 0; r == 0 && i < a->n_named; i++)
        r = jinja_dict_set(run, values.dict, a->named[i].key, a->named[i].value);
    for (size_t i = 1; r == 0 && a->n_named == 0 && i < a->n; i++)
        r = jinja_list_add(run, values.list, a->items[i]);
    return r != 0 ? r : jinja_format_percent(run, text, values, ret_value);
}

static int attribute(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    const struct jinja_string *name;
    int r = jinja_string_argument(run, a, 1, "name", &name);
    if (r == 0 && !name)
        return jinja_fail(run, -EINVAL, "attr takes a name");
    *ret_value = (struct jinja_value){.type = JINJA_UNDEFINED};
    if (r != 0 || a->items[0].type == JINJA_DICT) /* the members of a mapping are no attributes */
        return r;
    return jinja_attribute(run, a->items[0], (struct bytes){name->data, name->len}, NULL, ret_value);
}

static int center(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    const struct jinja_string *text;
    int64_t width;
    int r = jinja_text_of(run, a->items[0], &text);
    if (r == 0)
        r = jinja_int_argument(run, a, 1, "width", 80, &width);
    return r != 0 ? r : jinja_pad(run, text, JINJA_LEFT | JINJA_RIGHT, width, NULL, ret_value);
}

static int count_words(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    const struct jinja_string *text;
    int64_t n = 0;
    bool inside = false;
    int r = jinja_text_of(run, a->items[0], &text);
    if (r == 0)
        r = jinja_spend(run, 1 + text->len / 16);
    for (size_t i = 0; r == 0 && i < text->len; i++) {
        const uint8_t byte = (uint8_t)text->data[i];
        bool letter = byte >= 0x80 || byte == '_' || (byte >= '0' && byte <= '9') ||
                      ((byte | 32) >= 'a' && (byte | 32) <= 'z');
        n += letter && !inside;
        inside = letter;
    }
    if (r == 0)
        *ret_value = jinja_of_int(n);
    return r;
}

/* Puts blanks before every line but the first, which needs first=true; empty lines need blank=true. */
static int indent(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    const struct jinja_string *text;
    struct jinja_builder builder = {0};
    struct jinja_value width = jinja_of_int(4), first = jinja_of_bool(false), blank = jinja_of_bool(false);
    jinja_argument(a, 1, "width", &width);
    jinja_argument(a, 2, "first", &first);
    jinja_argument(a, 3, "blank", &blank);
    static const char blanks[] = "                                                                ";
    struct jinja_string by = {.data = blanks};
    if (width.type == JINJA_STR)
        by = *width.string;
    else if (width.type == JINJA_INT && width.integer >= 0 && width.integer < (int64_t)sizeof blanks)
        by.len = (size_t)width.integer;
    else
        return jinja_fail(run, -EINVAL, "indent takes a width of 0 to %zu", sizeof blanks - 1);
    int r = jinja_text_of(run, a->items[0], &text);
    if (r == 0)
        builder.html = text->html;
    for (size_t at = 0; r == 0 && at < text->len;) {
        const char *newline = memchr(text->data + at, '\n', text->len - at);
        size_t len = newline ? (size_t)(newline + 1 - (text->data + at)) : text->len - at;
        bool empty = text->data[at] == '\n';
        if (at == 0 ? jinja_is_true(first) : !empty || jinja_is_true(blank))
            r = jinja_append_string(run, &builder, &by);
        if (r == 0)
            r = jinja_append(run, &builder, text->data + at, len, text->marks ? text->marks + at : NULL);
        at += len;
    }
    return r != 0 ? r : jinja_of_builder(run, &builder, ret_value);
}

/* The parameters have the order that Hugging Face gives them. */
static int to_json(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    struct jinja_value option;
    struct jinja_builder builder = {0};
    struct jinja_json_style style = {
        .ascii = jinja_argument(a, 1, "ensure_ascii", &option) && jinja_is_true(option),
        .sorted = jinja_argument(a, 4, "sort_keys", &option) && jinja_is_true(option),
        .item_separator = {.data = ", ", .len = 2},
        .key_separator = {.data = ": ", .len = 2},
    };
    int64_t width = -1;
    int r = jinja_int_argument(run, a, 2, "indent", -1, &width);
    if (r == 0 && width > 64)
        return jinja_fail(run, -EINVAL, "tojson takes an indent of 0 to 64");
    style.indent = (int)(width < 0 ? -1 : width);
    style.item_separator.len -= width >= 0; /* a line ends in a comma alone */
    if (jinja_argument(a, 3, "separators", &option) && option.type != JINJA_NONE) {
        if (option.type != JINJA_LIST || option.list->n != 2 || option.list->items[0].type != JINJA_STR ||
            option.list->items[1].type != JINJA_STR)
            return jinja_fail(run, -EINVAL, "tojson takes two separators");
        style.item_separator = *option.list->items[0].string;
        style.key_separator = *option.list->items[1].string;
    }
    if (r == 0)
        r = jinja_append_json(run, &builder, a->items[0], &style, 0);
    return r != 0 ? r : jinja_of_builder(run, &builder, ret_value);
}

static int fall_back(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    struct jinja_value value = a->items[0], otherwise, option = jinja_of_bool(false);
    if (!jinja_argument(a, 1, "default_value", &otherwise)) {
        int r = jinja_of_bytes(run, "", 0, NULL, &otherwise);
        if (r != 0)
            return r;
    }
    jinja_argument(a, 2, "boolean", &option);
    bool missing = value.type == JINJA_UNDEFINED || (jinja_is_true(option) && !jinja_is_true(value));
    *ret_value = missing ? otherwise : value;
    return 0;
}

static int length(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    int64_t n;
    int r = jinja_length(run, a->items[0], &n);
    if (r == 0)
        *ret_value = jinja_of_int(n);
    return r;
}

/* The number that a string spells, or `otherwise`. */
static double number_of(struct jinja_value value, double otherwise)
{
    if (value.type == JINJA_INT)
        return (double)value.integer;
    if (value.type == JINJA_FLOAT)
        return value.real;
    if (value.type == JINJA_BOOLEAN)
        return value.boolean;
    char text[64], *end;
    if (value.type != JINJA_STR || value.string->len == 0 || value.string->len >= sizeof text)
        return otherwise;
    memcpy(text, value.string->data, value.string->len);
    text[value.string->len] = '\0';
    double number = strtod(text, &end);
    if (end == text)
        return otherwise;
    while (*end == ' ' || *end == '\n')
        end++;
    return *end ? otherwise : number;
}

/* Whether a string is a whole number in that base; 0: in the one that its prefix says. */
static bool whole_of(const struct jinja_string *string, int base, struct jinja_value *ret_value)
{
    char text[80], *end;
    if (string->len == 0 || string->len >= sizeof text)
        return false;
    memcpy(text, string->data, string->len);
    text[string->len] = '\0';
    errno = 0;
    const long long number = strtoll(text, &end, base);
    const bool any = end > text && errno == 0;
    end += strspn(end, " \n");
    if (!any || *end)
        return false;
    *ret_value = jinja_of_int(number);
    return true;
}

static int to_int(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    int64_t otherwise, base;
    int r = jinja_int_argument(run, a, 1, "default", 0, &otherwise);
    if (r == 0)
        r = jinja_int_argument(run, a, 2, "base", 10, &base);
    if (r == 0 && (base < 0 || base == 1 || base > 36))
        return jinja_fail(run, -EINVAL, "int takes a base of 2 to 36, or 0");
    if (r != 0)
        return r;
    if (a->items[0].type == JINJA_INT) {
        *ret_value = a->items[0];
        return 0;
    }
    if (a->items[0].type == JINJA_STR && whole_of(a->items[0].string, (int)base, ret_value))
        return 0;
    double number = trunc(number_of(a->items[0], (double)otherwise));
    bool fits = number >= -9.2e18 && number <= 9.2e18;
    *ret_value = jinja_of_int(fits ? (int64_t)number : otherwise);
    return 0;
}

static int to_float(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    struct jinja_value otherwise = jinja_of_real(0);
    jinja_argument(a, 1, "default", &otherwise);
    *ret_value = jinja_of_real(number_of(a->items[0], number_of(otherwise, 0)));
    return 0;
}

static int absolute(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    if (a->items[0].type == JINJA_FLOAT) {
        *ret_value = jinja_of_real(fabs(a->items[0].real));
        return 0;
    }
    if (a->items[0].type == JINJA_BOOLEAN) {
        *ret_value = jinja_of_int(a->items[0].boolean);
        return 0;
    }
    if (a->items[0].type != JINJA_INT)
        return jinja_fail(run, -EINVAL, "abs takes a number, not %s", jinja_type_name(a->items[0]));
    if (a->items[0].integer >= 0) {
        *ret_value = a->items[0];
        return 0;
    }
    return jinja_calculate(run, JINJA_SUBTRACT, jinja_of_int(0), a->items[0], ret_value);
}

static int round_off(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    int64_t digits;
    struct jinja_value method = {.type = JINJA_UNDEFINED};
    jinja_argument(a, 2, "method", &method);
    const bool up = jinja_string_is(method, "ceil"), down = jinja_string_is(method, "floor");
    int r = jinja_int_argument(run, a, 1, "precision", 0, &digits);
    if (r == 0 && (digits < -18 || digits > 18))
        return jinja_fail(run, -EINVAL, "round takes a precision of -18 to 18");
    if (r == 0 && isnan(number_of(a->items[0], NAN)))
        return jinja_fail(run, -EINVAL, "round takes a number, not %s", jinja_type_name(a->items[0]));
    if (r != 0)
        return r;
    const bool whole = a->items[0].type == JINJA_INT && !up && !down; /* and stays so */
    if (whole && digits >= 0) {
        *ret_value = a->items[0];
        return 0;
    }
    double unit = pow(10, (double)digits), scaled = number_of(a->items[0], 0) * unit;
    double rounded = (up ? ceil(scaled) : down ? floor(scaled) : rint(scaled)) / unit;
    *ret_value = whole ? jinja_of_int((int64_t)rounded) : jinja_of_real(rounded);
    return 0;
}

jinja_function *jinja_find_value_filter(struct bytes name)
{
    static const struct jinja_named table[] = {
        {"trim", trim},
        {"lower", lower},
        {"upper", upper},
        {"title", title},
        {"capitalize", capitalize},
        {"string", string},
        {"replace", replace},
        {"escape", escape},
        {"e", escape},
        {"forceescape", force_escape},
        {"safe", safe},
        {"indent", indent},
        {"format", format},
        {"attr", attribute},
        {"center", center},
        {"wordcount", count_words},
        {"tojson", to_json},
        {"default", fall_back},
        {"d", fall_back},
        {"length", length},
        {"count", length},
        {"int", to_int},
        {"float", to_float},
        {"abs", absolute},
        {"round", round_off},
        {NULL, NULL},
    };
    return jinja_find_named(table, name);
}
