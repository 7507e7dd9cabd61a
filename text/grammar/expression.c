/* SPDX-License-Identifier: MIT */
/* See expression.h. Lists double, and what they leave behind stays in the arena until all of it goes. */

#include "text/grammar/expression.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_SURROGATE 0xd800u
#define LAST_SURROGATE  0xdfffu

void rules_init(struct rules *rules, size_t limit)
{
    *rules = (struct rules){.arena = {.limit = limit}};
}

void rules_deinit(struct rules *rules)
{
    arena_deinit(&rules->arena);
    *rules = (struct rules){0};
}

uint32_t rules_add(struct rules *rules, const char *name)
{
    if (rules->n == GRAMMAR_MOST_RULES)
        return UINT32_MAX;
    if (rules->n == rules->cap) {
        uint32_t cap = rules->cap ? rules->cap * 2 : 32;
        struct rule *items = arena_take(&rules->arena, cap, sizeof *items);
        if (!items)
            return UINT32_MAX;
        if (rules->n > 0)
            memcpy(items, rules->items, rules->n * sizeof *items);
        rules->items = items;
        rules->cap = cap;
    }
    struct rule *rule = &rules->items[rules->n];
    *rule = (struct rule){0};
    snprintf(rule->name, sizeof rule->name, "%s", name);
    return rules->n++;
}

uint32_t rules_named(struct rules *rules, struct bytes name)
{
    char text[sizeof rules->items->name];
    snprintf(text, sizeof text, "%.*s", (int)(name.len < sizeof text ? name.len : sizeof text),
             (const char *)name.data);
    for (uint32_t i = 0; i < rules->n; i++)
        if (strcmp(rules->items[i].name, text) == 0)
            return i;
    return rules_add(rules, text);
}

void expression_push(struct rules *rules, struct expression_list *list, const struct expression *part)
{
    if (!part)
        list->failed = true;
    if (list->failed)
        return;
    if (list->n == list->cap) {
        uint32_t cap = list->cap ? list->cap * 2 : 4;
        const struct expression **items = arena_take(&rules->arena, cap, sizeof *items);
        if (!items) {
            list->failed = true;
            return;
        }
        if (list->n > 0)
            memcpy(items, list->items, list->n * sizeof *items);
        list->items = items;
        list->cap = cap;
    }
    list->items[list->n++] = part;
}

static struct expression *make(struct rules *rules, enum expression_kind kind)
{
    struct expression *expression = arena_take(&rules->arena, 1, sizeof *expression);
    if (expression)
        expression->kind = kind;
    return expression;
}

const struct expression *expression_empty(struct rules *rules)
{
    return make(rules, EXPRESSION_EMPTY);
}

const struct expression *expression_literal(struct rules *rules, struct bytes text)
{
    struct expression *expression = make(rules, text.len ? EXPRESSION_LITERAL : EXPRESSION_EMPTY);
    uint8_t *copy = expression && text.len ? arena_take(&rules->arena, text.len, 1) : NULL;
    if (!copy)
        return text.len ? NULL : expression;
    memcpy(copy, text.data, text.len);
    expression->literal = (struct bytes){copy, text.len};
    return expression;
}

const struct expression *expression_text(struct rules *rules, const char *text)
{
    return expression_literal(rules, bytes_of_string(text));
}

static const struct expression *of_list(struct rules *rules, enum expression_kind kind,
                                        const struct expression_list *list)
{
    if (list->failed)
        return NULL;
    if (list->n == 1)
        return list->items[0];
    struct expression *expression = make(rules, kind);
    if (expression) {
        expression->parts = list->items;
        expression->n = list->n;
    }
    return expression;
}

const struct expression *expression_sequence(struct rules *rules, const struct expression_list *list)
{
    return list->n == 0 && !list->failed ? expression_empty(rules)
                                         : of_list(rules, EXPRESSION_SEQUENCE, list);
}

const struct expression *expression_choice(struct rules *rules, const struct expression_list *list)
{
    return list->n == 0 && !list->failed ? expression_chars(rules, NULL, 0, false)
                                         : of_list(rules, EXPRESSION_CHOICE, list);
}

const struct expression *expression_then(struct rules *rules, const struct expression *a,
                                         const struct expression *b)
{
    struct expression_list list = {0};
    expression_push(rules, &list, a);
    expression_push(rules, &list, b);
    return expression_sequence(rules, &list);
}

const struct expression *expression_or(struct rules *rules, const struct expression *a,
                                       const struct expression *b)
{
    struct expression_list list = {0};
    expression_push(rules, &list, a);
    expression_push(rules, &list, b);
    return expression_choice(rules, &list);
}

const struct expression *expression_repeat(struct rules *rules, const struct expression *part, uint32_t least,
                                           uint32_t most)
{
    struct expression_list list = {0};
    if (least == 1 && most == 1)
        return part;
    expression_push(rules, &list, part);
    struct expression *expression = list.failed ? NULL : make(rules, EXPRESSION_REPEAT);
    if (!expression)
        return NULL;
    expression->parts = list.items;
    expression->n = 1;
    expression->least = least;
    expression->most = most;
    return expression;
}

const struct expression *expression_optional(struct rules *rules, const struct expression *part)
{
    return expression_repeat(rules, part, 0, 1);
}

const struct expression *expression_rule(struct rules *rules, uint32_t rule)
{
    struct expression *expression = rule == UINT32_MAX ? NULL : make(rules, EXPRESSION_RULE);
    if (expression)
        expression->rule = rule;
    return expression;
}

