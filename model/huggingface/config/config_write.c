/* SPDX-License-Identifier: MIT */
/* A configuration as GGUF's metadata. Numbers that are 0 are not said, and not written. */

#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "model/huggingface/config/config.h"
#include "model/huggingface/config/config_apart.h"
#include "model/huggingface/config/config_settings.h"
#include "gguf/gguf_writer.h"

struct output { /* remembers the first failure */
    struct gguf_writer *writer;
    const char *architecture;
    int r;
};

static const char *key_of(const struct output *output, const char *name, char key[96])
{
    snprintf(key, 96, "%s.%s", output->architecture, name);
    return key;
}

static void put_count(struct output *output, const char *name, uint32_t value)
{
    char key[96];
    if (output->r == 0 && value > 0)
        output->r = gguf_writer_u32(output->writer, key_of(output, name, key), value);
}

static void put_real(struct output *output, const char *name, float value)
{
    char key[96];
    if (output->r == 0 && value > 0)
        output->r = gguf_writer_f32(output->writer, key_of(output, name, key), value);
}

static void put_text(struct output *output, const char *name, const char *value)
{
    char key[96];
    if (output->r == 0)
        output->r = gguf_writer_string(output->writer, key_of(output, name, key), value);
}

static float magnitude(float factor, float share)
{
    return factor > 1 ? 1 + 0.1f * share * logf(factor) : 1;
}

/* GGUF's factor is beside what YaRN's formula gives, these are in its place. */
static void put_yarn_magnitude(struct output *output, const struct config *config)
{
    const float formula = magnitude(config->factor, 1);
    float factor = config->attention_factor;
    if (factor == 0 && config->magnitude > 0 && config->magnitude_all > 0) {
        if (config->family->uses & USES_GROWTH && config->magnitude == 1) {
            put_real(output, "rope.scaling.yarn_log_multiplier", config->magnitude_all);
            return;
        }
        factor =
            magnitude(config->factor, config->magnitude) / magnitude(config->factor, config->magnitude_all);
    }
    /* Files round what the formula gives. */
    if (factor > 0 && fabsf(factor / formula - 1) > 1e-6f)
        put_real(output, "rope.scaling.attn_factor", factor / formula);
}

static void put_scaling(struct output *output, const struct config *config)
{
    static const char *const names[] = {
        [CONFIG_LINEAR] = "linear", [CONFIG_YARN] = "yarn", [CONFIG_LONG] = "longrope"};
    put_text(output, "rope.scaling.type", names[config->scaling]);
    if (config->scaling == CONFIG_LONG) {
        put_count(output, "rope.scaling.original_context_length", config->trained_context);
        put_real(output, "rope.scaling.attn_factor", config->attention_factor);
        return;
    }
    put_real(output, "rope.scaling.factor", config->factor);
    if (config->scaling == CONFIG_LINEAR)
        return;
    put_yarn_magnitude(output, config);
    put_count(output, "rope.scaling.original_context_length", config->trained_context);
    put_real(output, "rope.scaling.yarn_beta_fast", config->fast_turns);
    put_real(output, "rope.scaling.yarn_beta_slow", config->slow_turns);
    put_real(output, "attention.temperature_scale", config->query_growth);
    char key[96];
    if (output->r == 0 && config->exact_ramp)
        output->r = gguf_writer_bool(output->writer, key_of(output, "rope.scaling.truncate", key), false);
}

static void put_rope(struct output *output, const struct config *config)
{
    char key[96];
    const int32_t sections[] = {(int32_t)config->sections[0], (int32_t)config->sections[1],
                                (int32_t)config->sections[2], (int32_t)config->sections[3]};
    if (config->family->uses & USES_NO_ROPE)
        return;
    put_count(output, "rope.dimension_count", config->rope_dims);
    put_real(output, "rope.freq_base", config->rope_base);
    put_real(output, "rope.freq_base_swa", config->window_base);
    if (config->scaling != CONFIG_UNSCALED && config->scaling != CONFIG_LLAMA3 &&
        config->scaling != CONFIG_PROPORTIONAL) /* the latter two are factors */
        put_scaling(output, config);
    if (output->r == 0 && config->sections[0] > 0)
        output->r =
            gguf_writer_i32s(output->writer, key_of(output, "rope.dimension_sections", key), sections, 4);
    /* GGUF's files have the rows of queries and keys in another order. */
    if (output->r == 0 && config->family->uses & USES_HALVES)
        output->r = gguf_writer_bool(output->writer, key_of(output, "rope.halves", key), true);
}

