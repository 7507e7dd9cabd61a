/* SPDX-License-Identifier: MIT */
/* The pass: embedding, layers, head, as the model's description says (model/description.h).
 *
 * A mixer or feed-forward block adds its last product, delta, to the stream, and the next norm does the
 * addition. So a layer has six launches with one row, eight with two to four (norms have their own), and nine
 * with more (so has the activation):
 *
 *   resolve, embed, plan of attention, norm
 *   → q k v → heads (norm, turn, store) → attention → output = delta and norm (stream += delta)
 *   → gate, up and activation → down = delta and norm of the next layer (stream += delta)
 *   → norm of outputs → head → logits → sample
 *
 * pass_feed_forward.c has what comes before down and norm, with experts and without; pass_inputs.c what
 * layers get of tokens by themselves.
 *
 * A layer with a gated delta net has pass_delta.c's launches instead of q k v, heads and attention. A gate of
 * attention's output is a product after q k v, and a launch after attention. A layer that borrows keys and
 * values has only q of the three, and attends in the pool's part of the layer that it borrows from.
 *
 * Of steps with many rows the layers' products may be a library's (library_products.h); norms and activations
 * are launches of their own then.
 *
 * A parallel layer's gate and up read the rows of the first norm: they come before output, whose norm has no
 * weight then, and leaves rows that nothing reads. */

#include "cuda/host/pass.h"

#include "cuda/kernels/sample_parts.h"

#include <errno.h>

#include "cuda/host/pass_parts.h"
#include "model/traits.h"

/* What this pass does not execute: of all traits that there are. */
#define MISSING TRAIT_BIT(TRAIT_RANKS)
TRAITS_ARE_KNOWN(33);

int pass_check(const struct model *model, uint32_t n_context, struct error *err)
{
    if (workspace_padded(model->params.n_embd) > KERNELS_NORM_COLUMNS)
        return error_set(err, -EINVAL,
                         "the CUDA backend normalizes rows of up to %u; this %s model's have %u",
                         KERNELS_NORM_COLUMNS, model->params.architecture, model->params.n_embd);
    if (workspace_shapes(model) > WORKSPACE_SHAPES)
        return error_set(err, -EINVAL,
                         "the CUDA backend computes layers with up to %u shapes of heads; this %s model has "
                         "%u",
                         WORKSPACE_SHAPES, model->params.architecture, workspace_shapes(model));
    if (workspace_experts_used(model) > KERNELS_MOST_USED)
        return error_set(err, -EINVAL,
                         "the CUDA backend sends a row to up to %u experts; this %s model has %u",
                         KERNELS_MOST_USED, model->params.architecture, workspace_experts_used(model));
    if (model->tensors[TENSOR_POSITIONS].weight && n_context > model->params.n_context)
        return error_set(err, -EINVAL, "a context of %u exceeds the model's %u learned positions", n_context,
                         model->params.n_context);
    for (uint32_t l = 0; l < model->params.n_layers; l++) {
        const struct layer_traits *traits = &model->layers[l].traits;
        if (traits->mixer == MIXER_DELTA && traits->delta.key_dim > KERNELS_DELTA_KEYS)
            return error_set(err, -EINVAL,
                             "the CUDA backend computes delta nets with keys of up to %u; this %s model's "
                             "have %u",
                             KERNELS_DELTA_KEYS, model->params.architecture, traits->delta.key_dim);
    }
    return model_check_traits(model, MISSING, "the CUDA backend", err);
}

/* ---- what a launch has to read (device_expect) ---- */

/* A layer's keys and values of every sequence, once. */
static void expect_kv(const struct pass *pass, struct device_stream *queue, const struct device_kv *kv,
                      uint32_t window)
{
    const struct backend_step *step = pass->step ? *pass->step : NULL;
    uint64_t positions = 0;
    for (uint32_t i = 0; step && i < step->n_sets; i++) {
        const uint32_t first = step->sets[i].position, end = first + step->sets[i].n_ids;
        positions += window > 0 && first + 1 > window ? end - (first + 1 - window) : end;
    }
    device_expect(queue, positions * (kv->layer_bytes / BACKEND_BLOCK_TOKENS));
}

/* ---- layers ---- */

/* The gate of what attention gives, which reads the same rows as q, k and v. */
static int multiply_gate(const struct pass *pass, struct device_stream *queue, uint32_t l, uint32_t n_rows)
{
    const struct workspace *w = pass->workspace;
    const struct device_product gate = {&pass->weights->layers[l].matrices[TENSOR_OUTPUT_GATE],
                                        w->output_gate, w->attended.stride};
    pass_expect_weights(queue, &gate.matrix, 1, 1);
    return pass_multiply(pass, queue, &gate, 1, &w->normed, n_rows);
}

