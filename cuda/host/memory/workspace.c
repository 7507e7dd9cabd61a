/* SPDX-License-Identifier: MIT */
/* The workspace of a pass. Rows are zeroed: what is beyond their columns stays so. */

#include "cuda/host/memory/workspace.h"

static float *take_floats(struct device_memory *memory, size_t rows, size_t stride)
{
    return device_memory_take_zeroed(memory, rows * stride * sizeof(float));
}

static void take_activations(struct device_memory *memory, size_t rows, uint32_t stride,
                             struct device_activations *x)
{
    uint32_t blocks = stride / 32;
    x->stride = stride;
    x->values = take_floats(memory, rows, stride);
    x->quants = device_memory_take_zeroed(memory, rows * stride);
    x->scales = take_floats(memory, rows, blocks);
    x->sums = take_floats(memory, rows, blocks);
}

/* What the layers need at most. */
struct widths {
    uint32_t queries, keys; /* of a row; of delta nets the wider of keys and values */
    uint32_t outputs;       /* what mixers give */
    bool any_output_gate;
    uint32_t n_states, delta_keys, delta_values; /* of delta nets: heads of values, and numbers of a row */
    uint32_t n_ff;                               /* of plain halves, shared experts and inputs; 0: none */
    bool any_gate;                               /* among those */
    bool any_shared, any_share; /* some layer has something beside its experts, and one with a gate */
    uint32_t n_experts, n_used, n_expert_ff; /* 0: no layer has experts */
};

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static void widen_for_attention(struct widths *widths, const struct layer_traits *layer)
{
    const struct head_shape *heads = &layer->heads;
    widths->queries = larger(widths->queries, heads->n * heads->dim);
    widths->keys = larger(widths->keys, heads->n_kv * heads->dim);
    widths->outputs = larger(widths->outputs, heads->n * heads->dim);
    widths->any_output_gate |= layer->output_gate;
}

static void widen_for_delta(struct widths *widths, const struct delta_net *net)
{
    const uint32_t keys = net->n_key_heads * net->key_dim, values = net->n_value_heads * net->value_dim;
    widths->queries = larger(widths->queries, keys);
    widths->keys = larger(widths->keys, larger(keys, values));
    widths->outputs = larger(widths->outputs, values);
    widths->any_output_gate = true;
    widths->n_states = larger(widths->n_states, net->n_value_heads);
    widths->delta_keys = larger(widths->delta_keys, keys);
    widths->delta_values = larger(widths->delta_values, values);
}

static void widen(struct widths *widths, const struct layer_traits *layer)
{
    switch (layer->mixer) {
    case MIXER_ATTENTION:
        widen_for_attention(widths, layer);
        break;
    case MIXER_DELTA:
        widen_for_delta(widths, &layer->delta);
        break;
    }
}

static struct widths widths_of(const struct model *model)
{
    struct widths widths = {0};
    for (uint32_t l = 0; l < model->params.n_layers; l++) {
        const struct layer_traits *traits = &model->layers[l].traits;
        widen(&widths, traits);
        const struct experts *experts = &traits->experts;
        const bool plain = experts->n == 0 || experts->beside;
        widths.n_ff = larger(widths.n_ff, plain ? traits->n_ff : 0);
        widths.n_ff = larger(widths.n_ff, larger(experts->n_shared_ff, traits->n_layer_embd));
        widths.any_gate |= traits->n_layer_embd > 0 || (traits->gated && (plain || experts->n_shared_ff > 0));
        widths.any_shared |= experts->beside || experts->n_shared_ff > 0;
        widths.any_share |= experts->shared_gate;
        if (experts->n == 0)
            continue;
        widths.n_experts = larger(widths.n_experts, experts->n);
        widths.n_used = larger(widths.n_used, experts->n_used);
        widths.n_expert_ff = larger(widths.n_expert_ff, experts->n_ff);
    }
    return widths;
}

uint32_t workspace_experts_used(const struct model *model)
{
    return widths_of(model).n_used;
}

