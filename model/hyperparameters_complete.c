/* SPDX-License-Identifier: MIT */
/* What hyperparameters say together. The numbers are checked against each other once, here and in 64 bits;
 * whoever computes with them later need not. What files leave out is filled in. */

#include "model/hyperparameters.h"

#include <errno.h>
#include <inttypes.h>

/* Backends share out heads times rows of a step, counted in 32 bits. */
#define MOST_HEADS (1u << 16)

static int check_width(const char *what, uint64_t n, uint64_t of, struct error *err)
{
    if (n * of > HYPERPARAMETERS_LIMIT) /* neither is beyond HYPERPARAMETERS_LIMIT */
        return error_set(err, -EINVAL,
                         "%" PRIu64 " %s of %" PRIu64 ": more than %u in a row are not supported", n, what,
                         of, HYPERPARAMETERS_LIMIT);
    return 0;
}

static int check_sharing(uint32_t n_heads, uint32_t n_kv_heads, struct error *err)
{
    return n_heads % n_kv_heads == 0
               ? 0
               : error_set(err, -EINVAL, "%" PRIu32 " heads cannot share %" PRIu32 " key/value heads evenly",
                           n_heads, n_kv_heads);
}

static int complete_heads(struct model_params *params, struct error *err)
{
    if (params->n_kv_heads == 0)
        params->n_kv_heads = params->n_heads;
    int r = check_sharing(params->n_heads, params->n_kv_heads, err);
    for (uint32_t i = 0; i < params->n_layers && params->kv_heads_listed && r == 0; i++)
        r = check_sharing(params->n_heads, params->listed_kv_heads[i], err);
    if (r < 0)
        return error_prefix(err, r, "hyperparameter %s.attention.head_count_kv", params->architecture);
    if (params->head_dim == 0) {
        if (params->n_embd % params->n_heads != 0)
            return error_set(err, -EINVAL,
                             "hyperparameter %s.attention.head_count: embedding length %" PRIu32
                             " is not a multiple of %" PRIu32 " heads",
                             params->architecture, params->n_embd, params->n_heads);
        params->head_dim = params->n_embd / params->n_heads;
    }
    const uint32_t dim =
        params->window_head_dim > params->head_dim ? params->window_head_dim : params->head_dim;
    r = check_width("heads", params->n_heads, dim, err);
    if (r < 0)
        return r;
    if (params->n_heads > MOST_HEADS)
        return error_out_of_range(err, -EINVAL, "number of heads", params->n_heads, 1, MOST_HEADS);
    return check_width("rows of queries, keys and values", 3, params->n_heads * dim, err);
}

static int check_rotary_dims(uint32_t dims, uint32_t head_dim, struct error *err)
{
    return dims % 2 == 0 && dims <= head_dim ? 0
                                             : error_set(err, -EINVAL,
                                                         "%" PRIu32 " rotary dimensions in heads of %" PRIu32
                                                         ": an even number up to that is required",
                                                         dims, head_dim);
}

/* A layer borrows from an earlier one that has a window as it has one, or none as it has none. */
static int check_borrowing(const struct architecture *architecture, const struct model_params *params,
                           struct error *err)
{
    const uint32_t n = params->n_borrowing_layers, first = n < params->n_layers ? params->n_layers - n : 0;
    for (uint32_t i = first; i < params->n_layers && n > 0; i++) {
        uint32_t from = 0;
        while (from < first && params_list_window(params, from) != params_list_window(params, i))
            from++;
        if (from == first)
            return error_set(err, -EINVAL,
                             "hyperparameter %s.attention.shared_kv_layers is %" PRIu32 " of %" PRIu32
                             ": no layer %s a window precedes layer %" PRIu32
                             " to share keys and values with it",
                             architecture->name, n, params->n_layers,
                             params_list_window(params, i) ? "with" : "without", i);
    }
    return 0;
}

/* Of layers with a window, where they differ from the others. */
static int complete_windows(const struct architecture *architecture, struct model_params *params,
                            struct error *err)
{
    if (!architecture->layers_differ)
        return 0;
    if (params->window == 0)
        return error_set(err, -EINVAL, "hyperparameter %s.attention.sliding_window is missing or 0",
                         architecture->name);
    if (params->window_head_dim == 0)
        params->window_head_dim = params->head_dim;
    if (params->window_rope_dims == 0)
        params->window_rope_dims = params->window_head_dim;
    int r = check_rotary_dims(params->window_rope_dims, params->window_head_dim, err);
    if (r < 0)
        return error_prefix(err, r, "hyperparameter %s.rope.dimension_count_swa", architecture->name);
    r = check_width("numbers of each layer", params->n_layers, params->n_layer_embd, err);
    return r < 0 ? r : check_borrowing(architecture, params, err);
}

