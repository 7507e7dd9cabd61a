/* SPDX-License-Identifier: MIT */
/* The table of roles: names and shapes.
 *
 * A name is the stem, behind "blk.LAYER." where there is one a layer, and ".weight" or ".bias"; a few stems
 * have no ".weight" behind them. Two roles may share a stem, a whole and its first part: files that fuse the
 * two call the whole by the part's name. */

#include "model/tensors.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/number.h"

/* What a dimension counts. */
enum extent {
    NONE, /* of rows: a vector */
    ONE,
    EMBD,
    VOCAB,
    LABELS,
    CONTEXT,
    QUERIES,    /* of all heads */
    KEYS,       /* of all key/value heads, or of all key heads */
    VALUES,     /* of all key/value heads, or of all value heads */
    ALL_QKV,    /* queries, keys and values, and gates where queries have them */
    Q_GATE,     /* queries and gates */
    ALL_DELTA,  /* queries, keys, values and gates */
    CHANNELS,   /* of a convolution */
    TAPS,       /* of one of them */
    STATES,     /* value heads */
    TWO_STATES, /* twice as many */
    VALUE,      /* of one value head */
    OUTPUTS,    /* what a mixer hands to its last product */
    HEADS,      /* one for each head of queries */
    QUERY_NORM, /* of one head, or of all */
    KEY_NORM,
    ROTARIES, /* pairs that turn */
    FF,
    TWO_FF,
    EXPERTS,
    EXPERT_FF,
    TWO_EXPERT_FF,
    SHARED_FF,
    LAYER_EMBD,
    LAYER_EMBDS /* of all layers */
};

