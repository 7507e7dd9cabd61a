/* SPDX-License-Identifier: MIT */
/* What each architecture's layers are, by the papers and the published files. */

#include "model/architecture.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/files/rundir.h"
#include "model/convert/synth.h"
#include "model/model.h"
#include "model/traits.h"
#include "gguf/gguf_writer.h"

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

static struct synth_shape shape_of(const char *architecture)
{
    return (struct synth_shape){.name = "test",
                                .architecture = architecture,
                                .n_vocab = 360,
                                .n_context = 64,
                                .n_embd = 48,
                                .n_layers = 13,
                                .n_heads = 4,
                                .n_kv_heads = 2,
                                .head_dim = 16,
                                .n_ff = 56,
                                .norm_epsilon = 1e-5f,
                                .rope_base = 1000000,
                                .rope_dims = 12,
                                .window = 24};
}

static struct model *make(const struct synth_shape *shape)
{
    struct model *model = NULL;
    struct error err = {0};
    ck_assert_msg(synth_write(shape, mixture_by_name("F16"), 1, path, &err) == 0, "%s", err.text);
    ck_assert_msg(model_open(path, false, &model, &err) == 0, "%s", err.text);
    return model;
}

static const struct {
    const char *name;
    struct layer_traits is; /* what does not come from the file */
    trait_set has, lacks;
    float embedding_scale;
} rows[] = {
    {"llama",
     {.norm_place = NORM_BEFORE, .rotary = {.kind = ROTARY_PAIRS}, .gated = true},
     TRAIT_BIT(TRAIT_SILU) | TRAIT_BIT(TRAIT_NORM_RMS),
     TRAIT_BIT(TRAIT_BIASES) | TRAIT_BIT(TRAIT_SLICES) | TRAIT_BIT(TRAIT_QK_NORM),
     1},
    {"qwen2",
     {.norm_place = NORM_BEFORE, .rotary = {.kind = ROTARY_HALVES}, .gated = true},
     TRAIT_BIT(TRAIT_SILU) | TRAIT_BIT(TRAIT_NORM_RMS) | TRAIT_BIT(TRAIT_BIASES),
     TRAIT_BIT(TRAIT_SLICES) | TRAIT_BIT(TRAIT_QK_NORM),
     1},
    {"qwen3",
     {.norm_place = NORM_BEFORE, .rotary = {.kind = ROTARY_HALVES}, .gated = true, .qk_norm = QK_NORM_HEADS},
     TRAIT_BIT(TRAIT_SILU) | TRAIT_BIT(TRAIT_QK_NORM),
     TRAIT_BIT(TRAIT_BIASES) | TRAIT_BIT(TRAIT_EXPERTS),
     1},
    {"gemma2",
     {.norm_place = NORM_BOTH, .rotary = {.kind = ROTARY_HALVES}, .gated = true},
     TRAIT_BIT(TRAIT_GELU) | TRAIT_BIT(TRAIT_NORM_AFTER) | TRAIT_BIT(TRAIT_SCALES),
     TRAIT_BIT(TRAIT_QK_NORM) | TRAIT_BIT(TRAIT_NORM_OFFSET),
     6.928203f},
    {"gemma3",
     {.norm_place = NORM_BOTH, .rotary = {.kind = ROTARY_HALVES}, .gated = true, .qk_norm = QK_NORM_HEADS},
     TRAIT_BIT(TRAIT_GELU) | TRAIT_BIT(TRAIT_QK_NORM) | TRAIT_BIT(TRAIT_NORM_AFTER),
     TRAIT_BIT(TRAIT_BIASES),
     6.928203f},
    {"phi2",
     {.norm_place = NORM_BEFORE, .rotary = {.kind = ROTARY_HALVES}, .parallel = true},
     TRAIT_BIT(TRAIT_GELU) | TRAIT_BIT(TRAIT_NORM_LAYER) | TRAIT_BIT(TRAIT_PARALLEL) |
         TRAIT_BIT(TRAIT_BIASES) | TRAIT_BIT(TRAIT_UNGATED) | TRAIT_BIT(TRAIT_SLICES),
     TRAIT_BIT(TRAIT_POSITIONS) | TRAIT_BIT(TRAIT_NORM_RMS),
     1},
    {"phi3",
     {.norm_place = NORM_BEFORE, .rotary = {.kind = ROTARY_HALVES}, .gated = true},
     TRAIT_BIT(TRAIT_SILU) | TRAIT_BIT(TRAIT_NORM_RMS) | TRAIT_BIT(TRAIT_SLICES),
     TRAIT_BIT(TRAIT_BIASES) | TRAIT_BIT(TRAIT_PARALLEL),
     1},
    {"gpt2",
     {.norm_place = NORM_BEFORE, .rotary = {.kind = ROTARY_NONE}},
     TRAIT_BIT(TRAIT_GELU) | TRAIT_BIT(TRAIT_NORM_LAYER) | TRAIT_BIT(TRAIT_POSITIONS) |
         TRAIT_BIT(TRAIT_BIASES) | TRAIT_BIT(TRAIT_UNGATED),
     TRAIT_BIT(TRAIT_ROTARY_HALVES) | TRAIT_BIT(TRAIT_ROTARY_PAIRS) | TRAIT_BIT(TRAIT_PARALLEL),
     1},
};

