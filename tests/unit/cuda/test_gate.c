/* SPDX-License-Identifier: MIT */
/* What a device has to show before it serves: one that computes wrongly in any kernel, or got other weights
 * than the file's, is refused, and told by what. */

#include "cuda/backend.h"
#include "cuda/device/device.h"
#include "cuda/check/reference.h"
#include "tests/unit/run.h"
#include "tests/unit/cpu/activations.h"
#include "tests/unit/cpu/small_model.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct model *model;
static enum backend_kv_type kv_type;

/* With an environment variable that the emulated device reads. */
static int open_sized(const char *name, const char *value, const struct backend_config *sizes,
                      struct error *err)
{
    struct backend_config config = *sizes;
    config.model = model;
    config.kv_type = kv_type;
    struct backend *backend = NULL;
    setenv(name, value, 1);
    err->text[0] = 0;
    int r = quern_backend.open(&config, &backend, err);
    unsetenv(name);
    if (r == 0)
        quern_backend.close(backend);
    return r;
}

static int open_with(const char *name, const char *value, uint32_t n_slots, uint32_t n_context,
                     struct error *err)
{
    const struct backend_config config = {.n_slots = n_slots, .n_context = n_context, .max_rows = 64};
    return open_sized(name, value, &config, err);
}

static void check_refused(const char *kernel, const char *named)
{
    struct error err;
    ck_assert_msg(open_with("QUERN_EMU_SKIP", kernel, 8, 96, &err) == -ENODEV, "%s: %s", kernel, err.text);
    ck_assert_msg(strncmp(err.text, "emulated computes wrong results: ", 27) == 0, "%s", err.text);
    ck_assert_msg(strstr(err.text, named) != NULL, "%s: %s", kernel, err.text);
}

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

/* Room for all that is asked of long sequences and large steps. */
static const struct backend_config far = {.n_slots = 2, .n_context = 600, .max_rows = 128};

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
START_TEST(keys_and_values_in_8_bits_are_held_to_it_too)
{
    struct error err;
    kv_type = BACKEND_KV_Q8;
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

/* A model of experts, of which each row goes to all but one. */
static struct synth_shape experts_of(const char *architecture, uint32_t n_shared_ff)
{
    struct synth_shape shape = small_shape;
    shape.architecture = architecture;
    shape.window = strcmp(architecture, "gpt-oss") == 0 ? 30 : 0;
    shape.rope_factor = 0;
    shape.biases = false;
    shape.n_experts = 4;
    shape.n_experts_used = 3;
    shape.n_expert_ff = 96;
    shape.n_shared_ff = n_shared_ff;
    return shape;
}

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

/* Recurrent layers, attention with a gate, and a shared expert with one. */
static struct synth_shape hybrid_of(const char *architecture)
{
    struct synth_shape shape = hybrid_shape;
    shape.architecture = architecture;
    if (strcmp(architecture, "qwen35") == 0)
        return shape;
    shape.n_experts = 4;
    shape.n_experts_used = 3;
    shape.n_expert_ff = 96;
    shape.n_shared_ff = 200;
    return shape;
}

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

/* Experts beside a plain half, whose router and whose parts have norms of their own. */
static struct synth_shape beside_shape(void)
{
    struct synth_shape shape = differing_shape;
    shape.n_experts = 4;
    shape.n_experts_used = 3;
    shape.n_expert_ff = 96;
    return shape;
}

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

START_TEST(a_device_that_is_not_to_be_checked_is_not)
{
    struct error err;
    model = make_model(&odd_shape, "F32");
    setenv("QUERN_UNCHECKED", "1", 1);
    ck_assert_msg(open_with("QUERN_EMU_SKIP", "norm", 1, 96, &err) == 0, "%s", err.text);
    setenv("QUERN_UNCHECKED", "0", 1);
    ck_assert_int_eq(open_with("QUERN_EMU_SKIP", "norm", 1, 96, &err), -ENODEV);
    unsetenv("QUERN_UNCHECKED");
    model_free(model);
}
END_TEST

START_TEST(a_sound_device_passes_whatever_room_there_is)
{
    static const struct {
        uint32_t n_slots, n_context;
    } rooms[] = {{1, 1}, {1, 2}, {1, 31}, {1, 32}, {2, 33}, {3, 64}, {9, 96}};
    struct error err;
    model = make_model(&odd_shape, "F32");
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++)
        ck_assert_msg(
            open_with("QUERN_EAGER", i % 2 ? "1" : "0", rooms[i].n_slots, rooms[i].n_context, &err) == 0,
            "%s", err.text);
    model_free(model);
}
END_TEST

