/* SPDX-License-Identifier: MIT */
/* See machine_sets.h. A member may come only if there is room behind it for all that still must come, so no
 * text that was allowed leads to where nothing is. */

#include "text/grammar/machine/machine_sets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"

#define HEADS     1024u
#define MOST_SETS (1u << 17)

/* ---- the books ---- */

static int grow(void **items, uint32_t *cap, uint32_t wanted, size_t size)
{
    uint32_t new_cap = *cap ? *cap : 64;
    while (new_cap < wanted)
        new_cap *= 2;
    if (new_cap == *cap)
        return 0;
    void *grown = realloc(*items, (size_t)new_cap * size);
    if (!grown)
        return -ENOMEM;
    *items = grown;
    *cap = new_cap;
    return 0;
}

/* The set of these words, the last of which is not 0. */
static int intern(struct member_sets *sets, const uint64_t *words, uint32_t n_words, uint32_t count,
                  uint32_t *ret_set)
{
    uint32_t *head = &sets->heads[hash64(words, n_words * sizeof *words, count) % HEADS];
    for (uint32_t i = *head; i; i = sets->items[i].chain) {
        const struct member_set *set = &sets->items[i];
        if (set->n_words == n_words && set->count == count &&
            memcmp(sets->words + set->at, words, n_words * sizeof *words) == 0) {
            *ret_set = i;
            return 0;
        }
    }
    if (sets->n == MOST_SETS || n_words > MEMBER_SETS_MOST_WORDS - sets->n_words)
        return 1;
    int r = grow((void **)&sets->items, &sets->cap, sets->n + 1, sizeof *sets->items);
    if (r == 0)
        r = grow((void **)&sets->words, &sets->words_cap, sets->n_words + n_words + 1, sizeof *sets->words);
    if (r < 0)
        return r;
    struct member_set *set = &sets->items[sets->n];
    *set = (struct member_set){.at = sets->n_words, .n_words = n_words, .count = count, .chain = *head};
    for (uint32_t i = 0; i < n_words; i++) {
        sets->words[sets->n_words++] = words[i];
        set->n_named += (uint32_t)__builtin_popcountll(words[i]);
    }
    *head = *ret_set = sets->n++;
    return 0;
}

int member_sets_init(struct member_sets *sets)
{
    *sets = (struct member_sets){0};
    sets->heads = calloc(HEADS, sizeof *sets->heads);
    int r = sets->heads ? grow((void **)&sets->items, &sets->cap, 1, sizeof *sets->items) : -ENOMEM;
    if (r == 0)
        r = grow((void **)&sets->words, &sets->words_cap, 1, sizeof *sets->words);
    if (r < 0) {
        member_sets_deinit(sets);
        return r;
    }
    sets->items[0] = (struct member_set){0};
    sets->n = 1;
    return 0;
}

void member_sets_deinit(struct member_sets *sets)
{
    free(sets->items);
    free(sets->words);
    free(sets->heads);
    *sets = (struct member_sets){0};
}

static int copy_with(struct member_sets *sets, const struct member_sets *from, uint32_t set, uint32_t member,
                     uint32_t count, uint32_t *ret_set)
{
    const struct member_set *old = &from->items[set];
    uint32_t n = old->n_words;
    if (member != PROGRAM_OTHER && member / 64 + 1 > n)
        n = member / 64 + 1;
    if (n == 0 && count == 0) {
        *ret_set = MEMBER_SETS_EMPTY;
        return 0;
    }
    uint64_t *words = calloc(n + (size_t)1, sizeof *words);
    if (!words)
        return -ENOMEM;
    memcpy(words, from->words + old->at, old->n_words * sizeof *words);
    if (member != PROGRAM_OTHER)
        words[member / 64] |= 1ull << member % 64;
    int r = intern(sets, words, n, count, ret_set);
    free(words);
    return r;
}

int member_sets_add(struct member_sets *sets, uint32_t set, uint32_t member, uint32_t most_count,
                    uint32_t *ret_set)
{
    uint32_t count = sets->items[set].count;
    return copy_with(sets, sets, set, member, count < most_count ? count + 1 : count, ret_set);
}

int member_sets_take(struct member_sets *sets, const struct member_sets *from, uint32_t set,
                     uint32_t *ret_set)
{
    return copy_with(sets, from, set, PROGRAM_OTHER, from->items[set].count, ret_set);
}

/* ---- what may come ---- */

static bool has(const struct member_sets *sets, uint32_t set, uint32_t member)
{
    const struct member_set *own = &sets->items[set];
    return member / 64 < own->n_words && (sets->words[own->at + member / 64] >> member % 64 & 1);
}

/* How many that must come did not. */
static uint32_t missing(const struct member_sets *sets, uint32_t set, const struct program *program,
                        const struct program_members *members)
{
    const struct member_set *own = &sets->items[set];
    uint32_t n = members->n_required;
    for (uint32_t i = 0; i < own->n_words && n > 0; i++)
        n -= (uint32_t)__builtin_popcountll(sets->words[own->at + i] &
                                            program->required[members->required + i]);
    return n;
}

/* Whether one may come that must not. */
static bool has_room(const struct member_sets *sets, uint32_t set, const struct program *program,
                     const struct program_members *members)
{
    return members->most == GRAMMAR_UNBOUNDED ||
           members->most - sets->items[set].count > missing(sets, set, program, members);
}

bool member_sets_may(const struct member_sets *sets, uint32_t set, const struct program *program,
                     const struct program_members *members, uint32_t member)
{
    if (member == PROGRAM_OTHER)
        return has_room(sets, set, program, members);
    bool required = program->required[members->required + member / 64] >> member % 64 & 1;
    return !has(sets, set, member) && (required || has_room(sets, set, program, members));
}

bool member_sets_more(const struct member_sets *sets, uint32_t set, const struct program *program,
                      const struct program_members *members)
{
    if (missing(sets, set, program, members) > 0)
        return true;
    bool any = members->n_others > 0 || sets->items[set].n_named < members->n_named;
    return any && has_room(sets, set, program, members);
}

bool member_sets_done(const struct member_sets *sets, uint32_t set, const struct program *program,
                      const struct program_members *members)
{
    return missing(sets, set, program, members) == 0 && sets->items[set].count >= members->least;
}
