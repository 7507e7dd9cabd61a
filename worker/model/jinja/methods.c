/* SPDX-License-Identifier: MIT */
/* Methods of strings and dictionaries. The first argument is the object.
 *
 * Those that would change a list or dictionary are missing on purpose: templates run where values are
 * immutable, and only a namespace has members to set. */

#include "worker/model/jinja/value.h"

#include <errno.h>
#include <string.h>

#include "worker/model/jinja/text.h"

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

static int add_part(struct jinja_run *run, const struct jinja_string *string, size_t start, size_t len,
                    struct jinja_list *list)
{
    struct jinja_value part;
    int r = jinja_of_part(run, string, start, len, &part);
    return r != 0 ? r : jinja_list_add(run, list, part);
}

/* Words between white space. */
static int split_words(struct jinja_run *run, const struct jinja_string *string, int64_t times,
                       struct jinja_list *list)
{
    size_t at = 0;
    int r = 0;
    while (r == 0) {
        while (at < string->len && strchr(" \t\n\r\f\v", string->data[at]) && string->data[at])
            at++;
        if (at == string->len)
            break;
        size_t end = at;
        if (times == 0) {
            end = string->len;
            while (strchr(" \t\n\r\f\v", string->data[end - 1]))
                end--;
            return add_part(run, string, at, end - at, list);
        }
        while (end < string->len && !(strchr(" \t\n\r\f\v", string->data[end]) && string->data[end]))
            end++;
        r = add_part(run, string, at, end - at, list);
        at = end;
        times--;
    }
    return r;
}

static int split(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    const struct jinja_string *string = a->items[0].string, *by;
    int64_t times;
    struct jinja_value list;
    int r = jinja_string_argument(run, a, 1, "sep", &by);
    if (r == 0)
        r = jinja_int_argument(run, a, 2, "maxsplit", -1, &times);
    if (r == 0)
        r = jinja_new_list(run, 0, &list);
    if (r == 0)
        r = jinja_spend(run, 1 + string->len / 16);
    if (r != 0)
        return r;
    *ret_value = list;
    if (!by)
        return split_words(run, string, times, list.list);
    if (by->len == 0)
        return jinja_fail(run, -EINVAL, "a string is split at nothing");
    size_t at = 0;
    while (r == 0 && times != 0) {
        const char *found = memmem(string->data + at, string->len - at, by->data, by->len);
        if (!found)
            break;
        size_t len = (size_t)(found - (string->data + at));
        r = add_part(run, string, at, len, list.list);
        at += len + by->len;
        times--;
    }
    return r != 0 ? r : add_part(run, string, at, string->len - at, list.list);
}

static int split_lines(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    const struct jinja_string *string = a->items[0].string;
    struct jinja_value list;
    int r = jinja_new_list(run, 0, &list);
    for (size_t at = 0; r == 0 && at < string->len;) {
        size_t end = at;
        while (end < string->len && string->data[end] != '\n' && string->data[end] != '\r')
            end++;
        r = add_part(run, string, at, end - at, list.list);
        at = end + 1;
        if (end + 1 < string->len && string->data[end] == '\r' && string->data[end + 1] == '\n')
            at++;
    }
    if (r == 0)
        *ret_value = list;
    return r;
}

/* Does the string begin (or end) with the argument, or with one of a list? */
static int has_affix(struct jinja_run *run, const struct jinja_arguments *a, bool at_end,
                     struct jinja_value *ret_value)
{
    const struct jinja_string *string = a->items[0].string;
    const struct jinja_value *options = a->n > 1 ? &a->items[1] : NULL;
    size_t n = 1;
    if (options && options->type == JINJA_LIST) {
        n = options->list->n;
        options = options->list->items;
    }
    bool yes = false;
    for (size_t i = 0; i < n; i++) {
        if (!options || options[i].type != JINJA_STR)
            return jinja_fail(run, -EINVAL, "startswith and endswith take a string");
        const struct jinja_string *affix = options[i].string;
        yes |= affix->len <= string->len &&
               memcmp(string->data + (at_end ? string->len - affix->len : 0), affix->data, affix->len) == 0;
    }
    *ret_value = jinja_of_bool(yes);
    return jinja_spend(run, n);
}

static int starts_with(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return has_affix(run, a, false, ret_value);
}

