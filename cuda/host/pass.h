/* SPDX-License-Identifier: MIT */
#ifndef CUDA_HOST_PASS_H
#define CUDA_HOST_PASS_H

/* One pass of a step's rows through the model, queued on the stream: resolve, layers, logits, sampling.
 *
 * What is queued depends only on the counts, which may exceed the step's; so a recorded pass serves every
 * step that is no larger. All functions return 0 or a fault. */

#include "cuda/host/library_products.h"
#include "cuda/host/memory/pools.h"
#include "cuda/host/memory/states.h"
#include "cuda/host/weights.h"
#include "cuda/host/memory/workspace.h"

/* Parts of a pass, each a launch or two, in their order. What a part has made is still there when it is seen,
 * and so is what it read, but where it is said otherwise. */
enum pass_part {
    PASS_RESOLVE,    /* memory.rows and outputs */
    PASS_EMBED,      /* stream */
    PASS_PROJECT,    /* normed: the stream as it is; what the projection for layers' inputs made of it */
    PASS_INPUTS,     /* what each layer gets */
    PASS_BEGIN,      /* normed, of the first layer */
    PASS_QKV,        /* q, k, v; output_gate; of delta nets betas and decays, as the products made them */
    PASS_HEADS,      /* q in its place, keys and values in the pool */
    PASS_DELTA_ROWS, /* queries, keys, values, betas, decays, behind the convolution */
    PASS_DELTA_RULE, /* values in their place; the slots' states, and snapshots */
    PASS_ATTENTION,  /* attended, by any mixer, with its gate */
    PASS_ATTENTION_OUTPUT, /* delta; then the stream in its place, and normed */
    PASS_PLAIN,            /* gate, up, activated of the plain half beside experts */
    PASS_ROUTE,            /* normed, where the router has a norm of its own; scores, assignments */
    PASS_ACTIVATE,         /* gate, up, activated; of experts shares, and these by assignment, with normed
                              where they have a norm of their own */
    PASS_DOWN,      /* what experts gave, by assignment; delta; but for the last layer, unless something comes
                       behind, then the stream in its place, and normed */
    PASS_INPUT,     /* gate and activated, of what the layer gets */
    PASS_INPUT_END, /* delta; but for the last layer then the stream in its place, and normed */
    PASS_OUTPUT_NORM, /* normed, of outputs */
    PASS_LOGITS       /* logits */
};

/* The norm of what the layer's last part adds to the stream; after it the stream is scaled, if at all. */
static inline enum tensor_role pass_last_norm(const struct layer_traits *traits)
{
    return traits->n_layer_embd > 0 ? TENSOR_INPUT_POST_NORM : TENSOR_FFN_POST_NORM;
}

/* The observer: called after a part of layer `layer` was queued, 0 outside of layers. What it returns ends
 * the pass unless it is 0. */
struct pass_watch {
    int (*see)(void *arg, enum pass_part part, uint32_t layer);
    void *arg;
};

/* Hears of each launch of products that may have choices, when a pass queues it: up to CHOICES_TOGETHER
 * products that read x. */
struct pass_meets {
    void (*meet)(void *arg, const struct device_product *products, uint32_t n,
                 const struct device_activations *x);
    void *arg;
};

struct pass {
    const struct model *model;
    const struct device_weights *weights;
    const struct workspace *workspace;
    const struct slots *slots;
    const struct pools *pools;
    const struct device_states *states;
    struct step_memory memory;
    struct sample_step sample;
    const struct pass_watch *watch;         /* NULL: nobody */
    const struct backend_step *const *step; /* that is being queued, NULL: unknown; for profiles alone */
    uint32_t most_sets;                     /* of the steps that it is for; 0: as many as rows */
    bool invariant;                         /* a row's bits do not depend on how many there are */
    const struct library_products *large; /* multiplies where a pass has large_from rows or more; UINT32_MAX:
                                  never, as where all rows only decode (step.c) */
    uint32_t large_from;
    bool large_by_choice;           /* of those, only the products for which that was measured to be faster */
    const struct choices *choices;  /* of launches (device_matrix.launch); NULL: all by rule */
    const struct pass_meets *meets; /* NULL: nobody */
};

/* Do products of its layers go to `large`? */
static inline bool pass_is_large(const struct pass *pass, uint32_t n_rows)
{
    return n_rows >= pass->large_from;
}

/* How the launch is made whose first matrix this is. */
static inline enum product_way pass_way(const struct pass *pass, const struct device_matrix *first,
                                        uint32_t n_rows)
{
    if (!pass->choices || first->launch == 0 || n_rows <= KERNELS_GEMV)
        return PRODUCT_BY_RULE;
    const struct choices_bucket *bucket =
        &pass->choices->launches[first->launch - 1].buckets[choices_bucket_of(n_rows)];
    const bool own = bucket->way == PRODUCT_LIBRARY && !pass_is_large(pass, n_rows);
    return (enum product_way)(own ? bucket->own : bucket->way);
}

/* -EINVAL names what the model has and this pass cannot compute, or a context longer than the model's learned
 * positions. To be asked before anything is loaded. */
int pass_check(const struct model *model, uint32_t n_context, struct error *err);

/* Rows from the description, through all layers. */
int pass_layers(const struct pass *pass, struct device_stream *queue, uint32_t n_rows);

/* The logits of outputs first … first + n − 1 into the first n rows of the workspace's logits; each output
 * once in a pass. */
int pass_logits(const struct pass *pass, struct device_stream *queue, uint32_t first, uint32_t n);

/* Samples outputs 0 … n_outputs − 1, whose logits are in the workspace, advances the slots of all the step's
 * sets, and gives the results. */
int pass_sample(const struct pass *pass, struct device_stream *queue, uint32_t n_outputs);

/* The same in two parts: the ids, ≥ 1 of them; then all that follows from them. In between they are where
 * pass_sampled_id says, on the device, and others may take their place. */
int pass_sample_ids(const struct pass *pass, struct device_stream *queue, uint32_t n_outputs);
int pass_accept(const struct pass *pass, struct device_stream *queue, uint32_t n_outputs);
int32_t *pass_sampled_id(const struct pass *pass, uint32_t output);

#endif
