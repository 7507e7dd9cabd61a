/* SPDX-License-Identifier: MIT */
/* Models of real shapes with random weights.
 *
 * Everything is announced to a gguf_writer first, which then asks for each tensor's bytes: norms are ones,
 * rope factors computed, the rest random blocks. A tensor's random numbers depend on the seed and the
 * tensor's place in the file, so a file can be made again. */

#include "worker/model/synth.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "worker/model/gguf.h"
#include "worker/model/random_blocks.h"
#include "worker/model/synth_vocabulary.h"

const struct synth_shape synth_shapes[] = {
    /* name, vocab, context, embd, layers, heads, kv, head, ff, epsilon, base, factor, tied, biases */
    {"tiny", 512, 4096, 256, 2, 4, 2, 64, 512, 1e-5f, 10000, 0, true, false},
    {"null", 32000, 1 << 20, 32, 1, 1, 1, 32, 32, 1e-5f, 10000, 0, true, false},
    {"qwen2.5-0.5b", 151936, 32768, 896, 24, 14, 2, 64, 4864, 1e-6f, 1000000, 0, true, true},
    {"qwen2.5-1.5b", 151936, 32768, 1536, 28, 12, 2, 128, 8960, 1e-6f, 1000000, 0, true, true},
    {"tinyllama-1.1b", 32000, 2048, 2048, 22, 32, 4, 64, 5632, 1e-5f, 10000, 0, false, false},
    {"llama-3.2-1b", 128256, 131072, 2048, 16, 32, 8, 64, 8192, 1e-5f, 500000, 32, true, false},
    {"llama-3.2-3b", 128256, 131072, 3072, 28, 24, 8, 128, 8192, 1e-5f, 500000, 32, true, false},
    {"llama-3.1-8b", 128256, 131072, 4096, 32, 32, 8, 128, 14336, 1e-5f, 500000, 8, false, false},
    {.name = NULL},
};

enum content { RANDOM, ONES, ROPE_FACTORS };

struct plan { /* of one tensor: what `fill` gets */
    const struct synth_shape *shape;
    enum content content;
    enum format format;
    float deviation;
    uint64_t seed;
};

struct synth {
    const struct synth_shape *shape;
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

/* Llama 3's rule: waves that turn often within the 8,192 positions of the first training keep their
 * frequency, slow ones are stretched by the factor, and the change is gradual between one and four turns. */
static float rope_factor(const struct synth_shape *shape, uint32_t i)
{
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
    case ROPE_FACTORS:
        for (size_t i = 0; i < size / sizeof *reals; i++)
            reals[i] = rope_factor(plan->shape, (uint32_t)i);
        return 0;
    default:
        return random_blocks(plan->format, plan->deviation, plan->seed, out, size);
    }
}

/* rows 0: a vector of `columns`. */
static int announce(struct synth *synth, const char *name, enum content content, uint64_t columns,
                    uint64_t rows)
{
    const struct synth_shape *shape = synth->shape;
    uint32_t n_dims = rows ? 2 : 1;
    struct plan *plan = &synth->plans[synth->n_plans];
    if (synth->n_plans == synth->max_plans)
        return -ENOSPC;
    plan->shape = shape;
    plan->content = content;
    plan->format = mixture_format(synth->mixture, name, n_dims, columns, shape->n_layers, shape->tied);
    plan->deviation = 1 / sqrtf((float)columns);
    /* An odd multiplier spreads the starting points over the generator's whole cycle. */
    plan->seed = (synth->seed * 65537 + ++synth->n_plans) * 0xd1342543de82ef95;
    return gguf_writer_tensor(synth->writer, name, n_dims, (uint64_t[]){columns, rows}, plan->format, fill,
                              plan);
}

