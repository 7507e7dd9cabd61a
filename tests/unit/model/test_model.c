/* SPDX-License-Identifier: MIT */
#include "model/model.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/files/rundir.h"
#include "common/utf8.h"
#include "model/convert/synth.h"
#include "model/frequencies.h"
#include "gguf/gguf_writer.h"

/* A change to the good model: what is dropped, set or added. */
struct edit {
    const char *drop_key, *drop_tensor;
    const char *key; /* set: to `text` if not NULL, else to `real` if `is_real`, else to `number` */
    const char *text;
    double real;
    bool is_real;
    uint32_t number;
    const char *tensor; /* added, or put in place of the one of that name */
    uint64_t dims[2];
    enum format format;
    const char *says;
};

static const struct synth_shape shape = {.name = "test",
                                         .n_vocab = 400,
                                         .n_context = 64,
                                         .n_embd = 64,
                                         .n_layers = 2,
                                         .n_heads = 4,
                                         .n_kv_heads = 2,
                                         .head_dim = 16,
                                         .n_ff = 96,
                                         .norm_epsilon = 1e-5f,
                                         .rope_base = 10000,
                                         .rope_factor = 8,
                                         .biases = true};

static char dir[RUNDIR_PATH_MAX + 1];
static char base_path[RUNDIR_PATH_MAX + 20], path[RUNDIR_PATH_MAX + 20];
static struct gguf *base;

static void set_up(void)
{
    struct error err;
    ck_assert_int_eq(rundir_temporary(dir, NULL), 0);
    snprintf(base_path, sizeof base_path, "%s/base.gguf", dir);
    snprintf(path, sizeof path, "%s/edited.gguf", dir);
    ck_assert_msg(synth_write(&shape, mixture_by_name("F16"), 1, base_path, &err) == 0, "%s", err.text);
    ck_assert_msg(gguf_open(base_path, &base, &err) == 0, "%s", err.text);
}

static void tear_down(void)
{
    base = gguf_free(base);
    rundir_remove(dir);
}

static int fill_copy(void *arg, void *out, size_t size)
{
    memcpy(out, arg, size);
    return 0;
}

static int fill_zero(void *arg, void *out, size_t size)
{
    memset(out, 0, size);
    return 0;
}

static bool is(struct bytes name, const char *other)
{
    return other && bytes_equal(name, bytes_of_string(other));
}

static void write_edited(const struct edit *edit)
{
    struct gguf_writer *w;
    struct error err;
    ck_assert_int_eq(gguf_writer_new(&w), 0);
    for (size_t i = 0; i < gguf_n_pairs(base); i++) {
        const struct gguf_pair *pair = gguf_pair_at(base, i);
        if (!is(pair->key, edit->drop_key) && !is(pair->key, edit->key))
            ck_assert_int_eq(gguf_writer_pair(w, pair), 0);
    }
    if (edit->text)
        ck_assert_int_eq(gguf_writer_string(w, edit->key, edit->text), 0);
    else if (edit->is_real)
        ck_assert_int_eq(gguf_writer_f32(w, edit->key, (float)edit->real), 0);
    else if (edit->key)
        ck_assert_int_eq(gguf_writer_u32(w, edit->key, edit->number), 0);
    for (size_t i = 0; i < gguf_n_tensors(base); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(base, i);
        char name[64];
        if (!is(t->name, edit->drop_tensor) && !is(t->name, edit->tensor))
            ck_assert_int_eq(gguf_writer_tensor(w, utf8_printable(t->name, sizeof name, name), t->n_dims,
                                                t->dims, t->format, fill_copy, (void *)t->data),
                             0);
    }
    if (edit->tensor)
        ck_assert_int_eq(gguf_writer_tensor(w, edit->tensor, edit->dims[1] ? 2 : 1, edit->dims, edit->format,
                                            fill_zero, NULL),
                         0);
    ck_assert_msg(gguf_writer_write(w, path, &err) == 0, "%s", err.text);
    gguf_writer_free(w);
}

