/* SPDX-License-Identifier: MIT */
#ifndef MODEL_ARCHITECTURE_H
#define MODEL_ARCHITECTURE_H

/* Architectures: map the names in files to descriptions.
 *
 * To add one:
 *
 * First, write model/architectures/FAMILY.c: a row that says what its layers do and which of its linear maps
 * have biases. If a layer's traits depend on the file's numbers or on its position (windows in every other
 * layer, a second rotary base), give it a `describe` that completes them. Declare the row below, and list it
 * in architectures.c and in meson.build.
 *
 * Second, if it has tensors without a role, add roles to tensors.h, and their names and shapes to tensors.c.
 * If it computes something that no trait describes, add a kind to its list in kinds.h, or a trait to
 * description.h, traits.h and traits.c. A new kind does not build until both backends compute it; a new trait
 * does not build until each backend executes it or lists it as missing, and then rejects models that have it.
 *
 * Third, test it: against its paper in tests/unit/model/test_architecture.c, and a file's logits against an
 * independent implementation (tests/conformance/conformance_logits.c). tests/unit/cpu/forward/test_forward.c
 * compares every row of the registry with plain C automatically.
 *
 * quern inspect, quantize and synth, and every backend, then support it. */

#include "model/description.h"
#include "model/tensors.h"

struct architecture {
    const char *name; /* general.architecture; the hyperparameters' keys begin with it */

    /* What every layer does, except for numbers from the file (epsilon, rotary dims, base and scaling,
     * scales, cap, window, experts), which are filled in before `describe` is called. */
    struct layer_traits layer;

    tensor_set biases;          /* roles that must have one */
    tensor_set optional_biases; /* roles that may have one */
    tensor_set fused;           /* tensors shared by several roles, which its files have */
    tensor_set may_fuse;        /* shared tensors that its files may have instead of one for each role */
    tensor_set may_lack;        /* that its files may omit (architecture_settle) */
    bool positions;             /* learned, added to the embedding */
    bool logits_divided;        /* by logit_scale, which its files must have */
    bool query_growth;   /* its files may say how queries grow, and what share YaRN's magnitude lacks */
    bool rope_switch;    /* rope.scaling.finetuned false turns rotation off */
    bool always_experts; /* its files must give the number of experts */
    bool delta_nets;     /* its files say which layers are recurrent, and their sizes */
    bool layers_differ;  /* its files say which layers have a window, and the sizes of both kinds */
    bool ranks;          /* its files may have a head that ranks pairs of texts, by the labels' shares */

    /* Completes the hyperparameters; NULL if nothing is to be completed. */
    void (*complete)(struct model_params *params);
    /* Completes layer i; NULL if all layers are alike. */
    void (*describe)(const struct model_params *params, uint32_t i, struct layer_traits *layer);
};

/* The layer of Llama and its derivatives, and the biases that some derivatives have. */
#define LLAMA_LAYER                                                                                          \
    {                                                                                                        \
        .norm = {.kind = NORM_RMS}, .norm_place = NORM_BEFORE, .rotary = {.kind = ROTARY_PAIRS},             \
        .activation = ACTIVATION_SILU, .gated = true                                                         \
    }
#define LLAMA_BIASES                                                                                         \
    (TENSOR_BIT(TENSOR_Q) | TENSOR_BIT(TENSOR_K) | TENSOR_BIT(TENSOR_V) |                                    \
     TENSOR_BIT(TENSOR_ATTENTION_OUTPUT) | TENSOR_BIT(TENSOR_GATE) | TENSOR_BIT(TENSOR_UP) |                 \
     TENSOR_BIT(TENSOR_DOWN))

extern const struct architecture architecture_llama;
extern const struct architecture architecture_qwen2, architecture_qwen3, architecture_qwen3moe;
extern const struct architecture architecture_gemma2, architecture_gemma3, architecture_gemma4;
extern const struct architecture architecture_phi2, architecture_phi3;
extern const struct architecture architecture_gpt2;
extern const struct architecture architecture_gpt_oss;
extern const struct architecture architecture_mistral3;
extern const struct architecture architecture_smollm3;
extern const struct architecture architecture_granite, architecture_granitemoe;
extern const struct architecture architecture_olmo2;
extern const struct architecture architecture_seed_oss;
extern const struct architecture architecture_qwen35, architecture_qwen35moe, architecture_qwen3next;

/* The registry, ended by NULL. */
extern const struct architecture *const architectures[];

/* NULL: no architecture has this name. */
const struct architecture *architecture_by_name(struct bytes name);

/* The traits of layer i. */
struct layer_traits architecture_layer(const struct architecture *architecture,
                                       const struct model_params *params, uint32_t i);

/* Adapts a layer's traits to whether a file has a tensor for `role`, one of may_lack: without values, keys
 * serve as values. */
void architecture_settle(struct layer_traits *layer, enum tensor_role role, bool there);

/* The roles that a layer with these traits fills, each with its own tensor or with part of a fused one. */
tensor_set architecture_layer_roles(const struct layer_traits *layer);

/* The tensors that a file has for a layer: as above, with fused ones in place of their parts. */
tensor_set architecture_layer_tensors(const struct architecture *architecture,
                                      const struct layer_traits *layer);

/* `tensors` with each of `wholes` in place of its parts, if they are all present and a layer has such a
 * tensor. */
tensor_set architecture_fuse(tensor_set tensors, const struct layer_traits *layer, tensor_set wholes);

#endif
