/* SPDX-License-Identifier: MIT */
/* Descriptions as sets: one line a trait, in the order of the enumeration. */

#include "worker/model/traits.h"

#include <errno.h>

static const char *const names[] = {
    [TRAIT_NORM_RMS] = "RMS norms",
    [TRAIT_NORM_LAYER] = "LayerNorm",
    [TRAIT_NORM_AFTER] = "norms of what a layer's halves give",
    [TRAIT_NORM_OFFSET] = "offsets of norms' weights",
    [TRAIT_PARALLEL] = "attention and feed-forward side by side",
    [TRAIT_POSITIONS] = "learned positions",
    [TRAIT_ROTARY_PAIRS] = "rotary positions by pairs",
    [TRAIT_ROTARY_HALVES] = "rotary positions by halves",
    [TRAIT_ROTARY_SCALING] = "linear rotary scaling",
    [TRAIT_ROTARY_YARN] = "YaRN rotary scaling",
    [TRAIT_ROTARY_LONG] = "long-rope factors",
    [TRAIT_BIASES] = "biases",
    [TRAIT_QK_NORM] = "norms of queries and keys",
    [TRAIT_WINDOW] = "attention within a window",
    [TRAIT_ATTENTION_CAP] = "soft caps of attention scores",
    [TRAIT_LOGIT_CAP] = "soft caps of logits",
    [TRAIT_SCALES] = "scales of embeddings, residuals or logits",
    [TRAIT_SILU] = "SiLU",
    [TRAIT_GELU] = "GELU",
    [TRAIT_RELU_SQUARED] = "squared ReLU",
    [TRAIT_UNGATED] = "feed-forward without a gate",
    [TRAIT_SLICES] = "tensors that several roles share",
    [TRAIT_EXPERTS] = "mixtures of experts",
    [TRAIT_SHARED_EXPERTS] = "experts that every token goes to",
};

_Static_assert(sizeof names / sizeof names[0] == MODEL_TRAITS, "every trait has a name");
_Static_assert(MODEL_TRAITS <= 8 * sizeof(trait_set), "every trait has a bit");

const char *model_trait_name(enum model_trait trait)
{
    return names[trait];
}

static trait_set when(bool condition, enum model_trait trait)
{
    return condition ? TRAIT_BIT(trait) : 0;
}

static trait_set traits_of_norm(const struct norm *norm)
{
    return TRAIT_BIT(norm->kind == NORM_RMS ? TRAIT_NORM_RMS : TRAIT_NORM_LAYER) |
           when(norm->offset != 0, TRAIT_NORM_OFFSET);
}

static trait_set traits_of_tensors(const struct model_tensor *tensors, int n)
{
    trait_set traits = 0;
    for (int role = 0; role < n; role++)
        if (tensors[role].weight)
            traits |= when(tensors[role].bias != NULL, TRAIT_BIASES) |
                      when(tensors[role].first_row > 0, TRAIT_SLICES);
    return traits;
}

static trait_set traits_of_layer(const struct model_layer *layer)
{
    static const enum model_trait activations[] = {[ACTIVATION_SILU] = TRAIT_SILU,
                                                   [ACTIVATION_GELU] = TRAIT_GELU,
                                                   [ACTIVATION_RELU_SQUARED] = TRAIT_RELU_SQUARED};
    const struct layer_traits *t = &layer->traits;
    return traits_of_norm(&t->norm) | traits_of_tensors(layer->tensors, TENSOR_ROLES) |
           when(t->norm_place & NORM_AFTER, TRAIT_NORM_AFTER) | when(t->parallel, TRAIT_PARALLEL) |
           when(t->residual_scale != 1, TRAIT_SCALES) |
           when(t->rotary.kind == ROTARY_PAIRS, TRAIT_ROTARY_PAIRS) |
           when(t->rotary.kind == ROTARY_HALVES, TRAIT_ROTARY_HALVES) |
           when(t->rotary.scaling == ROTARY_LINEAR, TRAIT_ROTARY_SCALING) |
           when(t->rotary.scaling == ROTARY_YARN, TRAIT_ROTARY_YARN) |
           when(t->rotary.scaling == ROTARY_LONG, TRAIT_ROTARY_LONG) | when(t->qk_norm, TRAIT_QK_NORM) |
           when(t->attention_cap > 0, TRAIT_ATTENTION_CAP) | when(t->window > 0, TRAIT_WINDOW) |
           TRAIT_BIT(activations[t->activation]) | when(!t->gated, TRAIT_UNGATED) |
           when(t->experts.n > 0, TRAIT_EXPERTS) | when(t->experts.n_shared > 0, TRAIT_SHARED_EXPERTS);
}

trait_set model_traits(const struct model *model)
{
    const struct model_params *params = &model->params;
    trait_set traits = traits_of_norm(&model->output_norm) |
                       traits_of_tensors(model->tensors, TENSOR_LAYER_ROLES) |
                       when(model->tensors[TENSOR_POSITIONS].weight, TRAIT_POSITIONS) |
                       when(params->logit_cap > 0, TRAIT_LOGIT_CAP) |
                       when(params->embedding_scale != 1 || params->logit_scale != 1, TRAIT_SCALES);
    for (uint32_t i = 0; i < params->n_layers; i++)
        traits |= traits_of_layer(&model->layers[i]);
    return traits;
}

int model_check_traits(const struct model *model, trait_set executed, const char *device, struct error *err)
{
    trait_set missing = model_traits(model) & ~executed;
    if (!missing)
        return 0;
    return error_set(err, -EINVAL, "%s cannot compute %s, which this %s model needs", device,
                     names[__builtin_ctz(missing)], model->params.architecture);
}
