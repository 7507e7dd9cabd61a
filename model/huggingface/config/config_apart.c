/* SPDX-License-Identifier: MIT */
/* Layers of two kinds.
 *
 * head_dim and num_key_value_heads are those of layers with a window. The others have global_head_dim, and
 * num_global_key_value_heads only where attention_k_eq_v is true: so it is in transformers' class. Newer
 * files say both for each layer, in per_layer_config, which comes before them there. GGUF has one size for
 * either kind, so that layers of a kind must be alike. After reading, config->head_dim is that of layers
 * without a window, as in GGUF. */

#include "model/huggingface/config/config_apart.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"
#include "model/huggingface/json_values.h"

#define MOST_COUNT (1u << 24)

struct heads {
    uint32_t dim, n_kv;
};

/* ---- layers ---- */

bool config_has_small_heads(const struct config *config, uint32_t i)
{
    return config->family->uses & USES_APART && config_is_special(config, i);
}

bool config_borrows(const struct config *config, uint32_t i)
{
    return config->n_borrowing > 0 && i >= config->n_layers - config->n_borrowing;
}

bool config_keys_are_values(const struct config *config, uint32_t i)
{
    return config->keys_are_values && !config_has_small_heads(config, i);
}

uint32_t config_head_dim(const struct config *config, uint32_t i)
{
    return config_has_small_heads(config, i) ? config->window_head_dim : config->head_dim;
}

uint32_t config_kv_heads(const struct config *config, uint32_t i)
{
    return config->family->uses & USES_APART && !config_has_small_heads(config, i) ? config->n_full_kv_heads
                                                                                   : config->n_kv_heads;
}

uint32_t config_ff(const struct config *config, uint32_t i)
{
    return config->wide_borrowers && config_borrows(config, i) ? 2 * config->n_ff : config->n_ff;
}

/* ---- per_layer_config ---- */

static int read_heads(const json_t *entry, uint32_t layer, struct heads *heads, struct error *err)
{
    const char *key;
    json_t *value;
    char shown[64];
    json_object_foreach((json_t *)entry, key, value)
    {
        if (strcmp(key, "head_dim") != 0 && strcmp(key, "num_key_value_heads") != 0)
            return error_set(err, -EINVAL, "per_layer_config: layer %u: %s is not supported", layer,
                             utf8_printable(bytes_of_string(key), sizeof shown, shown));
    }
    int r = json_read_u32(entry, "head_dim", &heads->dim, err);
    if (r >= 0)
        r = json_read_u32(entry, "num_key_value_heads", &heads->n_kv, err);
    return r < 0 ? error_prefix(err, r, "per_layer_config: layer %u", layer) : 0;
}

/* A layer's number, in digits. */
static bool read_layer(const char *text, uint32_t n_layers, uint32_t *ret_layer)
{
    char *end;
    if (text[0] < '0' || text[0] > '9')
        return false;
    const unsigned long layer = strtoul(text, &end, 10);
    *ret_layer = (uint32_t)layer;
    return *end == '\0' && layer < n_layers;
}

