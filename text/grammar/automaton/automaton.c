/* SPDX-License-Identifier: MIT */
/* See automaton.h and automaton_make.h. What an expression becomes is in automaton_of.c; here are automata of
 * others, and what they are asked. */

#include "text/grammar/automaton/automaton.h"

#include <stdlib.h>
#include <string.h>

#include "text/grammar/automaton/automaton_make.h"
#include "text/grammar/characters.h"

#define FEW_STATES 128 /* that are not worth the work of making them fewer */

/* ---- books of one that is being made ---- */

bool automata_spend(struct automata *automata, uint64_t steps)
{
    automata->work += steps;
    automata->too_large |= automata->work > automata->most_work;
    return !automata->too_large;
}

void automaton_begin(struct automaton_making *making, struct automata *automata, const uint32_t *firsts,
                     uint32_t n_classes)
{
    *making = (struct automaton_making){.automata = automata, .n_classes = n_classes, .firsts = firsts};
    making->failed = !firsts;
}

/* The state of a key. */
uint32_t automaton_state(struct automaton_making *making, const void *key, size_t len, bool accepting)
{
    bool is_new;
    uint32_t state = state_keys_find(&making->keys, key, len, &is_new);
    making->automata->starved |= state == UINT32_MAX;
    if (state == UINT32_MAX || !automata_spend(making->automata, 1 + len / 8)) {
        making->failed = true;
        return 0;
    }
    if (!is_new)
        return state;
    if (state >= AUTOMATON_MOST_STATES) {
        making->automata->too_large = making->failed = true;
        return 0;
    }
    if (state == making->states_cap) {
        uint32_t cap = making->states_cap ? making->states_cap * 2 : 32;
        uint32_t *next = realloc(making->next, (size_t)cap * making->n_classes * sizeof *next);
        if (next)
            making->next = next;
        bool *flags = realloc(making->accepting, cap * sizeof *flags);
        if (flags)
            making->accepting = flags;
        if (!next || !flags) {
            making->automata->starved = making->failed = true;
            return 0;
        }
        making->states_cap = cap;
    }
    making->accepting[state] = accepting;
    return state;
}

const struct automaton *automaton_finish(struct automaton_making *making)
{
    struct arena *arena = &making->automata->rules->arena;
    const size_t n = making->keys.n, width = making->n_classes;
    struct automaton *made = making->failed ? NULL : arena_take(arena, 1, sizeof *made);
    uint32_t *next = made ? arena_take(arena, n * width, sizeof *next) : NULL;
    bool *accepting = next ? arena_take(arena, n, sizeof *accepting) : NULL;
    if (accepting) {
        memcpy(next, making->next, n * width * sizeof *next);
        memcpy(accepting, making->accepting, n * sizeof *accepting);
        *made = (struct automaton){(uint32_t)n, making->n_classes, making->firsts, next, accepting};
    }
    free(making->next);
    free(making->accepting);
    state_keys_deinit(&making->keys);
    return accepting ? made : NULL;
}

/* ---- told, of a length ---- */

const struct automaton *automaton_told(struct automata *automata, const struct automaton_teller *teller)
{
    struct automaton_making making;
    uint32_t *firsts = arena_take(&automata->rules->arena, teller->n_classes, sizeof *firsts);
    automaton_begin(&making, automata, firsts, teller->n_classes);
    if (firsts) {
        memcpy(firsts, teller->firsts, teller->n_classes * sizeof *firsts);
        automaton_state(&making, &teller->start, sizeof teller->start,
                        teller->accepts(teller->arg, teller->start));
    }
    for (uint32_t i = 0; !making.failed && i < making.keys.n; i++)
        for (uint32_t class = 0; !making.failed && class < making.n_classes; class ++) {
            uint64_t state;
            memcpy(&state, state_keys_at(&making.keys, i, NULL), sizeof state);
            state = teller->step(teller->arg, state, firsts[class]);
            uint32_t next =
                automaton_state(&making, &state, sizeof state, teller->accepts(teller->arg, state));
            if (!making.failed)
                making.next[(size_t)i * making.n_classes + class] = next;
        }
    return automaton_finish(&making);
}

struct length {
    uint32_t least, most;
};

static uint64_t step_length(const void *arg, uint64_t state, uint32_t point)
{
    const struct length *length = arg;
    uint32_t end = length->most == GRAMMAR_UNBOUNDED ? length->least : length->most + 1;
    return state < end ? state + 1 : state;
}

static bool length_is(const void *arg, uint64_t state)
{
    const struct length *length = arg;
    return state >= length->least && state <= length->most;
}

const struct automaton *automaton_of_length(struct automata *automata, uint32_t least, uint32_t most)
{
    static const uint32_t all[] = {0};
    const struct length length = {least, most};
    return automaton_told(automata, &(struct automaton_teller){&length, 0, step_length, length_is, all, 1});
}

/* ---- pairs ---- */

