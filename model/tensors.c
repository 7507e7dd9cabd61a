/* SPDX-License-Identifier: MIT */
/* The table of roles: names and shapes.
 *
 * A name is the stem, behind "blk.LAYER." where there is one a layer, and ".weight" or ".bias". Two roles may
 * share a stem, a whole and its first part: files that fuse the two call the whole by the part's name. */

#include "model/tensors.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What a dimension counts. */
enum extent {
    NONE, /* of rows: a vector */
    EMBD,
    VOCAB,
    CONTEXT,
    QUERIES,    /* of all heads */
    KEYS,       /* of all key/value heads */
    ALL_QKV,    /* queries, keys and values */
    HEADS,      /* one for each head of queries */
    QUERY_NORM, /* of one head, or of all */
    KEY_NORM,
    ROTARIES, /* pairs that turn */
    FF,
    TWO_FF,
    EXPERTS,
    EXPERT_FF,
    SHARED_FF
};

static const struct role {
    const char *stem;
    enum extent rows, columns;
    bool each_expert; /* one such matrix for each */
} roles[TENSOR_ROLES] = {
    [TENSOR_EMBEDDING] = {"token_embd", VOCAB, EMBD, false},
    [TENSOR_POSITIONS] = {"position_embd", CONTEXT, EMBD, false},
    [TENSOR_ROTARY_FACTORS] = {"rope_freqs", NONE, ROTARIES, false},
    [TENSOR_ROTARY_SHORT] = {"rope_factors_short", NONE, ROTARIES, false},
    [TENSOR_ROTARY_LONG] = {"rope_factors_long", NONE, ROTARIES, false},
    [TENSOR_OUTPUT_NORM] = {"output_norm", NONE, EMBD, false},
    [TENSOR_OUTPUT] = {"output", VOCAB, EMBD, false},
    [TENSOR_ATTENTION_NORM] = {"attn_norm", NONE, EMBD, false},
    [TENSOR_QKV] = {"attn_qkv", ALL_QKV, EMBD, false},
    [TENSOR_Q] = {"attn_q", QUERIES, EMBD, false},
    [TENSOR_Q_NORM] = {"attn_q_norm", NONE, QUERY_NORM, false},
    [TENSOR_K] = {"attn_k", KEYS, EMBD, false},
    [TENSOR_K_NORM] = {"attn_k_norm", NONE, KEY_NORM, false},
    [TENSOR_V] = {"attn_v", KEYS, EMBD, false},
    [TENSOR_SINKS] = {"attn_sinks", NONE, HEADS, false},
    [TENSOR_NAMED_POST_NORM] = {"post_attention_norm", NONE, EMBD, false},
    [TENSOR_ATTENTION_OUTPUT] = {"attn_output", EMBD, QUERIES, false},
    [TENSOR_ATTENTION_POST_NORM] = {"post_attention_norm", NONE, EMBD, false},
    [TENSOR_FFN_NORM] = {"ffn_norm", NONE, EMBD, false},
    [TENSOR_GATE_UP] = {"ffn_up", TWO_FF, EMBD, false},
    [TENSOR_GATE] = {"ffn_gate", FF, EMBD, false},
    [TENSOR_UP] = {"ffn_up", FF, EMBD, false},
    [TENSOR_DOWN] = {"ffn_down", EMBD, FF, false},
    [TENSOR_ROUTER] = {"ffn_gate_inp", EXPERTS, EMBD, false},
    [TENSOR_EXPERT_GATES] = {"ffn_gate_exps", EXPERT_FF, EMBD, true},
    [TENSOR_EXPERT_UPS] = {"ffn_up_exps", EXPERT_FF, EMBD, true},
    [TENSOR_EXPERT_DOWNS] = {"ffn_down_exps", EMBD, EXPERT_FF, true},
    [TENSOR_SHARED_GATE] = {"ffn_gate_shexp", SHARED_FF, EMBD, false},
    [TENSOR_SHARED_UP] = {"ffn_up_shexp", SHARED_FF, EMBD, false},
    [TENSOR_SHARED_DOWN] = {"ffn_down_shexp", EMBD, SHARED_FF, false},
    [TENSOR_FFN_POST_NORM] = {"post_ffw_norm", NONE, EMBD, false},
};

