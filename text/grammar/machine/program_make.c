/* SPDX-License-Identifier: MIT */
/* From expressions to nodes.
 *
 * An expression is made from its end to its beginning. {m,n} is n copies; the bound on nodes bounds what that
 * can come to, and each copy is charged before it is made. */

#include "text/grammar/machine/program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "text/grammar/machine/program_chars.h"
#include "text/grammar/machine/program_nodes.h"
#include "text/grammar/machine/program_recursion.h"

#define HASH_NONFATAL_OOM 1 /* what was not added has no table */
#include <uthash.h>

#define SMALL_NODES 96 /* of a rule that stands in its callers' place */
#define MOST_LEVELS 8  /* of such rules in one another */
#define MOST_LOOKS  32 /* rules that are looked at below one another: the stack is not endless */

/* ---- rules that stand in their callers' place ---- */

struct plan_of_rule {
    bool inlined;
    bool looking; /* a search is below it */
    uint32_t level;
    uint32_t entry; /* its first node, of one that is called */
};

/* Where a shared expression was made: the first node, for each place that it goes on to. */
struct made {
    struct {
        const struct expression *expression;
        uintptr_t next;
    } key;
    uint32_t node;
    UT_hash_handle hh;
};

struct making {
    struct program_maker maker;
    struct made *made;
    const struct rules *rules;
    struct plan_of_rule *plans; /* [rules->n] */
    uint32_t n_looking;         /* of them, those that a search is below */
};

static void look_at_rule(struct making *making, uint32_t rule);

/* About how many nodes; UINT32_MAX: a loop, or a rule that stays one. */
static uint32_t weigh(struct making *making, const struct expression *expression, uint32_t *level)
{
    if (expression->kind == EXPRESSION_GRAPH || expression->kind == EXPRESSION_MEMBERS)
        return UINT32_MAX;
    uint64_t weight = expression->kind == EXPRESSION_CHARS     ? 1 + expression->n
                      : expression->kind == EXPRESSION_LITERAL ? expression->literal.len
                                                               : 1;
    if (expression->kind == EXPRESSION_REPEAT && expression->most == 0)
        return 1; /* a part that weighs nothing would be looked at for nothing, and all below it */
    for (uint32_t i = 0; i < expression->n && expression->kind != EXPRESSION_CHARS; i++) {
        uint32_t part = weigh(making, expression->parts[i], level);
        if (part == UINT32_MAX)
            return part;
        weight += expression->kind == EXPRESSION_REPEAT ? (uint64_t)part * expression->most : part;
        if (weight > SMALL_NODES)
            return UINT32_MAX;
    }
    if (expression->kind == EXPRESSION_RULE) {
        struct plan_of_rule *plan = &making->plans[expression->rule];
        look_at_rule(making, expression->rule);
        if (!plan->inlined || plan->looking)
            return UINT32_MAX;
        *level = plan->level > *level ? plan->level : *level;
        return weigh(making, making->rules->items[expression->rule].body, level);
    }
    return weight > SMALL_NODES ? UINT32_MAX : (uint32_t)weight;
}

static void look_at_rule(struct making *making, uint32_t rule)
{
    struct plan_of_rule *plan = &making->plans[rule];
    if (plan->looking || plan->level > 0 || making->n_looking == MOST_LOOKS)
        return;
    uint32_t level = 0;
    plan->looking = true;
    making->n_looking++;
    bool small = !making->rules->items[rule].apart && rule != making->rules->root &&
                 weigh(making, making->rules->items[rule].body, &level) != UINT32_MAX;
    plan->looking = false;
    making->n_looking--;
    plan->inlined = small && level < MOST_LEVELS;
    plan->level = level + 1;
}

/* ---- expressions ---- */

static uint32_t make(struct making *making, const struct expression *expression, uint32_t next);
static uint32_t make_anew(struct making *making, const struct expression *expression, uint32_t next);

static uint32_t make_literal(struct program_maker *maker, struct bytes text, uint32_t next)
{
    for (size_t i = text.len; i-- > 0;) {
        uint8_t byte = ((const uint8_t *)text.data)[i];
        struct byte_set set = {0};
        set.bits[byte >> 6] = 1ull << (byte & 63);
        next = program_match(maker, &set, next);
    }
    return next;
}

static uint32_t make_choice(struct making *making, const struct expression *choice, uint32_t next)
{
    uint32_t entry = make(making, choice->parts[choice->n - 1], next);
    for (uint32_t i = choice->n - 1; i-- > 0 && entry != PROGRAM_NONE;)
        entry = program_split(&making->maker, make(making, choice->parts[i], next), entry);
    return entry;
}

