/* SPDX-License-Identifier: MIT */
/* Objects. Members that are named come in any order, each at most once, and between them any that the schema
 * leaves open, by the patterns of their names. Those of a strict schema come in its order, and so do all in
 * a closed reading. */

#include <stdlib.h>
#include <string.h>

#include "text/grammar/json_schema/emit.h"
#include "text/grammar/json_strings.h"
#include "text/grammar/automaton/state_keys.h"

#define MOST_NAME_BYTES 256
#define MOST_PATTERNS   8  /* of one object: a name matches some of them */
#define MOST_CLASSES    32 /* of names, by the patterns that they match */

struct named {
    const char *name;
    bool required;
    const struct expression *value; /* &schema_nothing: it must not be there */
};

/* An object as it is being made. */
struct object {
    const struct shape *shape;
    struct state_keys keys;
    struct named *named; /* [n] in the order of the schema */
    uint32_t n, cap;
    uint32_t n_may, n_required; /* that may be there; that have to */
    struct expression_member others[MOST_CLASSES];
    uint32_t n_others;
    const char *patterns[MOST_PATTERNS];
    uint32_t n_patterns;
};

/* ---- names ---- */

static bool add_name(struct schema_reader *reader, struct object *object, const char *name, bool required)
{
    bool is_new;
    size_t len = strlen(name);
    if (len > MOST_NAME_BYTES) {
        schema_refuse(reader, "a name of more than %d bytes is not supported", MOST_NAME_BYTES);
        return false;
    }
    uint32_t number = state_keys_find(&object->keys, name, len, &is_new);
    if (number == UINT32_MAX)
        return schema_no_memory(reader);
    if (!schema_grow(reader, (void **)&object->named, &object->cap, number, sizeof *object->named))
        return false;
    if (is_new)
        object->named[object->n++] = (struct named){.name = name};
    object->named[number].required |= required;
    if (object->n > SCHEMA_MOST_NAMES)
        schema_refuse(reader, "more than %u properties are not supported", SCHEMA_MOST_NAMES);
    return schema_spend(reader, 1) && reader->code == 0;
}

static bool add_pattern(struct schema_reader *reader, struct object *object, const char *pattern)
{
    for (uint32_t i = 0; i < object->n_patterns; i++)
        if (strcmp(object->patterns[i], pattern) == 0)
            return true;
    if (object->n_patterns == MOST_PATTERNS) {
        schema_refuse(reader, "more than %d patternProperties are not supported", MOST_PATTERNS);
        return false;
    }
    object->patterns[object->n_patterns++] = pattern;
    return true;
}

static bool find_names(struct schema_reader *reader, struct object *object)
{
    const char *name;
    json_t *value;
    for (const struct group *g = object->shape->groups; g; g = (const void *)g->link.next) {
        if (g->only && !add_name(reader, object, g->only, false))
            return false;
        json_object_foreach((json_t *)g->properties, name, value)
        {
            if (!add_name(reader, object, name, false))
                return false;
        }
        json_object_foreach((json_t *)g->patterns, name, value)
        {
            if (!add_pattern(reader, object, name))
                return false;
        }
    }
    for (const struct name *r = object->shape->required; r; r = (const void *)r->link.next)
        if (!add_name(reader, object, r->name, true))
            return false;
    return true;
}

/* What each named member is. False: refused, or no object will do. */
static bool read_named(struct schema_reader *reader, struct object *object)
{
    for (uint32_t i = 0; i < object->n; i++) {
        struct named *named = &object->named[i];
        struct demand demand;
        if (!shape_member(reader, object->shape, named->name, &demand))
            return false;
        named->value = shape_allows_name(reader, object->shape, named->name)
                           ? emit_demand_apart(reader, &demand)
                           : &schema_nothing;
        if (named->value == &schema_nothing && named->required)
            schema_note_nothing(reader, "\"%.60s\" is required, but no value is allowed for it", named->name);
        if (!named->value || reader->code != 0 || (named->value == &schema_nothing && named->required))
            return false;
        object->n_may += named->value != &schema_nothing;
        object->n_required += named->required;
    }
    return true;
}

/* ---- all other names ---- */

static int compare_names(const void *a, const void *b)
{
    const struct bytes *x = a, *y = b;
    int order = memcmp(x->data, y->data, x->len < y->len ? x->len : y->len);
    return order != 0 ? order : x->len < y->len ? -1 : x->len > y->len;
}

static bool add_other(struct schema_reader *reader, struct object *object, const struct expression *name,
                      const struct demand *demand)
{
    const struct expression *value = emit_demand_apart(reader, demand);
    if (value == &schema_nothing)
        return true;
    name = name && name->kind != EXPRESSION_RULE ? expression_apart(reader->rules, "name", name) : name;
    const struct expression *tail =
        value ? json_text_member(&reader->json, expression_empty(reader->rules), value) : NULL;
    if (!name || !tail || reader->code != 0) {
        schema_refuse(reader, "the schema is too large");
        return false;
    }
    object->others[object->n_others++] = (struct expression_member){.head = name, .tail = tail};
    return true;
}

