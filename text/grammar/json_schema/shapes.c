/* SPDX-License-Identifier: MIT */
/* Shapes and lists of them. What can be seen at once of two that contradict each other is seen here: types,
 * lists of values, bounds of counts. */

#include <string.h>

#include "text/grammar/json_schema/shapes.h"

#define MOST_SHAPES 1024

struct shape shape_any(void)
{
    return (struct shape){
        .types = TYPE_ALL, .max_items = GRAMMAR_UNBOUNDED, .max_members = GRAMMAR_UNBOUNDED};
}

const struct shape *shape_keep(struct schema_reader *reader, const struct shape *shape)
{
    struct shape *copy = schema_take(reader, 1, sizeof *copy);
    if (copy)
        *copy = *shape;
    return copy;
}

bool shape_push(struct schema_reader *reader, const void *list, const void *node, size_t size)
{
    const struct link **head = (const struct link **)(uintptr_t)list;
    struct link *copy = schema_take(reader, 1, size);
    if (!copy)
        return false;
    memcpy(copy, node, size);
    copy->next = *head;
    *head = copy;
    return true;
}

/* Both lists, the nodes of the first copied. */
static const void *join(struct schema_reader *reader, const void *a, const void *b, size_t size)
{
    const struct link *first = b, **end = &first;
    for (const struct link *from = a; from && b; from = from->next) {
        struct link *copy = schema_take(reader, 1, size);
        if (!copy || !schema_spend(reader, 1))
            return NULL;
        memcpy(copy, from, size);
        copy->next = b;
        *end = copy;
        end = (const struct link **)&copy->next;
    }
    return b ? first : a;
}

static const json_t *values_of_both(struct schema_reader *reader, const json_t *a, const json_t *b)
{
    if (!a || !b || a == b)
        return a ? a : b;
    if (!schema_spend(reader, 1 + (uint64_t)json_array_size(a) * json_array_size(b)))
        return NULL;
    json_t *both = json_array();
    for (size_t i = 0; both && i < json_array_size(a); i++) {
        bool there = false;
        for (size_t j = 0; j < json_array_size(b) && !there; j++)
            there = json_values_equal(json_array_get(a, i), json_array_get(b, j));
        if (there && json_array_append(both, json_array_get(a, i)) != 0)
            schema_no_memory(reader);
    }
    return schema_keep(reader, both);
}

bool shape_both(struct schema_reader *reader, const struct shape *a, const struct shape *b,
                struct shape *ret_shape)
{
    struct shape both = {
        .types = a->types & b->types,
        .min_items = a->min_items > b->min_items ? a->min_items : b->min_items,
        .max_items = a->max_items < b->max_items ? a->max_items : b->max_items,
        .unique = a->unique || b->unique,
        .strict = a->strict || b->strict,
        .min_members = a->min_members > b->min_members ? a->min_members : b->min_members,
        .max_members = a->max_members < b->max_members ? a->max_members : b->max_members,
    };
    if (both.min_items > both.max_items)
        both.types &= ~(uint32_t)TYPE_ARRAY;
    if (both.min_members > both.max_members)
        both.types &= ~(uint32_t)TYPE_OBJECT;
    if (both.types == 0)
        return false;
    both.listed = values_of_both(reader, a->listed, b->listed);
    if (both.listed && json_array_size(both.listed) == 0) {
        schema_note_nothing(reader, "no value of enum or const is possible");
        return false;
    }
    both.strings = join(reader, a->strings, b->strings, sizeof *both.strings);
    both.numbers = join(reader, a->numbers, b->numbers, sizeof *both.numbers);
    both.items = join(reader, a->items, b->items, sizeof *both.items);
    both.contains = join(reader, a->contains, b->contains, sizeof *both.contains);
    both.groups = join(reader, a->groups, b->groups, sizeof *both.groups);
    both.required = join(reader, a->required, b->required, sizeof *both.required);
    both.names = join(reader, a->names, b->names, sizeof *both.names);
    *ret_shape = both;
    return reader->code == 0;
}

struct shapes *shapes_new(struct schema_reader *reader)
{
    return schema_take(reader, 1, sizeof(struct shapes));
}

bool shapes_add(struct schema_reader *reader, struct shapes *shapes, const struct shape *shape)
{
    if (!schema_spend(reader, 8))
        return false;
    if (shapes->n == MOST_SHAPES) {
        schema_refuse(reader, "more than %d combinations of alternatives", MOST_SHAPES);
        return false;
    }
    if (shapes->n == shapes->cap) {
        uint32_t cap = shapes->cap ? shapes->cap * 2 : 4;
        const struct shape **items = schema_take(reader, cap, sizeof *items);
        if (!items)
            return false;
        if (shapes->n > 0)
            memcpy(items, shapes->items, shapes->n * sizeof *items);
        shapes->items = items;
        shapes->cap = cap;
    }
    const struct shape *kept = shape_keep(reader, shape);
    if (kept)
        shapes->items[shapes->n++] = kept;
    return kept != NULL;
}

bool shapes_add_all(struct schema_reader *reader, struct shapes *shapes, const struct shapes *more)
{
    for (uint32_t i = 0; i < more->n; i++)
        if (!shapes_add(reader, shapes, more->items[i]))
            return false;
    return true;
}

struct shapes *shapes_product(struct schema_reader *reader, const struct shapes *a, const struct shapes *b)
{
    struct shapes *product = a && b ? shapes_new(reader) : NULL;
    for (uint32_t i = 0; product && i < a->n; i++)
        for (uint32_t j = 0; j < b->n; j++) {
            struct shape both;
            if (!schema_spend(reader, 4))
                return NULL;
            if (shape_both(reader, a->items[i], b->items[j], &both))
                shapes_add(reader, product, &both);
            if (reader->code != 0)
                return NULL;
        }
    return product;
}