static uint32_t make_repeat(struct making *making, const struct expression *repeat, uint32_t next)
{
    const struct expression *part = repeat->parts[0];
    struct program_maker *maker = &making->maker;
    uint32_t entry = next;
    if (repeat->most == GRAMMAR_UNBOUNDED) {
        uint32_t loop = program_node(maker, NODE_SPLIT, next, next);
        uint32_t body = loop == PROGRAM_NONE ? loop : make(making, part, loop);
        if (body == PROGRAM_NONE)
            return body;
        maker->program.nodes[loop].next = body;
        entry = loop;
    } else {
        for (uint32_t i = repeat->least; i < repeat->most && entry != PROGRAM_NONE; i++) {
            uint32_t body = make(making, part, entry);
            if (body == entry)
                break; /* nothing, however often */
            entry = program_split(maker, body, next);
        }
    }
    for (uint32_t i = 0; i < repeat->least && entry != PROGRAM_NONE; i++) {
        uint32_t body = make(making, part, entry);
        if (body == entry)
            break;
        entry = body;
    }
    return entry;
}

/* Each state is a node that goes on by its edges, of which each is made before it. */
static uint32_t make_graph(struct making *making, const struct expression_graph *graph, uint32_t next)
{
    struct program_maker *maker = &making->maker;
    static const struct byte_set nothing;
    uint32_t *states = malloc(((size_t)graph->n_states + 1) * sizeof *states), first = PROGRAM_NONE;
    bool whole = states != NULL;
    for (uint32_t i = 0; i < graph->n_states && whole; i++) {
        states[i] = program_node(maker, NODE_SPLIT, 0, 0);
        whole = states[i] != PROGRAM_NONE;
    }
    for (uint32_t i = 0, e = 0; i < graph->n_states && whole; i++) {
        uint32_t entry = graph->accepting[i] ? next : PROGRAM_NONE;
        for (; e < graph->n_edges && graph->edges[e].from == i && whole; e++) {
            uint32_t one = make(making, graph->edges[e].by, states[graph->edges[e].to]);
            entry = entry == PROGRAM_NONE ? one : program_split(maker, one, entry);
            whole = entry != PROGRAM_NONE;
        }
        if (whole && entry == PROGRAM_NONE)
            entry = program_match(maker, &nothing, next);
        whole = whole && entry != PROGRAM_NONE;
        if (whole)
            maker->program.nodes[states[i]].what = maker->program.nodes[states[i]].next = entry;
    }
    if (whole)
        first = states[0];
    maker->out_of_memory |= !states;
    free(states);
    return first;
}

static bool make_member(struct making *making, const struct expression_member *member, uint32_t mark,
                        uint32_t after, uint32_t *ret_entry)
{
    uint32_t tail = make(making, member->tail, after);
    *ret_entry = make(making, member->head, program_node(&making->maker, NODE_MARK, mark, tail));
    return *ret_entry != PROGRAM_NONE;
}

/* Any member that may come, until all that must have come did and the end is taken instead of another. */
static uint32_t make_members(struct making *making, const struct expression_members *members, uint32_t next)
{
    struct program_maker *maker = &making->maker;
    uint32_t what = program_members(maker, members);
    if (what == PROGRAM_NONE)
        return what;
    const uint32_t first = maker->program.lists[what].first;
    uint32_t done = program_node(maker, NODE_DONE, what, next);
    uint32_t pick = program_node(maker, NODE_PICK, what, 0);
    uint32_t between = make(making, members->between, pick);
    uint32_t more = program_node(maker, NODE_MORE, what, between);
    if (done == PROGRAM_NONE || more == PROGRAM_NONE)
        return PROGRAM_NONE;
    uint32_t after = program_split(maker, done, more), entry;
    for (uint32_t i = 0; i < members->n_named; i++) {
        if (!make_member(making, &members->named[i], i, after, &entry))
            return PROGRAM_NONE;
        maker->program.entries[first + i] = entry;
    }
    for (uint32_t i = 0; i < members->n_others; i++) {
        if (!make_member(making, &members->others[i], PROGRAM_OTHER, after, &entry))
            return PROGRAM_NONE;
        maker->program.entries[first + members->n_named + i] = entry;
    }
    return program_split(maker, done, pick);
}

static uint32_t make_once(struct making *making, const struct expression *expression, uint32_t next)
{
    struct made *made, wanted = {.key = {expression, next}};
    HASH_FIND(hh, making->made, &wanted.key, sizeof wanted.key, made);
    if (made)
        return made->node;
    wanted.node = make_anew(making, expression, next);
    made = wanted.node == PROGRAM_NONE ? NULL : malloc(sizeof *made);
    if (made) { /* without memory it is made again next time */
        *made = wanted;
        HASH_ADD(hh, making->made, key, sizeof made->key, made);
        if (!made->hh.tbl)
            free(made);
    }
    return wanted.node;
}

static uint32_t make(struct making *making, const struct expression *expression, uint32_t next)
{
    if (next == PROGRAM_NONE)
        return next;
    return expression->shared ? make_once(making, expression, next) : make_anew(making, expression, next);
}

