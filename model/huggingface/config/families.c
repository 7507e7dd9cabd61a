/* SPDX-License-Identifier: MIT */
/* The rows of families.h. Defaults are those of the classes in transformers; of files that leave much out
 * (text_config of wrappers above all) they are most of the configuration. */

#include "model/huggingface/config/families.h"

#include <stddef.h>
#include <string.h>

#define LAYERS "model.layers."

/* What most have in common, as text within an object. */
#define SILU           "\"hidden_act\":\"silu\""
#define NO_QWEN_WINDOW "\"use_sliding_window\":false"
#define NO_BIAS        "\"attention_bias\":false"
#define WHOLE_HEADS    "\"partial_rotary_factor\":1"
#define PLAIN          SILU "," WHOLE_HEADS

#define GEMMA_FIXED                                                                                          \
    "{\"hidden_activation\":\"gelu_pytorch_tanh\",\"use_bidirectional_attention\":false,"                    \
    "\"sliding_window_pattern\":6,\"_sliding_window_pattern\":6,\"rope_local_base_freq\":10000," NO_BIAS     \
    "," WHOLE_HEADS "}"

#define GRANITE_DEFAULTS                                                                                     \
    "{\"embedding_multiplier\":1.0,\"residual_multiplier\":1.0,\"attention_multiplier\":1.0,"                \
    "\"logits_scaling\":1.0,\"num_local_experts\":8,\"num_experts_per_tok\":2}"

#define DELTA_DEFAULTS                                                                                       \
    "\"partial_rotary_factor\":0.25,\"head_dim\":256,\"linear_conv_kernel_dim\":4,\"linear_key_head_dim\":"  \
    "128,"                                                                                                   \
    "\"linear_value_head_dim\":128,\"linear_num_key_heads\":16,\"linear_num_value_heads\":32"

/* Of both classes of Gemma 4, but for the context and the window. */
#define GEMMA4_DEFAULTS                                                                                      \
    "\"vocab_size\":262144,\"hidden_size\":2304,\"intermediate_size\":9216,\"num_hidden_layers\":30,"        \
    "\"num_attention_heads\":8,\"num_key_value_heads\":4,\"head_dim\":256,\"global_head_dim\":512,"          \
    "\"hidden_activation\":\"gelu_pytorch_tanh\",\"tie_word_embeddings\":true,"                              \
    "\"rope_parameters\":{\"sliding_attention\":{\"rope_type\":\"default\",\"rope_theta\":10000.0},"         \
    "\"full_attention\":{\"rope_type\":\"proportional\",\"partial_rotary_factor\":0.25,\"rope_theta\":"      \
    "1000000.0}}"

/* Pictures alone are seen both ways. */
#define GEMMA4_FIXED                                                                                         \
    "{\"hidden_activation\":\"gelu_pytorch_tanh\",\"use_bidirectional_attention\":[\"vision\",false]"        \
    "," NO_BIAS "}"

#define QWEN_EXPERTS                                                                                         \
    NO_QWEN_WINDOW "," NO_BIAS ",\"norm_topk_prob\":true,\"decoder_sparse_step\":1,\"mlp_only_layers\":[[]]"

