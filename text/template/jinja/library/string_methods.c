/* SPDX-License-Identifier: MIT */
/* Methods of strings; those that cut one into parts are in string_split.c. The first argument is the string.
 * Places and lengths count characters. */

#include "text/template/jinja/value.h"

#include <errno.h>
#include <string.h>

#include "text/template/jinja/library/string_methods.h"
#include "text/template/jinja/string_ops.h"
#include "text/template/jinja/characters.h"
#include "text/template/jinja/operators.h"
#include "text/template/jinja/library/library.h"

static int strip_sides(struct jinja_run *run, const struct jinja_arguments *a, int sides,
                       struct jinja_value *ret_value)
{
    const struct jinja_string *set;
    int r = jinja_string_argument(run, a, 1, "chars", &set);
    return r != 0 ? r : jinja_strip(run, a->items[0].string, sides, set, ret_value);
}

static int strip_both(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return strip_sides(run, a, JINJA_LEFT | JINJA_RIGHT, ret_value);
}

static int strip_left(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return strip_sides(run, a, JINJA_LEFT, ret_value);
}

static int strip_right(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return strip_sides(run, a, JINJA_RIGHT, ret_value);
}

/* The part of the object that the optional arguments `start` and `end` name: a slice of it. *ret_before is
 * how many characters stand before. */
static int range_of(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_part,
                    int64_t *ret_before)
{
    struct jinja_value from = {.type = JINJA_NONE}, to = from, before;
    jinja_argument(a, 2, "start", &from);
    jinja_argument(a, 3, "end", &to);
    *ret_part = a->items[0];
    *ret_before = 0;
    if (from.type == JINJA_NONE && to.type == JINJA_NONE)
        return 0;
    const struct jinja_value zero = jinja_of_int(0);
    int r = jinja_slice(run, a->items[0], &zero, &from, 1, &before);
    if (r == 0 && from.type != JINJA_NONE)
        r = jinja_length(run, before, ret_before);
    return r != 0 ? r : jinja_slice(run, a->items[0], &from, &to, 1, ret_part);
}

/* Does the string begin (or end) with the argument, or with one of a list? */
static int has_affix(struct jinja_run *run, const struct jinja_arguments *a, bool at_end,
                     struct jinja_value *ret_value)
{
    struct jinja_value part;
    int64_t before;
    int r = range_of(run, a, &part, &before);
    const struct jinja_value *options = a->n > 1 ? &a->items[1] : NULL;
    size_t n = 1;
    if (options && options->type == JINJA_LIST) {
        n = options->list->n;
        options = options->list->items;
    }
    bool yes = false;
    for (size_t i = 0; r == 0 && i < n; i++) {
        if (!options || options[i].type != JINJA_STR)
            return jinja_fail(run, -EINVAL, "startswith and endswith take a string");
        const struct jinja_string *string = part.string, *affix = options[i].string;
        r = jinja_spend(run, 1 + affix->len / 64);
        if (r == 0 && affix->len <= string->len)
            yes |=
                memcmp(string->data + (at_end ? string->len - affix->len : 0), affix->data, affix->len) == 0;
    }
    *ret_value = jinja_of_bool(yes);
    return r;
}

static int starts_with(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return has_affix(run, a, false, ret_value);
}

static int ends_with(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return has_affix(run, a, true, ret_value);
}

static int without_affix(struct jinja_run *run, const struct jinja_arguments *a, bool at_end,
                         struct jinja_value *ret_value)
{
    const struct jinja_string *string = a->items[0].string, *affix;
    int r = jinja_string_argument(run, a, 1, "", &affix);
    if (r == 0 && !affix)
        return jinja_fail(run, -EINVAL, "removeprefix and removesuffix take a string");
    if (r != 0)
        return r;
    size_t len = affix->len <= string->len ? affix->len : 0;
    if (memcmp(string->data + (at_end ? string->len - len : 0), affix->data, len) != 0)
        len = 0;
    r = jinja_spend(run, 1 + len / 64);
    return r != 0 ? r : jinja_of_part(run, string, at_end ? 0 : len, string->len - len, ret_value);
}

static int remove_prefix(struct jinja_run *run, const struct jinja_arguments *a,
                         struct jinja_value *ret_value)
{
    return without_affix(run, a, false, ret_value);
}

