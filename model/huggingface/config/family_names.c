/* SPDX-License-Identifier: MIT */
/* Tables of names, one for each group of tensors that several families share. */

#include "model/huggingface/config/families.h"

#include <stddef.h>

#define END                                                                                                  \
    {                                                                                                        \
        NULL, NULL, NONE, NONE, .bare = false                                                                \
    }

/* ---- of the model ---- */

const struct name_row names_outer[] = {{"model.embed_tokens", "token_embd", VOCAB, EMBD, .of = OF_MODEL},
                                       {"model.norm", "output_norm", NONE, EMBD, .of = OF_MODEL},
                                       {"lm_head", "output", VOCAB, EMBD, .of = OF_MODEL, .need = UNTIED},
                                       END};

const struct name_row names_outer_one_added[] = {
    {"model.embed_tokens", "token_embd", VOCAB, EMBD, .of = OF_MODEL},
    {"model.norm", "output_norm", NONE, EMBD, .of = OF_MODEL, .how = ONE_ADDED},
    {"lm_head", "output", VOCAB, EMBD, .of = OF_MODEL, .need = UNTIED},
    END};

const struct name_row names_outer_gpt2[] = {
    {"wte", "token_embd", VOCAB, EMBD, .of = OF_MODEL},
    {"wpe", "position_embd", POSITIONS, EMBD, .of = OF_MODEL},
    {"ln_f", "output_norm", NONE, EMBD, .of = OF_MODEL, .bias = BIAS_MUST},
    {"lm_head", "output", VOCAB, EMBD, .of = OF_MODEL, .need = UNTIED},
    END};

const struct name_row names_outer_phi[] = {
    {"model.embed_tokens", "token_embd", VOCAB, EMBD, .of = OF_MODEL},
    {"model.final_layernorm", "output_norm", NONE, EMBD, .of = OF_MODEL, .bias = BIAS_MUST},
    {"lm_head", "output", VOCAB, EMBD, .of = OF_MODEL, .need = UNTIED, .bias = BIAS_MUST},
    END};

/* ---- norms of a layer ---- */

const struct name_row names_norms[] = {{"input_layernorm", "attn_norm", NONE, EMBD, .of = OF_LAYER},
                                       {"post_attention_layernorm", "ffn_norm", NONE, EMBD, .of = OF_LAYER},
                                       END};

/* The second is before the feed-forward, whatever it is called. */
const struct name_row names_norms_post[] = {
    {"input_layernorm", "attn_norm", NONE, EMBD, .of = OF_LAYER},
    {"post_attention_layernorm", "post_attention_norm", NONE, EMBD, .of = OF_LAYER},
    END};

const struct name_row names_norms_after[] = {
    {"post_attention_layernorm", "post_attention_norm", NONE, EMBD, .of = OF_LAYER},
    {"post_feedforward_layernorm", "post_ffw_norm", NONE, EMBD, .of = OF_LAYER},
    END};

const struct name_row names_norms_gemma[] = {
    {"input_layernorm", "attn_norm", NONE, EMBD, .of = OF_LAYER, .how = ONE_ADDED},
    {"post_attention_layernorm", "post_attention_norm", NONE, EMBD, .of = OF_LAYER, .how = ONE_ADDED},
    {"pre_feedforward_layernorm", "ffn_norm", NONE, EMBD, .of = OF_LAYER, .how = ONE_ADDED},
    {"post_feedforward_layernorm", "post_ffw_norm", NONE, EMBD, .of = OF_LAYER, .how = ONE_ADDED},
    END};

const struct name_row names_head_norms[] = {
    {"self_attn.q_norm", "attn_q_norm", NONE, HEAD, .of = OF_ATTENDING},
    {"self_attn.k_norm", "attn_k_norm", NONE, HEAD, .of = OF_ATTENDING},
    END};

