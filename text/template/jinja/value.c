/* SPDX-License-Identifier: MIT */
/* Making values: strings, lists and dictionaries in the run's arena, and JSON turned into them.
 *
 * Work that takes more than constant time is charged to the run here, so that filters and operators need not
 * do it. */

#include "common/amount.h"
#include "text/template/jinja/value.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int jinja_fail(struct jinja_run *run, int code, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return error_set(run->err, code, "line %u: %s", run->line, text);
}

void *jinja_alloc(struct jinja_run *run, size_t size)
{
    return arena_take(&run->arena, 1, size);
}

int jinja_no_memory(struct jinja_run *run)
{
    if (run->arena.starved)
        return jinja_fail(run, -ENOMEM, "not enough memory for the template's output");
    return jinja_fail(run, -EMSGSIZE, "the template needs more than %s",
                      amount_of_bytes(run->arena.limit).text);
}

int jinja_spend(struct jinja_run *run, size_t steps)
{
    run->steps += steps;
    if (run->steps > JINJA_MAX_STEPS)
        return jinja_fail(run, -EMSGSIZE, "the template takes more than %d steps", JINJA_MAX_STEPS);
    return 0;
}

const char *jinja_type_name(struct jinja_value value)
{
    static const char *const names[] = {
        [JINJA_UNDEFINED] = "an undefined value",
        [JINJA_NONE] = "none",
        [JINJA_BOOLEAN] = "a boolean",
        [JINJA_INT] = "a whole number",
        [JINJA_FLOAT] = "a number",
        [JINJA_STR] = "a string",
        [JINJA_LIST] = "a list",
        [JINJA_GENERATOR] = "a generator",
        [JINJA_DICT] = "a mapping",
        [JINJA_LOOP] = "a loop",
        [JINJA_MACRO] = "a macro",
        [JINJA_FUNCTION] = "a function",
    };
    return names[value.type];
}

bool jinja_is_true(struct jinja_value value)
{
    switch (value.type) {
    case JINJA_UNDEFINED:
    case JINJA_NONE:
        return false;
    case JINJA_BOOLEAN:
        return value.boolean;
    case JINJA_INT:
        return value.integer != 0;
    case JINJA_FLOAT:
        return value.real != 0;
    case JINJA_STR:
        return value.string->len > 0;
    case JINJA_LIST:
        return value.list->n > 0;
    case JINJA_DICT:
        return value.dict->n > 0 || value.dict->is_namespace;
    case JINJA_GENERATOR:
    case JINJA_LOOP:
    case JINJA_MACRO:
    case JINJA_FUNCTION:
        break;
    }
    return true;
}

bool jinja_string_is(struct jinja_value value, const char *text)
{
    return value.type == JINJA_STR &&
           bytes_equal((struct bytes){value.string->data, value.string->len}, bytes_of_string(text));
}

bool jinja_argument(const struct jinja_arguments *arguments, size_t i, const char *name,
                    struct jinja_value *ret_value)
{
    if (i < arguments->n) {
        *ret_value = arguments->items[i];
        return true;
    }
    for (size_t k = 0; k < arguments->n_named; k++)
        if (jinja_string_is(arguments->named[k].key, name)) {
            *ret_value = arguments->named[k].value;
            return true;
        }
    return false;
}

jinja_function *jinja_find_named(const struct jinja_named *table, struct bytes name)
{
    for (; table->name; table++)
        if (bytes_equal(name, bytes_of_string(table->name)))
            return table->function;
    return NULL;
}

static int of_string(struct jinja_run *run, struct jinja_string string, struct jinja_value *ret_value)
{
    struct jinja_string *copy = jinja_alloc(run, sizeof *copy);
    if (!copy)
        return jinja_no_memory(run);
    *copy = string;
    *ret_value = (struct jinja_value){.type = JINJA_STR, .string = copy};
    return 0;
}

int jinja_of_bytes(struct jinja_run *run, const char *data, size_t len, const uint8_t *marks,
                   struct jinja_value *ret_value)
{
    return of_string(run, (struct jinja_string){.data = data, .len = len, .marks = marks}, ret_value);
}

int jinja_of_part(struct jinja_run *run, const struct jinja_string *whole, size_t start, size_t len,
                  struct jinja_value *ret_value)
{
    const struct jinja_string part = {
        .data = whole->data + start,
        .len = len,
        .marks = whole->marks ? whole->marks + start : NULL,
        .html = whole->html,
    };
    return of_string(run, part, ret_value);
}

int jinja_of_builder(struct jinja_run *run, const struct jinja_builder *builder,
                     struct jinja_value *ret_value)
{
    const struct jinja_string string = {
        .data = builder->data ? builder->data : "",
        .len = builder->len,
        .marks = builder->marks,
        .html = builder->html,
    };
    return of_string(run, string, ret_value);
}

int jinja_new_list(struct jinja_run *run, size_t cap, struct jinja_value *ret_value)
{
    struct jinja_list *list = jinja_alloc(run, sizeof *list);
    if (!list || cap > SIZE_MAX / sizeof *list->items)
        return jinja_no_memory(run);
    if (cap > 0) {
        list->items = jinja_alloc(run, cap * sizeof *list->items);
        if (!list->items)
            return jinja_no_memory(run);
        list->cap = cap;
    }
    *ret_value = (struct jinja_value){.type = JINJA_LIST, .list = list};
    return 0;
}

int jinja_list_add(struct jinja_run *run, struct jinja_list *list, struct jinja_value value)
{
    if (list->n == list->cap) {
        size_t cap = list->cap * 2 + 4;
        struct jinja_value *moved = jinja_alloc(run, cap * sizeof *moved);
        if (!moved)
            return jinja_no_memory(run);
        if (list->n > 0)
            memcpy(moved, list->items, list->n * sizeof *moved);
        list->items = moved;
        list->cap = cap;
    }
    list->items[list->n++] = value;
    return jinja_spend(run, 1);
}

