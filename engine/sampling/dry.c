/* SPDX-License-Identifier: MIT */
/* See dry.h. Each place that ends in the last id is followed backwards as far as it agrees. The power is made
 * of products in a fixed order, so that every backend gets the same bits. */

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

bool dry_mark(const struct sampling *sampling, struct ids_view history, uint32_t n_vocab, uint16_t *lengths)
{
    const uint32_t n = (uint32_t)history.n, first = first_of(sampling, history);
    const uint32_t most = longest_repeat(sampling, history, first);
    const uint32_t allowed = (uint32_t)sampling->dry_allowed_length;
    const int32_t *ids = history.items;
    bool any = false;
    if (most < allowed)
        return false;
    for (uint32_t i = first; i + 1 < n; i++) {
        uint32_t length = 0;
        while (length < most && length <= i - first && ids[i - length] == ids[n - 1 - length])
            length++;
        const uint32_t next = (uint32_t)ids[i + 1];
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
