/* SPDX-License-Identifier: MIT */
/* What a device has to show before it serves: one that computes wrongly in any kernel, or got other weights
 * than the file's, is refused, and told by what. */

#include "tests/unit/cuda/check/gated.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *kernel, *named;
} kernels[] = {
    {"resolve", "kernel resolve"},
    {"embed", "kernel embed (token_embd.weight, Q8_0, 405 × 256), with 40 rows"},
    {"norm", "kernel norm (layer 0), with 40 rows"},
    {"multiply_wide", "kernel multiply (blk.0.attn_v.weight, Q8_0, 128 × 256), with 40 rows"},
    {"heads", "kernel heads (layer 0), with 40 rows"},
    {"plan_attention", "kernel attention (layer 0), with 40 rows"},
    {"attention", "kernel attention (layer 0), with "},
    {"activate", "kernel activate (layer 0), with 40 rows"},
    {"multiply_gemv", "kernel multiply (output.weight, Q8_0, 405 × 256), with 1 rows"},
    {"multiply_norm", "kernel multiply_norm (blk.0.attn_output.weight, Q8_0, 256 × 256), with 1 rows"},
    {"multiply_activate", "kernel multiply_activate (blk.0.ffn_up.weight, Q8_0, 512 × 256), with 1 rows"},
    {"multiply_thin", "of a decode of 8 equal rows"},
    {"weigh", "sampling"},
    {"cut", "sampling"},
    {"find_best", "sampling"},
    {"accept", "sampling"},
};

START_TEST(a_kernel_that_computes_wrongly_is_named)
{
    model = make_model(&small_shape, "Q8_0");
    check_refused(kernels[_i].kernel, kernels[_i].named);
    model_free(model);
}
END_TEST

/* Five slots decode in the recording for eight rows, which alone has a tile. */
START_TEST(the_largest_recording_is_held_to_it_with_slots_that_do_not_fill_it)
{
    struct error err;
    model = make_model(&small_shape, "Q8_0");
    ck_assert_int_eq(open_with("QUERN_EMU_SKIP", "multiply_thin", 5, 96, &err), -ENODEV);
    ck_assert_msg(strstr(err.text, "of a decode of 5 equal rows") != NULL, "%s", err.text);
    ck_assert_msg(open_with("QUERN_EMU_SKIP", "", 5, 96, &err) == 0, "%s", err.text);
    model_free(model);
}
END_TEST

/* Each row is held to it, also those within a tile and among others that agree. */
START_TEST(a_row_in_the_middle_of_a_recording_is_held_to_it_too)
{
    const struct backend_config sizes = {.n_slots = 70, .n_context = 64, .max_rows = 70};
    struct error err;
    model = make_model(&small_shape, "Q8_0");
    ck_assert_int_eq(open_sized("QUERN_EMU_SKIP", "norm:65", &sizes, &err), -ENODEV);
    ck_assert_msg(strstr(err.text, "row 65 of a decode of 70 equal rows") != NULL, "%s", err.text);
    model_free(model);
}
END_TEST

/* Blocks that there are in no launch for few rows and few positions. */
static const struct {
    const char *kernel, *named;
} far_kernels[] = {
    {"attention:21", "kernel attention (layer 0), with 72 rows from position 448 on: column "},
    {"multiply_wide:31",
     "kernel multiply (blk.0.ffn_up.weight, Q8_0, 512 × 256), with 72 rows from position 448 on: column 511 "
     "of row 71"},
    {"norm:71", "kernel norm (layer 0), with 72 rows from position 448 on: column 0 of row 71"},
    {"heads:143", "kernel heads (layer 0), with 72 rows from position 448 on: column "},
};

START_TEST(a_kernel_that_computes_wrongly_only_far_along_or_for_many_rows_is_named)
{
    struct error err;
    const char *kernel = far_kernels[_i].kernel, *named = far_kernels[_i].named;
    model = make_model(&small_shape, "Q8_0");
    kv_type = BACKEND_KV_F16;
    ck_assert_msg(open_with("QUERN_EMU_SKIP", kernel, 2, 96, &err) == 0, "%s: %s", kernel, err.text);
    ck_assert_msg(open_sized("QUERN_EMU_SKIP", kernel, &far, &err) == -ENODEV, "%s: %s", kernel, err.text);
    ck_assert_msg(strstr(err.text, named) != NULL, "%s: %s", kernel, err.text);
    model_free(model);
}
END_TEST

