/* SPDX-License-Identifier: MIT */
/* Demands as expressions. A demand that is met while it is being made becomes a rule, which it then calls:
 * recursion in a schema is a rule that names itself. */

#include "text/grammar/json_schema/emit.h"

#include <stdlib.h>
#include <string.h>

#include "text/grammar/json_schema/decimals.h"
#include "text/grammar/json_strings.h"

const struct expression schema_nothing = {.kind = EXPRESSION_CHARS};

/* ---- values ---- */

const struct expression *emit_name(struct schema_reader *reader, const char *name)
{
    return json_string_quoted(&reader->json, json_string_literal(&reader->json, bytes_of_string(name)));
}

/* 2.0 may be written as 2; not the other way round, which readers of integers do not take. */
static const struct expression *emit_number_value(struct rules *rules, const json_t *value)
{
    char *text = decimal_text(value);
    const struct expression *literal = text ? expression_text(rules, text) : NULL;
    size_t len = text ? strlen(text) : 0;
    if (literal && len > 2 && strcmp(text + len - 2, ".0") == 0)
        literal = expression_then(rules, expression_literal(rules, (struct bytes){text, len - 2}),
                                  expression_optional(rules, expression_text(rules, ".0")));
    free(text);
    return literal;
}

static const struct expression *emit_value(struct schema_reader *reader, const json_t *value)
{
    struct rules *rules = reader->rules;
    if (json_is_string(value))
        return json_string_quoted(
            &reader->json, json_string_literal(&reader->json, (struct bytes){json_string_value(value),
                                                                             json_string_length(value)}));
    if (json_is_number(value))
        return emit_number_value(rules, value);
    if (!json_is_object(value) && !json_is_array(value))
        return expression_text(rules, json_is_true(value) ? "true" : json_is_false(value) ? "false" : "null");
    struct demand demand = {0};
    const json_t *schema = schema_of_value(reader, value);
    if (!schema || !demand_add(reader, &demand, (struct claim){schema, false}))
        return NULL;
    return emit_demand(reader, &demand);
}

static const struct expression *emit_listed(struct schema_reader *reader, const struct shape *shape)
{
    const json_t *values = shape_values(reader, shape);
    struct expression_list list = {0};
    for (size_t i = 0; i < json_array_size(values); i++)
        expression_push(reader->rules, &list, emit_value(reader, json_array_get(values, i)));
    if (!values)
        return NULL;
    if (list.n > 0 || list.failed)
        return expression_choice(reader->rules, &list);
    schema_note_nothing(reader, "no value of enum or const is possible");
    return &schema_nothing;
}

/* ---- types ---- */

static const struct expression *emit_number(struct schema_reader *reader, const struct shape *shape)
{
    const struct atom *atom = shape->numbers;
    if (!atom)
        return json_text_number(&reader->json);
    if (!atom->link.next && shape_is_integer(shape))
        return json_text_integer(&reader->json);
    const struct automaton *numbers = shape_numbers(reader, shape);
    if (!numbers)
        return NULL;
    if (!automaton_is_empty(numbers))
        return automaton_expression(&reader->automata, numbers, NULL, NULL);
    schema_note_nothing(reader, "no number lies within the bounds");
    return &schema_nothing;
}

static bool says_nothing(const struct shape *shape)
{
    return !shape->listed && !shape->strings && !shape->numbers && !shape->items && !shape->contains &&
           !shape->groups && !shape->required && !shape->names && !shape->unique && shape->min_items == 0 &&
           shape->max_items == GRAMMAR_UNBOUNDED && shape->min_members == 0 &&
           shape->max_members == GRAMMAR_UNBOUNDED;
}

