/* SPDX-License-Identifier: MIT */
/* Memory that an engine can do without: idle nodes of the prefix cache, if those are meant too, and then what
 * the backend has for blocks and snapshots without a holder, and for steps. Between two steps, whoever runs:
 * what a sequence or the cache holds, and what flights use, is not touched. */

#include "engine/engine.h"

#include <errno.h>
#include <stdlib.h>

#include "engine/inside.h"

/* The numbers without a holder, ascending; NULL: out of memory. */
static uint32_t *idle_of(const struct blocks *blocks, uint32_t *ret_n)
{
    const uint32_t total = blocks_total(blocks);
    uint32_t *ids = malloc(((size_t)total + 1) * sizeof *ids), n = 0;
    for (uint32_t i = 0; ids && i < total; i++)
        if (blocks_holders(blocks, i) == 0)
            ids[n++] = i;
    *ret_n = n;
    return ids;
}

int engine_give_back(struct engine *engine, bool prefixes, struct engine_given *ret_given)
{
    const struct scheduler *scheduler = &engine->scheduler;
    const uint32_t n_groups = scheduler->info.n_groups;
    uint32_t *ids[BACKEND_MOST_GROUPS + 1] = {0};
    struct backend_idle idle = {0};
    struct engine_given given = {0};
    int r = 0;
    if (engine->failed)
        return engine->failed;
    if (prefixes)
        given.blocks = prefix_drop_idle(scheduler->prefix);
    for (uint32_t g = 0; g < n_groups && r == 0; g++) {
        idle.blocks[g] = ids[g] = idle_of(scheduler->blocks[g], &idle.n_blocks[g]);
        r = ids[g] ? 0 : -ENOMEM;
    }
    if (r == 0 && scheduler->snapshots) {
        idle.snapshots = ids[n_groups] = idle_of(scheduler->snapshots, &idle.n_snapshots);
        r = ids[n_groups] ? 0 : -ENOMEM;
    }
    if (r == 0 && engine->config.give_back)
        r = engine->config.give_back(engine->backend, &idle, &given.backend);
    for (uint32_t i = 0; i <= n_groups; i++)
        free(ids[i]);
    if (r == 0)
        *ret_given = given;
    return r;
}