/* The classes of both; `ret_of`: [n][2] which of theirs each is in. */
static uint32_t *join_classes(struct arena *arena, const struct automaton *a, const struct automaton *b,
                              uint32_t (**ret_of)[2], uint32_t *ret_n)
{
    uint32_t *firsts = arena_take(arena, (size_t)a->n_classes + b->n_classes, sizeof *firsts), n = 0;
    uint32_t(*of)[2] = arena_take(arena, (size_t)a->n_classes + b->n_classes, sizeof *of);
    uint32_t i = 0, j = 0; /* the next of each */
    while (firsts && of && (i < a->n_classes || j < b->n_classes)) {
        uint32_t x = i < a->n_classes ? a->firsts[i] : UINT32_MAX;
        uint32_t y = j < b->n_classes ? b->firsts[j] : UINT32_MAX;
        firsts[n] = x < y ? x : y;
        i += x <= y;
        j += y <= x;
        of[n][0] = i - 1;
        of[n++][1] = j - 1;
    }
    *ret_of = of;
    *ret_n = n;
    return of ? firsts : NULL;
}

static bool pair_accepts(enum automaton_pair pair, bool a, bool b)
{
    return pair == AUTOMATON_BOTH ? a && b : pair == AUTOMATON_EITHER ? a || b : a && !b;
}

const struct automaton *automaton_of_pair(struct automata *automata, enum automaton_pair pair,
                                          const struct automaton *a, const struct automaton *b)
{
    struct automaton_making making;
    uint32_t(*of)[2], n_classes;
    if (!a || !b)
        return NULL;
    const uint32_t *firsts = join_classes(&automata->rules->arena, a, b, &of, &n_classes);
    automaton_begin(&making, automata, firsts, n_classes);
    if (firsts) {
        const uint32_t first[2] = {0, 0};
        automaton_state(&making, first, sizeof first, pair_accepts(pair, a->accepting[0], b->accepting[0]));
    }
    for (uint32_t i = 0; !making.failed && i < making.keys.n; i++)
        for (uint32_t class = 0; !making.failed && class < n_classes; class ++) {
            uint32_t at[2], to[2];
            memcpy(at, state_keys_at(&making.keys, i, NULL), sizeof at);
            to[0] = a->next[(size_t)at[0] * a->n_classes + of[class][0]];
            to[1] = b->next[(size_t)at[1] * b->n_classes + of[class][1]];
            uint32_t next = automaton_state(&making, to, sizeof to,
                                            pair_accepts(pair, a->accepting[to[0]], b->accepting[to[1]]));
            if (!making.failed)
                making.next[(size_t)i * n_classes + class] = next;
        }
    const struct automaton *made = automaton_finish(&making);
    return made && made->n_states > FEW_STATES ? automaton_least(automata, made) : made;
}

/* ---- as few states as can be ---- */

/* Cuts the blocks by where their states lead: the number of blocks then, 0 without memory. */
static uint32_t refine(const struct automaton *automaton, uint32_t *block, uint32_t *key, uint32_t *ret_cut)
{
    struct state_keys keys = {0};
    const size_t width = automaton->n_classes;
    for (uint32_t i = 0; i < automaton->n_states; i++) {
        bool is_new;
        key[0] = block[i];
        for (size_t class = 0; class < width; class ++)
            key[1 + class] = block[automaton->next[i * width + class]];
        ret_cut[i] = state_keys_find(&keys, key, (1 + width) * sizeof *key, &is_new);
        if (ret_cut[i] == UINT32_MAX) {
            state_keys_deinit(&keys);
            return 0;
        }
    }
    uint32_t n = keys.n;
    state_keys_deinit(&keys);
    return n;
}

static const struct automaton *of_blocks(struct automata *automata, const struct automaton *automaton,
                                         const uint32_t *block, uint32_t n)
{
    struct arena *arena = &automata->rules->arena;
    const size_t width = automaton->n_classes;
    struct automaton *made = arena_take(arena, 1, sizeof *made);
    uint32_t *next = arena_take(arena, n * width, sizeof *next);
    bool *accepting = arena_take(arena, n, sizeof *accepting);
    if (!made || !next || !accepting)
        return NULL;
    for (uint32_t i = 0; i < automaton->n_states; i++) {
        accepting[block[i]] = automaton->accepting[i];
        for (size_t class = 0; class < width; class ++)
            next[block[i] * width + class] = block[automaton->next[i * width + class]];
    }
    *made = (struct automaton){n, automaton->n_classes, automaton->firsts, next, accepting};
    return made;
}

const struct automaton *automaton_least(struct automata *automata, const struct automaton *automaton)
{
    if (!automaton)
        return NULL;
    const size_t n_states = automaton->n_states;
    const uint64_t round = (uint64_t)n_states * (automaton->n_classes + 1);
    uint32_t *block = calloc(n_states, sizeof *block), *cut = calloc(n_states, sizeof *cut);
    uint32_t *key = calloc(automaton->n_classes + (size_t)1, sizeof *key);
    uint32_t before = 0, n = 1;
    const struct automaton *made = NULL;
    automata->starved |= !block || !cut || !key;
    for (size_t i = 0; block && i < n_states; i++)
        block[i] = automaton->accepting[i];
    while (block && cut && key && n != before && n > 0 && automata_spend(automata, round)) {
        before = n;
        n = refine(automaton, block, key, cut);
        automata->starved |= n == 0;
        memcpy(block, cut, n_states * sizeof *block); /* state 0 is met first, and is of block 0 */
    }
    if (block && cut && key && n > 0 && n == before)
        made = of_blocks(automata, automaton, block, n);
    free(block);
    free(cut);
    free(key);
    return made;
}

