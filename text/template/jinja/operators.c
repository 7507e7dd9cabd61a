/* SPDX-License-Identifier: MIT */
/* Operators that look into values: equality, order, membership, length, members and slices, as Python defines
 * them. Strings are indexed and counted by characters. */

#include "text/template/jinja/operators.h"

#include <errno.h>
#include <string.h>

#include "text/template/jinja/characters.h"

static int equal_dicts(struct jinja_run *run, const struct jinja_dict *a, const struct jinja_dict *b,
                       unsigned depth, bool *ret_equal)
{
    *ret_equal = false;
    if (a->n != b->n)
        return 0;
    for (size_t i = 0; i < a->n; i++) {
        struct jinja_value object = {.type = JINJA_DICT, .dict = (struct jinja_dict *)b}, other;
        int r = jinja_member_of(run, object, a->items[i].key, &other);
        if (r == 0)
            r = jinja_equal(run, a->items[i].value, other, depth + 1, ret_equal);
        if (r != 0 || !*ret_equal)
            return r;
    }
    *ret_equal = true;
    return 0;
}

int jinja_equal(struct jinja_run *run, struct jinja_value a, struct jinja_value b, unsigned depth,
                bool *ret_equal)
{
    if (depth > JINJA_MAX_NESTING)
        return jinja_fail(run, -EMSGSIZE, "a value is nested more than %d deep", JINJA_MAX_NESTING);
    int r = jinja_spend(run, 1);
    if (r != 0)
        return r;
    if (jinja_is_number(a) && jinja_is_number(b)) {
        *ret_equal = jinja_is_whole(a) && jinja_is_whole(b) ? jinja_whole_of(a) == jinja_whole_of(b)
                                                            : jinja_real_of(a) == jinja_real_of(b);
        return 0;
    }
    *ret_equal = false;
    if (a.type != b.type)
        return 0;
    switch (a.type) {
    case JINJA_STR:
        *ret_equal = bytes_equal((struct bytes){a.string->data, a.string->len},
                                 (struct bytes){b.string->data, b.string->len});
        return jinja_spend(run, a.string->len / 64);
    case JINJA_LIST:
        if (a.list->n != b.list->n || a.list->is_tuple != b.list->is_tuple)
            return 0;
        *ret_equal = true;
        for (size_t i = 0; r == 0 && *ret_equal && i < a.list->n; i++)
            r = jinja_equal(run, a.list->items[i], b.list->items[i], depth + 1, ret_equal);
        return r;
    case JINJA_DICT:
        return equal_dicts(run, a.dict, b.dict, depth, ret_equal);
    case JINJA_GENERATOR:
        *ret_equal = a.list == b.list;
        return 0;
    case JINJA_LOOP:
        *ret_equal = a.loop == b.loop;
        return 0;
    case JINJA_MACRO:
        *ret_equal = a.macro == b.macro;
        return 0;
    case JINJA_FUNCTION:
        *ret_equal = a.function == b.function;
        return 0;
    default:
        *ret_equal = true; /* none and none, undefined and undefined */
        return 0;
    }
}

int jinja_dict_set(struct jinja_run *run, struct jinja_dict *dict, struct jinja_value key,
                   struct jinja_value value)
{
    int r = jinja_spend(run, dict->n / 4);
    for (size_t i = 0; r == 0 && i < dict->n; i++) {
        bool equal;
        r = jinja_equal(run, dict->items[i].key, key, 0, &equal);
        if (r == 0 && equal) {
            dict->items[i].value = value;
            return 0;
        }
    }
    return r != 0 ? r : jinja_dict_add(run, dict, key, value);
}

static int order_of_bytes(const struct jinja_string *a, const struct jinja_string *b)
{
    size_t len = a->len < b->len ? a->len : b->len;
    int order = len > 0 ? memcmp(a->data, b->data, len) : 0;
    if (order == 0)
        order = (a->len > b->len) - (a->len < b->len);
    return (order > 0) - (order < 0);
}

static int compare(struct jinja_run *run, struct jinja_value a, struct jinja_value b, unsigned depth,
                   int *ret_order);

