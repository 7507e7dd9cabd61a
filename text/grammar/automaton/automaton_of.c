/* SPDX-License-Identifier: MIT */
/* From an expression to an automaton: first nodes that go on in several ways, made from the end of a text to
 * its beginning, then sets of such nodes as states. {m,n} is n copies, each charged before it is made. */

#include <stdlib.h>
#include <string.h>

#include "text/grammar/automaton/automaton.h"
#include "text/grammar/automaton/state_keys.h"
#include "text/grammar/automaton/automaton_make.h"
#include "text/grammar/characters.h"

#define MOST_NODES (1u << 15)
#define NONE       UINT32_MAX

enum way_kind { WAY_CHARS, WAY_SPLIT, WAY_END };

struct way { /* takes a character of the ranges, or goes on at a and b */
    enum way_kind kind;
    uint32_t a, b;
    const struct code_range *ranges;
    uint32_t n_ranges;
};

struct ways {
    struct automata *automata;
    struct way *items;
    uint32_t n, cap;
    struct code_range *points; /* of literals: one each */
};

static uint32_t add_way(struct ways *ways, struct way way)
{
    if (way.a == NONE || way.b == NONE || !automata_spend(ways->automata, 1))
        return NONE;
    if (ways->n == MOST_NODES) {
        ways->automata->too_large = true;
        return NONE;
    }
    if (ways->n == ways->cap) {
        uint32_t cap = ways->cap ? ways->cap * 2 : 64;
        struct way *items = realloc(ways->items, cap * sizeof *items);
        if (!items) {
            ways->automata->starved = true;
            return NONE;
        }
        ways->items = items;
        ways->cap = cap;
    }
    ways->items[ways->n] = way;
    return ways->n++;
}

static uint32_t add_split(struct ways *ways, uint32_t a, uint32_t b)
{
    return add_way(ways, (struct way){.kind = WAY_SPLIT, .a = a, .b = b});
}

static uint32_t add_expression(struct ways *ways, const struct expression *expression, uint32_t next);

static uint32_t add_literal(struct ways *ways, struct bytes text, uint32_t next)
{
    const uint8_t *data = text.data;
    for (size_t end = text.len; end > 0 && next != NONE;) {
        size_t at = end - 1;
        while (at > 0 && (data[at] & 0xc0) == 0x80)
            at--;
        struct code_range *range = arena_take(&ways->automata->rules->arena, 1, sizeof *range);
        if (!range)
            return NONE;
        characters_point(data + at, &range->first);
        range->last = range->first;
        next = add_way(ways, (struct way){WAY_CHARS, next, 0, range, 1});
        end = at;
    }
    return next;
}

static uint32_t add_repeat(struct ways *ways, const struct expression *repeat, uint32_t next)
{
    const struct expression *part = repeat->parts[0];
    uint32_t entry = next;
    if (repeat->most == GRAMMAR_UNBOUNDED) {
        uint32_t loop = add_split(ways, next, next);
        uint32_t body = loop == NONE ? NONE : add_expression(ways, part, loop);
        if (body == NONE)
            return NONE;
        ways->items[loop].a = body;
        entry = loop;
    } else {
        for (uint32_t i = repeat->least; i < repeat->most && entry != NONE; i++) {
            uint32_t body = add_expression(ways, part, entry);
            if (body == entry)
                break;
            entry = add_split(ways, body, next);
        }
    }
    for (uint32_t i = 0; i < repeat->least && entry != NONE; i++) {
        uint32_t body = add_expression(ways, part, entry);
        if (body == entry)
            break;
        entry = body;
    }
    return entry;
}

static uint32_t add_expression(struct ways *ways, const struct expression *expression, uint32_t next)
{
    uint32_t entry;
    if (next == NONE)
        return next;
    switch (expression->kind) {
    case EXPRESSION_EMPTY:
        return next;
    case EXPRESSION_LITERAL:
        return add_literal(ways, expression->literal, next);
    case EXPRESSION_CHARS:
        return add_way(ways, (struct way){WAY_CHARS, next, 0, expression->ranges, expression->n});
    case EXPRESSION_SEQUENCE:
        for (uint32_t i = expression->n; i-- > 0 && next != NONE;)
            next = add_expression(ways, expression->parts[i], next);
        return next;
    case EXPRESSION_CHOICE:
        entry = add_expression(ways, expression->parts[0], next);
        for (uint32_t i = 1; i < expression->n && entry != NONE; i++)
            entry = add_split(ways, add_expression(ways, expression->parts[i], next), entry);
        return entry;
    case EXPRESSION_REPEAT:
        return add_repeat(ways, expression, next);
    case EXPRESSION_RULE:
    case EXPRESSION_GRAPH:
    case EXPRESSION_MEMBERS:
        break;
    }
    return NONE;
}

/* ---- classes ---- */