START_TEST(a_rule_of_sharing_that_there_is_not_is_refused_by_name)
{
    static const char *const rules[] = {"", "planned", "never", "always"};
    struct error err;
    model = make_model(&small_shape, "Q8_0");
    ck_assert_int_eq(open_with("QUERN_SHARES", "allways", 1, 32, &err), -EINVAL);
    ck_assert_str_eq(err.text, "$QUERN_SHARES is \"allways\", expected planned, never or always");
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        ck_assert_msg(open_with("QUERN_SHARES", rules[i], 1, 32, &err) == 0, "%s: %s", rules[i], err.text);
    model_free(model);
}
END_TEST

START_TEST(tiles_that_blocks_share_are_held_to_it_too)
{
    model = make_model(&small_shape, "Q8_0");
    setenv("QUERN_SHARES", "always", 1);
    check_refused("multiply_stream_k",
                  "kernel multiply (blk.0.attn_output.weight, Q8_0, 256 × 256), with 40 rows");
    unsetenv("QUERN_SHARES");
    model_free(model);
}
END_TEST

/* And a model whose heads have room that is padded passes. */
START_TEST(keys_and_values_in_few_bits_are_held_to_it_too)
{
    struct error err;
    kv_type = _i ? BACKEND_KV_Q4 : BACKEND_KV_Q8;
    model = make_model(&small_shape, "Q8_0");
    check_refused("heads", "kernel heads (layer 0), with 40 rows");
    check_refused("plan_attention", "kernel attention (layer 0), with 40 rows");
    check_refused("attention", "kernel attention (layer 0), with ");
    model_free(model);
    model = make_model(&odd_shape, "F32");
    ck_assert_msg(open_with("QUERN_EAGER", "0", 9, 96, &err) == 0, "%s", err.text);
    model_free(model);
}
END_TEST

/* Of tiles of assignments the last block has none. */
static const struct {
    const char *kernel, *named;
} expert_kernels[] = {
    {"choose_experts", "kernel choose_experts (layer 0), with 40 rows: column 0 of row 39"},
    {"group_assignments", "kernel multiply_experts (blk.0.ffn_up_exps.weight, Q8_0, 96 × 256), with 40 rows"},
    {"multiply_experts_gemv",
     "kernel multiply_experts (blk.0.ffn_gate_exps.weight, Q8_0, 96 × 256), with 1 rows"},
    {"combine_experts", "kernel combine_experts (layer 0), with 40 rows"},
};

START_TEST(kernels_of_experts_are_held_to_it_too)
{
    struct synth_shape shape = small_shape;
    shape.n_experts = 4;
    shape.n_experts_used = 2;
    shape.n_expert_ff = 96;
    model = make_model(&shape, "Q8_0");
    check_refused(expert_kernels[_i].kernel, expert_kernels[_i].named);
    model_free(model);
}
END_TEST

/* Block 17 of a tile's launch is there in none but that of its gate and up. */
static const struct {
    const char *kernel, *named;
} shared_kernels[] = {
    {"activate", "kernel activate (layer 0), with 40 rows"},
    {"multiply_wide:17", "kernel multiply (blk.0.ffn_up_shexp.weight, Q8_0, 520 × 256), with 40 rows"},
    {"multiply_activate",
     "kernel multiply_activate (blk.0.ffn_up_shexp.weight, Q8_0, 520 × 256), with 1 rows"},
    {"combine_experts", "kernel combine_experts (layer 0), with 40 rows"},
};

START_TEST(a_shared_expert_is_held_to_it_too)
{
    const struct synth_shape shape = experts_of("granitemoe", 520);
    model = make_model(&shape, "Q8_0");
    check_refused(shared_kernels[_i].kernel, shared_kernels[_i].named);
    model_free(model);
}
END_TEST