/* The first items that differ decide, then the length. */
static int compare_lists(struct jinja_run *run, const struct jinja_list *a, const struct jinja_list *b,
                         unsigned depth, int *ret_order)
{
    if (depth > JINJA_MAX_NESTING)
        return jinja_fail(run, -EMSGSIZE, "a value is nested more than %d deep", JINJA_MAX_NESTING);
    for (size_t i = 0; i < a->n && i < b->n; i++) {
        bool equal;
        int r = jinja_equal(run, a->items[i], b->items[i], depth + 1, &equal);
        if (r == 0 && !equal)
            return compare(run, a->items[i], b->items[i], depth + 1, ret_order);
        if (r != 0)
            return r;
    }
    *ret_order = (a->n > b->n) - (a->n < b->n);
    return 0;
}

static int compare(struct jinja_run *run, struct jinja_value a, struct jinja_value b, unsigned depth,
                   int *ret_order)
{
    if (jinja_is_whole(a) && jinja_is_whole(b)) {
        *ret_order = (jinja_whole_of(a) > jinja_whole_of(b)) - (jinja_whole_of(a) < jinja_whole_of(b));
        return 0;
    }
    if (jinja_is_number(a) && jinja_is_number(b)) {
        *ret_order = (jinja_real_of(a) > jinja_real_of(b)) - (jinja_real_of(a) < jinja_real_of(b));
        return 0;
    }
    if (a.type == JINJA_STR && b.type == JINJA_STR) {
        *ret_order = order_of_bytes(a.string, b.string);
        return jinja_spend(run, a.string->len / 64);
    }
    if (a.type == JINJA_LIST && b.type == JINJA_LIST && a.list->is_tuple == b.list->is_tuple)
        return compare_lists(run, a.list, b.list, depth, ret_order);
    return jinja_fail(run, -EINVAL, "%s and %s cannot be compared", jinja_type_name(a), jinja_type_name(b));
}

int jinja_compare(struct jinja_run *run, struct jinja_value a, struct jinja_value b, int *ret_order)
{
    return compare(run, a, b, 0, ret_order);
}

int jinja_contains(struct jinja_run *run, struct jinja_value whole, struct jinja_value part,
                   bool *ret_contains)
{
    *ret_contains = false;
    if (whole.type == JINJA_STR) {
        if (part.type != JINJA_STR)
            return jinja_fail(run, -EINVAL, "cannot search a string for %s", jinja_type_name(part));
        *ret_contains = part.string->len == 0 || memmem(whole.string->data, whole.string->len,
                                                        part.string->data, part.string->len) != NULL;
        return jinja_spend(run, 1 + whole.string->len / 64);
    }
    if (whole.type != JINJA_LIST && whole.type != JINJA_GENERATOR && whole.type != JINJA_DICT &&
        whole.type != JINJA_UNDEFINED)
        return jinja_fail(run, -EINVAL, "cannot search in %s", jinja_type_name(whole));
    const struct jinja_list *list;
    int r = jinja_items_of(run, whole, &list);
    for (size_t i = 0; r == 0 && !*ret_contains && i < list->n; i++)
        r = jinja_equal(run, list->items[i], part, 0, ret_contains);
    return r;
}

int jinja_items_of(struct jinja_run *run, struct jinja_value value, const struct jinja_list **ret_list)
{
    struct jinja_value made = value;
    int r = 0;
    if (value.type == JINJA_DICT) {
        r = jinja_new_list(run, value.dict->n, &made);
        for (size_t i = 0; r == 0 && i < value.dict->n; i++)
            r = jinja_list_add(run, made.list, value.dict->items[i].key);
    } else if (value.type == JINJA_STR) {
        r = jinja_new_list(run, 0, &made);
        for (size_t at = 0; r == 0 && at < value.string->len;) {
            struct jinja_value character;
            size_t len = jinja_character_len(value.string, at);
            r = jinja_of_part(run, value.string, at, len, &character);
            if (r == 0)
                r = jinja_list_add(run, made.list, character);
            at += len;
        }
    } else if (value.type == JINJA_UNDEFINED) {
        r = jinja_new_list(run, 0, &made);
    } else if (value.type == JINJA_GENERATOR) {
        r = jinja_new_list(run, 0, &made);
        if (r == 0) {
            *made.list = *value.list;
            *value.list = (struct jinja_list){0};
        }
    } else if (value.type != JINJA_LIST) {
        return jinja_fail(run, -EINVAL, "%s is not iterable", jinja_type_name(value));
    }
    if (r == 0)
        *ret_list = made.list;
    return r;
}

