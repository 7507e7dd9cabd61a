/* SPDX-License-Identifier: MIT */
/* From the end of the ids to their beginning, most places are passed 16 at a time: nothing there is the last
 * id. */

#include "engine/prompt_lookup.h"

#include <stdbool.h>

#define LOOK        16 /* ids compared at once, without a branch */
#define LEAST_MATCH 2  /* ids that must agree, the last one included */
#define MOST_MATCH  8  /* a longer match is no better */

/* Whether one of LOOK ids is this one. */
static bool holds(const int32_t *ids, int32_t id)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < LOOK; i++)
        found |= ids[i] == id;
    return found;
}

/* How many ids that end before `end` agree with the last ones of all n. */
static uint32_t matching(const int32_t *ids, uint32_t n, uint32_t end)
{
    uint32_t length = 0;
    while (length < MOST_MATCH && length < end && ids[end - 1 - length] == ids[n - 1 - length])
        length++;
    return length;
}

uint32_t prompt_lookup(void *arg, const int32_t *ids, uint32_t n, uint32_t most, int32_t *ret_draft)
{
    uint32_t best = 0, from = 0;
    for (uint32_t end = n > 0 ? n - 1 : 0; end > 0 && best < MOST_MATCH;) {
        if (end >= LOOK && !holds(ids + end - LOOK, ids[n - 1])) {
            end -= LOOK;
            continue;
        }
        const uint32_t length = matching(ids, n, end);
        if (length > best) {
            best = length;
            from = end;
        }
        end--;
    }
    if (best < LEAST_MATCH)
        return 0;
    /* What follows may reach the end of the ids: then they repeat. */
    for (uint32_t i = 0; i < most; i++)
        ret_draft[i] = from + i < n ? ids[from + i] : ret_draft[from + i - n];
    return most;
}