static const struct role {
    const char *stem;
    enum extent rows, columns;
    bool each_expert; /* one such matrix for each */
    bool bare;        /* no ".weight" behind the stem */
} roles[TENSOR_ROLES] = {
    [TENSOR_EMBEDDING] = {"token_embd", VOCAB, EMBD, false},
    [TENSOR_POSITIONS] = {"position_embd", CONTEXT, EMBD, false},
    [TENSOR_ROTARY_FACTORS] = {"rope_freqs", NONE, ROTARIES, false},
    [TENSOR_ROTARY_SHORT] = {"rope_factors_short", NONE, ROTARIES, false},
    [TENSOR_ROTARY_LONG] = {"rope_factors_long", NONE, ROTARIES, false},
    [TENSOR_LAYER_EMBEDDING] = {"per_layer_token_embd", VOCAB, LAYER_EMBDS, false},
    [TENSOR_LAYER_PROJECTION] = {"per_layer_model_proj", LAYER_EMBDS, EMBD, false},
    [TENSOR_LAYER_PROJECTION_NORM] = {"per_layer_proj_norm", NONE, LAYER_EMBD, false},
    [TENSOR_OUTPUT_NORM] = {"output_norm", NONE, EMBD, false},
    [TENSOR_OUTPUT] = {"output", VOCAB, EMBD, false},
    [TENSOR_RANK_HEAD] = {"cls.output", LABELS, EMBD, false},
    [TENSOR_ATTENTION_NORM] = {"attn_norm", NONE, EMBD, false},
    [TENSOR_QKV] = {"attn_qkv", ALL_QKV, EMBD, false},
    [TENSOR_DELTA_IN] = {"ssm_in", ALL_DELTA, EMBD, false},
    [TENSOR_Q_GATE] = {"attn_q", Q_GATE, EMBD, false},
    [TENSOR_Q] = {"attn_q", QUERIES, EMBD, false},
    [TENSOR_Q_NORM] = {"attn_q_norm", NONE, QUERY_NORM, false},
    [TENSOR_K] = {"attn_k", KEYS, EMBD, false},
    [TENSOR_K_NORM] = {"attn_k_norm", NONE, KEY_NORM, false},
    [TENSOR_V] = {"attn_v", VALUES, EMBD, false},
    [TENSOR_OUTPUT_GATE] = {"attn_gate", OUTPUTS, EMBD, false},
    [TENSOR_SINKS] = {"attn_sinks", NONE, HEADS, false},
    [TENSOR_TAPS] = {"ssm_conv1d", CHANNELS, TAPS, false},
    [TENSOR_BETA_ALPHA] = {"ssm_ba", TWO_STATES, EMBD, false},
    [TENSOR_BETA] = {"ssm_beta", STATES, EMBD, false},
    [TENSOR_ALPHA] = {"ssm_alpha", STATES, EMBD, false},
    [TENSOR_STEP_BIAS] = {"ssm_dt.bias", NONE, STATES, false, .bare = true},
    [TENSOR_DECAY] = {"ssm_a", NONE, STATES, false, .bare = true},
    [TENSOR_DELTA_NORM] = {"ssm_norm", NONE, VALUE, false},
    [TENSOR_DELTA_OUTPUT] = {"ssm_out", EMBD, OUTPUTS, false},
    [TENSOR_NAMED_POST_NORM] = {"post_attention_norm", NONE, EMBD, false},
    [TENSOR_ATTENTION_OUTPUT] = {"attn_output", EMBD, OUTPUTS, false},
    [TENSOR_ATTENTION_POST_NORM] = {"post_attention_norm", NONE, EMBD, false},
    [TENSOR_FFN_NORM] = {"ffn_norm", NONE, EMBD, false},
    [TENSOR_GATE_UP] = {"ffn_up", TWO_FF, EMBD, false},
    [TENSOR_GATE] = {"ffn_gate", FF, EMBD, false},
    [TENSOR_UP] = {"ffn_up", FF, EMBD, false},
    [TENSOR_DOWN] = {"ffn_down", EMBD, FF, false},
    [TENSOR_PLAIN_POST_NORM] = {"post_ffw_norm_1", NONE, EMBD, false},
    [TENSOR_ROUTER_NORM] = {"ffn_gate_inp.scale", NONE, EMBD, false, .bare = true},
    [TENSOR_EXPERT_NORM] = {"pre_ffw_norm_2", NONE, EMBD, false},
    [TENSOR_EXPERT_SCALES] = {"ffn_down_exps.scale", NONE, EXPERTS, false, .bare = true},
    [TENSOR_EXPERT_POST_NORM] = {"post_ffw_norm_2", NONE, EMBD, false},
    [TENSOR_INPUT_GATE] = {"inp_gate", LAYER_EMBD, EMBD, false},
    [TENSOR_INPUT_PROJECTION] = {"proj", EMBD, LAYER_EMBD, false},
    [TENSOR_INPUT_POST_NORM] = {"post_norm", NONE, EMBD, false},
    [TENSOR_ROUTER] = {"ffn_gate_inp", EXPERTS, EMBD, false},
    [TENSOR_EXPERT_GATE_UPS] = {"ffn_gate_up_exps", TWO_EXPERT_FF, EMBD, true},
    [TENSOR_EXPERT_GATES] = {"ffn_gate_exps", EXPERT_FF, EMBD, true},
    [TENSOR_EXPERT_UPS] = {"ffn_up_exps", EXPERT_FF, EMBD, true},
    [TENSOR_EXPERT_DOWNS] = {"ffn_down_exps", EMBD, EXPERT_FF, true},
    [TENSOR_SHARED_ROUTER] = {"ffn_gate_inp_shexp", NONE, EMBD, false},
    [TENSOR_SHARED_GATE] = {"ffn_gate_shexp", SHARED_FF, EMBD, false},
    [TENSOR_SHARED_UP] = {"ffn_up_shexp", SHARED_FF, EMBD, false},
    [TENSOR_SHARED_DOWN] = {"ffn_down_shexp", EMBD, SHARED_FF, false},
    [TENSOR_FFN_POST_NORM] = {"post_ffw_norm", NONE, EMBD, false},
    [TENSOR_STREAM_SCALE] = {"layer_output_scale", NONE, ONE, false},
};

_Static_assert(TENSOR_ROLES <= 8 * sizeof(tensor_set), "a set has a bit for each role");

/* Numbers of a row of queries, keys and values. */
struct widths {
    uint32_t queries, keys, values;
};

/* Without traits, of a model's own roles, none is asked for. */
static struct widths widths_of(const struct layer_traits *traits)
{
    const struct layer_traits none = {0}, *t = traits ? traits : &none;
    const struct head_shape *heads = &t->heads;
    const struct delta_net *net = &t->delta;
    switch (t->mixer) {
    case MIXER_ATTENTION:
        return (struct widths){heads->n * heads->dim, heads->n_kv * heads->dim, heads->n_kv * heads->dim};
    case MIXER_DELTA:
        return (struct widths){net->n_key_heads * net->key_dim, net->n_key_heads * net->key_dim,
                               net->n_value_heads * net->value_dim};
    }
    return (struct widths){0};
}

