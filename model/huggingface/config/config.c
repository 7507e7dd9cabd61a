/* SPDX-License-Identifier: MIT */
/* Hyperparameters as Hugging Face's transformers name them. What a file leaves out has the default that the
 * class of its model type has there. Values that change the computation in a way that GGUF's metadata cannot
 * say are refused: each family lists the keys and what they must be. */

#include "model/huggingface/config/config.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"
#include "model/huggingface/config/config_apart.h"
#include "model/huggingface/config/config_settings.h"
#include "model/huggingface/json_values.h"

#define MOST_TEXT ((size_t)1 << 20)

/* No product of two of these overflows, nor of a shape made of them. */
#define MOST_COUNT (1u << 24)

/* ---- the family ---- */

static int refuse_type(const char *type, struct error *err)
{
    char shown[64], known[512] = "";
    size_t n = 0;
    for (unsigned i = 0; family_at(i) && n < sizeof known; i++)
        n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", i ? " " : "", family_at(i)->model_type);
    return error_set(err, -EINVAL, "model_type \"%s\" is not supported (these are: %s; others as GGUF)",
                     utf8_printable(bytes_of_string(type), sizeof shown, shown), known);
}

/* The family of the text's numbers, and the object that has them. */
static int find_family(json_t *json, struct config *config, json_t **ret_text, struct error *err)
{
    const char *type = NULL;
    int r = json_read_text(json, "model_type", &type, err);
    if (r != 0)
        return r < 0 ? r : error_set(err, -EINVAL, "model_type is missing");
    const struct family *family = family_by_type(type);
    if (!family)
        return refuse_type(type, err);
    *ret_text = json;
    if (!family->architecture) {
        *ret_text = json_object_get(json, "text_config");
        if (!json_is_object(*ret_text))
            return error_set(err, -EINVAL, "text_config is not an object");
        type = family->text_type;
        r = json_read_text(*ret_text, "model_type", &type, err);
        family = r < 0 ? NULL : family_by_type(type);
        if (r >= 0 && (!family || !family->architecture))
            r = refuse_type(type, err);
        if (r < 0)
            return error_prefix(err, r, "text_config");
        config->wrapped = true;
    }
    config->family = family;
    config->architecture = family->architecture;
    return 0;
}

/* ---- values that are not supported ---- */

static bool is_equal(const json_t *a, const json_t *b)
{
    if (json_is_number(a) && json_is_number(b))
        return json_number_value(a) == json_number_value(b);
    return json_equal(a, b);
}

static bool is_allowed(const json_t *value, const json_t *allowed)
{
    for (size_t i = 0; i < json_array_size(allowed); i++)
        if (is_equal(value, json_array_get(allowed, i)))
            return true;
    return !json_is_array(allowed) && is_equal(value, allowed);
}

static int refuse_value(const char *key, const json_t *value, const json_t *allowed, struct error *err)
{
    char found[64] = "?", known[64] = "?";
    char *texts[2] = {json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT),
                      json_dumps(json_is_array(allowed) ? json_array_get(allowed, 0) : allowed,
                                 JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(9))};
    if (texts[0] && texts[1]) {
        utf8_printable(bytes_of_string(texts[0]), sizeof found, found);
        utf8_printable(bytes_of_string(texts[1]), sizeof known, known);
    }
    free(texts[0]);
    free(texts[1]);
    return error_set(err, -EINVAL, "%s is %s, which is not supported (%s is)", key, found, known);
}

static int check_fixed(const json_t *text, const struct family *family, struct error *err)
{
    json_t *fixed = json_loads(family->fixed, 0, NULL), *allowed;
    const char *key;
    int r = fixed ? 0 : -ENOMEM;
    json_object_foreach(fixed, key, allowed)
    {
        const json_t *value = json_object_get(text, key);
        if (r == 0 && value && !json_is_null(value) && !is_allowed(value, allowed))
            r = refuse_value(key, value, allowed, err);
    }
    json_decref(fixed);
    return r;
}

/* What the class fills in, where the file has not even null. Some classes fill in rope_parameters all the
 * same. */
static int fill_in(json_t *text, const struct family *family)
{
    json_t *defaults = json_loads(family->defaults, 0, NULL);
    if (family->uses & USES_APART && json_is_null(json_object_get(text, "rope_parameters")))
        json_object_del(text, "rope_parameters");
    if (json_object_get(text, "rope_scaling") || json_object_get(text, "rope_theta"))
        json_object_del(defaults, "rope_parameters");
    int r = defaults && json_object_update_missing(text, defaults) == 0 ? 0 : -ENOMEM;
    json_decref(defaults);
    return r;
}

/* ---- numbers ---- */

static bool is_said(const json_t *json, const char *key)
{
    const json_t *value = key ? json_object_get(json, key) : NULL;
    return value && !json_is_null(value);
}

/* 1 to MOST_COUNT. */
static int read_count(const json_t *json, const char *key, bool may_be_none, uint32_t *ret_count,
                      struct error *err)
{
    uint32_t count = 0;
    int r = json_read_u32(json, key, &count, err);
    if (r < 0)
        return r;
    if (r == JSON_E_MISSING && !may_be_none)
        return error_set(err, -EINVAL, "%s is missing", key);
    if (r == 0 && (count == 0 || count > MOST_COUNT))
        return error_out_of_range(err, -EINVAL, key, count, 1, MOST_COUNT);
    *ret_count = count;
    return 0;
}

