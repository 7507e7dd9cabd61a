/* SPDX-License-Identifier: MIT */
/* Descriptions as sets. Names and enumeration come from the same lists. */

#include "model/traits.h"

#include <errno.h>

#define PLAIN(name, words)           [TRAIT_##name] = words,
#define NORM_KIND(name, id, words)   [TRAIT_NORM_##name] = words,
#define ROTARY_KIND(name, id, words) [TRAIT_ROTARY_##name] = words,
#define ACTIVATION(name, id, words)  [TRAIT_##name] = words,
#define MIXER(name, id, words)       [TRAIT_MIXER_##name] = words,
static const char *const names[] = {MIXERS(MIXER) NORM_KINDS(NORM_KIND) ROTARY_KINDS(
    ROTARY_KIND) ROTARY_SCALINGS(ROTARY_KIND) ACTIVATIONS(ACTIVATION) PLAIN_TRAITS(PLAIN)};

/* The trait of each kind. */
#define NORM_TRAIT(name, id, words)   [NORM_##name] = TRAIT_NORM_##name,
#define ROTARY_TRAIT(name, id, words) [ROTARY_##name] = TRAIT_ROTARY_##name,
#define ACTIVATES(name, id, words)    [ACTIVATION_##name] = TRAIT_##name,
#define MIXES(name, id, words)        [MIXER_##name] = TRAIT_MIXER_##name,
static const enum model_trait norms[] = {NORM_KINDS(NORM_TRAIT)}, rotaries[] = {ROTARY_KINDS(ROTARY_TRAIT)},
                              scalings[] = {ROTARY_SCALINGS(ROTARY_TRAIT)},
                              activations[] = {ACTIVATIONS(ACTIVATES)}, mixers[] = {MIXERS(MIXES)};

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
    return TRAIT_BIT(norms[norm->kind]) | when(norm->offset != 0, TRAIT_NORM_OFFSET);
}

static trait_set traits_of_tensors(const struct model_tensor *tensors, int n)
{
    trait_set traits = 0;
    for (int role = 0; role < n; role++)
        if (tensors[role].weight)
            traits |= when(tensors[role].bias != NULL,
                           tensors[role].count > 1 ? TRAIT_EXPERT_BIASES : TRAIT_BIASES) |
                      when(tensors[role].first_row > 0, TRAIT_SLICES) |
                      when(tensors[role].run > 0, TRAIT_INTERLEAVED);
    return traits;
}

static trait_set traits_of_attention(const struct model_params *params, const struct layer_traits *t)
{
    const struct head_shape *heads = &t->heads;
    const bool usual =
        heads->n == params->n_heads && heads->n_kv == params->n_kv_heads && heads->dim == params->head_dim;
    return when(!usual, TRAIT_HEADS_DIFFER) | when(t->output_gate, TRAIT_OUTPUT_GATE) |
           when(t->rotary.kind != ROTARY_NONE, rotaries[t->rotary.kind]) |
           when(t->rotary.scaling != ROTARY_UNSCALED, scalings[t->rotary.scaling]) |
           when(t->qk_norm == QK_NORM_HEADS, TRAIT_QK_NORM) |
           when(t->qk_norm == QK_NORM_ALL, TRAIT_QK_NORM_ALL) |
           when(t->query_growth.factor != 0, TRAIT_QUERY_GROWTH) | when(t->sinks, TRAIT_SINKS) |
           when(t->attention_cap > 0, TRAIT_ATTENTION_CAP) | when(t->window > 0, TRAIT_WINDOW) |
           when(t->values_are_keys, TRAIT_VALUES_ARE_KEYS) | when(t->value_norm, TRAIT_VALUE_NORM);
}

static trait_set traits_of_layer(const struct model_params *params, const struct model_layer *layer)
{
    const struct layer_traits *t = &layer->traits;
    return traits_of_norm(&t->norm) | traits_of_tensors(layer->tensors, TENSOR_ROLES) |
           TRAIT_BIT(mixers[t->mixer]) | (t->mixer == MIXER_ATTENTION ? traits_of_attention(params, t) : 0) |
           when(t->norm_place & NORM_AFTER, TRAIT_NORM_AFTER) | when(t->parallel, TRAIT_PARALLEL) |
           when(t->residual_scale != 1, TRAIT_SCALES) | when(t->stream_scale, TRAIT_STREAM_SCALE) |
           TRAIT_BIT(activations[t->activation]) | when(!t->gated, TRAIT_UNGATED) |
           when(t->experts.n > 0, TRAIT_EXPERTS) | when(t->experts.n_shared_ff > 0, TRAIT_SHARED_EXPERTS) |
           when(t->experts.shared_gate, TRAIT_SHARED_GATE) | when(t->experts.beside, TRAIT_EXPERTS_BESIDE) |
           when(t->experts.router_norm, TRAIT_ROUTER_NORM) | when(t->experts.scaled, TRAIT_EXPERT_SCALES) |
           when(t->borrows_kv, TRAIT_BORROWED_KV) | when(t->n_layer_embd > 0, TRAIT_LAYER_EMBEDDINGS);
}

trait_set model_traits(const struct model *model)
{
    const struct model_params *params = &model->params;
    trait_set traits =
        traits_of_norm(&model->output_norm) | traits_of_tensors(model->tensors, TENSOR_LAYER_ROLES) |
        when(model->tensors[TENSOR_POSITIONS].weight, TRAIT_POSITIONS) |
        when(params->logit_cap > 0, TRAIT_LOGIT_CAP) | when(params->pooling == POOLING_RANK, TRAIT_RANKS) |
        when(params->embedding_scale != 1 || params->logit_factor != 1, TRAIT_SCALES);
    for (uint32_t i = 0; i < params->n_layers; i++)
        traits |= traits_of_layer(params, &model->layers[i]);
    return traits;
}

int model_check_traits(const struct model *model, trait_set missing, const char *device, struct error *err)
{
    missing &= model_traits(model);
    if (!missing)
        return 0;
    return error_set(err, -EINVAL, "%s cannot compute %s, which this %s model needs", device,
                     names[__builtin_ctzll(missing)], model->params.architecture);
}
