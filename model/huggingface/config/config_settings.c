/* SPDX-License-Identifier: MIT */
/* The table of settings. */

#include "model/huggingface/config/config_settings.h"

static const struct config_setting settings[] = {
#define SETTING(theirs, instead, ours, field, kind, uses)                                                    \
    {                                                                                                        \
        theirs, instead, ours, offsetof(struct config, field), kind, uses                                    \
    }
    SETTING("vocab_size", NULL, "vocab_size", n_vocab, COUNT, 0),
    SETTING("hidden_size", "n_embd", "embedding_length", n_embd, COUNT, 0),
    SETTING("intermediate_size", "n_inner", "feed_forward_length", n_ff, COUNT_OR_NONE, 0),
    SETTING("num_hidden_layers", "n_layer", "block_count", n_layers, COUNT, 0),
    SETTING("num_attention_heads", "n_head", "attention.head_count", n_heads, COUNT, 0),
    SETTING("num_key_value_heads", NULL, "attention.head_count_kv", n_kv_heads, COUNT_OR_NONE, 0),
    SETTING("max_position_embeddings", "n_positions", "context_length", n_context, COUNT, 0),
    SETTING("head_dim", NULL, "attention.key_length", head_dim, COUNT_OR_NONE, 0),
    SETTING("sliding_window", NULL, "attention.sliding_window", window, COUNT_OR_NONE, USES_WINDOW),
    SETTING("num_experts", "num_local_experts", "expert_count", n_experts, COUNT, USES_EXPERTS),
    SETTING("num_experts_per_tok", "experts_per_token", "expert_used_count", n_used, COUNT, USES_EXPERTS),
    SETTING("moe_intermediate_size", NULL, "expert_feed_forward_length", expert_ff, COUNT_OR_NONE,
            USES_EXPERTS),
    SETTING("shared_expert_intermediate_size", "shared_intermediate_size",
            "expert_shared_feed_forward_length", shared_ff, COUNT_OR_NONE, USES_EXPERTS),
    SETTING("final_logit_softcapping", NULL, "final_logit_softcapping", logit_cap, POSITIVE_OR_NONE,
            USES_CAPS | USES_APART),
    SETTING("attn_logit_softcapping", NULL, "attn_logit_softcapping", score_cap, POSITIVE_OR_NONE, USES_CAPS),
    SETTING("query_pre_attn_scalar", NULL, NULL, query_scalar, POSITIVE_OR_NONE, USES_CAPS),
    SETTING("embedding_multiplier", NULL, "embedding_scale", embedding_factor, POSITIVE_OR_NONE,
            USES_FACTORS),
    SETTING("residual_multiplier", NULL, "residual_scale", residual_factor, POSITIVE_OR_NONE, USES_FACTORS),
    SETTING("attention_multiplier", NULL, "attention.scale", score_factor, POSITIVE_OR_NONE, USES_FACTORS),
    SETTING("logits_scaling", NULL, "logit_scale", logit_divisor, POSITIVE_OR_NONE, USES_FACTORS),
    SETTING("linear_conv_kernel_dim", NULL, "ssm.conv_kernel", n_taps, COUNT, USES_DELTA),
    SETTING("linear_key_head_dim", NULL, "ssm.state_size", key_dim, COUNT, USES_DELTA),
    SETTING("linear_value_head_dim", NULL, NULL, value_dim, COUNT, USES_DELTA),
    SETTING("linear_num_key_heads", NULL, "ssm.group_count", n_key_heads, COUNT, USES_DELTA),
    SETTING("linear_num_value_heads", NULL, "ssm.time_step_rank", n_value_heads, COUNT, USES_DELTA),
#undef SETTING
};

const struct config_setting *config_setting_at(unsigned i)
{
    return i < sizeof settings / sizeof settings[0] ? &settings[i] : NULL;
}

bool config_has_setting(const struct config *config, const struct config_setting *setting)
{
    return setting->uses == 0 || setting->uses & config->family->uses;
}

bool config_is_special(const struct config *config, uint32_t i)
{
    if (config->period > 0)
        return (i + 1) % config->period != 0;
    return config->family->period > 0 && i < CONFIG_MOST_LAYERS && config->special[i / 64] >> (i % 64) & 1;
}
