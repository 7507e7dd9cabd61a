/* SPDX-License-Identifier: MIT */
/* Models of real shapes with random weights.
 *
 * Everything is announced to a gguf_writer first, which then asks for each tensor's bytes: norms are ones,
 * rope factors computed, the rest random blocks. A tensor's random numbers depend on the seed and the
 * tensor's place in the file, so a file can be made again. */

#include "model/convert/synth.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "gguf/gguf_writer.h"
#include "model/convert/random_blocks.h"
#include "model/convert/synth_vocabulary.h"
#include "model/hyperparameters.h"
#include "model/hyperparameters_ranking.h"
#include "model/model.h"

const struct synth_shape synth_shapes[] = {
    /* name, architecture, vocab, context, embd, layers, heads, kv, head, ff, epsilon, base, factor, tied */
    {"tiny", NULL, 512, 4096, 256, 2, 4, 2, 64, 512, 1e-5f, 10000, 0, .tied = true},
    /* Each row goes to all experts: no choice between them hangs on a rounding. */
    {"tiny-experts", "qwen3moe", 512, 4096, 256, 2, 4, 2, 64, 512, 1e-5f, 10000, 0, .tied = true,
     .n_experts = 4, .n_experts_used = 4, .n_expert_ff = 256},
    {"null", NULL, 32000, 1 << 20, 32, 1, 1, 1, 32, 32, 1e-5f, 10000, 0, .tied = true},
    {"qwen2.5-0.5b", "qwen2", 151936, 32768, 896, 24, 14, 2, 64, 4864, 1e-6f, 1000000, 0, .tied = true},
    {"qwen2.5-1.5b", "qwen2", 151936, 32768, 1536, 28, 12, 2, 128, 8960, 1e-6f, 1000000, 0, .tied = true},
    {"tinyllama-1.1b", NULL, 32000, 2048, 2048, 22, 32, 4, 64, 5632, 1e-5f, 10000, 0, .tied = false},
    {"llama-3.2-1b", NULL, 128256, 131072, 2048, 16, 32, 8, 64, 8192, 1e-5f, 500000, 32, .tied = true},
    {"llama-3.2-3b", NULL, 128256, 131072, 3072, 28, 24, 8, 128, 8192, 1e-5f, 500000, 32, .tied = true},
    {"llama-3.1-8b", NULL, 128256, 131072, 4096, 32, 32, 8, 128, 14336, 1e-5f, 500000, 8, .tied = false},
    {"mixtral-8x7b", NULL, 32000, 32768, 4096, 32, 32, 8, 128, 14336, 1e-5f, 1000000, 0, .n_experts = 8},
    {"qwen3-0.6b", "qwen3", 151936, 40960, 1024, 28, 16, 8, 128, 3072, 1e-6f, 1000000, 0, .tied = true},
    {"tiny-rank", "qwen3", 512, 4096, 256, 2, 4, 2, 64, 512, 1e-6f, 10000, 0, .tied = true, .n_labels = 2},
    {"qwen3-reranker-0.6b", "qwen3", 151669, 40960, 1024, 28, 16, 8, 128, 3072, 1e-6f, 1000000, 0,
     .tied = true, .n_labels = 2},
    {"qwen3-30b-a3b", "qwen3moe", 151936, 40960, 2048, 48, 32, 4, 128, 6144, 1e-6f, 1000000, 0,
     .n_experts = 128, .n_experts_used = 8, .n_expert_ff = 768},
    {"gemma-2-2b", "gemma2", 256000, 8192, 2304, 26, 8, 4, 256, 9216, 1e-6f, 10000, 0, .tied = true,
     .window = 4096, .cap = 50, .logit_cap = 30},
    {"gemma-3-1b", "gemma3", 262144, 32768, 1152, 26, 4, 1, 256, 6912, 1e-6f, 1000000, 0, .tied = true,
     .window = 512},
    {"gemma-4-12b", "gemma4", 262144, 262144, 3840, 48, 16, 8, 512, 15360, 1e-6f, 1000000, 0, .tied = true,
     .window = 1024, .logit_cap = 30, .window_head_dim = 256, .full_kv_heads = 1, .turning_share = 4},
    {"gemma-4-31b", "gemma4", 262144, 262144, 5376, 60, 32, 16, 512, 21504, 1e-6f, 1000000, 0, .tied = true,
     .window = 1024, .logit_cap = 30, .window_head_dim = 256, .full_kv_heads = 4, .turning_share = 4},
    {"gemma-4-26b-a4b",
     "gemma4",
     262144,
     262144,
     2816,
     30,
     16,
     8,
     512,
     2112,
     1e-6f,
     1000000,
     0,
     .tied = true,
     .window = 1024,
     .logit_cap = 30,
     .n_experts = 128,
     .n_experts_used = 8,
     .n_expert_ff = 704,
     .window_head_dim = 256,
     .full_kv_heads = 2,
     .turning_share = 4},
    {"gemma-4-e2b",
     "gemma4",
     262144,
     131072,
     1536,
     35,
     8,
     1,
     512,
     6144,
     1e-6f,
     1000000,
     0,
     .tied = true,
     .window = 512,
     .logit_cap = 30,
     .window_period = 5,
     .window_head_dim = 256,
     .n_borrowing_layers = 20,
     .n_layer_embd = 256,
     .borrowing_ff = 12288,
     .turning_share = 4},
    {"gemma-4-e4b",
     "gemma4",
     262144,
     131072,
     2560,
     42,
     8,
     2,
     512,
     10240,
     1e-6f,
     1000000,
     0,
     .tied = true,
     .window = 512,
     .logit_cap = 30,
     .window_head_dim = 256,
     .n_borrowing_layers = 18,
     .n_layer_embd = 256,
     .turning_share = 4},
    {"phi-2", "phi2", 51200, 2048, 2560, 32, 32, 32, 80, 10240, 1e-5f, 10000, 0, .rope_dims = 32},
    {"phi-3-mini", "phi3", 32064, 4096, 3072, 32, 32, 32, 96, 8192, 1e-5f, 10000, 0, .window = 2047},
    {"gpt2", "gpt2", 50257, 1024, 768, 12, 12, 12, 64, 3072, 1e-5f, 0, 0, .tied = true},
    {"gpt-oss-20b", "gpt-oss", 201088, 131072, 2880, 24, 64, 8, 64, 2880, 1e-5f, 150000, 0, .window = 128,
     .n_experts = 32, .n_experts_used = 4, .n_expert_ff = 2880},
    {"ministral-3-3b", "mistral3", 131072, 262144, 3072, 26, 32, 8, 128, 9216, 1e-5f, 1000000, 0,
     .tied = true},
    {"smollm3-3b", "smollm3", 128256, 65536, 2048, 36, 16, 4, 128, 11008, 1e-6f, 5000000, 0, .tied = true},
    {"granite-3-2b", "granite", 49155, 131072, 2048, 40, 32, 8, 64, 8192, 1e-5f, 5000000, 0, .tied = true},
    {"granite-3-1b-a400m", "granitemoe", 49155, 131072, 1024, 24, 16, 8, 64, 512, 1e-6f, 1500000, 0,
     .tied = true, .n_experts = 32, .n_experts_used = 8},
    {"olmo-2-1b", "olmo2", 100352, 4096, 2048, 16, 16, 16, 128, 8192, 1e-6f, 500000, 0, .tied = false},
    {"olmo-3-7b", "olmo2", 100352, 65536, 4096, 32, 32, 32, 128, 11008, 1e-6f, 500000, 0, .tied = false,
     .window = 4096},
    {"seed-oss-36b", "seed_oss", 155136, 524288, 5120, 64, 80, 8, 128, 27648, 1e-6f, 10000000, 0,
     .tied = false},
    {"tiny-hybrid", "qwen35", 512, 4096, 256, 4, 4, 2, 64, 512, 1e-6f, 10000, 0, .tied = true,
     .rope_dims = 16, .delta = {2, 4, 32, 32, 4}},
    {"qwen3.5-0.8b", "qwen35", 248320, 262144, 1024, 24, 8, 2, 256, 3584, 1e-6f, 10000000, 0, .tied = true,
     .rope_dims = 64, .delta = {16, 16, 128, 128, 4}},
    {"qwen3.5-4b", "qwen35", 248320, 262144, 2560, 32, 16, 4, 256, 9216, 1e-6f, 10000000, 0, .tied = true,
     .rope_dims = 64, .delta = {16, 32, 128, 128, 4}},
    {"qwen3.5-9b", "qwen35", 248320, 262144, 4096, 32, 16, 4, 256, 12288, 1e-6f, 10000000, 0, .rope_dims = 64,
     .delta = {16, 32, 128, 128, 4}},
    {"qwen3.5-35b-a3b", "qwen35moe", 248320, 262144, 2048, 40, 16, 2, 256, 512, 1e-6f, 10000000, 0,
     .rope_dims = 64, .n_experts = 256, .n_experts_used = 8, .n_expert_ff = 512, .n_shared_ff = 512,
     .delta = {16, 32, 128, 128, 4}},
    {"qwen3-next-80b-a3b", "qwen3next", 151936, 262144, 2048, 48, 16, 2, 256, 5120, 1e-6f, 10000000, 0,
     .rope_dims = 64, .n_experts = 512, .n_experts_used = 10, .n_expert_ff = 512, .n_shared_ff = 512,
     .delta = {16, 32, 128, 128, 4}},
    {.name = NULL},
};