/* A head has four blocks of 16 rows of S; the last three blocks of a launch have the tail. */
static const struct {
    const char *kernel, *named;
} hybrid_kernels[] = {
    {"delta_prepare", "kernel delta_prepare (layer 0), with 40 rows: column 0 of row 39"},
    {"delta_rule", "kernel delta_rule, the tail (layer 0), with 40 rows: column "},
    {"delta_rule:0", "kernel delta_rule (layer 0), with 40 rows: column "},
    {"delta_rule:9", "kernel delta_rule (layer 0), with 40 rows: column "},
    {"delta_gate", "kernel delta_gate (layer 0), with 40 rows"},
    {"gate", "kernel attention and gate (layer 1), with 40 rows"},
    {"share", "kernel share (blk.0.ffn_gate_inp_shexp.weight, F32, 1 × 256), with 40 rows"},
};

START_TEST(recurrent_layers_and_gates_are_held_to_it_too)
{
    const struct synth_shape shape = hybrid_of("qwen35moe");
    model = make_model(&shape, "Q8_0");
    check_refused(hybrid_kernels[_i].kernel, hybrid_kernels[_i].named);
    model_free(model);
}
END_TEST

static const struct {
    const char *kernel, *named;
} beside_kernels[] = {
    {"choose_experts", "kernel choose_experts (layer 0), with 40 rows: column "},
    {"multiply_activate", "kernel multiply_activate (blk.0.ffn_up.weight, Q8_0, 512 × 256), with 1 rows"},
    {"group_assignments", "kernel multiply_experts (blk.0.ffn_up_exps.weight, Q8_0, 96 × 256), with 40 rows"},
    {"combine_experts", "kernel combine_experts (layer 0), with 40 rows"},
    {"norm_parts", "kernel norm_parts (layer 0), with 40 rows"},
};

START_TEST(experts_beside_a_plain_half_are_held_to_it_too)
{
    const struct synth_shape shape = beside_shape();
    model = make_model(&shape, "Q8_0");
    check_refused(beside_kernels[_i].kernel, beside_kernels[_i].named);
    model_free(model);
}
END_TEST

static const struct {
    const char *kernel, *named;
} input_kernels[] = {
    {"layer_inputs", "kernel layer_inputs (per_layer_token_embd.weight, F32, 363 × 52), with 40 rows"},
    {"layer_inputs:39", "kernel layer_inputs (per_layer_token_embd.weight, F32, 363 × 52), with 40 rows"},
};

START_TEST(what_layers_get_of_tokens_is_held_to_it_too)
{
    model = make_model(&borrowing_shape, "F32");
    check_refused(input_kernels[_i].kernel, input_kernels[_i].named);
    model_free(model);
}
END_TEST

/* Copies of the first layer's tensors, of others', and of the model's own; layers 2 and 3 borrow. */
static const struct {
    bool borrows;
    const char *copy, *named;
} gemma_copies[] = {
    {false, "14", "kernel norm_parts (layer 0), with 40 rows"}, /* norm of the plain half's output */
    {false, "15", "kernel norm (layer 0), with 40 rows"},       /* of the router */
    {false, "17", "kernel norm (layer 0), with 40 rows"},       /* of the experts' rows */
    {false, "18", "kernel multiply_experts (blk.0.ffn_gate_exps.weight, F32, 96 × 256), with 40 rows"},
    {false, "21", "kernel choose_experts (layer 0), with 40 rows"}, /* scales */
    {false, "22", "kernel norm_parts (layer 0), with 40 rows"},     /* norm of the experts' output */
    {false, "24", "kernel norm_parts (layer 0), with 40 rows"},     /* the stream's scale */
    {false, "37", "kernel norm_parts (layer 2), with 1 rows"},      /* before the head */
    {true, "15", "kernel multiply (blk.0.inp_gate.weight, F32, 13 × 33), with 40 rows"},
    {true, "16", "kernel multiply (blk.0.proj.weight, F32, 33 × 13), with 40 rows"},
    {true, "17", "kernel norm (layer 0), with 40 rows"},  /* of what the layer gets */
    {true, "18", "kernel norm (layer 0), with 40 rows"},  /* the stream's scale */
    {true, "39", "kernel heads (layer 2), with 40 rows"}, /* norm of queries */
    {true, "63", "kernel norm (layer 4), with 1 rows"},
    {true, "68", "kernel layer_inputs (per_layer_token_embd.weight, F32, 363 × 52), with 40 rows"},
    {true, "69", "kernel multiply (per_layer_model_proj.weight, F32, 52 × 33), with 40 rows"},
    {true, "70", "kernel layer_inputs (per_layer_token_embd.weight, F32, 363 × 52), with 40 rows"},
};