/* Two kinds of layers, and with experts; some of the rooms have no step of 72 rows, no third piece, or no
 * second one. */
START_TEST(a_sound_device_passes_far_along_too)
{
    static const struct {
        uint32_t n_context, max_rows;
    } rooms[] = {{600, 128}, {257, 16}, {256, 64}, {255, 65}, {300, 2}, {521, 72}, {520, 71}, {513, 1}};
    struct synth_shape shapes[3] = {small_shape, odd_shape, small_shape};
    struct error err;
    shapes[0].architecture = "gemma2";
    shapes[0].window = 100;
    shapes[0].cap = 30;
    shapes[0].biases = false;
    shapes[0].rope_factor = 0;
    shapes[2].n_experts = 8;
    shapes[2].n_experts_used = 3;
    shapes[2].n_expert_ff = 96;
    model = make_model(&shapes[_i], _i == 1 ? "BF16" : "Q4_K_M");
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) {
        const struct backend_config sizes = {
            .n_slots = 1, .n_context = rooms[i].n_context, .max_rows = rooms[i].max_rows, .invariant = i % 2};
        kv_type = i % 3 == 0 ? BACKEND_KV_Q8 : BACKEND_KV_F16;
        ck_assert_msg(open_sized("QUERN_EAGER", "0", &sizes, &err) == 0, "%u, %u: %s", rooms[i].n_context,
                      rooms[i].max_rows, err.text);
    }
    model_free(model);
}
END_TEST

static struct model *make_growing(void)
{
    struct synth_shape shape = small_shape;
    shape.architecture = "mistral3";
    struct model *growing = make_model(&shape, "Q8_0");
    growing->layers[0].traits.query_growth = (struct query_growth){.factor = 0.7f, .span = 5};
    growing->layers[1].traits.query_growth = (struct query_growth){.factor = 0.3f, .span = 16384};
    return growing;
}

static struct model *make_of(const char *architecture)
{
    struct synth_shape shape = odd_shape;
    shape.architecture = architecture;
    shape.tied = false;
    shape.n_layers = 4;
    shape.window = strcmp(architecture, "olmo2") == 0 ? 50 : 0;
    return make_model(&shape, "F32");
}

/* Heads of two shapes, of which no size is a multiple of eight, and layers that differ in width. */
static struct model *make_differing(void)
{
    struct synth_shape shape = borrowing_shape;
    shape.n_borrowing_layers = shape.n_layer_embd = 0;
    shape.full_kv_heads = 3;
    struct model *differing = make_model(&shape, "F32");
    differing->layers[3].traits.window = 70;
    return differing;
}

