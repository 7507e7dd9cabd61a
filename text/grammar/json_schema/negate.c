/* SPDX-License-Identifier: MIT */
/* What a shape is not: a value of another type, or one that lacks one of the things that hold together. Each
 * is a shape again where it can be said of the value as a whole; where it would be said of some member or
 * item that nothing names, it is refused. */

#include "text/grammar/json_schema/shapes.h"

/* The opposites of one shape, as they are gathered. */
struct opposites {
    struct schema_reader *reader;
    struct shapes *shapes;
};

static struct shape of_type(uint32_t type)
{
    struct shape shape = shape_any();
    shape.types = type;
    return shape;
}

static bool add(struct opposites *opposites, const struct shape *shape)
{
    return shapes_add(opposites->reader, opposites->shapes, shape);
}

static bool add_atoms(struct opposites *opposites, uint32_t type, const struct atom *atoms)
{
    for (const struct atom *a = atoms; a; a = (const void *)a->link.next) {
        struct shape shape = of_type(type);
        struct atom atom = *a;
        atom.negated = !a->negated;
        if (!shape_push(opposites->reader, type == TYPE_STRING ? &shape.strings : &shape.numbers, &atom,
                        sizeof atom) ||
            !add(opposites, &shape))
            return false;
    }
    return true;
}

/* ---- arrays ---- */

static bool is_true(struct claim claim)
{
    return claim.negated ? json_is_false(claim.schema)
                         : json_is_true(claim.schema) ||
                               (json_is_object(claim.schema) && json_object_size(claim.schema) == 0);
}

/* An item that is there and is not so. */
static bool add_items(struct opposites *opposites, const struct items *items)
{
    struct shape shape = of_type(TYPE_ARRAY);
    struct claim claim = {items->claim.schema, !items->claim.negated};
    struct items one = {.first = items->first, .last = items->last, .claim = claim};
    struct contains some = {.claim = claim, .from = items->first, .least = 1, .most = GRAMMAR_UNBOUNDED};
    bool pushed = items->first == items->last
                      ? shape_push(opposites->reader, &shape.items, &one, sizeof one)
                      : shape_push(opposites->reader, &shape.contains, &some, sizeof some);
    shape.min_items = items->first + 1;
    return pushed && add(opposites, &shape);
}

static bool add_contains(struct opposites *opposites, const struct contains *contains)
{
    struct contains few = *contains, many = *contains;
    struct shape shape = of_type(TYPE_ARRAY);
    few.marks = many.marks = false;
    few.least = 0;
    few.most = contains->least - 1;
    many.least = contains->most + 1;
    many.most = GRAMMAR_UNBOUNDED;
    if (contains->least > 0 &&
        (!shape_push(opposites->reader, &shape.contains, &few, sizeof few) || !add(opposites, &shape)))
        return false;
    shape = of_type(TYPE_ARRAY);
    return contains->most == GRAMMAR_UNBOUNDED ||
           (shape_push(opposites->reader, &shape.contains, &many, sizeof many) && add(opposites, &shape));
}

static bool add_arrays(struct opposites *opposites, const struct shape *of)
{
    struct shape few = of_type(TYPE_ARRAY), many = of_type(TYPE_ARRAY);
    few.max_items = of->min_items - 1;
    many.min_items = of->max_items + 1;
    if ((of->min_items > 0 && !add(opposites, &few)) ||
        (of->max_items != GRAMMAR_UNBOUNDED && !add(opposites, &many)))
        return false;
    for (const struct items *i = of->items; i; i = (const void *)i->link.next)
        if (!is_true(i->claim) && !add_items(opposites, i))
            return false;
    for (const struct contains *c = of->contains; c; c = (const void *)c->link.next)
        if (!add_contains(opposites, c))
            return false;
    if (of->unique)
        schema_refuse(opposites->reader, "uniqueItems cannot be negated");
    return !of->unique;
}

/* ---- objects ---- */

/* A member that is there and is not so. */
static bool add_member(struct opposites *opposites, const char *name, struct claim claim)
{
    struct shape shape = of_type(TYPE_OBJECT);
    struct group group = {.only = name, .claim = {claim.schema, !claim.negated}};
    return shape_push(opposites->reader, &shape.groups, &group, sizeof group) &&
           shape_push(opposites->reader, &shape.required, &(struct name){.name = name},
                      sizeof(struct name)) &&
           add(opposites, &shape);
}

