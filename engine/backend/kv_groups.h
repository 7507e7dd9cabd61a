/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_BACKEND_KV_GROUPS_H
#define ENGINE_BACKEND_KV_GROUPS_H

/* The KV groups of a model: which layers share tables of KV blocks (backend.h), and how many blocks a group
 * needs. For backends, and for estimates of a model's memory. */

#include <stdint.h>

#include "engine/backend/backend.h"

/* The groups for sequences of up to n_context positions: layers with an equal window, the widest first. A
 * window of n_context or more counts as none. If there are more windows than groups, the narrowest ones share
 * the last group. A layer without keys and values is in none. Writes n_layers and window of each, the rest 0;
 * returns their number. */
uint32_t kv_groups_of(const struct model *model, uint32_t n_context,
                      struct backend_group ret_groups[BACKEND_MOST_GROUPS]);

/* The group of a layer with keys and values: the last one whose window is at least as wide as the layer's.
 */
uint32_t kv_group_of(const struct backend_group *groups, uint32_t n_groups, const struct model *model,
                     uint32_t layer, uint32_t n_context);

/* Blocks of the group that n_slots sequences of n_context positions hold between steps; for a group with a
 * window, also those that a step of max_rows rows adds before it releases others. */
uint64_t kv_group_wants(const struct backend_group *group, uint32_t n_slots, uint32_t n_context,
                        uint32_t max_rows);

#endif