static uint32_t make_anew(struct making *making, const struct expression *expression, uint32_t next)
{
    struct program_maker *maker = &making->maker;
    switch (expression->kind) {
    case EXPRESSION_EMPTY:
        return next;
    case EXPRESSION_LITERAL:
        return make_literal(maker, expression->literal, next);
    case EXPRESSION_CHARS:
        return program_chars(maker, expression->ranges, expression->n, next);
    case EXPRESSION_SEQUENCE:
        for (uint32_t i = expression->n; i-- > 0 && next != PROGRAM_NONE;)
            next = make(making, expression->parts[i], next);
        return next;
    case EXPRESSION_CHOICE:
        return make_choice(making, expression, next);
    case EXPRESSION_REPEAT:
        return make_repeat(making, expression, next);
    case EXPRESSION_RULE:
        if (making->plans[expression->rule].inlined)
            return make(making, making->rules->items[expression->rule].body, next);
        return program_node(maker,
                            making->rules->items[expression->rule].has_members ? NODE_ENTER : NODE_CALL,
                            expression->rule, next); /* its entry: link_calls */
    case EXPRESSION_GRAPH:
        return make_graph(making, expression->graph, next);
    case EXPRESSION_MEMBERS:
        return make_members(making, expression->members, next);
    }
    return PROGRAM_NONE;
}

static void link_calls(struct making *making)
{
    struct program *program = &making->maker.program;
    for (uint32_t i = 0; i < program->n_nodes; i++)
        if (program->nodes[i].kind == NODE_CALL || program->nodes[i].kind == NODE_ENTER)
            program->nodes[i].what = making->plans[program->nodes[i].what].entry;
}

/* ---- all of it ---- */

/* Cuts the bytes into classes that no set divides. */
static void make_classes(struct program *program)
{
    program->n_classes = 1;
    for (uint32_t i = 0; i < program->n_sets && program->n_classes < 256; i++) {
        int16_t inside[256];
        memset(inside, -1, sizeof inside);
        bool outside[256] = {false};
        for (unsigned b = 0; b < 256; b++)
            outside[program->classes[b]] |= !byte_set_has(&program->sets[i], (uint8_t)b);
        for (unsigned b = 0; b < 256; b++) {
            uint8_t old = program->classes[b];
            if (!byte_set_has(&program->sets[i], (uint8_t)b) || !outside[old])
                continue;
            if (inside[old] < 0)
                inside[old] = (int16_t)program->n_classes++;
            program->classes[b] = (uint8_t)inside[old];
        }
    }
    for (unsigned b = 256; b-- > 0;)
        program->members[program->classes[b]] = (uint8_t)b;
}

static int check_recursion(struct making *making, struct error *err)
{
    uint32_t *entries = malloc(making->rules->n * sizeof *entries);
    for (uint32_t i = 0; entries && i < making->rules->n; i++)
        entries[i] = making->plans[i].entry;
    int r = entries ? program_check_recursion(&making->maker.program, making->rules, entries, err) : -ENOMEM;
    free(entries);
    return r;
}

static int make_rules(struct making *making, struct error *err)
{
    struct program_maker *maker = &making->maker;
    const struct rules *rules = making->rules;
    for (uint32_t i = 0; i < rules->n; i++)
        look_at_rule(making, i);
    for (uint32_t i = 0; i < rules->n; i++) {
        struct plan_of_rule *plan = &making->plans[i];
        plan->entry = PROGRAM_NONE;
        if (plan->inlined)
            continue;
        /* A node of its own for each entry, which then belongs to one rule. */
        uint32_t end = program_node(maker, NODE_RETURN, 0, 0);
        uint32_t body = end == PROGRAM_NONE ? end : make(making, rules->items[i].body, end);
        plan->entry = body == PROGRAM_NONE ? body : program_node(maker, NODE_SPLIT, body, body);
        /* A set of several ranges may have lost one and be a node all the same. */
        if (plan->entry != PROGRAM_NONE && !maker->out_of_memory && !maker->too_large)
            continue;
        if (maker->out_of_memory)
            return -ENOMEM;
        return error_set(err, GRAMMAR_E_INVALID,
                         "grammar: too large: more than %u nodes or %u character sets at the rule "
                         "\"%s\"",
                         PROGRAM_MOST_NODES, PROGRAM_MOST_SETS, rules->items[i].name);
    }
    link_calls(making);
    maker->program.start = making->plans[rules->root].entry;
    return check_recursion(making, err);
}

int program_make(const struct rules *rules, struct program *ret_program, struct error *err)
{
    struct making making = {.rules = rules};
    making.plans = calloc(rules->n, sizeof *making.plans);
    int r = making.plans ? make_rules(&making, err) : -ENOMEM;
    free(making.plans);
    struct made *made, *following;
    HASH_ITER(hh, making.made, made, following)
    {
        HASH_DEL(making.made, made);
        free(made);
    }
    if (r == 0) {
        make_classes(&making.maker.program);
        *ret_program = making.maker.program;
    } else {
        program_deinit(&making.maker.program);
    }
    return r;
}

void program_deinit(struct program *program)
{
    free(program->nodes);
    free(program->sets);
    free(program->lists);
    free(program->entries);
    free(program->required);
    *program = (struct program){0};
}