static int complete_rope(const struct architecture *architecture, struct model_params *params,
                         struct error *err)
{
    if (architecture->layer.rotary.kind == ROTARY_NONE)
        params->rope_dims = 0;
    else if (params->rope_dims == 0)
        params->rope_dims = params->head_dim;
    int r = check_rotary_dims(params->rope_dims, params->head_dim, err);
    if (r < 0)
        return error_prefix(err, r, "hyperparameter %s.rope.dimension_count", architecture->name);
    if (params->rope_base == 0)
        params->rope_base = 10000;
    if (params->rope_factor == 0)
        params->rope_factor = 1;
    if (params->rope_attention_factor == 0)
        params->rope_attention_factor = 1;
    if (params->rope_fast_turns == 0)
        params->rope_fast_turns = 32;
    if (params->rope_slow_turns == 0)
        params->rope_slow_turns = 1;
    if (params->rope_scaling == ROTARY_YARN && !(params->rope_base > 1))
        return error_set(err, -EINVAL, "YaRN scaling of a rotary base of %g: a base above 1 is required",
                         (double)params->rope_base);
    return 0;
}

/* Does any layer attend? */
static bool attends(const struct model_params *params)
{
    if (!params->recurrent_listed)
        return params->attention_interval <= params->n_layers;
    for (uint32_t i = 0; i < params->n_layers; i++)
        if (!(params->recurrent_layers[i / 64] >> (i % 64) & 1))
            return true;
    return false;
}

static int complete_delta_nets(const struct architecture *architecture, struct model_params *params,
                               struct error *err)
{
    const uint32_t keys = params->n_state_groups, values = params->n_state_heads;
    if (!architecture->delta_nets)
        return 0;
    if (params->attention_interval == 0)
        params->attention_interval = 4;
    if (params->n_taps == 0 || keys == 0 || values == 0 || params->state_size == 0 ||
        params->state_inner == 0)
        return error_set(err, -EINVAL, "the size of the recurrent layers' states is missing");
    if (!attends(params))
        return error_set(err, -EINVAL,
                         "hyperparameter %s.%s: none of %" PRIu32 " layers attends, which is not "
                         "supported",
                         architecture->name,
                         params->recurrent_listed ? "attention.recurrent_layers" : "full_attention_interval",
                         params->n_layers);
    if (values % keys != 0)
        return error_set(err, -EINVAL,
                         "hyperparameter %s.ssm.time_step_rank: %" PRIu32 " value heads cannot share %" PRIu32
                         " key heads evenly",
                         architecture->name, values, keys);
    if (params->state_inner % values != 0)
        return error_set(err, -EINVAL,
                         "hyperparameter %s.ssm.inner_size: %" PRIu32 " is not a multiple of %" PRIu32
                         " value heads",
                         architecture->name, params->state_inner, values);
    if (values > MOST_HEADS)
        return error_out_of_range(err, -EINVAL, "number of value heads", values, 1, MOST_HEADS);
    int r = check_width("key heads", keys, params->state_size, err);
    if (r == 0)
        r = check_width("rows of queries, keys, values and gates", 4,
                        keys * params->state_size + params->state_inner, err);
    return r < 0 ? r : check_width("numbers of a state", params->state_inner, params->state_size, err);
}

static int complete_experts(const struct architecture *architecture, struct model_params *params,
                            struct error *err)
{
    if (params->n_expert_ff == 0)
        params->n_expert_ff = params->n_ff;
    if (params->n_ff == 0)
        params->n_ff = params->n_expert_ff;
    if (params->n_ff == 0)
        return error_set(err, -EINVAL, "hyperparameter %s.expert_feed_forward_length is missing",
                         architecture->name);
    if (architecture->always_experts && params->n_experts == 0)
        return error_set(err, -EINVAL, "hyperparameter %s.expert_count is missing or 0", architecture->name);
    if (params->n_experts_used > params->n_experts || (params->n_experts > 0 && params->n_experts_used == 0))
        return error_set(err, -EINVAL,
                         "hyperparameter %s.expert_used_count: %" PRIu32 " of %" PRIu32
                         " experts cannot be used",
                         architecture->name, params->n_experts_used, params->n_experts);
    int r = check_width("experts", params->n_experts, params->n_expert_ff, err);
    if (r == 0)
        r = check_width("shared experts", params->n_shared_experts, params->n_expert_ff, err);
    if (r == 0 && params->n_shared_ff == 0)
        params->n_shared_ff = params->n_shared_experts * params->n_expert_ff;
    return r;
}

int hyperparameters_complete(const struct architecture *architecture, struct model_params *params,
                             struct error *err)
{
    if (params->embedding_scale == 0)
        params->embedding_scale = 1;
    if (params->residual_scale == 0)
        params->residual_scale = 1;
    if (params->logit_scale == 0 && architecture->logits_divided)
        return error_set(err, -EINVAL, "hyperparameter %s.logit_scale is missing or 0", architecture->name);
    if (params->logit_scale == 0)
        params->logit_scale = 1;
    params->logit_factor = architecture->logits_divided ? 1 / params->logit_scale : params->logit_scale;
    int r = complete_heads(params, err);
    if (r == 0)
        r = complete_windows(architecture, params, err);
    if (r == 0)
        r = complete_rope(architecture, params, err);
    if (r == 0)
        r = complete_delta_nets(architecture, params, err);
    if (r == 0)
        r = complete_experts(architecture, params, err);
    if (r == 0)
        r = check_width("feed-forward rows", 2, params->n_ff, err);
    if (r == 0 && architecture->complete)
        architecture->complete(params);
    return r;
}
