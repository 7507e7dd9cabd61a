/* SPDX-License-Identifier: MIT */
/* Models with recurrent layers: which layers are, what they have, how their tensors are dealt out, and which
 * files are refused, with the key that is wrong. */

#include "model/model.h"
#include "tests/unit/run.h"
#include "tests/unit/model/edited.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/files/rundir.h"
#include "model/architecture.h"
#include "model/convert/synth.h"
#include "model/traits.h"

static char dir[RUNDIR_PATH_MAX + 1];
static char path[RUNDIR_PATH_MAX + 20], edited[RUNDIR_PATH_MAX + 20];

static void set_up(void)
{
    ck_assert_int_eq(rundir_temporary(dir, NULL), 0);
    snprintf(path, sizeof path, "%s/model.gguf", dir);
    snprintf(edited, sizeof edited, "%s/edited.gguf", dir);
}

static void tear_down(void)
{
    rundir_remove(dir);
}

/* Eight layers; 2 key heads of 8 and 6 value heads of 12. */
static struct synth_shape shape_of(const char *architecture)
{
    return (struct synth_shape){.name = "test",
                                .architecture = architecture,
                                .n_vocab = 360,
                                .n_context = 64,
                                .n_embd = 48,
                                .n_layers = 8,
                                .n_heads = 4,
                                .n_kv_heads = 2,
                                .head_dim = 16,
                                .n_ff = 56,
                                .norm_epsilon = 1e-6f,
                                .rope_base = 10000,
                                .rope_dims = 8,
                                .n_experts = strcmp(architecture, "qwen35") == 0 ? 0 : 5,
                                .n_expert_ff = 24,
                                .n_shared_ff = strcmp(architecture, "qwen35") == 0 ? 0 : 40,
                                .delta = {2, 6, 8, 12, 4}};
}

static void write_model(const char *architecture)
{
    const struct synth_shape shape = shape_of(architecture);
    struct error err = {0};
    ck_assert_msg(synth_write(&shape, mixture_by_name("F16"), 1, path, &err) == 0, "%s", err.text);
}

static struct model *open_path(const char *from)
{
    struct model *model = NULL;
    struct error err = {0};
    ck_assert_msg(model_open(from, false, &model, &err) == 0, "%s", err.text);
    return model;
}

START_TEST(every_fourth_layer_attends_and_the_others_are_recurrent)
{
    static const char *const names[] = {"qwen35", "qwen35moe", "qwen3next"};
    const bool next = _i == 2, experts = _i > 0;
    write_model(names[_i]);
    struct model *model = open_path(path);
    for (uint32_t l = 0; l < 8; l++) {
        const struct model_layer *layer = &model->layers[l];
        const bool attends = l % 4 == 3;
        ck_assert_int_eq(layer->traits.mixer, attends ? MIXER_ATTENTION : MIXER_DELTA);
        ck_assert_int_eq(layer_has_kv(&layer->traits), attends);
        ck_assert_int_eq(layer->traits.output_gate, attends);
        ck_assert_int_eq(layer->traits.experts.shared_gate, experts);
        ck_assert_int_eq(layer->tensors[TENSOR_SHARED_ROUTER].weight != NULL, experts);
        ck_assert(layer->tensors[TENSOR_FFN_NORM].weight && layer->tensors[TENSOR_OUTPUT_GATE].weight);
        if (attends)
            continue;
        const struct delta_net *net = &layer->traits.delta;
        ck_assert(net->n_key_heads == 2 && net->n_value_heads == 6 && net->n_taps == 4);
        ck_assert(net->key_dim == 8 && net->value_dim == 12 && net->neighbours == next);
        ck_assert_uint_eq(delta_net_key_head(net, 3), 1); /* 3 div 3, and 3 mod 2 */
        ck_assert_uint_eq(delta_net_key_head(net, 1), next ? 0 : 1);
        ck_assert_uint_eq(layer_state_numbers(&layer->traits), 6 * 12 * 8 + 3 * (2 * 16 + 72));
    }
    const trait_set traits = model_traits(model);
    ck_assert(traits & TRAIT_BIT(TRAIT_MIXER_DELTA) && traits & TRAIT_BIT(TRAIT_MIXER_ATTENTION));
    ck_assert(traits & TRAIT_BIT(TRAIT_OUTPUT_GATE) && traits & TRAIT_BIT(TRAIT_INTERLEAVED));
    ck_assert(!(traits & TRAIT_BIT(TRAIT_HEADS_DIFFER)));
    model_free(model);
}
END_TEST

