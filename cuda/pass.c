/* SPDX-License-Identifier: MIT */
/* The pass: embedding, layers, head, as the model's description says (worker/model/description.h).
 *
 * What a half of a layer adds to the stream lies in delta until the next norm, which adds it on its way:
 *
 *   resolve, embed, plan of attention
 *   → norm → q k v → heads (norm, turn, store) → attention → output = delta
 *   → norm (stream += delta) → gate, up → activation → down = delta → the next layer's norm (stream += delta)
 *   → norm of outputs → head → logits → sample
 *
 * A parallel layer's gate and up read the first norm's rows; when they have, a norm without a weight adds the
 * attention's delta, before down overwrites it, and leaves rows that nothing reads. */

#include "cuda/pass.h"

#include <errno.h>

#include "worker/model/traits.h"

/* What this pass executes. A trait that is new to description.h is refused until it stands here. */
#define EXECUTED                                                                                             \
    (TRAIT_BIT(TRAIT_NORM_RMS) | TRAIT_BIT(TRAIT_NORM_LAYER) | TRAIT_BIT(TRAIT_NORM_AFTER) |                 \
     TRAIT_BIT(TRAIT_NORM_OFFSET) | TRAIT_BIT(TRAIT_PARALLEL) | TRAIT_BIT(TRAIT_POSITIONS) |                 \
     TRAIT_BIT(TRAIT_ROTARY_PAIRS) | TRAIT_BIT(TRAIT_ROTARY_HALVES) | TRAIT_BIT(TRAIT_ROTARY_SCALING) |      \
     TRAIT_BIT(TRAIT_BIASES) | TRAIT_BIT(TRAIT_QK_NORM) | TRAIT_BIT(TRAIT_WINDOW) |                          \
     TRAIT_BIT(TRAIT_ATTENTION_CAP) | TRAIT_BIT(TRAIT_LOGIT_CAP) | TRAIT_BIT(TRAIT_SCALES) |                 \
     TRAIT_BIT(TRAIT_SILU) | TRAIT_BIT(TRAIT_GELU) | TRAIT_BIT(TRAIT_RELU_SQUARED) |                         \
     TRAIT_BIT(TRAIT_UNGATED) | TRAIT_BIT(TRAIT_SLICES))

int pass_check(const struct model *model, uint32_t n_context, struct error *err)
{
    if (model->tensors[TENSOR_POSITIONS].weight && n_context > model->params.n_context)
        return error_set(err, -EINVAL, "a context of %u is beyond the model's %u learned positions",
                         n_context, model->params.n_context);
    return model_check_traits(model, EXECUTED, "the CUDA backend", err);
}

/* What happens to the stream between two halves, in words of kernels_norm. */
struct between {
    const struct norm *norm; /* of what comes next, and its vector */
    const struct device_vector *vector;
    int before; /* the layer whose half has made delta, −1: none has */
    enum tensor_role post_norm;
    const uint32_t *outputs; /* NULL: all rows */
};

static int norm(const struct pass *pass, struct device_stream *queue, const struct between *between,
                uint32_t n_rows)
{
    const struct workspace *workspace = pass->workspace;
    struct norm_step step = {.stream = workspace->stream,
                             .stride = workspace->embd_stride,
                             .n_columns = pass->model->params.n_embd,
                             .norm = *between->norm,
                             .vector = *between->vector,
                             .residual_scale = 1,
                             .outputs = between->outputs,
                             .out = workspace->normed};
    if (between->before >= 0) {
        const struct layer_traits *traits = &pass->model->layers[between->before].traits;
        step.delta = workspace->delta;
        step.post_norm = traits->norm;
        step.post_vector = pass->weights->layers[between->before].vectors[between->post_norm];
        step.residual_scale = traits->residual_scale;
    }
    step.norm.offset = step.post_norm.offset = 0; /* the vectors have it */
    return kernels_norm(queue, &step, n_rows);
}