/* Which layers are special: by a period, or one by one. */
static void put_layers(struct output *output, const struct config *config)
{
    bool listed[CONFIG_MOST_LAYERS];
    char key[96];
    if (config->family->uses & USES_DELTA && config->period > 0)
        put_count(output, "full_attention_interval", config->period);
    if (!(config->family->uses & USES_LIST) || (config->family->uses & USES_DELTA && config->period > 0) ||
        config->n_layers > CONFIG_MOST_LAYERS)
        return;
    for (uint32_t i = 0; i < config->n_layers; i++)
        listed[i] = config_is_special(config, i);
    key_of(output,
           config->family->uses & USES_DELTA ? "attention.recurrent_layers"
                                             : "attention.sliding_window_pattern",
           key);
    if (output->r == 0)
        output->r = gguf_writer_bools(output->writer, key, listed, config->n_layers);
}

static void put_list(struct output *output, const struct config *config, const char *name,
                     uint32_t (*count_of)(const struct config *config, uint32_t i))
{
    char key[96];
    int32_t counts[CONFIG_MOST_LAYERS];
    for (uint32_t i = 0; i < config->n_layers; i++)
        counts[i] = (int32_t)count_of(config, i);
    if (output->r == 0)
        output->r = gguf_writer_i32s(output->writer, key_of(output, name, key), counts, config->n_layers);
}

/* Is it another number in some layers? Then it is written as a list. */
static bool is_listed(const struct config *config, const struct config_setting *setting)
{
    const bool apart = config->family->uses & USES_APART;
    return (apart && setting->offset == offsetof(struct config, n_kv_heads) &&
            config->n_kv_heads != config->n_full_kv_heads) ||
           (setting->offset == offsetof(struct config, n_ff) && config->wide_borrowers &&
            config->n_borrowing > 0);
}

static void put_setting(struct output *output, const struct config *config,
                        const struct config_setting *setting)
{
    const void *field = (const char *)config + setting->offset;
    if (!setting->ours || !config_has_setting(config, setting))
        return;
    if (is_listed(config, setting))
        put_list(output, config, setting->ours,
                 setting->offset == offsetof(struct config, n_ff) ? config_ff : config_kv_heads);
    else if (setting->kind == POSITIVE_OR_NONE)
        put_real(output, setting->ours, *(const float *)field);
    else
        put_count(output, setting->ours, *(const uint32_t *)field);
}

/* What only families have whose layers with a window differ from the others. */
static void put_apart(struct output *output, const struct config *config)
{
    if (!(config->family->uses & USES_APART))
        return;
    put_count(output, "attention.key_length_swa", config->window_head_dim);
    put_count(output, "attention.value_length_swa", config->window_head_dim);
    put_count(output, "rope.dimension_count_swa", config->window_head_dim);
    put_count(output, "attention.shared_kv_layers", config->n_borrowing);
    put_count(output, "embedding_length_per_layer_input", config->n_layer_embd);
    put_count(output, "expert_count", config->n_experts);
    put_count(output, "expert_used_count", config->n_used);
    put_count(output, "expert_feed_forward_length", config->expert_ff);
}

int config_write(const struct config *config, const char *name, struct gguf_writer *writer)
{
    const unsigned uses = config->family->uses;
    struct output output = {.writer = writer, .architecture = config->architecture};
    output.r = gguf_writer_string(writer, "general.architecture", config->architecture);
    if (output.r == 0)
        output.r = gguf_writer_string(writer, "general.name", name);
    for (unsigned i = 0; config_setting_at(i); i++)
        put_setting(&output, config, config_setting_at(i));
    put_apart(&output, config);
    put_count(&output, "attention.value_length", config->head_dim);
    put_real(&output,
             uses & USES_LAYER_NORM ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon",
             config->norm_epsilon);
    if (config->query_scalar > 0)
        put_real(&output, "attention.scale", 1.0f / sqrtf(config->query_scalar));
    if (uses & USES_DELTA)
        put_count(&output, "ssm.inner_size", config->n_value_heads * config->value_dim);
    put_rope(&output, config);
    put_layers(&output, config);
    return output.r;
}