const struct name_row names_head_norms_one_added[] = {
    {"self_attn.q_norm", "attn_q_norm", NONE, HEAD, .of = OF_ATTENDING, .how = ONE_ADDED},
    {"self_attn.k_norm", "attn_k_norm", NONE, HEAD, .of = OF_ATTENDING, .how = ONE_ADDED},
    END};

const struct name_row names_whole_norms[] = {
    {"self_attn.q_norm", "attn_q_norm", NONE, QUERIES, .of = OF_LAYER},
    {"self_attn.k_norm", "attn_k_norm", NONE, KEYS, .of = OF_LAYER},
    END};

/* ---- attention ---- */

#define ATTENTION(bias_of_qkv, bias_of_output)                                                               \
    {"self_attn.q_proj", "attn_q", QUERIES, EMBD, .of = OF_LAYER, .bias = bias_of_qkv},                      \
        {"self_attn.k_proj", "attn_k", KEYS, EMBD, .of = OF_LAYER, .bias = bias_of_qkv},                     \
        {"self_attn.v_proj", "attn_v", KEYS, EMBD, .of = OF_LAYER, .bias = bias_of_qkv},                     \
    {                                                                                                        \
        "self_attn.o_proj", "attn_output", EMBD, QUERIES, .of = OF_LAYER, .bias = bias_of_output             \
    }

const struct name_row names_attention[] = {ATTENTION(BIAS_OF_ATTENTION, BIAS_OF_ATTENTION), END};
const struct name_row names_attention_qwen2[] = {ATTENTION(BIAS_MUST, BIAS_NONE), END};
const struct name_row names_attention_plain[] = {ATTENTION(BIAS_NONE, BIAS_NONE), END};

const struct name_row names_attention_fused[] = {
    {"self_attn.qkv_proj", "attn_qkv", ALL_QKV, EMBD, .of = OF_LAYER},
    {"self_attn.o_proj", "attn_output", EMBD, QUERIES, .of = OF_LAYER},
    END};

const struct name_row names_attention_phi[] = {
    {"input_layernorm", "attn_norm", NONE, EMBD, .of = OF_LAYER, .bias = BIAS_MUST},
    {"self_attn.q_proj", "attn_q", QUERIES, EMBD, .of = OF_LAYER, .bias = BIAS_MUST},
    {"self_attn.k_proj", "attn_k", KEYS, EMBD, .of = OF_LAYER, .bias = BIAS_MUST},
    {"self_attn.v_proj", "attn_v", KEYS, EMBD, .of = OF_LAYER, .bias = BIAS_MUST},
    {"self_attn.dense", "attn_output", EMBD, QUERIES, .of = OF_LAYER, .bias = BIAS_MUST},
    END};

/* Matrices of GPT-2 have a row for each input. Its masks are buffers. */
const struct name_row names_layer_gpt2[] = {
    {"ln_1", "attn_norm", NONE, EMBD, .of = OF_LAYER, .bias = BIAS_MUST},
    {"attn.c_attn", "attn_qkv", ALL_QKV, EMBD, .of = OF_LAYER, .bias = BIAS_MUST, .how = TURNED},
    {"attn.c_proj", "attn_output", EMBD, QUERIES, .of = OF_LAYER, .bias = BIAS_MUST, .how = TURNED},
    {"ln_2", "ffn_norm", NONE, EMBD, .of = OF_LAYER, .bias = BIAS_MUST},
    {"mlp.c_fc", "ffn_up", FF, EMBD, .of = OF_LAYER, .bias = BIAS_MUST, .how = TURNED},
    {"mlp.c_proj", "ffn_down", EMBD, FF, .of = OF_LAYER, .bias = BIAS_MUST, .how = TURNED},
    {"attn.bias", NULL, NONE, NONE, .of = OF_LAYER, .need = NEVER, .bare = true},
    {"attn.masked_bias", NULL, NONE, NONE, .of = OF_LAYER, .need = NEVER, .bare = true},
    END};

/* ---- feed-forward ---- */