START_TEST(what_experts_beside_and_borrowers_read_is_held_to_it_too)
{
    const struct synth_shape shape = gemma_copies[_i].borrows ? borrowing_shape : beside_shape();
    struct error err;
    model = make_model(&shape, "F32");
    const char *copy = gemma_copies[_i].copy, *named = gemma_copies[_i].named;
    ck_assert_msg(open_with("QUERN_EMU_FLIP", copy, 1, 96, &err) == -ENODEV, "copy %s: %s", copy, err.text);
    ck_assert_msg(strstr(err.text, named) != NULL, "copy %s: %s", copy, err.text);
    model_free(model);
}
END_TEST

START_TEST(norms_over_all_heads_are_held_to_it_too)
{
    struct synth_shape shape = small_shape;
    shape.architecture = "olmo2";
    shape.rope_factor = 0;
    model = make_model(&shape, "Q8_0");
    check_refused("heads_of_row", "kernel heads_of_row (layer 0), with 40 rows");
    model_free(model);
}
END_TEST

/* The copies of a layer's tensors are in the order of their roles, biases behind their weights. */
static const struct {
    const char *copy, *named;
} changed_copies[] = {
    {"9", "kernel attention (layer 0), with 40 rows"}, /* sinks */
    {"14", "kernel multiply (blk.0.ffn_gate_inp.weight, F32, 4 × 256), with 40 rows"},
    {"16", "kernel multiply_experts (blk.0.ffn_gate_exps.weight, F32, 96 × 256), with 40 rows"},
    {"18", "kernel multiply_experts (blk.0.ffn_up_exps.weight, F32, 96 × 256), with 40 rows"},
    {"20", "kernel multiply_experts (blk.0.ffn_down_exps.weight, F32, 256 × 96), with 40 rows"},
};

START_TEST(sinks_and_biases_of_experts_that_arrive_changed_are_named)
{
    const struct synth_shape shape = experts_of("gpt-oss", 0);
    struct error err;
    model = make_model(&shape, "F32");
    ck_assert_msg(open_with("QUERN_EMU_FLIP", changed_copies[_i].copy, 2, 96, &err) == -ENODEV, "copy %s: %s",
                  changed_copies[_i].copy, err.text);
    ck_assert_msg(strstr(err.text, changed_copies[_i].named) != NULL, "copy %s: %s", changed_copies[_i].copy,
                  err.text);
    model_free(model);
}
END_TEST

static void norm_values(struct model *changed)
{
    changed->layers[0].traits.value_norm = true;
}

static void share_values(struct model *changed)
{
    changed->layers[0].traits.values_are_keys = true;
}

static void change_nothing(struct model *changed)
{
    (void)changed;
}

/* Each alone; the last copies of a layer's tensors are those of its last norm and its scale. */
static const struct {
    const char *architecture;
    void (*change)(struct model *changed);
    const char *variable, *value, *named;
} few[] = {
    {NULL, norm_values, "QUERN_EMU_SKIP", "heads", "kernel heads (layer 0), with 40 rows"},
    {NULL, share_values, "QUERN_EMU_SKIP", "heads", "kernel heads (layer 0), with 40 rows"},
    {NULL, norm_values, "QUERN_EMU_SKIP", "", NULL},
    {NULL, share_values, "QUERN_EMU_SKIP", "", NULL},
    {"gemma4", change_nothing, "QUERN_EMU_FLIP", "15", "kernel norm (layer 0), with 40 rows"},
};

START_TEST(what_few_layers_have_is_held_to_it_too)
{
    struct error err;
    model = make_model(few[_i].architecture ? &differing_shape : &small_shape, "F32");
    few[_i].change(model);
    const int r = open_with(few[_i].variable, few[_i].value, 2, 96, &err);
    ck_assert_msg(r == (few[_i].named ? -ENODEV : 0), "%s", err.text);
    ck_assert_msg(!few[_i].named || strstr(err.text, few[_i].named), "%s", err.text);
    model_free(model);
}
END_TEST

