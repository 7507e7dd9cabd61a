/* SPDX-License-Identifier: MIT */
/* Schemas about the same value: each keyword gives a list of shapes, and they all hold together. */

#include <string.h>

#include "text/grammar/json_schema/shapes.h"

/* ---- references, allOf, anyOf, oneOf ---- */

static const struct shapes *of_reference(struct schema_reader *reader, const json_t *schema,
                                         const char *keyword)
{
    const char *ref = json_string_value(json_object_get(schema, keyword));
    if (!ref)
        return schema_refuse(reader, "%s is not a string", keyword);
    const json_t *target = schema_resolve(reader, schema, ref, keyword[1] == 'd');
    return target ? schema_shapes(reader, (struct claim){target, false}) : NULL;
}

static bool is_list(struct schema_reader *reader, const json_t *list, const char *keyword)
{
    if (json_is_array(list) && json_array_size(list) > 0)
        return true;
    schema_refuse(reader, "%s is not an array of schemas", keyword);
    return false;
}

static const struct shapes *all_of(struct schema_reader *reader, const json_t *list)
{
    struct shapes *shapes = is_list(reader, list, "allOf") ? shapes_new(reader) : NULL;
    const struct shape any = shape_any();
    if (!shapes || !shapes_add(reader, shapes, &any))
        return NULL;
    for (size_t i = 0; shapes && i < json_array_size(list); i++)
        shapes = shapes_product(reader, shapes,
                                schema_shapes(reader, (struct claim){json_array_get(list, i), false}));
    return shapes;
}

#define MOST_MARKED 4 /* alternatives of which all combinations are looked at */

/* The shapes of a few alternatives at once: what several of them evaluate counts together. */
static bool add_combinations(struct schema_reader *reader, const json_t *list, struct shapes *sum)
{
    const size_t n = json_array_size(list);
    for (unsigned chosen = 1; chosen < 1u << n; chosen++) {
        const struct shapes *both = NULL;
        if ((chosen & (chosen - 1)) == 0)
            continue; /* one alone is there already */
        for (size_t i = 0; i < n; i++) {
            const struct shapes *one =
                chosen >> i & 1 ? schema_shapes(reader, (struct claim){json_array_get(list, i), false})
                                : NULL;
            if (one)
                both = both ? shapes_product(reader, both, one) : one;
            if (reader->code != 0)
                return false;
        }
        if (both && !shapes_add_all(reader, sum, both))
            return false;
    }
    return true;
}

static const struct shapes *any_of(struct schema_reader *reader, const json_t *list)
{
    struct shapes *sum = is_list(reader, list, "anyOf") ? shapes_new(reader) : NULL;
    for (size_t i = 0; sum && i < json_array_size(list); i++) {
        const struct shapes *one = schema_shapes(reader, (struct claim){json_array_get(list, i), false});
        if (!one || !shapes_add_all(reader, sum, one))
            return NULL;
    }
    if (sum && reader->has_unevaluated && json_array_size(list) <= MOST_MARKED &&
        !add_combinations(reader, list, sum))
        return NULL;
    return sum;
}

/* Whether two lists of values have none in common: most alternatives are told apart by constants. */
static bool lists_are_apart(const json_t *a, const json_t *b)
{
    for (size_t i = 0; i < json_array_size(a); i++)
        for (size_t j = 0; j < json_array_size(b); j++)
            if (json_values_equal(json_array_get(a, i), json_array_get(b, j)))
                return false;
    return true;
}

static bool two_are_apart(struct schema_reader *reader, const struct shape *a, const struct shape *b)
{
    struct shape both;
    const bool listed = a->listed && b->listed;
    if (!schema_spend(reader, listed ? (uint64_t)json_array_size(a->listed) * json_array_size(b->listed) : 8))
        return false;
    if (!(a->types & b->types) || (listed && lists_are_apart(a->listed, b->listed)))
        return true;
    return (!shape_both(reader, a, b, &both) || shape_is_impossible(reader, &both, 0)) && reader->code == 0;
}

/* Whether no value has a shape of both lists; true is certain. */
static bool are_apart(struct schema_reader *reader, const struct shapes *a, const struct shapes *b)
{
    for (uint32_t i = 0; i < a->n; i++)
        for (uint32_t j = 0; j < b->n; j++)
            if (!two_are_apart(reader, a->items[i], b->items[j]))
                return false;
    return true;
}

/* Each alternative without the others: what tells two apart already is left out. */
static const struct shapes *one_of(struct schema_reader *reader, const json_t *list)
{
    struct shapes *sum = is_list(reader, list, "oneOf") ? shapes_new(reader) : NULL;
    const size_t n = json_array_size(list);
    for (size_t i = 0; sum && i < n; i++) {
        const struct shapes *one = schema_shapes(reader, (struct claim){json_array_get(list, i), false});
        for (size_t j = 0; one && j < n; j++) {
            const struct claim other = {json_array_get(list, j), false};
            const struct shapes *shapes = j == i ? NULL : schema_shapes(reader, other);
            if (j == i || (shapes && are_apart(reader, one, shapes)))
                continue;
            one = shapes_product(reader, one, schema_shapes(reader, (struct claim){other.schema, true}));
        }
        if (!one || !shapes_add_all(reader, sum, one))
            return NULL;
    }
    return sum;
}