const struct name_row names_mlp[] = {
    {"mlp.gate_proj", "ffn_gate", FF, EMBD, .of = OF_LAYER, .bias = BIAS_OF_MLP},
    {"mlp.up_proj", "ffn_up", FF, EMBD, .of = OF_LAYER, .bias = BIAS_OF_MLP},
    {"mlp.down_proj", "ffn_down", EMBD, FF, .of = OF_LAYER, .bias = BIAS_OF_MLP},
    END};

const struct name_row names_mlp_fused[] = {{"mlp.gate_up_proj", "ffn_up", TWO_FF, EMBD, .of = OF_LAYER},
                                           {"mlp.down_proj", "ffn_down", EMBD, FF, .of = OF_LAYER},
                                           END};

const struct name_row names_mlp_phi[] = {{"mlp.fc1", "ffn_up", FF, EMBD, .of = OF_LAYER, .bias = BIAS_MUST},
                                         {"mlp.fc2", "ffn_down", EMBD, FF, .of = OF_LAYER, .bias = BIAS_MUST},
                                         END};

/* ---- experts ---- */

const struct name_row names_mixtral[] = {
    {"block_sparse_moe.gate", "ffn_gate_inp", EXPERTS, EMBD, .of = OF_LAYER},
    {"block_sparse_moe.experts.*.w1", "ffn_gate_exps", EXPERT_FF, EMBD, .of = OF_LAYER},
    {"block_sparse_moe.experts.*.w3", "ffn_up_exps", EXPERT_FF, EMBD, .of = OF_LAYER},
    {"block_sparse_moe.experts.*.w2", "ffn_down_exps", EMBD, EXPERT_FF, .of = OF_LAYER},
    END};

const struct name_row names_granite_experts[] = {
    {"block_sparse_moe.router.layer", "ffn_gate_inp", EXPERTS, EMBD, .of = OF_LAYER},
    {"block_sparse_moe.input_linear", "ffn_gate_exps", EXPERT_FF, EMBD, .of = OF_LAYER, .how = FIRST_HALF,
     .shape = STACKED},
    {"block_sparse_moe.input_linear", "ffn_up_exps", EXPERT_FF, EMBD, .of = OF_LAYER, .how = SECOND_HALF,
     .shape = STACKED},
    {"block_sparse_moe.output_linear", "ffn_down_exps", EMBD, EXPERT_FF, .of = OF_LAYER, .shape = STACKED},
    {"shared_mlp.input_linear", "ffn_gate_shexp", SHARED_FF, EMBD, .of = OF_LAYER, .need = SHARED_EXPERT,
     .how = FIRST_HALF},
    {"shared_mlp.input_linear", "ffn_up_shexp", SHARED_FF, EMBD, .of = OF_LAYER, .need = SHARED_EXPERT,
     .how = SECOND_HALF},
    {"shared_mlp.output_linear", "ffn_down_shexp", EMBD, SHARED_FF, .of = OF_LAYER, .need = SHARED_EXPERT},
    END};

#define SEPARATE                                                                                             \
    {"mlp.gate", "ffn_gate_inp", EXPERTS, EMBD, .of = OF_LAYER},                                             \
        {"mlp.experts.*.gate_proj", "ffn_gate_exps", EXPERT_FF, EMBD, .of = OF_LAYER,                        \
         .need = SEPARATE_EXPERTS},                                                                          \
        {"mlp.experts.*.up_proj", "ffn_up_exps", EXPERT_FF, EMBD, .of = OF_LAYER, .need = SEPARATE_EXPERTS}, \
    {                                                                                                        \
        "mlp.experts.*.down_proj", "ffn_down_exps", EMBD, EXPERT_FF, .of = OF_LAYER,                         \
                                                                     .need = SEPARATE_EXPERTS                \
    }
const struct name_row names_experts[] = {SEPARATE, END};