static void take_experts(struct expert_workspace *work, struct device_memory *memory,
                         const struct widths *widths, size_t rows, uint32_t embd_stride)
{
    const size_t n = rows * widths->n_used;
    *work = (struct expert_workspace){.scores_stride = workspace_padded(widths->n_experts),
                                      .ff_stride = workspace_padded(widths->n_expert_ff)};
    if (widths->n_experts == 0)
        return;
    const size_t n_tiles = kernels_most_tiles(widths->n_experts, (uint32_t)n, KERNELS_LEAST_TILE);
    work->scores = take_floats(memory, rows, work->scores_stride);
    work->assignments.experts = device_memory_take_zeroed(memory, n * sizeof *work->assignments.experts);
    work->assignments.weights = take_floats(memory, n, 1);
    work->assignments.by_place = device_memory_take_zeroed(memory, n * sizeof *work->assignments.by_place);
    work->assignments.rows = device_memory_take_zeroed(memory, n * sizeof *work->assignments.rows);
    work->assignments.tiles = device_memory_take_zeroed(memory, n_tiles * sizeof *work->assignments.tiles);
    work->assignments.n_tiles = device_memory_take_zeroed(memory, sizeof *work->assignments.n_tiles);
    work->gate = take_floats(memory, n, work->ff_stride);
    work->up = take_floats(memory, n, work->ff_stride);
    take_activations(memory, n, work->ff_stride, &work->activated);
    work->out = take_floats(memory, n, embd_stride);
    work->shared = widths->any_shared ? take_floats(memory, rows, embd_stride) : NULL;
    work->shares = widths->any_share ? take_floats(memory, rows, 1) : NULL;
}

static void take_deltas(struct delta_workspace *work, struct device_memory *memory,
                        const struct widths *widths, size_t rows)
{
    *work = (struct delta_workspace){.gate_stride = workspace_padded(widths->n_states),
                                     .key_stride = workspace_padded(widths->delta_keys),
                                     .value_stride = workspace_padded(widths->delta_values)};
    if (widths->n_states == 0)
        return;
    work->betas = take_floats(memory, rows, work->gate_stride);
    work->decays = take_floats(memory, rows, work->gate_stride);
    work->queries = take_floats(memory, rows, work->key_stride);
    work->keys = take_floats(memory, rows, work->key_stride);
    work->values = take_floats(memory, rows, work->value_stride);
}

static void take_inputs(struct input_workspace *work, struct device_memory *memory,
                        const struct model_params *params, size_t rows)
{
    const uint32_t n = params->n_layer_embd, part = (n + 3) / 4 * 4; /* 16 bytes */
    *work = (struct input_workspace){.projected_stride = workspace_padded(n * params->n_layers),
                                     .stride = workspace_padded(part * params->n_layers),
                                     .part = part};
    if (n == 0)
        return;
    work->projected = take_floats(memory, rows, work->projected_stride);
    work->values = take_floats(memory, rows, work->stride);
}

static void take_multiply(struct multiply_scratch *scratch, struct device_memory *memory,
                          const struct workspace_shape *shape)
{
    const uint32_t n = shape->shares == STREAM_K_NEVER ? 0 : shape->n_multiprocessors;
    *scratch = (struct multiply_scratch){.n_multiprocessors = n, .rule = shape->shares};
    if (n == 0)
        return;
    scratch->sums = device_memory_take(memory, kernels_multiply_scratch(n));
    scratch->tickets = device_memory_take_zeroed(memory, stream_k_most_divided(n) * sizeof *scratch->tickets);
}

static bool are_alike(const struct head_shape *a, const struct head_shape *b)
{
    return a->n == b->n && a->n_kv == b->n_kv && a->dim == b->dim;
}

/* The different ones, in the order of layers; those beyond WORKSPACE_SHAPES are counted only. */
static uint32_t shapes_of(const struct model *model, struct head_shape ret_shapes[WORKSPACE_SHAPES])
{
    uint32_t n = 0;
    for (uint32_t l = 0; l < model->params.n_layers; l++) {
        const struct head_shape *heads = &model->layers[l].traits.heads;
        uint32_t i = 0;
        if (model->layers[l].traits.mixer != MIXER_ATTENTION)
            continue;
        while (i < n && i < WORKSPACE_SHAPES && !are_alike(&ret_shapes[i], heads))
            i++;
        if (i < WORKSPACE_SHAPES)
            ret_shapes[i] = *heads;
        n = i == n || i == WORKSPACE_SHAPES ? n + 1 : n;
    }
    return n;
}

