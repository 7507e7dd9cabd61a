/* SPDX-License-Identifier: MIT */
#ifndef TEXT_GRAMMAR_AUTOMATON_AUTOMATON_H
#define TEXT_GRAMMAR_AUTOMATON_AUTOMATON_H

/* Deterministic automata over code points: for texts of which several things are said at once, or what they
 * must not be. Code points that no automaton tells apart are of one class.
 *
 * They live in the arena of the rules and never change. A function gives NULL without memory, for an argument
 * that is NULL, or when the work or the states are too many: the flags of automata then say so. */

#include "text/grammar/expression.h"

#define AUTOMATON_MOST_STATES 8192u

struct automata {
    struct rules *rules;
    uint64_t work, most_work; /* steps taken; no more than so many */
    bool too_large;
    bool starved; /* there was no memory */
};

struct automaton {
    uint32_t n_states, n_classes; /* state 0 is the first */
    const uint32_t *firsts;       /* [n_classes] ascending from 0: the first code point of each class */
    const uint32_t *next;         /* [n_states][n_classes] */
    const bool *accepting;        /* [n_states] */
};

/* Texts that an expression of characters is of: no rules, graphs or members in it. */
const struct automaton *automaton_of(struct automata *automata, const struct expression *expression);

/* Texts of any code points; those of least … most code points. */
const struct automaton *automaton_of_length(struct automata *automata, uint32_t least, uint32_t most);

/* An automaton that is told by a function: states are numbers, `start` the first. */
struct automaton_teller {
    const void *arg;
    uint64_t start;
    uint64_t (*step)(const void *arg, uint64_t state, uint32_t point);
    bool (*accepts)(const void *arg, uint64_t state);
    const uint32_t *firsts; /* [n_classes], as above; `step` is asked for the first of each class */
    uint32_t n_classes;
};
const struct automaton *automaton_told(struct automata *automata, const struct automaton_teller *teller);

enum automaton_pair { AUTOMATON_BOTH, AUTOMATON_EITHER, AUTOMATON_WITHOUT /* the first, not the second */ };
const struct automaton *automaton_of_pair(struct automata *automata, enum automaton_pair pair,
                                          const struct automaton *a, const struct automaton *b);

/* The same texts with as few states as can be. */
const struct automaton *automaton_least(struct automata *automata, const struct automaton *automaton);

bool automaton_is_empty(const struct automaton *automaton); /* it is of no text */
bool automaton_accepts(const struct automaton *automaton, struct bytes text);

/* The texts as an expression; `spell`: what stands for one character of a set, as in regex.h, or NULL. An
 * automaton of no text is an expression of none. */
const struct expression *
automaton_expression(struct automata *automata, const struct automaton *automaton,
                     const struct expression *(*spell)(void *arg, const struct expression *chars), void *arg);

#endif