/* Of all experts gate and up in one, as in GGUF. */
const struct name_row names_experts_fused[] = {
    SEPARATE,
    {"mlp.experts.gate_up_proj", "ffn_gate_up_exps.weight", TWO_EXPERT_FF, EMBD, .of = OF_LAYER,
     .need = FUSED_EXPERTS, .shape = STACKED, .bare = true},
    {"mlp.experts.down_proj", "ffn_down_exps.weight", EMBD, EXPERT_FF, .of = OF_LAYER, .need = FUSED_EXPERTS,
     .shape = STACKED, .bare = true},
    END};

const struct name_row names_shared_expert[] = {
    {"mlp.shared_expert.gate_proj", "ffn_gate_shexp", SHARED_FF, EMBD, .of = OF_LAYER, .need = SHARED_EXPERT},
    {"mlp.shared_expert.up_proj", "ffn_up_shexp", SHARED_FF, EMBD, .of = OF_LAYER, .need = SHARED_EXPERT},
    {"mlp.shared_expert.down_proj", "ffn_down_shexp", EMBD, SHARED_FF, .of = OF_LAYER, .need = SHARED_EXPERT},
    {"mlp.shared_expert_gate", "ffn_gate_inp_shexp", NONE, EMBD, .of = OF_LAYER, .need = SHARED_EXPERT,
     .shape = ROW_OF_ONE},
    END};

/* ---- delta nets, and attention with gates beside them ---- */

const struct name_row names_norms_next[] = {
    {"input_layernorm", "attn_norm", NONE, EMBD, .of = OF_LAYER, .how = ONE_ADDED},
    {"post_attention_layernorm", "post_attention_norm", NONE, EMBD, .of = OF_LAYER, .how = ONE_ADDED},
    END};

const struct name_row names_attention_gated[] = {
    {"self_attn.q_proj", "attn_q", QUERIES_AND_GATES, EMBD, .of = OF_ATTENDING},
    {"self_attn.k_proj", "attn_k", KEYS, EMBD, .of = OF_ATTENDING},
    {"self_attn.v_proj", "attn_v", KEYS, EMBD, .of = OF_ATTENDING},
    {"self_attn.o_proj", "attn_output", EMBD, QUERIES, .of = OF_ATTENDING},
    END};

const struct name_row names_delta[] = {
    {"linear_attn.in_proj_qkv", "attn_qkv", DELTA_CHANNELS, EMBD, .of = OF_RECURRENT, .how = VALUE_HEADS},
    {"linear_attn.in_proj_z", "attn_gate", DELTA_VALUES, EMBD, .of = OF_RECURRENT, .how = VALUE_HEADS},
    {"linear_attn.in_proj_b", "ssm_beta", DELTA_HEADS, EMBD, .of = OF_RECURRENT, .how = VALUE_HEADS},
    {"linear_attn.in_proj_a", "ssm_alpha", DELTA_HEADS, EMBD, .of = OF_RECURRENT, .how = VALUE_HEADS},
    {"linear_attn.conv1d", "ssm_conv1d", DELTA_CHANNELS, TAPS, .of = OF_RECURRENT, .how = VALUE_HEADS,
     .shape = MIDDLE_ONE},
    {"linear_attn.dt_bias", "ssm_dt.bias", NONE, DELTA_HEADS, .of = OF_RECURRENT, .how = VALUE_HEADS,
     .bare = true},
    {"linear_attn.A_log", "ssm_a", NONE, DELTA_HEADS, .of = OF_RECURRENT, .how = DECAY, .bare = true},
    {"linear_attn.norm", "ssm_norm", NONE, DELTA_VALUE, .of = OF_RECURRENT},
    {"linear_attn.out_proj", "ssm_out", EMBD, DELTA_VALUES, .of = OF_RECURRENT, .how = VALUE_COLUMNS},
    END};

