/* SPDX-License-Identifier: MIT */
#ifndef CUDA_HOST_MEMORY_WORKSPACE_H
#define CUDA_HOST_MEMORY_WORKSPACE_H

/* Every intermediate of a pass, allocated once for the largest step: recorded graphs hold the addresses, and
 * serving allocates nothing. */

#include "cuda/kernels/kernels.h"
#include "cuda/host/memory/memory.h"
#include "model/model.h"

/* Of mixtures of experts, by assignment (kernels.h); all NULL if no layer has any. */
struct expert_workspace {
    uint32_t scores_stride, ff_stride;
    float *scores;                         /* [max_rows][scores_stride]: the router's score of each expert */
    struct device_assignments assignments; /* arrays; numbers of experts depend on the layer */
    float *gate, *up;                      /* [assignments][ff_stride] */
    struct device_activations activated;
    float *out;    /* [assignments][embd_stride] */
    float *shared; /* [max_rows][embd_stride]: output of the shared expert, or of the plain part beside
                      experts; NULL: no layer has one */
    float *shares; /* [max_rows]: its weight; NULL: 1 */
};

/* Of delta nets; all NULL if no layer is one. */
struct delta_workspace {
    uint32_t gate_stride, key_stride, value_stride;
    float *betas, *decays; /* [max_rows][gate_stride] */
    float *queries, *keys; /* [max_rows][key_stride]: after the convolution */
    float *values;         /* [max_rows][value_stride]: the same, and then the output of the recurrence */
};

/* Of models whose layers have per-token inputs; NULL in others. */
struct input_workspace {
    uint32_t projected_stride, stride, part; /* part: of a layer */
    float *projected;                        /* [max_rows][projected_stride]: n_layer_embd of each layer */
    float *values; /* [max_rows][stride]: `part` numbers for each layer, its input */
};

/* Layers with heads of one shape share a plan of attention and its memory. */
#define WORKSPACE_SHAPES 4
struct attention_workspace {
    struct head_shape heads;
    struct device_kv kv; /* their shape, without a pool */
    struct attention_scratch scratch;
};

struct workspace {
    uint32_t max_rows;
    uint32_t max_outputs; /* rows whose logits exist at once */
    uint32_t embd_stride, q_stride, kv_stride, ff_stride, vocab_stride;
    float *stream;      /* [max_rows][embd_stride]: the residual stream */
    float *delta;       /* the same: what a part of a layer adds to it */
    float *q;           /* [max_rows][q_stride] */
    float *k, *v;       /* [max_rows][kv_stride] */
    float *output_gate; /* [max_rows][attended.stride]: gate of a mixer's output; NULL: no layer has one */
    float *gate, *up; /* [max_rows][ff_stride], of plain parts, shared experts and layers' inputs; gate NULL:
                         none has one */
    struct device_activations normed, attended, activated;
    float *logits;     /* [max_outputs][vocab_stride] */
    uint32_t *tickets; /* [ff_stride / 32], at least one, zeros between kernels: counts a product's blocks to
                          find the last */
    struct multiply_scratch multiply;
    struct expert_workspace experts;
    struct delta_workspace deltas;
    struct input_workspace inputs;
    struct attention_workspace attention[WORKSPACE_SHAPES];
    uint32_t n_shapes;
    void *sample_scratch;
};

struct workspace_shape {
    uint32_t max_rows, max_outputs, n_context;
    uint32_t n_multiprocessors;
    enum stream_k_rule shares;
};

/* The number of shapes of heads in the model's layers. */
uint32_t workspace_shapes(const struct model *model);

/* The scratch of a layer with such heads. */
const struct attention_scratch *workspace_attention(const struct workspace *workspace,
                                                    const struct head_shape *heads);

/* The most experts used by a row of the model; 0: it has none. */
uint32_t workspace_experts_used(const struct model *model);

/* Columns padded with zeros, which are never overwritten, to what kernels read at once. */
static inline uint32_t workspace_padded(uint32_t columns)
{
    return (columns + 255) / 256 * 256;
}

/* Takes or counts the memory; memory->lacking says whether some is missing. `kv` describes the pools' keys
 * and values, and the most blocks. */
void workspace_take(struct workspace *workspace, struct device_memory *memory, const struct model *model,
                    const struct device_kv *kv, const struct workspace_shape *shape);

#endif