/* Layers that see everything though the file names a window. */
static bool sees_everything(const char *architecture, uint32_t i)
{
    if (strcmp(architecture, "gemma2") == 0)
        return i % 2 == 1;
    return strcmp(architecture, "gemma3") == 0 && (i == 5 || i == 11);
}

START_TEST(the_layers_of_an_architecture_are_what_its_paper_says)
{
    const struct layer_traits *is = &rows[_i].is;
    struct synth_shape shape = shape_of(rows[_i].name);
    struct model *model = make(&shape);
    bool turns = is->rotary.kind != ROTARY_NONE, gemma3 = strcmp(rows[_i].name, "gemma3") == 0;
    ck_assert_float_eq_tol(model->params.embedding_scale, rows[_i].embedding_scale, 1e-5f);
    trait_set traits = model_traits(model);
    ck_assert_msg((traits & rows[_i].has) == rows[_i].has, "lacks %#llx",
                  (unsigned long long)(rows[_i].has & ~traits));
    ck_assert_msg((traits & rows[_i].lacks) == 0, "has %#llx", (unsigned long long)(rows[_i].lacks & traits));
    for (uint32_t i = 0; i < 13; i++) {
        const struct layer_traits *layer = &model->layers[i].traits;
        bool local = !sees_everything(rows[_i].name, i);
        ck_assert_int_eq(layer->norm_place, is->norm_place);
        ck_assert_float_eq(layer->norm.epsilon, 1e-5f);
        ck_assert_int_eq(layer->rotary.kind, is->rotary.kind);
        ck_assert_uint_eq(layer->rotary.dims, turns ? 12 : 0);
        ck_assert(!turns || layer->rotary.base == (gemma3 && local ? 10000 : 1000000));
        ck_assert_int_eq(layer->gated, is->gated);
        ck_assert_int_eq(layer->parallel, is->parallel);
        ck_assert_int_eq(layer->qk_norm, is->qk_norm);
        ck_assert_uint_eq(layer->window, local ? 24 : 0);
        ck_assert_float_eq(layer->attention_scale, 0.25f); /* 1 / √16 */
        ck_assert_float_eq(layer->residual_scale, 1);
    }
    model_free(model);
}
END_TEST

START_TEST(the_largest_gemmas_scale_scores_by_their_width)
{
    static const struct {
        const char *name;
        uint32_t n_layers;
    } cases[] = {{"gemma2", 46}, {"gemma3", 62}};
    for (size_t i = 0; i < 2; i++) {
        struct synth_shape shape = shape_of(cases[i].name);
        shape.n_layers = cases[i].n_layers;
        struct model *model = make(&shape);
        for (uint32_t l = 0; l < shape.n_layers; l++)
            ck_assert_float_eq_tol(model->layers[l].traits.attention_scale, 1 / sqrtf(12),
                                   1e-7f); /* 48 ÷ 4 */
        model_free(model);
    }
}
END_TEST

START_TEST(a_fused_tensor_is_dealt_out_in_order)
{
    struct synth_shape shape = shape_of("phi3");
    struct model *model = make(&shape);
    static const struct {
        enum tensor_role role;
        uint32_t first_row, rows;
    } parts[] = {
        {TENSOR_Q, 0, 64}, {TENSOR_K, 64, 32}, {TENSOR_V, 96, 32}, {TENSOR_GATE, 0, 56}, {TENSOR_UP, 56, 56}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const struct model_tensor *t = &model->layers[3].tensors[parts[i].role];
        bool qkv = i < 3;
        ck_assert(bytes_equal(t->weight->name, qkv ? BYTES_LITERAL("blk.3.attn_qkv.weight")
                                                   : BYTES_LITERAL("blk.3.ffn_up.weight")));
        ck_assert(t->first_row == parts[i].first_row && t->rows == parts[i].rows && t->columns == 48);
    }
    ck_assert(!model->layers[3].tensors[TENSOR_QKV].weight &&
              !model->layers[3].tensors[TENSOR_GATE_UP].weight);
    model_free(model);
}
END_TEST

static int fill_copy(void *arg, void *out, size_t size)
{
    memcpy(out, arg, size);
    return 0;
}