/* ---- conditions ---- */

static const struct shapes *condition(struct schema_reader *reader, const json_t *schema)
{
    const json_t *test = json_object_get(schema, "if");
    const json_t *then = json_object_get(schema, "then"), *other = json_object_get(schema, "else");
    const struct shapes *yes = schema_shapes(reader, (struct claim){test, false});
    const struct shapes *no = yes ? schema_shapes(reader, (struct claim){test, true}) : NULL;
    if (no && then)
        yes = shapes_product(reader, yes, schema_shapes(reader, (struct claim){then, false}));
    if (no && other)
        no = shapes_product(reader, no, schema_shapes(reader, (struct claim){other, false}));
    struct shapes *sum = yes && no ? shapes_new(reader) : NULL;
    if (!sum || !shapes_add_all(reader, sum, yes) || !shapes_add_all(reader, sum, no))
        return NULL;
    return sum;
}

/* The values without this member, and those with it that have one of these shapes. */
static const struct shapes *depends(struct schema_reader *reader, const char *name, const struct shapes *with)
{
    struct shapes *sum = shapes_new(reader), *one = shapes_new(reader);
    struct shape without = shape_any(), has = shape_any();
    has.types = TYPE_OBJECT;
    if (!sum || !one || !with ||
        !shape_push(reader, &without.groups, &(struct group){.only = name, .claim = {json_true(), true}},
                    sizeof(struct group)) ||
        !shape_push(reader, &has.required, &(struct name){.name = name}, sizeof(struct name)) ||
        !shapes_add(reader, sum, &without) || !shapes_add(reader, one, &has))
        return NULL;
    const struct shapes *both = shapes_product(reader, one, with);
    return both && shapes_add_all(reader, sum, both) ? sum : NULL;
}

/* dependentRequired, dependentSchemas, and `dependencies`, as both were called before. */
static const struct shapes *dependent(struct schema_reader *reader, const json_t *map, const char *keyword)
{
    struct shapes *shapes = shapes_new(reader);
    const struct shape any = shape_any();
    const char *name;
    json_t *value;
    if (!json_is_object(map))
        return schema_refuse(reader, "%s is not an object", keyword);
    if (!shapes || !shapes_add(reader, shapes, &any))
        return NULL;
    json_object_foreach((json_t *)map, name, value)
    {
        const struct shapes *with = NULL;
        const json_t *schema = value;
        if (json_is_array(value))
            schema = schema_keep(reader, json_pack("{s:O}", "required", value));
        else if (strcmp(keyword, "dependentRequired") == 0)
            schema = schema_refuse(reader, "dependentRequired of \"%.40s\" is not an array of strings", name);
        if (schema)
            with = schema_shapes(reader, (struct claim){schema, false});
        shapes = shapes_product(reader, shapes, depends(reader, name, with));
        if (!shapes)
            return NULL;
    }
    return shapes;
}

/* ---- what is not evaluated ---- */

static bool close_members(struct schema_reader *reader, struct shape *shape, const json_t *schema)
{
    json_t *properties = json_object(), *patterns = json_object();
    bool all = false, made = properties && patterns;
    for (const struct group *g = shape->groups; g; g = (const void *)g->link.next) {
        const char *name;
        json_t *value;
        if (!g->marks)
            continue;
        all |= g->additional != NULL;
        json_object_foreach((json_t *)g->properties, name, value) made =
            made && json_object_set_new(properties, name, json_true()) == 0;
        json_object_foreach((json_t *)g->patterns, name, value) made =
            made && json_object_set_new(patterns, name, json_true()) == 0;
    }
    struct group group = {.properties = schema_keep(reader, properties),
                          .patterns = schema_keep(reader, patterns),
                          .additional = schema,
                          .marks = true};
    if (!made)
        schema_no_memory(reader);
    if (reader->code != 0)
        return false;
    return all || shape_push(reader, &shape->groups, &group, sizeof group);
}

static bool close_items(struct schema_reader *reader, struct shape *shape, const json_t *schema)
{
    uint32_t first = 0;
    for (const struct items *i = shape->items; i; i = (const void *)i->link.next)
        if (i->marks && i->last == UINT32_MAX)
            return true;
        else if (i->marks && i->last + 1 > first)
            first = i->last + 1;
    json_t *any = NULL; /* what is contained is evaluated too */
    for (const struct contains *c = shape->contains; c; c = (const void *)c->link.next) {
        if (!c->marks)
            continue;
        any = any ? any : json_pack("[O]", schema);
        if (json_array_append(any, (json_t *)c->claim.schema) != 0) {
            json_decref(any);
            return schema_no_memory(reader);
        }
    }
    if (any)
        schema = schema_keep(reader, json_pack("{s:o}", "anyOf", any));
    return schema &&
           shape_push(
               reader, &shape->items,
               &(struct items){.first = first, .last = UINT32_MAX, .claim = {schema, false}, .marks = true},
               sizeof(struct items));
}