static struct model *open_edited(const struct edit *edit)
{
    struct model *model = NULL;
    struct error err = {0};
    write_edited(edit);
    int r = model_open(path, true, &model, &err);
    ck_assert_msg(r == 0, "%s", err.text);
    return model;
}

static void expect_refusals(const struct edit *edits, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct model *model = NULL;
        struct error err = {0};
        write_edited(&edits[i]);
        ck_assert_msg(model_open(path, true, &model, &err) == -EINVAL, "\"%s\" expected", edits[i].says);
        ck_assert_msg(strstr(err.text, edits[i].says), "\"%s\" expected: %s", edits[i].says, err.text);
        ck_assert_msg(strstr(err.text, "edited.gguf: "), "no path: %s", err.text);
        ck_assert_ptr_null(model);
    }
}

#define EXPECT_REFUSALS(edits) expect_refusals(edits, sizeof(edits) / sizeof(edits)[0])

START_TEST(a_good_model_opens_with_all_its_parts)
{
    struct model *model = open_edited(&(struct edit){0});
    const struct model_params *p = &model->params;
    ck_assert_str_eq(p->architecture, "llama");
    ck_assert_str_eq(p->name, "test F16, random weights");
    ck_assert(p->n_vocab == 400 && p->n_context == 64 && p->n_embd == 64 && p->n_layers == 2);
    ck_assert(p->n_heads == 4 && p->n_kv_heads == 2 && p->head_dim == 16 && p->n_ff == 96);
    ck_assert(p->norm_epsilon == 1e-5f && p->rope_base == 10000 && p->rope_dims == 16 && p->rope_factor == 1);
    ck_assert(!model_head_is_tied(model));
    ck_assert_ptr_nonnull(model->tensors[TENSOR_ROTARY_FACTORS].weight);
    for (uint32_t i = 0; i < 2; i++) {
        const struct model_tensor *t = model->layers[i].tensors;
        ck_assert(t[TENSOR_Q].bias && t[TENSOR_K].bias && t[TENSOR_V].bias);
        ck_assert(!t[TENSOR_ATTENTION_OUTPUT].bias);
        ck_assert_uint_eq(t[TENSOR_K].rows, 32);
        ck_assert_uint_eq(t[TENSOR_DOWN].columns, 96);
        ck_assert(!t[TENSOR_Q_NORM].weight && !t[TENSOR_ROUTER].weight);
    }
    ck_assert_ptr_ne(model->layers[0].tensors[TENSOR_Q].weight, model->layers[1].tensors[TENSOR_Q].weight);
    ck_assert_uint_eq(tokenizer_size(model->tokenizer), 400);
    model_free(model);
}
END_TEST

START_TEST(defaults_fill_in_for_what_files_leave_out)
{
    struct model *model = open_edited(
        &(struct edit){.drop_key = "llama.attention.key_length", .key = "general.name", .text = ""});
    ck_assert_uint_eq(model->params.head_dim, 16);
    ck_assert_str_eq(model->params.name, "edited.gguf");
    model_free(model);
    model =
        open_edited(&(struct edit){.drop_key = "llama.rope.freq_base", .drop_tensor = "rope_freqs.weight"});
    ck_assert(model->params.rope_base == 10000 && !model->tensors[TENSOR_ROTARY_FACTORS].weight);
    model_free(model);
    model = open_edited(&(struct edit){.drop_tensor = "output.weight"});
    ck_assert(model_head_is_tied(model));
    model_free(model);
    model = open_edited(&(struct edit){.drop_tensor = "blk.1.attn_q.bias"});
    ck_assert(model->layers[0].tensors[TENSOR_Q].bias && !model->layers[1].tensors[TENSOR_Q].bias);
    model_free(model);
}
END_TEST

