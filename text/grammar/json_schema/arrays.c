/* SPDX-License-Identifier: MIT */
/* Arrays. Most are their first items and then all others. Where items have to contain something, a state is
 * how many items there are and how many of each kind, as far as that makes a difference. Where items must be
 * unlike, they are of listed values, and come in any order once each. */

#include <string.h>

#include "text/grammar/json_schema/emit.h"

#define MOST_CONTAINS 3
#define MOST_STATES   1024
#define MOST_TUPLES   1024

/* An array as it is being made. */
struct array {
    const struct shape *shape;
    uint32_t n;                      /* items that are described by their places; the others are alike */
    uint32_t least, most;            /* items in all */
    const struct expression **first; /* [n] */
    const struct expression *other;  /* &schema_nothing: there are none */
};

/* The bound behind which all items are alike. */
static uint32_t places_of(const struct shape *shape)
{
    uint32_t n = 0;
    for (const struct items *i = shape->items; i; i = (const void *)i->link.next) {
        uint32_t end = i->last == UINT32_MAX ? i->first : i->last + 1;
        n = end > n ? end : n;
    }
    return n;
}

/* In a closed reading, nothing is made behind a prefix that nothing is said of, unless there have to be more.
 */
static bool is_cut(const struct schema_reader *reader, const struct array *array)
{
    for (const struct items *i = array->shape->items; i; i = (const void *)i->link.next)
        if (i->last == UINT32_MAX)
            return false;
    return reader->closed && array->n > 0 && array->least <= array->n;
}

/* Reads what the items are; how many there can be follows. False: refused. */
static bool read_items(struct schema_reader *reader, struct array *array)
{
    struct demand demand;
    array->first = schema_take(reader, array->n, sizeof *array->first);
    if (!array->first)
        return false;
    for (uint32_t i = 0; i < array->n && i < array->most; i++) {
        if (!shape_item(reader, array->shape, i, &demand) ||
            !(array->first[i] = emit_demand(reader, &demand)))
            return false;
        if (array->first[i] == &schema_nothing)
            array->most = i;
    }
    array->n = array->n < array->most ? array->n : array->most;
    array->other = &schema_nothing;
    if (array->most > array->n && !is_cut(reader, array)) {
        if (!shape_item(reader, array->shape, UINT32_MAX - 1, &demand))
            return false;
        array->other = emit_demand(reader, &demand);
    }
    if (array->other == &schema_nothing)
        array->most = array->n;
    return array->other != NULL;
}

static const struct expression *bracketed(struct schema_reader *reader, const struct expression *inner)
{
    const struct expression *body = json_text_bracketed(&reader->json, "[", inner, "]");
    const struct expression *rule = body ? expression_apart(reader->rules, "array", body) : NULL;
    return rule ? rule : schema_refuse(reader, "the schema is too large");
}

/* Items from i on, of which the first has no comma before it. */
static const struct expression *plain_items(struct schema_reader *reader, const struct array *array)
{
    struct rules *rules = reader->rules;
    struct json_text *json = &reader->json;
    const struct expression *rest = expression_empty(rules);
    if (array->most > array->n) {
        uint32_t least = array->least > array->n ? array->least - array->n : 0;
        uint32_t most = array->most == GRAMMAR_UNBOUNDED ? array->most : array->most - array->n;
        rest = array->n == 0 ? json_text_items(json, array->other, least, most)
                             : expression_repeat(rules, json_text_next_item(json, array->other), least, most);
    }
    for (uint32_t i = array->n; i-- > 0 && rest;) {
        const struct expression *item = array->first[i];
        rest = expression_then(rules, i == 0 ? item : json_text_next_item(json, item), rest);
        if (i >= array->least)
            rest = expression_optional(rules, rest);
    }
    return rest;
}

/* ---- items that contain something ---- */

struct counting {
    struct array *array;
    const struct contains *kinds[MOST_CONTAINS]; /* [n] */
    uint32_t n;
    uint32_t caps[MOST_CONTAINS];     /* counts beyond make no difference, or are too many */
    uint32_t end;                     /* places from there on are alike; ≥ 1 */
    uint32_t n_counts;                /* states of one place */
    const struct expression **states; /* [end + 1][n_counts] */
};

static uint32_t count_at(const struct counting *counting, uint32_t state, uint32_t kind)
{
    for (uint32_t i = 0; i < kind; i++)
        state /= counting->caps[i] + 1;
    return state % (counting->caps[kind] + 1);
}

/* The state behind an item of the chosen kinds; UINT32_MAX: one is too many. */
static uint32_t count_behind(const struct counting *counting, uint32_t state, unsigned chosen)
{
    uint32_t step = 1, behind = state;
    for (uint32_t i = 0; i < counting->n; i++) {
        uint32_t count = count_at(counting, state, i);
        if (chosen >> i & 1) {
            if (count == counting->kinds[i]->most)
                return UINT32_MAX;
            behind += count < counting->caps[i] ? step : 0;
        }
        step *= counting->caps[i] + 1;
    }
    return behind;
}