static int attention_half(const struct pass *pass, struct device_stream *queue, uint32_t l, uint32_t n_rows)
{
    const struct workspace *w = pass->workspace;
    const struct model_params *params = &pass->model->params;
    const struct layer_traits *traits = &pass->model->layers[l].traits;
    const struct device_layer *layer = &pass->weights->layers[l];
    const struct device_product inputs[] = {{&layer->matrices[TENSOR_Q], w->q, w->q_stride},
                                            {&layer->matrices[TENSOR_K], w->k, w->kv_stride},
                                            {&layer->matrices[TENSOR_V], w->v, w->kv_stride}};
    const struct heads_step heads = {.q = w->q,
                                     .k = w->k,
                                     .v = w->v,
                                     .q_stride = w->q_stride,
                                     .kv_stride = w->kv_stride,
                                     .n_heads = params->n_heads,
                                     .layer = l,
                                     .norm = {.kind = traits->norm.kind, .epsilon = traits->norm.epsilon},
                                     .q_norm = layer->vectors[TENSOR_Q_NORM],
                                     .k_norm = layer->vectors[TENSOR_K_NORM],
                                     .rotary = traits->rotary,
                                     .frequencies = layer->frequencies,
                                     .attention_scale = traits->attention_scale,
                                     .kv = pass->kv};
    const struct attention_step attention = {.q = w->q,
                                             .q_stride = w->q_stride,
                                             .layer = l,
                                             .window = traits->window,
                                             .cap = traits->attention_cap,
                                             .kv = pass->kv,
                                             .out = w->attended,
                                             .scratch = w->attention};
    const struct device_product output = {&layer->matrices[TENSOR_ATTENTION_OUTPUT], w->delta,
                                          w->embd_stride};
    const struct between before = {.norm = &traits->norm,
                                   .vector = &layer->vectors[TENSOR_ATTENTION_NORM],
                                   .before = (int)l - 1,
                                   .post_norm = TENSOR_FFN_POST_NORM};
    int r = norm(pass, queue, &before, n_rows);
    if (r == 0)
        r = kernels_multiply(queue, inputs, 3, &w->normed, n_rows, false);
    if (r == 0)
        r = kernels_heads(queue, &heads, pass->slots, pass->memory.rows, n_rows);
    if (r == 0)
        r = kernels_attention(queue, &attention, pass->slots, pass->memory.rows, n_rows);
    if (r == 0)
        r = kernels_multiply(queue, &output, 1, &w->attended, n_rows, false);
    return r;
}

static int feed_forward_half(const struct pass *pass, struct device_stream *queue, uint32_t l,
                             uint32_t n_rows)
{
    static const struct device_vector none = {NULL, NULL};
    const struct workspace *w = pass->workspace;
    const struct layer_traits *traits = &pass->model->layers[l].traits;
    const struct device_layer *layer = &pass->weights->layers[l];
    const struct device_product inputs[] = {{&layer->matrices[TENSOR_UP], w->up, w->ff_stride},
                                            {&layer->matrices[TENSOR_GATE], w->gate, w->ff_stride}};
    const struct device_product output = {&layer->matrices[TENSOR_DOWN], w->delta, w->embd_stride};
    const struct between before = {.norm = &traits->norm,
                                   .vector = traits->parallel ? &none : &layer->vectors[TENSOR_FFN_NORM],
                                   .before = (int)l,
                                   .post_norm = TENSOR_ATTENTION_POST_NORM};
    int r = traits->parallel ? 0 : norm(pass, queue, &before, n_rows);
    if (r == 0)
        r = kernels_multiply(queue, inputs, traits->gated ? 2 : 1, &w->normed, n_rows, false);
    if (r == 0 && traits->parallel)
        r = norm(pass, queue, &before, n_rows);
    if (r == 0)
        r = kernels_activate(queue, traits->activation, traits->gated ? w->gate : NULL, w->up, w->ff_stride,
                             pass->model->params.n_ff, &w->activated, n_rows);
    if (r == 0)
        r = kernels_multiply(queue, &output, 1, &w->activated, n_rows, false);
    return r;
}

int pass_layers(const struct pass *pass, struct device_stream *queue, uint32_t n_rows)
{
    const struct model_params *params = &pass->model->params;
    const struct workspace *w = pass->workspace;
    const struct device_matrix *positions = &pass->weights->positions;
    int r = kernels_resolve(queue, pass->slots, &pass->memory, n_rows);
    if (r == 0)
        r = kernels_embed(queue, pass->memory.rows, n_rows, &pass->weights->embedding,
                          positions->n_rows ? positions : NULL, params->embedding_scale, w->stream,
                          w->embd_stride);
    if (r == 0)
        r = kernels_attention_plan(queue, &pass->kv, &w->attention, pass->memory.rows, n_rows);
    for (uint32_t l = 0; l < params->n_layers && r == 0; l++) {
        r = attention_half(pass, queue, l, n_rows);
        if (r == 0)
            r = feed_forward_half(pass, queue, l, n_rows);
    }
    return r;
}

int pass_logits(const struct pass *pass, struct device_stream *queue, uint32_t first, uint32_t n)
{
    const struct model_params *params = &pass->model->params;
    const struct workspace *w = pass->workspace;
    const struct device_product head = {&pass->weights->output, w->logits, w->vocab_stride};
    const struct between before = {.norm = &pass->model->output_norm,
                                   .vector = &pass->weights->output_norm,
                                   .before = (int)params->n_layers - 1,
                                   .post_norm = TENSOR_FFN_POST_NORM,
                                   .outputs = pass->memory.outputs + first};
    int r = norm(pass, queue, &before, n);
    if (r == 0)
        r = kernels_multiply(queue, &head, 1, &w->normed, n, false);
    if (r == 0 && (params->logit_scale != 1 || params->logit_cap > 0))
        r = kernels_logits(queue, w->logits, w->vocab_stride, params->n_vocab, params->logit_scale,
                           params->logit_cap, n);
    return r;
}

int pass_sample(const struct pass *pass, struct device_stream *queue, uint32_t n_outputs)
{
    return kernels_sample(queue, pass->slots, &pass->memory, &pass->sample, n_outputs);
}
