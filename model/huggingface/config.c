/* SPDX-License-Identifier: MIT */
/* Hyperparameters as Hugging Face's transformers name them. What a file leaves out has the default that the
 * class of its kind has there. */

#include "model/huggingface/config.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/utf8.h"
#include "model/huggingface/json_values.h"
#include "gguf/gguf_writer.h"

#define MOST_TEXT ((size_t)1 << 20)

/* No product of two of these overflows, nor of a shape made of them. */
#define MOST_COUNT (1u << 24)

static const struct kind {
    const char *model_type, *architecture;
} kinds[] = {{"llama", "llama"}, {"mistral", "llama"}, {"qwen2", "qwen2"}, {"qwen3", "qwen3"}};

static int read_kind(const json_t *json, struct config *config, struct error *err)
{
    const char *type = NULL;
    char shown[64];
    int r = json_read_text(json, "model_type", &type, err);
    if (r != 0)
        return r < 0 ? r : error_set(err, -EINVAL, "model_type is missing");
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].model_type, type) == 0) {
            config->architecture = kinds[i].architecture;
            return 0;
        }
    return error_set(
        err, -EINVAL,
        "model_type \"%s\" is not supported (llama, mistral, qwen2 and qwen3 are; others as GGUF)",
        utf8_printable(bytes_of_string(type), sizeof shown, shown));
}

/* 1 to MOST_COUNT; `otherwise` 0: it must be there. */
static int read_count(const json_t *json, const char *key, uint32_t otherwise, uint32_t *ret_count,
                      struct error *err)
{
    uint32_t count = otherwise;
    int r = json_read_u32(json, key, &count, err);
    if (r < 0)
        return r;
    if (r == JSON_E_MISSING && otherwise == 0)
        return error_set(err, -EINVAL, "%s is missing", key);
    if (count == 0 || count > MOST_COUNT)
        return error_out_of_range(err, -EINVAL, key, count, 1, MOST_COUNT);
    *ret_count = count;
    return 0;
}

static int read_positive(const json_t *json, const char *key, float otherwise, float *ret_value,
                         struct error *err)
{
    float value = otherwise;
    int r = json_read_real(json, key, &value, err);
    if (r < 0)
        return r;
    if (r == 0 && !(value > 0))
        return error_set(err, -EINVAL, "%s is %g; a number above 0 is required", key, (double)value);
    *ret_value = value;
    return 0;
}

static int read_counts(const json_t *json, struct config *config, struct error *err)
{
    int r = read_count(json, "vocab_size", 0, &config->n_vocab, err);
    if (r == 0)
        r = read_count(json, "hidden_size", 0, &config->n_embd, err);
    if (r == 0)
        r = read_count(json, "intermediate_size", 0, &config->n_ff, err);
    if (r == 0)
        r = read_count(json, "num_hidden_layers", 0, &config->n_layers, err);
    if (r == 0)
        r = read_count(json, "num_attention_heads", 0, &config->n_heads, err);
    if (r == 0)
        r = read_count(json, "num_key_value_heads", config->n_heads, &config->n_kv_heads, err);
    if (r == 0)
        r = read_count(json, "max_position_embeddings", 0, &config->n_context, err);
    if (r < 0)
        return r;
    /* Qwen 3's heads have a size of their own, Qwen 2's and Llama's a share of the width if nothing is said.
     */
    uint32_t share = config->n_embd / config->n_heads, said = 0;
    if (strcmp(config->architecture, "qwen3") == 0)
        share = 128;
    else if (config->n_embd % config->n_heads != 0 && json_read_u32(json, "head_dim", &said, err) != 0)
        return error_set(err, -EINVAL, "hidden_size %u is not a multiple of num_attention_heads %u",
                         config->n_embd, config->n_heads);
    r = read_count(json, "head_dim", share ? share : 1, &config->head_dim, err);
    if (r == 0 && (uint64_t)config->n_heads * config->head_dim > MOST_COUNT)
        r = error_set(err, -EINVAL, "num_attention_heads %u times head_dim %u is too large", config->n_heads,
                      config->head_dim);
    if (r == 0 && config->n_kv_heads > config->n_heads)
        r = error_set(err, -EINVAL, "num_key_value_heads %u does not fit num_attention_heads %u",
                      config->n_kv_heads, config->n_heads);
    return r;
}

