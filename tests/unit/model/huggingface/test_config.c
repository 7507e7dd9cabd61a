/* SPDX-License-Identifier: MIT */
/* What config.json says, what its kind's class fills in, and the metadata that comes of it. */

#include "model/huggingface/config.h"
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
    ck_assert(config.scaling == CONFIG_UNSCALED && config_n_factors(&config) == 0);
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
                   "use_sliding_window is true");
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
    ck_assert_uint_eq(config_n_factors(&config), 0);
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
    ck_assert_uint_eq(config_n_factors(&config), 4);
    config_factors(&config, factors);
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
        {",\"rope_scaling\":3", "rope_scaling is not an object"},
        {",\"rope_scaling\":{\"factor\":2}", "rope_scaling: rope_type is missing"},
        {",\"rope_scaling\":{\"rope_type\":2}", "rope_scaling: rope_type is not a string"},
        {",\"rope_parameters\":{\"rope_type\":\"longrope\"}",
         "rope_parameters: rope_type \"longrope\" is not supported"},
        {",\"rope_parameters\":{\"rope_theta\":0,\"rope_type\":\"default\"}",
         "rope_theta is 0; a number above 0"},
        {",\"rope_scaling\":{\"type\":\"linear\",\"factor\":0}",
         "rope_scaling: factor is 0; a number above 0"},
        {",\"rope_scaling\":{\"type\":\"linear\",\"factor\":1e60}", "factor is not a finite number"},
        {",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":2,\"mscale\":1}", "mscale is not supported"},
        {",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":2,\"mscale_all_dim\":1}",
         "mscale_all_dim is not supported"},
        {LLAMA3 "\"low_freq_factor\":4,\"high_freq_factor\":4,\"original_max_position_embeddings\":8192}",
         "a larger high_freq_factor"},
        {LLAMA3 "\"high_freq_factor\":4,\"original_max_position_embeddings\":8192}", "llama3 needs"},
        {LLAMA3 "\"low_freq_factor\":1,\"high_freq_factor\":4}", "llama3 needs"},
        {",\"tie_word_embeddings\":1", "tie_word_embeddings is neither true nor false"},
        {",\"hidden_act\":1", "hidden_act is not a string"},
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

static void add(TCase *tests)
{
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
