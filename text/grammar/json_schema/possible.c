/* SPDX-License-Identifier: MIT */
/* Values held against schemas, and whether any value can have a shape. */

#include <string.h>

#include "text/grammar/json_schema/shapes.h"

#define MOST_LEVELS 6 /* that are looked through for a contradiction */

static uint32_t type_of(const json_t *value)
{
    return json_is_object(value)   ? TYPE_OBJECT
           : json_is_array(value)  ? TYPE_ARRAY
           : json_is_string(value) ? TYPE_STRING
           : json_is_number(value) ? TYPE_NUMBER
           : json_is_true(value)   ? TYPE_TRUE
           : json_is_false(value)  ? TYPE_FALSE
                                   : TYPE_NULL;
}

/* ---- claims about parts ---- */

bool demand_add(struct schema_reader *reader, struct demand *demand, struct claim claim)
{
    if (json_is_object(claim.schema) && json_object_size(claim.schema) == 0)
        claim.schema = json_true();
    if (claim.negated && json_is_boolean(claim.schema))
        claim = (struct claim){json_is_true(claim.schema) ? json_false() : json_true(), false};
    if (json_is_true(claim.schema))
        return true;
    for (uint32_t i = 0; i < demand->n; i++)
        if (demand->claims[i].schema == claim.schema && demand->claims[i].negated == claim.negated)
            return true;
    if (!schema_spend(reader, 1 + demand->n))
        return false;
    if (demand->n == demand->cap) {
        uint32_t cap = demand->cap ? demand->cap * 2 : 2;
        struct claim *claims = schema_take(reader, cap, sizeof *claims);
        if (!claims)
            return false;
        if (demand->n > 0)
            memcpy(claims, demand->claims, demand->n * sizeof *claims);
        demand->claims = claims;
        demand->cap = cap;
    }
    demand->claims[demand->n++] = claim;
    return true;
}

bool shape_item(struct schema_reader *reader, const struct shape *shape, uint32_t index,
                struct demand *ret_demand)
{
    *ret_demand = (struct demand){0};
    for (const struct items *i = shape->items; i; i = (const void *)i->link.next) {
        bool about = index >= i->first && index <= i->last;
        if (!schema_spend(reader, 1) || (about && !demand_add(reader, ret_demand, i->claim)))
            return false;
    }
    return true;
}

static bool add_of_group(struct schema_reader *reader, const struct group *group, const char *name,
                         struct demand *demand)
{
    const json_t *own = json_object_get(group->properties, name);
    bool known = own != NULL;
    const char *pattern;
    json_t *value;
    if (own && !demand_add(reader, demand, (struct claim){own, false}))
        return false;
    json_object_foreach((json_t *)group->patterns, pattern, value)
    {
        const struct automaton *automaton = schema_pattern(reader, pattern);
        if (!automaton)
            return false;
        if (!automaton_accepts(automaton, bytes_of_string(name)))
            continue;
        known = true;
        if (!demand_add(reader, demand, (struct claim){value, false}))
            return false;
    }
    return known || !group->additional ||
           demand_add(reader, demand, (struct claim){group->additional, false});
}

bool shape_member(struct schema_reader *reader, const struct shape *shape, const char *name,
                  struct demand *ret_demand)
{
    *ret_demand = (struct demand){0};
    for (const struct group *g = shape->groups; g; g = (const void *)g->link.next) {
        bool added = !g->only                     ? add_of_group(reader, g, name, ret_demand)
                     : strcmp(g->only, name) == 0 ? demand_add(reader, ret_demand, g->claim)
                                                  : true;
        if (!schema_spend(reader, 1) || !added)
            return false;
    }
    return true;
}

bool shape_allows_name(struct schema_reader *reader, const struct shape *shape, const char *name)
{
    bool allows = true;
    json_t *value = shape->names ? json_string(name) : NULL;
    if (shape->names && !value)
        schema_no_memory(reader);
    for (const struct names *n = shape->names; n && allows; n = (const void *)n->link.next)
        allows = value && claim_holds(reader, n->claim, value);
    json_decref(value);
    return allows;
}

/* ---- whether a value will do ---- */

static bool demand_holds(struct schema_reader *reader, const struct demand *demand, const json_t *value)
{
    for (uint32_t i = 0; i < demand->n; i++)
        if (!claim_holds(reader, demand->claims[i], value))
            return false;
    return true;
}

static bool array_holds(struct schema_reader *reader, const struct shape *shape, const json_t *value)
{
    const size_t n = json_array_size(value);
    if (n < shape->min_items || n > shape->max_items || !schema_spend(reader, 1 + (uint64_t)n * n))
        return false;
    for (size_t i = 0; i < n; i++) {
        struct demand demand;
        if (!shape_item(reader, shape, (uint32_t)i, &demand) ||
            !demand_holds(reader, &demand, json_array_get(value, i)))
            return false;
        for (size_t j = 0; shape->unique && j < i; j++)
            if (json_values_equal(json_array_get(value, i), json_array_get(value, j)))
                return false;
    }
    for (const struct contains *c = shape->contains; c; c = (const void *)c->link.next) {
        uint32_t count = 0;
        for (size_t i = c->from; i < n; i++)
            count += claim_holds(reader, c->claim, json_array_get(value, i));
        if (count < c->least || count > c->most)
            return false;
    }
    return true;
}

