/* SPDX-License-Identifier: MIT */
/* The workspace of a pass: every buffer is taken when the backend opens, so that serving allocates nothing.
 *
 * Rows are padded with zeros to a multiple of 32, the block of rounding; nothing ever writes there but zeros.
 * Between two steps nothing else in a row matters, so its pages may be forgotten (memory.h): they are zeros.
 * Layers that turn alike share the tables of their angles. */

#include "cpu/forward/forward.h"

#include <errno.h>

#include "model/frequencies.h"

static uint32_t padded(uint32_t n)
{
    return (n + KERNELS_BLOCK - 1) / KERNELS_BLOCK * KERNELS_BLOCK;
}

/* For a step, which writes them before it reads them. */
static int take_floats(struct memory *memory, size_t rows, size_t stride, float **ret_floats)
{
    void *floats;
    int r = memory_take_scratch(memory, rows * stride * sizeof(float), &floats);
    if (r == 0)
        *ret_floats = floats;
    return r;
}

static int take_tiles(struct memory *memory, uint32_t rows, uint32_t stride, struct activations *x)
{
    void *tiles;
    rows = (rows + KERNELS_MANY - 1) / KERNELS_MANY * KERNELS_MANY;
    int r = memory_take_scratch(memory, (size_t)rows * stride, &tiles);
    if (r == 0)
        r = take_floats(memory, rows, stride / KERNELS_BLOCK, &x->tile_scales);
    if (r == 0)
        r = take_floats(memory, rows, stride / KERNELS_BLOCK, &x->tile_sums);
    if (r == 0)
        x->tiles = tiles;
    return r;
}

static int take_activations(struct memory *memory, uint32_t rows, uint32_t stride, bool tiles,
                            struct activations *x)
{
    void *quants, *half_sums;
    uint32_t blocks = stride / KERNELS_BLOCK;
    x->stride = stride;
    int r = take_floats(memory, rows, stride, &x->values);
    if (r == 0)
        r = take_floats(memory, rows, blocks, &x->scales);
    if (r == 0)
        r = take_floats(memory, rows, blocks, &x->sums);
    if (r == 0)
        r = memory_take_scratch(memory, (size_t)rows * stride, &quants);
    if (r == 0)
        r = memory_take_scratch(memory, (size_t)rows * blocks * 2 * sizeof(int16_t), &half_sums);
    if (r < 0)
        return r;
    x->quants = quants;
    x->half_sums = half_sums;
    return tiles ? take_tiles(memory, rows, stride, x) : 0;
}

static int take_scratch(struct forward *forward, struct memory *memory, bool float_activations)
{
    uint32_t n = threads_count(forward->threads);
    size_t columns = float_activations ? forward->weights->max_columns : 0;
    void *attention, *multiply;
    int r = memory_take(memory, n * sizeof(float *), &attention);
    if (r == 0)
        r = memory_take(memory, n * sizeof(float *), &multiply);
    if (r < 0)
        return r;
    forward->attention_scratch = attention;
    forward->multiplier.scratch = multiply;
    size_t floats = 0;
    for (uint32_t l = 0; l < forward->model->params.n_layers; l++) {
        const struct layer_traits *traits = &forward->model->layers[l].traits;
        const struct kv_layer *kv = &forward->kv->layers[layer_kv_of(traits, l)];
        const size_t needs = traits->mixer == MIXER_ATTENTION
                                 ? attention_scratch(kv, traits->heads.n / traits->heads.n_kv)
                                 : 0;
        floats = needs > floats ? needs : floats;
    }
    if (floats < forward->layer_inputs_stride)
        floats = forward->layer_inputs_stride;
    for (uint32_t i = 0; i < n && r == 0; i++) {
        r = take_floats(memory, 1, floats, &forward->attention_scratch[i]);
        if (r == 0)
            r = take_floats(memory, columns, KERNELS_ROWS, &forward->multiplier.scratch[i]);
    }
    return r;
}