const struct expression *expression_shared(struct rules *rules, const struct expression *part)
{
    struct expression *expression = part ? make(rules, part->kind) : NULL;
    if (!expression)
        return NULL;
    *expression = *part;
    expression->shared = true;
    return expression;
}

/* ---- graphs, members ---- */

static void *copy_of(struct rules *rules, const void *items, size_t n, size_t size)
{
    void *copy = arena_take(&rules->arena, n + 1, size);
    if (copy && n > 0)
        memcpy(copy, items, n * size);
    return copy;
}

static int by_origin(const void *a, const void *b)
{
    const struct expression_edge *x = a, *y = b;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return x->to < y->to ? -1 : x->to > y->to;
}

const struct expression *expression_graph(struct rules *rules, const struct expression_graph *graph)
{
    struct expression *expression = make(rules, EXPRESSION_GRAPH);
    struct expression_graph *copy = copy_of(rules, graph, 1, sizeof *copy);
    struct expression_edge *edges = copy_of(rules, graph->edges, graph->n_edges, sizeof *edges);
    bool *accepting = copy_of(rules, graph->accepting, graph->n_states, sizeof *accepting);
    bool whole = expression && copy && edges && accepting;
    for (uint32_t i = 0; whole && i < graph->n_edges; i++)
        whole = edges[i].by != NULL;
    if (!whole)
        return NULL;
    qsort(edges, graph->n_edges, sizeof *edges, by_origin);
    copy->edges = edges;
    copy->accepting = accepting;
    expression->graph = copy;
    return expression;
}

const struct expression *expression_apart(struct rules *rules, const char *name,
                                          const struct expression *body)
{
    uint32_t rule = body ? rules_add(rules, name) : UINT32_MAX;
    if (rule == UINT32_MAX)
        return NULL;
    rules->items[rule].body = body;
    rules->items[rule].apart = true;
    return expression_rule(rules, rule);
}

const struct expression *expression_members(struct rules *rules, const char *name,
                                            const struct expression_members *members)
{
    struct expression *expression = make(rules, EXPRESSION_MEMBERS);
    struct expression_members *copy = copy_of(rules, members, 1, sizeof *copy);
    struct expression_member *named = copy_of(rules, members->named, members->n_named, sizeof *named);
    struct expression_member *others = copy_of(rules, members->others, members->n_others, sizeof *others);
    uint32_t required = 0;
    bool whole = expression && copy && named && others && members->between;
    for (uint32_t i = 0; whole && i < members->n_named; i++) {
        whole = named[i].head && named[i].tail;
        required += named[i].required;
    }
    for (uint32_t i = 0; whole && i < members->n_others; i++)
        whole = others[i].head && others[i].tail;
    if (!whole || required > members->most || members->least > members->most ||
        (members->n_others == 0 && members->least > members->n_named))
        return NULL;
    copy->named = named;
    copy->others = others;
    expression->members = copy;
    const struct expression *rule = expression_apart(rules, name, expression);
    if (rule)
        rules->items[rule->rule].has_members = true;
    return rule;
}

/* ---- sets of code points ---- */

static int by_first(const void *a, const void *b)
{
    const struct code_range *x = a, *y = b;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* Sorts and joins in place; how many are left. */
static uint32_t join(struct code_range *ranges, uint32_t n)
{
    uint32_t kept = 0;
    qsort(ranges, n, sizeof *ranges, by_first);
    for (uint32_t i = 0; i < n; i++) {
        if (kept > 0 && ranges[i].first <= ranges[kept - 1].last + 1) {
            if (ranges[i].last > ranges[kept - 1].last)
                ranges[kept - 1].last = ranges[i].last;
        } else {
            ranges[kept++] = ranges[i];
        }
    }
    return kept;
}

/* Appends the range without its surrogates; how many there are then. */
static uint32_t append(struct code_range *ranges, uint32_t n, uint32_t first, uint32_t last)
{
    if (first > last)
        return n;
    if (last < FIRST_SURROGATE || first > LAST_SURROGATE) {
        ranges[n++] = (struct code_range){first, last};
        return n;
    }
    if (first < FIRST_SURROGATE)
        ranges[n++] = (struct code_range){first, FIRST_SURROGATE - 1};
    if (last > LAST_SURROGATE)
        ranges[n++] = (struct code_range){LAST_SURROGATE + 1, last};
    return n;
}

const struct expression *expression_chars(struct rules *rules, const struct code_range *ranges, uint32_t n,
                                          bool negated)
{
    struct expression *expression = make(rules, EXPRESSION_CHARS);
    struct code_range *sorted = arena_take(&rules->arena, n + 1, sizeof *sorted);
    struct code_range *all =
        arena_take(&rules->arena, (size_t)n + 3, sizeof *all); /* one may be cut in two */
    if (!expression || !sorted || !all)
        return NULL;
    if (n > 0)
        memcpy(sorted, ranges, n * sizeof *sorted);
    n = join(sorted, n);
    uint32_t kept = 0, next = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!negated)
            kept = append(all, kept, sorted[i].first, sorted[i].last);
        else if (sorted[i].first > next)
            kept = append(all, kept, next, sorted[i].first - 1);
        next = sorted[i].last + 1;
    }
    if (negated)
        kept = append(all, kept, next, GRAMMAR_MOST_POINT);
    expression->ranges = all;
    expression->n = kept;
    return expression;
}
