/* SPDX-License-Identifier: MIT */
/* Methods of dictionaries, lists and loops. The first argument is the object. Those of strings are in
 * string_methods.c.
 *
 * Those that would change a list or dictionary fail: templates run where values are immutable, and only a
 * namespace has members to set. Where a template is permitted to (jinja_template_permit_changes), lists grow
 * and shrink, as far as those templates need. */

#include <errno.h>

#include "text/template/jinja/string_ops.h"
#include "text/template/jinja/library/library.h"
#include "text/template/jinja/operators.h"

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

static int copy(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    *ret_value = a->items[0]; /* nothing can change either of the two */
    if (!run->changes || a->items[0].type != JINJA_LIST)
        return 0;
    struct jinja_value list;
    int r = jinja_new_list(run, a->items[0].list->n, &list);
    for (size_t i = 0; r == 0 && i < a->items[0].list->n; i++)
        r = jinja_list_add(run, list.list, a->items[0].list->items[i]);
    if (r == 0)
        *ret_value = list;
    return r;
}

static int check_change(struct jinja_run *run, const char *what)
{
    return run->changes ? 0 : jinja_fail(run, -EINVAL, "\"%s\" is called but not defined", what);
}

static int append(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    int r = check_change(run, "append");
    if (r == 0 && a->n != 2)
        r = jinja_fail(run, -EINVAL, "append takes a value");
    if (r == 0)
        r = jinja_list_add(run, a->items[0].list, a->items[1]);
    *ret_value = (struct jinja_value){.type = JINJA_NONE};
    return r;
}

static int extend(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    const struct jinja_list *more = NULL;
    int r = check_change(run, "extend");
    if (r == 0 && a->n != 2)
        r = jinja_fail(run, -EINVAL, "extend takes a list");
    if (r == 0)
        r = jinja_items_of(run, a->items[1], &more);
    for (size_t i = 0, n = r == 0 ? more->n : 0; r == 0 && i < n; i++)
        r = jinja_list_add(run, a->items[0].list, more->items[i]);
    *ret_value = (struct jinja_value){.type = JINJA_NONE};
    return r;
}

/* The last item, or the one at an index, leaves the list. */
static int pop(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    struct jinja_list *list = a->items[0].list;
    int r = check_change(run, "pop");
    if (r != 0)
        return r;
    int64_t at = a->n > 1 && a->items[1].type == JINJA_INT ? a->items[1].integer : -1;
    at += at < 0 ? (int64_t)list->n : 0;
    if (at < 0 || at >= (int64_t)list->n)
        return jinja_fail(run, -EINVAL, "pop: index out of range");
    *ret_value = list->items[at];
    for (size_t i = (size_t)at + 1; i < list->n; i++)
        list->items[i - 1] = list->items[i];
    list->n--;
    return jinja_spend(run, list->n);
}

/* How often the argument is in the list, and where first (−1: nowhere). */
static int look_for(struct jinja_run *run, const struct jinja_arguments *a, int64_t *ret_n,
                    int64_t *ret_first)
{
    const struct jinja_list *list = a->items[0].list;
    if (a->n < 2)
        return jinja_fail(run, -EINVAL, "index and count take a value");
    *ret_n = 0;
    *ret_first = -1;
    int r = 0;
    for (size_t i = 0; r == 0 && i < list->n; i++) {
        bool equal = false;
        r = jinja_equal(run, list->items[i], a->items[1], 0, &equal);
        if (equal && *ret_first < 0)
            *ret_first = (int64_t)i;
        *ret_n += equal;
    }
    return r;
}

static int index_of(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    int64_t n, first;
    int r = look_for(run, a, &n, &first);
    if (r == 0 && first < 0)
        return jinja_fail(run, -EINVAL, "index: value not found in the list");
    *ret_value = jinja_of_int(r == 0 ? first : 0);
    return r;
}

static int count(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    int64_t n, first;
    int r = look_for(run, a, &n, &first);
    *ret_value = jinja_of_int(r == 0 ? n : 0);
    return r;
}

/* loop.cycle(a, b, …): the one whose turn it is. */
static int cycle(struct jinja_run *run, const struct jinja_arguments *a, struct jinja_value *ret_value)
{
    if (a->n < 2)
        return jinja_fail(run, -EINVAL, "cycle takes values");
    *ret_value = a->items[1 + a->items[0].loop->index % (a->n - 1)];
    return 0;
}

jinja_function *jinja_find_method(struct jinja_value object, struct bytes name)
{
    static const struct jinja_named of_dicts[] = {
        {"items", items}, {"keys", keys}, {"values", values}, {"get", get}, {"copy", copy}, {NULL, NULL},
    };
    static const struct jinja_named of_lists[] = {
        {"index", index_of}, {"count", count}, {"append", append}, {"extend", extend},
        {"pop", pop},        {"copy", copy},   {NULL, NULL},
    };
    static const struct jinja_named of_loops[] = {{"cycle", cycle}, {NULL, NULL}};
    switch (object.type) {
    case JINJA_STR:
        return jinja_find_string_method(name);
    case JINJA_DICT:
        return jinja_find_named(of_dicts, name);
    case JINJA_LIST:
        return jinja_find_named(of_lists, name);
    case JINJA_LOOP:
        return jinja_find_named(of_loops, name);
    default:
        return NULL;
    }
}
