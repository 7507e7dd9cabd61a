/* SPDX-License-Identifier: MIT */
/* Left recursion. A rule that may begin with itself, before a byte was taken, would call itself for ever:
 * that is found here, over calls of rules that may be empty too, and refused by the rule's name. */

#include "text/grammar/machine/program_recursion.h"

#include <errno.h>
#include <stdlib.h>

#include "text/grammar/machine/program_nodes.h"

#define MOST_WORK (1u << 26) /* steps of the search: a second at most */

/* A search over what a rule can reach before a byte is taken. Nodes are marked by the round that saw them. */
struct search {
    const struct program *program;
    uint32_t *marks, *stack; /* [n_nodes]; room for all that nodes can push */
    uint32_t round;
    uint32_t *rule_of; /* [n_nodes]: of an entry, its rule; else PROGRAM_NONE */
    bool *empty;       /* [n rules]: may be empty, as far as is known */
    uint64_t work;
};

static uint32_t push_members(struct search *search, const struct program_members *members, uint32_t n)
{
    for (uint32_t i = 0; i < members->n_named + members->n_others; i++)
        search->stack[n++] = search->program->entries[members->first + i];
    return n;
}

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
        uint32_t rule = PROGRAM_NONE;
        switch ((enum node_kind)node->kind) {
        case NODE_MATCH:
            break;
        case NODE_RETURN:
            empty = true;
            break;
        case NODE_CALL:
        case NODE_ENTER:
            rule = search->rule_of[node->what];
            if (search->empty[rule])
                search->stack[n++] = node->next;
            if (found)
                found(arg, rule);
            break;
        case NODE_PICK:
            n = push_members(search, &search->program->lists[node->what], n);
            break;
        case NODE_SPLIT:
            search->stack[n++] = node->what;
            search->stack[n++] = node->next;
            break;
        case NODE_MARK: /* whatever came before */
        case NODE_MORE:
        case NODE_DONE:
            search->stack[n++] = node->next;
            break;
        }
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
static uint32_t find_cycle(uint32_t n, const uint32_t *first_edge, const struct edges *edges)
{
    uint32_t left = n;
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

static int search_rules(struct search *search, const struct rules *rules, const uint32_t *entries,
                        struct error *err)
{
    uint32_t n = rules->n;
    struct edges edges = {0};
    uint32_t *first_edge = calloc(n + 1, sizeof *first_edge);
    int r = first_edge ? 0 : -ENOMEM;
    for (bool changed = true; changed && r == 0;) {
        changed = false;
        for (uint32_t i = n; i-- > 0 && r == 0;) {
            uint32_t entry = entries[i];
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
        if (entries[i] != PROGRAM_NONE)
            walk(search, entries[i], note_edge, &edges);
        first_edge[i + 1] = edges.n;
        r = edges.failed ? -ENOMEM : 0;
    }
    uint32_t found = r == 0 ? find_cycle(n, first_edge, &edges) : PROGRAM_NONE;
    if (found != PROGRAM_NONE)
        r = error_set(err, GRAMMAR_E_INVALID,
                      "grammar: the rule \"%s\" is left-recursive, which is not supported",
                      rules->items[found].name);
    free(first_edge);
    free(edges.to);
    return r;
}

int program_check_recursion(const struct program *program, const struct rules *rules, const uint32_t *entries,
                            struct error *err)
{
    size_t n = program->n_nodes;
    struct search search = {.program = program};
    search.marks = calloc(n, sizeof *search.marks);
    search.stack = calloc(2 * n + program->n_entries + 2, sizeof *search.stack);
    search.rule_of = malloc(n * sizeof *search.rule_of);
    search.empty = calloc(rules->n, sizeof *search.empty);
    int r = search.marks && search.stack && search.rule_of && search.empty ? 0 : -ENOMEM;
    for (size_t i = 0; i < n && r == 0; i++)
        search.rule_of[i] = PROGRAM_NONE;
    for (uint32_t i = 0; i < rules->n && r == 0; i++)
        if (entries[i] != PROGRAM_NONE)
            search.rule_of[entries[i]] = i;
    if (r == 0)
        r = search_rules(&search, rules, entries, err);
    free(search.marks);
    free(search.stack);
    free(search.rule_of);
    free(search.empty);
    return r;
}