/* What the pieces of a workspace's layers are wide enough for. */
struct widths {
    uint32_t queries, keys, values, outputs; /* of a mixer */
    uint32_t n_state_heads;                  /* value heads of a delta net; 0: no layer has one */
    uint32_t state_keys, state_values;       /* with vectors filled up to a multiple of eight */
    uint32_t state_row;                      /* before its convolution */
    uint32_t n_ff; /* of layers without experts and of shared ones; 0: there are none */
    uint32_t n_experts, n_used, n_expert_ff; /* 0: no layer has experts */
    bool beside;                             /* some layer has a plain half beside experts */
};

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static void widen_for_attention(struct widths *widths, const struct head_shape *heads)
{
    widths->queries = larger(widths->queries, heads->n * heads->dim);
    widths->keys = larger(widths->keys, heads->n_kv * heads->dim);
    widths->values = larger(widths->values, heads->n_kv * heads->dim);
    widths->outputs = larger(widths->outputs, heads->n * heads->dim);
}

static void widen_for_delta_net(struct widths *widths, const struct delta_net *net)
{
    const struct delta_widths w = delta_widths_of(net);
    widths->queries = larger(widths->queries, w.queries);
    widths->keys = larger(widths->keys, w.keys);
    widths->values = larger(widths->values, w.values);
    /* The last head may be written beyond its end. */
    widths->outputs = larger(widths->outputs, (net->n_value_heads - 1) * net->value_dim + w.value_dim);
    widths->n_state_heads = larger(widths->n_state_heads, net->n_value_heads);
    widths->state_keys = larger(widths->state_keys, net->n_key_heads * w.key_dim);
    widths->state_values = larger(widths->state_values, net->n_value_heads * w.value_dim);
    widths->state_row = larger(widths->state_row, w.row);
}

static struct widths widths_of(const struct model *model)
{
    struct widths widths = {0};
    for (uint32_t l = 0; l < model->params.n_layers; l++) {
        const struct layer_traits *traits = &model->layers[l].traits;
        switch (traits->mixer) {
        case MIXER_ATTENTION:
            widen_for_attention(&widths, &traits->heads);
            break;
        case MIXER_DELTA:
            widen_for_delta_net(&widths, &traits->delta);
            break;
        }
        const struct experts *experts = &traits->experts;
        widths.n_ff = larger(widths.n_ff, traits->n_layer_embd);
        if (experts->n == 0 || experts->beside)
            widths.n_ff = larger(widths.n_ff, traits->n_ff);
        if (experts->n == 0)
            continue;
        widths.beside |= experts->beside;
        widths.n_ff = larger(widths.n_ff, experts->n_shared_ff);
        widths.n_experts = larger(widths.n_experts, experts->n);
        widths.n_used = larger(widths.n_used, experts->n_used);
        widths.n_expert_ff = larger(widths.n_expert_ff, experts->n_ff);
    }
    return widths;
}

static int take_uints(struct memory *memory, size_t n, uint32_t **ret_uints)
{
    void *uints;
    int r = memory_take(memory, n * sizeof **ret_uints, &uints);
    if (r == 0)
        *ret_uints = uints;
    return r;
}

static int take_products(struct memory *memory, size_t n, struct product **ret_products)
{
    void *products;
    int r = memory_take(memory, n * sizeof **ret_products, &products);
    if (r == 0)
        *ret_products = products;
    return r;
}

