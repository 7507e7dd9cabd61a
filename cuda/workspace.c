/* SPDX-License-Identifier: MIT */
/* The workspace of a pass. All of it is zeroed: what is beyond the columns of a row stays so. */

#include "cuda/workspace.h"

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

static bool any_gate(const struct model *model)
{
    for (uint32_t l = 0; l < model->params.n_layers; l++)
        if (model->layers[l].traits.gated)
            return true;
    return false;
}

void workspace_take(struct workspace *workspace, struct device_memory *memory, const struct model *model,
                    const struct device_kv *kv, const struct workspace_shape *shape)
{
    const struct model_params *params = &model->params;
    size_t rows = shape->max_rows;
    *workspace = (struct workspace){
        .max_rows = shape->max_rows,
        .max_outputs = shape->max_outputs,
        .embd_stride = workspace_padded(params->n_embd),
        .q_stride = workspace_padded(params->n_heads * params->head_dim),
        .kv_stride = workspace_padded(params->n_kv_heads * params->head_dim),
        .ff_stride = workspace_padded(params->n_ff),
        .vocab_stride = workspace_padded(params->n_vocab),
    };
    workspace->stream = take_floats(memory, rows, workspace->embd_stride);
    workspace->delta = take_floats(memory, rows, workspace->embd_stride);
    workspace->q = take_floats(memory, rows, workspace->q_stride);
    workspace->k = take_floats(memory, rows, workspace->kv_stride);
    workspace->v = take_floats(memory, rows, workspace->kv_stride);
    workspace->gate = any_gate(model) ? take_floats(memory, rows, workspace->ff_stride) : NULL;
    workspace->up = take_floats(memory, rows, workspace->ff_stride);
    take_activations(memory, rows, workspace->embd_stride, &workspace->normed);
    take_activations(memory, rows, workspace->q_stride, &workspace->attended);
    take_activations(memory, rows, workspace->ff_stride, &workspace->activated);
    workspace->logits = take_floats(memory, shape->max_outputs, workspace->vocab_stride);
    workspace->tickets =
        device_memory_take_zeroed(memory, workspace->ff_stride / 32 * sizeof *workspace->tickets);
    workspace->attention = (struct attention_scratch){
        .max_rows = shape->max_rows, .n_context = shape->n_context, .n_heads = params->n_heads};
    workspace->attention.memory =
        device_memory_take_zeroed(memory, kernels_attention_scratch(kv, &workspace->attention));
    workspace->sample_scratch =
        device_memory_take_zeroed(memory, kernels_sample_scratch(params->n_vocab, shape->max_outputs));
}
