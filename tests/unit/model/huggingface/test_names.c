/* SPDX-License-Identifier: MIT */
/* Where tensors belong: which names have a place, of what shape, and which a model must have. */

#include "model/huggingface/names.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct config config;

static void set_family(const char *type)
{
    config.family = family_by_type(type);
    config.architecture = config.family->architecture;
    config.period = config.family->period;
}

/* No two extents are alike: 6 heads of 4, of which 2 for keys. */
static void set_up(void)
{
    config = (struct config){.n_vocab = 100,
                             .n_embd = 20,
                             .n_ff = 50,
                             .n_layers = 11,
                             .n_heads = 6,
                             .n_kv_heads = 2,
                             .head_dim = 4,
                             .n_context = 64,
                             .n_experts = 3,
                             .expert_ff = 7,
                             .shared_ff = 9,
                             .n_taps = 5,
                             .n_key_heads = 2,
                             .n_value_heads = 6,
                             .key_dim = 10,
                             .value_dim = 8};
    set_family("llama");
}

/* The one place of a tensor. */
static struct place place_of(const char *name)
{
    struct place places[NAMES_MOST_PLACES];
    struct error err = {0};
    uint32_t n = 0;
    ck_assert_msg(names_places(&config, name, places, &n, &err) == 0, "%s", err.text);
    ck_assert_uint_eq(n, 1);
    return places[0];
}

START_TEST(each_name_has_its_place_and_shape)
{
    static const struct {
        const char *theirs, *ours;
        uint32_t rows, columns;
        const char *rows_key, *columns_key;
    } cases[] = {
#define QUERIES "num_attention_heads · head_dim"
#define KEYS    "num_key_value_heads · head_dim"
        {"model.embed_tokens.weight", "token_embd.weight", 100, 20, "vocab_size", "hidden_size"},
        {"model.norm.weight", "output_norm.weight", 0, 20, "", "hidden_size"},
        {"lm_head.weight", "output.weight", 100, 20, "vocab_size", "hidden_size"},
        {"model.layers.0.input_layernorm.weight", "blk.0.attn_norm.weight", 0, 20, "", "hidden_size"},
        {"model.layers.9.self_attn.q_proj.weight", "blk.9.attn_q.weight", 24, 20, QUERIES, "hidden_size"},
        {"model.layers.10.self_attn.k_proj.weight", "blk.10.attn_k.weight", 8, 20, KEYS, "hidden_size"},
        {"model.layers.1.self_attn.v_proj.weight", "blk.1.attn_v.weight", 8, 20, KEYS, "hidden_size"},
        {"model.layers.1.self_attn.o_proj.weight", "blk.1.attn_output.weight", 20, 24, "hidden_size",
         QUERIES},
        {"model.layers.1.post_attention_layernorm.weight", "blk.1.ffn_norm.weight", 0, 20, "", "hidden_size"},
        {"model.layers.1.mlp.gate_proj.weight", "blk.1.ffn_gate.weight", 50, 20, "intermediate_size",
         "hidden_size"},
        {"model.layers.1.mlp.up_proj.weight", "blk.1.ffn_up.weight", 50, 20, "intermediate_size",
         "hidden_size"},
        {"model.layers.1.mlp.down_proj.weight", "blk.1.ffn_down.weight", 20, 50, "hidden_size",
         "intermediate_size"},
        /* A bias has an element for each row. */
        {"model.layers.1.self_attn.q_proj.bias", "blk.1.attn_q.bias", 0, 24, "", QUERIES},
        {"model.layers.1.self_attn.k_proj.bias", "blk.1.attn_k.bias", 0, 8, "", KEYS},
        {"model.layers.1.self_attn.v_proj.bias", "blk.1.attn_v.bias", 0, 8, "", KEYS},
        {"model.layers.1.self_attn.o_proj.bias", "blk.1.attn_output.bias", 0, 20, "", "hidden_size"},
        {"model.layers.1.mlp.gate_proj.bias", "blk.1.ffn_gate.bias", 0, 50, "", "intermediate_size"},
        {"model.layers.1.mlp.up_proj.bias", "blk.1.ffn_up.bias", 0, 50, "", "intermediate_size"},
        {"model.layers.1.mlp.down_proj.bias", "blk.1.ffn_down.bias", 0, 20, "", "hidden_size"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct place place = place_of(cases[i].theirs);
        const uint32_t n = place.n_dims;
        ck_assert_str_eq(place.name, cases[i].ours);
        ck_assert_msg(place.rows == cases[i].rows && place.columns == cases[i].columns, "%s: %u, %u",
                      cases[i].theirs, place.rows, place.columns);
        ck_assert(n == (cases[i].rows ? 2 : 1) && place.dims[n - 1] == place.columns);
        ck_assert(place.count == 1 && place.how == COPIED && place.plain == (place.rows == 0));
        ck_assert_str_eq(n == 2 ? place.keys[0] : "", cases[i].rows_key);
        ck_assert_str_eq(place.keys[n - 1], cases[i].columns_key);
    }
}
END_TEST

START_TEST(what_has_no_place_is_named)
{
    static const char *const names[] = {"model.layers.11.input_layernorm.weight",
                                        "model.layers.01.input_layernorm.weight",
                                        "model.layers.00.input_layernorm.weight",
                                        "model.layers.-1.input_layernorm.weight",
                                        "model.layers.+1.input_layernorm.weight",
                                        "model.layers. 1.input_layernorm.weight",
                                        "model.layers.:.input_layernorm.weight",
                                        "model.layers.1input_layernorm.weight",
                                        "model.layers.1",
                                        "model.layers.18446744073709551617.input_layernorm.weight",
                                        "model.layer.1.input_layernorm.weight",
                                        "model.layers.1.model.norm.weight",
                                        "input_layernorm.weight",
                                        "model.layers.1.input_layernorm.bias",
                                        "model.layers.1.self_attn.q_norm.bias",
                                        "lm_head.bias",
                                        "model.embed_tokens.bias",
                                        "model.norm",
                                        "model.norm.weights",
                                        "model.norms.weight",
                                        ""};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct place places[NAMES_MOST_PLACES];
        struct error err = {0};
        uint32_t n = 77;
        char says[160];
        ck_assert_msg(names_places(&config, names[i], places, &n, &err) == -EINVAL, "\"%s\" has a place",
                      names[i]);
        snprintf(says, sizeof says, "unexpected tensor %s in a llama model of 11 layers", names[i]);
        ck_assert_str_eq(err.text, says);
        ck_assert_uint_eq(n, 77); /* untouched */
    }
}
END_TEST

