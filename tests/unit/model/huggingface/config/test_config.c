/* SPDX-License-Identifier: MIT */
/* What config.json says, what its kind's class fills in, and the metadata that comes of it. */

#include "model/huggingface/config/config.h"
#include "tests/unit/run.h"
#include "gguf/gguf_assemble.h"
#include "gguf/gguf_values.h"
#include "gguf/gguf_writer.h"

#include <stdio.h>
#include <string.h>

/* All that has no default, for `type`, then `more`, which begins with a comma or is empty. */
static struct bytes text_with(const char *type, const char *more)
{
    static char text[1024];
    snprintf(text, sizeof text,
             "{\"model_type\":\"%s\",\"vocab_size\":8,\"hidden_size\":32,\"intermediate_size\":48,"
             "\"num_hidden_layers\":3,\"num_attention_heads\":4,\"max_position_embeddings\":64%s}",
             type, more);
    return bytes_of_string(text);
}

static struct config config_of(const char *type, const char *more)
{
    struct config config = {0};
    struct error err = {0};
    ck_assert_msg(config_parse(text_with(type, more), &config, &err) == 0, "%s: %s", more, err.text);
    return config;
}

static void expect_refusal(const char *type, const char *more, const char *says)
{
    struct config config = {.n_vocab = 77};
    struct error err = {0};
    int r = config_parse(text_with(type, more), &config, &err);
    ck_assert_msg(r < 0 && strstr(err.text, says), "%s: \"%s\" expected: %d, %s", more, says, r, err.text);
    ck_assert_uint_eq(config.n_vocab, 77); /* untouched */
}

START_TEST(what_is_left_out_has_the_default_of_its_kind)
{
    struct config config = config_of("llama", "");
    ck_assert_str_eq(config.architecture, "llama");
    ck_assert(config.n_vocab == 8 && config.n_embd == 32 && config.n_ff == 48 && config.n_layers == 3);
    ck_assert(config.n_heads == 4 && config.n_kv_heads == 4 && config.head_dim == 8);
    ck_assert(config.n_context == 64 && config.window == 0 && !config.tied);
    ck_assert(config.norm_epsilon == 1e-6f && config.rope_base == 10000);
    ck_assert(config.scaling == CONFIG_UNSCALED && config_n_factors(&config, CONFIG_FACTORS) == 0);
    config = config_of("qwen3", ""); /* heads of a size of their own */
    ck_assert_str_eq(config.architecture, "qwen3");
    ck_assert_uint_eq(config.head_dim, 128);
    config = config_of("qwen2", ",\"tie_word_embeddings\":true");
    ck_assert_str_eq(config.architecture, "qwen2");
    ck_assert(config.head_dim == 8 && config.tied);
    config = config_of("mistral", ",\"head_dim\":16,\"num_key_value_heads\":2,\"rope_theta\":1e6,"
                                  "\"rms_norm_eps\":1e-5,\"rope_scaling\":null,\"quantization_config\":null");
    ck_assert_str_eq(config.architecture, "llama");
    ck_assert(config.head_dim == 16 && config.n_kv_heads == 2 && config.rope_base == 1e6f);
    ck_assert_float_eq(config.norm_epsilon, 1e-5f);
}
END_TEST

/* Heads need not share the width evenly where their size is said. */
START_TEST(a_size_of_heads_that_is_said_needs_no_share)
{
    struct config config = config_of("llama", ",\"num_key_value_heads\":1,\"head_dim\":5");
    ck_assert_uint_eq(config.head_dim, 5);
    static const char uneven[] =
        "{\"model_type\":\"llama\",\"vocab_size\":8,\"hidden_size\":30,\"intermediate_size\":48,"
        "\"num_hidden_layers\":1,\"num_attention_heads\":4,\"max_position_embeddings\":64,\"head_dim\":6}";
    ck_assert_int_eq(config_parse(bytes_of_string(uneven), &config, NULL), 0);
    ck_assert(config.n_embd == 30 && config.head_dim == 6);
    expect_refusal("llama", ",\"head_dim\":4194305",
                   "num_attention_heads 4 times head_dim 4194305 is too large");
    ck_assert_uint_eq(config_of("llama", ",\"head_dim\":4194304").head_dim, 4194304); /* 2²⁴ together */
    expect_refusal("llama", ",\"num_key_value_heads\":5",
                   "num_key_value_heads 5 does not fit num_attention_heads 4");
}
END_TEST

