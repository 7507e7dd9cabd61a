/* SPDX-License-Identifier: MIT */
#ifndef MODEL_HUGGINGFACE_CONFIG_CONFIG_APART_H
#define MODEL_HUGGINGFACE_CONFIG_CONFIG_APART_H

/* Families whose layers with a window differ from the others (USES_APART, Gemma 4): two sizes of heads, two
 * numbers of KV heads, last layers without keys and values of their own, embeddings for each layer. */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "model/huggingface/config/config.h"

/* Reads what only such families have; of others nothing. After the kinds of layers. `json` is the object with
 * the numbers. -EINVAL with a reason that names the key. */
int config_read_apart(const json_t *json, struct config *config, struct error *err);

/* Does layer i have a window, and with it heads of another size? False in all other families. */
bool config_has_small_heads(const struct config *config, uint32_t i);

/* Does layer i attend to keys and values of an earlier one? */
bool config_borrows(const struct config *config, uint32_t i);

/* Are layer i's keys its values, so that there is no map for the latter? */
bool config_keys_are_values(const struct config *config, uint32_t i);

/* Sizes of layer i. */
uint32_t config_head_dim(const struct config *config, uint32_t i);
uint32_t config_kv_heads(const struct config *config, uint32_t i);
uint32_t config_ff(const struct config *config, uint32_t i);

#endif