/* Without tiles: an expert has a few rows of a pass, and they begin anywhere. */
static int take_experts(struct experts_workspace *work, struct memory *memory, const struct widths *widths,
                        uint32_t max_rows, uint32_t embd_stride)
{
    const size_t assignments = (size_t)max_rows * widths->n_used;
    if (assignments > UINT32_MAX)
        return -ENOMEM;
    if (assignments == 0)
        return 0;
    work->scores_stride = padded(widths->n_experts);
    work->ff_stride = padded(widths->n_expert_ff);
    work->embd_stride = embd_stride;
    const struct {
        uint32_t **uints;
        size_t n;
    } all[] = {{&work->experts, assignments},
               {&work->places, assignments},
               {&work->assignments, assignments},
               {&work->first_place, (size_t)work->scores_stride + 1}};
    int r = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all && r == 0; i++)
        r = take_uints(memory, all[i].n, all[i].uints);
    if (r == 0)
        r = take_floats(memory, max_rows, work->scores_stride, &work->scores);
    if (r == 0)
        r = take_floats(memory, assignments, 1, &work->weights);
    if (r == 0)
        r = take_products(memory, 2 * (size_t)widths->n_experts, &work->inputs);
    if (r == 0)
        r = take_products(memory, widths->n_experts, &work->outputs);
    if (r == 0)
        r = take_activations(memory, (uint32_t)assignments, embd_stride, false, &work->x);
    if (r == 0)
        r = take_activations(memory, (uint32_t)assignments, work->ff_stride, false, &work->activated);
    if (r == 0)
        r = take_floats(memory, assignments, work->ff_stride, &work->gate);
    if (r == 0)
        r = take_floats(memory, assignments, work->ff_stride, &work->up);
    return r < 0 ? r : take_floats(memory, assignments, embd_stride, &work->out);
}

static bool has_output_gates(const struct model *model)
{
    bool has = false;
    for (uint32_t l = 0; l < model->params.n_layers; l++)
        has |= model->layers[l].tensors[TENSOR_OUTPUT_GATE].weight != NULL;
    return has;
}

static int take_delta_nets(struct forward *forward, struct memory *memory, const struct widths *widths)
{
    struct delta_workspace *work = &forward->delta_work;
    const uint32_t rows = forward->max_rows, n_threads = threads_count(forward->threads);
    void *scratch, *runs;
    if (widths->n_state_heads == 0)
        return 0;
    work->key_stride = padded(widths->state_keys);
    work->value_stride = padded(widths->state_values);
    work->head_stride = padded(widths->n_state_heads);
    int r = take_floats(memory, rows, work->key_stride, &work->queries);
    if (r == 0)
        r = take_floats(memory, rows, work->key_stride, &work->keys);
    if (r == 0)
        r = take_floats(memory, rows, work->value_stride, &work->values);
    if (r == 0)
        r = take_floats(memory, rows, work->head_stride, &work->betas);
    if (r == 0)
        r = take_floats(memory, rows, work->head_stride, &work->decays);
    if (r == 0)
        r = memory_take(memory, rows * sizeof *forward->runs, &runs);
    if (r == 0)
        r = memory_take(memory, n_threads * sizeof *work->scratch, &scratch);
    if (r < 0)
        return r;
    forward->runs = runs;
    work->scratch = scratch;
    for (uint32_t i = 0; i < n_threads && r == 0; i++)
        r = take_floats(memory, 1, widths->state_row, &work->scratch[i]);
    return r;
}

static int take_workspace(struct forward *forward, struct memory *memory)
{
    const struct model_params *params = &forward->model->params;
    uint32_t rows = forward->max_rows;
    bool tiles = forward->kernels->has_tiles;
    forward->embd_stride = padded(params->n_embd);
    const struct widths widths = widths_of(forward->model);
    forward->q_stride = padded(widths.queries);
    forward->k_stride = padded(widths.keys);
    forward->v_stride = padded(widths.values);
    forward->output_gate_stride = padded(has_output_gates(forward->model) ? widths.outputs : 0);
    forward->ff_stride = padded(widths.n_ff);
    forward->vocab_stride = padded(params->n_vocab);
    forward->layer_inputs_stride = padded(params->n_layer_embd * params->n_layers);
    const struct {
        float **floats;
        uint32_t rows, stride;
    } all[] = {
        {&forward->stream, rows, forward->embd_stride},
        {&forward->delta, rows, forward->embd_stride},
        {&forward->q, rows, forward->q_stride},
        {&forward->k, rows, forward->k_stride},
        {&forward->v, rows, forward->v_stride},
        {&forward->output_gate, rows, forward->output_gate_stride},
        {&forward->beside, widths.beside ? rows : 0, forward->embd_stride},
        {&forward->layer_inputs, rows, forward->layer_inputs_stride},
        {&forward->gate, rows, forward->ff_stride},
        {&forward->up, rows, forward->ff_stride},
        {&forward->logits, rows < FORWARD_LOGITS ? rows : FORWARD_LOGITS, forward->vocab_stride},
    };
    int r = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all && r == 0; i++)
        r = take_floats(memory, all[i].rows, all[i].stride, all[i].floats);
    if (r == 0)
        r = take_activations(memory, rows, forward->embd_stride, tiles, &forward->normed);
    if (r == 0)
        r = take_activations(memory, rows, padded(widths.outputs), tiles, &forward->attended);
    if (r == 0)
        r = take_delta_nets(forward, memory, &widths);
    if (r == 0)
        r = take_activations(memory, rows, forward->ff_stride, tiles, &forward->activated);
    return r < 0 ? r : take_experts(&forward->experts, memory, &widths, rows, forward->embd_stride);
}