START_TEST(a_model_says_what_its_embeddings_are_made_of)
{
    struct model *model = open_edited(&(struct edit){.key = "general.name", .text = "x"});
    ck_assert_int_eq(model->params.pooling, POOLING_UNSAID);
    model_free(model);
    for (uint32_t i = POOLING_UNSAID; i <= POOLING_LAST; i++) {
        model = open_edited(&(struct edit){.key = "llama.pooling_type", .number = i});
        ck_assert_uint_eq(model->params.pooling, i);
        model_free(model);
    }
    ck_assert_str_eq(pooling_name(POOLING_LAST), "last");
}
END_TEST

START_TEST(linear_rope_scaling_is_read_from_each_of_its_keys)
{
    struct model *model =
        open_edited(&(struct edit){.key = "llama.rope.scaling.factor", .real = 4, .is_real = true});
    ck_assert(model->params.rope_factor == 4);
    model_free(model);
    model = open_edited(&(struct edit){.key = "llama.rope.scale_linear", .real = 2, .is_real = true});
    ck_assert(model->params.rope_factor == 2);
    model_free(model);
    model = open_edited(&(struct edit){.key = "llama.rope.scaling.type", .text = "none"});
    ck_assert(model->params.rope_factor == 1);
    model_free(model);
}
END_TEST

START_TEST(a_missing_hyperparameter_is_named)
{
    static const struct edit edits[] = {
        {.drop_key = "general.architecture", .says = "general.architecture is missing"},
        {.drop_key = "llama.context_length", .says = "llama.context_length is missing"},
        {.drop_key = "llama.embedding_length", .says = "llama.embedding_length is missing"},
        {.drop_key = "llama.block_count", .says = "llama.block_count is missing"},
        {.drop_key = "llama.feed_forward_length", .says = "llama.feed_forward_length is missing"},
        {.drop_key = "llama.attention.head_count", .says = "llama.attention.head_count is missing"},
        {.drop_key = "llama.attention.layer_norm_rms_epsilon", .says = "layer_norm_rms_epsilon is missing"},
        {.drop_key = "tokenizer.ggml.tokens", .says = "tokenizer.ggml.tokens"},
    };
    EXPECT_REFUSALS(edits);
}
END_TEST

/* In the place of the llama. */
static void use_model_that_ranks(void)
{
    struct synth_shape ranks = shape;
    struct error err;
    ranks.architecture = "qwen3";
    ranks.n_labels = 2;
    gguf_free(base);
    ck_assert_msg(synth_write(&ranks, mixture_by_name("F16"), 1, base_path, &err) == 0, "%s", err.text);
    ck_assert_msg(gguf_open(base_path, &base, &err) == 0, "%s", err.text);
}

START_TEST(a_model_that_ranks_has_a_head_with_a_row_for_each_label)
{
    use_model_that_ranks();
    struct model *model = open_edited(&(struct edit){0});
    ck_assert(model->params.pooling == POOLING_RANK && model->params.n_labels == 2 &&
              model->params.rank_shares);
    ck_assert_uint_eq(model->tensors[TENSOR_RANK_HEAD].rows, 2);
    ck_assert(
        bytes_equal(model->rank_template, BYTES_LITERAL("query: {query}\ndocument: {document}\nanswer: ")));
    model_free(model);
    /* Without a list there is one label, whose score no softmax makes a 1. */
    model = open_edited(&(struct edit){.drop_key = "qwen3.classifier.output_labels",
                                       .tensor = "cls.output.weight",
                                       .dims = {64, 1},
                                       .format = FORMAT_F16});
    ck_assert(model->params.n_labels == 1 && !model->params.rank_shares);
    model_free(model);
    model = open_edited(&(struct edit){.drop_key = MODEL_RANK_TEMPLATE});
    ck_assert_uint_eq(model->rank_template.len, 0);
    model_free(model);
    static const struct edit edits[] = {
        {.drop_tensor = "cls.output.weight", .says = "tensor cls.output.weight is missing"},
        {.drop_key = "qwen3.classifier.output_labels",
         .says = "tensor cls.output.weight has 2 rows of 64; expected 1 of 64"},
        {.key = "qwen3.classifier.output_labels",
         .text = "yes",
         .says = "qwen3.classifier.output_labels: expected a list of texts"},
        {.key = "qwen3.pooling_type",
         .number = 3,
         .says = "unexpected tensor cls.output.weight in a qwen3 model"},
        {.key = MODEL_RANK_TEMPLATE, .number = 3, .says = "tokenizer.chat_template.rerank has type u32"},
        {.tensor = "cls.output.bias",
         .dims = {3},
         .format = FORMAT_F32,
         .says = "tensor cls.output.bias has 1 dimensions, the first of 3; expected one of 2"},
    };
    EXPECT_REFUSALS(edits);
}
END_TEST