static int remove_suffix(struct jinja_run *run, const struct jinja_arguments *a,
                         struct jinja_value *ret_value)
{
    return without_affix(run, a, true, ret_value);
}

static int lower(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return jinja_change_case(run, a->items[0].string, JINJA_LOWER, ret_value);
}

static int upper(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return jinja_change_case(run, a->items[0].string, JINJA_UPPER, ret_value);
}

static int title(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return jinja_change_case(run, a->items[0].string, JINJA_TITLE, ret_value);
}

static int capitalize(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return jinja_change_case(run, a->items[0].string, JINJA_CAPITAL, ret_value);
}

/* An argument of a method of an html string is escaped. */
static int escaped_argument(struct jinja_run *run, const struct jinja_string *object,
                            const struct jinja_string **argument)
{
    struct jinja_value escaped;
    int r = object->html && *argument ? jinja_escape(run, *argument, &escaped) : 0;
    if (r == 0 && object->html && *argument)
        *argument = escaped.string;
    return r;
}

static int replace(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    const struct jinja_string *string = a->items[0].string, *from, *to;
    int64_t times;
    int r = jinja_string_argument(run, a, 1, "old", &from);
    if (r == 0)
        r = jinja_string_argument(run, a, 2, "new", &to);
    if (r == 0)
        r = jinja_int_argument(run, a, 3, "count", -1, &times);
    if (r == 0 && (!from || !to))
        return jinja_fail(run, -EINVAL, "replace takes two strings");
    if (r == 0)
        r = escaped_argument(run, string, &from);
    if (r == 0)
        r = escaped_argument(run, string, &to);
    return r != 0 ? r : jinja_replace(run, string, from, to, times, ret_value);
}

static int join(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    const struct jinja_list *list;
    if (a->n < 2)
        return jinja_fail(run, -EINVAL, "join takes a list");
    int r = jinja_items_of(run, a->items[1], &list);
    return r != 0 ? r : jinja_join(run, list, a->items[0].string, ret_value);
}

static int format(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return jinja_format(run, a->items[0].string, a, 1, ret_value);
}

/* The character at which the argument begins for the first or last time, or -1. */
static int place_of(struct jinja_run *run, const struct jinja_arguments *a, bool last, int64_t *ret_index)
{
    const struct jinja_string *part;
    struct jinja_value within;
    int64_t before;
    int r = jinja_string_argument(run, a, 1, "sub", &part);
    if (r == 0 && !part)
        return jinja_fail(run, -EINVAL, "find and index take a string");
    if (r == 0)
        r = range_of(run, a, &within, &before);
    if (r == 0)
        r = jinja_spend(run, 1 + within.string->len / 16);
    if (r != 0)
        return r;
    const struct jinja_string *whole = within.string;
    const char *found = part->len == 0 ? whole->data : memmem(whole->data, whole->len, part->data, part->len);
    *ret_index = -1;
    if (!found)
        return 0;
    size_t at = (size_t)(found - whole->data);
    if (last)
        r = jinja_find_last(run, whole, whole->len, part, &at);
    if (r != 0)
        return r;
    const struct jinja_string head = {.data = whole->data, .len = at};
    r = jinja_length(run, (struct jinja_value){.type = JINJA_STR, .string = &head}, ret_index);
    *ret_index += before;
    return r;
}

static int give_place(struct jinja_run *run, const struct jinja_arguments *a, bool last, bool must,
                      struct jinja_value *ret_value)
{
    int64_t index = -1;
    int r = place_of(run, a, last, &index);
    if (r == 0 && must && index < 0)
        return jinja_fail(run, -EINVAL, "index: substring not found");
    *ret_value = jinja_of_int(index);
    return r;
}

static int find(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return give_place(run, a, false, false, ret_value);
}

static int find_right(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return give_place(run, a, true, false, ret_value);
}

static int index_of(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return give_place(run, a, false, true, ret_value);
}

static int index_right(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return give_place(run, a, true, true, ret_value);
}

static int count(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    const struct jinja_string *part;
    struct jinja_value within;
    int64_t before, n = 0;
    int r = jinja_string_argument(run, a, 1, "sub", &part);
    if (r == 0 && (!part || part->len == 0))
        return jinja_fail(run, -EINVAL, "count takes a non-empty string");
    if (r == 0)
        r = range_of(run, a, &within, &before);
    if (r == 0)
        r = jinja_spend(run, 1 + within.string->len / 16);
    if (r != 0)
        return r;
    const char *at = within.string->data, *end = at + within.string->len;
    while ((at = memmem(at, (size_t)(end - at), part->data, part->len))) {
        at += part->len;
        n++;
    }
    *ret_value = jinja_of_int(n);
    return 0;
}

