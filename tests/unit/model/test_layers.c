/* SPDX-License-Identifier: MIT */
/* Models whose layers differ (gemma4): what each layer is, whose keys and values it attends to, and which
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

/* Eight layers, of which the third and the sixth have no window. */
static struct synth_shape shape_of(void)
{
    return (struct synth_shape){.name = "test",
                                .architecture = "gemma4",
                                .n_vocab = 360,
                                .n_context = 64,
                                .n_embd = 48,
                                .n_layers = 8,
                                .n_heads = 4,
                                .n_kv_heads = 2,
                                .head_dim = 16,
                                .n_ff = 56,
                                .norm_epsilon = 1e-6f,
                                .rope_base = 1000000,
                                .tied = true,
                                .window = 24,
                                .logit_cap = 30,
                                .window_period = 3,
                                .window_head_dim = 10,
                                .full_kv_heads = 1,
                                .turning_share = 4};
}

static void write_model(const struct synth_shape *shape)
{
    struct error err = {0};
    ck_assert_msg(synth_write(shape, mixture_by_name("F16"), 1, path, &err) == 0, "%s", err.text);
}

static struct model *open_path(const char *from)
{
    struct model *model = NULL;
    struct error err = {0};
    ck_assert_msg(model_open(from, false, &model, &err) == 0, "%s", err.text);
    return model;
}

START_TEST(layers_with_a_window_have_heads_and_turns_of_their_own)
{
    const struct synth_shape shape = shape_of();
    write_model(&shape);
    struct model *model = open_path(path);
    for (uint32_t l = 0; l < 8; l++) {
        const struct layer_traits *t = &model->layers[l].traits;
        const bool full = l % 3 == 2;
        ck_assert_uint_eq(t->window, full ? 0 : 24);
        ck_assert(t->heads.n == 4 && t->heads.n_kv == (full ? 1 : 2) && t->heads.dim == (full ? 16 : 10));
        ck_assert(t->rotary.dims == t->heads.dim && t->rotary.base == (full ? 1000000 : 10000));
        ck_assert_int_eq(t->rotary.unfactored, !full);
        ck_assert(t->attention_scale == 1 && t->value_norm && t->stream_scale);
        ck_assert_int_eq(t->values_are_keys, full);
        ck_assert_int_eq(model->layers[l].tensors[TENSOR_V].weight == NULL, full);
        ck_assert(layer_has_kv(t) && layer_kv_of(t, l) == l && t->experts.n == 0);
    }
    const trait_set traits = model_traits(model);
    ck_assert(traits & TRAIT_BIT(TRAIT_HEADS_DIFFER) && traits & TRAIT_BIT(TRAIT_VALUES_ARE_KEYS));
    ck_assert(traits & TRAIT_BIT(TRAIT_VALUE_NORM) && traits & TRAIT_BIT(TRAIT_STREAM_SCALE));
    ck_assert(!(traits & TRAIT_BIT(TRAIT_BORROWED_KV)) && !(traits & TRAIT_BIT(TRAIT_EXPERTS_BESIDE)));
    ck_assert_float_eq_tol(model->params.embedding_scale, 6.928203f, 1e-6f);
    model_free(model);
}
END_TEST

/* Some files have values in all layers, or no scale in some. */
START_TEST(what_a_file_leaves_out_is_what_the_layer_is)
{
    static const struct edit edit = {.tensor = "blk.4.layer_output_scale.weight"},
                             values = {.tensor = "blk.3.attn_v.weight"};
    const struct synth_shape shape = shape_of();
    write_model(&shape);
    write_edited(path, &edit, edited);
    struct model *model = open_path(edited);
    ck_assert(!model->layers[4].traits.stream_scale && model->layers[3].traits.stream_scale);
    model_free(model);
    write_edited(path, &values, edited);
    model = open_path(edited);
    ck_assert(model->layers[3].traits.values_are_keys && !model->layers[4].traits.values_are_keys);
    model_free(model);
}
END_TEST