enum content { RANDOM, ONES, ROPE_FACTORS, DECAYS };

#define LOGIT_DIVISOR 8 /* of architectures that have one */

struct plan { /* of one tensor: what `fill` gets */
    const struct synth_shape *shape;
    enum content content;
    enum format format;
    float deviation;
    uint64_t seed;
};

struct synth {
    const struct synth_shape *shape;
    const struct architecture *architecture;
    struct model_params params;
    const struct mixture *mixture;
    uint64_t seed;
    struct gguf_writer *writer;
    struct plan *plans;
    size_t n_plans, max_plans;
};

const struct synth_shape *synth_shape_by_name(const char *name)
{
    for (const struct synth_shape *shape = synth_shapes; shape->name; shape++)
        if (strcasecmp(shape->name, name) == 0)
            return shape;
    return NULL;
}

static uint32_t window_period(const struct synth_shape *shape)
{
    return shape->window_period ? shape->window_period : 6;
}

/* Other programs take it that layers borrow from the last two before them, one with and one without a
 * window. */
struct synth_shape synth_shape_of_layers(const struct synth_shape *shape, uint32_t n_layers)
{
    struct synth_shape cut = *shape;
    const uint32_t period = window_period(shape), n_own = shape->n_layers - shape->n_borrowing_layers;
    const uint32_t n_periods = (uint32_t)((uint64_t)n_layers * n_own / shape->n_layers / period);
    const uint32_t own = period * (n_periods ? n_periods : 1);
    cut.n_layers = n_layers;
    cut.n_borrowing_layers = shape->n_borrowing_layers > 0 && n_layers > own ? n_layers - own : 0;
    return cut;
}

