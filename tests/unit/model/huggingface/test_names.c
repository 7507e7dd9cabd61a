/* SPDX-License-Identifier: MIT */
/* Where tensors belong: which names have a place, of what shape, and which a model must have. */

#include "model/huggingface/names.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <string.h>

/* No two extents are alike: 6 heads of 4, of which 2 for keys. */
static struct config config = {.architecture = "llama",
                               .n_vocab = 100,
                               .n_embd = 20,
                               .n_ff = 50,
                               .n_layers = 11,
                               .n_heads = 6,
                               .n_kv_heads = 2,
                               .head_dim = 4};

static void tear_down(void)
{
    config.tied = false;
    config.architecture = "llama";
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
        {"model.layers.1.self_attn.q_norm.weight", "blk.1.attn_q_norm.weight", 0, 4, "", "head_dim"},
        {"model.layers.1.self_attn.k_norm.weight", "blk.1.attn_k_norm.weight", 0, 4, "", "head_dim"},
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
        struct place place;
        struct error err = {0};
        ck_assert_msg(names_place(&config, cases[i].theirs, &place, &err) == 0, "%s", err.text);
        ck_assert_str_eq(place.name, cases[i].ours);
        ck_assert_msg(place.rows == cases[i].rows && place.columns == cases[i].columns, "%s: %u, %u",
                      cases[i].theirs, place.rows, place.columns);
        ck_assert_str_eq(place.rows_key, cases[i].rows_key);
        ck_assert_str_eq(place.columns_key, cases[i].columns_key);
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
        struct place place = {.rows = 77};
        struct error err = {0};
        char says[160];
        ck_assert_msg(names_place(&config, names[i], &place, &err) == -EINVAL, "\"%s\" has a place",
                      names[i]);
        snprintf(says, sizeof says, "unexpected tensor %s in a llama model of 11 layers", names[i]);
        ck_assert_str_eq(err.text, says);
        ck_assert_uint_eq(place.rows, 77); /* untouched */
    }
}
END_TEST

START_TEST(what_nobody_needs_is_passed_over)
{
    struct place place = {.name = "x"};
    ck_assert_int_eq(names_place(&config, "model.layers.7.self_attn.rotary_emb.inv_freq", &place, NULL), 0);
    ck_assert_str_eq(place.name, "");
    ck_assert_int_eq(names_place(&config, "lm_head.weight", &place, NULL), 0);
    ck_assert_str_eq(place.name, "output.weight");
    config.tied = true;
    ck_assert_int_eq(names_place(&config, "lm_head.weight", &place, NULL), 0);
    ck_assert_str_eq(place.name, "");
    ck_assert_int_eq(names_place(&config, "model.inv_freqs", &place, &(struct error){0}), -EINVAL);
}
END_TEST

/* How many are needed; the last of them, and whether this one is among them. */
static uint64_t count_needed(const char *wanted, bool *ret_found, char last[NAMES_SIZE])
{
    uint64_t n = 0;
    char name[NAMES_SIZE];
    *ret_found = false;
    for (; names_needed(&config, n, name); n++) {
        struct place place;
        ck_assert_int_eq(names_place(&config, name, &place, NULL), 0);
        ck_assert_str_ne(place.name, "");
        *ret_found |= strcmp(name, wanted) == 0;
        strcpy(last, name);
    }
    ck_assert(!names_needed(&config, n + 1, name));
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
    config.architecture = "qwen3";
    ck_assert_uint_eq(count_needed("model.layers.0.self_attn.q_norm.weight", &found, last), 2 + 11 * 11);
    ck_assert(found);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, NULL, tear_down);
    tcase_add_test(tests, each_name_has_its_place_and_shape);
    tcase_add_test(tests, what_has_no_place_is_named);
    tcase_add_test(tests, what_nobody_needs_is_passed_over);
    tcase_add_test(tests, a_model_must_have_what_its_kind_computes_with);
}

int main(void)
{
    return run_tests("names", add);
}