/* An item at a place that is of the chosen kinds, and of no other where that is counted. */
static const struct expression *item_of(struct schema_reader *reader, const struct counting *counting,
                                        uint32_t place, unsigned chosen)
{
    struct demand demand;
    if (!shape_item(reader, counting->array->shape, place, &demand))
        return NULL;
    for (uint32_t i = 0; i < counting->n; i++) {
        const struct contains *kind = counting->kinds[i];
        bool counted = place >= kind->from;
        if (!counted && (chosen >> i & 1))
            return &schema_nothing;
        if (!counted || (!(chosen >> i & 1) && kind->most == GRAMMAR_UNBOUNDED))
            continue;
        struct claim claim = {kind->claim.schema, kind->claim.negated == (chosen >> i & 1)};
        if (!demand_add(reader, &demand, claim))
            return NULL;
    }
    return emit_demand(reader, &demand);
}

static bool may_end(const struct counting *counting, uint32_t place, uint32_t state)
{
    for (uint32_t i = 0; i < counting->n; i++)
        if (count_at(counting, state, i) < counting->kinds[i]->least)
            return false;
    return place >= counting->array->least;
}

/* What may follow when `place` items are there, as many of each kind as the state says. */
static const struct expression *from_state(struct schema_reader *reader, struct counting *counting,
                                           uint32_t place, uint32_t state)
{
    struct rules *rules = reader->rules;
    struct expression_list list = {0}, loop = {0};
    const uint32_t next = place < counting->end ? place + 1 : place;
    if (may_end(counting, place, state))
        expression_push(rules, &list, expression_empty(rules));
    for (unsigned chosen = 0; chosen < 1u << counting->n && place < counting->array->most; chosen++) {
        uint32_t behind = count_behind(counting, state, chosen);
        if (behind == UINT32_MAX)
            continue;
        bool same = next == place && behind == state;
        const struct expression *rest = same ? NULL : counting->states[next * counting->n_counts + behind];
        if (rest == &schema_nothing)
            continue;
        const struct expression *item = item_of(reader, counting, place, chosen);
        if (item == &schema_nothing)
            continue;
        if (item && place > 0)
            item = json_text_next_item(&reader->json, item);
        expression_push(rules, same ? &loop : &list, same ? item : expression_then(rules, item, rest));
        if (reader->code != 0)
            return NULL;
    }
    if (list.n == 0 && !list.failed)
        return &schema_nothing;
    const struct expression *made = expression_choice(rules, &list);
    if (loop.n > 0 || loop.failed)
        made = expression_then(
            rules, expression_repeat(rules, expression_choice(rules, &loop), 0, GRAMMAR_UNBOUNDED), made);
    return expression_shared(rules, made);
}

static bool set_up(struct schema_reader *reader, struct counting *counting)
{
    const struct array *array = counting->array;
    uint64_t n = 1;
    counting->end = array->n > array->least ? array->n : array->least;
    if (array->most != GRAMMAR_UNBOUNDED && array->most > counting->end)
        counting->end = array->most;
    for (uint32_t i = 0; i < counting->n; i++) {
        const struct contains *kind = counting->kinds[i];
        counting->caps[i] = kind->most == GRAMMAR_UNBOUNDED ? kind->least : kind->most;
        counting->end = kind->from > counting->end ? kind->from : counting->end;
        n *= counting->caps[i] + (uint64_t)1;
        if (n > MOST_STATES)
            break;
    }
    counting->end = counting->end > 0 ? counting->end : 1;
    if (n > MOST_STATES || (counting->end + (uint64_t)1) * n > MOST_STATES) {
        schema_refuse(reader, "contains: more than %d combinations of counts", MOST_STATES);
        return false;
    }
    counting->n_counts = (uint32_t)n;
    counting->states = schema_take(reader, (counting->end + (size_t)1) * n, sizeof *counting->states);
    return counting->states != NULL;
}

static const struct expression *counted_items(struct schema_reader *reader, struct array *array)
{
    struct counting counting = {.array = array};
    for (const struct contains *c = array->shape->contains; c; c = (const void *)c->link.next) {
        if (c->least == 0 && c->most == GRAMMAR_UNBOUNDED)
            continue;
        if (counting.n == MOST_CONTAINS)
            return schema_refuse(reader, "more than %d \"contains\" for one array", MOST_CONTAINS);
        counting.kinds[counting.n++] = c;
    }
    if (counting.n == 0)
        return plain_items(reader, array);
    if (!set_up(reader, &counting))
        return NULL;
    for (uint32_t place = counting.end + 1; place-- > 0;)
        for (uint32_t state = counting.n_counts; state-- > 0;) {
            const struct expression *made = from_state(reader, &counting, place, state);
            if (!made)
                return NULL;
            counting.states[place * counting.n_counts + state] = made;
        }
    return counting.states[0];
}

/* ---- items that are unlike ---- */

