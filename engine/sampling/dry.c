/* SPDX-License-Identifier: MIT */
/* See dry.h. The history is read once, from its end, in time that does not depend on how much of it repeats.
 * The power is made of products in a fixed order, so every backend gets the same bits. */

#include "engine/sampling/dry.h"

#include <string.h>

bool dry_is_on(const struct sampling *sampling)
{
    return sampling->dry_multiplier > 0 && sampling->dry_base >= 1 && sampling->dry_penalty_last_n != 0;
}

/* The first id that is looked at. */
static uint32_t first_of(const struct sampling *sampling, struct ids_view history)
{
    const uint32_t n = (uint32_t)history.n, most = (uint32_t)sampling->dry_penalty_last_n;
    return sampling->dry_penalty_last_n >= 0 && n > most ? n - most : 0;
}

/* Whether a sequence breaker ends with the id at `at`. */
static bool breaks(const struct dry_breakers *breakers, struct ids_view history, uint32_t first, uint32_t at)
{
    const uint32_t id = (uint32_t)history.items[at];
    const struct id_sequences *list = &breakers->sequences;
    if (id / 32 < breakers->n_words && breakers->mask[id / 32] >> id % 32 & 1)
        return true;
    for (size_t i = 0; i < list->len; i += 1 + (size_t)list->items[i]) {
        const uint32_t n = (uint32_t)list->items[i];
        if (n <= at + 1 - first &&
            memcmp(list->items + i + 1, history.items + at + 1 - n, n * sizeof *list->items) == 0)
            return true;
    }
    return false;
}

/* How far back a repeat may reach: ids after the last breaker. */
static uint32_t longest_repeat(const struct sampling *sampling, struct ids_view history, uint32_t first)
{
    uint32_t n = 0, end = (uint32_t)history.n;
    while (n < DRY_LONGEST && n < end - first &&
           !breaks(&sampling->dry_breakers, history, first, end - 1 - n))
        n++;
    return n;
}

/* Of a history read from its end, the repeats of its beginning: with the Z-algorithm (Gusfield 1997), up to
 * `most` ids long. repeats[k], of k < most, is the repeat that begins k back; the one that reaches furthest
 * back begins `begin` back and ends before `end`, and what it covers is a copy of the beginning. */
struct repeats {
    const int32_t *last; /* the id that all ends in; those before stand before it */
    uint32_t n, most;
    uint32_t begin, end;
    uint16_t lengths[DRY_LONGEST];
};

/* The length of the repeat that begins k back; k goes up from 1 by 1. */
static uint32_t repeat_at(struct repeats *repeats, uint32_t k)
{
    uint32_t length = 0;
    if (k < repeats->end) {
        const uint32_t left = repeats->end - k, known = repeats->lengths[k - repeats->begin];
        length = known < left ? known : left;
    }
    if (k + length >= repeats->end) {
        while (length < repeats->most && k + length < repeats->n &&
               repeats->last[-(int64_t)length] == repeats->last[-(int64_t)(k + length)])
            length++;
        repeats->begin = k;
        repeats->end = k + length;
    }
    if (k < repeats->most)
        repeats->lengths[k] = (uint16_t)length;
    return length;
}

bool dry_mark(const struct sampling *sampling, struct ids_view history, uint32_t n_vocab, uint16_t *lengths)
{
    const uint32_t first = first_of(sampling, history), n = (uint32_t)history.n - first;
    const uint32_t allowed = (uint32_t)sampling->dry_allowed_length;
    struct repeats repeats; /* its lengths are not to be cleared each time */
    bool any = false;
    repeats.most = longest_repeat(sampling, history, first);
    if (n == 0 || repeats.most < allowed)
        return false;
    repeats.last = history.items + history.n - 1;
    repeats.n = n;
    repeats.begin = repeats.end = 0;
    for (uint32_t k = 1; k < n; k++) {
        const uint32_t length = repeat_at(&repeats, k);
        const uint32_t next = (uint32_t)repeats.last[1 - (int64_t)k];
        if (length < allowed || next >= n_vocab)
            continue;
        lengths[next] = length > lengths[next] ? (uint16_t)length : lengths[next];
        any = true;
    }
    return any;
}

void dry_clear(const struct sampling *sampling, struct ids_view history, uint32_t n_vocab, uint16_t *lengths)
{
    for (uint32_t i = first_of(sampling, history); i < history.n; i++)
        if ((uint32_t)history.items[i] < n_vocab)
            lengths[history.items[i]] = 0;
}

float dry_penalty(const struct sampling *sampling, uint32_t length)
{
    double penalty = sampling->dry_multiplier, power = sampling->dry_base;
    for (uint32_t left = length - (uint32_t)sampling->dry_allowed_length; left > 0; left >>= 1) {
        if (left & 1)
            penalty *= power;
        power *= power;
    }
    return penalty < (double)DRY_MOST ? (float)penalty : DRY_MOST;
}