/* What changes the computation in a way that GGUF's metadata cannot say. */
static int refuse_others(const json_t *json, struct error *err)
{
    const char *activation = "silu";
    bool sliding = false;
    float partial = 1;
    char shown[64];
    int r = json_read_text(json, "hidden_act", &activation, err);
    if (r >= 0 && strcmp(activation, "silu") != 0)
        return error_set(err, -EINVAL, "hidden_act \"%s\" is not supported (silu is)",
                         utf8_printable(bytes_of_string(activation), sizeof shown, shown));
    if (r >= 0)
        r = json_read_flag(json, "use_sliding_window", &sliding, err);
    if (r >= 0 && sliding)
        return error_set(err, -EINVAL, "use_sliding_window is true, which is not supported");
    if (r >= 0)
        r = json_read_real(json, "partial_rotary_factor", &partial, err);
    if (r >= 0 && partial != 1)
        return error_set(err, -EINVAL, "partial_rotary_factor is %g; only 1 is supported", (double)partial);
    const json_t *quantized = json_object_get(json, "quantization_config");
    if (r >= 0 && quantized && !json_is_null(quantized))
        return error_set(err, -EINVAL,
                         "quantization_config: quantized weights are not supported; use the original weights "
                         "or a GGUF file");
    return r < 0 ? r : 0;
}

/* A window counts in Mistral's models alone: Qwen's say that they do not use theirs. */
static int read_window(const json_t *json, struct config *config, struct error *err)
{
    uint32_t window = 0;
    int r = json_read_u32(json, "sliding_window", &window, err);
    if (r < 0)
        return r;
    if (strcmp(json_string_value(json_object_get(json, "model_type")), "mistral") == 0)
        config->window = window < config->n_context ? window : 0;
    return 0;
}

static int read_scaling_numbers(const json_t *scaling, struct config *config, struct error *err)
{
    int r = read_positive(scaling, "factor", 0, &config->factor, err);
    if (r == 0 && config->factor == 0)
        return error_set(err, -EINVAL, "factor is missing");
    if (r == 0)
        r = read_positive(scaling, "low_freq_factor", 0, &config->low, err);
    if (r == 0)
        r = read_positive(scaling, "high_freq_factor", 0, &config->high, err);
    if (r == 0)
        r = read_positive(scaling, "beta_fast", 0, &config->fast_turns, err);
    if (r == 0)
        r = read_positive(scaling, "beta_slow", 0, &config->slow_turns, err);
    if (r == 0)
        r = read_positive(scaling, "attention_factor", 0, &config->attention_factor, err);
    if (r == 0)
        r = json_read_u32(scaling, "original_max_position_embeddings", &config->trained_context, err);
    if (r < 0)
        return r;
    if (config->scaling == CONFIG_LLAMA3 &&
        (config->trained_context == 0 || config->low == 0 || config->high <= config->low))
        return error_set(err, -EINVAL,
                         "llama3 needs original_max_position_embeddings, low_freq_factor and a larger "
                         "high_freq_factor");
    for (const char *const *key = (const char *const[]){"mscale", "mscale_all_dim", NULL}; *key; key++)
        if (json_object_get(scaling, *key))
            return error_set(err, -EINVAL, "%s is not supported", *key);
    return 0;
}

/* `rope_scaling`, or what newer files have in `rope_parameters` together with the base. */
static int read_rope(const json_t *json, struct config *config, struct error *err)
{
    static const char *const names[] = {[CONFIG_UNSCALED] = "default",
                                        [CONFIG_LINEAR] = "linear",
                                        [CONFIG_YARN] = "yarn",
                                        [CONFIG_LLAMA3] = "llama3"};
    const json_t *together = json_object_get(json, "rope_parameters");
    const char *key = json_is_object(together) ? "rope_parameters" : "rope_scaling", *type = NULL;
    const json_t *scaling = json_object_get(json, key);
    char shown[64];
    int r = read_positive(json, "rope_theta", 10000, &config->rope_base, err);
    if (r == 0 && json_is_object(together))
        r = read_positive(together, "rope_theta", config->rope_base, &config->rope_base, err);
    if (r < 0 || !scaling || json_is_null(scaling))
        return r;
    if (!json_is_object(scaling))
        return error_set(err, -EINVAL, "%s is not an object", key);
    r = json_read_text(scaling, "rope_type", &type, err);
    if (r == JSON_E_MISSING)
        r = json_read_text(scaling, "type", &type, err);
    if (r != 0)
        return error_prefix(err, r < 0 ? r : error_set(err, -EINVAL, "rope_type is missing"), "%s", key);
    int which = CONFIG_UNSCALED;
    while (which <= CONFIG_LLAMA3 && strcmp(names[which], type) != 0)
        which++;
    if (which > CONFIG_LLAMA3)
        return error_set(err, -EINVAL,
                         "%s: rope_type \"%s\" is not supported (default, linear, yarn and llama3 are)", key,
                         utf8_printable(bytes_of_string(type), sizeof shown, shown));
    config->scaling = (enum config_scaling)which;
    r = which == CONFIG_UNSCALED ? 0 : read_scaling_numbers(scaling, config, err);
    return r < 0 ? error_prefix(err, r, "%s", key) : 0;
}

