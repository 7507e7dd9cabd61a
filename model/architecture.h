/* SPDX-License-Identifier: MIT */
#ifndef MODEL_ARCHITECTURE_H
#define MODEL_ARCHITECTURE_H

/* Architectures: how the names in files become descriptions.
 *
 * To add one:
 *
 * First, write model/architectures/FAMILY.c: a row that says what its layers do and which of its
 * linear maps have biases. Where a layer's traits hang on the file's numbers or on its place (windows in
 * every other layer, a second rotary base), give it a `describe` that completes them. Declare the row below,
 * list it in architectures.c and in meson.build.
 *
 * Second, if it has tensors that no role stands for, add roles to tensors.h, their names and shapes to
 * tensors.c. If it computes what no trait says, add a kind to its list in kinds.h, or a trait to
 * description.h, traits.h and traits.c. A new kind does not build until both backends compute it; a new trait
 * does not until each backend executes it or names it as missing, and then refuses models that have it.
 *
 * Third, show that it is right: what its paper says in tests/unit/model/test_architecture.c, and
 * logits of a file against an independent implementation (tests/conformance/conformance_logits.c).
 * tests/unit/cpu/forward/test_forward.c runs every row of the registry against plain C by itself.
 *
 * quern inspect, quantize and synth, and every backend, know it then. */

#include "model/description.h"
#include "model/tensors.h"

struct architecture {
    const char *name; /* general.architecture; the hyperparameters' keys begin with it */

    /* What every layer does, but for the numbers: those are the file's (epsilon, rotary dims, base and
     * scaling, scales, cap, window, experts) and are filled in before `describe` is called. */
    struct layer_traits layer;

    tensor_set biases;          /* of these roles there must be one */
    tensor_set optional_biases; /* of these there may be one */
    tensor_set fused;           /* tensors that several roles share, and that its files have */
    tensor_set may_fuse;        /* that its files may have instead of one for each role */
    tensor_set may_lack;        /* that its files may leave out (architecture_settle) */
    bool positions;             /* learned, added to the embedding */
    bool logits_divided;        /* by logit_scale, which its files must say */
    bool query_growth;   /* its files may say how queries grow, and what share YaRN's magnitude lacks */
    bool rope_switch;    /* rope.scaling.finetuned false: nothing turns */
    bool always_experts; /* its files must say how many there are */
    bool delta_nets;     /* its files say which layers are recurrent, and how large */
    bool layers_differ;  /* its files say which layers have a window, and the sizes of both kinds */
    bool ranks;          /* its files may have a head that ranks pairs of texts, by the labels' shares */

    /* Completes the hyperparameters; NULL when there is nothing to complete. */
    void (*complete)(struct model_params *params);
    /* Completes layer i; NULL when all layers are alike. */
    void (*describe)(const struct model_params *params, uint32_t i, struct layer_traits *layer);
};

/* The layer of Llama and of those that share it, and the biases that some offspring have. */
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

/* NULL when there is none of that name. */
const struct architecture *architecture_by_name(struct bytes name);

/* The traits of layer i. */
struct layer_traits architecture_layer(const struct architecture *architecture,
                                       const struct model_params *params, uint32_t i);

/* What becomes of a layer's traits by whether a file has a tensor for `role`, which is one of may_lack:
 * without values, keys are values. */
void architecture_settle(struct layer_traits *layer, enum tensor_role role, bool there);

/* The roles that a layer of these traits fills, each with a tensor of its own or with part of a fused one. */
tensor_set architecture_layer_roles(const struct layer_traits *layer);

/* The tensors that a file has for a layer: as above, with fused ones in the place of their parts. */
tensor_set architecture_layer_tensors(const struct architecture *architecture,
                                      const struct layer_traits *layer);

/* `tensors` with each of `wholes` in the place of its parts, where they are all there and a layer has such a
 * tensor. */
tensor_set architecture_fuse(tensor_set tensors, const struct layer_traits *layer, tensor_set wholes);

#endif