/* What only some families have: near and far, kept in either type, and invariant. */
START_TEST(a_sound_device_passes_with_models_of_every_family)
{
    const struct synth_shape shapes[] = {experts_of("gpt-oss", 0), experts_of("granitemoe", 300),
                                         hybrid_of("qwen35"),      hybrid_of("qwen35moe"),
                                         odd_hybrid_shape,         beside_shape(),
                                         borrowing_shape};
    struct error err;
    model = _i == 0   ? make_model(&shapes[0], "Q8_0")
            : _i == 1 ? make_model(&shapes[1], "Q4_K_M")
            : _i == 2 ? make_growing()
            : _i == 8 ? make_model(&differing_shape, "Q4_K_M")
            : _i == 9 ? make_differing()
            : _i > 9  ? make_model(&shapes[_i - 5], _i == 10 ? "Q4_K_M" : "F32")
            : _i < 5  ? make_of(_i == 3 ? "olmo2" : "smollm3")
                      : make_model(&shapes[_i - 3], _i == 7 ? "F32" : "Q4_K_M");
    model->layers[1].traits.parallel = _i == 1; /* what the shared expert gives has a place of its own */
    for (int invariant = 0; invariant < 2; invariant++) {
        const struct backend_config sizes = {
            .n_slots = 3, .n_context = 600, .max_rows = 128, .invariant = invariant};
        kv_type = invariant ? BACKEND_KV_Q8 : BACKEND_KV_F16;
        ck_assert_msg(open_sized("QUERN_EAGER", "0", &sizes, &err) == 0, "%s: %s", model->params.architecture,
                      err.text);
    }
    model_free(model);
}
END_TEST

/* Launches of the gate. */
static uint64_t launches_of(const struct backend_config *sizes)
{
    struct backend *backend = NULL;
    struct backend_config config = *sizes;
    struct error err;
    config.model = model;
    ck_assert_msg(quern_backend.open(&config, &backend, &err) == 0, "%s", err.text);
    const uint64_t n = device_counts(backend_device(backend)).launches;
    quern_backend.close(backend);
    return n;
}

START_TEST(looking_far_along_costs_no_more_of_a_deeper_model)
{
    struct synth_shape shape = small_shape;
    const struct backend_config near = {.n_slots = 2, .n_context = 96, .max_rows = 64};
    uint64_t cost[2];
    for (uint32_t i = 0; i < 2; i++) {
        shape.n_layers = i ? 9 : 2;
        model = make_model(&shape, "Q8_0");
        cost[i] = launches_of(&far) - launches_of(&near);
        model_free(model);
    }
    ck_assert_uint_eq(cost[0], cost[1]);
    ck_assert_uint_gt(cost[0], 20);
    ck_assert_uint_lt(cost[0], 32);
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

/* Numbers that are none are the model's fault. */
START_TEST(a_model_that_is_broken_does_not_speak_against_the_device)
{
    static const enum tensor_role roles[] = {TENSOR_OUTPUT_NORM, TENSOR_EMBEDDING};
    struct error err;
    model = make_model(&small_shape, "F32");
    kv_type = _i ? BACKEND_KV_Q8 : BACKEND_KV_F16;
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        const struct gguf_tensor *sound = model->tensors[roles[i]].weight;
        struct gguf_tensor broken = *sound;
        float *values = malloc(broken.size);
        for (size_t k = 0; k < broken.size / sizeof *values; k++)
            values[k] = k % 7 ? 1 : NAN;
        broken.data = values;
        model->tensors[roles[i]].weight = &broken;
        ck_assert_msg(open_with("QUERN_EAGER", "0", 2, 96, &err) == 0, "%s", err.text);
        model->tensors[roles[i]].weight = sound;
        free(values);
    }
    model_free(model);
}
END_TEST

START_TEST(sinks_that_are_no_numbers_do_not_speak_against_the_device_either)
{
    static const float values[] = {NAN, INFINITY, -INFINITY, 1};
    const struct synth_shape shape = experts_of("gpt-oss", 0);
    struct error err;
    model = make_model(&shape, "F32");
    struct model_tensor *sinks = &model->layers[0].tensors[TENSOR_SINKS];
    struct gguf_tensor broken = *sinks->weight;
    ck_assert_uint_eq(broken.size, sizeof values);
    broken.data = (const void *)values;
    const struct gguf_tensor *sound = sinks->weight;
    sinks->weight = &broken;
    ck_assert_msg(open_with("QUERN_EAGER", "0", 2, 96, &err) == 0, "%s", err.text);
    sinks->weight = sound;
    model_free(model);
}
END_TEST