const struct name_row names_delta_next[] = {
    {"linear_attn.in_proj_qkvz", "ssm_in", DELTA_ALL, EMBD, .of = OF_RECURRENT},
    {"linear_attn.in_proj_ba", "ssm_ba", TWO_DELTA_HEADS, EMBD, .of = OF_RECURRENT},
    {"linear_attn.conv1d", "ssm_conv1d", DELTA_CHANNELS, TAPS, .of = OF_RECURRENT, .shape = MIDDLE_ONE},
    {"linear_attn.dt_bias", "ssm_dt.bias", NONE, DELTA_HEADS, .of = OF_RECURRENT, .bare = true},
    {"linear_attn.A_log", "ssm_a", NONE, DELTA_HEADS, .of = OF_RECURRENT, .how = DECAY, .bare = true},
    {"linear_attn.norm", "ssm_norm", NONE, DELTA_VALUE, .of = OF_RECURRENT},
    {"linear_attn.out_proj", "ssm_out", EMBD, DELTA_VALUES, .of = OF_RECURRENT},
    END};

/* ---- gpt-oss ---- */

const struct name_row names_attention_gpt_oss[] = {
    ATTENTION(BIAS_MUST, BIAS_MUST),
    {"self_attn.sinks", "attn_sinks.weight", NONE, HEADS, .of = OF_LAYER, .bare = true},
    END};

/* Gate and up take turns, row by row. */
const struct name_row names_experts_gpt_oss[] = {
    {"mlp.router", "ffn_gate_inp", EXPERTS, EMBD, .of = OF_LAYER, .bias = BIAS_MUST},
    {"mlp.experts.gate_up_proj_blocks", "ffn_gate_exps.weight", EXPERT_FF, EMBD, .of = OF_LAYER,
     .need = MXFP4_EXPERTS, .how = EVEN_ROWS, .shape = STACKED_BLOCKS, .bare = true},
    {"mlp.experts.gate_up_proj_blocks", "ffn_up_exps.weight", EXPERT_FF, EMBD, .of = OF_LAYER,
     .need = MXFP4_EXPERTS, .how = ODD_ROWS, .shape = STACKED_BLOCKS, .bare = true},
    {"mlp.experts.down_proj_blocks", "ffn_down_exps.weight", EMBD, EXPERT_FF, .of = OF_LAYER,
     .need = MXFP4_EXPERTS, .shape = STACKED_BLOCKS, .bare = true},
    {"mlp.experts.gate_up_proj", "ffn_gate_exps.weight", EXPERT_FF, EMBD, .of = OF_LAYER,
     .need = PLAIN_EXPERTS, .how = EVEN_ROWS, .shape = STACKED_TURNED, .bare = true},
    {"mlp.experts.gate_up_proj", "ffn_up_exps.weight", EXPERT_FF, EMBD, .of = OF_LAYER, .need = PLAIN_EXPERTS,
     .how = ODD_ROWS, .shape = STACKED_TURNED, .bare = true},
    {"mlp.experts.down_proj", "ffn_down_exps.weight", EMBD, EXPERT_FF, .of = OF_LAYER, .need = PLAIN_EXPERTS,
     .shape = STACKED_TURNED, .bare = true},
    {"mlp.experts.gate_up_proj_bias", "ffn_gate_exps.bias", NONE, EXPERT_FF, .of = OF_LAYER, .how = EVEN_ROWS,
     .shape = STACKED, .bare = true},
    {"mlp.experts.gate_up_proj_bias", "ffn_up_exps.bias", NONE, EXPERT_FF, .of = OF_LAYER, .how = ODD_ROWS,
     .shape = STACKED, .bare = true},
    {"mlp.experts.down_proj_bias", "ffn_down_exps.bias", NONE, EMBD, .of = OF_LAYER, .shape = STACKED,
     .bare = true},
    END};

/* ---- Gemma 4 ---- */