static int gate_output(const struct pass *pass, struct device_stream *queue, uint32_t l, uint32_t n_rows)
{
    const struct workspace *w = pass->workspace;
    const struct head_shape *heads = &pass->model->layers[l].traits.heads;
    const struct gate_step gate = {w->output_gate, w->attended.stride, heads->n * heads->dim, w->attended};
    return kernels_gate(queue, &gate, n_rows);
}

/* What a gate is still to come to is not rounded yet. */
static struct device_activations attended_by(const struct pass *pass, const struct layer_traits *traits)
{
    struct device_activations out = pass->workspace->attended;
    if (traits->output_gate) {
        out.quants = NULL;
        out.scales = out.sums = NULL;
    }
    return out;
}

static int attend(const struct pass *pass, struct device_stream *queue, uint32_t l, uint32_t n_rows)
{
    const struct workspace *w = pass->workspace;
    const struct layer_traits *traits = &pass->model->layers[l].traits;
    const struct device_layer *layer = &pass->weights->layers[l];
    const struct pools_layer *at = &pass->pools->layers[l];
    const struct slots slots = pools_slots(pass->slots, at->group);
    const struct device_product inputs[] = {{&layer->matrices[TENSOR_Q], w->q, w->q_stride},
                                            {&layer->matrices[TENSOR_K], w->k, w->kv_stride},
                                            {&layer->matrices[TENSOR_V], w->v, w->kv_stride}};
    const struct heads_step heads = {.q = w->q,
                                     .k = w->k,
                                     .v = traits->values_are_keys ? w->k : w->v,
                                     .q_stride = w->q_stride,
                                     .kv_stride = w->kv_stride,
                                     .n_heads = traits->heads.n,
                                     .norm = {.kind = traits->norm.kind, .epsilon = traits->norm.epsilon},
                                     .q_norm = layer->vectors[TENSOR_Q_NORM],
                                     .k_norm = layer->vectors[TENSOR_K_NORM],
                                     .norms_row = traits->qk_norm == QK_NORM_ALL,
                                     .norms_values = traits->value_norm,
                                     .only_queries = traits->borrows_kv,
                                     .rotary = traits->rotary,
                                     .growth = traits->query_growth,
                                     .frequencies = layer->frequencies,
                                     .attention_scale = traits->attention_scale,
                                     .kv = at->kv};
    const struct attention_step attention = {.q = w->q,
                                             .q_stride = w->q_stride,
                                             .window = traits->window,
                                             .cap = traits->attention_cap,
                                             .sinks = layer->vectors[TENSOR_SINKS].weight,
                                             .kv = at->kv,
                                             .out = attended_by(pass, traits),
                                             .scratch = *workspace_attention(w, &traits->heads)};
    const struct device_matrix *const matrices[] = {inputs[0].matrix, inputs[1].matrix, inputs[2].matrix};
    const uint32_t n_inputs = traits->borrows_kv ? 1 : traits->values_are_keys ? 2 : 3;
    pass_expect_weights(queue, matrices, n_inputs, 1);
    int r = pass_multiply(pass, queue, inputs, n_inputs, &w->normed, n_rows);
    if (r == 0 && traits->output_gate)
        r = multiply_gate(pass, queue, l, n_rows);
    r = pass_seen(pass, r, PASS_QKV, l);
    if (r == 0)
        r = pass_seen(pass, kernels_heads(queue, &heads, &slots, pass->memory.rows, n_rows), PASS_HEADS, l);
    expect_kv(pass, queue, &at->kv, traits->window);
    if (r == 0)
        r = kernels_attention(queue, &attention, &slots, pass->memory.rows, n_rows);
    if (r == 0 && traits->output_gate)
        r = gate_output(pass, queue, l, n_rows);
    return pass_seen(pass, r, PASS_ATTENTION, l);
}

static int mix(const struct pass *pass, struct device_stream *queue, uint32_t l, uint32_t n_rows)
{
    switch (pass->model->layers[l].traits.mixer) {
    case MIXER_ATTENTION:
        return attend(pass, queue, l, n_rows);
    case MIXER_DELTA:
        return pass_delta_net(pass, queue, l, n_rows);
    }
    return -EINVAL;
}

static int end_mixer(const struct pass *pass, struct device_stream *queue, uint32_t l, uint32_t n_rows)
{
    static const struct device_vector none = {NULL, NULL};
    const struct layer_traits *traits = &pass->model->layers[l].traits;
    const struct device_layer *layer = &pass->weights->layers[l];
    const struct pass_between next = {.norm = &traits->norm,
                                      .vector = traits->parallel ? &none : &layer->vectors[TENSOR_FFN_NORM],
                                      .before = (int)l,
                                      .post_norm = TENSOR_ATTENTION_POST_NORM};
    const enum tensor_role output =
        traits->mixer == MIXER_DELTA ? TENSOR_DELTA_OUTPUT : TENSOR_ATTENTION_OUTPUT;
    int r = pass_end_part(pass, queue, &layer->matrices[output], &pass->workspace->attended, &next, n_rows);
    return pass_seen(pass, r, PASS_ATTENTION_OUTPUT, l);
}

