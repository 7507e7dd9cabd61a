/* SPDX-License-Identifier: MIT */
/* Filters of lists and mappings. Those that apply another filter or test to each item are in
 * applying_filters.c. */

#include "text/template/jinja/library/list_filters.h"

#include <errno.h>
#include <string.h>

#include "text/template/jinja/arithmetic.h"
#include "text/template/jinja/library/library.h"
#include "text/template/jinja/operators.h"
#include "text/template/jinja/string_ops.h"

static int to_list(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    const struct jinja_list *list;
    struct jinja_list *copy = jinja_alloc(run, sizeof *copy);
    if (!copy)
        return jinja_no_memory(run);
    int r = jinja_items_of(run, a->items[0], &list);
    if (r != 0)
        return r;
    *copy = (struct jinja_list){.items = list->items, .n = list->n, .cap = list->n};
    *ret_value = (struct jinja_value){.type = JINJA_LIST, .list = copy};
    return 0;
}

static int item_or_undefined(struct jinja_run *run, const struct jinja_arguments *a, bool last,
                             struct jinja_value *ret_value)
{
    const struct jinja_list *list;
    int r = jinja_items_of(run, a->items[0], &list);
    if (r == 0)
        *ret_value =
            list->n > 0 ? list->items[last ? list->n - 1 : 0] : (struct jinja_value){.type = JINJA_UNDEFINED};
    return r;
}

static int first(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return item_or_undefined(run, a, false, ret_value);
}

static int last(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    if (a->items[0].type == JINJA_GENERATOR)
        return jinja_fail(run, -EINVAL, "a generator has no last item");
    return item_or_undefined(run, a, true, ret_value);
}

int jinja_member_by_path(struct jinja_run *run, struct jinja_value item, struct jinja_value path,
                         struct jinja_value *ret_value)
{
    if (path.type != JINJA_STR)
        return jinja_member_of(run, item, path, ret_value);
    const char *at = path.string->data, *end = at + path.string->len;
    int r = 0;
    while (r == 0) {
        const char *point = memchr(at, '.', (size_t)(end - at));
        struct bytes name = {at, (size_t)((point ? point : end) - at)};
        r = jinja_attribute(run, item, name, NULL, &item);
        if (!point)
            break;
        at = point + 1;
    }
    if (r == 0)
        *ret_value = item;
    return r;
}

struct jinja_value jinja_generator_of(struct jinja_value list)
{
    return (struct jinja_value){.type = JINJA_GENERATOR, .list = list.list};
}

static int join(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    const struct jinja_string *separator;
    const struct jinja_list *list;
    struct jinja_value path, members;
    int r = jinja_string_argument(run, a, 1, "d", &separator);
    if (r == 0)
        r = jinja_items_of(run, a->items[0], &list);
    if (r == 0 && jinja_argument(a, 2, "attribute", &path)) {
        r = jinja_new_list(run, list->n, &members);
        for (size_t i = 0; r == 0 && i < list->n; i++) {
            struct jinja_value member;
            r = jinja_member_by_path(run, list->items[i], path, &member);
            if (r == 0)
                r = jinja_list_add(run, members.list, member);
        }
        list = r == 0 ? members.list : list;
    }
    struct jinja_string plain = {.data = "", .len = 0};
    if (separator)
        plain = *separator;
    plain.html = false; /* the filter escapes nothing, unlike the method */
    return r != 0 ? r : jinja_join(run, list, &plain, ret_value);
}

static int items(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    if (a->items[0].type == JINJA_UNDEFINED)
        return jinja_new_list(run, 0, ret_value);
    if (a->items[0].type != JINJA_DICT)
        return jinja_fail(run, -EINVAL, "%s has no items", jinja_type_name(a->items[0]));
    return jinja_pairs(run, a->items[0].dict, ret_value);
}

static int reverse(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    if (a->items[0].type == JINJA_STR)
        return jinja_slice(run, a->items[0], NULL, NULL, -1, ret_value);
    const struct jinja_list *list;
    struct jinja_value out;
    int r = jinja_items_of(run, a->items[0], &list);
    if (r == 0)
        r = jinja_new_list(run, list->n, &out);
    for (size_t i = r == 0 ? list->n : 0; r == 0 && i > 0; i--)
        r = jinja_list_add(run, out.list, list->items[i - 1]);
    if (r == 0)
        *ret_value = out;
    return r;
}

/* ---- order ---- */

struct sort_item {
    struct jinja_value key, value;
};