/* Layers that are not listed are as head_dim and num_key_value_heads say. */
static int read_each(const json_t *list, const struct config *config, struct heads heads[CONFIG_MOST_LAYERS],
                     struct error *err)
{
    const char *key;
    json_t *entry;
    char shown[64];
    for (uint32_t i = 0; i < config->n_layers; i++)
        heads[i] = (struct heads){config->head_dim, config->n_kv_heads};
    json_object_foreach((json_t *)list, key, entry)
    {
        uint32_t layer = 0;
        if (!read_layer(key, config->n_layers, &layer) || !json_is_object(entry))
            return error_set(err, -EINVAL,
                             "per_layer_config: \"%s\" is not the number of one of %u layers, or its value "
                             "is not an object",
                             utf8_printable(bytes_of_string(key), sizeof shown, shown), config->n_layers);
        int r = read_heads(entry, layer, &heads[layer], err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int read_per_layer_config(const json_t *list, const struct config *config, struct heads *full,
                                 struct error *err)
{
    struct heads heads[CONFIG_MOST_LAYERS];
    bool seen = false;
    int r = json_is_object(list) ? read_each(list, config, heads, err)
                                 : error_set(err, -EINVAL, "per_layer_config is not an object");
    for (uint32_t i = 0; i < config->n_layers && r == 0; i++) {
        const bool window = config_is_special(config, i);
        const struct heads expected = window ? (struct heads){config->head_dim, config->n_kv_heads}
                                      : seen ? *full
                                             : heads[i];
        if (heads[i].dim != expected.dim || heads[i].n_kv != expected.n_kv)
            return error_set(err, -EINVAL,
                             "per_layer_config: layer %u has %u KV heads of %u, but other layers of its kind "
                             "have %u of %u, which is not supported",
                             i, heads[i].n_kv, heads[i].dim, expected.n_kv, expected.dim);
        if (!window)
            *full = heads[i];
        seen |= !window;
    }
    return r;
}

/* ---- heads ---- */

static int check_heads(const struct config *config, const struct heads *full, const char *dim_key,
                       const char *kv_key, struct error *err)
{
    if (full->dim == 0 || (uint64_t)full->dim * config->n_heads > MOST_COUNT)
        return error_set(err, -EINVAL,
                         "%s %u: at least 1 is required, and at most %u divided by num_attention_heads %u",
                         dim_key, full->dim, MOST_COUNT, config->n_heads);
    if (full->n_kv == 0 || full->n_kv > config->n_heads)
        return error_set(err, -EINVAL, "%s %u does not fit num_attention_heads %u", kv_key, full->n_kv,
                         config->n_heads);
    return 0;
}

static int read_full_heads(const json_t *json, struct config *config, struct error *err)
{
    const json_t *list = json_object_get(json, "per_layer_config");
    const bool listed = list && !json_is_null(list);
    struct heads full = {512, config->n_kv_heads};
    int r;
    if (listed) {
        full.dim = config->head_dim; /* where every layer has a window */
        r = read_per_layer_config(list, config, &full, err);
    } else {
        r = json_read_u32(json, "global_head_dim", &full.dim, err);
        if (r >= 0 && config->keys_are_values)
            r = json_read_u32(json, "num_global_key_value_heads", &full.n_kv, err);
    }
    if (r >= 0)
        r = check_heads(config, &full, listed ? "per_layer_config: head_dim" : "global_head_dim",
                        listed ? "per_layer_config: num_key_value_heads" : "num_global_key_value_heads", err);
    if (r < 0)
        return r;
    config->window_head_dim = config->head_dim;
    config->head_dim = full.dim;
    config->n_full_kv_heads = full.n_kv;
    return 0;
}

/* ---- layers that borrow, embeddings for each layer, experts ---- */

/* Each attends to what the last layer of its kind before all of them kept. */
static int check_borrowing(const struct config *config, struct error *err)
{
    const uint32_t first = config->n_layers - config->n_borrowing;
    for (uint32_t i = first; i < config->n_layers; i++) {
        uint32_t from = 0;
        while (from < first && config_is_special(config, from) != config_is_special(config, i))
            from++;
        if (from == first)
            return error_set(
                err, -EINVAL,
                "num_kv_shared_layers is %u of %u: no %s layer before layer %u has keys and values to share",
                config->n_borrowing, config->n_layers,
                config_is_special(config, i) ? "sliding_attention" : "full_attention", i);
    }
    return 0;
}

static int read_borrowing(const json_t *json, struct config *config, struct error *err)
{
    int r = json_read_u32(json, "num_kv_shared_layers", &config->n_borrowing, err);
    if (r >= 0)
        r = json_read_flag(json, "use_double_wide_mlp", &config->wide_borrowers, err);
    if (r < 0)
        return r;
    if (config->n_borrowing >= config->n_layers)
        return error_set(
            err, -EINVAL,
            "num_kv_shared_layers is %u of %u: at least one layer must have keys and values to share",
            config->n_borrowing, config->n_layers);
    if (config->wide_borrowers && config->n_ff > MOST_COUNT / 2)
        return error_set(err, -EINVAL, "intermediate_size %u, doubled by use_double_wide_mlp, is too large",
                         config->n_ff);
    return check_borrowing(config, err);
}

static int read_layer_embeddings(const json_t *json, struct config *config, struct error *err)
{
    uint32_t n_vocab = config->n_vocab;
    int r = json_read_u32(json, "hidden_size_per_layer_input", &config->n_layer_embd, err);
    if (r >= 0 && config->n_layer_embd > 0)
        r = json_read_u32(json, "vocab_size_per_layer_input", &n_vocab, err);
    if (r < 0)
        return r;
    if ((uint64_t)config->n_layer_embd * config->n_layers > MOST_COUNT)
        return error_set(err, -EINVAL,
                         "hidden_size_per_layer_input %u times num_hidden_layers %u is too large",
                         config->n_layer_embd, config->n_layers);
    if (n_vocab != config->n_vocab)
        return error_set(err, -EINVAL,
                         "vocab_size_per_layer_input is %u, which is not supported (vocab_size %u is)",
                         n_vocab, config->n_vocab);
    return 0;
}

static int read_needed(const json_t *json, const char *key, uint32_t *ret_count, struct error *err)
{
    int r = json_read_u32(json, key, ret_count, err);
    if (r == JSON_E_MISSING)
        return error_set(err, -EINVAL, "%s is missing, and enable_moe_block is true", key);
    if (r == 0 && (*ret_count == 0 || *ret_count > MOST_COUNT))
        return error_out_of_range(err, -EINVAL, key, *ret_count, 1, MOST_COUNT);
    return r;
}

static int read_experts(const json_t *json, struct config *config, struct error *err)
{
    bool experts = false;
    int r = json_read_flag(json, "enable_moe_block", &experts, err);
    if (r < 0 || !experts)
        return r < 0 ? r : 0;
    r = read_needed(json, "num_experts", &config->n_experts, err);
    if (r == 0)
        r = read_needed(json, "top_k_experts", &config->n_used, err);
    if (r == 0)
        r = read_needed(json, "moe_intermediate_size", &config->expert_ff, err);
    if (r == 0 && config->n_used > config->n_experts)
        return error_set(err, -EINVAL, "top_k_experts is %u of num_experts %u", config->n_used,
                         config->n_experts);
    return r;
}

int config_read_apart(const json_t *json, struct config *config, struct error *err)
{
    if (!(config->family->uses & USES_APART))
        return 0;
    if (config->n_layers > CONFIG_MOST_LAYERS)
        return error_out_of_range(err, -EINVAL, "num_hidden_layers", config->n_layers, 1, CONFIG_MOST_LAYERS);
    if (config->window == 0)
        return error_set(err, -EINVAL, "sliding_window is missing");
    int r = json_read_flag(json, "attention_k_eq_v", &config->keys_are_values, err);
    if (r >= 0)
        r = read_full_heads(json, config, err);
    if (r >= 0)
        r = read_borrowing(json, config, err);
    if (r >= 0)
        r = read_layer_embeddings(json, config, err);
    return r < 0 ? r : read_experts(json, config, err);
}