/* Only Mistral's models use theirs, and one as long as the context is none. */
START_TEST(a_window_counts_in_one_kind_alone)
{
    ck_assert_uint_eq(config_of("mistral", ",\"sliding_window\":63").window, 63);
    ck_assert_uint_eq(config_of("mistral", ",\"sliding_window\":64").window, 0);
    ck_assert_uint_eq(config_of("mistral", ",\"sliding_window\":null").window, 0);
    ck_assert_uint_eq(config_of("qwen2", ",\"sliding_window\":32,\"use_sliding_window\":false").window, 0);
    expect_refusal("qwen2", ",\"sliding_window\":32,\"use_sliding_window\":true",
                   "use_sliding_window is true, which is not supported (false is)");
    expect_refusal("mistral", ",\"sliding_window\":-1",
                   "sliding_window is not an integer from 0 to 4294967295");
}
END_TEST

START_TEST(scaling_is_read_from_either_object)
{
    struct config config = config_of("llama", ",\"rope_scaling\":{\"type\":\"linear\",\"factor\":2.5}");
    ck_assert(config.scaling == CONFIG_LINEAR && config.factor == 2.5f);
    config = config_of("llama", ",\"rope_scaling\":{\"rope_type\":\"default\",\"type\":\"yarn\"}");
    ck_assert(config.scaling == CONFIG_UNSCALED && config.factor == 0);
    config =
        config_of("qwen2", ",\"rope_theta\":5,\"rope_parameters\":{\"rope_theta\":7,\"rope_type\":\"yarn\","
                           "\"factor\":4,\"beta_fast\":32,\"beta_slow\":1,\"attention_factor\":1.5,"
                           "\"original_max_position_embeddings\":16}");
    ck_assert(config.scaling == CONFIG_YARN && config.rope_base == 7 && config.factor == 4);
    ck_assert(config.fast_turns == 32 && config.slow_turns == 1 && config.attention_factor == 1.5f);
    ck_assert_uint_eq(config.trained_context, 16);
    ck_assert_uint_eq(config_n_factors(&config, CONFIG_FACTORS), 0);
    config = config_of("qwen2", ",\"rope_theta\":5,\"rope_parameters\":{\"rope_type\":\"default\"}");
    ck_assert(config.scaling == CONFIG_UNSCALED && config.rope_base == 5);
}
END_TEST

/* The figures are those of transformers' formula for the smallest head that has all three cases. */
START_TEST(pairs_of_llama_3_are_slowed_by_their_turns)
{
    struct config config =
        config_of("llama", ",\"rope_theta\":500000,\"rope_scaling\":{\"rope_type\":\"llama3\","
                           "\"factor\":8,\"low_freq_factor\":1,\"high_freq_factor\":4,"
                           "\"original_max_position_embeddings\":8192}");
    float factors[4];
    ck_assert(config.low == 1 && config.high == 4);
    ck_assert_uint_eq(config_n_factors(&config, CONFIG_FACTORS), 4);
    config_factors(&config, CONFIG_FACTORS, factors);
    ck_assert_float_eq(factors[0], 1);
    ck_assert_float_eq(factors[1], 1);
    ck_assert_float_eq_tol(factors[2], 2.6945297f, 1e-5f);
    ck_assert_float_eq(factors[3], 8);
}
END_TEST