const struct name_row names_outer_gemma4[] = {
    {"model.embed_tokens", "token_embd", VOCAB, EMBD, .of = OF_MODEL},
    {"model.norm", "output_norm", NONE, EMBD, .of = OF_MODEL},
    {"lm_head", "output", VOCAB, EMBD, .of = OF_MODEL, .need = UNTIED},
    {"model.embed_tokens_per_layer", "per_layer_token_embd", VOCAB, ALL_LAYER_EMBD, .of = OF_MODEL,
     .need = LAYER_EMBEDDINGS},
    {"model.per_layer_model_projection", "per_layer_model_proj", ALL_LAYER_EMBD, EMBD, .of = OF_MODEL,
     .need = LAYER_EMBEDDINGS},
    {"model.per_layer_projection_norm", "per_layer_proj_norm", NONE, LAYER_EMBD, .of = OF_MODEL,
     .need = LAYER_EMBEDDINGS},
    END};

/* Nothing is added to their weights. */
const struct name_row names_norms_gemma4[] = {
    {"input_layernorm", "attn_norm", NONE, EMBD, .of = OF_LAYER},
    {"post_attention_layernorm", "post_attention_norm", NONE, EMBD, .of = OF_LAYER},
    {"pre_feedforward_layernorm", "ffn_norm", NONE, EMBD, .of = OF_LAYER},
    {"post_feedforward_layernorm", "post_ffw_norm", NONE, EMBD, .of = OF_LAYER},
    {"layer_scalar", "layer_output_scale.weight", NONE, ONE, .of = OF_LAYER, .bare = true},
    END};

const struct name_row names_attention_gemma4[] = {
    {"self_attn.q_proj", "attn_q", QUERIES, EMBD, .of = OF_LAYER},
    {"self_attn.k_proj", "attn_k", KEYS, EMBD, .of = OF_LAYER, .need = OWN_KEYS},
    {"self_attn.v_proj", "attn_v", KEYS, EMBD, .of = OF_LAYER, .need = OWN_VALUES},
    {"self_attn.o_proj", "attn_output", EMBD, QUERIES, .of = OF_LAYER},
    {"self_attn.q_norm", "attn_q_norm", NONE, HEAD, .of = OF_LAYER},
    {"self_attn.k_norm", "attn_k_norm", NONE, HEAD, .of = OF_LAYER, .need = OWN_KEYS},
    END};

const struct name_row names_experts_gemma4[] = {
    {"router.proj", "ffn_gate_inp", EXPERTS, EMBD, .of = OF_LAYER, .need = BESIDE_EXPERTS},
    {"router.scale", "ffn_gate_inp.scale", NONE, EMBD, .of = OF_LAYER, .need = BESIDE_EXPERTS, .bare = true},
    {"router.per_expert_scale", "ffn_down_exps.scale", NONE, EXPERTS, .of = OF_LAYER, .need = BESIDE_EXPERTS,
     .bare = true},
    {"experts.gate_up_proj", "ffn_gate_up_exps.weight", TWO_EXPERT_FF, EMBD, .of = OF_LAYER,
     .need = BESIDE_EXPERTS, .shape = STACKED, .bare = true},
    {"experts.down_proj", "ffn_down_exps.weight", EMBD, EXPERT_FF, .of = OF_LAYER, .need = BESIDE_EXPERTS,
     .shape = STACKED, .bare = true},
    {"pre_feedforward_layernorm_2", "pre_ffw_norm_2", NONE, EMBD, .of = OF_LAYER, .need = BESIDE_EXPERTS},
    {"post_feedforward_layernorm_1", "post_ffw_norm_1", NONE, EMBD, .of = OF_LAYER, .need = BESIDE_EXPERTS},
    {"post_feedforward_layernorm_2", "post_ffw_norm_2", NONE, EMBD, .of = OF_LAYER, .need = BESIDE_EXPERTS},
    END};

const struct name_row names_layer_embeddings[] = {
    {"per_layer_input_gate", "inp_gate", LAYER_EMBD, EMBD, .of = OF_LAYER, .need = LAYER_EMBEDDINGS},
    {"per_layer_projection", "proj", EMBD, LAYER_EMBD, .of = OF_LAYER, .need = LAYER_EMBEDDINGS},
    {"post_per_layer_input_norm", "post_norm", NONE, EMBD, .of = OF_LAYER, .need = LAYER_EMBEDDINGS},
    END};