/* ---- questions ---- */

/* Sets the states from which a text may be accepted. False: no memory. */
static bool *find_alive(const struct automaton *automaton)
{
    bool *alive = calloc(automaton->n_states, sizeof *alive);
    for (bool changed = alive != NULL; changed;) {
        changed = false;
        for (uint32_t i = automaton->n_states; i-- > 0;) {
            bool lives = automaton->accepting[i];
            for (uint32_t class = 0; !alive[i] && !lives && class < automaton->n_classes; class ++)
                lives = alive[automaton->next[(size_t)i * automaton->n_classes + class]];
            changed |= lives && !alive[i];
            alive[i] |= lives;
        }
    }
    return alive;
}

bool automaton_is_empty(const struct automaton *automaton)
{
    /* Every state is reached from the first: they were met that way. */
    for (uint32_t i = 0; i < automaton->n_states; i++)
        if (automaton->accepting[i])
            return false;
    return true;
}

static uint32_t class_of(const struct automaton *automaton, uint32_t point)
{
    uint32_t low = 0, high = automaton->n_classes;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (automaton->firsts[middle] <= point)
            low = middle;
        else
            high = middle;
    }
    return low;
}

bool automaton_accepts(const struct automaton *automaton, struct bytes text)
{
    const uint8_t *data = text.data;
    uint32_t state = 0;
    for (size_t i = 0; i < text.len;) {
        uint32_t point;
        i += characters_point(data + i, &point);
        state = automaton->next[(size_t)state * automaton->n_classes + class_of(automaton, point)];
    }
    return automaton->accepting[state];
}

/* ---- as an expression ---- */

struct spelling {
    struct automata *automata;
    const struct expression *(*spell)(void *arg, const struct expression *chars);
    void *arg;
    struct expression_edge *edges;
    uint32_t n, cap;
    bool failed;
};

static void add_edge(struct spelling *spelling, uint32_t from, uint32_t to, const struct code_range *ranges,
                     uint32_t n)
{
    const struct expression *chars = expression_chars(spelling->automata->rules, ranges, n, false);
    if (chars && spelling->spell)
        chars = spelling->spell(spelling->arg, chars);
    if (spelling->n == spelling->cap) {
        uint32_t cap = spelling->cap ? spelling->cap * 2 : 64;
        struct expression_edge *grown = realloc(spelling->edges, cap * sizeof *grown);
        if (grown) {
            spelling->edges = grown;
            spelling->cap = cap;
        }
        spelling->automata->starved |= !grown;
        spelling->failed |= !grown;
    }
    spelling->failed |= !chars;
    if (!spelling->failed)
        spelling->edges[spelling->n++] = (struct expression_edge){from, to, chars};
}

/* The edges of one state: one for each state that it leads to. */
static void add_edges(struct spelling *spelling, const struct automaton *automaton, const bool *alive,
                      uint32_t state, struct code_range *ranges)
{
    const uint32_t *next = &automaton->next[(size_t)state * automaton->n_classes];
    const uint32_t n = automaton->n_classes;
    for (uint32_t class = 0; class < n && !spelling->failed; class ++) {
        bool before = false;
        for (uint32_t other = 0; other < class && !before; other++)
            before = next[other] == next[class];
        if (before || !alive[next[class]])
            continue;
        uint32_t n_ranges = 0;
        for (uint32_t other = class; other < n; other++)
            if (next[other] == next[class])
                ranges[n_ranges++] = (struct code_range){automaton->firsts[other],
                                                         other + 1 < n ? automaton->firsts[other + 1] - 1
                                                                       : GRAMMAR_MOST_POINT};
        add_edge(spelling, state, next[class], ranges, n_ranges);
    }
    spelling->failed |= !automata_spend(spelling->automata, (uint64_t)n * n / 2 + 1);
}

const struct expression *
automaton_expression(struct automata *automata, const struct automaton *automaton,
                     const struct expression *(*spell)(void *arg, const struct expression *chars), void *arg)
{
    struct spelling spelling = {.automata = automata, .spell = spell, .arg = arg};
    const struct expression *expression = NULL;
    if (!automaton)
        return NULL;
    bool *alive = find_alive(automaton);
    struct code_range *ranges = calloc(automaton->n_classes + (size_t)1, sizeof *ranges);
    automata->starved |= !alive || !ranges;
    spelling.failed = !alive || !ranges;
    for (uint32_t i = 0; i < automaton->n_states && !spelling.failed; i++)
        if (alive[i])
            add_edges(&spelling, automaton, alive, i, ranges);
    if (!spelling.failed)
        expression = expression_graph(automata->rules,
                                      &(struct expression_graph){automaton->n_states, spelling.n,
                                                                 spelling.edges, automaton->accepting});
    free(alive);
    free(ranges);
    free(spelling.edges);
    return expression;
}
