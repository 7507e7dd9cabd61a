/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_BACKEND_WEIGHT_PAGES_H
#define ENGINE_BACKEND_WEIGHT_PAGES_H

/* Memory for a segment of weights: huge pages if the kernel provides them, on the nodes of its place. */

#include "engine/backend/weight_store.h"

#define WEIGHT_HUGE_PAGE ((size_t)2 << 20)

/* A memfd of full size, mapped for writing at a huge page's border. */
struct weight_pages {
    const struct weight_store_place *place;
    int fd;
    uint8_t *mapping;
    size_t bytes;
};

/* Allocates and clears all of it: on the threads of `run`, or on this one if that is NULL. This thread calls
 * `after_round` as the work progresses. 0 or -errno. */
int weight_pages_commit(const struct weight_pages *pages, weight_store_run *run, void *team,
                        void (*after_round)(void *arg), void *arg);

/* This thread's new memory comes from the node for byte `at` of a segment; then from any node again. */
void weight_pages_prefer(const struct weight_store_place *place, size_t at);
void weight_pages_prefer_any(const struct weight_store_place *place);

#endif