/* What is said of members whose names match these patterns and are none of the named ones. */
static bool other_demand(struct schema_reader *reader, const struct object *object, unsigned matches,
                         struct demand *ret_demand)
{
    *ret_demand = (struct demand){0};
    for (const struct group *g = object->shape->groups; g; g = (const void *)g->link.next) {
        bool known = g->only != NULL;
        for (uint32_t i = 0; i < object->n_patterns; i++) {
            const json_t *value = matches >> i & 1 ? json_object_get(g->patterns, object->patterns[i]) : NULL;
            known |= value != NULL;
            if (value && !demand_add(reader, ret_demand, (struct claim){value, false}))
                return false;
        }
        if (!known && g->additional && !demand_add(reader, ret_demand, (struct claim){g->additional, false}))
            return false;
    }
    return true;
}

/* Where nothing is said of names but which are named. */
static bool read_plain_others(struct schema_reader *reader, struct object *object)
{
    struct demand demand;
    struct bytes *names = schema_take(reader, object->n, sizeof *names);
    if (!names || !other_demand(reader, object, 0, &demand))
        return false;
    for (uint32_t i = 0; i < object->n; i++)
        names[i] = bytes_of_string(object->named[i].name);
    qsort(names, object->n, sizeof *names, compare_names);
    if (demand.n == 1 && json_is_false(demand.claims[0].schema) && !demand.claims[0].negated)
        return true;
    return add_other(reader, object,
                     object->n > 0 ? json_string_other(&reader->json, names, object->n)
                                   : json_string_any(&reader->json),
                     &demand);
}

/* The strings that a claim allows. */
static const struct automaton *strings_of(struct schema_reader *reader, struct claim claim)
{
    const struct shapes *shapes = schema_shapes(reader, claim);
    const struct automaton *sum =
        automaton_of(&reader->automata, expression_chars(reader->rules, NULL, 0, false));
    for (uint32_t i = 0; shapes && sum && i < shapes->n; i++) {
        struct shape shape = *shapes->items[i];
        if (!(shape.types & TYPE_STRING))
            continue;
        if (shape.listed &&
            !shape_push(reader, &shape.strings, &(struct atom){.kind = ATOM_AMONG, .value = shape.listed},
                        sizeof(struct atom)))
            return NULL;
        sum = automaton_of_pair(&reader->automata, AUTOMATON_EITHER, sum, shape_strings(reader, &shape));
    }
    return shapes && sum ? sum : schema_refuse_automaton(reader, "propertyNames");
}

/* Names that are not named, and which propertyNames allows. */
static const struct automaton *free_names(struct schema_reader *reader, const struct object *object)
{
    static const struct code_range nul[] = {{0, 0}};
    struct rules *rules = reader->rules;
    struct expression_list list = {0};
    for (uint32_t i = 0; i < object->n; i++)
        expression_push(rules, &list, expression_text(rules, object->named[i].name));
    const struct automaton *names = automaton_of_pair(
        &reader->automata, AUTOMATON_WITHOUT,
        automaton_of(&reader->automata,
                     expression_repeat(rules, expression_chars(rules, nul, 1, true), 0, GRAMMAR_UNBOUNDED)),
        automaton_of(&reader->automata, expression_choice(rules, &list)));
    for (const struct names *n = object->shape->names; n && names; n = (const void *)n->link.next)
        names = automaton_of_pair(&reader->automata, AUTOMATON_BOTH, names, strings_of(reader, n->claim));
    return names ? names : schema_refuse_automaton(reader, "the names of properties");
}