START_TEST(parts_that_few_models_have_are_held_to_it_too)
{
    model = make_model(&odd_shape, "F32");
    check_refused("quantize", "kernel attention (layer 0)"); /* heads of 10 dims */
    model_free(model);
}
END_TEST

/* The first copies are of the first layer's tensors. */
START_TEST(weights_that_arrive_changed_are_named)
{
    static const char *const types[] = {"F16", "Q4_K_M"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        uint32_t refused = 0;
        model = make_model(&small_shape, types[i]);
        for (int copy = 1; copy <= 12; copy++) {
            struct error err;
            char number[16];
            snprintf(number, sizeof number, "%d", copy);
            const int r = open_with("QUERN_EMU_FLIP", number, 1, 96, &err);
            ck_assert_msg(r == 0 || r == -ENODEV, "%s", err.text);
            refused += r == -ENODEV;
        }
        ck_assert_uint_ge(refused, 10);
        model_free(model);
    }
}
END_TEST

START_TEST(a_device_that_fails_or_stands_still_before_it_serves_is_told)
{
    struct error err;
    model = make_model(&odd_shape, "F32");
    ck_assert_int_eq(open_with("QUERN_EMU_FAULT", "7", 1, 96, &err), -EIO);
    ck_assert_msg(strncmp(err.text, "kernel attention, grid ", 23) == 0, "%s", err.text);
    ck_assert_int_eq(open_with("QUERN_EMU_STALL", "7", 1, 96, &err), -ETIMEDOUT);
    ck_assert_str_eq(err.text, "emulated has made no progress for 200 ms");
    model_free(model);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_loop_test(tests, a_kernel_that_computes_wrongly_is_named, 0, sizeof kernels / sizeof *kernels);
    tcase_add_loop_test(tests, a_kernel_that_computes_wrongly_only_far_along_or_for_many_rows_is_named, 0,
                        sizeof far_kernels / sizeof *far_kernels);
    tcase_add_loop_test(tests, kernels_of_experts_are_held_to_it_too, 0,
                        sizeof expert_kernels / sizeof *expert_kernels);
    tcase_add_loop_test(tests, a_shared_expert_is_held_to_it_too, 0,
                        sizeof shared_kernels / sizeof *shared_kernels);
    tcase_add_loop_test(tests, recurrent_layers_and_gates_are_held_to_it_too, 0,
                        sizeof hybrid_kernels / sizeof *hybrid_kernels);
    tcase_add_loop_test(tests, experts_beside_a_plain_half_are_held_to_it_too, 0,
                        sizeof beside_kernels / sizeof *beside_kernels);
    tcase_add_loop_test(tests, what_layers_get_of_tokens_is_held_to_it_too, 0,
                        sizeof input_kernels / sizeof *input_kernels);
    tcase_add_loop_test(tests, what_experts_beside_and_borrowers_read_is_held_to_it_too, 0,
                        sizeof gemma_copies / sizeof *gemma_copies);
    tcase_add_test(tests, norms_over_all_heads_are_held_to_it_too);
    tcase_add_loop_test(tests, sinks_and_biases_of_experts_that_arrive_changed_are_named, 0,
                        sizeof changed_copies / sizeof *changed_copies);
    tcase_add_test(tests, the_largest_recording_is_held_to_it_with_slots_that_do_not_fill_it);
    tcase_add_test(tests, a_row_in_the_middle_of_a_recording_is_held_to_it_too);
    tcase_add_test(tests, a_rule_of_sharing_that_there_is_not_is_refused_by_name);
    tcase_add_test(tests, tiles_that_blocks_share_are_held_to_it_too);
    tcase_add_loop_test(tests, keys_and_values_in_few_bits_are_held_to_it_too, 0, 2);
    tcase_add_test(tests, parts_that_few_models_have_are_held_to_it_too);
    tcase_add_test(tests, weights_that_arrive_changed_are_named);
    tcase_add_loop_test(tests, what_few_layers_have_is_held_to_it_too, 0, sizeof few / sizeof *few);
    tcase_add_test(tests, a_device_that_fails_or_stands_still_before_it_serves_is_told);
}

int main(void)
{
    return run_tests("cuda gate", add);
}
