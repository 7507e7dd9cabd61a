/* SPDX-License-Identifier: MIT */
/* A radix descent over keys: it answers how far an order is taken without sorting, in bounded time whatever
 * the logits. */

#include "engine/sampling/candidates.h"

#include <errno.h>
#include <stdlib.h>

#define DIGIT_BITS CANDIDATES_DIGIT_BITS
#define DIGITS     CANDIDATES_DIGITS

int candidates_init(struct candidates *all, uint32_t capacity)
{
    const size_t n = (size_t)capacity + 1;
    all->items = malloc(n * sizeof *all->items);
    all->keys = malloc(n * sizeof *all->keys);
    all->open = malloc(n * sizeof *all->open);
    return all->items && all->keys && all->open ? 0 : -ENOMEM;
}

void candidates_deinit(struct candidates *all)
{
    free(all->items);
    free(all->keys);
    free(all->open);
}

/* Looks at one digit of the key a round, among those that share the digits before. */
uint64_t candidates_threshold(struct candidates *all, uint32_t n, bool by_mass, uint64_t target)
{
    uint32_t *open = all->open;
    uint32_t n_open = n;
    for (int shift = 64 - DIGIT_BITS; n_open > 0; shift = shift > DIGIT_BITS ? shift - DIGIT_BITS : 0) {
        memset(all->sums, 0, sizeof all->sums);
        for (uint32_t i = 0; i < n_open; i++) {
            const struct candidate *c = &all->items[n_open == n ? i : open[i]];
            all->sums[c->key >> shift & (DIGITS - 1)] += by_mass ? c->mass : 1;
        }
        int digit = DIGITS - 1;
        while (digit >= 0 && all->sums[digit] < target)
            target -= all->sums[digit--];
        if (digit < 0)
            return 0;
        uint32_t kept = 0;
        uint64_t last = 0;
        for (uint32_t i = 0; i < n_open; i++) {
            uint32_t at = n_open == n ? i : open[i];
            if ((int)(all->items[at].key >> shift & (DIGITS - 1)) != digit)
                continue;
            last = all->items[at].key;
            open[kept++] = at;
        }
        if (kept == 1 || shift == 0)
            return last;
        n_open = kept;
    }
    return 0;
}

uint32_t candidates_keep(struct candidates *all, uint32_t n, uint64_t threshold)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++)
        if (all->items[i].key >= threshold)
            all->items[kept++] = all->items[i];
    return kept;
}

uint32_t candidates_keep_mass(struct candidates *all, uint32_t n, uint64_t least)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++)
        if (all->items[i].mass >= least)
            all->items[kept++] = all->items[i];
    return kept;
}
