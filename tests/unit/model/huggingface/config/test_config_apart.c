/* SPDX-License-Identifier: MIT */
/* Gemma 4's config.json, whose layers with a window differ from the others: what it says of each layer, what
 * is refused, and the metadata that comes of it. */

#include "model/huggingface/config/config_apart.h"
#include "tests/unit/run.h"
#include "gguf/gguf_assemble.h"
#include "gguf/gguf_values.h"
#include "gguf/gguf_writer.h"

#include <stdio.h>
#include <string.h>

#define SHAPE                                                                                                \
    "\"vocab_size\":8,\"hidden_size\":32,\"intermediate_size\":48,\"num_hidden_layers\":6,"                  \
    "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"head_dim\":8,\"global_head_dim\":16,"             \
    "\"max_position_embeddings\":64,\"sliding_window\":12,\"vocab_size_per_layer_input\":8"
#define SLIDING "\"sliding_attention\""
#define FULL    "\"full_attention\""
#define TYPES   ",\"layer_types\":[" SLIDING "," FULL "," SLIDING "," SLIDING "," FULL "," SLIDING "]"

/* The model of `SHAPE`, then `more`, which begins with a comma or is empty and may say a key again. */
static struct bytes text_with(const char *more)
{
    static char text[4096];
    snprintf(text, sizeof text, "{\"model_type\":\"gemma4_text\"," SHAPE "%s}", more);
    return bytes_of_string(text);
}

static struct config config_of(const char *more)
{
    struct config config = {0};
    struct error err = {0};
    ck_assert_msg(config_parse(text_with(more), &config, &err) == 0, "%s: %s", more, err.text);
    return config;
}

static void expect_refusal(const char *more, const char *says)
{
    struct config config = {.n_vocab = 77};
    struct error err = {0};
    int r = config_parse(text_with(more), &config, &err);
    ck_assert_msg(r < 0 && strstr(err.text, says), "%s: \"%s\" expected: %d, %s", more, says, r, err.text);
    ck_assert_uint_eq(config.n_vocab, 77); /* untouched */
}

START_TEST(a_wrapper_of_little_text_has_the_defaults_of_the_class)
{
    struct config config;
    struct error err = {0};
    ck_assert_msg(config_parse(BYTES_LITERAL("{\"model_type\":\"gemma4\",\"text_config\":{"
                                             "\"rope_parameters\":null,\"layer_types\":null}}"),
                               &config, &err) == 0,
                  "%s", err.text);
    ck_assert_str_eq(config.architecture, "gemma4");
    ck_assert(config.wrapped && config.tied && config.n_vocab == 262144 && config.n_embd == 2304);
    ck_assert(config.n_layers == 30 && config.n_heads == 8 && config.n_kv_heads == 4);
    ck_assert(config.head_dim == 512 && config.window_head_dim == 256 && config.n_full_kv_heads == 4);
    ck_assert(config.window == 512 && config.n_layer_embd == 256 && config.n_context == 131072);
    ck_assert(config.rope_base == 1e6f && config.window_base == 1e4f && config.n_turning == 64);
    ck_assert(config.period == 6 && config_has_small_heads(&config, 4) &&
              !config_has_small_heads(&config, 5));
    ck_assert(config.n_experts == 0 && config.n_borrowing == 0 && !config.keys_are_values);
    ck_assert(config_parse(BYTES_LITERAL("{\"model_type\":\"gemma4_unified\",\"text_config\":{}}"), &config,
                           &err) == 0);
    ck_assert(config.window == 1024 && config.n_layer_embd == 0 && config.n_context == 262144);
}
END_TEST

START_TEST(each_kind_of_layer_has_its_sizes)
{
    struct config config =
        config_of(TYPES ",\"num_kv_shared_layers\":3,\"use_double_wide_mlp\":true,\"attention_k_eq_v\":true,"
                        "\"num_global_key_value_heads\":1,\"hidden_size_per_layer_input\":12");
    static const bool small[] = {true, false, true, true, false, true};
    for (uint32_t i = 0; i < 6; i++) {
        ck_assert_int_eq(config_has_small_heads(&config, i), small[i]);
        ck_assert_uint_eq(config_head_dim(&config, i), small[i] ? 8 : 16);
        ck_assert_uint_eq(config_kv_heads(&config, i), small[i] ? 2 : 1);
        ck_assert_int_eq(config_keys_are_values(&config, i), !small[i]);
        ck_assert_int_eq(config_borrows(&config, i), i >= 3);
        ck_assert_uint_eq(config_ff(&config, i), i >= 3 ? 96 : 48);
    }
    ck_assert_uint_eq(config.n_layer_embd, 12);
    /* KV heads of layers without a window are another number only where keys are values. */
    config = config_of(TYPES ",\"num_global_key_value_heads\":1");
    ck_assert_uint_eq(config_kv_heads(&config, 1), 2);
    config = config_of(TYPES ",\"attention_k_eq_v\":true,\"num_global_key_value_heads\":null");
    ck_assert_uint_eq(config_kv_heads(&config, 1), 2);
}
END_TEST