static int read_all(const json_t *json, struct config *config, struct error *err)
{
    int r = read_kind(json, config, err);
    if (r == 0)
        r = read_counts(json, config, err);
    if (r == 0)
        r = refuse_others(json, err);
    if (r == 0)
        r = read_positive(json, "rms_norm_eps", 1e-6f, &config->norm_epsilon, err);
    if (r == 0)
        r = read_window(json, config, err);
    if (r == 0)
        r = read_rope(json, config, err);
    if (r == 0)
        r = json_read_flag(json, "tie_word_embeddings", &config->tied, err);
    return r < 0 ? r : 0;
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

static void put_scaling(struct output *output, const struct config *config)
{
    put_text(output, "rope.scaling.type", config->scaling == CONFIG_YARN ? "yarn" : "linear");
    put_real(output, "rope.scaling.factor", config->factor);
    if (config->scaling == CONFIG_LINEAR)
        return;
    /* GGUF's factor is beside what YaRN's formula gives, this one in its place. */
    float formula = config->factor > 1 ? 1 + 0.1f * logf(config->factor) : 1;
    put_real(output, "rope.scaling.attn_factor", config->attention_factor / formula);
    put_count(output, "rope.scaling.original_context_length", config->trained_context);
    put_real(output, "rope.scaling.yarn_beta_fast", config->fast_turns);
    put_real(output, "rope.scaling.yarn_beta_slow", config->slow_turns);
}

int config_write(const struct config *config, const char *name, struct gguf_writer *writer)
{
    struct output output = {.writer = writer, .architecture = config->architecture};
    char key[96];
    output.r = gguf_writer_string(writer, "general.architecture", config->architecture);
    if (output.r == 0)
        output.r = gguf_writer_string(writer, "general.name", name);
    put_count(&output, "vocab_size", config->n_vocab);
    put_count(&output, "context_length", config->n_context);
    put_count(&output, "embedding_length", config->n_embd);
    put_count(&output, "block_count", config->n_layers);
    put_count(&output, "feed_forward_length", config->n_ff);
    put_count(&output, "attention.head_count", config->n_heads);
    put_count(&output, "attention.head_count_kv", config->n_kv_heads);
    put_count(&output, "attention.key_length", config->head_dim);
    put_count(&output, "attention.value_length", config->head_dim);
    put_count(&output, "attention.sliding_window", config->window);
    put_real(&output, "attention.layer_norm_rms_epsilon", config->norm_epsilon);
    put_count(&output, "rope.dimension_count", config->head_dim);
    put_real(&output, "rope.freq_base", config->rope_base);
    if (config->scaling == CONFIG_LINEAR || config->scaling == CONFIG_YARN)
        put_scaling(&output, config);
    /* GGUF's llama files have the rows of queries and keys in another order. */
    if (output.r == 0 && strcmp(config->architecture, "llama") == 0)
        output.r = gguf_writer_bool(writer, key_of(&output, "rope.halves", key), true);
    return output.r;
}

uint32_t config_n_factors(const struct config *config)
{
    return config->scaling == CONFIG_LLAMA3 ? config->head_dim / 2 : 0;
}

/* Fast pairs are left alone, slow ones slowed by the whole factor, with a ramp between. */
void config_factors(const struct config *config, float *ret_factors)
{
    for (uint32_t i = 0; i < config_n_factors(config); i++) {
        double frequency = pow((double)config->rope_base, -2.0 * i / config->head_dim);
        double turns = config->trained_context * frequency / (2 * M_PI);
        double low = (double)config->low, high = (double)config->high;
        double fast = fmin(1, fmax(0, (turns - low) / (high - low)));
        ret_factors[i] = (float)(1 / ((1 - fast) / (double)config->factor + fast));
    }
}
