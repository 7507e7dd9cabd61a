/* SPDX-License-Identifier: MIT */
/* The registry, and what a row and a file's numbers make together. */

#include "model/architecture.h"

#include <math.h>

/* architecture.h says how to add one. The first is what synth makes when it is not told. */
const struct architecture *const architectures[] = {
    &architecture_llama,     &architecture_qwen2,     &architecture_qwen3,
    &architecture_qwen3moe,  &architecture_gemma2,    &architecture_gemma3,
    &architecture_gemma4,    &architecture_phi2,      &architecture_phi3,
    &architecture_gpt2,      &architecture_gpt_oss,   &architecture_mistral3,
    &architecture_smollm3,   &architecture_granite,   &architecture_granitemoe,
    &architecture_olmo2,     &architecture_seed_oss,  &architecture_qwen35,
    &architecture_qwen35moe, &architecture_qwen3next, NULL,
};

const struct architecture *architecture_by_name(struct bytes name)
{
    for (size_t i = 0; architectures[i]; i++)
        if (bytes_equal(name, bytes_of_string(architectures[i]->name)))
            return architectures[i];
    return NULL;
}

/* What YaRN's authors found: attention grows flatter with the length, and larger scores make up for it. Some
 * models were trained with a share of that: `multiplier` is what their scores have already. */
static float magnitude(const struct model_params *params)
{
    if (params->rope_scaling != ROTARY_YARN || !(params->rope_factor > 1))
        return params->rope_attention_factor;
    const float grown = 0.1f * logf(params->rope_factor), multiplier = params->rope_log_multiplier;
    return params->rope_attention_factor * (1 + grown) / (1 + multiplier * grown);
}

struct layer_traits architecture_layer(const struct architecture *architecture,
                                       const struct model_params *params, uint32_t i)
{
    struct layer_traits layer = architecture->layer;
    layer.norm.epsilon = params->norm_epsilon;
    layer.residual_scale = params->residual_scale;
    layer.heads = (struct head_shape){
        params->n_heads, params->kv_heads_listed ? params->listed_kv_heads[i] : params->n_kv_heads,
        params->head_dim};
    layer.n_ff = params->ff_listed ? params->listed_ff[i] : params->n_ff;
    if (params->rope_off)
        layer.rotary.kind = ROTARY_NONE;
    if (layer.rotary.kind != ROTARY_NONE) {
        if (params->rope_halves)
            layer.rotary.kind = ROTARY_HALVES;
        layer.rotary.dims = params->rope_dims;
        layer.rotary.base = params->rope_base;
        layer.rotary.scaling = params->rope_scaling;
        layer.rotary.factor = params->rope_factor;
        layer.rotary.trained_context = model_params_trained_context(params);
        layer.rotary.fast_turns = params->rope_fast_turns;
        layer.rotary.slow_turns = params->rope_slow_turns;
        layer.rotary.exact_ramp = params->rope_exact_ramp;
        layer.rotary.magnitude = magnitude(params);
    }
    layer.attention_scale =
        params->attention_scale > 0 ? params->attention_scale : 1.0f / sqrtf((float)params->head_dim);
    layer.attention_cap = params->attention_cap;
    layer.window = params->window;
    layer.experts.n = params->n_experts;
    layer.experts.n_used = params->n_experts_used;
    layer.experts.n_ff = params->n_expert_ff;
    layer.experts.n_shared_ff = params->n_shared_ff;
    if (params->query_growth > 0)
        layer.query_growth =
            (struct query_growth){params->query_growth, model_params_trained_context(params)};
    layer.n_layer_embd = params->n_layer_embd;
    if (architecture->describe)
        architecture->describe(params, i, &layer);
    return layer;
}

void architecture_settle(struct layer_traits *layer, enum tensor_role role, bool there)
{
    if (role == TENSOR_V)
        layer->values_are_keys = !there && !layer->borrows_kv;
    if (role == TENSOR_EXPERT_SCALES)
        layer->experts.scaled = there && layer->experts.n > 0;
    if (role == TENSOR_STREAM_SCALE)
        layer->stream_scale = there;
}

