/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_BACKEND_WEIGHT_PAGES_H
#define ENGINE_BACKEND_WEIGHT_PAGES_H

/* Memory for a segment of weights: huge pages where the kernel provides them, on the nodes of its place. */

#include "engine/backend/weight_store.h"

#define WEIGHT_HUGE_PAGE ((size_t)2 << 20)

/* A memfd that has its size, mapped for writing from a huge page's border on. */
struct weight_pages {
    const struct weight_store_place *place;
    int fd;
    uint8_t *mapping;
    size_t bytes;
};

/* Gets all of it, cleared: by the threads of `run`, or by this one where that is NULL. `after_round` is
 * called by this one, each time that there is some more. 0 or -errno. */
int weight_pages_commit(const struct weight_pages *pages, weight_store_run *run, void *team,
                        void (*after_round)(void *arg), void *arg);

/* Memory that this thread gets comes from the node for what lies at this byte of a segment; then from any. */
void weight_pages_prefer(const struct weight_store_place *place, size_t at);
void weight_pages_prefer_any(const struct weight_store_place *place);

#endif