static const struct shapes *close_over(struct schema_reader *reader, const json_t *schema,
                                       const struct shapes *shapes)
{
    const json_t *items = json_object_get(schema, "unevaluatedItems");
    const json_t *members = json_object_get(schema, "unevaluatedProperties");
    struct shapes *closed = shapes_new(reader);
    for (uint32_t i = 0; closed && i < shapes->n; i++) {
        struct shape shape = *shapes->items[i];
        if ((items && !close_items(reader, &shape, items)) ||
            (members && !close_members(reader, &shape, members)) || !shapes_add(reader, closed, &shape))
            return NULL;
    }
    return closed;
}

/* ---- a schema ---- */

/* The shapes of one keyword; NULL: refused, or it says nothing here. */
static const struct shapes *of_keyword(struct schema_reader *reader, const json_t *schema,
                                       const char *keyword)
{
    const json_t *value = json_object_get(schema, keyword);
    if (keyword[0] == '$')
        return of_reference(reader, schema, keyword);
    if (strcmp(keyword, "allOf") == 0)
        return all_of(reader, value);
    if (strcmp(keyword, "anyOf") == 0)
        return any_of(reader, value);
    if (strcmp(keyword, "oneOf") == 0)
        return one_of(reader, value);
    if (strcmp(keyword, "not") == 0)
        return schema_shapes(reader, (struct claim){value, true});
    if (strcmp(keyword, "if") == 0)
        return condition(reader, schema);
    return dependent(reader, value, keyword);
}

static const struct shapes *of_object(struct schema_reader *reader, const json_t *schema)
{
    static const char *const keywords[] = {"$ref",
                                           "$dynamicRef",
                                           "allOf",
                                           "anyOf",
                                           "oneOf",
                                           "not",
                                           "if",
                                           "dependentRequired",
                                           "dependentSchemas",
                                           "dependencies"};
    struct shapes *own = shapes_new(reader);
    struct shape shape;
    if (!own || !schema_keywords_check(reader, schema) || !schema_assertions(reader, schema, &shape))
        return NULL;
    if (shape.types != 0 && !shapes_add(reader, own, &shape))
        return NULL;
    const struct shapes *shapes = own;
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++) {
        if (!json_object_get(schema, keywords[i]))
            continue;
        if (strcmp(keywords[i], "if") == 0 && !reader->has_unevaluated && !json_object_get(schema, "then") &&
            !json_object_get(schema, "else"))
            continue;
        shapes = shapes_product(reader, shapes, of_keyword(reader, schema, keywords[i]));
        if (!shapes)
            return NULL;
    }
    return json_object_get(schema, "unevaluatedItems") || json_object_get(schema, "unevaluatedProperties")
               ? close_over(reader, schema, shapes)
               : shapes;
}

/* ---- claims ---- */

static const struct shapes *read_claim(struct schema_reader *reader, struct claim claim)
{
    if (claim.negated) {
        const struct shapes *shapes = schema_shapes(reader, (struct claim){claim.schema, false});
        return shapes ? shapes_negate(reader, shapes) : NULL;
    }
    struct shapes *shapes = shapes_new(reader);
    const struct shape any = shape_any();
    if (json_is_true(claim.schema))
        return shapes && shapes_add(reader, shapes, &any) ? shapes : NULL;
    if (json_is_false(claim.schema))
        return shapes;
    if (!json_is_object(claim.schema))
        return schema_refuse(reader, "a schema must be an object, true or false");
    return of_object(reader, claim.schema);
}

const struct shapes *schema_shapes(struct schema_reader *reader, struct claim claim)
{
    const uintptr_t key[2] = {(uintptr_t)claim.schema, claim.negated};
    const json_t *at = reader->at;
    bool is_new;
    if (reader->code != 0)
        return NULL;
    uint32_t number = state_keys_find(&reader->shape_keys, key, sizeof key, &is_new);
    if (number == UINT32_MAX)
        return schema_no_memory(reader);
    if (!schema_grow(reader, (void **)&reader->memos, &reader->memos_cap, number, sizeof *reader->memos))
        return NULL;
    if (reader->memos[number].shapes)
        return reader->memos[number].shapes;
    if (reader->memos[number].reading)
        return schema_refuse(reader, "circular $ref");
    if (reader->depth == SCHEMA_MOST_DEPTH)
        return schema_refuse(reader, "schemas nested more than %u deep", SCHEMA_MOST_DEPTH);
    if (schema_is_placed(reader, claim.schema) || json_is_number(claim.schema) ||
        json_is_string(claim.schema) || json_is_array(claim.schema))
        reader->at = claim.schema;
    reader->depth++;
    reader->memos[number].reading = true;
    const struct shapes *shapes = read_claim(reader, claim);
    reader->memos[number].reading = false;
    reader->memos[number].shapes = shapes;
    reader->depth--;
    reader->at = at;
    return shapes;
}
