/* SPDX-License-Identifier: MIT */
/* Which layers are of a kind. */

#include "cuda/host/kinds.h"

static bool are_alike(const struct model_tensor *a, const struct model_tensor *b)
{
    if (!a->weight || !b->weight)
        return a->weight == b->weight;
    return a->weight->format == b->weight->format && a->rows == b->rows && a->columns == b->columns &&
           a->count == b->count && (a->bias == NULL) == (b->bias == NULL);
}

static bool mix_alike(const struct layer_traits *a, const struct layer_traits *b)
{
    const struct delta_net *x = &a->delta, *y = &b->delta;
    return a->mixer == b->mixer && a->output_gate == b->output_gate && x->n_key_heads == y->n_key_heads &&
           x->n_value_heads == y->n_value_heads && x->key_dim == y->key_dim && x->value_dim == y->value_dim &&
           x->n_taps == y->n_taps && x->neighbours == y->neighbours;
}

static bool compute_alike(const struct layer_traits *a, const struct layer_traits *b)
{
    return a->norm.kind == b->norm.kind && a->parallel == b->parallel && a->rotary.kind == b->rotary.kind &&
           a->rotary.dims == b->rotary.dims && a->window == b->window &&
           (a->attention_cap > 0) == (b->attention_cap > 0) && a->qk_norm == b->qk_norm &&
           (a->query_growth.factor == 0) == (b->query_growth.factor == 0) && a->sinks == b->sinks &&
           a->heads.n == b->heads.n && a->heads.n_kv == b->heads.n_kv && a->heads.dim == b->heads.dim &&
           a->values_are_keys == b->values_are_keys && a->value_norm == b->value_norm &&
           a->borrows_kv == b->borrows_kv && a->n_layer_embd == b->n_layer_embd &&
           a->stream_scale == b->stream_scale && a->activation == b->activation && a->gated == b->gated &&
           a->experts.n == b->experts.n && a->experts.n_used == b->experts.n_used &&
           a->experts.shared_gate == b->experts.shared_gate && a->experts.beside == b->experts.beside &&
           a->experts.router_norm == b->experts.router_norm && a->experts.scaled == b->experts.scaled &&
           mix_alike(a, b);
}

static bool is_of_kind(const struct model_layer *a, const struct model_layer *b)
{
    for (uint32_t role = TENSOR_LAYER_ROLES; role < TENSOR_ROLES; role++)
        if (!are_alike(&a->tensors[role], &b->tensors[role]))
            return false;
    return compute_alike(&a->traits, &b->traits);
}

/* The kind of a layer; n: it is none of those so far. */
static uint32_t kind_of(const struct kinds *kinds, const struct model_layer *layer)
{
    uint32_t k = 0;
    while (k < kinds->n && !is_of_kind(&kinds->model_layers[k], layer))
        k++;
    return k;
}

/* Layer l stands for its kind. One that borrows keys and values does so from the kind of its lender, which
 * came before it. */
static void add(struct kinds *kinds, const struct pass *pass, uint32_t l)
{
    const struct model_layer *layers = pass->model->layers;
    const uint32_t k = kinds->n;
    kinds->layers[k] = l;
    kinds->model_layers[k] = layers[l];
    kinds->device_layers[k] = pass->weights->layers[l];
    kinds->offsets[k] = pass->states->pool.n > 0 ? pass->states->offsets[l] : 0;
    kinds->pools_layers[k] = pass->pools->layers[l];
    if (layers[l].traits.borrows_kv) {
        const uint32_t lender = kind_of(kinds, &layers[layers[l].traits.kv_layer]);
        kinds->model_layers[k].traits.kv_layer = lender;
        kinds->pools_layers[k] = kinds->pools_layers[lender];
    }
    kinds->n++;
}

void kinds_init(struct kinds *kinds, const struct pass *pass)
{
    kinds->n = 0;
    for (uint32_t l = 0; l < pass->model->params.n_layers && kinds->n < KINDS_MOST; l++)
        if (kind_of(kinds, &pass->model->layers[l]) == kinds->n)
            add(kinds, pass, l);
    kinds->model = *pass->model;
    kinds->model.params.n_layers = kinds->n;
    kinds->model.layers = kinds->model_layers;
    kinds->weights = *pass->weights;
    kinds->weights.layers = kinds->device_layers;
    kinds->pools = *pass->pools;
    kinds->pools.layers = kinds->pools_layers;
    kinds->states = (struct device_states){pass->states->pool, kinds->offsets};
    kinds->pass = *pass;
    kinds->pass.model = &kinds->model;
    kinds->pass.weights = &kinds->weights;
    kinds->pass.pools = &kinds->pools;
    kinds->pass.states = &kinds->states;
    kinds->pass.large_from = UINT32_MAX;
}