/* Where a role's rows stand. */
static void expect_place(const struct model_tensor *tensor, uint32_t first_row, uint32_t run, uint32_t apart,
                         uint32_t rows)
{
    ck_assert_uint_eq(tensor->first_row, first_row);
    ck_assert_uint_eq(tensor->run, run);
    ck_assert_uint_eq(tensor->apart, apart);
    ck_assert_uint_eq(tensor->rows, rows);
}

START_TEST(roles_that_take_turns_find_their_rows)
{
    write_model("qwen3next");
    struct model *model = open_path(path);
    const struct model_tensor *recurrent = model->layers[0].tensors, *attends = model->layers[3].tensors;
    expect_place(&attends[TENSOR_Q], 0, 16, 32, 64); /* of each head 16 queries, 16 gates */
    expect_place(&attends[TENSOR_OUTPUT_GATE], 16, 16, 32, 64);
    expect_place(&attends[TENSOR_K], 0, 0, 0, 32);
    ck_assert_ptr_eq(attends[TENSOR_Q].weight, attends[TENSOR_OUTPUT_GATE].weight);
    ck_assert_uint_eq(model_tensor_row(&attends[TENSOR_OUTPUT_GATE], 17), 16 + 32 + 1);
    expect_place(&recurrent[TENSOR_Q], 0, 0, 0, 16);
    expect_place(&recurrent[TENSOR_K], 16, 0, 0, 16);
    expect_place(&recurrent[TENSOR_V], 32, 0, 0, 72);
    expect_place(&recurrent[TENSOR_OUTPUT_GATE], 0, 0, 0, 72);
    expect_place(&recurrent[TENSOR_BETA], 0, 3, 6, 6); /* of each key head three betas, three alphas */
    expect_place(&recurrent[TENSOR_ALPHA], 3, 3, 6, 6);
    struct tensor_part parts[TENSOR_MOST_PARTS];
    const struct layer_traits *traits = &model->layers[0].traits;
    ck_assert_uint_eq(tensor_parts(&model->params, traits, TENSOR_DELTA_IN, parts), 4);
    static const uint32_t runs[] = {8, 8, 36, 36}, firsts[] = {0, 8, 16, 52};
    for (int i = 0; i < 4; i++)
        ck_assert(parts[i].run == runs[i] && parts[i].first_row == firsts[i] && parts[i].apart == 88);
    ck_assert_uint_eq(tensor_parts(&model->params, traits, TENSOR_EXPERT_GATE_UPS, parts), 2);
    ck_assert(parts[1].role == TENSOR_EXPERT_UPS && parts[1].first_row == 24 && parts[1].run == 24 &&
              parts[1].apart == 48);
    ck_assert_uint_eq(tensor_parts(&model->params, traits, TENSOR_Q_GATE, parts), 0);
    model_free(model);
}
END_TEST

/* ---- edited files ---- */

