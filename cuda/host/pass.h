/* SPDX-License-Identifier: MIT */
#ifndef CUDA_HOST_PASS_H
#define CUDA_HOST_PASS_H

/* One pass of a step's rows through the model, queued on the stream: resolve, layers, logits, sampling.
 *
 * The queued work depends only on the counts, which may exceed the step's; so a recorded pass serves every
 * step that is not larger. All functions return 0 or a fault. */

#include "cuda/host/library_products.h"
#include "cuda/host/memory/pools.h"
#include "cuda/host/memory/states.h"
#include "cuda/host/weights.h"
#include "cuda/host/memory/workspace.h"

/* Parts of a pass, each a launch or two, in order. When the observer sees a part, its results and its inputs
 * still exist, unless stated otherwise. */
enum pass_part {
    PASS_RESOLVE,          /* memory.rows and outputs */
    PASS_EMBED,            /* stream */
    PASS_PROJECT,          /* normed: the stream as it is; the projection for layers' inputs */
    PASS_INPUTS,           /* each layer's input */
    PASS_BEGIN,            /* normed, of the first layer */
    PASS_QKV,              /* q, k, v; output_gate; of delta nets betas and decays, as products */
    PASS_HEADS,            /* q in place, keys and values in the pool */
    PASS_DELTA_ROWS,       /* queries, keys, values, betas, decays, after the convolution */
    PASS_DELTA_RULE,       /* values in place; the slots' states, and snapshots */
    PASS_ATTENTION,        /* attended, by any mixer, with its gate */
    PASS_ATTENTION_OUTPUT, /* delta; then the stream in place, and normed */
    PASS_PLAIN,            /* gate, up, activated of the plain part beside experts */
    PASS_ROUTE,            /* normed, if the router has a separate norm; scores, assignments */
    PASS_ACTIVATE,  /* gate, up, activated; of experts shares, and these by assignment, with normed if they
                       have a separate norm */
    PASS_DOWN,      /* output of experts, by assignment; delta; then, except after the last layer with nothing
                       following, the stream in place, and normed */
    PASS_INPUT,     /* gate and activated, of the layer's input */
    PASS_INPUT_END, /* delta; then, except after the last layer, the stream in place, and normed */
    PASS_OUTPUT_NORM, /* normed, of outputs */
    PASS_LOGITS       /* logits */
};

/* The norm of the delta of a layer's last part; after this part the stream is scaled, if at all. */
static inline enum tensor_role pass_last_norm(const struct layer_traits *traits)
{
    return traits->n_layer_embd > 0 ? TENSOR_INPUT_POST_NORM : TENSOR_FFN_POST_NORM;
}

/* The observer: called after a part of layer `layer` (0 outside of layers) was queued. A result other than 0
 * ends the pass. */
struct pass_watch {
    int (*see)(void *arg, enum pass_part part, uint32_t layer);
    void *arg;
};

/* Called when a pass queues a launch of products that may have choices: up to CHOICES_TOGETHER products that
 * read x. */
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
    const struct pass_watch *watch;         /* NULL: none */
    const struct backend_step *const *step; /* the step being queued, NULL: unknown; only for profiles */
    uint32_t most_sets;                     /* of its steps; 0: as many as rows */
    bool invariant;                         /* a row's bits do not depend on the number of rows */
    const struct library_products *large;   /* multiplies if a pass has at least large_from rows; UINT32_MAX:
                                               never, as when all rows only decode (step.c) */
    uint32_t large_from;
    bool large_by_choice;           /* only products for which that was measured to be faster */
    const struct choices *choices;  /* of launches (device_matrix.launch); NULL: all by rule */
    const struct pass_meets *meets; /* NULL: none */
};

/* Whether products of its layers go to `large`. */
static inline bool pass_is_large(const struct pass *pass, uint32_t n_rows)
{
    return n_rows >= pass->large_from;
}

/* The way of the launch whose first matrix this is. */
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

/* Call it before anything is loaded. -EINVAL with the feature of the model that this pass cannot compute, or
 * a context longer than the model's learned positions. */
int pass_check(const struct model *model, uint32_t n_context, struct error *err);

/* Queues rows from the description through all layers. */
int pass_layers(const struct pass *pass, struct device_stream *queue, uint32_t n_rows);

/* Writes the logits of outputs first … first + n − 1 to the first n rows of the workspace's logits; each
 * output once per pass. */
int pass_logits(const struct pass *pass, struct device_stream *queue, uint32_t first, uint32_t n);

/* Samples outputs 0 … n_outputs − 1, whose logits are in the workspace, advances the slots of all the step's
 * sets, and writes the results. */
int pass_sample(const struct pass *pass, struct device_stream *queue, uint32_t n_outputs);

/* The same in two parts: the ids (at least one), then everything that follows from them. In between, the ids
 * are on the device where pass_sampled_id says, and may be replaced. */
int pass_sample_ids(const struct pass *pass, struct device_stream *queue, uint32_t n_outputs);
int pass_accept(const struct pass *pass, struct device_stream *queue, uint32_t n_outputs);
int32_t *pass_sampled_id(const struct pass *pass, uint32_t output);

#endif