static int merge_sort(struct jinja_run *run, struct sort_item *all, struct sort_item *spare, size_t n,
                      bool backwards)
{
    if (n < 2)
        return 0;
    size_t half = n / 2, a = 0, b = half, out = 0;
    int r = merge_sort(run, all, spare, half, backwards);
    if (r == 0)
        r = merge_sort(run, all + half, spare + half, n - half, backwards);
    while (r == 0 && out < n) {
        int order = a == half ? 1 : -1;
        if (a < half && b < n) {
            r = jinja_compare(run, all[a].key, all[b].key, &order);
            if (backwards)
                order = -order;
        }
        spare[out++] = all[order <= 0 ? a++ : b++];
    }
    if (r == 0)
        memcpy(all, spare, n * sizeof *all);
    return r != 0 ? r : jinja_spend(run, n);
}

/* What min, max, sort and unique compare: strings without regard to case, unless told otherwise. */
static int key_of(struct jinja_run *run, struct jinja_value value, const struct jinja_value *path,
                  bool exact_case, struct jinja_value *ret_key)
{
    int r = 0;
    *ret_key = value;
    if (path)
        r = jinja_member_by_path(run, value, *path, ret_key);
    if (r != 0 || exact_case || ret_key->type != JINJA_STR)
        return r;
    return jinja_change_case(run, ret_key->string, JINJA_LOWER, ret_key);
}

/* Sorts `values` by keys (the values themselves, or a member), stably. */
static int sort_by(struct jinja_run *run, const struct jinja_list *values, const struct jinja_value *path,
                   bool exact_case, bool backwards, struct jinja_value *ret_value)
{
    struct sort_item *all = jinja_alloc(run, (2 * values->n + 1) * sizeof *all);
    struct jinja_value out;
    int r = all ? jinja_new_list(run, values->n, &out) : jinja_no_memory(run);
    for (size_t i = 0; r == 0 && i < values->n; i++) {
        all[i].value = values->items[i];
        r = key_of(run, values->items[i], path, exact_case, &all[i].key);
    }
    if (r == 0)
        r = merge_sort(run, all, all + values->n, values->n, backwards);
    for (size_t i = 0; r == 0 && i < values->n; i++)
        r = jinja_list_add(run, out.list, all[i].value);
    if (r == 0)
        *ret_value = out;
    return r;
}

static int sort(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    struct jinja_value backwards = jinja_of_bool(false), exact = jinja_of_bool(false), path;
    const struct jinja_list *list;
    jinja_argument(a, 1, "reverse", &backwards);
    jinja_argument(a, 2, "case_sensitive", &exact);
    bool by_member = jinja_argument(a, 3, "attribute", &path);
    int r = jinja_items_of(run, a->items[0], &list);
    return r != 0 ? r
                  : sort_by(run, list, by_member ? &path : NULL, jinja_is_true(exact),
                            jinja_is_true(backwards), ret_value);
}

static int dict_sort(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    struct jinja_value exact = jinja_of_bool(false), by, backwards = jinja_of_bool(false), pairs;
    jinja_argument(a, 1, "case_sensitive", &exact);
    bool by_value = jinja_argument(a, 2, "by", &by) && jinja_string_is(by, "value");
    jinja_argument(a, 3, "reverse", &backwards);
    int r = items(run, a, &pairs);
    struct jinja_value index = jinja_of_int(by_value);
    return r != 0
               ? r
               : sort_by(run, pairs.list, &index, jinja_is_true(exact), jinja_is_true(backwards), ret_value);
}

static int extreme(struct jinja_run *run, const struct jinja_arguments *a, int sign,
                   struct jinja_value *ret_value)
{
    const struct jinja_list *list;
    struct jinja_value best = {.type = JINJA_UNDEFINED}, best_key = best, key, path;
    struct jinja_value exact = jinja_of_bool(false);
    jinja_argument(a, 1, "case_sensitive", &exact);
    const bool by_member = jinja_argument(a, 2, "attribute", &path);
    int r = jinja_items_of(run, a->items[0], &list);
    for (size_t i = 0; r == 0 && i < list->n; i++) {
        int order = sign;
        r = key_of(run, list->items[i], by_member ? &path : NULL, jinja_is_true(exact), &key);
        if (r == 0 && i > 0)
            r = jinja_compare(run, key, best_key, &order);
        if (r == 0 && order * sign > 0) {
            best = list->items[i];
            best_key = key;
        }
        if (r == 0)
            r = jinja_spend(run, 1);
    }
    if (r == 0)
        *ret_value = best;
    return r;
}

static int largest(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return extreme(run, a, 1, ret_value);
}

static int smallest(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return extreme(run, a, -1, ret_value);
}