static int read_setting(const json_t *json, const struct config_setting *setting, struct config *config,
                        struct error *err)
{
    const char *key = !is_said(json, setting->theirs) && is_said(json, setting->instead) ? setting->instead
                                                                                         : setting->theirs;
    void *field = (char *)config + setting->offset;
    if (setting->kind == POSITIVE_OR_NONE)
        return json_read_positive(json, key, 0, field, err);
    /* Granite's files say 0 for no shared expert. */
    if (setting->uses == USES_EXPERTS && setting->kind == COUNT_OR_NONE &&
        json_integer_value(json_object_get(json, key)) == 0 && json_is_integer(json_object_get(json, key)))
        return 0;
    return read_count(json, key, setting->kind == COUNT_OR_NONE, field, err);
}

static int complete_heads(struct config *config, struct error *err)
{
    if (config->n_kv_heads == 0)
        config->n_kv_heads = config->n_heads;
    if (config->head_dim == 0) {
        if (config->n_embd % config->n_heads != 0)
            return error_set(err, -EINVAL, "hidden_size %u is not a multiple of num_attention_heads %u",
                             config->n_embd, config->n_heads);
        config->head_dim = config->n_embd / config->n_heads;
    }
    if ((uint64_t)config->n_heads * config->head_dim > MOST_COUNT)
        return error_set(err, -EINVAL, "num_attention_heads %u times head_dim %u is too large",
                         config->n_heads, config->head_dim);
    if (config->n_kv_heads > config->n_heads)
        return error_set(err, -EINVAL, "num_key_value_heads %u does not fit num_attention_heads %u",
                         config->n_kv_heads, config->n_heads);
    return 0;
}

static int complete_delta_nets(const struct config *config, struct error *err)
{
    if ((uint64_t)config->n_key_heads * config->key_dim > MOST_COUNT)
        return error_set(err, -EINVAL, "linear_num_key_heads times linear_key_head_dim is too large");
    if ((uint64_t)config->n_value_heads * config->value_dim > MOST_COUNT)
        return error_set(err, -EINVAL, "linear_num_value_heads times linear_value_head_dim is too large");
    if (config->n_key_heads > 0 && config->n_value_heads % config->n_key_heads != 0)
        return error_set(err, -EINVAL,
                         "linear_num_value_heads %u is not a multiple of linear_num_key_heads %u",
                         config->n_value_heads, config->n_key_heads);
    return 0;
}

/* GPT-2's is four times the width if it is not said, that of experts as wide as the dense one, and the other
 * way round. */
static int complete_widths(struct config *config, struct error *err)
{
    if (config->family->uses & USES_EXPERTS && config->expert_ff == 0)
        config->expert_ff = config->n_ff;
    if (config->n_ff == 0)
        config->n_ff = config->expert_ff;
    if (config->n_ff == 0 && config->family->uses & USES_WIDE_FF)
        config->n_ff = 4 * config->n_embd;
    if (config->n_ff > MOST_COUNT)
        return error_set(err, -EINVAL, "intermediate_size, four times n_embd, is too large: %u",
                         config->n_ff);
    return config->n_ff > 0 ? 0 : error_set(err, -EINVAL, "intermediate_size is missing");
}

static int read_numbers(const json_t *json, struct config *config, struct error *err)
{
    int r = 0;
    for (unsigned i = 0; config_setting_at(i) && r == 0; i++)
        if (config_has_setting(config, config_setting_at(i)))
            r = read_setting(json, config_setting_at(i), config, err);
    if (r == 0)
        r = complete_heads(config, err);
    if (r == 0)
        r = complete_delta_nets(config, err);
    if (r == 0)
        r = complete_widths(config, err);
    if (r < 0)
        return r;
    const bool layer_norm = config->family->uses & USES_LAYER_NORM;
    const char *key = !layer_norm                       ? "rms_norm_eps"
                      : is_said(json, "layer_norm_eps") ? "layer_norm_eps"
                                                        : "layer_norm_epsilon";
    return json_read_positive(json, key, layer_norm ? 1e-5f : 1e-6f, &config->norm_epsilon, err);
}

static int read_flag(const json_t *json, const char *key, enum config_flag *ret_flag, struct error *err)
{
    bool flag = false;
    int r = json_read_flag(json, key, &flag, err);
    if (r == 0)
        *ret_flag = flag ? CONFIG_YES : CONFIG_NO;
    return r < 0 ? r : 0;
}

static int read_flags(const json_t *json, struct config *config, struct error *err)
{
    int r = json_read_flag(json, "tie_word_embeddings", &config->tied, err);
    if (r >= 0 && config->family->uses & USES_BIASES)
        r = read_flag(json, "attention_bias", &config->attention_bias, err);
    if (r >= 0 && config->family->uses & USES_BIASES)
        r = read_flag(json, "mlp_bias", &config->mlp_bias, err);
    return r < 0 ? r : 0;
}