START_TEST(a_hyperparameter_without_sense_is_named)
{
    static const struct edit edits[] = {
        {.key = "general.architecture",
         .text = "sphinx",
         .says = "architecture \"sphinx\" is not supported (these are: llama qwen2 qwen3 qwen3moe gemma2 "
                 "gemma3 gemma4 phi2 phi3 gpt2 gpt-oss mistral3 smollm3 granite granitemoe olmo2 seed_oss "
                 "qwen35 qwen35moe qwen3next)"},
        {.key = "llama.attention.head_count",
         .number = 0,
         .says = "llama.attention.head_count 0 is out of range 1..16777216"},
        {.key = "llama.attention.head_count_kv",
         .number = 3,
         .says = "llama.attention.head_count_kv: 4 heads cannot share 3"},
        {.key = "llama.attention.head_count", .text = "four", .says = "head_count has type string"},
        {.key = "llama.context_length", .number = 0, .says = "llama.context_length 0 is out of range 1.."},
        {.key = "llama.embedding_length",
         .number = 4000000000u,
         .says = "embedding_length 4000000000 is out of range"},
        {.key = "llama.block_count", .number = 16000000, .says = "llama.block_count is 16000000, but"},
        {.key = "llama.block_count", .number = 3, .says = "tensor blk.2.attn_norm.weight is missing"},
        {.key = "llama.block_count", .number = 1, .says = "unexpected tensor blk.1.attn_norm.weight"},
        {.key = "llama.attention.layer_norm_rms_epsilon",
         .real = NAN,
         .is_real = true,
         .says = "epsilon is nan"},
        {.key = "llama.attention.layer_norm_rms_epsilon",
         .real = -1,
         .is_real = true,
         .says = "epsilon is -1"},
        {.key = "llama.rope.freq_base", .real = INFINITY, .is_real = true, .says = "freq_base is inf"},
        {.drop_key = "llama.attention.head_count_kv", .says = "tensor blk.0.attn_k.weight has 32 rows"},
        {.drop_key = "llama.attention.key_length",
         .key = "llama.attention.head_count",
         .number = 6,
         .says = "llama.attention.head_count: embedding length 64 is not a multiple of 6 heads"},
        {.key = "llama.pooling_type",
         .number = 4,
         .says = "is 4 (rank), which is not supported in a llama model"},
        {.key = "llama.pooling_type", .number = 5, .says = "llama.pooling_type is 5, which is not known"},
        {.key = "llama.pooling_type",
         .number = 4294967295u,
         .says = "pooling_type 4294967295 is out of range"},
        {.key = "llama.pooling_type", .text = "last", .says = "pooling_type has type string"},
        {.key = "llama.expert_weights_norm", .number = 0, .says = "expert_weights_norm has type u32"},
        {.key = "llama.rope.halves", .number = 1, .says = "llama.rope.halves has type u32"},
        {.key = "llama.rope.dimension_count",
         .number = 15,
         .says = "llama.rope.dimension_count: 15 rotary dimensions"},
        {.key = "llama.rope.dimension_count", .number = 18, .says = "18 rotary dimensions in heads of 16"},
        {.key = "llama.attention.value_length",
         .number = 8,
         .says = "keys of length 16 with values of length 8"},
        {.key = "llama.rope.scaling.type",
         .text = "dynamic",
         .says = "rope scaling \"dynamic\" is not supported"},
        {.key = "llama.rope.scaling.type",
         .text = "longrope",
         .says = "tensor rope_factors_long.weight is missing, which long-rope needs"},
        {.key = "llama.rope.scaling.attn_factor", .real = 0, .is_real = true, .says = "attn_factor is 0"},
        {.key = "llama.rope.scaling.yarn_log_multiplier",
         .real = 0.1,
         .is_real = true,
         .says = "hyperparameter llama.rope.scaling.yarn_log_multiplier is not supported"},
        {.tensor = "rope_factors_long.weight",
         .dims = {8},
         .format = FORMAT_F32,
         .says = "tensor rope_factors_short.weight is missing"},
        {.key = "llama.rope.scaling.factor", .real = 0, .is_real = true, .says = "scaling.factor is 0"},
        {.key = "llama.expert_count",
         .number = 8,
         .says = "llama.expert_used_count: 0 of 8 experts cannot be used"},
        {.key = "llama.expert_used_count", .number = 2, .says = "2 of 0 experts cannot be used"},
        {.key = "llama.expert_count",
         .number = 4294967295u,
         .says = "llama.expert_count 4294967295 is out of range"},
        {.key = "llama.expert_gating_func", .number = 2, .says = "llama.expert_gating_func is 2"},
        {.key = "llama.expert_weights_scale",
         .real = 2.5,
         .is_real = true,
         .says = "llama.expert_weights_scale is 2.5"},
        {.key = "llama.attention.max_alibi_bias",
         .real = 8,
         .is_real = true,
         .says = "max_alibi_bias is not supported"},
        {.key = "llama.attention.max_alibi_bias",
         .real = -8,
         .is_real = true,
         .says = "max_alibi_bias is not supported"},
    };
    EXPECT_REFUSALS(edits);
}
END_TEST