static bool object_holds(struct schema_reader *reader, const struct shape *shape, const json_t *value)
{
    const size_t n = json_object_size(value);
    const char *name;
    json_t *member;
    if (n < shape->min_members || n > shape->max_members)
        return false;
    for (const struct name *r = shape->required; r; r = (const void *)r->link.next)
        if (!json_object_get(value, r->name))
            return false;
    json_object_foreach((json_t *)value, name, member)
    {
        struct demand demand;
        if (!shape_member(reader, shape, name, &demand) || !demand_holds(reader, &demand, member) ||
            !shape_allows_name(reader, shape, name))
            return false;
    }
    return true;
}

static bool scalar_holds(struct schema_reader *reader, const struct shape *shape, const json_t *value)
{
    for (const struct atom *a = json_is_number(value) ? shape->numbers : NULL; a;
         a = (const void *)a->link.next)
        if (number_has_atom(a, value) == a->negated)
            return false;
    if (!json_is_string(value) || !shape->strings)
        return true;
    const struct automaton *strings = shape_strings(reader, shape);
    return strings &&
           automaton_accepts(strings, (struct bytes){json_string_value(value), json_string_length(value)});
}

bool shape_holds(struct schema_reader *reader, const struct shape *shape, const json_t *value)
{
    bool among = !shape->listed;
    if (!(shape->types & type_of(value)) || reader->code != 0)
        return false;
    for (size_t i = 0; i < json_array_size(shape->listed) && !among; i++)
        among = json_values_equal(json_array_get(shape->listed, i), value);
    if (!among || !schema_spend(reader, 1 + json_array_size(shape->listed)))
        return false;
    return json_is_array(value)    ? array_holds(reader, shape, value)
           : json_is_object(value) ? object_holds(reader, shape, value)
                                   : scalar_holds(reader, shape, value);
}

bool claim_holds(struct schema_reader *reader, struct claim claim, const json_t *value)
{
    const struct shapes *shapes = schema_shapes(reader, claim);
    bool holds = false;
    for (uint32_t i = 0; shapes && i < shapes->n && !holds; i++)
        holds = shape_holds(reader, shapes->items[i], value);
    return holds;
}

const json_t *shape_values(struct schema_reader *reader, const struct shape *shape)
{
    json_t *values = json_array();
    struct shape any_listed = *shape;
    any_listed.listed = NULL;
    for (size_t i = 0; values && i < json_array_size(shape->listed); i++) {
        json_t *value = json_array_get(shape->listed, i);
        if (shape_holds(reader, &any_listed, value) && json_array_append(values, value) != 0)
            schema_no_memory(reader);
    }
    const json_t *kept = schema_keep(reader, values);
    return reader->code == 0 ? kept : NULL;
}

/* ---- whether any value will do ---- */

static bool demand_is_impossible(struct schema_reader *reader, const struct demand *demand, uint32_t depth)
{
    const struct shape any = shape_any();
    struct shapes *all = demand->n > 0 && depth < MOST_LEVELS ? shapes_new(reader) : NULL;
    if (!all || !shapes_add(reader, all, &any))
        return false;
    for (uint32_t i = 0; all && i < demand->n; i++)
        all = shapes_product(reader, all, schema_shapes(reader, demand->claims[i]));
    for (uint32_t i = 0; all && i < all->n; i++)
        if (!shape_is_impossible(reader, all->items[i], depth + 1))
            return false;
    return all != NULL;
}

static bool array_is_impossible(struct schema_reader *reader, const struct shape *shape, uint32_t depth)
{
    struct demand demand;
    for (uint32_t i = 0; i < shape->min_items && i < SCHEMA_MOST_NAMES; i++)
        if (!shape_item(reader, shape, i, &demand) || demand_is_impossible(reader, &demand, depth))
            return true;
    for (const struct contains *c = shape->contains; c; c = (const void *)c->link.next) {
        demand = (struct demand){0};
        if (c->least > 0 && (!demand_add(reader, &demand, c->claim) || c->least > c->most ||
                             c->least > shape->max_items || demand_is_impossible(reader, &demand, depth)))
            return true;
    }
    return false;
}

static bool object_is_impossible(struct schema_reader *reader, const struct shape *shape, uint32_t depth)
{
    for (const struct name *r = shape->required; r; r = (const void *)r->link.next) {
        struct demand demand;
        if (!shape_member(reader, shape, r->name, &demand) || demand_is_impossible(reader, &demand, depth) ||
            !shape_allows_name(reader, shape, r->name))
            return true;
    }
    return false;
}

bool shape_is_impossible(struct schema_reader *reader, const struct shape *shape, uint32_t depth)
{
    const uint32_t types = shape->types;
    if (reader->code != 0)
        return false;
    if (shape->listed) {
        const json_t *values = shape_values(reader, shape);
        return values && json_array_size(values) == 0;
    }
    if (types & (TYPE_NULL | TYPE_FALSE | TYPE_TRUE))
        return false;
    if (types & TYPE_NUMBER) {
        const struct automaton *numbers = shape->numbers ? shape_numbers(reader, shape) : NULL;
        if (!numbers || !automaton_is_empty(numbers))
            return false;
    }
    if (types & TYPE_STRING) {
        const struct automaton *strings = shape->strings ? shape_strings(reader, shape) : NULL;
        if (!strings || !automaton_is_empty(strings))
            return false;
    }
    return (!(types & TYPE_ARRAY) || array_is_impossible(reader, shape, depth)) &&
           (!(types & TYPE_OBJECT) || object_is_impossible(reader, shape, depth)) && reader->code == 0;
}