/* Ones, as long as the largest head. */
static int take_ones(struct forward *forward, struct memory *memory)
{
    const struct model *model = forward->model;
    uint32_t most = 0;
    for (uint32_t l = 0; l < model->params.n_layers; l++)
        if (model->layers[l].traits.value_norm)
            most = larger(most, model->layers[l].traits.heads.dim);
    void *ones;
    if (most == 0)
        return 0;
    int r = memory_take(memory, padded(most) * sizeof *forward->ones, &ones);
    if (r < 0)
        return r;
    forward->ones = ones;
    for (uint32_t i = 0; i < most; i++)
        forward->ones[i] = 1;
    return 0;
}

/* The rotation of a layer: an earlier layer's, or a new one. */
static int take_rotation(struct forward *forward, struct memory *memory, const struct rotary *rotary,
                         uint32_t *ret_rotation)
{
    uint32_t i = 0;
    while (i < forward->n_rotations && !rotary_is_alike(&forward->rotations[i].rotary, rotary))
        i++;
    *ret_rotation = i;
    if (i < forward->n_rotations)
        return 0;
    struct rotation *rotation = &forward->rotations[forward->n_rotations++];
    void *frequencies;
    int r = memory_take(memory, rotary->dims / 2 * sizeof(double), &frequencies);
    if (r == 0)
        r = take_floats(memory, forward->max_rows, rotary->dims, &rotation->cos_sin);
    if (r < 0)
        return r;
    rotation->rotary = *rotary;
    rotation->frequencies = frequencies;
    rotary_frequencies(rotary, rotary_factors(forward->model, forward->n_context), rotation->frequencies);
    return 0;
}

static int take_rotations(struct forward *forward, struct memory *memory)
{
    uint32_t n_layers = forward->model->params.n_layers;
    void *rotations, *rotation_of;
    int r = memory_take(memory, n_layers * sizeof *forward->rotations, &rotations);
    if (r == 0)
        r = memory_take(memory, n_layers * sizeof *forward->rotation_of, &rotation_of);
    if (r < 0)
        return r;
    forward->rotations = rotations;
    forward->rotation_of = rotation_of;
    for (uint32_t l = 0; l < n_layers && r == 0; l++)
        r = take_rotation(forward, memory, &forward->model->layers[l].traits.rotary,
                          &forward->rotation_of[l]);
    return r;
}

int forward_init(struct forward *forward, struct memory *memory, bool float_activations, struct error *err)
{
    void *tasks;
    forward->multiplier = (struct multiplier){forward->kernels, forward->threads, float_activations, NULL};
    int r = take_workspace(forward, memory);
    if (r == 0)
        r = take_scratch(forward, memory, float_activations);
    if (r == 0)
        r = take_rotations(forward, memory);
    if (r == 0)
        r = take_ones(forward, memory);
    if (r == 0)
        r = memory_take(memory, forward->max_rows * sizeof *forward->tasks, &tasks);
    if (r < 0)
        return error_set(err, r, "not enough memory for a workspace of %u rows", forward->max_rows);
    forward->tasks = tasks;
    return 0;
}