START_TEST(the_reference_of_the_gate_activates_by_the_textbook)
{
    for (size_t a = 0; a < KINDS_OF(ACTIVATIONS); a++)
        for (double x = -30; x < 30; x += 0.37) {
            double expected = activated(every_activation[a], x);
            ck_assert_double_eq_tol(reference_activation(every_activation[a], x), expected,
                                    1e-12 * (1 + fabs(expected)));
            ck_assert_double_eq_tol(reference_activation(every_activation[a], 2) *
                                        reference_factor(every_activation[a], x),
                                    gated(every_activation[a], 2, x), 1e-12 * (1 + fabs(x)));
        }
    for (size_t a = 0; a < KINDS_OF(ACTIVATIONS); a++) {
        ck_assert_double_nan(reference_activation(every_activation[a], NAN));
        ck_assert_double_nan(reference_factor(every_activation[a], NAN));
    }
}
END_TEST

START_TEST(the_reference_of_the_gate_lets_queries_grow)
{
    const struct layer_traits plain = {.attention_scale = 0.25f},
                              growing = {.attention_scale = 0.25f, .query_growth = {0.5f, 10}};
    ck_assert_double_eq(reference_query_scale(&plain, 1000), 0.25);
    ck_assert_double_eq(reference_query_scale(&growing, 9), 0.25);
    ck_assert_double_eq_tol(reference_query_scale(&growing, 10), 0.25 * (1 + 0.5 * log(2)), 1e-12);
    ck_assert_double_eq_tol(reference_query_scale(&growing, 69), 0.25 * (1 + 0.5 * log(7)), 1e-12);
}
END_TEST

/* Two positions and a sink of equal scores: a third of each. */
START_TEST(the_reference_of_the_gate_gives_a_sink_its_part)
{
    static const float keys[] = {1, 1}, values[] = {6, 12}, query = 2, sink = 2, far_below = -1000;
    struct reference_attention attention = {
        .keys = keys, .values = values, .dim = 1, .stride = 1, .position = 1, .sink = &sink};
    double out;
    ck_assert_double_eq(reference_attend(&attention, &query, &out), 12);
    ck_assert_double_eq_tol(out, 6, 1e-12);
    attention.sink = &far_below;
    reference_attend(&attention, &query, &out);
    ck_assert_double_eq_tol(out, 9, 1e-12);
    attention.sink = NULL;
    reference_attend(&attention, &query, &out);
    ck_assert_double_eq_tol(out, 9, 1e-12);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, the_reference_of_the_gate_activates_by_the_textbook);
    tcase_add_test(tests, the_reference_of_the_gate_lets_queries_grow);
    tcase_add_test(tests, the_reference_of_the_gate_gives_a_sink_its_part);
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
    tcase_add_test(tests, keys_and_values_in_8_bits_are_held_to_it_too);
    tcase_add_test(tests, parts_that_few_models_have_are_held_to_it_too);
    tcase_add_test(tests, weights_that_arrive_changed_are_named);
    tcase_add_test(tests, a_device_that_is_not_to_be_checked_is_not);
    tcase_add_test(tests, a_sound_device_passes_whatever_room_there_is);
    tcase_add_loop_test(tests, a_sound_device_passes_far_along_too, 0, 3);
    tcase_add_loop_test(tests, a_sound_device_passes_with_models_of_every_family, 0, 12);
    tcase_add_loop_test(tests, what_few_layers_have_is_held_to_it_too, 0, sizeof few / sizeof *few);
    tcase_add_test(tests, looking_far_along_costs_no_more_of_a_deeper_model);
    tcase_add_test(tests, a_device_that_fails_or_stands_still_before_it_serves_is_told);
    tcase_add_test(tests, sinks_that_are_no_numbers_do_not_speak_against_the_device_either);
    tcase_add_loop_test(tests, a_model_that_is_broken_does_not_speak_against_the_device, 0, 2);
}

int main(void)
{
    return run_tests("cuda gate", add);
}
