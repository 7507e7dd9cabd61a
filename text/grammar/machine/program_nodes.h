/* SPDX-License-Identifier: MIT */
#ifndef TEXT_GRAMMAR_MACHINE_PROGRAM_NODES_H
#define TEXT_GRAMMAR_MACHINE_PROGRAM_NODES_H

/* The nodes of a program under construction. They are built from the end of a text to its start, so each
 * knows its successor. PROGRAM_NONE means that there was no room or memory for a node; functions return it if
 * they get it as a successor. */

#include "text/grammar/machine/program.h"

#define PROGRAM_NONE       UINT32_MAX
#define PROGRAM_SET_PLACES (2 * PROGRAM_MOST_SETS)

struct program_maker {
    struct program program;
    uint32_t nodes_cap, sets_cap, lists_cap, entries_cap, required_cap;
    uint16_t places[PROGRAM_SET_PLACES]; /* of the sets, by their hash: 1 + the index; 0: free */
    bool out_of_memory, too_large;
};

uint32_t program_node(struct program_maker *maker, enum node_kind kind, uint32_t what, uint32_t next);
uint32_t program_match(struct program_maker *maker, const struct byte_set *set, uint32_t next);

/* Adds these members to the program and returns their index; the caller sets their entries. */
uint32_t program_members(struct program_maker *maker, const struct expression_members *members);

static inline uint32_t program_split(struct program_maker *maker, uint32_t a, uint32_t b)
{
    return a == b ? a : program_node(maker, NODE_SPLIT, b, a);
}

#endif