uint32_t workspace_shapes(const struct model *model)
{
    struct head_shape shapes[WORKSPACE_SHAPES];
    return shapes_of(model, shapes);
}

const struct attention_scratch *workspace_attention(const struct workspace *workspace,
                                                    const struct head_shape *heads)
{
    uint32_t i = 0;
    while (i + 1 < workspace->n_shapes && !are_alike(&workspace->attention[i].heads, heads))
        i++;
    return &workspace->attention[i].scratch;
}

static void take_attention(struct workspace *workspace, struct device_memory *memory,
                           const struct model *model, const struct device_kv *kv,
                           const struct workspace_shape *shape)
{
    struct head_shape shapes[WORKSPACE_SHAPES];
    workspace->n_shapes = shapes_of(model, shapes);
    for (uint32_t i = 0; i < workspace->n_shapes; i++) {
        struct attention_workspace *attention = &workspace->attention[i];
        attention->heads = shapes[i];
        attention->kv = (struct device_kv){
            .type = kv->type, .n_layers = 1, .n_heads = shapes[i].n_kv, .dim = shapes[i].dim};
        kernels_kv_lay_out(&attention->kv);
        attention->scratch = (struct attention_scratch){.max_rows = shape->max_rows,
                                                        .n_context = shape->n_context,
                                                        .n_heads = shapes[i].n,
                                                        .n_blocks = kv->n_blocks};
        attention->scratch.memory =
            device_memory_take_zeroed(memory, kernels_attention_scratch(&attention->kv, &attention->scratch));
    }
}

void workspace_take(struct workspace *workspace, struct device_memory *memory, const struct model *model,
                    const struct device_kv *kv, const struct workspace_shape *shape)
{
    const struct model_params *params = &model->params;
    const struct widths widths = widths_of(model);
    size_t rows = shape->max_rows;
    *workspace = (struct workspace){
        .max_rows = shape->max_rows,
        .max_outputs = shape->max_outputs,
        .embd_stride = workspace_padded(params->n_embd),
        .q_stride = workspace_padded(widths.queries),
        .kv_stride = workspace_padded(widths.keys),
        .ff_stride = workspace_padded(widths.n_ff),
        .vocab_stride = workspace_padded(params->n_vocab),
    };
    workspace->stream = take_floats(memory, rows, workspace->embd_stride);
    workspace->delta = take_floats(memory, rows, workspace->embd_stride);
    workspace->q = take_floats(memory, rows, workspace->q_stride);
    workspace->k = take_floats(memory, rows, workspace->kv_stride);
    workspace->v = take_floats(memory, rows, workspace->kv_stride);
    workspace->output_gate =
        widths.any_output_gate ? take_floats(memory, rows, workspace_padded(widths.outputs)) : NULL;
    workspace->gate = widths.any_gate ? take_floats(memory, rows, workspace->ff_stride) : NULL;
    workspace->up = take_floats(memory, rows, workspace->ff_stride);
    take_activations(memory, rows, workspace->embd_stride, &workspace->normed);
    take_activations(memory, rows, workspace_padded(widths.outputs), &workspace->attended);
    take_activations(memory, rows, workspace->ff_stride, &workspace->activated);
    workspace->logits = take_floats(memory, shape->max_outputs, workspace->vocab_stride);
    workspace->tickets =
        device_memory_take_zeroed(memory, (workspace->ff_stride / 32 + 1) * sizeof *workspace->tickets);
    take_multiply(&workspace->multiply, memory, shape);
    take_experts(&workspace->experts, memory, &widths, rows, workspace->embd_stride);
    take_deltas(&workspace->deltas, memory, &widths, rows);
    take_inputs(&workspace->inputs, memory, params, rows);
    take_attention(workspace, memory, model, kv, shape);
    workspace->sample_scratch =
        device_memory_take_zeroed(memory, kernels_sample_scratch(params->n_vocab, shape->max_outputs));
}
