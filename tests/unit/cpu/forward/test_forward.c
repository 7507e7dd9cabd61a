/* SPDX-License-Identifier: MIT */
/* Whole passes against the textbook (textbook.h): every architecture of the registry on random shapes, and
 * traits that none of them has, put into a model's description by hand. */

#include "tests/unit/run.h"
#include "tests/unit/cpu/activations.h"
#include "tests/unit/cpu/random_weights.h"
#include "tests/unit/cpu/small_model.h"
#include "tests/unit/cpu/forward/textbook.h"
#include "cpu/kernels/kernels.h"
#include "engine/backend/backend.h"
#include "model/architecture.h"
#include "model/traits.h"

#include <errno.h>

/* The logits of all positions; or, in *ret_sums, the sums of their final states, and NULL. */
static float *run_backend(const struct model *model, const char *kernels, const int32_t ids[TEXTBOOK_IDS],
                          double *ret_sums)
{
    static const uint32_t blocks[] = {2, 0, 1};
    struct backend_info info;
    struct backend_config config = {.model = model,
                                    .n_slots = 1,
                                    .n_context = TEXTBOOK_IDS,
                                    .n_blocks = 3,
                                    .max_rows = 40,
                                    .cpu = {.n_threads = 2}};
    struct backend *backend = NULL;
    struct error err = {0};
    float *logits = ret_sums ? NULL : calloc((size_t)TEXTBOOK_IDS * model->params.n_vocab, sizeof *logits);
    setenv("QUERN_KERNELS", kernels, 1);
    ck_assert_msg(backend_cpu.open(&config, &backend, &err) == 0, "%s", err.text);
    struct backend_slot slot = {
        .sampling = {SAMPLING_OFF}, .end_position = TEXTBOOK_IDS + 1, .embeds = ret_sums != NULL};
    ck_assert_int_eq(backend_cpu.slot_open(backend, 0, &slot), 0);
    backend_cpu.info(backend, &info);
    ck_assert_uint_eq(info.n_embedding, model->params.n_embd);
    uint32_t told = 0;
    for (uint32_t at = 0, n; at < TEXTBOOK_IDS; at += n) {
        n = at == 0 ? 37 : at < 60 ? 1 : TEXTBOOK_IDS - at;
        uint32_t need = backend_blocks_for(at + n);
        struct backend_row_set set = {
            .ids = ids + at, .n_ids = n, .position = at, .output = BACKEND_LOGITS_ALL};
        if (ret_sums)
            set.output = at + n < TEXTBOOK_IDS ? BACKEND_OUTPUT_NONE : BACKEND_SUM_LAST;
        else
            set.logits = logits + (size_t)at * model->params.n_vocab;
        struct backend_step step = {.sets = &set, .n_sets = 1};
        const struct backend_result *results;
        uint64_t ticket;
        for (uint32_t g = 0; g < info.n_groups; g++)
            set.blocks[g] = (struct backend_blocks){blocks + told, need - told, told};
        told = need;
        ck_assert_int_eq(backend_cpu.submit(backend, &step, &ticket), 0);
        ck_assert_int_eq(backend_cpu.poll(backend, ticket, 0, &results, NULL), 0);
        ck_assert_int_eq(results->sums != NULL, ret_sums && at + n == TEXTBOOK_IDS);
        if (results->sums && ret_sums)
            memcpy(ret_sums, results->sums, model->params.n_embd * sizeof *ret_sums);
    }
    backend_cpu.close(backend);
    return logits;
}

/* That the sums are right but for what rounding does. */
static void check_sums(const struct model *model, const char *what, const char *kernels,
                       const int32_t ids[TEXTBOOK_IDS], const double *expected)
{
    double *sums = calloc(model->params.n_embd, sizeof *sums), wrong = 0, size = 0;
    run_backend(model, kernels, ids, sums);
    for (uint32_t i = 0; i < model->params.n_embd; i++) {
        wrong += (sums[i] - expected[i]) * (sums[i] - expected[i]);
        size += expected[i] * expected[i];
    }
    ck_assert_msg(wrong <= 1e-6 * size, "%s, %s: sums of states, NMSE %.2g", what, kernels, wrong / size);
    free(sums);
}