static bool add_group(struct opposites *opposites, const struct group *group)
{
    const char *name;
    json_t *value;
    if (group->only)
        return add_member(opposites, group->only, group->claim);
    json_object_foreach((json_t *)group->properties, name, value)
    {
        struct claim claim = {value, false};
        if (!is_true(claim) && !add_member(opposites, name, claim))
            return false;
    }
    json_object_foreach((json_t *)group->patterns, name, value)
    {
        if (!is_true((struct claim){value, false})) {
            schema_refuse(opposites->reader, "patternProperties cannot be negated");
            return false;
        }
    }
    if (group->additional && !is_true((struct claim){group->additional, false})) {
        schema_refuse(opposites->reader, "additionalProperties cannot be negated");
        return false;
    }
    return true;
}

static bool add_objects(struct opposites *opposites, const struct shape *of)
{
    struct shape few = of_type(TYPE_OBJECT), many = of_type(TYPE_OBJECT);
    few.max_members = of->min_members - 1;
    many.min_members = of->max_members + 1;
    if ((of->min_members > 0 && !add(opposites, &few)) ||
        (of->max_members != GRAMMAR_UNBOUNDED && !add(opposites, &many)))
        return false;
    for (const struct name *n = of->required; n; n = (const void *)n->link.next) {
        struct shape without = of_type(TYPE_OBJECT);
        if (!shape_push(opposites->reader, &without.groups,
                        &(struct group){.only = n->name, .claim = {json_true(), true}},
                        sizeof(struct group)) ||
            !add(opposites, &without))
            return false;
    }
    for (const struct group *g = of->groups; g; g = (const void *)g->link.next)
        if (!add_group(opposites, g))
            return false;
    if (of->names)
        schema_refuse(opposites->reader, "propertyNames cannot be negated");
    return !of->names;
}

/* ---- values ---- */

/* Values that are none of those listed: what is an array or an object is told apart by a schema that it alone
 * satisfies. */
static const struct shapes *not_among(struct schema_reader *reader, const struct shape *of)
{
    const json_t *values = shape_values(reader, of);
    struct shape others = shape_any();
    struct atom atom = {.kind = ATOM_AMONG, .negated = true, .value = values};
    struct shapes *shapes = shapes_new(reader);
    if (!values || !shapes || !shape_push(reader, &others.strings, &atom, sizeof atom) ||
        !shape_push(reader, &others.numbers, &atom, sizeof atom))
        return NULL;
    for (size_t i = 0; i < json_array_size(values); i++) {
        const json_t *value = json_array_get(values, i);
        others.types &= json_is_null(value)    ? ~(uint32_t)TYPE_NULL
                        : json_is_true(value)  ? ~(uint32_t)TYPE_TRUE
                        : json_is_false(value) ? ~(uint32_t)TYPE_FALSE
                                               : TYPE_ALL;
    }
    if (!shapes_add(reader, shapes, &others))
        return NULL;
    for (size_t i = 0; shapes && i < json_array_size(values); i++) {
        const json_t *value = json_array_get(values, i);
        if (!json_is_object(value) && !json_is_array(value))
            continue;
        const json_t *schema = schema_of_value(reader, value);
        shapes = schema ? shapes_product(reader, shapes, schema_shapes(reader, (struct claim){schema, true}))
                        : NULL;
    }
    return shapes;
}

static const struct shapes *negate(struct schema_reader *reader, const struct shape *of)
{
    struct opposites opposites = {reader, shapes_new(reader)};
    struct shape others = of_type(TYPE_ALL & ~of->types);
    if (of->listed)
        return not_among(reader, of);
    if (!opposites.shapes || (others.types != 0 && !add(&opposites, &others)) ||
        ((of->types & TYPE_STRING) && !add_atoms(&opposites, TYPE_STRING, of->strings)) ||
        ((of->types & TYPE_NUMBER) && !add_atoms(&opposites, TYPE_NUMBER, of->numbers)) ||
        ((of->types & TYPE_ARRAY) && !add_arrays(&opposites, of)) ||
        ((of->types & TYPE_OBJECT) && !add_objects(&opposites, of)))
        return NULL;
    return opposites.shapes;
}

const struct shapes *shapes_negate(struct schema_reader *reader, const struct shapes *shapes)
{
    struct shapes *all = shapes_new(reader);
    const struct shape any = shape_any();
    if (!all || !shapes_add(reader, all, &any))
        return NULL;
    for (uint32_t i = 0; all && i < shapes->n; i++)
        all = shapes_product(reader, all, negate(reader, shapes->items[i]));
    return all;
}