/* Hyperparameters have been checked: no product of these overflows. */
static uint32_t extent_of(const struct model_params *params, const struct layer_traits *traits,
                          enum extent extent)
{
    const struct layer_traits none = {0}, *t = traits ? traits : &none;
    const bool whole = t->qk_norm == QK_NORM_ALL;
    const struct widths w = widths_of(t);
    const uint32_t outputs = t->mixer == MIXER_ATTENTION ? w.queries : w.values;
    const uint32_t extents[] = {
        [NONE] = 0,
        [ONE] = 1,
        [EMBD] = params->n_embd,
        [VOCAB] = params->n_vocab,
        [LABELS] = params->n_labels,
        [CONTEXT] = params->n_context,
        [QUERIES] = w.queries,
        [KEYS] = w.keys,
        [VALUES] = w.values,
        [ALL_QKV] = w.queries + w.keys + w.values + (t->output_gate ? outputs : 0),
        [Q_GATE] = w.queries + outputs,
        [ALL_DELTA] = w.queries + w.keys + w.values + outputs,
        [CHANNELS] = w.queries + w.keys + w.values,
        [TAPS] = t->delta.n_taps,
        [STATES] = t->delta.n_value_heads,
        [TWO_STATES] = 2 * t->delta.n_value_heads,
        [VALUE] = t->delta.value_dim,
        [OUTPUTS] = outputs,
        [HEADS] = t->heads.n,
        [QUERY_NORM] = whole ? w.queries : t->heads.dim,
        [KEY_NORM] = whole ? w.keys : t->heads.dim,
        [ROTARIES] = params->rope_dims / 2,
        [FF] = t->n_ff,
        [TWO_FF] = 2 * t->n_ff,
        [EXPERTS] = t->experts.n,
        [EXPERT_FF] = t->experts.n_ff,
        [TWO_EXPERT_FF] = 2 * t->experts.n_ff,
        [SHARED_FF] = t->experts.n_shared_ff,
        [LAYER_EMBD] = params->n_layer_embd,
        [LAYER_EMBDS] = params->n_layer_embd * params->n_layers,
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

bool tensor_is_plain(enum tensor_role role)
{
    return tensor_is_vector(role) || role == TENSOR_TAPS;
}

bool tensor_is_norm(enum tensor_role role)
{
    const tensor_set others = TENSOR_BIT(TENSOR_SINKS) | TENSOR_BIT(TENSOR_STEP_BIAS) |
                              TENSOR_BIT(TENSOR_DECAY) | TENSOR_BIT(TENSOR_SHARED_ROUTER) |
                              TENSOR_BIT(TENSOR_DELTA_NORM) | TENSOR_BIT(TENSOR_EXPERT_SCALES) |
                              TENSOR_BIT(TENSOR_STREAM_SCALE);
    return tensor_is_vector(role) && !(others & TENSOR_BIT(role));
}

/* ---- tensors that several roles share ---- */

/* Roles that stand one behind the other, each with all its rows. */
static uint32_t in_a_row(const struct model_params *params, const struct layer_traits *traits,
                         const enum tensor_role *roles_of, uint32_t n, struct tensor_part *ret_parts)
{
    uint32_t first = 0;
    for (uint32_t i = 0; i < n; i++) {
        ret_parts[i] = (struct tensor_part){.role = roles_of[i], .first_row = first};
        first += tensor_shape(params, traits, roles_of[i]).rows;
    }
    return n;
}

/* Roles that take turns, so many times. */
static uint32_t in_turns(const struct model_params *params, const struct layer_traits *traits,
                         const enum tensor_role *roles_of, uint32_t n, uint32_t turns,
                         struct tensor_part *ret_parts)
{
    uint32_t first = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t run = tensor_shape(params, traits, roles_of[i]).rows / turns;
        ret_parts[i] = (struct tensor_part){.role = roles_of[i], .first_row = first, .run = run};
        first += run;
    }
    for (uint32_t i = 0; i < n; i++)
        ret_parts[i].apart = first;
    return n;
}

static const enum tensor_role qkv[] = {TENSOR_Q, TENSOR_K, TENSOR_V, TENSOR_OUTPUT_GATE};
static const enum tensor_role q_gate[] = {TENSOR_Q, TENSOR_OUTPUT_GATE};
static const enum tensor_role beta_alpha[] = {TENSOR_BETA, TENSOR_ALPHA};
static const enum tensor_role gate_up[] = {TENSOR_GATE, TENSOR_UP};
static const enum tensor_role expert_gate_ups[] = {TENSOR_EXPERT_GATES, TENSOR_EXPERT_UPS};

uint32_t tensor_parts(const struct model_params *params, const struct layer_traits *traits,
                      enum tensor_role role, struct tensor_part ret_parts[TENSOR_MOST_PARTS])
{
    const uint32_t key_heads = traits ? traits->delta.n_key_heads : 0; /* 0 but in delta nets */
    if (role == TENSOR_QKV)
        return traits->output_gate ? 0 : in_a_row(params, traits, qkv, 3, ret_parts);
    if (role == TENSOR_DELTA_IN)
        return key_heads > 0 ? in_turns(params, traits, qkv, 4, key_heads, ret_parts) : 0;
    if (role == TENSOR_Q_GATE)
        return traits->output_gate ? in_turns(params, traits, q_gate, 2, traits->heads.n, ret_parts) : 0;
    if (role == TENSOR_BETA_ALPHA)
        return key_heads > 0 ? in_turns(params, traits, beta_alpha, 2, key_heads, ret_parts) : 0;
    if (role == TENSOR_GATE_UP)
        return in_a_row(params, traits, gate_up, 2, ret_parts);
    if (role == TENSOR_EXPERT_GATE_UPS) /* each expert is a turn */
        return in_turns(params, traits, expert_gate_ups, 2, 1, ret_parts);
    ret_parts[0] = (struct tensor_part){.role = role == TENSOR_NAMED_POST_NORM ? TENSOR_FFN_NORM : role};
    return 1;
}

tensor_set tensor_part_set(const struct layer_traits *traits, enum tensor_role role)
{
    const struct model_params none = {0}; /* whatever the numbers are, the roles are the same */
    struct tensor_part parts[TENSOR_MOST_PARTS];
    tensor_set set = 0;
    for (uint32_t i = tensor_parts(&none, traits, role, parts); i-- > 0;)
        set |= TENSOR_BIT(parts[i].role);
    return set;
}

/* ---- names ---- */

const char *tensor_name(enum tensor_role role, uint32_t layer, bool bias, char ret_name[TENSOR_NAME_SIZE])
{
    const char *end = bias ? ".bias" : roles[role].bare ? "" : ".weight";
    if (role < TENSOR_LAYER_ROLES)
        snprintf(ret_name, TENSOR_NAME_SIZE, "%s%s", roles[role].stem, end);
    else
        snprintf(ret_name, TENSOR_NAME_SIZE, "blk.%" PRIu32 ".%s%s", layer, roles[role].stem, end);
    return ret_name;
}

bool tensor_layer_of(struct bytes name, uint32_t *ret_layer)
{
    static const char prefix[] = "blk.";
    const size_t len = sizeof prefix - 1;
    char number[16];
    struct error unused;
    if (name.len <= len || memcmp(name.data, prefix, len) != 0)
        return false;
    const char *begin = (const char *)name.data + len, *dot = memchr(begin, '.', name.len - len);
    if (!dot || (size_t)(dot - begin) >= sizeof number)
        return false;
    memcpy(number, begin, (size_t)(dot - begin));
    number[dot - begin] = 0;
    return number_read_u32(number, 0, UINT32_MAX, ret_layer, &unused) == 0;
}

bool tensor_role_of(struct bytes name, enum tensor_role *ret_role, uint32_t *ret_layer, bool *ret_bias)
{
    char text[TENSOR_NAME_SIZE], again[TENSOR_NAME_SIZE];
    uint32_t layer = 0;
    if (name.len >= sizeof text)
        return false;
    memcpy(text, name.data, name.len);
    text[name.len] = 0;
    tensor_layer_of(name, &layer);
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