static const struct expression *emit_shape(struct schema_reader *reader, const struct shape *shape)
{
    struct rules *rules = reader->rules;
    struct expression_list list = {0};
    static const struct {
        uint32_t type;
        const char *text;
    } words[] = {{TYPE_TRUE, "true"}, {TYPE_FALSE, "false"}, {TYPE_NULL, "null"}};
    static const struct {
        uint32_t type;
        const struct expression *(*emit)(struct schema_reader *reader, const struct shape *shape);
    } others[] = {{TYPE_OBJECT, emit_object},
                  {TYPE_ARRAY, emit_array},
                  {TYPE_STRING, emit_string},
                  {TYPE_NUMBER, emit_number}};
    if (shape->listed)
        return emit_listed(reader, shape);
    if (shape->types == TYPE_ALL && says_nothing(shape))
        return json_text_value(&reader->json);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const struct expression *one =
            shape->types & others[i].type ? others[i].emit(reader, shape) : &schema_nothing;
        if (one != &schema_nothing)
            expression_push(rules, &list, one);
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (shape->types & words[i].type)
            expression_push(rules, &list, expression_text(rules, words[i].text));
    return list.n == 0 && !list.failed ? &schema_nothing : expression_choice(rules, &list);
}

/* ---- demands ---- */

static struct shapes *shapes_of(struct schema_reader *reader, const struct demand *demand)
{
    struct shapes *all = shapes_new(reader);
    const struct shape any = shape_any();
    if (!all || !shapes_add(reader, all, &any))
        return NULL;
    for (uint32_t i = 0; all && i < demand->n; i++)
        all = shapes_product(reader, all, schema_shapes(reader, demand->claims[i]));
    return all;
}

/* The values that a shape has if they can be listed, into `values`. False: they cannot, or there is no
 * memory. */
static bool list_values(struct schema_reader *reader, const struct shape *shape, json_t *values)
{
    bool added = true;
    if (shape->listed)
        return json_array_extend(values, (json_t *)shape_values(reader, shape)) == 0;
    if (shape->types & ~(uint32_t)(TYPE_NULL | TYPE_FALSE | TYPE_TRUE))
        return false;
    if (shape->types & TYPE_NULL)
        added = json_array_append_new(values, json_null()) == 0;
    if (added && (shape->types & TYPE_FALSE))
        added = json_array_append_new(values, json_false()) == 0;
    return added && (!(shape->types & TYPE_TRUE) || json_array_append_new(values, json_true()) == 0);
}

bool demand_values(struct schema_reader *reader, const struct demand *demand, json_t *ret_values)
{
    const struct shapes *shapes = shapes_of(reader, demand);
    bool finite = shapes && ret_values;
    for (uint32_t i = 0; finite && i < shapes->n; i++) {
        json_t *found = json_array();
        finite = found && list_values(reader, shapes->items[i], found);
        for (size_t j = 0; finite && j < json_array_size(found); j++) {
            bool there = false;
            for (size_t k = 0; k < json_array_size(ret_values) && !there; k++)
                there = json_values_equal(json_array_get(found, j), json_array_get(ret_values, k));
            finite = (there || json_array_append(ret_values, json_array_get(found, j)) == 0) &&
                     schema_spend(reader, json_array_size(ret_values));
        }
        json_decref(found);
    }
    return finite && reader->code == 0;
}

static const struct expression *make_demand(struct schema_reader *reader, const struct demand *demand)
{
    const struct shapes *shapes = shapes_of(reader, demand);
    struct expression_list list = {0};
    for (uint32_t i = 0; shapes && i < shapes->n; i++) {
        const struct expression *one = emit_shape(reader, shapes->items[i]);
        if (one != &schema_nothing)
            expression_push(reader->rules, &list, one);
        if (!one)
            return NULL;
    }
    if (!shapes)
        return NULL;
    return list.n == 0 && !list.failed ? &schema_nothing : expression_choice(reader->rules, &list);
}

static int compare_claims(const void *a, const void *b)
{
    const struct claim *x = a, *y = b;
    if (x->schema != y->schema)
        return (uintptr_t)x->schema < (uintptr_t)y->schema ? -1 : 1;
    return x->negated - y->negated;
}