START_TEST(scaling_that_cannot_be_is_named)
{
#define LLAMA3 ",\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8,"
    static const struct {
        const char *more, *says;
    } cases[] = {
        {",\"rope_scaling\":3", "rope_scaling: not an object"},
        {",\"rope_scaling\":{\"factor\":2}", "rope_scaling: rope_type is missing"},
        {",\"rope_scaling\":{\"rope_type\":2}", "rope_scaling: rope_type is not a string"},
        {",\"rope_parameters\":{\"rope_type\":\"longrope\"}",
         "rope_parameters: rope_type \"longrope\" is not supported in a llama model"},
        {",\"rope_parameters\":{\"rope_type\":\"dynamic\"}",
         "rope_parameters: rope_type \"dynamic\" is not supported"},
        {",\"rope_parameters\":{\"rope_theta\":0,\"rope_type\":\"default\"}",
         "rope_theta is 0; a number above 0"},
        {",\"rope_scaling\":{\"type\":\"linear\",\"factor\":0}",
         "rope_scaling: factor is 0; a number above 0"},
        {",\"rope_scaling\":{\"type\":\"linear\",\"factor\":1e60}", "factor is not a finite number"},
        {",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":2,\"mscale\":-1}", "rope_scaling: mscale is -1"},
        {",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":2,\"llama_4_scaling_beta\":0.1}",
         "rope_scaling: llama_4_scaling_beta is not supported"},
        {",\"rope_scaling\":{\"type\":\"default\",\"mrope_section\":[1,2,1]}",
         "rope_scaling: mrope_section is not supported"},
        {",\"partial_rotary_factor\":0.5", "partial_rotary_factor is 0.5, which is not supported (1 is)"},
        {",\"layer_types\":[\"full_attention\"]", "layer_types is not a list of 3 layers"},
        {",\"layer_types\":[\"full_attention\",\"sliding_attention\",\"full_attention\"]",
         "layer_types: layer 1 is \"sliding_attention\", which is not supported (full_attention is)"},
        {",\"quantization_config\":{\"quant_method\":\"gptq\"}",
         "quantization_config: quant_method \"gptq\" is not supported"},
        {",\"quantization_config\":{\"quant_method\":\"awq\"}",
         "quantization_config: quant_method \"awq\" is not supported"},
        {",\"quantization_config\":{\"quant_method\":\"bitsandbytes\"}",
         "quantization_config: quant_method \"bitsandbytes\" is not supported"},
        {",\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"format\":\"pack-quantized\"}",
         "quantization_config: format \"pack-quantized\" is not supported (float-quantized is)"},
        {",\"quantization_config\":{\"quant_method\":\"fp8\",\"weight_block_size\":[128]}",
         "quantization_config: weight_block_size is not a list of two sizes"},
        {",\"hidden_act\":\"gelu\"", "hidden_act is \"gelu\", which is not supported (\"silu\" is)"},
        {LLAMA3 "\"low_freq_factor\":4,\"high_freq_factor\":4,\"original_max_position_embeddings\":8192}",
         "a larger high_freq_factor"},
        {LLAMA3 "\"high_freq_factor\":4,\"original_max_position_embeddings\":8192}", "llama3 needs"},
        {LLAMA3 "\"low_freq_factor\":1,\"high_freq_factor\":4}", "llama3 needs"},
        {",\"tie_word_embeddings\":1", "tie_word_embeddings is neither true nor false"},
        {",\"hidden_act\":1", "hidden_act is 1, which is not supported (\"silu\" is)"},
        {",\"rms_norm_eps\":\"x\"", "rms_norm_eps is not a finite number"},
        {",\"rms_norm_eps\":-1e-5", "rms_norm_eps is -1e-05"},
        {",\"head_dim\":4294967296", "head_dim is not an integer from 0 to 4294967295"},
        {",\"head_dim\":16777217", "head_dim 16777217 is out of range 1..16777216"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect_refusal("llama", cases[i].more, cases[i].says);
    struct config config;
    struct error err = {0};
    ck_assert_int_lt(config_parse(BYTES_LITERAL("{\"vocab_size\":8}"), &config, &err), 0);
    ck_assert_str_eq(err.text, "model_type is missing");
}
END_TEST

/* ---- families ---- */

/* What the classes of wrappers fill in is most of what their files leave out. */
START_TEST(a_wrapper_has_the_text_inside)
{
    struct config config;
    struct error err = {0};
    static const char text[] =
        "{\"model_type\":\"gemma3\",\"vision_config\":{},\"text_config\":{\"model_type\":\"gemma3_text\","
        "\"hidden_size\":2560,\"intermediate_size\":10240,\"num_hidden_layers\":34,"
        "\"rope_scaling\":{\"factor\":8.0,\"rope_type\":\"linear\"},\"sliding_window\":1024}}";
    ck_assert_msg(config_parse(bytes_of_string(text), &config, &err) == 0, "%s", err.text);
    ck_assert_str_eq(config.architecture, "gemma3");
    ck_assert(config.wrapped && config.tied && config.n_vocab == 262208 && config.n_heads == 8);
    ck_assert(config.n_kv_heads == 4 && config.head_dim == 256 && config.n_context == 131072);
    ck_assert(config.window == 1024 && config.rope_base == 1e6f && config.query_scalar == 256);
    ck_assert(config.scaling == CONFIG_LINEAR && config.score_cap == 0 && config.logit_cap == 0);
    ck_assert(config_is_special(&config, 0) && !config_is_special(&config, 5));
    static const struct {
        const char *text, *says;
    } wrong[] = {
        {"{\"model_type\":\"gemma3\"}", "text_config is not an object"},
        {"{\"model_type\":\"gemma3\",\"text_config\":{\"model_type\":\"bert\"}}",
         "text_config: model_type \"bert\" is not supported"},
        {"{\"model_type\":\"gemma3\",\"text_config\":{\"model_type\":\"gemma3\"}}",
         "text_config: model_type \"gemma3\" is not supported"},
        {"{\"model_type\":\"gemma3\",\"text_config\":{\"head_dim\":\"x\"}}",
         "text_config: head_dim is not an integer"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_int_lt(config_parse(bytes_of_string(wrong[i].text), &config, &err), 0);
        ck_assert_msg(strstr(err.text, wrong[i].says), "\"%s\": %s", wrong[i].says, err.text);
    }
}
END_TEST

/* Newer files have the rotation of each kind of layer apart. */
START_TEST(layers_with_a_window_may_turn_on_their_own)
{
#define ROTATIONS(base)                                                                                      \
    ",\"sliding_window\":16,\"rope_parameters\":{\"full_attention\":{\"rope_type\":\"yarn\",\"factor\":8,"   \
    "\"rope_theta\":5e5,\"original_max_position_embeddings\":8},\"sliding_attention\":{\"rope_type\":"       \
    "\"default\",\"rope_theta\":" base "}}"
    struct config config = config_of("olmo3", ROTATIONS("1e4"));
    ck_assert(config.rope_base == 5e5f && config.window_base == 1e4f && config.scaling == CONFIG_YARN);
    ck_assert_uint_eq(config.period, 4);
    config = config_of("olmo3", ROTATIONS("5e5"));
    ck_assert(config.window_base == 0);
    config = config_of("gemma3_text", ROTATIONS("10000"));
    ck_assert(config.window_base == 0);
    expect_refusal("gemma3_text", ROTATIONS("20000"), "sliding_attention: rope_theta is 20000; only 10000");
    expect_refusal(
        "gemma3_text",
        ",\"rope_parameters\":{\"full_attention\":{\"rope_type\":\"default\"},\"sliding_attention\":"
        "{\"rope_type\":\"linear\",\"factor\":2}}",
        "sliding_attention: rope_type \"linear\" is not supported");
    expect_refusal("gemma2",
                   ",\"rope_parameters\":{\"full_attention\":{\"rope_type\":\"default\",\"rope_theta\":5e5},"
                   "\"sliding_attention\":{\"rope_type\":\"default\",\"rope_theta\":1e4}}",
                   "sliding_attention: rope_theta is 10000; only 500000 is supported");
}
END_TEST

START_TEST(lists_of_layers_are_as_the_family_has_them)
{
#define TYPES(a, b, c) ",\"layer_types\":[\"" a "_attention\",\"" b "_attention\",\"" c "_attention\"]"
    ck_assert_uint_eq(
        config_of("gpt_oss", TYPES("sliding", "full", "sliding") ",\"num_local_experts\":4").period, 2);
    expect_refusal("gpt_oss", TYPES("full", "sliding", "full"),
                   "only full_attention once every 2 layers is supported");
    struct config config = config_of("olmo3", TYPES("full", "sliding", "full"));
    ck_assert(config.period == 0 && !config_is_special(&config, 0) && config_is_special(&config, 1));
    config = config_of("qwen3_5_text", TYPES("linear", "full", "linear") ",\"rope_theta\":1e7");
    ck_assert(config.period == 0 && config_is_special(&config, 2) && config.rope_dims == 64);
    config = config_of("qwen3_5_text", ",\"full_attention_interval\":2");
    ck_assert(config.period == 2 && !config_is_special(&config, 1));
    expect_refusal("qwen3_5_text", TYPES("linear", "sliding", "linear"), "layer 1 is \"sliding_attention\"");
    expect_refusal("smollm3", ",\"no_rope_layers\":[1,0,1]",
                   "no_rope_layers: layer 1 breaks the only supported pattern");
}
END_TEST

START_TEST(values_that_a_family_cannot_have_are_named)
{
    static const struct {
        const char *type, *more, *says;
    } cases[] = {
        {"qwen3", ",\"attention_bias\":true", "attention_bias is true, which is not supported (false is)"},
        {"qwen3_moe", "", "norm_topk_prob is false, which is not supported (true is)"},
        {"qwen3_moe", ",\"norm_topk_prob\":true,\"mlp_only_layers\":[1]", "mlp_only_layers is [1]"},
        {"qwen3_moe", ",\"norm_topk_prob\":true,\"num_experts\":0", "num_experts 0 is out of range"},
        {"gpt2", ",\"activation_function\":\"relu\"", "activation_function is \"relu\""},
        {"phi", ",\"hidden_act\":\"silu\"", "hidden_act is \"silu\""},
        {"gemma3_text", ",\"use_bidirectional_attention\":true", "use_bidirectional_attention is true"},
        {"gpt_oss", ",\"swiglu_limit\":8", "swiglu_limit is 8"},
        {"phi3", ",\"hidden_act\":\"silu\",\"partial_rotary_factor\":1.5", "partial_rotary_factor is 1.5"},
        {"phi3",
         ",\"rope_scaling\":{\"type\":\"su\",\"short_factor\":[1],\"long_factor\":[1]},"
         "\"original_max_position_embeddings\":16",
         "rope_scaling: short_factor is not a list of 4 numbers"},
        {"phi3",
         ",\"rope_scaling\":{\"type\":\"su\",\"short_factor\":[1,1,1,0],\"long_factor\":[1]},"
         "\"original_max_position_embeddings\":16",
         "rope_scaling: short_factor: number 3 is not above 0"},
        {"phi3", ",\"rope_scaling\":{\"type\":\"longrope\"}", "longrope needs original_max_position"},
        {"olmo2", ",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":2,\"beta_fast\":16}",
         "rope_scaling: beta_fast 16 and beta_slow 0 are not supported (32 and 1 are)"},
        {"qwen3_5_text", ",\"linear_num_value_heads\":3,\"linear_num_key_heads\":2",
         "linear_num_value_heads 3 is not a multiple of linear_num_key_heads 2"},
        {"qwen3_5_text", ",\"rope_parameters\":{\"rope_type\":\"default\",\"mrope_section\":[11,11]}",
         "rope_parameters: mrope_section is not a list of three counts"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect_refusal(cases[i].type, cases[i].more, cases[i].says);
}
END_TEST

/* ---- as metadata ---- */

static struct gguf *written(const struct config *config)
{
    struct gguf_writer *writer;
    struct gguf *gguf;
    struct error err = {0};
    ck_assert_int_eq(gguf_writer_new(&writer), 0);
    ck_assert_int_eq(gguf_new(&gguf), 0);
    ck_assert_int_eq(config_write(config, "tiny", writer), 0);
    ck_assert_msg(gguf_assemble(gguf, writer, NULL, &err) == 0, "%s", err.text);
    gguf_writer_free(writer);
    return gguf;
}

static void expect_u32(const struct gguf *gguf, const char *key, uint32_t expected)
{
    uint32_t value = 0;
    ck_assert_msg(gguf_u32(gguf, key, &value, NULL) == 0 && value == expected, "%s: %u", key, value);
}

static void expect_f32(const struct gguf *gguf, const char *key, float expected)
{
    float value = 0;
    ck_assert_msg(gguf_f32(gguf, key, &value, NULL) == 0, "%s", key);
    ck_assert_float_eq_tol(value, expected, 1e-6f);
}

static void expect_text(const struct gguf *gguf, const char *key, const char *expected)
{
    struct bytes value = {0};
    ck_assert_msg(gguf_string(gguf, key, &value, NULL) == 0, "%s", key);
    ck_assert(bytes_equal(value, bytes_of_string(expected)));
}

START_TEST(numbers_stand_under_their_keys)
{
    struct config config =
        config_of("mistral", ",\"head_dim\":16,\"num_key_value_heads\":2,\"sliding_window\":20,"
                             "\"rope_theta\":1e6,\"rms_norm_eps\":0.5");
    struct gguf *gguf = written(&config);
    bool halves = false;
    expect_text(gguf, "general.architecture", "llama");
    expect_text(gguf, "general.name", "tiny");
    expect_u32(gguf, "llama.vocab_size", 8);
    expect_u32(gguf, "llama.context_length", 64);
    expect_u32(gguf, "llama.embedding_length", 32);
    expect_u32(gguf, "llama.block_count", 3);
    expect_u32(gguf, "llama.feed_forward_length", 48);
    expect_u32(gguf, "llama.attention.head_count", 4);
    expect_u32(gguf, "llama.attention.head_count_kv", 2);
    expect_u32(gguf, "llama.attention.key_length", 16);
    expect_u32(gguf, "llama.attention.value_length", 16);
    expect_u32(gguf, "llama.attention.sliding_window", 20);
    expect_u32(gguf, "llama.rope.dimension_count", 16);
    expect_f32(gguf, "llama.attention.layer_norm_rms_epsilon", 0.5f);
    expect_f32(gguf, "llama.rope.freq_base", 1e6f);
    ck_assert(gguf_bool(gguf, "llama.rope.halves", &halves, NULL) == 0 && halves);
    ck_assert_ptr_null(gguf_find(gguf, "llama.rope.scaling.type"));
    gguf_free(gguf);
    config = config_of("qwen2", "");
    gguf = written(&config);
    ck_assert_ptr_null(gguf_find(gguf, "qwen2.rope.halves"));
    ck_assert_ptr_null(gguf_find(gguf, "qwen2.attention.sliding_window")); /* nothing is no 0 */
    gguf_free(gguf);
}
END_TEST

/* GGUF's attn_factor multiplies what YaRN's formula gives, 1 + ln(factor) / 10. */
START_TEST(scaling_is_written_as_gguf_has_it)
{
    struct config config = config_of("qwen2", ",\"rope_scaling\":{\"type\":\"linear\",\"factor\":2,"
                                              "\"original_max_position_embeddings\":16}");
    struct gguf *gguf = written(&config);
    expect_text(gguf, "qwen2.rope.scaling.type", "linear");
    expect_f32(gguf, "qwen2.rope.scaling.factor", 2);
    ck_assert_ptr_null(gguf_find(gguf, "qwen2.rope.scaling.original_context_length"));
    gguf_free(gguf);
    config = config_of("qwen2", ",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4,\"attention_factor\":1.5,"
                                "\"original_max_position_embeddings\":16,\"beta_fast\":31,\"beta_slow\":2}");
    gguf = written(&config);
    expect_text(gguf, "qwen2.rope.scaling.type", "yarn");
    expect_f32(gguf, "qwen2.rope.scaling.factor", 4);
    expect_f32(gguf, "qwen2.rope.scaling.attn_factor", 1.3173742f);
    expect_u32(gguf, "qwen2.rope.scaling.original_context_length", 16);
    expect_f32(gguf, "qwen2.rope.scaling.yarn_beta_fast", 31);
    expect_f32(gguf, "qwen2.rope.scaling.yarn_beta_slow", 2);
    gguf_free(gguf);
    config =
        config_of("qwen2", ",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":0.5,\"attention_factor\":1.5}");
    gguf = written(&config);
    expect_f32(gguf, "qwen2.rope.scaling.attn_factor", 1.5f); /* the formula begins at a factor of 1 */
    gguf_free(gguf);
    config = config_of("qwen2", ",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4}");
    gguf = written(&config);
    ck_assert_ptr_null(gguf_find(gguf, "qwen2.rope.scaling.attn_factor"));
    gguf_free(gguf);
}
END_TEST

/* Magnitudes that the formula gives are not said again; that of a share has a key where it is known. */
START_TEST(numbers_of_newer_families_are_written)
{
#define YARN "\"rope_scaling\":{\"type\":\"yarn\",\"factor\":8,\"original_max_position_embeddings\":16,"
    struct config config = config_of("olmo3", "," YARN "\"attention_factor\":1.2079441541679836}");
    struct gguf *gguf = written(&config);
    expect_text(gguf, "general.architecture", "olmo2");
    ck_assert_ptr_null(gguf_find(gguf, "olmo2.rope.scaling.attn_factor"));
    const struct gguf_value *list = gguf_find(gguf, "olmo2.attention.sliding_window_pattern");
    ck_assert(list && list->type == GGUF_ARRAY && list->array.type == GGUF_BOOL && list->array.n == 3);
    gguf_free(gguf);
    config =
        config_of("ministral3", "," YARN "\"mscale\":1,\"mscale_all_dim\":1,\"llama_4_scaling_beta\":0.1}");
    gguf = written(&config);
    expect_f32(gguf, "mistral3.rope.scaling.yarn_log_multiplier", 1);
    expect_f32(gguf, "mistral3.attention.temperature_scale", 0.1f);
    gguf_free(gguf);
    config = config_of("llama", "," YARN "\"mscale\":1,\"mscale_all_dim\":1,\"truncate\":false}");
    gguf = written(&config);
    bool whole = true;
    expect_f32(gguf, "llama.rope.scaling.attn_factor", 1 / 1.2079442f);
    ck_assert(gguf_bool(gguf, "llama.rope.scaling.truncate", &whole, NULL) == 0 && !whole);
    gguf_free(gguf);
    config = config_of("gemma2", ",\"query_pre_attn_scalar\":144,\"final_logit_softcapping\":null");
    gguf = written(&config);
    expect_f32(gguf, "gemma2.attention.scale", 1 / 12.f);
    expect_f32(gguf, "gemma2.attn_logit_softcapping", 50);
    ck_assert_ptr_null(gguf_find(gguf, "gemma2.final_logit_softcapping"));
    gguf_free(gguf);
    config =
        config_of("phi3", ",\"original_max_position_embeddings\":16,\"rope_scaling\":{\"type\":\"longrope\","
                          "\"short_factor\":[1,2,3,4],\"long_factor\":[5,6,7,8]}");
    gguf = written(&config);
    float factors[4];
    expect_f32(gguf, "phi3.rope.scaling.attn_factor", 1.2247449f); /* √(1 + ln 4 ÷ ln 16) */
    ck_assert_uint_eq(config_n_factors(&config, CONFIG_LONG_FACTORS), 4);
    config_factors(&config, CONFIG_LONG_FACTORS, factors);
    ck_assert_float_eq(factors[3], 8);
    gguf_free(gguf);
    config = config_of("qwen3_5_text", ",\"linear_num_value_heads\":4,\"linear_num_key_heads\":2,"
                                       "\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":1e7,"
                                       "\"mrope_section\":[11,11,10],\"partial_rotary_factor\":0.5}");
    gguf = written(&config);
    expect_u32(gguf, "qwen35.ssm.inner_size", 512);
    expect_u32(gguf, "qwen35.rope.dimension_count", 128);
    expect_u32(gguf, "qwen35.full_attention_interval", 4);
    ck_assert_ptr_nonnull(gguf_find(gguf, "qwen35.rope.dimension_sections"));
    gguf_free(gguf);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_wrapper_has_the_text_inside);
    tcase_add_test(tests, layers_with_a_window_may_turn_on_their_own);
    tcase_add_test(tests, lists_of_layers_are_as_the_family_has_them);
    tcase_add_test(tests, values_that_a_family_cannot_have_are_named);
    tcase_add_test(tests, numbers_of_newer_families_are_written);
    tcase_add_test(tests, what_is_left_out_has_the_default_of_its_kind);
    tcase_add_test(tests, a_size_of_heads_that_is_said_needs_no_share);
    tcase_add_test(tests, a_window_counts_in_one_kind_alone);
    tcase_add_test(tests, scaling_is_read_from_either_object);
    tcase_add_test(tests, pairs_of_llama_3_are_slowed_by_their_turns);
    tcase_add_test(tests, scaling_that_cannot_be_is_named);
    tcase_add_test(tests, numbers_stand_under_their_keys);
    tcase_add_test(tests, scaling_is_written_as_gguf_has_it);
}

int main(void)
{
    return run_tests("config", add);
}