/* Every row of logits, and what an embedding is made of, on every build of the kernels. */
static void check(const struct model *model, const char *what)
{
    int32_t ids[TEXTBOOK_IDS];
    uint32_t n = model->params.n_vocab;
    for (uint32_t i = 0; i < TEXTBOOK_IDS; i++)
        ids[i] = (int32_t)(random_u32() % n);
    const struct textbook right = textbook_forward(model, ids);
    const double *expected = right.logits;
    const struct kernels *kernels;
    for (uint32_t k = 0; (kernels = kernels_at(k)); k++) {
        float *logits = run_backend(model, kernels->name, ids, NULL);
        check_sums(model, what, kernels->name, ids, right.sums);
        for (uint32_t t = 0; t < TEXTBOOK_IDS; t++) {
            double wrong = 0, size = 0;
            for (uint32_t i = 0; i < n; i++) {
                double y = expected[(size_t)t * n + i], off = (double)logits[(size_t)t * n + i] - y;
                wrong += off * off;
                size += y * y;
            }
            ck_assert_msg(wrong <= 1e-6 * size, "%s, %s, position %u: NMSE %.2g", what, kernels->name, t,
                          wrong / size);
        }
        free(logits);
    }
    free(right.logits);
    free(right.sums);
}

/* ---- models ---- */

/* Norms of synthetic models are ones: they get weights that matter, in copies which the caller frees. */
struct copies {
    struct gguf_tensor tensors[256];
    size_t n;
};

static void shake(struct model_tensor *t, struct copies *copies)
{
    if (!t->weight)
        return;
    ck_assert_uint_lt(copies->n, 256);
    struct gguf_tensor *copy = &copies->tensors[copies->n++];
    *copy = *t->weight;
    float *values = malloc(copy->size);
    for (size_t i = 0; i < copy->size / sizeof *values; i++)
        values[i] = 1 + 0.5f * random_float();
    copy->data = values;
    t->weight = copy;
}

static void shake_norms(struct model *model, struct copies *copies)
{
    shake(&model->tensors[TENSOR_OUTPUT_NORM], copies);
    for (uint32_t l = 0; l < model->params.n_layers; l++)
        for (enum tensor_role role = TENSOR_LAYER_ROLES; role < TENSOR_ROLES; role++)
            if (tensor_is_vector(role) && role != TENSOR_DECAY) /* which is negative */
                shake(&model->layers[l].tensors[role], copies);
}

static void free_all(struct model *model, struct copies *copies)
{
    for (size_t i = 0; i < copies->n; i++)
        free((void *)copies->tensors[i].data);
    copies->n = 0;
    model_free(model);
}

static struct synth_shape random_shape(const char *architecture)
{
    uint32_t n_kv_heads = 1 + random_u32() % 2, group = 1 + random_u32() % 3;
    struct synth_shape shape = {.name = "random",
                                .architecture = architecture,
                                .n_vocab = 360 + random_u32() % 9,
                                .n_context = 80,
                                .n_embd = 16 + random_u32() % 40,
                                .n_layers = 2,
                                .n_heads = n_kv_heads * group,
                                .n_kv_heads = n_kv_heads,
                                .head_dim = 4 + 2 * (random_u32() % 9),
                                .n_ff = 10 + random_u32() % 50,
                                .norm_epsilon = 1e-5f,
                                .rope_base = 10000,
                                .tied = random_u32() % 2,
                                .window = random_u32() % 2 ? 1 + random_u32() % 50 : 0};
    shape.rope_dims = shape.head_dim - 2 * (random_u32() % 2);
    return shape;
}

/* The first and third layer are recurrent. */
static void make_hybrid(struct synth_shape *shape)
{
    const uint32_t n_keys = 1 + random_u32() % 3;
    shape->n_layers = 4;
    shape->attention_interval = 2;
    shape->delta = (struct delta_net){.n_key_heads = n_keys,
                                      .n_value_heads = n_keys * (1 + random_u32() % 3),
                                      .key_dim = 3 + random_u32() % 20,
                                      .value_dim = 3 + random_u32() % 20,
                                      .n_taps = 1 + random_u32() % 4};
}

/* Every second layer has no window, and heads of its own; with `small` as in small models the last two borrow
 * keys and values, and each gets something of a token by itself. */
static void make_layers_differ(struct synth_shape *shape, bool small)
{
    shape->n_borrowing_layers = small ? 2 : 0;
    shape->n_layer_embd = small ? 3 + random_u32() % 20 : 0;
    shape->borrowing_ff = small ? 10 + random_u32() % 50 : 0;
    shape->n_layers = small ? 4 : 2;
    shape->window = 1 + random_u32() % 50;
    shape->window_period = 2;
    shape->rope_dims = shape->head_dim;
    shape->window_head_dim = 4 + 2 * (random_u32() % 9);
    shape->full_kv_heads = 1;
    shape->turning_share = random_u32() % 3;
    shape->logit_cap = 20;
}