static int layer(const struct pass *pass, struct device_stream *queue, uint32_t l, uint32_t n_rows)
{
    const bool parallel = pass->model->layers[l].traits.parallel;
    int r = mix(pass, queue, l, n_rows);
    if (r == 0 && parallel)
        r = pass_activate(pass, queue, l, n_rows);
    if (r == 0)
        r = end_mixer(pass, queue, l, n_rows);
    if (r == 0 && !parallel)
        r = pass_activate(pass, queue, l, n_rows);
    if (r == 0)
        r = pass_end_feed_forward(pass, queue, l, n_rows);
    return r == 0 && pass->model->layers[l].traits.n_layer_embd > 0 ? pass_add_input(pass, queue, l, n_rows)
                                                                    : r;
}

/* The rows of the first layer. */
static int begin(const struct pass *pass, struct device_stream *queue, uint32_t n_rows)
{
    const struct pass_between first = {.norm = &pass->model->layers[0].traits.norm,
                                       .vector = &pass->weights->layers[0].vectors[TENSOR_ATTENTION_NORM],
                                       .before = -1};
    const struct norm_step step = pass_norm_between(pass, &first);
    return pass_seen(pass, kernels_norm(queue, &step, n_rows), PASS_BEGIN, 0);
}

int pass_layers(const struct pass *pass, struct device_stream *queue, uint32_t n_rows)
{
    const struct model_params *params = &pass->model->params;
    const struct workspace *w = pass->workspace;
    const struct device_matrix *positions = &pass->weights->positions;
    const struct embed_step embed = {&pass->weights->embedding, positions->n_rows ? positions : NULL,
                                     params->embedding_scale, w->stream, w->embd_stride};
    int r = pass_seen(pass, kernels_resolve(queue, pass->slots, &pass->memory, n_rows), PASS_RESOLVE, 0);
    if (r == 0)
        r = kernels_embed(queue, &embed, pass->memory.rows, n_rows);
    r = pass_seen(pass, r, PASS_EMBED, 0);
    if (r == 0 && params->n_layer_embd > 0)
        r = pass_make_inputs(pass, queue, n_rows);
    for (uint32_t i = 0; i < w->n_shapes && r == 0; i++)
        r = kernels_attention_plan(queue, &w->attention[i].kv, &w->attention[i].scratch, pass->memory.rows,
                                   n_rows);
    if (r == 0)
        r = begin(pass, queue, n_rows);
    for (uint32_t l = 0; l < params->n_layers && r == 0; l++)
        r = layer(pass, queue, l, n_rows);
    return r;
}

int pass_logits(const struct pass *pass, struct device_stream *queue, uint32_t first, uint32_t n)
{
    const struct model_params *params = &pass->model->params;
    const struct workspace *w = pass->workspace;
    const struct device_product head = {&pass->weights->output, w->logits, w->vocab_stride};
    const struct layer_traits *last = &pass->model->layers[params->n_layers - 1].traits;
    const struct pass_between before = {.norm = &pass->model->output_norm,
                                        .vector = &pass->weights->output_norm,
                                        .before = (int)params->n_layers - 1,
                                        .post_norm = pass_last_norm(last),
                                        .outputs = pass->memory.outputs + first};
    const struct norm_step norm = pass_norm_between(pass, &before);
    const struct multiply_step step = pass_products(pass, &head, 1, &w->normed, n);
    int r = pass_seen(pass, kernels_norm(queue, &norm, n), PASS_OUTPUT_NORM, 0);
    pass_expect_weights(queue, &head.matrix, 1, 1);
    if (r == 0)
        r = kernels_multiply(queue, &head, 1, &w->normed, &step);
    if (r == 0 && (params->logit_factor != 1 || params->logit_cap > 0))
        r = kernels_logits(queue, w->logits, w->vocab_stride, params->n_vocab, params->logit_factor,
                           params->logit_cap, n);
    return pass_seen(pass, r, PASS_LOGITS, 0);
}

int pass_sample(const struct pass *pass, struct device_stream *queue, uint32_t n_outputs)
{
    return kernels_sample(queue, pass->slots, &pass->memory, &pass->sample, n_outputs);
}

int pass_sample_ids(const struct pass *pass, struct device_stream *queue, uint32_t n_outputs)
{
    return kernels_sample_ids(queue, pass->slots, &pass->memory, &pass->sample, n_outputs);
}

int pass_accept(const struct pass *pass, struct device_stream *queue, uint32_t n_outputs)
{
    return kernels_accept(queue, pass->slots, &pass->memory, &pass->sample, n_outputs);
}

int32_t *pass_sampled_id(const struct pass *pass, uint32_t output)
{
    return kernels_sampled_id(&pass->sample, pass->slots->n_vocab, output);
}