START_TEST(the_last_layers_borrow_from_the_last_of_their_kind)
{
    static const uint32_t from[] = {0, 1, 2, 3, 3, 2, 3, 3};
    struct synth_shape shape = shape_of();
    shape.n_borrowing_layers = 4;
    shape.n_layer_embd = 12;
    shape.borrowing_ff = 72;
    write_model(&shape);
    struct model *model = open_path(path);
    for (uint32_t l = 0; l < 8; l++) {
        const struct model_layer *layer = &model->layers[l];
        ck_assert_int_eq(layer_has_kv(&layer->traits), l < 4);
        ck_assert_uint_eq(layer_kv_of(&layer->traits, l), from[l]);
        ck_assert_int_eq(layer->tensors[TENSOR_K].weight != NULL, l < 4);
        ck_assert_int_eq(layer->tensors[TENSOR_K_NORM].weight != NULL, l < 4);
        ck_assert_uint_eq(layer->traits.n_ff, l < 4 ? 56 : 72);
        ck_assert_uint_eq(layer->traits.n_layer_embd, 12);
        ck_assert_uint_eq(layer->tensors[TENSOR_INPUT_GATE].rows, 12);
        ck_assert_uint_eq(layer->traits.heads.n_kv, model->layers[from[l]].traits.heads.n_kv);
    }
    ck_assert_uint_eq(model->tensors[TENSOR_LAYER_EMBEDDING].columns, 96);
    ck_assert(model_traits(model) & TRAIT_BIT(TRAIT_BORROWED_KV));
    ck_assert(model_traits(model) & TRAIT_BIT(TRAIT_LAYER_EMBEDDINGS));
    model_free(model);
}
END_TEST

START_TEST(experts_stand_beside_the_plain_half)
{
    struct synth_shape shape = shape_of();
    shape.n_experts = 6;
    shape.n_experts_used = 2;
    shape.n_expert_ff = 20;
    write_model(&shape);
    struct model *model = open_path(path);
    for (uint32_t l = 0; l < 8; l++) {
        const struct model_layer *layer = &model->layers[l];
        ck_assert(layer->traits.experts.beside && layer->traits.experts.router_norm);
        ck_assert(layer->tensors[TENSOR_UP].rows == 56 && layer->tensors[TENSOR_EXPERT_UPS].rows == 20);
        ck_assert(layer->tensors[TENSOR_PLAIN_POST_NORM].weight && layer->tensors[TENSOR_ROUTER_NORM].weight);
        ck_assert_uint_eq(layer->tensors[TENSOR_EXPERT_SCALES].columns, 6);
        ck_assert(layer->traits.experts.scaled);
    }
    model_free(model);
}
END_TEST

static void check_refused(const struct edit *edits, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct model *model = NULL;
        struct error err = {0};
        write_edited(path, &edits[i], edited);
        ck_assert_msg(model_open(edited, false, &model, &err) == -EINVAL, "\"%s\" expected", edits[i].says);
        ck_assert_msg(strstr(err.text, edits[i].says), "\"%s\" expected: %s", edits[i].says, err.text);
        ck_assert_msg(strncmp(err.text, edited, strlen(edited)) == 0, "%s", err.text);
    }
}