/* ---- kinds of layers ---- */

/* Does layer_types say what a period says? */
static bool is_periodic(const struct config *config, uint32_t period)
{
    for (uint32_t i = 0; i < config->n_layers; i++)
        if ((config->special[i / 64] >> (i % 64) & 1) != ((i + 1) % period != 0))
            return false;
    return true;
}

static int read_layer_type(const struct config *config, const json_t *types, uint32_t i, bool *ret_special,
                           struct error *err)
{
    const struct family *family = config->family;
    const char *type = json_string_value(json_array_get(types, i)), *special = family->special;
    char shown[64];
    /* Without a pattern, a window is every layer's. */
    if (!special)
        special = config->window > 0 ? "sliding_attention" : "full_attention";
    *ret_special = type && strcmp(type, special) == 0;
    if (*ret_special || (type && family->special && strcmp(type, "full_attention") == 0))
        return 0;
    return error_set(err, -EINVAL, "layer_types: layer %u is \"%s\", which is not supported (%s%s)", i,
                     type ? utf8_printable(bytes_of_string(type), sizeof shown, shown) : "?", special,
                     family->special ? " and full_attention are" : " is");
}

static int read_layer_types(const json_t *json, struct config *config, struct error *err)
{
    const json_t *types = json_object_get(json, "layer_types");
    const struct family *family = config->family;
    config->period = family->period;
    int r = 0;
    if (r == 0 && family->uses & USES_DELTA)
        r = read_count(json, "full_attention_interval", true, &config->period, err);
    if (r == 0 && config->period == 0)
        config->period = family->period;
    if (r < 0 || !types || json_is_null(types))
        return r;
    if (json_array_size(types) != config->n_layers || config->n_layers > CONFIG_MOST_LAYERS)
        return error_set(err, -EINVAL, "layer_types is not a list of %u layers (at most %d are read)",
                         config->n_layers, CONFIG_MOST_LAYERS);
    for (uint32_t i = 0; i < config->n_layers && r == 0; i++) {
        bool special = false;
        r = read_layer_type(config, types, i, &special, err);
        config->special[i / 64] |= (uint64_t)special << (i % 64);
    }
    if (r < 0 || family->period == 0 || is_periodic(config, config->period))
        return r;
    config->period = 0;
    if (family->uses & USES_LIST)
        return 0;
    return error_set(
        err, -EINVAL,
        "layer_types: unsupported pattern; only full_attention once every %u layers is supported",
        family->period);
}

/* A window counts only in families that have one. One as long as the context is none, where all layers are
 * alike. */
static void settle_window(struct config *config)
{
    if (config->family->period == 0 && config->window >= config->n_context)
        config->window = 0;
}

/* Which layers turn, as the pattern says. */
static int check_turning_layers(const json_t *json, const struct config *config, struct error *err)
{
    const json_t *list = json_object_get(json, "no_rope_layers");
    if (!(config->family->uses & USES_TURNING_LAYERS) || !list || json_is_null(list))
        return 0;
    for (uint32_t i = 0; i < config->n_layers; i++) {
        const json_t *turns = json_array_get(list, i);
        if (!json_is_integer(turns) || json_integer_value(turns) != (i % 4 != 3))
            return error_set(err, -EINVAL,
                             "no_rope_layers: layer %u breaks the only supported pattern: 0 in every fourth "
                             "layer, 1 in the others",
                             i);
    }
    return 0;
}

/* ---- the whole ---- */

static int read_text(json_t *json, struct config *config, struct error *err)
{
    int r = fill_in(json, config->family);
    if (r == 0)
        r = read_numbers(json, config, err);
    if (r == 0)
        r = check_fixed(json, config->family, err);
    if (r == 0)
        r = read_layer_types(json, config, err);
    if (r == 0)
        r = config_read_apart(json, config, err);
    if (r < 0)
        return r;
    settle_window(config);
    r = check_turning_layers(json, config, err);
    if (r == 0)
        r = config_read_rope(json, config, err);
    return r < 0 ? r : read_flags(json, config, err);
}

static int read_all(json_t *json, struct config *config, struct error *err)
{
    json_t *text = NULL;
    int r = find_family(json, config, &text, err);
    if (r < 0)
        return r;
    r = read_text(text, config, err);
    if (r < 0)
        return text != json ? error_prefix(err, r, "text_config") : r;
    bool tied = false;
    r = json_read_flag(json, "tie_word_embeddings", &tied, err);
    config->tied |= tied;
    const json_t *quantized = json_object_get(json, "quantization_config");
    if (!is_said(json, "quantization_config"))
        quantized = json_object_get(text, "quantization_config");
    return r < 0 ? r : quantization_read(quantized, &config->quantization, err);
}

int config_parse(struct bytes text, struct config *ret_config, struct error *err)
{
    struct config config = {0};
    json_t *json = NULL;
    int r = json_object_parse(text, MOST_TEXT, &json, err);
    if (r == 0)
        r = read_all(json, &config, err);
    json_decref(json);
    if (r == 0)
        *ret_config = config;
    return r;
}