START_TEST(what_contradicts_itself_is_refused_by_its_key)
{
    static const struct edit edits[] = {
        {.key = "qwen35.ssm.conv_kernel", .says = "hyperparameter qwen35.ssm.conv_kernel is missing"},
        {.key = "qwen35.ssm.group_count",
         .numbers = {4},
         .n = 1,
         .says = "qwen35.ssm.time_step_rank: 6 value heads cannot share 4 key heads evenly"},
        {.key = "qwen35.ssm.inner_size",
         .numbers = {71},
         .n = 1,
         .says = "qwen35.ssm.inner_size: 71 is not a multiple of 6 value heads"},
        {.key = "qwen35.ssm.inner_size",
         .numbers = {66},
         .n = 1,
         .says = "tensor blk.0.attn_qkv.weight has 104 rows"},
        {.key = "qwen35.ssm.state_size", .numbers = {1 << 23}, .n = 1, .says = "more than 16777216 in a row"},
        {.key = "qwen35.ssm.conv_kernel",
         .numbers = {3},
         .n = 1,
         .says = "tensor blk.0.ssm_conv1d.weight has 104 rows of 4; expected 104 of 3"},
        {.key = "qwen35.full_attention_interval",
         .numbers = {9},
         .n = 1,
         .says = "qwen35.full_attention_interval: none of 8 layers attends"},
        {.key = "qwen35.full_attention_interval",
         .numbers = {2},
         .n = 1,
         .says = "tensor blk.1.attn_q.weight is missing"},
        {.key = "qwen35.attention.recurrent_layers",
         .numbers = {1, 0},
         .n = 2,
         .says = "qwen35.attention.recurrent_layers: expected a bool for each of 8 layers"},
        {.key = "qwen35.nextn_predict_layers",
         .numbers = {8},
         .n = 1,
         .says = "qwen35.nextn_predict_layers is 8 of 8 layers"},
        {.key = "qwen35.rope.dimension_sections",
         .numbers = {2, 1, 0, 0},
         .n = 4,
         .says = "qwen35.rope.dimension_sections leaves out pair 2 of 4"},
        {.tensor = "blk.8.attn_norm.weight", .says = "unexpected tensor blk.8.attn_norm.weight"},
    };
    write_model("qwen35");
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        struct model *model = NULL;
        struct error err = {0};
        write_edited(path, &edits[i], edited);
        ck_assert_msg(model_open(edited, false, &model, &err) == -EINVAL, "\"%s\" expected", edits[i].says);
        ck_assert_msg(strstr(err.text, edits[i].says), "\"%s\" expected: %s", edits[i].says, err.text);
    }
}
END_TEST

START_TEST(sections_of_all_pairs_are_taken)
{
    static const struct edit edit = {
        .key = "qwen35.rope.dimension_sections", .numbers = {2, 1, 1, 0}, .n = 4};
    write_model("qwen35");
    write_edited(path, &edit, edited);
    model_free(open_path(edited));
}
END_TEST

/* The last four layers become such: three recurrent ones and one that attends, which nobody asks for. */
START_TEST(layers_that_guess_ahead_are_left_alone)
{
    static const struct edit edit = {
        .key = "qwen35.nextn_predict_layers", .numbers = {4}, .n = 1, .tensor = "blk.7.nextn.enorm.weight"};
    write_model("qwen35");
    write_edited(path, &edit, edited);
    struct model *model = open_path(edited);
    ck_assert_uint_eq(model->params.n_layers, 4);
    ck_assert_uint_eq(model->params.n_draft_layers, 4);
    model_free(model);
}
END_TEST

/* Names that only look like theirs, and a layer beyond them. */
START_TEST(what_is_no_layer_that_guesses_ahead_is_refused)
{
    static const char *const names[] = {"blk. 7.nextn.enorm.weight", "blk.+7.nextn.enorm.weight",
                                        "blk.4294967303.nextn.enorm.weight", "blk.8.nextn.enorm.weight",
                                        "blk..nextn.enorm.weight"};
    write_model("qwen35");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct edit edit = {.key = "qwen35.nextn_predict_layers", .numbers = {4}, .n = 1, .tensor = names[i]};
        struct model *model = NULL;
        struct error err = {0};
        write_edited(path, &edit, edited);
        ck_assert_msg(model_open(edited, false, &model, &err) == -EINVAL, "%s", names[i]);
        ck_assert_msg(strstr(err.text, "unexpected tensor") && strstr(err.text, names[i]), "%s", err.text);
    }
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, every_fourth_layer_attends_and_the_others_are_recurrent, 0, 3);
    tcase_add_test(tests, roles_that_take_turns_find_their_rows);
    tcase_add_test(tests, what_contradicts_itself_is_refused_by_its_key);
    tcase_add_test(tests, sections_of_all_pairs_are_taken);
    tcase_add_test(tests, layers_that_guess_ahead_are_left_alone);
    tcase_add_test(tests, what_is_no_layer_that_guesses_ahead_is_refused);
}

int main(void)
{
    return run_tests("hybrid", add);
}
