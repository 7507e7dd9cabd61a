/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_HTTP_BUDGET_H
#define GATEWAY_HTTP_BUDGET_H

/* A bound on bytes held for clients. A budget can be part of another: bytes taken from it are taken from
 * both. */

#include <stdbool.h>
#include <stddef.h>

struct budget {
    size_t used, most;
    struct budget *parent; /* the budget that it is part of; NULL: none */
};

/* Takes room even if there is none. */
static inline void budget_force(struct budget *budget, size_t bytes)
{
    for (; budget; budget = budget->parent)
        budget->used += bytes;
}

/* Takes room for more. False: there is none, and nothing was taken. */
static inline bool budget_take(struct budget *budget, size_t bytes)
{
    for (const struct budget *each = budget; each; each = each->parent)
        if (bytes > each->most || each->used > each->most - bytes)
            return false;
    budget_force(budget, bytes);
    return true;
}

static inline void budget_give(struct budget *budget, size_t bytes)
{
    for (; budget; budget = budget->parent)
        budget->used -= bytes;
}

#endif
