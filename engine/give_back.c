/* SPDX-License-Identifier: MIT */
/* Memory that an engine can do without: idle nodes of the prefix cache, if those are meant too, and then what
 * the backend has for blocks and snapshots without a holder, and for steps. Between two steps, whoever runs:
 * what a sequence or the cache holds, and what flights use, is not touched. */

#include "engine/engine.h"

#include <errno.h>
#include <stdlib.h>

#include "engine/inside.h"

/* The numbers without a holder, ascending, in an array for all of them. */
static uint32_t list_idle(const struct blocks *blocks, uint32_t *ret_ids)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < blocks_total(blocks); i++)
        if (blocks_holders(blocks, i) == 0)
            ret_ids[n++] = i;
    return n;
}

/* Some blocks may be owed to the prefix store, which must get neither what they hold from now on nor, once
 * their node is gone, what they held, because nothing says any more whose it was. */
static void list_all(const struct scheduler *scheduler, uint32_t *const *ids, struct backend_idle *ret_idle)
{
    const uint32_t n_groups = scheduler->info.n_groups;
    *ret_idle = (struct backend_idle){0};
    for (uint32_t g = 0; g < n_groups; g++) {
        ret_idle->blocks[g] = ids[g];
        ret_idle->n_blocks[g] = list_idle(scheduler->blocks[g], ids[g]);
        if (scheduler->tier)
            tier_fresh(scheduler->tier, g, ids[g], ret_idle->n_blocks[g]);
    }
    if (!scheduler->snapshots)
        return;
    ret_idle->snapshots = ids[n_groups];
    ret_idle->n_snapshots = list_idle(scheduler->snapshots, ids[n_groups]);
}

int engine_give_back(struct engine *engine, bool prefixes, struct engine_given *ret_given)
{
    const struct scheduler *scheduler = &engine->scheduler;
    const uint32_t n_groups = scheduler->info.n_groups;
    uint32_t *ids[BACKEND_MOST_GROUPS + 1] = {0};
    struct engine_given given = {0};
    struct backend_idle idle;
    int r = engine->failed;
    for (uint32_t i = 0; i <= n_groups && r == 0; i++) {
        const struct blocks *blocks = i < n_groups ? scheduler->blocks[i] : scheduler->snapshots;
        ids[i] = calloc(blocks ? (size_t)blocks_total(blocks) + 1 : 1, sizeof *ids[i]);
        r = ids[i] ? 0 : -ENOMEM;
    }
    if (r == 0) {
        if (prefixes)
            given.blocks = prefix_drop_idle(scheduler->prefix);
        list_all(scheduler, ids, &idle);
        if (engine->config.give_back)
            r = engine->config.give_back(engine->backend, &idle, &given.backend);
    }
    for (uint32_t i = 0; i <= n_groups; i++)
        free(ids[i]);
    if (r == 0)
        *ret_given = given;
    return r;
}
