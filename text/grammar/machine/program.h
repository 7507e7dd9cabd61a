/* SPDX-License-Identifier: MIT */
#ifndef TEXT_GRAMMAR_MACHINE_PROGRAM_H
#define TEXT_GRAMMAR_MACHINE_PROGRAM_H

/* A grammar compiled to run over bytes: a small pushdown automaton.
 *
 * Each rule is a graph of nodes; a node takes a byte of a set, forks, calls a rule, or returns. Code points
 * are sequences of UTF-8 bytes. Small rules without loops and calls are inlined, so only larger rules have
 * frames. What such a rule accepts does not depend on its caller, which machine.c uses.
 *
 * Immutable. */

#include <stdint.h>

#include "text/grammar/expression.h"

enum node_kind {
    NODE_MATCH, /* takes a byte of `what`, a set; continues at next */
    NODE_SPLIT, /* continues at next and at `what` */
    NODE_CALL,  /* calls `what`, the first node of a rule; continues at next when it returns */
    NODE_RETURN,
    /* For members in any order; the frame has the set of members so far (machine_sets.h): */
    NODE_ENTER, /* as NODE_CALL, for a rule with members: always a frame, with the empty set */
    NODE_PICK,  /* continues at each member of `what` that may come now */
    NODE_MARK,  /* adds the member `what`, or PROGRAM_OTHER, to the set; continues at next */
    NODE_MORE,  /* continues at next if one of the members of `what` may come */
    NODE_DONE   /* continues at next if all required members of `what` have come */
};

#define PROGRAM_OTHER (UINT32_MAX - 1)

struct node {
    uint32_t kind;
    uint32_t what;
    uint32_t next;
};

struct byte_set {
    uint64_t bits[4];
};

/* Members in any order: all of them, and the required ones. */
struct program_members {
    uint32_t first; /* of their entries, the named ones and then the others */
    uint32_t n_named, n_others, n_required;
    uint32_t least, most;
    uint32_t required; /* index of the words of the set of required ones, [(n_named + 63) / 64] */
};

#define PROGRAM_MOST_NODES   (1u << 18)
#define PROGRAM_MOST_SETS    4096u
#define PROGRAM_MOST_MEMBERS (1u << 16) /* all together */

struct program {
    struct node *nodes; /* [n_nodes] */
    uint32_t n_nodes;
    struct byte_set *sets; /* [n_sets] */
    uint32_t n_sets;
    struct program_members *lists; /* [n_lists] */
    uint32_t *entries;             /* [n_entries]: the first node of each member */
    uint64_t *required;            /* [n_required] words */
    uint32_t n_lists, n_entries, n_required;
    uint32_t most_count; /* the highest bound on a number of members; more are not counted */
    uint32_t start;      /* the first node of the root */
    /* Bytes that no set distinguishes share a class. */
    uint8_t classes[256];
    uint8_t members[256]; /* [n_classes]: a byte of each */
    uint32_t n_classes;
};

/* 0; GRAMMAR_E_INVALID: too large, or a rule begins with itself; -ENOMEM. */
int program_make(const struct rules *rules, struct program *ret_program, struct error *err);
void program_deinit(struct program *program);

static inline bool byte_set_has(const struct byte_set *set, uint8_t byte)
{
    return set->bits[byte >> 6] >> (byte & 63) & 1;
}

#endif
