/* SPDX-License-Identifier: MIT */
#ifndef TEXT_GRAMMAR_AUTOMATON_AUTOMATON_H
#define TEXT_GRAMMAR_AUTOMATON_AUTOMATON_H

/* Deterministic automata over code points: for texts with several conditions at once, or with conditions on
 * what they must not be. Code points that an automaton does not distinguish form a class.
 *
 * Automata are in the arena of the rules and immutable. Functions return NULL if out of memory, for a NULL
 * argument, or if work or states exceed their bounds: see the flags in struct automata. */

#include "text/grammar/expression.h"

#define AUTOMATON_MOST_STATES 8192u

struct automata {
    struct rules *rules;
    uint64_t work, most_work; /* steps so far; their limit */
    bool too_large;
    bool starved; /* out of memory */
};

struct automaton {
    uint32_t n_states, n_classes; /* state 0 is the first */
    const uint32_t *firsts;       /* [n_classes] ascending from 0: the first code point of each class */
    const uint32_t *next;         /* [n_states][n_classes] */
    const bool *accepting;        /* [n_states] */
};

/* The texts of an expression of characters, without rules, graphs or members. */
const struct automaton *automaton_of(struct automata *automata, const struct expression *expression);

/* All texts of least … most code points. */
const struct automaton *automaton_of_length(struct automata *automata, uint32_t least, uint32_t most);

/* An automaton given by functions: states are numbers, `start` the first. */
struct automaton_teller {
    const void *arg;
    uint64_t start;
    uint64_t (*step)(const void *arg, uint64_t state, uint32_t point);
    bool (*accepts)(const void *arg, uint64_t state);
    const uint32_t *firsts; /* [n_classes], as above; `step` is called for the first of each class */
    uint32_t n_classes;
};
const struct automaton *automaton_told(struct automata *automata, const struct automaton_teller *teller);

enum automaton_pair { AUTOMATON_BOTH, AUTOMATON_EITHER, AUTOMATON_WITHOUT /* the first, not the second */ };
const struct automaton *automaton_of_pair(struct automata *automata, enum automaton_pair pair,
                                          const struct automaton *a, const struct automaton *b);

/* The minimal automaton for the same texts. */
const struct automaton *automaton_least(struct automata *automata, const struct automaton *automaton);

bool automaton_is_empty(const struct automaton *automaton); /* it accepts no text */
bool automaton_accepts(const struct automaton *automaton, struct bytes text);

/* The texts as an expression; `spell` spells one character of a set, as in regex.h, or NULL. An empty
 * automaton becomes an expression without texts. */
const struct expression *
automaton_expression(struct automata *automata, const struct automaton *automaton,
                     const struct expression *(*spell)(void *arg, const struct expression *chars), void *arg);

#endif