static void expect_no_place(const char *name)
{
    struct place places[NAMES_MOST_PLACES];
    struct error err = {0};
    uint32_t n;
    ck_assert_msg(names_places(&config, name, places, &n, &err) == -EINVAL, "%s has a place", name);
    ck_assert_msg(strstr(err.text, "unexpected tensor") && strstr(err.text, name), "%s", err.text);
}

/* A folder has its experts in one of two forms, and shared ones only where config.json gives their width. */
START_TEST(what_the_configuration_rules_out_has_no_place)
{
    const char *shared = "model.layers.0.mlp.shared_expert.down_proj.weight";
    const char *separate = "model.layers.0.mlp.experts.0.down_proj.weight";
    const char *fused = "model.layers.0.mlp.experts.down_proj";
    set_family("qwen3_next");
    ck_assert_uint_eq(place_of(shared).columns, 9);
    config.shared_ff = 0;
    expect_no_place(shared);
    ck_assert_uint_eq(place_of(separate).count, 3);
    expect_no_place(fused);
    config.fused_experts = true;
    ck_assert_uint_eq(place_of(fused).count, 3);
    expect_no_place(separate);
}
END_TEST

START_TEST(what_nobody_needs_is_passed_over)
{
    struct place places[NAMES_MOST_PLACES];
    uint32_t n;
    ck_assert_str_eq(place_of("model.layers.7.self_attn.rotary_emb.inv_freq").name, "");
    ck_assert_str_eq(place_of("lm_head.weight").name, "output.weight");
    config.tied = true;
    ck_assert_str_eq(place_of("lm_head.weight").name, "");
    ck_assert_int_eq(names_places(&config, "model.inv_freqs", places, &n, &(struct error){0}), -EINVAL);
    set_family("gpt2"); /* masks that older files carry */
    ck_assert_str_eq(place_of("h.0.attn.bias").name, "");
    ck_assert_str_eq(place_of("h.10.attn.masked_bias").name, "");
}
END_TEST