static int pad(struct jinja_run *run, const struct jinja_arguments *a, int sides,
               struct jinja_value *ret_value)
{
    const struct jinja_string *fill;
    int64_t width;
    int r = jinja_int_argument(run, a, 1, "width", 0, &width);
    if (r == 0)
        r = jinja_string_argument(run, a, 2, "fillchar", &fill);
    if (r == 0 && fill && (fill->len == 0 || jinja_character_len(fill, 0) != fill->len))
        return jinja_fail(run, -EINVAL, "padding takes a single character");
    return r != 0 ? r : jinja_pad(run, a->items[0].string, sides, width, fill, ret_value);
}

static int center(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return pad(run, a, JINJA_LEFT | JINJA_RIGHT, ret_value);
}

static int pad_right(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return pad(run, a, JINJA_RIGHT, ret_value);
}

static int pad_left(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return pad(run, a, JINJA_LEFT, ret_value);
}

/* Zeros between the sign and the digits. */
static int fill_with_zeros(struct jinja_run *run, const struct jinja_arguments *a,
                           struct jinja_value *ret_value)
{
    static const struct jinja_string zero = {.data = "0", .len = 1};
    const struct jinja_string *string = a->items[0].string;
    const size_t sign = string->len > 0 && (string->data[0] == '-' || string->data[0] == '+');
    struct jinja_value rest;
    struct jinja_builder builder = {.html = string->html};
    int64_t width;
    int r = jinja_int_argument(run, a, 1, "width", 0, &width);
    if (r == 0)
        r = jinja_of_part(run, string, sign, string->len - sign, &rest);
    if (r == 0 && width > (int64_t)sign)
        r = jinja_pad(run, rest.string, JINJA_LEFT, width - (int64_t)sign, &zero, &rest);
    if (r == 0)
        r = jinja_append(run, &builder, string->data, sign, string->marks);
    if (r == 0)
        r = jinja_append_string(run, &builder, rest.string);
    return r != 0 ? r : jinja_of_builder(run, &builder, ret_value);
}

static int is_alpha(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return jinja_is_all(run, a->items[0].string, JINJA_LETTERS, ret_value);
}

static int is_digit(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return jinja_is_all(run, a->items[0].string, JINJA_DIGITS, ret_value);
}

static int is_alnum(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return jinja_is_all(run, a->items[0].string, JINJA_LETTERS | JINJA_DIGITS, ret_value);
}

static int is_space(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return jinja_is_all(run, a->items[0].string, JINJA_BLANKS, ret_value);
}

static int is_lower(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return jinja_is_in_case(run, a->items[0].string, JINJA_LOWER, ret_value);
}

static int is_upper(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return jinja_is_in_case(run, a->items[0].string, JINJA_UPPER, ret_value);
}

jinja_function *jinja_find_string_method(struct bytes name)
{
    static const struct jinja_named table[] = {
        {"strip", strip_both},
        {"lstrip", strip_left},
        {"rstrip", strip_right},
        {"split", jinja_split},
        {"rsplit", jinja_split_right},
        {"splitlines", jinja_split_lines},
        {"partition", jinja_partition},
        {"rpartition", jinja_partition_right},
        {"startswith", starts_with},
        {"endswith", ends_with},
        {"removeprefix", remove_prefix},
        {"removesuffix", remove_suffix},
        {"lower", lower},
        {"upper", upper},
        {"title", title},
        {"capitalize", capitalize},
        {"replace", replace},
        {"join", join},
        {"format", format},
        {"find", find},
        {"rfind", find_right},
        {"index", index_of},
        {"rindex", index_right},
        {"count", count},
        {"center", center},
        {"ljust", pad_right},
        {"rjust", pad_left},
        {"zfill", fill_with_zeros},
        {"isalpha", is_alpha},
        {"isdigit", is_digit},
        {"isdecimal", is_digit},
        {"isnumeric", is_digit},
        {"isalnum", is_alnum},
        {"isspace", is_space},
        {"islower", is_lower},
        {"isupper", is_upper},
        {NULL, NULL},
    };
    return jinja_find_named(table, name);
}