/* The file again, as one of another architecture: the same numbers under that one's keys. */
static int open_as(const char *from, const char *to, struct model **ret_model, struct error *err)
{
    struct gguf *gguf;
    struct gguf_writer *writer;
    ck_assert_int_eq(gguf_open(path, &gguf, err), 0);
    ck_assert_int_eq(gguf_writer_new(&writer), 0);
    for (size_t i = 0; i < gguf_n_pairs(gguf); i++) {
        struct gguf_pair pair = *gguf_pair_at(gguf, i);
        char key[96];
        if (pair.key.len > strlen(from) && memcmp(pair.key.data, from, strlen(from)) == 0) {
            snprintf(key, sizeof key, "%s%.*s", to, (int)(pair.key.len - strlen(from)),
                     (const char *)pair.key.data + strlen(from));
            pair.key = bytes_of_string(key);
        } else if (bytes_equal(pair.key, BYTES_LITERAL("general.architecture"))) {
            pair.value.string = bytes_of_string(to);
        }
        ck_assert_int_eq(gguf_writer_pair(writer, &pair), 0);
    }
    for (size_t i = 0; i < gguf_n_tensors(gguf); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(gguf, i);
        char name[TENSOR_NAME_SIZE];
        snprintf(name, sizeof name, "%.*s", (int)t->name.len, (const char *)t->name.data);
        ck_assert_int_eq(
            gguf_writer_tensor(writer, name, t->n_dims, t->dims, t->format, fill_copy, (void *)t->data), 0);
    }
    ck_assert_int_eq(gguf_writer_write(writer, edited, err), 0);
    gguf_writer_free(writer);
    gguf_free(gguf);
    return model_open(edited, false, ret_model, err);
}

START_TEST(a_file_of_one_architecture_is_none_of_another)
{
    static const struct {
        const char *from, *to, *says;
    } cases[] = {{"llama", "qwen2", "tensor blk.0.attn_q.bias is missing"},
                 {"llama", "qwen3", "tensor blk.0.attn_q_norm.weight is missing"},
                 {"llama", "gemma2", "tensor blk.0.post_attention_norm.weight is missing"},
                 {"llama", "gpt2", "hyperparameter gpt2.attention.layer_norm_epsilon is missing"},
                 {"qwen3", "llama", "unexpected tensor blk.0.attn_q_norm.weight in a llama model"},
                 {"gpt2", "phi2", "tensor output.bias is missing"},
                 {"phi2", "gpt2", "tensor position_embd.weight is missing"},
                 {"phi3", "llama", "tensor blk.0.attn_q.weight is missing"},
                 {"qwen3", "qwen3moe", "hyperparameter qwen3moe.expert_count is missing or 0"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct model *model = NULL;
        struct error err = {0};
        struct synth_shape shape = shape_of(cases[i].from);
        shape.n_layers = 1;
        model_free(make(&shape));
        ck_assert_int_eq(open_as(cases[i].from, cases[i].to, &model, &err), -EINVAL);
        ck_assert_msg(strstr(err.text, cases[i].says), "\"%s\" expected: %s", cases[i].says, err.text);
        ck_assert_ptr_null(model);
    }
    /* Queries, keys and values need not be one tensor where they may; gate and up must. */
    struct model *model = NULL;
    struct error err = {0};
    struct synth_shape shape = shape_of("qwen2");
    model_free(make(&shape));
    ck_assert_int_eq(open_as("qwen2", "phi3", &model, &err), -EINVAL);
    ck_assert_msg(strstr(err.text, "tensor blk.0.ffn_up.weight has 56 rows of 48; expected 112 of 48"), "%s",
                  err.text);
}
END_TEST

START_TEST(experts_are_described)
{
    struct synth_shape shape = shape_of("qwen3moe");
    shape.n_experts = 5;
    struct model *model = make(&shape);
    const struct model_layer *layer = &model->layers[1];
    ck_assert(layer->traits.experts.n == 5 && layer->traits.experts.n_used == 2);
    ck_assert(layer->traits.experts.n_ff == 56 && layer->traits.experts.n_shared_ff == 0);
    const struct model_tensor *downs = &layer->tensors[TENSOR_EXPERT_DOWNS];
    ck_assert(downs->count == 5 && downs->rows == 48 && downs->columns == 56);
    ck_assert(layer->tensors[TENSOR_ROUTER].rows == 5 && !layer->tensors[TENSOR_SHARED_UP].weight);
    struct error err = {0};
    ck_assert_int_eq(model_check_traits(model, 0, "a device", &err), 0);
    ck_assert_int_eq(model_check_traits(model, TRAIT_BIT(TRAIT_SHARED_EXPERTS), "a device", &err), 0);
    ck_assert_int_eq(model_check_traits(model, TRAIT_BIT(TRAIT_EXPERTS), "a device", &err), -EINVAL);
    ck_assert_str_eq(err.text,
                     "a device cannot compute mixtures of experts, which this qwen3moe model needs");
    model_free(model);
}
END_TEST

START_TEST(every_trait_has_a_name_of_its_own)
{
    for (int i = 0; i < MODEL_TRAITS; i++) {
        ck_assert_msg(model_trait_name(i), "trait %d has no name", i);
        for (int k = 0; k < i; k++)
            ck_assert_str_ne(model_trait_name(i), model_trait_name(k));
    }
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, the_layers_of_an_architecture_are_what_its_paper_says, 0,
                        (int)(sizeof rows / sizeof *rows));
    tcase_add_test(tests, the_largest_gemmas_scale_scores_by_their_width);
    tcase_add_test(tests, a_fused_tensor_is_dealt_out_in_order);
    tcase_add_test(tests, a_file_of_one_architecture_is_none_of_another);
    tcase_add_test(tests, experts_are_described);
    tcase_add_test(tests, every_trait_has_a_name_of_its_own);
}

int main(void)
{
    return run_tests("architecture", add);
}