/* All or nothing, or Llama 3's rule: waves that turn often within the 8,192 positions of the first training
 * keep their frequency, slow ones are stretched by the factor, and the change is gradual between one and four
 * turns. */
static float rope_factor(const struct synth_shape *shape, uint32_t i)
{
    if (shape->turning_share > 0)
        return i < shape->head_dim / 2 / shape->turning_share ? 1 : 1e30f;
    double exponent = 2.0 * i / shape->head_dim;
    double turns = 8192 / (2 * M_PI * pow((double)shape->rope_base, exponent));
    double fast = fmin(fmax((turns - 1) / 3, 0), 1);
    return (float)(1 / ((1 - fast) / (double)shape->rope_factor + fast));
}

static int fill(void *arg, void *out, size_t size)
{
    const struct plan *plan = arg;
    float *reals = out;
    switch (plan->content) {
    case ONES:
        for (size_t i = 0; i < size / sizeof *reals; i++)
            reals[i] = 1;
        return 0;
    case DECAYS: /* of many lengths of memory */
        for (size_t i = 0; i < size / sizeof *reals; i++)
            reals[i] = -1.0f / (float)(1 + i % 32);
        return 0;
    case ROPE_FACTORS:
        for (size_t i = 0; i < size / sizeof *reals; i++)
            reals[i] = rope_factor(plan->shape, (uint32_t)i);
        return 0;
    default:
        return random_blocks(plan->format, plan->deviation, plan->seed, out, size);
    }
}

