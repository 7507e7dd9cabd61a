/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_BACKEND_KV_GROUPS_H
#define ENGINE_BACKEND_KV_GROUPS_H

/* The KV groups of a model: which layers share tables of KV blocks (backend.h), and how many blocks a group
 * wants. For backends, and for estimates of a model's memory. */

#include <stdint.h>

#include "engine/backend/backend.h"

/* The groups for sequences of up to n_context positions: layers with an equal window, the widest first. A
 * window that n_context does not outgrow is none. Where there are more kinds than groups, the narrowest share
 * the last one. A layer without keys and values is in none. Writes n_layers and window of each, the rest 0;
 * returns how many. */
uint32_t kv_groups_of(const struct model *model, uint32_t n_context,
                      struct backend_group ret_groups[BACKEND_MOST_GROUPS]);

/* The group of a layer that has keys and values, of those: the last that sees as much as it. */
uint32_t kv_group_of(const struct backend_group *groups, uint32_t n_groups, const struct model *model,
                     uint32_t layer, uint32_t n_context);

/* Blocks of the group that n_slots sequences of n_context positions hold between steps, and of one with a
 * window those that a step of max_rows rows adds before it gives others back. */
uint64_t kv_group_wants(const struct backend_group *group, uint32_t n_slots, uint32_t n_context,
                        uint32_t max_rows);

#endif