_Static_assert(TENSOR_ROLES <= 8 * sizeof(tensor_set), "a set has a bit for each role");

/* Hyperparameters have been checked: no product of these overflows. */
static uint32_t extent_of(const struct model_params *params, const struct layer_traits *traits,
                          enum extent extent)
{
    const struct experts none = {0}, *experts = traits ? &traits->experts : &none;
    const bool whole = traits && traits->qk_norm == QK_NORM_ALL;
    const uint32_t queries = params->n_heads * params->head_dim, keys = params->n_kv_heads * params->head_dim;
    const uint32_t extents[] = {
        [NONE] = 0,
        [EMBD] = params->n_embd,
        [VOCAB] = params->n_vocab,
        [CONTEXT] = params->n_context,
        [QUERIES] = queries,
        [KEYS] = keys,
        [ALL_QKV] = queries + 2 * keys,
        [HEADS] = params->n_heads,
        [QUERY_NORM] = whole ? queries : params->head_dim,
        [KEY_NORM] = whole ? keys : params->head_dim,
        [ROTARIES] = params->rope_dims / 2,
        [FF] = params->n_ff,
        [TWO_FF] = 2 * params->n_ff,
        [EXPERTS] = experts->n,
        [EXPERT_FF] = experts->n_ff,
        [SHARED_FF] = experts->n_shared_ff,
    };
    return extents[extent];
}

struct tensor_shape tensor_shape(const struct model_params *params, const struct layer_traits *traits,
                                 enum tensor_role role)
{
    const struct role *r = &roles[role];
    return (struct tensor_shape){.rows = extent_of(params, traits, r->rows),
                                 .columns = extent_of(params, traits, r->columns),
                                 .count = r->each_expert ? extent_of(params, traits, EXPERTS) : 1};
}

bool tensor_is_vector(enum tensor_role role)
{
    return roles[role].rows == NONE;
}

tensor_set tensor_parts(enum tensor_role role)
{
    if (role == TENSOR_QKV)
        return TENSOR_BIT(TENSOR_Q) | TENSOR_BIT(TENSOR_K) | TENSOR_BIT(TENSOR_V);
    if (role == TENSOR_GATE_UP)
        return TENSOR_BIT(TENSOR_GATE) | TENSOR_BIT(TENSOR_UP);
    if (role == TENSOR_NAMED_POST_NORM)
        return TENSOR_BIT(TENSOR_FFN_NORM);
    return TENSOR_BIT(role);
}

const char *tensor_name(enum tensor_role role, uint32_t layer, bool bias, char ret_name[TENSOR_NAME_SIZE])
{
    const char *end = bias ? "bias" : "weight";
    if (role < TENSOR_LAYER_ROLES)
        snprintf(ret_name, TENSOR_NAME_SIZE, "%s.%s", roles[role].stem, end);
    else
        snprintf(ret_name, TENSOR_NAME_SIZE, "blk.%" PRIu32 ".%s.%s", layer, roles[role].stem, end);
    return ret_name;
}

bool tensor_role_of(struct bytes name, enum tensor_role *ret_role, uint32_t *ret_layer, bool *ret_bias)
{
    char text[TENSOR_NAME_SIZE], again[TENSOR_NAME_SIZE];
    uint32_t layer = 0;
    if (name.len >= sizeof text)
        return false;
    memcpy(text, name.data, name.len);
    text[name.len] = 0;
    sscanf(text, "blk.%" SCNu32, &layer);
    /* Parts before wholes: who shares a name with a part is seldom what is meant. */
    for (int role = TENSOR_ROLES - 1; role >= 0; role--)
        for (int bias = 0; bias < 2; bias++) {
            tensor_name((enum tensor_role)role, layer, bias, again);
            if (strcmp(text, again) != 0)
                continue;
            *ret_role = (enum tensor_role)role;
            *ret_layer = layer;
            *ret_bias = bias;
            return true;
        }
    return false;
}