static enum content content_of(enum tensor_role role)
{
    if (role == TENSOR_ROTARY_FACTORS)
        return ROPE_FACTORS;
    if (role == TENSOR_DECAY)
        return DECAYS;
    return tensor_is_vector(role) && role != TENSOR_SINKS && role != TENSOR_SHARED_ROUTER ? ONES : RANDOM;
}

/* Plans a role's weight or bias. */
static int announce(struct synth *synth, enum tensor_role role, uint32_t layer,
                    const struct layer_traits *traits, bool bias)
{
    struct tensor_shape shape = tensor_shape(&synth->params, traits, role);
    bool vector = bias || shape.rows == 0;
    uint64_t columns = bias && shape.rows > 0 ? shape.rows : shape.columns;
    struct mixture_tensor tensor = {.role = role,
                                    .layer = layer,
                                    .n_layers = synth->params.n_layers,
                                    .n_dims = vector            ? 1
                                              : shape.count > 1 ? 3
                                                                : 2,
                                    .columns = columns,
                                    .tied = synth->shape->tied};
    struct plan *plan = &synth->plans[synth->n_plans];
    if (synth->n_plans == synth->max_plans)
        return -ENOSPC;
    plan->shape = synth->shape;
    plan->content = bias ? RANDOM : content_of(role);
    plan->format = mixture_format(synth->mixture, &tensor);
    plan->deviation = 1 / sqrtf((float)columns);
    /* An odd multiplier spreads the starting points over the generator's whole cycle. */
    plan->seed = (synth->seed * 65537 + ++synth->n_plans) * 0xd1342543de82ef95;
    char name[TENSOR_NAME_SIZE];
    return gguf_writer_tensor(
        synth->writer, tensor_name(role, layer, bias, name), (vector ? 1 : 2) + (shape.count > 1),
        (uint64_t[]){columns, vector ? shape.count : shape.rows, shape.count}, plan->format, fill, plan);
}

/* A role's weight, and its bias if it has one. `parts` are the roles that share it, or itself. */
static int announce_both(struct synth *synth, enum tensor_role role, uint32_t layer,
                         const struct layer_traits *traits, tensor_set parts)
{
    const tensor_set optional = TENSOR_BIT(TENSOR_Q) | TENSOR_BIT(TENSOR_K) | TENSOR_BIT(TENSOR_V);
    tensor_set biases = synth->architecture->biases;
    if (synth->shape->biases)
        biases |= synth->architecture->optional_biases & optional;
    int r = announce(synth, role, layer, traits, false);
    return r < 0 || !(biases & parts) ? r : announce(synth, role, layer, traits, true);
}

static int announce_layer(struct synth *synth, uint32_t i)
{
    struct layer_traits layer = architecture_layer(synth->architecture, &synth->params, i);
    tensor_set tensors = architecture_layer_tensors(synth->architecture, &layer);
    int r = 0;
    for (enum tensor_role role = TENSOR_LAYER_ROLES; role < TENSOR_ROLES && r == 0; role++)
        if (tensors & TENSOR_BIT(role))
            r = announce_both(synth, role, i, &layer, tensor_part_set(&layer, role));
    return r;
}

static int announce_outer(struct synth *synth, enum tensor_role role)
{
    return announce_both(synth, role, 0, NULL, TENSOR_BIT(role));
}

