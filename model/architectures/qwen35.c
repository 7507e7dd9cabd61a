/* SPDX-License-Identifier: MIT */
/* Qwen 3.5 and Qwen3-Next: gated delta nets, and in every fourth layer, or where the file says so, attention
 * with a gate on its output. Qwen3-Next stores value heads as they were trained, so neighbours share a key
 * head; converters of later models reorder them. Experts have a shared one with a gate of its own. */

#include "model/architecture.h"

static bool is_recurrent(const struct model_params *params, uint32_t i)
{
    if (params->recurrent_listed)
        return params->recurrent_layers[i / 64] >> (i % 64) & 1;
    return (i + 1) % params->attention_interval != 0;
}

static void describe(const struct model_params *params, uint32_t i, struct layer_traits *layer)
{
    layer->experts.shared_gate = layer->experts.n_shared_ff > 0;
    if (!is_recurrent(params, i)) {
        layer->output_gate = true;
        return;
    }
    layer->mixer = MIXER_DELTA;
    layer->delta = (struct delta_net){.n_key_heads = params->n_state_groups,
                                      .n_value_heads = params->n_state_heads,
                                      .key_dim = params->state_size,
                                      .value_dim = params->state_inner / params->n_state_heads,
                                      .n_taps = params->n_taps};
}

static void describe_next(const struct model_params *params, uint32_t i, struct layer_traits *layer)
{
    describe(params, i, layer);
    layer->delta.neighbours = layer->mixer == MIXER_DELTA;
}

#define QWEN35_LAYER                                                                                         \
    {                                                                                                        \
        .norm = {.kind = NORM_RMS}, .norm_place = NORM_BEFORE, .rotary = {.kind = ROTARY_HALVES},            \
        .qk_norm = QK_NORM_HEADS, .activation = ACTIVATION_SILU, .gated = true                               \
    }
#define QWEN35_FUSED (TENSOR_BIT(TENSOR_QKV) | TENSOR_BIT(TENSOR_Q_GATE) | TENSOR_BIT(TENSOR_NAMED_POST_NORM))

const struct architecture architecture_qwen35 = {
    .name = "qwen35",
    .layer = QWEN35_LAYER,
    .fused = QWEN35_FUSED,
    .delta_nets = true,
    .describe = describe,
};

const struct architecture architecture_qwen35moe = {
    .name = "qwen35moe",
    .layer = QWEN35_LAYER,
    .fused = QWEN35_FUSED,
    .may_fuse = TENSOR_BIT(TENSOR_EXPERT_GATE_UPS),
    .delta_nets = true,
    .always_experts = true,
    .describe = describe,
};

const struct architecture architecture_qwen3next = {
    .name = "qwen3next",
    .layer = QWEN35_LAYER,
    .fused = QWEN35_FUSED | TENSOR_BIT(TENSOR_BETA_ALPHA),
    .may_fuse = TENSOR_BIT(TENSOR_DELTA_IN) | TENSOR_BIT(TENSOR_EXPERT_GATE_UPS),
    .delta_nets = true,
    .always_experts = true,
    .describe = describe_next,
};