int jinja_length(struct jinja_run *run, struct jinja_value value, int64_t *ret_length)
{
    int64_t n = 0;
    switch (value.type) {
    case JINJA_STR:
        for (size_t i = 0; i < value.string->len; i++)
            n += ((uint8_t)value.string->data[i] & 0xc0) != 0x80;
        *ret_length = n;
        return jinja_spend(run, 1 + value.string->len / 64);
    case JINJA_LIST:
        *ret_length = (int64_t)value.list->n;
        return 0;
    case JINJA_DICT:
        *ret_length = (int64_t)value.dict->n;
        return 0;
    case JINJA_UNDEFINED:
        *ret_length = 0;
        return 0;
    default:
        return jinja_fail(run, -EINVAL, "%s has no length", jinja_type_name(value));
    }
}

static int item_at(struct jinja_run *run, struct jinja_value object, int64_t index,
                   struct jinja_value *ret_value)
{
    int64_t n;
    int r = jinja_length(run, object, &n);
    if (r != 0)
        return r;
    if (index < 0)
        index += n;
    *ret_value = (struct jinja_value){.type = JINJA_UNDEFINED};
    if (index < 0 || index >= n)
        return 0;
    if (object.type == JINJA_LIST) {
        *ret_value = object.list->items[index];
        return 0;
    }
    size_t at = jinja_offset_of(object.string, index);
    return jinja_of_part(run, object.string, at, jinja_character_len(object.string, at), ret_value);
}

int jinja_member_of(struct jinja_run *run, struct jinja_value object, struct jinja_value key,
                    struct jinja_value *ret_value)
{
    *ret_value = (struct jinja_value){.type = JINJA_UNDEFINED};
    if (object.type == JINJA_UNDEFINED)
        return jinja_fail(run, -EINVAL, "member of an undefined value requested");
    if (object.type == JINJA_DICT) {
        int r = jinja_spend(run, object.dict->n / 4);
        for (size_t i = 0; r == 0 && i < object.dict->n; i++) {
            bool equal;
            r = jinja_equal(run, object.dict->items[i].key, key, 0, &equal);
            if (r == 0 && equal) {
                *ret_value = object.dict->items[i].value;
                return 0;
            }
        }
        return r;
    }
    if ((object.type == JINJA_LIST || object.type == JINJA_STR) && jinja_is_whole(key))
        return item_at(run, object, jinja_whole_of(key), ret_value);
    return 0;
}

/* What `loop` knows of its loop. */
static int loop_attribute(struct jinja_run *run, const struct jinja_loop *loop, struct bytes name,
                          struct jinja_value *ret_value)
{
    const int64_t index = (int64_t)loop->index, n = (int64_t)loop->list->n;
    const struct {
        const char *name;
        struct jinja_value value;
    } attributes[] = {
        {"index", jinja_of_int(index + 1)},    {"index0", jinja_of_int(index)},
        {"revindex", jinja_of_int(n - index)}, {"revindex0", jinja_of_int(n - index - 1)},
        {"first", jinja_of_bool(index == 0)},  {"last", jinja_of_bool(index == n - 1)},
        {"length", jinja_of_int(n)},           {"depth", jinja_of_int(1)},
        {"depth0", jinja_of_int(0)},
    };
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++)
        if (bytes_equal(name, bytes_of_string(attributes[i].name))) {
            *ret_value = attributes[i].value;
            return 0;
        }
    *ret_value = (struct jinja_value){.type = JINJA_UNDEFINED};
    if (bytes_equal(name, BYTES_LITERAL("previtem")) && index > 0)
        *ret_value = loop->list->items[index - 1];
    else if (bytes_equal(name, BYTES_LITERAL("nextitem")) && index + 1 < n)
        *ret_value = loop->list->items[index + 1];
    return 0;
}