static void expect_clean(const char *name, const char *expected, bool is_text)
{
    char clean[NAMES_SIZE];
    bool found;
    ck_assert_int_eq(names_clean(&config, name, clean, &found, NULL), 0);
    ck_assert_str_eq(clean, expected);
    ck_assert_int_eq(found, is_text);
}

/* Wrappers call the text by either of two names; the rest of them is left out. */
START_TEST(names_of_wrappers_are_those_of_the_text)
{
    char clean[NAMES_SIZE], longer[NAMES_SIZE + 1];
    bool is_text;
    expect_clean("language_model.model.norm.weight", "language_model.model.norm.weight", true);
    expect_clean("vision_tower.x", "vision_tower.x", true); /* of no wrapper: an unexpected tensor */
    config.wrapped = true;
    expect_clean("language_model.model.norm.weight", "model.norm.weight", true);
    expect_clean("model.language_model.norm.weight", "model.norm.weight", true);
    expect_clean("language_model.lm_head.weight", "lm_head.weight", true);
    expect_clean("lm_head.weight", "lm_head.weight", true);
    expect_clean("vision_tower.x.weight", "vision_tower", false);
    expect_clean("model.multi_modal_projector.x.weight", "model.multi_modal_projector", false);
    expect_clean("model.visual.x", "model.visual", false);
    memset(longer, 'a', NAMES_SIZE);
    longer[NAMES_SIZE] = '\0';
    ck_assert_int_eq(names_clean(&config, longer, clean, &is_text, &(struct error){0}), -EINVAL);
    config.wrapped = false;
    set_family("gpt2");
    expect_clean("transformer.wte.weight", "wte.weight", true);
    set_family("qwen3_5_text");
    expect_clean("mtp.layers.0.x", "mtp", false);
}
END_TEST

