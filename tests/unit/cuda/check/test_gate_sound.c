/* SPDX-License-Identifier: MIT */
/* A device that computes rightly passes, whatever its room and the family of its model, and whatever is wrong
 * with the model itself. */

#include "cuda/device/device.h"
#include "tests/unit/cuda/check/gated.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const enum backend_kv_type kv_types[] = {BACKEND_KV_Q8, BACKEND_KV_F16, BACKEND_KV_Q4};

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
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i += test_is_scaled() ? 3 : 1)
        ck_assert_msg(
            open_with("QUERN_EAGER", i % 2 ? "1" : "0", rooms[i].n_slots, rooms[i].n_context, &err) == 0,
            "%s", err.text);
    model_free(model);
}
END_TEST

/* Two kinds of layers, and with experts; some of the rooms have no step of 72 rows, no third piece, or no
 * second one. The smallest model is opened in each; the others share them, with all types and both kinds of
 * devices. */
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
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i += test_is_scaled() ? 7 : 1) {
        if (!test_is_scaled() && i > 0 && _i == (i % 4 < 2 ? 2 : 0))
            continue;
        const struct backend_config sizes = {
            .n_slots = 1, .n_context = rooms[i].n_context, .max_rows = rooms[i].max_rows, .invariant = i % 2};
        kv_type = kv_types[i % 3];
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

#define FAMILIES        12
#define SCALED_FAMILIES 4

/* What only some families have: near and far, kept in either type, and invariant. Those of which another has
 * all but a plain feed-forward part are not opened as invariant. Where everything is slow, those that have
 * most between them, each in one way. */
START_TEST(a_sound_device_passes_with_models_of_every_family)
{
    static const int most[SCALED_FAMILIES] = {0, 2, 6, 11};
    const bool scaled = test_is_scaled();
    const int family = scaled ? most[_i] : _i;
    const struct synth_shape shapes[] = {experts_of("gpt-oss", 0), experts_of("granitemoe", 300),
                                         hybrid_of("qwen35"),      hybrid_of("qwen35moe"),
                                         odd_hybrid_shape,         beside_shape(),
                                         borrowing_shape};
    struct error err;
    model = family == 0   ? make_model(&shapes[0], "Q8_0")
            : family == 1 ? make_model(&shapes[1], "Q4_K_M")
            : family == 2 ? make_growing()
            : family == 8 ? make_model(&differing_shape, "Q4_K_M")
            : family == 9 ? make_differing()
            : family > 9  ? make_model(&shapes[family - 5], family == 10 ? "Q4_K_M" : "F32")
            : family < 5  ? make_of(family == 3 ? "olmo2" : "smollm3")
                          : make_model(&shapes[family - 3], family == 7 ? "F32" : "Q4_K_M");
    model->layers[1].traits.parallel = family == 1;  /* what the shared expert gives has a place of its own */
    const bool is_part = family == 5 || family == 8; /* of 6 and 10 */
    for (int invariant = scaled && _i % 2; invariant < (scaled ? _i % 2 + 1 : 2 - is_part); invariant++) {
        const struct backend_config sizes = {
            .n_slots = 3, .n_context = 600, .max_rows = 128, .invariant = invariant};
        kv_type = kv_types[invariant ? family % 2 * 2 : 1];
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
        shape.n_layers = 2 + i;
        model = make_model(&shape, "Q8_0");
        cost[i] = launches_of(&far) - launches_of(&near);
        model_free(model);
    }
    ck_assert_uint_eq(cost[0], cost[1]);
    ck_assert_uint_gt(cost[0], 20);
    ck_assert_uint_lt(cost[0], 32);
}
END_TEST

/* Numbers that are none are the model's fault. */
START_TEST(a_model_that_is_broken_does_not_speak_against_the_device)
{
    static const enum tensor_role roles[] = {TENSOR_OUTPUT_NORM, TENSOR_EMBEDDING};
    struct error err;
    model = make_model(&small_shape, "F32");
    kv_type = kv_types[_i];
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

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_test(tests, a_device_that_is_not_to_be_checked_is_not);
    tcase_add_test(tests, a_sound_device_passes_whatever_room_there_is);
    tcase_add_loop_test(tests, a_sound_device_passes_far_along_too, 0, test_is_scaled() ? 1 : 3);
    tcase_add_loop_test(tests, a_sound_device_passes_with_models_of_every_family, 0,
                        test_is_scaled() ? SCALED_FAMILIES : FAMILIES);
    tcase_add_test(tests, looking_far_along_costs_no_more_of_a_deeper_model);
    tcase_add_test(tests, sinks_that_are_no_numbers_do_not_speak_against_the_device_either);
    tcase_add_loop_test(tests, a_model_that_is_broken_does_not_speak_against_the_device, 0,
                        test_is_scaled() ? 1 : 3);
}

int main(void)
{
    return run_tests("cuda gate of sound devices", add);
}