int jinja_new_dict(struct jinja_run *run, struct jinja_value *ret_value)
{
    struct jinja_dict *dict = jinja_alloc(run, sizeof *dict);
    if (!dict)
        return jinja_no_memory(run);
    *ret_value = (struct jinja_value){.type = JINJA_DICT, .dict = dict};
    return 0;
}

int jinja_dict_add(struct jinja_run *run, struct jinja_dict *dict, struct jinja_value key,
                   struct jinja_value value)
{
    if (dict->n == dict->cap) {
        size_t cap = dict->cap * 2 + 4;
        struct jinja_member *moved = jinja_alloc(run, cap * sizeof *moved);
        if (!moved)
            return jinja_no_memory(run);
        if (dict->n > 0)
            memcpy(moved, dict->items, dict->n * sizeof *moved);
        dict->items = moved;
        dict->cap = cap;
    }
    dict->items[dict->n++] = (struct jinja_member){key, value};
    return jinja_spend(run, 1);
}

int jinja_append(struct jinja_run *run, struct jinja_builder *builder, const char *data, size_t len,
                 const uint8_t *marks)
{
    if (len == 0)
        return 0;
    int r = jinja_spend(run, 1 + len / 64);
    if (r != 0)
        return r;
    if (len > run->arena.limit)
        return jinja_no_memory(run);
    size_t old_cap = builder->cap;
    if (builder->len + len > builder->cap) {
        size_t cap = builder->cap * 2 > builder->len + len ? builder->cap * 2 : builder->len + len + 32;
        char *moved = jinja_alloc(run, cap);
        if (!moved)
            return jinja_no_memory(run);
        if (builder->len > 0)
            memcpy(moved, builder->data, builder->len);
        builder->data = moved;
        builder->cap = cap;
    }
    if ((marks && !builder->marks) || (builder->marks && builder->cap != old_cap)) {
        uint8_t *moved = jinja_alloc(run, builder->cap); /* zeroed: unmarked so far */
        if (!moved)
            return jinja_no_memory(run);
        if (builder->marks && builder->len > 0)
            memcpy(moved, builder->marks, builder->len);
        builder->marks = moved;
    }
    memcpy(builder->data + builder->len, data, len);
    if (marks)
        memcpy(builder->marks + builder->len, marks, len);
    builder->len += len;
    return 0;
}

int jinja_append_string(struct jinja_run *run, struct jinja_builder *builder,
                        const struct jinja_string *string)
{
    return jinja_append(run, builder, string->data, string->len, string->marks);
}

static int string_of_json(struct jinja_run *run, const char *data, size_t len, bool from_user,
                          struct jinja_value *ret_value)
{
    int r = jinja_spend(run, 1 + len / 64);
    if (r != 0)
        return r;
    uint8_t *marks = NULL;
    if (from_user && len > 0) {
        marks = jinja_alloc(run, len);
        if (!marks)
            return jinja_no_memory(run);
        memset(marks, 1, len);
    }
    return jinja_of_bytes(run, data, len, marks, ret_value);
}

static int list_of_json(struct jinja_run *run, const json_t *json, bool from_user, unsigned depth,
                        struct jinja_value *ret_value)
{
    int r = jinja_new_list(run, json_array_size(json), ret_value);
    for (size_t i = 0; r == 0 && i < json_array_size(json); i++) {
        struct jinja_value item;
        r = jinja_of_json(run, json_array_get(json, i), from_user, depth + 1, &item);
        if (r == 0)
            r = jinja_list_add(run, ret_value->list, item);
    }
    return r;
}

static int dict_of_json(struct jinja_run *run, const json_t *json, bool from_user, unsigned depth,
                        struct jinja_value *ret_value)
{
    int r = jinja_new_dict(run, ret_value);
    if (r != 0)
        return r;
    const char *key;
    json_t *member;
    /* jansson takes a pointer to non-const for walking, and does not write through it. */
    json_object_foreach((json_t *)json, key, member)
    {
        struct jinja_value name, value;
        r = string_of_json(run, key, strlen(key), from_user, &name);
        if (r == 0)
            r = jinja_of_json(run, member, from_user, depth + 1, &value);
        if (r == 0)
            r = jinja_dict_add(run, ret_value->dict, name, value);
        if (r != 0)
            break;
    }
    return r;
}

int jinja_of_json(struct jinja_run *run, const json_t *json, bool from_user, unsigned depth,
                  struct jinja_value *ret_value)
{
    if (depth > JINJA_MAX_NESTING)
        return jinja_fail(run, -EMSGSIZE, "a value is nested more than %d deep", JINJA_MAX_NESTING);
    switch (json_typeof(json)) {
    case JSON_OBJECT:
        return dict_of_json(run, json, from_user, depth, ret_value);
    case JSON_ARRAY:
        return list_of_json(run, json, from_user, depth, ret_value);
    case JSON_STRING:
        return string_of_json(run, json_string_value(json), json_string_length(json), from_user, ret_value);
    case JSON_INTEGER:
        *ret_value = jinja_of_int(json_integer_value(json));
        return 0;
    case JSON_REAL:
        *ret_value = jinja_of_real(json_real_value(json));
        return 0;
    case JSON_TRUE:
    case JSON_FALSE:
        *ret_value = jinja_of_bool(json_is_true(json));
        return 0;
    case JSON_NULL:
        break;
    }
    *ret_value = (struct jinja_value){.type = JINJA_NONE};
    return 0;
}