/* Where tensors are not as GGUF has them. */
START_TEST(tensors_of_other_shapes_have_their_recipes)
{
    static const struct {
        const char *type, *theirs, *ours;
        enum how how;
        uint32_t rows, columns, count, index, n_dims, dims[4];
    } cases[] = {
        {"gemma2", "model.norm.weight", "output_norm.weight", ONE_ADDED, 0, 20, 1, 0, 1, {20}},
        {"gpt2", "h.1.attn.c_attn.weight", "blk.1.attn_qkv.weight", TURNED, 40, 20, 1, 0, 2, {20, 40}},
        {"gpt2", "h.1.attn.c_attn.bias", "blk.1.attn_qkv.bias", COPIED, 0, 40, 1, 0, 1, {40}},
        {"gpt2", "h.1.ln_1.bias", "blk.1.attn_norm.bias", COPIED, 0, 20, 1, 0, 1, {20}},
        {"mixtral",
         "model.layers.2.block_sparse_moe.experts.1.w3.weight",
         "blk.2.ffn_up_exps.weight",
         COPIED,
         7,
         20,
         3,
         1,
         2,
         {7, 20}},
        {"qwen3_5_moe_text",
         "model.layers.0.mlp.experts.gate_up_proj",
         "blk.0.ffn_gate_up_exps.weight",
         COPIED,
         14,
         20,
         3,
         0,
         3,
         {3, 14, 20}},
        {"qwen3_5_moe_text",
         "model.layers.0.mlp.shared_expert_gate.weight",
         "blk.0.ffn_gate_inp_shexp.weight",
         COPIED,
         0,
         20,
         1,
         0,
         2,
         {1, 20}},
        {"qwen3_5_text",
         "model.layers.0.linear_attn.conv1d.weight",
         "blk.0.ssm_conv1d.weight",
         VALUE_HEADS,
         88,
         5,
         1,
         0,
         3,
         {88, 1, 5}},
        {"qwen3_5_text", "model.layers.0.linear_attn.A_log", "blk.0.ssm_a", DECAY, 0, 6, 1, 0, 1, {6}},
        {"qwen3_5_text",
         "model.layers.3.self_attn.q_proj.weight",
         "blk.3.attn_q.weight",
         COPIED,
         48,
         20,
         1,
         0,
         2,
         {48, 20}},
        {"gpt_oss", "model.layers.0.self_attn.sinks", "blk.0.attn_sinks.weight", COPIED, 0, 6, 1, 0, 1, {6}},
        {"gpt_oss",
         "model.layers.0.mlp.experts.down_proj_bias",
         "blk.0.ffn_down_exps.bias",
         COPIED,
         0,
         20,
         3,
         0,
         2,
         {3, 20}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        set_family(cases[i].type);
        names_note(&config, cases[i].theirs); /* as reading a folder does with all of them first */
        const struct place place = place_of(cases[i].theirs);
        ck_assert_str_eq(place.name, cases[i].ours);
        ck_assert_msg(place.how == cases[i].how && place.rows == cases[i].rows &&
                          place.columns == cases[i].columns && place.count == cases[i].count &&
                          place.index == cases[i].index && place.n_dims == cases[i].n_dims,
                      "%s: %u × %u", cases[i].theirs, place.rows, place.columns);
        for (uint32_t d = 0; d < place.n_dims; d++)
            ck_assert_uint_eq(place.dims[d], cases[i].dims[d]);
    }
}
END_TEST

/* One tensor can be two. */
START_TEST(gate_and_up_may_be_one)
{
    struct place places[NAMES_MOST_PLACES];
    uint32_t n;
    set_family("gpt_oss");
    ck_assert_int_eq(names_places(&config, "model.layers.1.mlp.experts.gate_up_proj_bias", places, &n, NULL),
                     0);
    ck_assert_uint_eq(n, 2);
    ck_assert_str_eq(places[0].name, "blk.1.ffn_gate_exps.bias");
    ck_assert_str_eq(places[1].name, "blk.1.ffn_up_exps.bias");
    ck_assert(places[0].how == EVEN_ROWS && places[1].how == ODD_ROWS);
    ck_assert(places[0].columns == 7 && places[0].dims[0] == 3 && places[0].dims[1] == 14);
}
END_TEST

/* Layers that attend have no delta net, and the other way round. */
START_TEST(layers_have_what_their_kind_has)
{
    struct place places[NAMES_MOST_PLACES];
    uint32_t n;
    set_family("qwen3_5_text");
    ck_assert_int_eq(
        names_places(&config, "model.layers.3.linear_attn.A_log", places, &n, &(struct error){0}), -EINVAL);
    ck_assert_int_eq(
        names_places(&config, "model.layers.2.self_attn.q_proj.weight", places, &n, &(struct error){0}),
        -EINVAL);
}
END_TEST

/* Biases that config.json says there are none of. */
START_TEST(biases_are_as_config_json_says)
{
    static const char name[] = "model.layers.1.self_attn.q_proj.bias";
    struct place places[NAMES_MOST_PLACES];
    uint32_t n;
    ck_assert_str_eq(place_of(name).name, "blk.1.attn_q.bias");
    config.attention_bias = CONFIG_NO;
    ck_assert_int_eq(names_places(&config, name, places, &n, &(struct error){0}), -EINVAL);
    set_family("qwen3");
    ck_assert_int_eq(names_places(&config, name, places, &n, &(struct error){0}), -EINVAL);
}
END_TEST

/* How many are needed; the last of them, and whether this one is among them. */
static uint64_t count_needed(const char *wanted, bool *ret_found, char last[NAMES_SIZE])
{
    struct names_walk walk = {0};
    uint64_t n = 0;
    char name[NAMES_SIZE];
    *ret_found = false;
    for (; names_next(&config, &walk, name); n++) {
        struct place places[NAMES_MOST_PLACES];
        uint32_t n_places;
        ck_assert_int_eq(names_places(&config, name, places, &n_places, NULL), 0);
        ck_assert_str_ne(places[0].name, "");
        *ret_found |= strcmp(name, wanted) == 0;
        strcpy(last, name);
    }
    ck_assert(!names_next(&config, &walk, name));
    return n;
}

START_TEST(a_model_must_have_what_its_kind_computes_with)
{
    bool found;
    char last[NAMES_SIZE];
    ck_assert_uint_eq(count_needed("lm_head.weight", &found, last), 3 + 11 * 9);
    ck_assert(found);
    ck_assert_str_eq(last, "model.layers.10.mlp.down_proj.weight");
    config.tied = true;
    ck_assert_uint_eq(count_needed("lm_head.weight", &found, last), 2 + 11 * 9);
    ck_assert(!found);
    config.attention_bias = CONFIG_YES;
    ck_assert_uint_eq(count_needed("model.layers.3.self_attn.o_proj.bias", &found, last), 2 + 11 * 13);
    ck_assert(found);
    set_family("qwen3");
    ck_assert_uint_eq(count_needed("model.layers.0.self_attn.q_norm.weight", &found, last), 2 + 11 * 11);
    ck_assert(found);
    set_family("qwen2");
    ck_assert_uint_eq(count_needed("model.layers.0.self_attn.q_proj.bias", &found, last), 2 + 11 * 12);
    ck_assert(found);
    set_family(
        "qwen3_moe"); /* two norms, four of attention, two norms of heads, router, three for each expert */
    ck_assert_uint_eq(count_needed("model.layers.10.mlp.experts.2.up_proj.weight", &found, last),
                      2 + 11 * (8 + 1 + 3 * 3));
    ck_assert(found);
    set_family("qwen3_5_text"); /* layers 3 and 7 attend */
    ck_assert_uint_eq(count_needed("model.layers.7.self_attn.k_norm.weight", &found, last),
                      2 + 11 * 5 + 9 * 9 + 2 * 6);
    ck_assert(found);
    set_family("gpt_oss"); /* gate and up are asked for one by one */
    ck_assert_uint_eq(count_needed("model.layers.0.mlp.experts.gate_up_proj", &found, last),
                      2 + 11 * (2 + 9 + 2 + 6));
    ck_assert(found);
    config.quantization.kind = QUANTIZATION_MXFP4;
    count_needed("model.layers.0.mlp.experts.gate_up_proj", &found, last);
    ck_assert(!found);
}
END_TEST

/* All that it must have has a place, in each of its layers, under the names that files have. */
START_TEST(a_model_of_any_family_must_have_tensors_in_each_layer)
{
    unsigned n = 0;
    for (unsigned i = 0; family_at(i); i++) {
        char last[NAMES_SIZE], layer[NAMES_SIZE];
        const struct family *family = family_at(i);
        bool found, are_h = strcmp(family->model_type, "gpt2") == 0;
        if (!family->architecture) /* a wrapper */
            continue;
        set_family(family->model_type);
        ck_assert_uint_ge(count_needed("", &found, last), 11 * 6);
        snprintf(layer, sizeof layer, "%s10.", are_h ? "h." : "model.layers.");
        ck_assert_msg(strncmp(last, layer, strlen(layer)) == 0, "%s: %s", family->model_type, last);
        n++;
    }
    ck_assert_uint_ge(n, 20);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, NULL);
    tcase_add_test(tests, each_name_has_its_place_and_shape);
    tcase_add_test(tests, what_has_no_place_is_named);
    tcase_add_test(tests, what_the_configuration_rules_out_has_no_place);
    tcase_add_test(tests, what_nobody_needs_is_passed_over);
    tcase_add_test(tests, names_of_wrappers_are_those_of_the_text);
    tcase_add_test(tests, tensors_of_other_shapes_have_their_recipes);
    tcase_add_test(tests, gate_and_up_may_be_one);
    tcase_add_test(tests, layers_have_what_their_kind_has);
    tcase_add_test(tests, biases_are_as_config_json_says);
    tcase_add_test(tests, a_model_must_have_what_its_kind_computes_with);
    tcase_add_test(tests, a_model_of_any_family_must_have_tensors_in_each_layer);
}

int main(void)
{
    return run_tests("names", add);
}
