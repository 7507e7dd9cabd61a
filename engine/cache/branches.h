/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_CACHE_BRANCHES_H
#define ENGINE_CACHE_BRANCHES_H

/* Finds the node of the prefix cache that shares the longest beginning with the ids after a place.
 *
 * Nodes are numbers below the n of branches_new, each with its parent's name and up to 32 ids. Adding,
 * removing and finding take a number of comparisons logarithmic in the number of nodes, whatever their
 * ids. */

#include <stdbool.h>
#include <stdint.h>

#include "engine/backend/backend.h"

#define BRANCHES_NONE UINT32_MAX

struct branches;

/* ids[n] belong to the caller and must outlive it; a node's ids must not change while it is in. 0 or
 * -ENOMEM. */
int branches_new(uint32_t n, const int32_t (*ids)[BACKEND_BLOCK_TOKENS], struct branches **ret_branches);
struct branches *branches_free(struct branches *branches);

/* Adds a node that is not in, with the first n_ids ≥ 1 of its ids. */
void branches_add(struct branches *branches, uint32_t node, uint64_t parent, uint32_t n_ids);

/* Does nothing if the node is not in. */
void branches_remove(struct branches *branches, uint32_t node);

bool branches_has(const struct branches *branches, uint32_t node);

/* The child of this parent that shares the longest beginning with ids[n], and the length of that;
 * BRANCHES_NONE and 0 if none has the same first id. */
uint32_t branches_find(const struct branches *branches, uint64_t parent, const int32_t *ids, uint32_t n,
                       uint32_t *ret_common);

#endif