static const struct expression *emit_one(struct schema_reader *reader, json_t *value)
{
    struct demand demand = {0};
    const json_t *schema = schema_keep(reader, json_pack("{s:O}", "const", value));
    return schema && demand_add(reader, &demand, (struct claim){schema, false}) ? emit_demand(reader, &demand)
                                                                                : NULL;
}

/* All items alike: each value at most once, in any order. */
static const struct expression *unlike_items(struct schema_reader *reader, const struct array *array,
                                             json_t *values)
{
    struct rules *rules = reader->rules;
    const uint32_t n = (uint32_t)json_array_size(values);
    struct expression_member *members = schema_take(reader, n, sizeof *members);
    if (!members)
        return NULL;
    for (uint32_t i = 0; i < n; i++) {
        members[i] = (struct expression_member){.head = emit_one(reader, json_array_get(values, i)),
                                                .tail = expression_empty(rules)};
        if (!members[i].head)
            return NULL;
    }
    if (n == 0)
        return array->least == 0 ? expression_empty(rules) : &schema_nothing;
    if (array->least > n)
        return &schema_nothing;
    return expression_members(rules, "unlike",
                              &(struct expression_members){
                                  .between = json_text_next_item(&reader->json, expression_empty(rules)),
                                  .named = members,
                                  .n_named = n,
                                  .least = array->least,
                                  .most = array->most,
                              });
}

/* What the items from `place` on are when these came before. `left`: tuples that may still be made. */
static const struct expression *tuples_from(struct schema_reader *reader, const struct array *array,
                                            json_t **values, json_t *before, uint32_t *left)
{
    struct rules *rules = reader->rules;
    const uint32_t place = (uint32_t)json_array_size(before);
    struct expression_list list = {0};
    if (place >= array->least)
        expression_push(rules, &list, expression_empty(rules));
    for (size_t i = 0; place < array->most && i < json_array_size(values[place]); i++) {
        json_t *value = json_array_get(values[place], i);
        bool again = false;
        for (uint32_t j = 0; j < place && !again; j++)
            again = json_values_equal(json_array_get(before, j), value);
        if (again)
            continue;
        if ((*left)-- == 0)
            return schema_refuse(reader, "uniqueItems: more than %d combinations of prefixItems",
                                 MOST_TUPLES);
        if (json_array_append(before, value) != 0)
            return schema_no_memory(reader);
        const struct expression *rest = tuples_from(reader, array, values, before, left);
        json_array_remove(before, place);
        if (rest == &schema_nothing)
            continue;
        const struct expression *item = emit_one(reader, value);
        if (item && place > 0)
            item = json_text_next_item(&reader->json, item);
        expression_push(rules, &list, expression_then(rules, item, rest));
        if (reader->code != 0)
            return NULL;
    }
    return list.n == 0 && !list.failed ? &schema_nothing : expression_choice(rules, &list);
}

static const struct expression *unlike(struct schema_reader *reader, struct array *array)
{
    static const char *const reason =
        "uniqueItems is supported where items have listed values (enum, const, boolean, null)";
    const bool alike = array->n == 0;
    const uint32_t n = alike ? 1 : array->most;
    if (array->shape->contains || (!alike && array->most > array->n))
        return schema_refuse(reader, "%s", reason);
    json_t **values = schema_take(reader, n, sizeof *values);
    const struct expression *made = NULL;
    bool listed = values != NULL;
    for (uint32_t i = 0; i < n && listed; i++) {
        struct demand demand;
        values[i] = json_array();
        listed = shape_item(reader, array->shape, alike ? UINT32_MAX - 1 : i, &demand) &&
                 demand_values(reader, &demand, values[i]);
    }
    uint32_t left = MOST_TUPLES;
    json_t *before = json_array();
    if (!listed)
        schema_refuse(reader, "%s", reason);
    else
        made = alike ? unlike_items(reader, array, values[0])
                     : tuples_from(reader, array, values, before, &left);
    json_decref(before);
    for (uint32_t i = 0; values && i < n; i++)
        json_decref(values[i]);
    return made;
}

/* ---- all of it ---- */

const struct expression *emit_array(struct schema_reader *reader, const struct shape *shape)
{
    struct array array = {
        .shape = shape, .n = places_of(shape), .least = shape->min_items, .most = shape->max_items};
    if (!shape->items && !shape->contains && !shape->unique && array.least == 0 &&
        array.most == GRAMMAR_UNBOUNDED)
        return json_text_array(&reader->json);
    if (array.n > SCHEMA_MOST_NAMES)
        return schema_refuse(reader, "more than %u item positions are not supported", SCHEMA_MOST_NAMES);
    if (!read_items(reader, &array))
        return NULL;
    const struct expression *inner = &schema_nothing;
    if (array.least <= array.most)
        inner =
            array.shape->unique && array.most > 1 ? unlike(reader, &array) : counted_items(reader, &array);
    if (inner == &schema_nothing)
        schema_note_nothing(reader, "no array can have the required number of items");
    return inner && inner != &schema_nothing ? bracketed(reader, inner) : inner;
}