/* The number of a demand's entry, whatever the order of its claims. UINT32_MAX: refused. */
static uint32_t entry_of(struct schema_reader *reader, const struct demand *demand)
{
    struct claim *sorted = schema_take(reader, demand->n, sizeof *sorted);
    uintptr_t *key = schema_take(reader, 2 * (size_t)demand->n, sizeof *key);
    bool is_new;
    if (!sorted || !key)
        return UINT32_MAX;
    memcpy(sorted, demand->claims, demand->n * sizeof *sorted);
    qsort(sorted, demand->n, sizeof *sorted, compare_claims);
    for (uint32_t i = 0; i < demand->n; i++) {
        key[2 * i] = (uintptr_t)sorted[i].schema;
        key[2 * i + 1] = sorted[i].negated;
    }
    uint32_t number = state_keys_find(&reader->entry_keys, key, 2 * demand->n * sizeof *key, &is_new);
    if (number == UINT32_MAX)
        schema_no_memory(reader);
    else if (!schema_grow(reader, (void **)&reader->entries, &reader->entries_cap, number,
                          sizeof *reader->entries))
        return UINT32_MAX;
    return number;
}

/* A demand that stands in itself: its rule, which gets its body in the end. */
static const struct expression *name_entry(struct schema_reader *reader, uint32_t number)
{
    if (!reader->entries[number].named) {
        uint32_t rule = rules_add(reader->rules, "value");
        if (rule == UINT32_MAX)
            return schema_refuse(reader, "the schema is too large");
        reader->entries[number].rule = rule;
        reader->entries[number].named = true;
        reader->rules->items[rule].body = &schema_nothing;
    }
    return expression_rule(reader->rules, reader->entries[number].rule);
}

/* Whether another demand that stands in itself is being made: what this one calls of it has no body yet. */
static bool is_within_another(const struct schema_reader *reader)
{
    for (uint32_t i = 0; i < reader->entry_keys.n; i++)
        if (reader->entries[i].reading && reader->entries[i].named)
            return true;
    return false;
}

/* The rule of a demand that stands in itself gets its body. If no text of it comes to an end it is nothing,
 * and what was made of others meanwhile may have counted on it: that is forgotten. */
static const struct expression *close_recursion(struct schema_reader *reader, uint32_t number,
                                                const struct expression *made)
{
    const uint32_t rule = reader->entries[number].rule;
    reader->rules->items[rule].body = made;
    if (made == &schema_nothing || is_within_another(reader) || !emit_is_endless(reader, made))
        return made == &schema_nothing ? made : expression_rule(reader->rules, rule);
    schema_note_nothing(reader, "its recursion never ends");
    reader->rules->items[rule].body = &schema_nothing;
    for (uint32_t i = number + 1; i < reader->entry_keys.n; i++)
        if (!reader->entries[i].reading)
            reader->entries[i] = (struct schema_entry){0};
    return &schema_nothing;
}

const struct expression *emit_demand(struct schema_reader *reader, const struct demand *demand)
{
    if (reader->code != 0)
        return NULL;
    if (demand->n == 0)
        return json_text_value(&reader->json);
    uint32_t number = entry_of(reader, demand);
    if (number == UINT32_MAX || reader->entries[number].expression)
        return number == UINT32_MAX ? NULL : reader->entries[number].expression;
    if (reader->entries[number].reading)
        return name_entry(reader, number);
    if (reader->depth == SCHEMA_MOST_DEPTH)
        return schema_refuse(reader, "schemas nested more than %u deep", SCHEMA_MOST_DEPTH);
    const json_t *at = reader->at;
    if (schema_is_placed(reader, demand->claims[0].schema))
        reader->at = demand->claims[0].schema;
    reader->entries[number].reading = true;
    reader->depth++;
    const struct expression *made = make_demand(reader, demand);
    reader->depth--;
    struct schema_entry *entry = &reader->entries[number];
    entry->reading = false;
    if (made && entry->named)
        made = close_recursion(reader, number, made);
    reader->entries[number].expression = made;
    if (!made)
        schema_refuse(reader, "the schema is too large");
    reader->at = at;
    return made;
}

const struct expression *emit_demand_apart(struct schema_reader *reader, const struct demand *demand)
{
    const struct expression *made = emit_demand(reader, demand);
    if (!made || made == &schema_nothing || made->kind == EXPRESSION_RULE || made->kind == EXPRESSION_LITERAL)
        return made;
    uint32_t number = entry_of(reader, demand);
    if (number == UINT32_MAX)
        return NULL;
    if (!reader->entries[number].apart)
        reader->entries[number].apart = expression_apart(reader->rules, "value", made);
    return reader->entries[number].apart ? reader->entries[number].apart
                                         : schema_refuse(reader, "the schema is too large");
}