static int announce_tensors(struct synth *synth)
{
    int r = announce_outer(synth, TENSOR_EMBEDDING);
    if (r == 0 && synth->architecture->positions)
        r = announce_outer(synth, TENSOR_POSITIONS);
    const bool factors = synth->shape->rope_factor > 0 || synth->shape->turning_share > 0;
    if (r == 0 && factors && synth->params.rope_dims > 0)
        r = announce_outer(synth, TENSOR_ROTARY_FACTORS);
    const enum tensor_role of_layers[] = {TENSOR_LAYER_EMBEDDING, TENSOR_LAYER_PROJECTION,
                                          TENSOR_LAYER_PROJECTION_NORM};
    for (size_t i = 0; i < 3 && r == 0 && synth->params.n_layer_embd > 0; i++)
        r = announce_outer(synth, of_layers[i]);
    for (uint32_t i = 0; i < synth->params.n_layers && r == 0; i++)
        r = announce_layer(synth, i);
    if (r == 0)
        r = announce_outer(synth, TENSOR_OUTPUT_NORM);
    if (r == 0 && synth->shape->n_labels > 0)
        r = announce_outer(synth, TENSOR_RANK_HEAD);
    return r == 0 && !synth->shape->tied ? announce_outer(synth, TENSOR_OUTPUT) : r;
}

static struct model_params params_of(const struct synth_shape *shape, const struct mixture *mixture)
{
    struct model_params params = {.n_vocab = shape->n_vocab,
                                  .n_context = shape->n_context,
                                  .n_embd = shape->n_embd,
                                  .n_layers = shape->n_layers,
                                  .n_heads = shape->n_heads,
                                  .n_kv_heads = shape->n_kv_heads,
                                  .head_dim = shape->head_dim,
                                  .n_ff = shape->n_ff,
                                  .norm_epsilon = shape->norm_epsilon,
                                  .rope_base = shape->rope_base,
                                  .rope_dims = shape->rope_dims ? shape->rope_dims : shape->head_dim,
                                  .window = shape->window,
                                  .attention_cap = shape->cap,
                                  .logit_cap = shape->logit_cap > 0 ? shape->logit_cap : shape->cap,
                                  .n_experts = shape->n_experts,
                                  .n_experts_used = shape->n_experts_used ? shape->n_experts_used
                                                    : shape->n_experts    ? 2
                                                                          : 0,
                                  .n_expert_ff = shape->n_expert_ff,
                                  .n_shared_ff = shape->n_shared_ff,
                                  .n_taps = shape->delta.n_taps,
                                  .n_state_groups = shape->delta.n_key_heads,
                                  .n_state_heads = shape->delta.n_value_heads,
                                  .state_size = shape->delta.key_dim,
                                  .state_inner = shape->delta.n_value_heads * shape->delta.value_dim,
                                  .attention_interval = shape->attention_interval,
                                  .pooling = shape->n_labels > 0 ? POOLING_RANK : POOLING_UNSAID,
                                  .n_labels = shape->n_labels};
    snprintf(params.name, sizeof params.name, "%s %s, random weights", shape->name, mixture->name);
    return params;
}

/* Which layers have a window, and the key/value heads of each. */
static void list_layers(struct model_params *params, const struct synth_shape *shape)
{
    const uint32_t period = window_period(shape);
    params->window_head_dim = params->window_rope_dims = shape->window_head_dim;
    params->n_borrowing_layers = shape->n_borrowing_layers;
    params->n_layer_embd = shape->n_layer_embd;
    params->windows_listed = true;
    params->ff_listed = shape->borrowing_ff > 0;
    params->kv_heads_listed = shape->full_kv_heads > 0;
    for (uint32_t i = 0; i < params->n_layers; i++) {
        const bool full = (i + 1) % period == 0;
        params->listed_kv_heads[i] = full && shape->full_kv_heads ? shape->full_kv_heads : shape->n_kv_heads;
        params->listed_ff[i] = shape->n_ff;
        if (i + shape->n_borrowing_layers >= params->n_layers && shape->borrowing_ff > 0)
            params->listed_ff[i] = shape->borrowing_ff;
        if (!full)
            params->window_layers[i / 64] |= 1ull << (i % 64);
    }
}

