/* SPDX-License-Identifier: MIT */
#ifndef TEXT_GRAMMAR_MACHINE_MACHINE_SETS_H
#define TEXT_GRAMMAR_MACHINE_MACHINE_SETS_H

/* Numbers the sets of members so far, for members in any order. Each set is stored once, so objects with a
 * hundred members need only the sets that answers have reached, not 2^100. */

#include "text/grammar/machine/program.h"

#define MEMBER_SETS_EMPTY 0u

struct member_set {
    uint32_t at, n_words; /* its words, without trailing zeros */
    uint32_t n_named;     /* bits set in them */
    uint32_t count;       /* of all members, up to most_count (member_sets_add) */
    uint32_t chain;
};

struct member_sets {
    struct member_set *items; /* [n]; the first is the empty one */
    uint32_t n, cap;
    uint64_t *words; /* [n_words] */
    uint32_t n_words, words_cap;
    uint32_t *heads; /* chains by hash */
};

#define MEMBER_SETS_MOST_WORDS (1u << 20)

/* 0 or -ENOMEM. */
int member_sets_init(struct member_sets *sets);
void member_sets_deinit(struct member_sets *sets);

/* The set with one more member, a named one or PROGRAM_OTHER. The count stops at `most_count`, beyond which
 * it makes no difference. 0; 1: there are too many sets; -ENOMEM. */
int member_sets_add(struct member_sets *sets, uint32_t set, uint32_t member, uint32_t most_count,
                    uint32_t *ret_set);

/* Adds a set of another table to this one. Results as member_sets_add. */
int member_sets_take(struct member_sets *sets, const struct member_sets *from, uint32_t set,
                     uint32_t *ret_set);

/* Whether this member (a named one or PROGRAM_OTHER) may come next; whether any may; whether the end may. */
bool member_sets_may(const struct member_sets *sets, uint32_t set, const struct program *program,
                     const struct program_members *members, uint32_t member);
bool member_sets_more(const struct member_sets *sets, uint32_t set, const struct program *program,
                      const struct program_members *members);
bool member_sets_done(const struct member_sets *sets, uint32_t set, const struct program *program,
                      const struct program_members *members);

#endif