int jinja_attribute(struct jinja_run *run, struct jinja_value object, struct bytes name,
                    const struct jinja_node *node, struct jinja_value *ret_value)
{
    int r = 0;
    if (object.type == JINJA_LOOP) {
        r = loop_attribute(run, object.loop, name, ret_value);
    } else if (object.type == JINJA_UNDEFINED) {
        int shown = object.node ? (int)(object.node->name.len < 64 ? object.node->name.len : 64) : 0;
        return jinja_fail(
            run, -EINVAL, "\"%.*s\" requested of %s%.*s%s", (int)(name.len < 64 ? name.len : 64),
            (const char *)name.data, shown ? "\"" : "an undefined value", shown,
            shown ? (const char *)object.node->name.data : "", shown ? "\", which is undefined" : "");
    } else {
        const struct jinja_string key = {.data = name.data, .len = name.len};
        r = jinja_member_of(run, object, (struct jinja_value){.type = JINJA_STR, .string = &key}, ret_value);
    }
    if (r == 0 && ret_value->type == JINJA_UNDEFINED)
        ret_value->node = node;
    return r;
}

/* Where a slice begins or ends, brought into 0 … n (or −1 … n − 1 for a backward one). */
static int bound_of(struct jinja_run *run, const struct jinja_value *bound, int64_t otherwise, int64_t n,
                    int64_t step, int64_t *ret_bound)
{
    *ret_bound = otherwise;
    if (!bound || bound->type == JINJA_NONE)
        return 0;
    if (!jinja_is_whole(*bound))
        return jinja_fail(run, -EINVAL, "slice bound is %s", jinja_type_name(*bound));
    int64_t at = jinja_whole_of(*bound), low = step < 0 ? -1 : 0, high = step < 0 ? n - 1 : n;
    if (at < 0)
        at = at + n < low ? low : at + n;
    *ret_bound = at > high ? high : at;
    return 0;
}

int jinja_slice(struct jinja_run *run, struct jinja_value value, const struct jinja_value *from,
                const struct jinja_value *to, int64_t step, struct jinja_value *ret_value)
{
    int64_t n, begin, end;
    if (value.type == JINJA_UNDEFINED)
        return jinja_fail(run, -EINVAL, "cannot slice an undefined value");
    if (value.type == JINJA_GENERATOR)
        return jinja_fail(run, -EINVAL, "cannot slice a generator");
    *ret_value = (struct jinja_value){.type = JINJA_UNDEFINED};
    if (value.type != JINJA_LIST && value.type != JINJA_STR)
        return 0; /* like any member that is not there */
    if (step == 0 || step == INT64_MIN)
        return jinja_fail(run, -EINVAL, "slice step is %s", step == 0 ? "0" : "out of range");
    int r = jinja_length(run, value, &n);
    if (r == 0)
        r = bound_of(run, from, step < 0 ? n - 1 : 0, n, step, &begin);
    if (r == 0)
        r = bound_of(run, to, step < 0 ? -1 : n, n, step, &end);
    if (r != 0)
        return r;
    if (value.type == JINJA_STR && step == 1) {
        size_t start = jinja_offset_of(value.string, begin), stop = jinja_offset_of(value.string, end);
        return jinja_of_part(run, value.string, start, stop > start ? stop - start : 0, ret_value);
    }
    const struct jinja_list *items;
    struct jinja_value out;
    r = jinja_items_of(run, value, &items);
    if (r == 0)
        r = jinja_new_list(run, 0, &out);
    if (r == 0)
        out.list->is_tuple = items->is_tuple;
    for (int64_t i = begin; r == 0 && (step > 0 ? i < end : i > end);) {
        r = jinja_list_add(run, out.list, items->items[i]);
        if (__builtin_add_overflow(i, step, &i))
            break;
    }
    if (r != 0 || value.type == JINJA_LIST) {
        *ret_value = r == 0 ? out : *ret_value;
        return r;
    }
    struct jinja_builder builder = {.html = value.string->html};
    for (size_t i = 0; r == 0 && i < out.list->n; i++)
        r = jinja_append_string(run, &builder, out.list->items[i].string);
    return r != 0 ? r : jinja_of_builder(run, &builder, ret_value);
}
