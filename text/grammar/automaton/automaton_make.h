/* SPDX-License-Identifier: MIT */
#ifndef TEXT_GRAMMAR_AUTOMATON_AUTOMATON_MAKE_H
#define TEXT_GRAMMAR_AUTOMATON_AUTOMATON_MAKE_H

/* The tables of an automaton under construction: a state is a key of bytes (a list of nodes, a pair of
 * states, a number), stored once; states are numbered in the order in which their keys are first met. After a
 * failure `failed` stays set and further calls do nothing. */

#include "text/grammar/automaton/automaton.h"
#include "text/grammar/automaton/state_keys.h"

struct automaton_making {
    struct automata *automata;
    struct state_keys keys;
    uint32_t *next; /* [keys.n][n_classes] */
    bool *accepting;
    uint32_t states_cap, n_classes;
    const uint32_t *firsts; /* [n_classes], in the arena of the rules */
    bool failed;
};

/* Charges steps; false: too many. */
bool automata_spend(struct automata *automata, uint64_t steps);

void automaton_begin(struct automaton_making *making, struct automata *automata, const uint32_t *firsts,
                     uint32_t n_classes);

/* The state of a key; the caller sets its row of `next`. */
uint32_t automaton_state(struct automaton_making *making, const void *key, size_t len, bool accepting);

/* The automaton, or NULL if anything failed; frees the tables. */
const struct automaton *automaton_finish(struct automaton_making *making);

#endif