static int sum(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    const struct jinja_list *list;
    struct jinja_value total = jinja_of_int(0), path, item;
    bool by_member = jinja_argument(a, 1, "attribute", &path);
    jinja_argument(a, 2, "start", &total);
    int r = jinja_items_of(run, a->items[0], &list);
    for (size_t i = 0; r == 0 && i < list->n; i++) {
        item = list->items[i];
        if (by_member)
            r = jinja_member_by_path(run, list->items[i], path, &item);
        if (r == 0)
            r = jinja_calculate(run, JINJA_ADD, total, item, &total);
        if (r == 0)
            r = jinja_spend(run, 1);
    }
    if (r == 0)
        *ret_value = total;
    return r;
}

/* Groups of `size` items, one after the other; a short last one is filled up, if there is something to fill
 * with. */
static int batch(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    const struct jinja_list *list;
    struct jinja_value out, group, fill = {.type = JINJA_NONE};
    int64_t size;
    jinja_argument(a, 2, "fill_with", &fill);
    int r = jinja_int_argument(run, a, 1, "linecount", 0, &size);
    if (r == 0 && size <= 0)
        return jinja_fail(run, -EINVAL, "batch takes the size of a group");
    if (r == 0)
        r = jinja_items_of(run, a->items[0], &list);
    if (r == 0)
        r = jinja_new_list(run, 0, &out);
    for (size_t i = 0; r == 0 && i < list->n; i++) {
        if (i % (size_t)size == 0) {
            r = jinja_new_list(run, 0, &group);
            if (r == 0)
                r = jinja_list_add(run, out.list, group);
        }
        if (r == 0)
            r = jinja_list_add(run, group.list, list->items[i]);
    }
    for (bool any = r == 0 && list->n > 0 && fill.type != JINJA_NONE;
         r == 0 && any && group.list->n < (size_t)size;)
        r = jinja_list_add(run, group.list, fill);
    if (r == 0)
        *ret_value = jinja_generator_of(out);
    return r;
}

/* (value, items) for each value of a member, in order. */
static int group_by(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    const struct jinja_list *list;
    struct jinja_value path, sorted, out, group, key, last = {.type = JINJA_UNDEFINED}, pair;
    if (!jinja_argument(a, 1, "attribute", &path))
        return jinja_fail(run, -EINVAL, "groupby takes the name of a member");
    int r = jinja_items_of(run, a->items[0], &list);
    if (r == 0)
        r = sort_by(run, list, &path, false, false, &sorted);
    if (r == 0)
        r = jinja_new_list(run, 0, &out);
    for (size_t i = 0; r == 0 && i < sorted.list->n; i++) {
        bool same = false;
        r = jinja_member_by_path(run, sorted.list->items[i], path, &key);
        if (r == 0 && i > 0)
            r = jinja_equal(run, key, last, 0, &same);
        if (r == 0 && !same) {
            r = jinja_new_list(run, 0, &group);
            if (r == 0)
                r = jinja_new_list(run, 2, &pair);
            if (r == 0)
                r = jinja_list_add(run, pair.list, key);
            if (r == 0)
                r = jinja_list_add(run, pair.list, group);
            if (r == 0)
                r = jinja_list_add(run, out.list, pair);
            if (r == 0)
                pair.list->is_tuple = true;
            last = key;
        }
        if (r == 0)
            r = jinja_list_add(run, group.list, sorted.list->items[i]);
    }
    if (r == 0)
        *ret_value = out;
    return r;
}

static int unique(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    const struct jinja_list *list;
    struct jinja_value out, keys, key, path, exact = jinja_of_bool(false);
    jinja_argument(a, 1, "case_sensitive", &exact);
    const bool by_member = jinja_argument(a, 2, "attribute", &path);
    int r = jinja_items_of(run, a->items[0], &list);
    if (r == 0)
        r = jinja_new_list(run, 0, &out);
    if (r == 0)
        r = jinja_new_list(run, 0, &keys);
    for (size_t i = 0; r == 0 && i < list->n; i++) {
        bool known = false;
        r = key_of(run, list->items[i], by_member ? &path : NULL, jinja_is_true(exact), &key);
        if (r == 0)
            r = jinja_contains(run, keys, key, &known);
        if (r == 0 && !known)
            r = jinja_list_add(run, out.list, list->items[i]);
        if (r == 0 && !known)
            r = jinja_list_add(run, keys.list, key);
    }
    if (r == 0)
        *ret_value = jinja_generator_of(out);
    return r;
}

jinja_function *jinja_find_list_filter(struct bytes name)
{
    static const struct jinja_named table[] = {
        {"list", to_list}, {"first", first},      {"last", last}, {"join", join},
        {"items", items},  {"reverse", reverse},  {"sort", sort}, {"dictsort", dict_sort},
        {"max", largest},  {"min", smallest},     {"sum", sum},   {"unique", unique},
        {"batch", batch},  {"groupby", group_by}, {NULL, NULL},
    };
    return jinja_find_named(table, name);
}