/* Which comes before the keys for all layers of a kind. */
START_TEST(sizes_may_be_said_for_each_layer)
{
#define EACH(more) TYPES ",\"per_layer_config\":{" more "}"
    struct config config = config_of(EACH("\"1\":{\"head_dim\":24,\"num_key_value_heads\":1},\"04\":{"
                                          "\"head_dim\":24,\"num_key_value_heads\":1}"));
    ck_assert(config.head_dim == 24 && config.window_head_dim == 8 && config.rope_dims == 24);
    ck_assert(config_kv_heads(&config, 1) == 1 && config_kv_heads(&config, 0) == 2);
    ck_assert_uint_eq(config_of(EACH("")).head_dim, 8); /* nothing is said of any */
    expect_refusal(
        EACH("\"1\":{\"head_dim\":24}"),
        "per_layer_config: layer 4 has 2 KV heads of 8, but other layers of its kind have 2 of 24");
    expect_refusal(EACH("\"0\":{\"head_dim\":24}"), "per_layer_config: layer 0 has 2 KV heads of 24");
    expect_refusal(EACH("\"6\":{}"), "per_layer_config: \"6\" is not the number of one of 6 layers");
    expect_refusal(EACH("\"18446744073709551617\":{}"), "is not the number of one of 6 layers");
    expect_refusal(EACH("\"full_attention\":{}"),
                   "per_layer_config: \"full_attention\" is not the number of one of");
    expect_refusal(
        EACH("\"1\":3"),
        "per_layer_config: \"1\" is not the number of one of 6 layers, or its value is not an object");
    expect_refusal(EACH("\"1\":{\"skip\":[\"mlp\"]}"), "per_layer_config: layer 1: skip is not supported");
    expect_refusal(EACH("\"1\":{\"head_dim\":-1}"), "per_layer_config: layer 1: head_dim is not an integer");
    expect_refusal(EACH("\"1\":{\"head_dim\":0},\"4\":{\"head_dim\":0}"), "per_layer_config: head_dim 0");
    expect_refusal(TYPES ",\"per_layer_config\":[]", "per_layer_config is not an object");
}
END_TEST

START_TEST(the_first_pairs_of_a_head_turn)
{
#define ROTATIONS(full, window) ",\"rope_parameters\":{" FULL ":{" full "}," SLIDING ":{" window "}}"
#define PART                    "\"rope_type\":\"proportional\",\"partial_rotary_factor\":0.25"
#define WHOLE                   "\"rope_type\":\"default\""
    float factors[8];
    struct config config = config_of(ROTATIONS(PART ",\"rope_theta\":5e5,\"factor\":4", WHOLE));
    ck_assert(config.rope_dims == 16 && config.rope_base == 5e5f && config.window_base == 1e4f);
    ck_assert_uint_eq(config_n_factors(&config, CONFIG_FACTORS), 8);
    config_factors(&config, CONFIG_FACTORS, factors);
    for (uint32_t i = 0; i < 8; i++)
        ck_assert_float_eq(factors[i], i < 2 ? 4.f : 1e30f);
    config = config_of(ROTATIONS(WHOLE, WHOLE ",\"rope_theta\":1e4"));
    ck_assert(config.rope_base == 1e4f && config_n_factors(&config, CONFIG_FACTORS) == 0);
    expect_refusal(ROTATIONS("\"rope_type\":\"yarn\",\"factor\":8", WHOLE),
                   "rope_parameters: full_attention: rope_type \"yarn\" is not supported");
    expect_refusal(ROTATIONS(WHOLE ",\"partial_rotary_factor\":0.5", WHOLE),
                   "rope_parameters: full_attention: partial_rotary_factor is 0.5; only 1 is supported");
    expect_refusal(ROTATIONS("\"rope_type\":\"proportional\",\"partial_rotary_factor\":1.5", WHOLE),
                   "full_attention: partial_rotary_factor is 1.5; at most 1 is supported");
    expect_refusal(ROTATIONS(PART, PART), "rope_parameters: sliding_attention: rope_type \"proportional\"");
    expect_refusal(ROTATIONS(PART, WHOLE ",\"partial_rotary_factor\":0.5"),
                   "rope_parameters: sliding_attention: partial_rotary_factor is 0.5");
    expect_refusal(ROTATIONS(PART, ""), "rope_parameters: sliding_attention: rope_type is missing");
    expect_refusal(",\"rope_parameters\":{" FULL ":{" PART "}}",
                   "rope_parameters: sliding_attention is missing or not an object");
    expect_refusal(",\"rope_parameters\":{" PART "}", "rope_parameters: full_attention is missing");
    expect_refusal(",\"rope_theta\":1e6", "rope_parameters: full_attention is missing");
}
END_TEST