static int compare_points(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Where ranges begin, and what is behind their ends, each once. */
static const uint32_t *find_classes(struct ways *ways, uint32_t *ret_n)
{
    size_t n = 1;
    for (uint32_t i = 0; i < ways->n; i++)
        n += ways->items[i].kind == WAY_CHARS ? 2 * (size_t)ways->items[i].n_ranges : 0;
    if (!automata_spend(ways->automata, n))
        return NULL;
    uint32_t *all = malloc(n * sizeof *all), kept = 0, *firsts = NULL;
    if (!all) {
        ways->automata->starved = true;
        return NULL;
    }
    n = 0;
    all[n++] = 0;
    for (uint32_t i = 0; i < ways->n; i++)
        for (uint32_t j = 0; ways->items[i].kind == WAY_CHARS && j < ways->items[i].n_ranges; j++) {
            all[n++] = ways->items[i].ranges[j].first;
            if (ways->items[i].ranges[j].last < GRAMMAR_MOST_POINT)
                all[n++] = ways->items[i].ranges[j].last + 1;
        }
    qsort(all, n, sizeof *all, compare_points);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || all[kept - 1] != all[i])
            all[kept++] = all[i];
    firsts = arena_take(&ways->automata->rules->arena, kept, sizeof *firsts);
    if (firsts)
        memcpy(firsts, all, kept * sizeof *firsts);
    free(all);
    *ret_n = kept;
    return firsts;
}

/* ---- sets of ways as states ---- */

struct set { /* what is closed over: characters and the end, ascending */
    uint32_t *items, n;
    uint32_t *stack;
    uint32_t *marks, round;
};

static int compare_items(const void *a, const void *b)
{
    return compare_points(a, b);
}

static void enter(const struct ways *ways, struct set *set, uint32_t way)
{
    uint32_t n = 0;
    set->stack[n++] = way;
    while (n > 0) {
        uint32_t at = set->stack[--n];
        if (set->marks[at] == set->round)
            continue;
        set->marks[at] = set->round;
        if (ways->items[at].kind == WAY_SPLIT) {
            set->stack[n++] = ways->items[at].a;
            set->stack[n++] = ways->items[at].b;
        } else {
            set->items[set->n++] = at;
        }
    }
}

static bool takes(const struct way *way, uint32_t point)
{
    uint32_t low = 0, high = way->n_ranges;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (way->ranges[middle].last < point)
            low = middle + 1;
        else
            high = middle;
    }
    return low < way->n_ranges && way->ranges[low].first <= point;
}

static uint32_t state_of_set(struct automaton_making *making, const struct ways *ways, struct set *set)
{
    bool accepting = false;
    qsort(set->items, set->n, sizeof *set->items, compare_items);
    for (uint32_t i = 0; i < set->n; i++)
        accepting |= ways->items[set->items[i]].kind == WAY_END;
    return automaton_state(making, set->items, set->n * sizeof *set->items, accepting);
}

/* The states that one leads to; `from`: room for its ways. */
static void add_steps(struct automaton_making *making, const struct ways *ways, struct set *set,
                      uint32_t state, uint32_t *from)
{
    size_t len;
    const void *key = state_keys_at(&making->keys, state, &len);
    const uint32_t n = (uint32_t)(len / sizeof *from);
    memcpy(from, key, len);
    for (uint32_t class = 0; class < making->n_classes && !making->failed; class ++) {
        set->n = 0;
        set->round++;
        for (uint32_t i = 0; i < n; i++)
            if (ways->items[from[i]].kind == WAY_CHARS && takes(&ways->items[from[i]], making->firsts[class]))
                enter(ways, set, ways->items[from[i]].a);
        making->failed |= !automata_spend(making->automata, 1 + n / 2 + set->n);
        uint32_t next = making->failed ? 0 : state_of_set(making, ways, set);
        if (!making->failed)
            making->next[(size_t)state * making->n_classes + class] = next;
    }
}

static const struct automaton *of_ways(struct ways *ways, uint32_t entry)
{
    struct automaton_making making;
    struct set set = {0};
    uint32_t n_classes = 0;
    const uint32_t *firsts = find_classes(ways, &n_classes);
    uint32_t *from = calloc(ways->n + (size_t)1, sizeof *from);
    set.items = calloc(ways->n + (size_t)1, sizeof *set.items);
    set.stack = calloc(2 * (size_t)ways->n + 2, sizeof *set.stack);
    set.marks = calloc(ways->n + (size_t)1, sizeof *set.marks);
    set.round = 1;
    automaton_begin(&making, ways->automata, firsts, n_classes);
    ways->automata->starved |= !from || !set.items || !set.stack || !set.marks;
    making.failed |= !from || !set.items || !set.stack || !set.marks;
    if (!making.failed) {
        enter(ways, &set, entry);
        state_of_set(&making, ways, &set);
    }
    for (uint32_t i = 0; !making.failed && i < making.keys.n; i++)
        add_steps(&making, ways, &set, i, from);
    free(from);
    free(set.items);
    free(set.stack);
    free(set.marks);
    return automaton_finish(&making);
}

const struct automaton *automaton_of(struct automata *automata, const struct expression *expression)
{
    struct ways ways = {.automata = automata};
    uint32_t end = add_way(&ways, (struct way){.kind = WAY_END});
    uint32_t entry = expression ? add_expression(&ways, expression, end) : NONE;
    const struct automaton *made = entry == NONE ? NULL : of_ways(&ways, entry);
    free(ways.items);
    return automaton_least(automata, made);
}