/* Of a model that ranks: its labels, and how it reads a pair. */
static int add_ranking(struct synth *synth)
{
    static const struct bytes labels[SYNTH_MOST_LABELS] = {{"yes", 3}, {"no", 2}, {"unsure", 6}};
    char key[96];
    snprintf(key, sizeof key, "%s." HYPERPARAMETERS_LABELS, synth->architecture->name);
    int r = gguf_writer_strings(synth->writer, key, labels, synth->shape->n_labels);
    return r < 0 ? r
                 : gguf_writer_string(synth->writer, MODEL_RANK_TEMPLATE,
                                      "query: {query}\ndocument: {document}\nanswer: ");
}

/* Pairs take turns among the three positions of an image's parts; other programs want to know of them. */
static int add_rope_sections(struct synth *synth)
{
    const int32_t pairs = (int32_t)synth->params.rope_dims / 2;
    const int32_t sections[4] = {(pairs + 2) / 3, (pairs + 1) / 3, pairs / 3, 0};
    char key[96];
    snprintf(key, sizeof key, "%s.rope.dimension_sections", synth->architecture->name);
    return gguf_writer_i32s(synth->writer, key, sections, 4);
}

static int add_metadata(struct synth *synth)
{
    struct gguf_writer *w = synth->writer;
    int r = hyperparameters_write(&synth->params, synth->architecture, w);
    if (r == 0)
        r = gguf_writer_u32(w, "general.file_type", synth->mixture->file_type);
    if (r == 0)
        r = gguf_writer_u32(w, "general.quantization_version", 2);
    if (r == 0 && synth->shape->delta.n_taps > 0)
        r = add_rope_sections(synth);
    if (r == 0 && synth->shape->n_labels > 0)
        r = add_ranking(synth);
    return r < 0 ? r : synth_vocabulary(w, synth->params.n_vocab);
}

int synth_write(const struct synth_shape *shape, const struct mixture *mixture, uint64_t seed,
                const char *path, struct error *err)
{
    if (shape->n_vocab < SYNTH_LEAST_VOCABULARY)
        return error_set(err, -EINVAL, "a vocabulary of %" PRIu32 " is too small; at least %d is required",
                         shape->n_vocab, SYNTH_LEAST_VOCABULARY);
    if (shape->n_labels > SYNTH_MOST_LABELS)
        return error_out_of_range(err, -EINVAL, "number of labels", shape->n_labels, 0, SYNTH_MOST_LABELS);
    struct synth synth = {.shape = shape,
                          .architecture = architectures[0],
                          .params = params_of(shape, mixture),
                          .mixture = mixture,
                          .seed = seed,
                          .max_plans = ((size_t)shape->n_layers + 1) * 2 * TENSOR_ROLES};
    if (shape->architecture)
        synth.architecture = architecture_by_name(bytes_of_string(shape->architecture));
    if (!synth.architecture)
        return error_set(err, -EINVAL, "unknown architecture \"%s\"", shape->architecture);
    if (synth.architecture->layers_differ && shape->n_layers > MODEL_LISTED_LAYERS)
        return error_out_of_range(err, -EINVAL, "number of layers", shape->n_layers, 1, MODEL_LISTED_LAYERS);
    if (synth.architecture->layers_differ)
        list_layers(&synth.params, shape);
    if (synth.architecture->logits_divided)
        synth.params.logit_scale = LOGIT_DIVISOR;
    int r = gguf_writer_new(&synth.writer);
    if (r == 0)
        r = add_metadata(&synth); /* what a file may leave out is completed behind it */
    if (r == 0)
        r = hyperparameters_complete(synth.architecture, &synth.params, err);
    if (r == 0 && !(synth.plans = calloc(synth.max_plans, sizeof *synth.plans)))
        r = -ENOMEM;
    if (r == 0)
        r = announce_tensors(&synth);
    if (r == 0)
        r = gguf_writer_write(synth.writer, path, err);
    else if (r == -ENOMEM)
        error_set(err, r, "not enough memory for the plan of a model");
    gguf_writer_free(synth.writer);
    free(synth.plans);
    return r;
}