START_TEST(every_architecture_computes_what_its_description_says)
{
    const struct architecture *architecture = architectures[_i];
    struct copies *copies = calloc(1, sizeof *copies);
    for (int round = 0; round < 3; round++) {
        struct synth_shape shape = random_shape(architecture->name);
        shape.biases = round == 1;
        shape.rope_factor = round == 2 ? 4 : 0;
        shape.cap = round == 2 ? 20 : 0;
        shape.n_layers = strcmp(architecture->name, "gemma3") == 0 ? 7 : 2; /* the sixth sees everything */
        if (architecture->delta_nets)
            make_hybrid(&shape);
        if (architecture->layers_differ)
            make_layers_differ(&shape, round == 2);
        if (architecture->always_experts || round == 1) {
            shape.n_experts = 3 + random_u32() % 9;
            shape.n_experts_used = 1 + random_u32() % 3;
            shape.n_expert_ff = 5 + random_u32() % 30;
            shape.n_shared_ff = round == 1 && !architecture->layers_differ ? 3 + random_u32() % 60 : 0;
        }
        if (shape.tied && (architecture->biases & TENSOR_BIT(TENSOR_OUTPUT)))
            shape.tied = false;
        struct model *model = make_model(&shape, round == 0 ? "F16" : "F32");
        ck_assert_str_eq(model->params.architecture, architecture->name);
        shake_norms(model, copies);
        check(model, architecture->name);
        free_all(model, copies);
    }
    free(copies);
}
END_TEST

static void scales(struct model *model)
{
    model->params.embedding_scale = 3;
    model->params.logit_factor = 0.3f;
    for (uint32_t l = 0; l < model->params.n_layers; l++) {
        model->layers[l].traits.residual_scale = 0.7f;
        model->layers[l].traits.attention_scale = 0.9f;
    }
}

static void offsets(struct model *model)
{
    model->output_norm.offset = 1;
    for (uint32_t l = 0; l < model->params.n_layers; l++)
        model->layers[l].traits.norm.offset = 0.5f;
}

static void norms_behind_only(struct model *model)
{
    for (uint32_t l = 0; l < model->params.n_layers; l++) {
        struct model_layer *layer = &model->layers[l];
        layer->traits.norm_place = NORM_AFTER;
        layer->tensors[TENSOR_ATTENTION_POST_NORM] = layer->tensors[TENSOR_ATTENTION_NORM];
        layer->tensors[TENSOR_FFN_POST_NORM] = layer->tensors[TENSOR_FFN_NORM];
        layer->tensors[TENSOR_ATTENTION_NORM].weight = layer->tensors[TENSOR_FFN_NORM].weight = NULL;
    }
}

static void squared_relu_in_one_layer_no_gate_in_the_other(struct model *model)
{
    model->layers[0].traits.activation = ACTIVATION_RELU_SQUARED;
    model->layers[1].traits.gated = false;
}

static void side_by_side(struct model *model)
{
    for (uint32_t l = 0; l < model->params.n_layers; l++)
        model->layers[l].traits.parallel = true;
}

static void linear_scaling_of_one_layer(struct model *model)
{
    struct rotary *rotary = &model->layers[1].traits.rotary;
    rotary->scaling = ROTARY_LINEAR;
    rotary->factor = 3;
}

static void yarn_scaling_of_one_layer(struct model *model)
{
    struct rotary *rotary = &model->layers[1].traits.rotary;
    rotary->scaling = ROTARY_YARN;
    rotary->factor = 4;
    rotary->base = 20;
    rotary->trained_context = 40;
    rotary->fast_turns = 2;
    rotary->slow_turns = 0.5f;
    rotary->magnitude = 1.1386f;
}

static void growing_queries_of_one_layer(struct model *model)
{
    model->layers[1].traits.query_growth = (struct query_growth){.factor = 0.7f, .span = 5};
}

static void values_that_are_keys_in_one_layer(struct model *model)
{
    model->layers[1].traits.values_are_keys = true;
}

static void norms_of_values_in_one_layer(struct model *model)
{
    model->layers[1].traits.value_norm = true;
}