static int ends_with(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return has_affix(run, a, true, ret_value);
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

static int replace(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    const struct jinja_string *from, *to;
    int64_t times;
    int r = jinja_string_argument(run, a, 1, "old", &from);
    if (r == 0)
        r = jinja_string_argument(run, a, 2, "new", &to);
    if (r == 0)
        r = jinja_int_argument(run, a, 3, "count", -1, &times);
    if (r == 0 && (!from || !to))
        return jinja_fail(run, -EINVAL, "replace takes two strings");
    return r != 0 ? r : jinja_replace(run, a->items[0].string, from, to, times, ret_value);
}

static int join(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    const struct jinja_list *list;
    if (a->n < 2)
        return jinja_fail(run, -EINVAL, "join takes a list");
    int r = jinja_items_of(run, a->items[1], &list);
    return r != 0 ? r : jinja_join(run, list, a->items[0].string, ret_value);
}

static int find(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    const struct jinja_string *whole = a->items[0].string, *part;
    int r = jinja_string_argument(run, a, 1, "sub", &part);
    if (r == 0 && !part)
        return jinja_fail(run, -EINVAL, "find takes a string");
    if (r != 0)
        return r;
    const char *found = part->len == 0 ? whole->data : memmem(whole->data, whole->len, part->data, part->len);
    int64_t index = -1;
    if (found) {
        const struct jinja_string before = {whole->data, (size_t)(found - whole->data), NULL};
        r = jinja_length(run, (struct jinja_value){.type = JINJA_STR, .string = &before}, &index);
    }
    *ret_value = jinja_of_int(index);
    return r != 0 ? r : jinja_spend(run, whole->len / 16);
}

static int count(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    const struct jinja_string *whole = a->items[0].string, *part;
    int r = jinja_string_argument(run, a, 1, "sub", &part);
    if (r == 0 && (!part || part->len == 0))
        return jinja_fail(run, -EINVAL, "count takes a string that is not empty");
    if (r != 0)
        return r;
    int64_t n = 0;
    const char *at = whole->data, *end = at + whole->len;
    while ((at = memmem(at, (size_t)(end - at), part->data, part->len))) {
        at += part->len;
        n++;
    }
    *ret_value = jinja_of_int(n);
    return jinja_spend(run, 1 + whole->len / 16);
}

static int items(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return jinja_pairs(run, a->items[0].dict, ret_value);
}

static int keys(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    struct jinja_value list;
    int r = jinja_new_list(run, a->items[0].dict->n, &list);
    for (size_t i = 0; r == 0 && i < a->items[0].dict->n; i++)
        r = jinja_list_add(run, list.list, a->items[0].dict->items[i].key);
    if (r == 0)
        *ret_value = list;
    return r;
}

static int values(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    struct jinja_value list;
    int r = jinja_new_list(run, a->items[0].dict->n, &list);
    for (size_t i = 0; r == 0 && i < a->items[0].dict->n; i++)
        r = jinja_list_add(run, list.list, a->items[0].dict->items[i].value);
    if (r == 0)
        *ret_value = list;
    return r;
}

static int get(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    if (a->n < 2)
        return jinja_fail(run, -EINVAL, "get takes a key");
    int r = jinja_member_of(run, a->items[0], a->items[1], ret_value);
    if (r == 0 && ret_value->type == JINJA_UNDEFINED && !jinja_argument(a, 2, "default", ret_value))
        *ret_value = (struct jinja_value){.type = JINJA_NONE};
    return r;
}

jinja_function *jinja_find_method(struct jinja_value object, struct bytes name)
{
    static const struct jinja_named of_strings[] = {
        {"strip", strip_both},
        {"lstrip", strip_left},
        {"rstrip", strip_right},
        {"split", split},
        {"upper", upper},
        {"startswith", starts_with},
        {"endswith", ends_with},
        {"lower", lower},
        {"title", title},
        {"capitalize", capitalize},
        {"replace", replace},
        {"join", join},
        {"find", find},
        {"count", count},
        {"splitlines", split_lines},
        {NULL, NULL},
    };
    static const struct jinja_named of_dicts[] = {
        {"items", items}, {"keys", keys}, {"values", values}, {"get", get}, {NULL, NULL},
    };
    if (object.type == JINJA_STR)
        return jinja_find_named(of_strings, name);
    return object.type == JINJA_DICT ? jinja_find_named(of_dicts, name) : NULL;
}
