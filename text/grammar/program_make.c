/* SPDX-License-Identifier: MIT */
/* From expressions to nodes.
 *
 * An expression is made from its end to its beginning. {m,n} is n copies; the bound on nodes bounds what that
 * can come to, and each copy is charged before it is made. A rule that may begin with itself, before a byte
 * was taken, would call itself for ever: that is found here, over calls of rules that may be empty too, and
 * refused by the rule's name. */

#include "text/grammar/program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "text/grammar/program_chars.h"
#include "text/grammar/program_nodes.h"

#define HASH_NONFATAL_OOM 1 /* what was not added has no table */
#include <uthash.h>

#define MOST_WORK   (1u << 26) /* steps of the search for left recursion: a second at most */
#define SMALL_NODES 96         /* of a rule that stands in its callers' place */
#define MOST_LEVELS 8          /* of such rules in one another */
#define MOST_LOOKS  32         /* rules that are looked at below one another: the stack is not endless */

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
        return program_node(maker, NODE_CALL, expression->rule, next); /* its entry: link_calls */
    }
    return PROGRAM_NONE;
}

static void link_calls(struct making *making)
{
    struct program *program = &making->maker.program;
    for (uint32_t i = 0; i < program->n_nodes; i++)
        if (program->nodes[i].kind == NODE_CALL)
            program->nodes[i].what = making->plans[program->nodes[i].what].entry;
}

/* ---- left recursion ---- */

/* A search over what a rule can reach before a byte is taken. Nodes are marked by the round that saw them. */
struct search {
    const struct program *program;
    uint32_t *marks, *stack; /* [n_nodes], and room for two more */
    uint32_t round;
    uint32_t *rule_of; /* [n_nodes]: of an entry, its rule; else PROGRAM_NONE */
    bool *empty;       /* [n rules]: may be empty, as far as is known */
    uint64_t work;
};

/* Goes through what `rule` begins with; calls `found` of each rule there. True: it may be empty. */
static bool walk(struct search *search, uint32_t entry, void (*found)(void *arg, uint32_t rule), void *arg)
{
    uint32_t n = 0;
    bool empty = false;
    search->round++;
    search->stack[n++] = entry;
    while (n > 0) {
        uint32_t at = search->stack[--n];
        if (search->marks[at] == search->round)
            continue;
        search->marks[at] = search->round;
        search->work++;
        const struct node *node = &search->program->nodes[at];
        uint32_t rule = node->kind == NODE_CALL ? search->rule_of[node->what] : PROGRAM_NONE;
        if (node->kind == NODE_RETURN)
            empty = true;
        if (node->kind == NODE_SPLIT && search->marks[node->what] != search->round)
            search->stack[n++] = node->what;
        if (node->kind == NODE_SPLIT || (node->kind == NODE_CALL && search->empty[rule]))
            search->stack[n++] = node->next;
        if (node->kind == NODE_CALL && found)
            found(arg, rule);
    }
    return empty;
}

struct edges {
    uint32_t *to;
    uint32_t n, cap;
    bool failed;
};

static void note_edge(void *arg, uint32_t rule)
{
    struct edges *edges = arg;
    if (edges->n == edges->cap) {
        uint32_t cap = edges->cap ? edges->cap * 2 : 256;
        uint32_t *to = realloc(edges->to, cap * sizeof *to);
        if (!to) {
            edges->failed = true;
            return;
        }
        edges->to = to;
        edges->cap = cap;
    }
    edges->to[edges->n++] = rule;
}

/* A rule on a cycle of beginnings, or PROGRAM_NONE: those that begin with no rule left are taken away, one
 * after the other, and what remains is on a cycle or leads to one. */
static uint32_t find_cycle(const struct making *making, const uint32_t *first_edge, const struct edges *edges)
{
    uint32_t n = making->rules->n, left = n;
    uint8_t *gone = calloc(n + 1, 1);
    uint32_t found = PROGRAM_NONE;
    for (bool changed = gone != NULL; changed;) {
        changed = false;
        for (uint32_t i = n; i-- > 0;) {
            bool open = false;
            for (uint32_t e = first_edge[i]; e < first_edge[i + 1] && !gone[i]; e++)
                open |= !gone[edges->to[e]];
            if (!gone[i] && !open) {
                gone[i] = 1;
                left--;
                changed = true;
            }
        }
    }
    for (uint32_t i = 0; gone && left > 0 && i < n && found == PROGRAM_NONE; i++)
        if (!gone[i])
            found = i;
    /* From there on along edges to rules that are left: one that comes twice is on the cycle. */
    for (uint32_t step = 0; gone && found != PROGRAM_NONE && step < n; step++)
        for (uint32_t e = first_edge[found]; e < first_edge[found + 1]; e++)
            if (!gone[edges->to[e]]) {
                found = edges->to[e];
                break;
            }
    free(gone);
    return found;
}

static int search_rules(struct making *making, struct search *search, struct error *err)
{
    uint32_t n = making->rules->n;
    struct edges edges = {0};
    uint32_t *first_edge = calloc(n + 1, sizeof *first_edge);
    int r = first_edge ? 0 : -ENOMEM;
    for (bool changed = true; changed && r == 0;) {
        changed = false;
        for (uint32_t i = n; i-- > 0 && r == 0;) {
            uint32_t entry = making->plans[i].entry;
            if (entry == PROGRAM_NONE || search->empty[i])
                continue;
            search->empty[i] = walk(search, entry, NULL, NULL);
            changed |= search->empty[i];
            if (search->work > MOST_WORK)
                r = error_set(err, GRAMMAR_E_INVALID, "grammar: the rules are too many and too large");
        }
    }
    for (uint32_t i = 0; i < n && r == 0; i++) {
        first_edge[i] = edges.n;
        if (making->plans[i].entry != PROGRAM_NONE)
            walk(search, making->plans[i].entry, note_edge, &edges);
        first_edge[i + 1] = edges.n;
        r = edges.failed ? -ENOMEM : 0;
    }
    uint32_t found = r == 0 ? find_cycle(making, first_edge, &edges) : PROGRAM_NONE;
    if (found != PROGRAM_NONE)
        r = error_set(err, GRAMMAR_E_INVALID,
                      "grammar: the rule \"%s\" is left-recursive, which is not supported",
                      making->rules->items[found].name);
    free(first_edge);
    free(edges.to);
    return r;
}

static int check_left_recursion(struct making *making, struct error *err)
{
    const struct program *program = &making->maker.program;
    size_t n = program->n_nodes;
    struct search search = {.program = program};
    search.marks = calloc(n, sizeof *search.marks);
    search.stack = calloc(2 * n + 2, sizeof *search.stack);
    search.rule_of = malloc(n * sizeof *search.rule_of);
    search.empty = calloc(making->rules->n, sizeof *search.empty);
    int r = search.marks && search.stack && search.rule_of && search.empty ? 0 : -ENOMEM;
    for (size_t i = 0; i < n && r == 0; i++)
        search.rule_of[i] = PROGRAM_NONE;
    for (uint32_t i = 0; i < making->rules->n && r == 0; i++)
        if (making->plans[i].entry != PROGRAM_NONE)
            search.rule_of[making->plans[i].entry] = i;
    if (r == 0)
        r = search_rules(making, &search, err);
    free(search.marks);
    free(search.stack);
    free(search.rule_of);
    free(search.empty);
    return r;
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
    return check_left_recursion(making, err);
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
    *program = (struct program){0};
}