START_TEST(what_contradicts_itself_is_refused_by_its_key)
{
    static const struct edit edits[] = {
        {.key = "gemma4.attention.sliding_window_pattern",
         .says = "hyperparameter gemma4.attention.sliding_window_pattern is missing"},
        {.key = "gemma4.attention.sliding_window_pattern",
         .numbers = {6},
         .n = 1,
         .says = "gemma4.attention.sliding_window_pattern: expected a bool for each of 8 layers"},
        {.key = "gemma4.attention.sliding_window_pattern",
         .numbers = {1, 1, 0},
         .n = 3,
         .bools = true,
         .says = "gemma4.attention.sliding_window_pattern: expected a bool for each of 8 layers"},
        {.key = "gemma4.attention.sliding_window_pattern",
         .numbers = {1, 0, 1, 1, 1, 0, 1, 1},
         .n = 8,
         .bools = true,
         .says = "tensor blk.1.attn_q.weight has 40 rows of 48; expected 64 of 48"},
        {.key = "gemma4.attention.sliding_window",
         .says = "hyperparameter gemma4.attention.sliding_window is missing or 0"},
        {.key = "gemma4.attention.head_count_kv",
         .numbers = {2, 2, 1},
         .n = 3,
         .says = "gemma4.attention.head_count_kv: expected a count for each of 8 layers"},
        {.key = "gemma4.attention.head_count_kv",
         .numbers = {2, 2, 0, 2, 2, 1, 2, 2},
         .n = 8,
         .says = "gemma4.attention.head_count_kv 0 is out of range 1..16777216"},
        {.key = "gemma4.attention.head_count_kv",
         .numbers = {2, 2, 3, 2, 2, 1, 2, 2},
         .n = 8,
         .says = "gemma4.attention.head_count_kv: 4 heads cannot share 3 key/value heads evenly"},
        {.key = "gemma4.attention.head_count_kv",
         .numbers = {1, 0, 1, 1, 1, 1, 1, 1},
         .n = 8,
         .bools = true,
         .says = "gemma4.attention.head_count_kv: expected an integer for each of 8 layers"},
        {.key = "gemma4.feed_forward_length",
         .numbers = {56, 56},
         .n = 2,
         .says = "gemma4.feed_forward_length: expected a count for each of 8 layers"},
        {.key = "gemma4.feed_forward_length",
         .numbers = {56, 40, 56, 56, 56, 56, 56, 56},
         .n = 8,
         .says = "tensor blk.1.ffn_gate.weight has 56 rows of 48; expected 40 of 48"},
        {.key = "gemma4.attention.key_length_swa",
         .numbers = {12},
         .n = 1,
         .says = "gemma4.attention.value_length_swa: keys of length 12 with values of length 10"},
        {.key = "gemma4.attention.value_length_swa",
         .numbers = {8},
         .n = 1,
         .says = "gemma4.attention.value_length_swa: keys of length 10 with values of length 8 are not "
                 "supported"},
        {.key = "gemma4.rope.dimension_count_swa",
         .numbers = {12},
         .n = 1,
         .says = "gemma4.rope.dimension_count_swa: 12 rotary dimensions in heads of 10"},
        {.key = "gemma4.rope.dimension_count",
         .numbers = {12},
         .n = 1,
         .says = "tensor rope_freqs.weight has 1 dimensions, the first of 8; expected one of 6"},
        {.key = "gemma4.attention.shared_kv_layers",
         .numbers = {8},
         .n = 1,
         .says = "gemma4.attention.shared_kv_layers is 8 of 8: no layer with a window precedes layer 0"},
        {.key = "gemma4.attention.shared_kv_layers",
         .numbers = {6},
         .n = 1,
         .says = "gemma4.attention.shared_kv_layers is 6 of 8: no layer without a window precedes layer 2"},
        {.key = "gemma4.embedding_length_per_layer_input",
         .numbers = {12},
         .n = 1,
         .says = "tensor per_layer_token_embd.weight is missing"},
        {.key = "gemma4.embedding_length_per_layer_input",
         .numbers = {1 << 22},
         .n = 1,
         .says = "more than 16777216 in a row"},
        {.tensor = "blk.2.attn_k.weight", .says = "tensor blk.2.attn_k.weight is missing"},
    };
    const struct synth_shape shape = shape_of();
    write_model(&shape);
    check_refused(edits, sizeof edits / sizeof *edits);
}
END_TEST

/* Keys and values that a borrowing layer has nevertheless are passed over; other tensors are not. */
START_TEST(unused_keys_are_passed_over)
{
    static const struct edit unused = {.tensor = "blk.7.attn_k_norm.weight"};
    static const struct edit unknown[] = {
        {.tensor = "blk.7.attn_sinks.weight", .says = "unexpected tensor blk.7.attn_sinks.weight"}};
    struct synth_shape shape = shape_of();
    shape.n_borrowing_layers = 2;
    shape.n_layer_embd = 12;
    write_model(&shape);
    write_edited(path, &unused, edited);
    struct model *model = open_path(edited);
    ck_assert_ptr_null(model->layers[7].tensors[TENSOR_K_NORM].weight);
    model_free(model);
    check_refused(unknown, 1);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, layers_with_a_window_have_heads_and_turns_of_their_own);
    tcase_add_test(tests, what_a_file_leaves_out_is_what_the_layer_is);
    tcase_add_test(tests, the_last_layers_borrow_from_the_last_of_their_kind);
    tcase_add_test(tests, experts_stand_beside_the_plain_half);
    tcase_add_test(tests, what_contradicts_itself_is_refused_by_its_key);
    tcase_add_test(tests, unused_keys_are_passed_over);
}

int main(void)
{
    return run_tests("layers", add);
}
