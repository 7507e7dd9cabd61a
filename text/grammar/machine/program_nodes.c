/* SPDX-License-Identifier: MIT */
#include "text/grammar/machine/program_nodes.h"

#include <stdlib.h>
#include <string.h>

#include "common/hash.h"

static bool make_room(struct program_maker *maker, void **items, uint32_t *cap, uint32_t n, uint32_t most,
                      size_t size)
{
    if (n < *cap)
        return true;
    if (n >= most) {
        maker->too_large = true;
        return false;
    }
    uint32_t wanted = *cap ? *cap * 2 : 64;
    void *grown = realloc(*items, (size_t)wanted * size);
    if (!grown) {
        maker->out_of_memory = true;
        return false;
    }
    *items = grown;
    *cap = wanted;
    return true;
}

uint32_t program_node(struct program_maker *maker, enum node_kind kind, uint32_t what, uint32_t next)
{
    struct program *program = &maker->program;
    if (what == PROGRAM_NONE || next == PROGRAM_NONE ||
        !make_room(maker, (void **)&program->nodes, &maker->nodes_cap, program->n_nodes, PROGRAM_MOST_NODES,
                   sizeof *program->nodes))
        return PROGRAM_NONE;
    program->nodes[program->n_nodes] = (struct node){kind, what, next};
    return program->n_nodes++;
}

uint32_t program_match(struct program_maker *maker, const struct byte_set *set, uint32_t next)
{
    struct program *program = &maker->program;
    uint32_t at = (uint32_t)hash64(set, sizeof *set, 0) % PROGRAM_SET_PLACES;
    while (maker->places[at] && memcmp(&program->sets[maker->places[at] - 1], set, sizeof *set) != 0)
        at = (at + 1) % PROGRAM_SET_PLACES;
    if (maker->places[at] == 0) {
        if (!make_room(maker, (void **)&program->sets, &maker->sets_cap, program->n_sets, PROGRAM_MOST_SETS,
                       sizeof *set))
            return PROGRAM_NONE;
        program->sets[program->n_sets++] = *set;
        maker->places[at] = (uint16_t)program->n_sets;
    }
    return program_node(maker, NODE_MATCH, maker->places[at] - 1u, next);
}

static bool append_entries(struct program_maker *maker, uint32_t n)
{
    struct program *program = &maker->program;
    for (; n > 0; n--) {
        if (!make_room(maker, (void **)&program->entries, &maker->entries_cap, program->n_entries,
                       PROGRAM_MOST_MEMBERS, sizeof *program->entries))
            return false;
        program->entries[program->n_entries++] = PROGRAM_NONE;
    }
    return true;
}

static bool append_required(struct program_maker *maker, const struct expression_members *members)
{
    struct program *program = &maker->program;
    for (uint32_t i = 0; i < members->n_named; i++) {
        if (i % 64 == 0) {
            if (!make_room(maker, (void **)&program->required, &maker->required_cap, program->n_required,
                           PROGRAM_MOST_MEMBERS, sizeof *program->required))
                return false;
            program->required[program->n_required++] = 0;
        }
        program->required[program->n_required - 1] |= (uint64_t)members->named[i].required << i % 64;
    }
    return true;
}

uint32_t program_members(struct program_maker *maker, const struct expression_members *members)
{
    struct program *program = &maker->program;
    struct program_members made = {.first = program->n_entries,
                                   .n_named = members->n_named,
                                   .n_others = members->n_others,
                                   .least = members->least,
                                   .most = members->most,
                                   .required = program->n_required};
    for (uint32_t i = 0; i < members->n_named; i++)
        made.n_required += members->named[i].required;
    if (!append_entries(maker, members->n_named + members->n_others) || !append_required(maker, members) ||
        !make_room(maker, (void **)&program->lists, &maker->lists_cap, program->n_lists, PROGRAM_MOST_MEMBERS,
                   sizeof made))
        return PROGRAM_NONE;
    if (made.least > program->most_count)
        program->most_count = made.least;
    if (made.most != GRAMMAR_UNBOUNDED && made.most > program->most_count)
        program->most_count = made.most;
    program->lists[program->n_lists] = made;
    return program->n_lists++;
}