static int announce_layer(struct synth *synth, uint32_t layer)
{
    const struct synth_shape *s = synth->shape;
    uint64_t q = (uint64_t)s->n_heads * s->head_dim, kv = (uint64_t)s->n_kv_heads * s->head_dim;
    const struct {
        const char *name;
        enum content content;
        uint64_t columns, rows;
        bool wanted;
    } tensors[] = {{"attn_norm.weight", ONES, s->n_embd, 0, true},
                   {"attn_q.weight", RANDOM, s->n_embd, q, true},
                   {"attn_q.bias", RANDOM, q, 0, s->biases},
                   {"attn_k.weight", RANDOM, s->n_embd, kv, true},
                   {"attn_k.bias", RANDOM, kv, 0, s->biases},
                   {"attn_v.weight", RANDOM, s->n_embd, kv, true},
                   {"attn_v.bias", RANDOM, kv, 0, s->biases},
                   {"attn_output.weight", RANDOM, q, s->n_embd, true},
                   {"ffn_norm.weight", ONES, s->n_embd, 0, true},
                   {"ffn_gate.weight", RANDOM, s->n_embd, s->n_ff, true},
                   {"ffn_up.weight", RANDOM, s->n_embd, s->n_ff, true},
                   {"ffn_down.weight", RANDOM, s->n_ff, s->n_embd, true}};
    int r = 0;
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0] && r == 0; i++) {
        char name[64];
        snprintf(name, sizeof name, "blk.%" PRIu32 ".%s", layer, tensors[i].name);
        if (tensors[i].wanted)
            r = announce(synth, name, tensors[i].content, tensors[i].columns, tensors[i].rows);
    }
    return r;
}

static int announce_tensors(struct synth *synth)
{
    const struct synth_shape *s = synth->shape;
    int r = announce(synth, "token_embd.weight", RANDOM, s->n_embd, s->n_vocab);
    if (r == 0 && s->rope_factor > 0)
        r = announce(synth, "rope_freqs.weight", ROPE_FACTORS, s->head_dim / 2, 0);
    for (uint32_t layer = 0; layer < s->n_layers && r == 0; layer++)
        r = announce_layer(synth, layer);
    if (r == 0)
        r = announce(synth, "output_norm.weight", ONES, s->n_embd, 0);
    if (r == 0 && !s->tied)
        r = announce(synth, "output.weight", RANDOM, s->n_embd, s->n_vocab);
    return r;
}

static int add_metadata(struct synth *synth)
{
    const struct synth_shape *s = synth->shape;
    struct gguf_writer *w = synth->writer;
    char name[128];
    snprintf(name, sizeof name, "%s %s, random weights", s->name, synth->mixture->name);
    const struct {
        const char *key;
        uint32_t value;
    } counts[] = {{"general.file_type", synth->mixture->file_type},
                  {"general.quantization_version", 2},
                  {"llama.vocab_size", s->n_vocab},
                  {"llama.context_length", s->n_context},
                  {"llama.embedding_length", s->n_embd},
                  {"llama.block_count", s->n_layers},
                  {"llama.feed_forward_length", s->n_ff},
                  {"llama.attention.head_count", s->n_heads},
                  {"llama.attention.head_count_kv", s->n_kv_heads},
                  {"llama.attention.key_length", s->head_dim},
                  {"llama.attention.value_length", s->head_dim},
                  {"llama.rope.dimension_count", s->head_dim}};
    int r = gguf_writer_string(w, "general.architecture", "llama");
    if (r == 0)
        r = gguf_writer_string(w, "general.name", name);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0] && r == 0; i++)
        r = gguf_writer_u32(w, counts[i].key, counts[i].value);
    if (r == 0)
        r = gguf_writer_f32(w, "llama.rope.freq_base", s->rope_base);
    if (r == 0)
        r = gguf_writer_f32(w, "llama.attention.layer_norm_rms_epsilon", s->rms_epsilon);
    return r < 0 ? r : synth_vocabulary(w, s->n_vocab);
}

int synth_write(const struct synth_shape *shape, const struct mixture *mixture, uint64_t seed,
                const char *path, struct error *err)
{
    if (shape->n_vocab < SYNTH_LEAST_VOCABULARY)
        return error_set(err, -EINVAL, "a vocabulary of %" PRIu32 " is too small, %d is the least",
                         shape->n_vocab, SYNTH_LEAST_VOCABULARY);
    struct synth synth = {
        .shape = shape, .mixture = mixture, .seed = seed, .max_plans = (size_t)shape->n_layers * 12 + 4};
    synth.plans = calloc(synth.max_plans, sizeof *synth.plans);
    int r = synth.plans ? gguf_writer_new(&synth.writer) : -ENOMEM;
    if (r == 0)
        r = add_metadata(&synth);
    if (r == 0)
        r = announce_tensors(&synth);
    if (r == 0)
        r = gguf_writer_write(synth.writer, path, err);
    else
        error_set(err, r, "no memory for the plan of a model");
    gguf_writer_free(synth.writer);
    free(synth.plans);
    return r;
}