START_TEST(a_tensor_that_does_not_fit_is_named)
{
    static const struct edit edits[] = {
        {.drop_tensor = "token_embd.weight", .says = "tensor token_embd.weight is missing"},
        {.drop_tensor = "output_norm.weight", .says = "tensor output_norm.weight is missing"},
        {.drop_tensor = "blk.1.ffn_down.weight", .says = "tensor blk.1.ffn_down.weight is missing"},
        {.tensor = "blk.0.attn_q.weight", .dims = {64, 32}, .says = "has 32 rows of 64; expected 64 of 64"},
        {.tensor = "blk.0.ffn_up.weight", .dims = {96, 64}, .says = "blk.0.ffn_up.weight has 64 rows of 96"},
        {.tensor = "output.weight", .dims = {64, 401}, .says = "tensor output.weight has 401 rows"},
        {.tensor = "token_embd.weight", .dims = {64, 399}, .says = "tensor output.weight has 400 rows"},
        {.tensor = "blk.0.attn_norm.weight", .dims = {63}, .says = "tensor blk.0.attn_norm.weight has"},
        {.tensor = "blk.0.attn_norm.weight", .dims = {64}, .format = FORMAT_F16, .says = "expected F32"},
        {.tensor = "blk.0.attn_q.bias", .dims = {65}, .says = "tensor blk.0.attn_q.bias has"},
        {.tensor = "blk.0.attn_k.weight",
         .dims = {64, 32},
         .format = (enum format)9,
         .says = "has format Q8_1"},
        {.tensor = "blk.0.attn_q_norm.weight",
         .dims = {16},
         .says = "unexpected tensor blk.0.attn_q_norm.weight"},
        {.tensor = "rope_freqs.weight", .dims = {4}, .says = "tensor rope_freqs.weight has"},
        {.tensor = "rope_freqs.weight", .dims = {8}, .says = "rope_freqs.weight holds 0 at 0"},
    };
    EXPECT_REFUSALS(edits);
}
END_TEST

