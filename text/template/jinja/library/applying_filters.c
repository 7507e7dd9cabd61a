/* SPDX-License-Identifier: MIT */
/* Filters that apply another filter or test to each item (map, select, reject), and the search for a filter
 * by its name, which map needs.
 *
 * The arguments of the filter or test applied are those after its name. */

#include "text/template/jinja/library/library.h"

#include <errno.h>

#include "text/template/jinja/library/list_filters.h"
#include "text/template/jinja/operators.h"
#include "text/template/jinja/string_ops.h"

/* The arguments from `skip` on, with room for the item in front. */
static int rest_of(struct jinja_run *run, const struct jinja_arguments *a, size_t skip,
                   struct jinja_arguments *ret_rest)
{
    *ret_rest = (struct jinja_arguments){.n = 1, .named = a->named, .n_named = a->n_named};
    ret_rest->items = jinja_alloc(run, (a->n + 1) * sizeof *ret_rest->items);
    if (!ret_rest->items)
        return jinja_no_memory(run);
    for (size_t i = skip; i < a->n; i++)
        ret_rest->items[ret_rest->n++] = a->items[i];
    return 0;
}

/* What select, reject and map walk through: nothing that is false has items, `none` included. */
static int items_if_true(struct jinja_run *run, struct jinja_value value, const struct jinja_list **ret_list)
{
    static const struct jinja_list nothing;
    if (jinja_is_true(value))
        return jinja_items_of(run, value, ret_list);
    *ret_list = &nothing;
    return 0;
}

/* Keeps the items whose test says `wanted`; `by_member` tests a member, whose name comes first. */
static int choose(struct jinja_run *run, const struct jinja_arguments *a, bool by_member, bool wanted,
                  struct jinja_value *ret_value)
{
    const size_t name_at = by_member ? 2 : 1;
    const struct jinja_string *name;
    const struct jinja_list *list;
    struct jinja_arguments rest;
    struct jinja_value out, yes;
    jinja_function *test = NULL;
    if (by_member && a->n < 2)
        return jinja_fail(run, -EINVAL, "selectattr and rejectattr take the name of a member");
    int r = jinja_string_argument(run, a, name_at, "", &name);
    if (r == 0 && name) {
        test = jinja_find_test((struct bytes){name->data, name->len});
        if (!test)
            return jinja_fail(run, -EINVAL, "unknown test \"%.*s\"", (int)(name->len < 64 ? name->len : 64),
                              name->data);
    }
    if (r == 0)
        r = items_if_true(run, a->items[0], &list);
    if (r == 0)
        r = rest_of(run, a, name_at + 1, &rest);
    if (r == 0)
        r = jinja_new_list(run, 0, &out);
    for (size_t i = 0; r == 0 && i < list->n; i++) {
        rest.items[0] = list->items[i];
        if (by_member)
            r = jinja_member_by_path(run, list->items[i], a->items[1], &rest.items[0]);
        yes = rest.items[0];
        if (r == 0 && test)
            r = test(run, &rest, &yes);
        if (r == 0 && jinja_is_true(yes) == wanted)
            r = jinja_list_add(run, out.list, list->items[i]);
        if (r == 0)
            r = jinja_spend(run, 1);
    }
    if (r == 0)
        *ret_value = jinja_generator_of(out);
    return r;
}

static int select_items(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return choose(run, a, false, true, ret_value);
}

static int reject(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    return choose(run, a, false, false, ret_value);
}

static int select_by_member(struct jinja_run *run, const struct jinja_arguments *a,
                            struct jinja_value *ret_value)
{
    return choose(run, a, true, true, ret_value);
}

static int reject_by_member(struct jinja_run *run, const struct jinja_arguments *a,
                            struct jinja_value *ret_value)
{
    return choose(run, a, true, false, ret_value);
}

static int map(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    struct jinja_value path, otherwise, out;
    const struct jinja_string *name = NULL;
    const struct jinja_list *list;
    struct jinja_arguments rest;
    jinja_function *filter = NULL;
    bool by_member = jinja_argument(a, SIZE_MAX, "attribute", &path);
    bool has_otherwise = jinja_argument(a, SIZE_MAX, "default", &otherwise);
    int r = by_member ? 0 : jinja_string_argument(run, a, 1, "", &name);
    if (r == 0 && !by_member) {
        filter = name ? jinja_find_filter((struct bytes){name->data, name->len}) : NULL;
        if (!filter)
            return jinja_fail(run, -EINVAL, "map takes the name of a filter, or attribute=");
    }
    if (r == 0)
        r = items_if_true(run, a->items[0], &list);
    if (r == 0)
        r = rest_of(run, a, 2, &rest);
    if (r == 0)
        r = jinja_new_list(run, list->n, &out);
    for (size_t i = 0; r == 0 && i < list->n; i++) {
        struct jinja_value value;
        rest.items[0] = list->items[i];
        /* A filter may map in its turn: that is one level deeper. */
        if (++run->depth > JINJA_MAX_DEPTH)
            return jinja_fail(run, -EMSGSIZE, "nested more than %d deep", JINJA_MAX_DEPTH);
        r = by_member ? jinja_member_by_path(run, list->items[i], path, &value) : filter(run, &rest, &value);
        run->depth--;
        if (r == 0 && has_otherwise && by_member && value.type == JINJA_UNDEFINED)
            value = otherwise;
        if (r == 0)
            r = jinja_list_add(run, out.list, value);
    }
    if (r == 0)
        *ret_value = jinja_generator_of(out);
    return r;
}

jinja_function *jinja_find_filter(struct bytes name)
{
    static const struct jinja_named table[] = {
        {"select", select_items},         {"reject", reject}, {"selectattr", select_by_member},
        {"rejectattr", reject_by_member}, {"map", map},       {NULL, NULL},
    };
    jinja_function *function = jinja_find_value_filter(name);
    if (!function)
        function = jinja_find_list_filter(name);
    return function ? function : jinja_find_named(table, name);
}
