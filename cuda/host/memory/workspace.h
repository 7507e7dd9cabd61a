/* SPDX-License-Identifier: MIT */
#ifndef CUDA_HOST_MEMORY_WORKSPACE_H
#define CUDA_HOST_MEMORY_WORKSPACE_H

/* Every intermediate of a pass, allocated once for the largest step: recorded graphs hold the addresses, and
 * serving allocates nothing. */

#include "cuda/kernels/kernels.h"
#include "cuda/host/memory/memory.h"
#include "model/model.h"

/* Of mixtures of experts, by assignment (kernels.h); all NULL where no layer has any. */
struct expert_workspace {
    uint32_t scores_stride, ff_stride;
    float *scores; /* [max_rows][scores_stride]: what the router says of each expert */
    struct device_assignments
        assignments;  /* arrays; how many experts there are and are used is a layer's matter */
    float *gate, *up; /* [assignments][ff_stride] */
    struct device_activations activated;
    float *out;    /* [assignments][embd_stride] */
    float *shared; /* [max_rows][embd_stride]: what the shared expert gives, or the plain half beside
                      experts; NULL: no layer has one */
    float *shares; /* [max_rows]: how much it counts; NULL: as it is */
};

/* Of delta nets; all NULL where no layer is one. */
struct delta_workspace {
    uint32_t gate_stride, key_stride, value_stride;
    float *betas, *decays; /* [max_rows][gate_stride] */
    float *queries, *keys; /* [max_rows][key_stride]: behind the convolution */
    float *values;         /* [max_rows][value_stride]: the same, and then what the recurrence gives */
};

/* Of models whose layers get something of each token by itself; NULL in others. */
struct input_workspace {
    uint32_t projected_stride, stride, part; /* part: of a layer */
    float *projected;                        /* [max_rows][projected_stride]: n_layer_embd of each layer */
    float *values;                           /* [max_rows][stride]: of each layer part: what it gets */
};

/* Layers with heads of one shape share a plan of attention and its memory. */
#define WORKSPACE_SHAPES 4
struct attention_workspace {
    struct head_shape heads;
    struct device_kv kv; /* their shape; of no pool */
    struct attention_scratch scratch;
};

struct workspace {
    uint32_t max_rows;
    uint32_t max_outputs; /* rows whose logits are there at once */
    uint32_t embd_stride, q_stride, kv_stride, ff_stride, vocab_stride;
    float *stream;      /* [max_rows][embd_stride]: the residual stream */
    float *delta;       /* the same: what a layer's half adds to it */
    float *q;           /* [max_rows][q_stride] */
    float *k, *v;       /* [max_rows][kv_stride] */
    float *output_gate; /* [max_rows][attended.stride]: of what a mixer gives; NULL: no layer has one */
    float *gate, *up;   /* [max_rows][ff_stride], of plain halves, shared experts and what layers get; no gate
                           where none has one */
    struct device_activations normed, attended, activated;
    float *logits;     /* [max_outputs][vocab_stride] */
    uint32_t *tickets; /* [ff_stride / 32], one at least, zeros between kernels: who of a product's blocks
                          comes last */
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

/* How many shapes of heads the model's layers have. */
uint32_t workspace_shapes(const struct model *model);

/* Of a layer with such heads. */
const struct attention_scratch *workspace_attention(const struct workspace *workspace,
                                                    const struct head_shape *heads);

/* The most experts that a row of the model goes to; 0: it has none. */
uint32_t workspace_experts_used(const struct model *model);

/* Columns padded with zeros, which nothing overwrites, to what kernels read at once. */
static inline uint32_t workspace_padded(uint32_t columns)
{
    return (columns + 255) / 256 * 256;
}

/* Takes it, or counts; memory->lacking says whether it is complete. Pools have keys and values like `kv`,
 * and as many blocks at most. */
void workspace_take(struct workspace *workspace, struct device_memory *memory, const struct model *model,
                    const struct device_kv *kv, const struct workspace_shape *shape);

#endif