static const struct family families[] = {
    {.model_type = "llama",
     .architecture = "llama",
     .uses = USES_HALVES | USES_BIASES,
     .defaults = "{}",
     .fixed = "{" PLAIN "," NO_QWEN_WINDOW "}",
     .layers = LAYERS,
     .names = {names_outer, names_norms, names_attention, names_mlp}},
    {.model_type = "mistral",
     .architecture = "llama",
     .uses = USES_HALVES | USES_WINDOW,
     .defaults = "{}",
     .fixed = "{" PLAIN "," NO_QWEN_WINDOW "}",
     .layers = LAYERS,
     .names = {names_outer, names_norms, names_attention, names_mlp}},
    {.model_type = "mixtral",
     .architecture = "llama",
     .uses = USES_HALVES | USES_WINDOW | USES_EXPERTS,
     .defaults =
         "{\"num_local_experts\":8,\"num_experts_per_tok\":2,\"rms_norm_eps\":1e-5,\"rope_theta\":1e6}",
     .fixed = "{" PLAIN "}",
     .layers = LAYERS,
     .names = {names_outer, names_norms, names_attention_plain, names_mixtral}},
    {.model_type = "ministral3",
     .architecture = "mistral3",
     .uses = USES_HALVES | USES_WINDOW | USES_GROWTH,
     .defaults = "{\"head_dim\":128,\"rms_norm_eps\":1e-5,\"max_position_embeddings\":262144,"
                 "\"rope_parameters\":{\"rope_type\":\"yarn\",\"rope_theta\":1e6,\"factor\":16.0,"
                 "\"original_max_position_embeddings\":16384,\"beta_fast\":32.0,\"beta_slow\":1.0,"
                 "\"mscale\":1.0,\"mscale_all_dim\":1.0,\"llama_4_scaling_beta\":0.1}}",
     .fixed = "{" PLAIN "}",
     .layers = LAYERS,
     .names = {names_outer, names_norms, names_attention_plain, names_mlp}},
    {.model_type = "mistral3", .text_type = "mistral"},
    {.model_type = "qwen2",
     .architecture = "qwen2",
     .defaults = "{}",
     .fixed = "{" PLAIN "," NO_QWEN_WINDOW "}",
     .layers = LAYERS,
     .names = {names_outer, names_norms, names_attention_qwen2, names_mlp}},
    {.model_type = "qwen3",
     .architecture = "qwen3",
     .defaults = "{\"head_dim\":128}",
     .fixed = "{" PLAIN "," NO_QWEN_WINDOW "," NO_BIAS "}",
     .layers = LAYERS,
     .names = {names_outer, names_norms, names_attention_plain, names_head_norms, names_mlp}},
    {.model_type = "qwen3_moe",
     .architecture = "qwen3moe",
     .uses = USES_EXPERTS,
     .defaults = "{\"moe_intermediate_size\":768,\"num_experts\":128,\"num_experts_per_tok\":8,"
                 "\"norm_topk_prob\":false}",
     .fixed = "{" PLAIN "," QWEN_EXPERTS "}",
     .layers = LAYERS,
     .names = {names_outer, names_norms, names_attention_plain, names_head_norms, names_experts}},
    {.model_type = "gemma2",
     .architecture = "gemma2",
     .uses = USES_WINDOW | USES_CAPS,
     .period = 2,
     .special = "sliding_attention",
     .defaults =
         "{\"vocab_size\":256000,\"num_attention_heads\":8,\"num_key_value_heads\":4,\"head_dim\":256,"
         "\"max_position_embeddings\":8192,\"query_pre_attn_scalar\":256,\"sliding_window\":4096,"
         "\"final_logit_softcapping\":30.0,\"attn_logit_softcapping\":50.0,"
         "\"hidden_activation\":\"gelu_pytorch_tanh\",\"tie_word_embeddings\":true}",
     .fixed = GEMMA_FIXED,
     .layers = LAYERS,
     .names = {names_outer_one_added, names_norms_gemma, names_attention_plain, names_mlp}},
    {.model_type = "gemma3_text",
     .architecture = "gemma3",
     .uses = USES_WINDOW | USES_CAPS,
     .period = 6,
     .window_base = 10000,
     .special = "sliding_attention",
     .defaults = "{\"vocab_size\":262208,\"hidden_size\":2304,\"intermediate_size\":9216,"
                 "\"num_hidden_layers\":26,\"num_attention_heads\":8,\"num_key_value_heads\":4,"
                 "\"head_dim\":256,\"max_position_embeddings\":131072,\"query_pre_attn_scalar\":256,"
                 "\"sliding_window\":4096,\"rope_theta\":1e6,"
                 "\"hidden_activation\":\"gelu_pytorch_tanh\",\"tie_word_embeddings\":true}",
     .fixed = GEMMA_FIXED,
     .layers = LAYERS,
     .names = {names_outer_one_added, names_norms_gemma, names_attention_plain, names_head_norms_one_added,
               names_mlp}},
    {.model_type = "gemma3", .text_type = "gemma3_text"},
    {.model_type = "gemma4_text",
     .architecture = "gemma4",
     .uses = USES_WINDOW | USES_LIST | USES_APART | USES_RANKED_MERGES,
     .period = 6,
     .special = "sliding_attention",
     .defaults = "{" GEMMA4_DEFAULTS ",\"max_position_embeddings\":131072,\"sliding_window\":512,"
                 "\"hidden_size_per_layer_input\":256,\"vocab_size_per_layer_input\":262144}",
     .fixed = GEMMA4_FIXED,
     .layers = LAYERS,
     .names = {names_outer_gemma4, names_norms_gemma4, names_attention_gemma4, names_mlp,
               names_experts_gemma4, names_layer_embeddings}},
    {.model_type = "gemma4", .text_type = "gemma4_text"},
    {.model_type = "gemma4_unified_text",
     .architecture = "gemma4",
     .uses = USES_WINDOW | USES_LIST | USES_APART | USES_RANKED_MERGES,
     .period = 6,
     .special = "sliding_attention",
     .defaults = "{" GEMMA4_DEFAULTS ",\"max_position_embeddings\":262144,\"sliding_window\":1024}",
     .fixed = GEMMA4_FIXED,
     .layers = LAYERS,
     .names = {names_outer_gemma4, names_norms_gemma4, names_attention_gemma4, names_mlp,
               names_experts_gemma4, names_layer_embeddings}},
    {.model_type = "gemma4_unified", .text_type = "gemma4_unified_text"},
    {.model_type = "phi3",
     .architecture = "phi3",
     .uses = USES_WINDOW | USES_PARTS | USES_LONG,
     .defaults = "{\"rms_norm_eps\":1e-5}",
     .fixed = "{" SILU "}",
     .layers = LAYERS,
     .names = {names_outer, names_norms, names_attention_fused, names_mlp_fused}},
    {.model_type = "phi",
     .architecture = "phi2",
     .uses = USES_PARTS | USES_LAYER_NORM,
     .defaults = "{\"partial_rotary_factor\":0.5}",
     .fixed = "{\"hidden_act\":\"gelu_new\",\"qk_layernorm\":false}",
     .layers = LAYERS,
     .names = {names_outer_phi, names_attention_phi, names_mlp_phi}},
    {.model_type = "gpt2",
     .architecture = "gpt2",
     .uses = USES_LAYER_NORM | USES_NO_ROPE | USES_WIDE_FF,
     .defaults = "{\"tie_word_embeddings\":true}",
     .fixed = "{\"activation_function\":\"gelu_new\",\"scale_attn_weights\":true,"
              "\"scale_attn_by_inverse_layer_idx\":false,\"add_cross_attention\":false}",
     .layers = "h.",
     .optional = "transformer.",
     .names = {names_outer_gpt2, names_layer_gpt2}},
    {.model_type = "smollm3",
     .architecture = "smollm3",
     .uses = USES_HALVES | USES_BIASES | USES_TURNING_LAYERS,
     .defaults = "{\"num_key_value_heads\":4,\"rope_theta\":2e6,\"tie_word_embeddings\":true}",
     .fixed = "{" PLAIN "," NO_QWEN_WINDOW ",\"no_rope_layer_interval\":4}",
     .layers = LAYERS,
     .names = {names_outer, names_norms, names_attention, names_mlp}},
    {.model_type = "granite",
     .architecture = "granite",
     .uses = USES_HALVES | USES_FACTORS | USES_BIASES,
     .defaults = GRANITE_DEFAULTS,
     .fixed = "{" PLAIN "}",
     .layers = LAYERS,
     .names = {names_outer, names_norms, names_attention, names_mlp}},
    {.model_type = "granitemoe",
     .architecture = "granitemoe",
     .uses = USES_HALVES | USES_FACTORS | USES_EXPERTS | USES_BIASES,
     .defaults = GRANITE_DEFAULTS,
     .fixed = "{" PLAIN ",\"shared_intermediate_size\":0}",
     .layers = LAYERS,
     .names = {names_outer, names_norms, names_attention, names_granite_experts}},
    {.model_type = "granitemoeshared",
     .architecture = "granitemoe",
     .uses = USES_HALVES | USES_FACTORS | USES_EXPERTS | USES_BIASES,
     .defaults = GRANITE_DEFAULTS,
     .fixed = "{" PLAIN "}",
     .layers = LAYERS,
     .names = {names_outer, names_norms, names_attention, names_granite_experts}},
    {.model_type = "olmo2",
     .architecture = "olmo2",
     .uses = USES_FIXED_TURNS | USES_WINDOW_BASE,
     .defaults = "{\"rms_norm_eps\":1e-5}",
     .fixed = "{" PLAIN "," NO_BIAS "}",
     .layers = LAYERS,
     .names = {names_outer, names_norms_after, names_attention_plain, names_whole_norms, names_mlp}},
    {.model_type = "olmo3",
     .architecture = "olmo2",
     .uses = USES_WINDOW | USES_FIXED_TURNS | USES_LIST | USES_WINDOW_BASE,
     .period = 4,
     .special = "sliding_attention",
     .defaults = "{\"rms_norm_eps\":1e-5,\"sliding_window\":4096,\"rope_theta\":500000}",
     .fixed = "{" PLAIN "," NO_BIAS "}",
     .layers = LAYERS,
     .names = {names_outer, names_norms_after, names_attention_plain, names_whole_norms, names_mlp}},
    {.model_type = "seed_oss",
     .architecture = "seed_oss",
     .defaults = "{\"head_dim\":128,\"attention_bias\":true}",
     .fixed = "{" PLAIN ",\"attention_bias\":true,\"attention_out_bias\":false,\"mlp_bias\":false}",
     .layers = LAYERS,
     .names = {names_outer, names_norms_post, names_attention_qwen2, names_mlp}},
    {.model_type = "gpt_oss",
     .architecture = "gpt-oss",
     .uses = USES_WINDOW | USES_EXPERTS,
     .period = 2,
     .special = "sliding_attention",
     .defaults = "{\"head_dim\":64,\"sliding_window\":128,\"rms_norm_eps\":1e-5,\"num_local_experts\":128,"
                 "\"num_experts_per_tok\":4,\"max_position_embeddings\":131072,\"rope_theta\":150000}",
     .fixed = "{" PLAIN ",\"attention_bias\":true,\"swiglu_limit\":7,\"swiglu_alpha\":1.702}",
     .layers = LAYERS,
     .names = {names_outer, names_norms_post, names_attention_gpt_oss, names_experts_gpt_oss}},
    {.model_type = "qwen3_5_text",
     .architecture = "qwen35",
     .uses = USES_DELTA | USES_PARTS | USES_LIST,
     .period = 4,
     .special = "linear_attention",
     .defaults = "{" DELTA_DEFAULTS "}",
     .fixed = "{" SILU "," NO_BIAS ",\"attn_output_gate\":true}",
     .layers = LAYERS,
     .names = {names_outer_one_added, names_norms_next, names_attention_gated, names_head_norms_one_added,
               names_delta, names_mlp}},
    {.model_type = "qwen3_5_moe_text",
     .architecture = "qwen35moe",
     .uses = USES_DELTA | USES_PARTS | USES_LIST | USES_EXPERTS,
     .period = 4,
     .special = "linear_attention",
     .defaults = "{" DELTA_DEFAULTS ",\"num_experts\":256,\"num_experts_per_tok\":8,"
                 "\"moe_intermediate_size\":512,\"shared_expert_intermediate_size\":512}",
     .fixed =
         "{" SILU "," NO_BIAS ",\"attn_output_gate\":true,\"norm_topk_prob\":true,\"mlp_only_layers\":[[]]}",
     .layers = LAYERS,
     .names = {names_outer_one_added, names_norms_next, names_attention_gated, names_head_norms_one_added,
               names_delta, names_experts_fused, names_shared_expert}},
    {.model_type = "qwen3_5", .text_type = "qwen3_5_text"},
    {.model_type = "qwen3_5_moe", .text_type = "qwen3_5_moe_text"},
    {.model_type = "qwen3_next",
     .architecture = "qwen3next",
     .uses = USES_DELTA | USES_PARTS | USES_LIST | USES_EXPERTS | USES_GROUPS,
     .period = 4,
     .special = "linear_attention",
     .defaults = "{" DELTA_DEFAULTS ",\"num_experts\":512,\"num_experts_per_tok\":10,"
                 "\"moe_intermediate_size\":512,\"shared_expert_intermediate_size\":512}",
     .fixed = "{" SILU "," QWEN_EXPERTS "}",
     .layers = LAYERS,
     .names = {names_outer_one_added, names_norms_next, names_attention_gated, names_head_norms_one_added,
               names_delta_next, names_experts_fused, names_shared_expert}},
};

const struct family *family_by_type(const char *model_type)
{
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        if (strcmp(families[i].model_type, model_type) == 0)
            return &families[i];
    return NULL;
}

const struct family *family_at(unsigned i)
{
    return i < sizeof families / sizeof families[0] ? &families[i] : NULL;
}