/* Others in classes, by the patterns that their names match. */
static bool read_classes(struct schema_reader *reader, struct object *object)
{
    const struct automaton *classes[MOST_CLASSES] = {free_names(reader, object)};
    unsigned matches[MOST_CLASSES] = {0};
    uint32_t n = classes[0] != NULL;
    for (uint32_t i = 0; i < object->n_patterns && n > 0; i++) {
        const struct automaton *pattern = schema_pattern(reader, object->patterns[i]);
        for (uint32_t j = n; j-- > 0;) {
            const struct automaton *in =
                automaton_of_pair(&reader->automata, AUTOMATON_BOTH, classes[j], pattern);
            const struct automaton *out =
                automaton_of_pair(&reader->automata, AUTOMATON_WITHOUT, classes[j], pattern);
            if (!in || !out) {
                schema_refuse_automaton(reader, "patternProperties");
                return false;
            }
            classes[j] = out;
            if (automaton_is_empty(in))
                continue;
            if (n == MOST_CLASSES) {
                schema_refuse(reader, "patternProperties overlap in more than %d ways", MOST_CLASSES);
                return false;
            }
            classes[n] = in;
            matches[n++] = matches[j] | 1u << i;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        struct demand demand;
        if (automaton_is_empty(classes[i]))
            continue;
        if (!other_demand(reader, object, matches[i], &demand) ||
            !add_other(
                reader, object,
                json_string_quoted(&reader->json, automaton_expression(&reader->automata, classes[i],
                                                                       json_string_spelling, &reader->json)),
                &demand))
            return false;
    }
    return n > 0;
}

/* In a closed reading there are no others unless something is said of them. */
static bool is_closed(const struct schema_reader *reader, const struct object *object)
{
    bool described = false;
    for (const struct group *g = object->shape->groups; g; g = (const void *)g->link.next) {
        if (g->additional || g->patterns)
            return false;
        described |= g->properties != NULL;
    }
    return reader->closed && described && !object->shape->names;
}

static bool read_others(struct schema_reader *reader, struct object *object)
{
    if (is_closed(reader, object))
        return true;
    return object->n_patterns > 0 || object->shape->names ? read_classes(reader, object)
                                                          : read_plain_others(reader, object);
}

/* ---- what stands between the braces ---- */

static const struct expression *member_of(struct schema_reader *reader, const struct named *named)
{
    return json_text_member(&reader->json, emit_name(reader, named->name), named->value);
}

/* In order. From the last member to the first: `pick`, that one of the members from i on comes next, and what
 * may follow that; `behind`, what may follow when a member before i was there. Each is made once, however
 * many ways lead to it. */
static const struct expression *in_order(struct schema_reader *reader, const struct object *object)
{
    struct rules *rules = reader->rules;
    struct json_text *json = &reader->json;
    const struct expression *behind = expression_empty(rules), *pick = NULL;
    bool must = false; /* one from i on is required */
    if (object->n_others > 0) {
        struct expression_list others = {0};
        for (uint32_t i = 0; i < object->n_others; i++)
            expression_push(rules, &others,
                            expression_then(rules, object->others[i].head, object->others[i].tail));
        const struct expression *other = expression_choice(rules, &others);
        behind = expression_shared(
            rules, expression_repeat(rules, json_text_next_item(json, other), 0, GRAMMAR_UNBOUNDED));
        pick = expression_then(rules, other, behind);
    }
    for (uint32_t i = object->n; i-- > 0 && behind;) {
        const struct named *named = &object->named[i];
        if (named->value == &schema_nothing)
            continue;
        const struct expression *this = expression_then(rules, member_of(reader, named), behind);
        must |= named->required;
        pick = expression_shared(rules, pick && !named->required ? expression_or(rules, this, pick) : this);
        behind = json_text_next_item(json, pick);
        behind = expression_shared(rules, must ? behind : expression_optional(rules, behind));
    }
    if (!pick)
        return behind;
    return must ? pick : expression_optional(rules, pick);
}

static const struct expression *in_any_order(struct schema_reader *reader, const struct object *object)
{
    struct rules *rules = reader->rules;
    struct expression_member *members = schema_take(reader, object->n, sizeof *members);
    uint32_t n = 0;
    for (uint32_t i = 0; members && i < object->n; i++) {
        const struct named *named = &object->named[i];
        if (named->value != &schema_nothing)
            members[n++] = (struct expression_member){
                .head = emit_name(reader, named->name),
                .tail = json_text_member(&reader->json, expression_empty(rules), named->value),
                .required = named->required};
    }
    if (!members)
        return NULL;
    return expression_members(rules, "members",
                              &(struct expression_members){
                                  .between = json_text_next_item(&reader->json, expression_empty(rules)),
                                  .named = members,
                                  .others = object->others,
                                  .n_named = n,
                                  .n_others = object->n_others,
                                  .least = object->shape->min_members,
                                  .most = object->shape->max_members,
                              });
}

static const struct expression *body_of(struct schema_reader *reader, const struct object *object)
{
    const struct shape *shape = object->shape;
    const bool counted = shape->min_members > object->n_required || shape->max_members != GRAMMAR_UNBOUNDED;
    if (object->n_required > shape->max_members ||
        (object->n_others == 0 && shape->min_members > object->n_may)) {
        schema_note_nothing(reader, "no object can have the required number of properties");
        return &schema_nothing;
    }
    bool ordered = shape->strict || reader->closed || object->n_may == 0;
    const struct expression *inner =
        ordered && !counted ? in_order(reader, object) : in_any_order(reader, object);
    const struct expression *body = inner ? json_text_bracketed(&reader->json, "{", inner, "}") : NULL;
    const struct expression *rule = body ? expression_apart(reader->rules, "object", body) : NULL;
    return rule ? rule : schema_refuse(reader, "the schema is too large");
}

const struct expression *emit_object(struct schema_reader *reader, const struct shape *shape)
{
    struct object object = {.shape = shape};
    const struct expression *made = NULL;
    if (!shape->groups && !shape->required && !shape->names && shape->min_members == 0 &&
        shape->max_members == GRAMMAR_UNBOUNDED)
        return json_text_object(&reader->json);
    if (find_names(reader, &object) && read_named(reader, &object) && read_others(reader, &object))
        made = body_of(reader, &object);
    else if (reader->code == 0)
        made = &schema_nothing;
    free(object.named);
    state_keys_deinit(&object.keys);
    return made;
}