START_TEST(what_cannot_be_is_refused_with_its_key)
{
#define EXPERTS ",\"enable_moe_block\":true,\"num_experts\":4,\"moe_intermediate_size\":24"
    static const struct {
        const char *more, *says;
    } cases[] = {
        {TYPES ",\"num_kv_shared_layers\":6", "num_kv_shared_layers is 6 of 6: at least one layer must have"},
        {TYPES ",\"num_kv_shared_layers\":5",
         "num_kv_shared_layers is 5 of 6: no full_attention layer before layer 1 has keys and values"},
        {TYPES ",\"num_kv_shared_layers\":-1", "num_kv_shared_layers is not an integer"},
        {",\"use_double_wide_mlp\":1", "use_double_wide_mlp is neither true"},
        {",\"attention_k_eq_v\":\"yes\"", "attention_k_eq_v is neither true"},
        {",\"attention_k_eq_v\":true,\"num_global_key_value_heads\":5",
         "num_global_key_value_heads 5 does not fit num_attention_heads 4"},
        {",\"attention_k_eq_v\":true,\"num_global_key_value_heads\":0", "num_global_key_value_heads 0"},
        {",\"hidden_size_per_layer_input\":12.5", "hidden_size_per_layer_input is not an integer"},
        {",\"hidden_size_per_layer_input\":4000000",
         "hidden_size_per_layer_input 4000000 times num_hidden_layers 6 is too large"},
        {",\"enable_moe_block\":true", "num_experts is missing, and enable_moe_block is true"},
        {EXPERTS, "top_k_experts is missing, and enable_moe_block is true"},
        {EXPERTS ",\"top_k_experts\":5", "top_k_experts is 5 of num_experts 4"},
        {EXPERTS ",\"top_k_experts\":0", "top_k_experts 0 is out of range"},
        {",\"enable_moe_block\":true,\"num_experts\":4,\"top_k_experts\":2",
         "moe_intermediate_size is missing"},
        {",\"use_bidirectional_attention\":\"all\"", "use_bidirectional_attention is \"all\""},
        {",\"attention_bias\":true", "attention_bias is true"},
        {",\"hidden_activation\":\"silu\"", "hidden_activation is \"silu\""},
        {",\"layer_types\":[" FULL "]", "layer_types is not a list of 6 layers"},
        {",\"layer_types\":[" FULL "," FULL "," FULL "," FULL "," FULL ",\"linear_attention\"]",
         "layer_types: layer 5 is \"linear_attention\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect_refusal(cases[i].more, cases[i].says);
    /* Keys that SHAPE has, by other texts. */
    static const struct {
        const char *text, *says;
    } whole[] = {
        {"{\"model_type\":\"gemma4_text\",\"global_head_dim\":0}", "global_head_dim 0: at least 1"},
        {"{\"model_type\":\"gemma4_text\",\"global_head_dim\":16777216}",
         "global_head_dim 16777216: at least 1"},
        {"{\"model_type\":\"gemma4_text\",\"num_hidden_layers\":513}",
         "num_hidden_layers 513 is out of range"},
        {"{\"model_type\":\"gemma4_text\",\"sliding_window\":null}", "sliding_window is missing"},
        {"{\"model_type\":\"gemma4_text\",\"vocab_size\":9}",
         "vocab_size_per_layer_input is 262144, which is"},
        {"{\"model_type\":\"gemma4_text\",\"intermediate_size\":16777216,\"use_double_wide_mlp\":true}",
         "intermediate_size 16777216, doubled by use_double_wide_mlp, is too large"},
        {"{\"model_type\":\"gemma4\",\"text_config\":{\"global_head_dim\":\"x\"}}",
         "text_config: global_head_dim is not an integer"},
    };
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
        struct config config;
        struct error err = {0};
        ck_assert_int_lt(config_parse(bytes_of_string(whole[i].text), &config, &err), 0);
        ck_assert_msg(strstr(err.text, whole[i].says), "\"%s\": %s", whole[i].says, err.text);
    }
    /* Experts that a model says and does not use. */
    ck_assert_uint_eq(config_of(",\"num_experts\":4,\"top_k_experts\":2").n_experts, 0);
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

static void expect_list(const struct gguf *gguf, const char *key, const int64_t expected[6])
{
    const struct gguf_value *list = gguf_find(gguf, key);
    ck_assert_msg(list && list->type == GGUF_ARRAY && list->array.n == 6, "%s", key);
    for (uint32_t i = 0; i < 6; i++)
        ck_assert_int_eq(gguf_array_int(list, i), expected[i]);
}

START_TEST(sizes_of_both_kinds_stand_under_their_keys)
{
    struct config config = config_of(
        TYPES EXPERTS ",\"top_k_experts\":2,\"num_kv_shared_layers\":3,\"use_double_wide_mlp\":true,"
                      "\"attention_k_eq_v\":true,\"num_global_key_value_heads\":1,"
                      "\"hidden_size_per_layer_input\":12,\"final_logit_softcapping\":30.0");
    struct gguf *gguf = written(&config);
    expect_u32(gguf, "gemma4.attention.key_length", 16);
    expect_u32(gguf, "gemma4.attention.value_length", 16);
    expect_u32(gguf, "gemma4.attention.key_length_swa", 8);
    expect_u32(gguf, "gemma4.attention.value_length_swa", 8);
    expect_u32(gguf, "gemma4.rope.dimension_count", 16);
    expect_u32(gguf, "gemma4.rope.dimension_count_swa", 8);
    expect_u32(gguf, "gemma4.attention.sliding_window", 12);
    expect_u32(gguf, "gemma4.attention.shared_kv_layers", 3);
    expect_u32(gguf, "gemma4.embedding_length_per_layer_input", 12);
    expect_u32(gguf, "gemma4.expert_count", 4);
    expect_u32(gguf, "gemma4.expert_used_count", 2);
    expect_u32(gguf, "gemma4.expert_feed_forward_length", 24);
    expect_list(gguf, "gemma4.attention.sliding_window_pattern", (int64_t[]){1, 0, 1, 1, 0, 1});
    expect_list(gguf, "gemma4.attention.head_count_kv", (int64_t[]){2, 1, 2, 2, 1, 2});
    expect_list(gguf, "gemma4.feed_forward_length", (int64_t[]){48, 48, 48, 96, 96, 96});
    float base = 0, cap = 0;
    ck_assert(gguf_f32(gguf, "gemma4.rope.freq_base_swa", &base, NULL) == 0 && base == 1e4f);
    ck_assert(gguf_f32(gguf, "gemma4.final_logit_softcapping", &cap, NULL) == 0 && cap == 30);
    ck_assert_ptr_null(gguf_find(gguf, "gemma4.rope.scaling.type"));
    gguf_free(gguf);
    config = config_of(TYPES ",\"use_double_wide_mlp\":true,\"hidden_size_per_layer_input\":0");
    gguf = written(&config);
    expect_u32(gguf, "gemma4.attention.head_count_kv", 2);
    expect_u32(gguf, "gemma4.feed_forward_length", 48);
    ck_assert_ptr_null(gguf_find(gguf, "gemma4.expert_count"));
    ck_assert_ptr_null(gguf_find(gguf, "gemma4.embedding_length_per_layer_input"));
    gguf_free(gguf);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_wrapper_of_little_text_has_the_defaults_of_the_class);
    tcase_add_test(tests, each_kind_of_layer_has_its_sizes);
    tcase_add_test(tests, sizes_may_be_said_for_each_layer);
    tcase_add_test(tests, the_first_pairs_of_a_head_turn);
    tcase_add_test(tests, what_cannot_be_is_refused_with_its_key);
    tcase_add_test(tests, sizes_of_both_kinds_stand_under_their_keys);
}

int main(void)
{
    return run_tests("config_apart", add);
}