START_TEST(traits_beyond_the_registry_are_executed_too)
{
    static const struct {
        const char *what;
        void (*change)(struct model *model);
        enum model_trait trait;
    } cases[] = {{"scales", scales, TRAIT_SCALES},
                 {"offsets", offsets, TRAIT_NORM_OFFSET},
                 {"norms behind only", norms_behind_only, TRAIT_NORM_AFTER},
                 {"squared ReLU, no gate", squared_relu_in_one_layer_no_gate_in_the_other, TRAIT_UNGATED},
                 {"side by side", side_by_side, TRAIT_PARALLEL},
                 {"linear scaling", linear_scaling_of_one_layer, TRAIT_ROTARY_LINEAR},
                 {"YaRN", yarn_scaling_of_one_layer, TRAIT_ROTARY_YARN},
                 {"growing queries", growing_queries_of_one_layer, TRAIT_QUERY_GROWTH},
                 {"values that are keys", values_that_are_keys_in_one_layer, TRAIT_VALUES_ARE_KEYS},
                 {"norms of values", norms_of_values_in_one_layer, TRAIT_VALUE_NORM}};
    struct copies *copies = calloc(1, sizeof *copies);
    struct synth_shape shape = random_shape(NULL);
    struct model *model = make_model(&shape, "F32");
    shake_norms(model, copies);
    ck_assert(!(model_traits(model) & TRAIT_BIT(cases[_i].trait)));
    cases[_i].change(model);
    ck_assert(model_traits(model) & TRAIT_BIT(cases[_i].trait));
    check(model, cases[_i].what);
    free_all(model, copies);
    free(copies);
}
END_TEST

/* Every kind there is, whether an architecture of the registry has it or not. */
START_TEST(every_kind_is_computed_by_the_textbook)
{
    static const enum norm_kind norms[] = {
#define EACH(name, id, words) NORM_##name,
        NORM_KINDS(EACH)
#undef EACH
    };
    static const enum rotary_kind rotaries[] = {
#define EACH(name, id, words) ROTARY_##name,
        ROTARY_KINDS(EACH)
#undef EACH
    };
    const size_t most = KINDS_OF(ACTIVATIONS) * KINDS_OF(NORM_KINDS) * KINDS_OF(ROTARY_KINDS);
    struct copies *copies = calloc(1, sizeof *copies);
    struct synth_shape shape = random_shape(NULL);
    struct model *model = make_model(&shape, "F32");
    shake_norms(model, copies);
    for (size_t i = 0; i < most; i++) {
        for (uint32_t l = 0; l < model->params.n_layers; l++) {
            struct layer_traits *traits = &model->layers[l].traits;
            traits->activation = every_activation[(i + l) % KINDS_OF(ACTIVATIONS)];
            traits->norm.kind = norms[(i / KINDS_OF(ACTIVATIONS) + l) % KINDS_OF(NORM_KINDS)];
            traits->rotary.kind =
                rotaries[(i / KINDS_OF(ACTIVATIONS) / KINDS_OF(NORM_KINDS) + l) % KINDS_OF(ROTARY_KINDS)];
        }
        check(model, "every kind");
    }
    free_all(model, copies);
    free(copies);
}
END_TEST

static void expect_refusal(const struct model *model, uint32_t n_context, const char *says)
{
    struct backend_config config = {
        .model = model, .n_slots = 1, .n_context = n_context, .max_rows = 8, .cpu = {.n_threads = 1}};
    struct backend *backend = NULL;
    struct error err = {0};
    ck_assert_int_eq(backend_cpu.open(&config, &backend, &err), -EINVAL);
    ck_assert_msg(strstr(err.text, says), "\"%s\" expected: %s", says, err.text);
    ck_assert_ptr_null(backend);
}

START_TEST(what_cannot_be_computed_is_refused_by_its_name)
{
    struct synth_shape shape = random_shape("gpt2");
    struct model *model = make_model(&shape, "F32");
    expect_refusal(model, 81, "a context of 81 exceeds the model's 80 learned positions");
    model_free(model);
}
END_TEST

static void add(TCase *tests)
{
    int n = 0;
    while (architectures[n])
        n++;
    tcase_add_loop_test(tests, every_architecture_computes_what_its_description_says, 0, n);
    tcase_add_test(tests, every_kind_is_computed_by_the_textbook);
    tcase_add_loop_test(tests, traits_beyond_the_registry_are_executed_too, 0, 10);
    tcase_add_test(tests, what_cannot_be_computed_is_refused_by_its_name);
}

int main(void)
{
    return run_tests("forward", add);
}