static tensor_set mixer_roles(const struct layer_traits *layer)
{
    const tensor_set own = TENSOR_BIT(TENSOR_K) | (layer->values_are_keys ? 0 : TENSOR_BIT(TENSOR_V));
    const tensor_set roles = TENSOR_BIT(TENSOR_Q) | (layer->borrows_kv ? 0 : own);
    const tensor_set k_norm = layer->borrows_kv ? 0 : TENSOR_BIT(TENSOR_K_NORM);
    switch (layer->mixer) {
    case MIXER_ATTENTION:
        return roles | TENSOR_BIT(TENSOR_ATTENTION_OUTPUT) |
               (layer->output_gate ? TENSOR_BIT(TENSOR_OUTPUT_GATE) : 0) |
               (layer->sinks ? TENSOR_BIT(TENSOR_SINKS) : 0) |
               (layer->qk_norm != QK_NORM_NONE ? TENSOR_BIT(TENSOR_Q_NORM) | k_norm : 0);
    case MIXER_DELTA:
        return roles | TENSOR_BIT(TENSOR_OUTPUT_GATE) | TENSOR_BIT(TENSOR_TAPS) | TENSOR_BIT(TENSOR_BETA) |
               TENSOR_BIT(TENSOR_ALPHA) | TENSOR_BIT(TENSOR_STEP_BIAS) | TENSOR_BIT(TENSOR_DECAY) |
               TENSOR_BIT(TENSOR_DELTA_NORM) | TENSOR_BIT(TENSOR_DELTA_OUTPUT);
    }
    return roles;
}

static tensor_set expert_roles(const struct layer_traits *layer)
{
    tensor_set roles =
        TENSOR_BIT(TENSOR_ROUTER) | TENSOR_BIT(TENSOR_EXPERT_UPS) | TENSOR_BIT(TENSOR_EXPERT_DOWNS);
    roles |= layer->gated ? TENSOR_BIT(TENSOR_EXPERT_GATES) : 0;
    if (layer->experts.n_shared_ff > 0)
        roles |= TENSOR_BIT(TENSOR_SHARED_UP) | TENSOR_BIT(TENSOR_SHARED_DOWN) |
                 (layer->gated ? TENSOR_BIT(TENSOR_SHARED_GATE) : 0) |
                 (layer->experts.shared_gate ? TENSOR_BIT(TENSOR_SHARED_ROUTER) : 0);
    if (layer->experts.beside)
        roles |= TENSOR_BIT(TENSOR_PLAIN_POST_NORM) | TENSOR_BIT(TENSOR_EXPERT_NORM) |
                 TENSOR_BIT(TENSOR_EXPERT_POST_NORM);
    return roles | (layer->experts.router_norm ? TENSOR_BIT(TENSOR_ROUTER_NORM) : 0) |
           (layer->experts.scaled ? TENSOR_BIT(TENSOR_EXPERT_SCALES) : 0);
}

tensor_set architecture_layer_roles(const struct layer_traits *layer)
{
    tensor_set roles = mixer_roles(layer);
    if (layer->norm_place & NORM_BEFORE)
        roles |= TENSOR_BIT(TENSOR_ATTENTION_NORM) | (layer->parallel ? 0 : TENSOR_BIT(TENSOR_FFN_NORM));
    if (layer->norm_place & NORM_AFTER)
        roles |= TENSOR_BIT(TENSOR_ATTENTION_POST_NORM) | TENSOR_BIT(TENSOR_FFN_POST_NORM);
    roles |= layer->stream_scale ? TENSOR_BIT(TENSOR_STREAM_SCALE) : 0;
    if (layer->n_layer_embd > 0)
        roles |= TENSOR_BIT(TENSOR_INPUT_GATE) | TENSOR_BIT(TENSOR_INPUT_PROJECTION) |
                 TENSOR_BIT(TENSOR_INPUT_POST_NORM);
    if (layer->experts.n == 0 || layer->experts.beside) {
        roles |= TENSOR_BIT(TENSOR_UP) | TENSOR_BIT(TENSOR_DOWN);
        roles |= layer->gated ? TENSOR_BIT(TENSOR_GATE) : 0;
    }
    return layer->experts.n > 0 ? roles | expert_roles(layer) : roles;
}

tensor_set architecture_fuse(tensor_set tensors, const struct layer_traits *layer, tensor_set wholes)
{
    for (enum tensor_role role = TENSOR_LAYER_ROLES; role < TENSOR_ROLES; role++) {
        const tensor_set parts = wholes & TENSOR_BIT(role) ? tensor_part_set(layer, role) : 0;
        if (parts && (tensors & parts) == parts)
            tensors = (tensors & ~parts) | TENSOR_BIT(role);
    }
    return tensors;
}

tensor_set architecture_layer_tensors(const struct architecture *architecture,
                                      const struct layer_traits *layer)
{
    return architecture_fuse(architecture_layer_roles(layer), layer, architecture->fused);
}