START_TEST(ids_beyond_the_vocabulary_are_never_sampled)
{
    struct model *model = NULL;
    struct error err;
    /* A head of 450 rows over 400 tokens, the last 50 are padding. */
    write_edited(
        &(struct edit){.tensor = "token_embd.weight", .dims = {64, 450}, .drop_tensor = "output.weight"});
    ck_assert_msg(model_open(path, true, &model, &err) == 0, "%s", err.text);
    ck_assert_uint_eq(model->params.n_vocab, 450);
    for (uint32_t id = 0; id < 450; id++)
        ck_assert_int_eq(model_may_sample(model, id), id < 400);
    model_free(model);
    ck_assert_int_eq(model_open(path, false, &model, &err), 0);
    ck_assert(model_may_sample(model, 449) && !model->tokenizer);
    model_free(model);
    static const struct edit fewer[] = {
        {.tensor = "token_embd.weight",
         .dims = {64, 399},
         .drop_tensor = "output.weight",
         .says = "the vocabulary has 400 tokens, token_embd.weight only 399"}};
    EXPECT_REFUSALS(fewer);
}
END_TEST

START_TEST(a_tensor_name_and_its_role_are_two_words_for_one_thing)
{
    enum tensor_role found;
    uint32_t layer;
    bool is_bias;
    for (enum tensor_role role = 0; role < TENSOR_ROLES; role++)
        for (int bias = 0; bias < 2; bias++) {
            char name[TENSOR_NAME_SIZE], again[TENSOR_NAME_SIZE];
            tensor_name(role, 4294967295u, bias, name);
            ck_assert_msg(tensor_role_of(bytes_of_string(name), &found, &layer, &is_bias), "%s", name);
            ck_assert_str_eq(tensor_name(found, layer, is_bias, again), name);
            /* Gate and up in one tensor are called as up alone is, queries and gates as queries, and one norm
             * before the feed-forward as another after attention. */
            ck_assert(found == role || (role == TENSOR_GATE_UP && found == TENSOR_UP) ||
                      (role == TENSOR_Q_GATE && found == TENSOR_Q) ||
                      (role == TENSOR_NAMED_POST_NORM && found == TENSOR_ATTENTION_POST_NORM));
        }
    static const char *const others[] = {"",
                                         "output",
                                         "blk.attn_q.weight",
                                         "blk.1.attn_q.weights",
                                         "blk.01.attn_q.weight",
                                         "blk.4294967296.attn_q.weight",
                                         "output_norm.weight.weight",
                                         "attn_q.weight"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ck_assert_msg(!tensor_role_of(bytes_of_string(others[i]), &found, &layer, &is_bias), "%s", others[i]);
}
END_TEST

START_TEST(the_chat_template_is_handed_on)
{
    struct model *model =
        open_edited(&(struct edit){.key = "tokenizer.chat_template", .text = "{{ messages }}"});
    ck_assert(bytes_equal(model->chat_template, BYTES_LITERAL("{{ messages }}")));
    model_free(model);
    model = open_edited(&(struct edit){0});
    ck_assert_uint_eq(model->chat_template.len, 0);
    model_free(model);
}
END_TEST

START_TEST(the_digest_tells_models_apart)
{
    struct model *one = open_edited(&(struct edit){0});
    struct model *same = open_edited(&(struct edit){0});
    struct model *other =
        open_edited(&(struct edit){.key = "llama.rope.freq_base", .real = 9999, .is_real = true});
    struct model *const all[] = {one, same, other};
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(model_read_digest(all[i], 2, NULL, NULL, NULL), 0);
    ck_assert_mem_eq(one->digest, same->digest, 16);
    ck_assert_mem_ne(one->digest, other->digest, 16);
    model_free(one);
    model_free(same);
    model_free(other);
}
END_TEST

/* The file's own factors, in all three roles. */
START_TEST(long_contexts_choose_the_long_factors)
{
    struct model *model = open_edited(&(struct edit){0});
    struct model_tensor *tensors = model->tensors;
    float longer[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    struct gguf_tensor long_factors = *tensors[TENSOR_ROTARY_FACTORS].weight;
    const float *own = tensors[TENSOR_ROTARY_FACTORS].weight->data;
    uint8_t digest[16];
    ck_assert_ptr_eq(rotary_factors(model, 1000), own);
    ck_assert(!model_is_stretched(model, 1000));
    long_factors.data = longer;
    tensors[TENSOR_ROTARY_SHORT] = tensors[TENSOR_ROTARY_FACTORS];
    tensors[TENSOR_ROTARY_LONG].weight = &long_factors;
    ck_assert_ptr_eq(rotary_factors(model, 64), own); /* the context of training */
    ck_assert_ptr_eq(rotary_factors(model, 65), longer);
    model->params.rope_trained_context = 32;
    ck_assert_ptr_eq(rotary_factors(model, 32), own);
    ck_assert_ptr_eq(rotary_factors(model, 33), longer);
    memcpy(digest, model->digest, sizeof digest);
    model_mark_stretched(model, 32);
    ck_assert_mem_eq(digest, model->digest, sizeof digest);
    model_mark_stretched(model, 33); /* keys of the one are of no use to the other */
    ck_assert_mem_ne(digest, model->digest, sizeof digest);
    model_free(model);
}
END_TEST

/* By hand: 64 positions make pair i turn 64 / (2 pi 20^(i/4)) times: 10.2, 4.8, 2.3, 1.1 … */
START_TEST(yarn_slows_the_slow_pairs)
{
    struct rotary rotary = {.kind = ROTARY_HALVES,
                            .dims = 8,
                            .base = 20,
                            .scaling = ROTARY_YARN,
                            .factor = 4,
                            .trained_context = 64,
                            .fast_turns = 4,
                            .slow_turns = 1};
    double plain[4], scaled[4];
    const double share[4] = {1, 1, 1 - 0.75 / 3, 1 - 0.75 * 2 / 3}; /* the ramp goes from pair 1 to 4 */
    rotary_frequencies(&rotary, NULL, scaled);
    rotary.scaling = ROTARY_UNSCALED;
    rotary_frequencies(&rotary, NULL, plain);
    for (int i = 0; i < 4; i++)
        ck_assert_double_eq_tol(scaled[i] / plain[i], share[i], 1e-12);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, long_contexts_choose_the_long_factors);
    tcase_add_test(tests, yarn_slows_the_slow_pairs);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_good_model_opens_with_all_its_parts);
    tcase_add_test(tests, defaults_fill_in_for_what_files_leave_out);
    tcase_add_test(tests, a_model_says_what_its_embeddings_are_made_of);
    tcase_add_test(tests, linear_rope_scaling_is_read_from_each_of_its_keys);
    tcase_add_test(tests, a_missing_hyperparameter_is_named);
    tcase_add_test(tests, a_model_that_ranks_has_a_head_with_a_row_for_each_label);
    tcase_add_test(tests, a_hyperparameter_without_sense_is_named);
    tcase_add_test(tests, a_tensor_that_does_not_fit_is_named);
    tcase_add_test(tests, ids_beyond_the_vocabulary_are_never_sampled);
    tcase_add_test(tests, a_tensor_name_and_its_role_are_two_words_for_one_thing);
    tcase_add_test(tests, the_chat_template_is_handed_on);
    tcase_add_test(tests, the_digest_tells_models_apart);
}

int main(void)
{
    return run_tests("model", add);
}
