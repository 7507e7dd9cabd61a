/* SPDX-License-Identifier: MIT */
#ifndef MODEL_HUGGINGFACE_CONFIG_CONFIG_APART_H
#define MODEL_HUGGINGFACE_CONFIG_CONFIG_APART_H

/* Families whose layers with a window differ from the others (USES_APART, Gemma 4): two head sizes, two
 * numbers of KV heads, last layers without their own keys and values, embeddings for each layer. */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "model/huggingface/config/config.h"

/* Reads the keys that only such families have; does nothing for others. Called after the kinds of layers are
 * known. `json` is the object with the numbers. -EINVAL with a reason that names the key. */
int config_read_apart(const json_t *json, struct config *config, struct error *err);

/* Whether layer i has a window, and so heads of another size. False in all other families. */
bool config_has_small_heads(const struct config *config, uint32_t i);

/* Whether layer i attends to keys and values of an earlier layer. */
bool config_borrows(const struct config *config, uint32_t i);

/* Whether layer i's keys are its values, so that there is no matrix for values. */
bool config_keys_are_values(const struct config *config, uint32_t i);

/* Sizes of layer i. */
uint32_t config_head_dim(const struct config *config, uint32_t i);
uint32_t config_kv_heads(const struct config *config, uint32_t i);
uint32_t config_ff(const struct config *config, uint32_t i);

#endif
