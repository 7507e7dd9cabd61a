/* SPDX-License-Identifier: MIT */
/* The pass part by part: the stream here, what is inside a layer in inspect_attention.c, inspect_kv.c,
 * inspect_delta.c, inspect_feed_forward.c, inspect_experts.c and inspect_inputs.c. */

#include "cuda/check/inspect.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "cuda/check/inspect_compare.h"
#include "cuda/check/inspect_parts.h"
#include "cuda/check/reference.h"

static int check_rows(struct inspection *look)
{
    struct step_row rows[INSPECTION_ROWS];
    int r = inspection_bring(look, look->pass->memory.rows, look->n_rows * sizeof *rows, rows);
    for (uint32_t i = 0; i < look->n_rows && r == 0; i++) {
        const struct inspect_site site = {"resolve", NULL, 0, i, 0};
        if (rows[i].position != look->first + i)
            return inspect_differ(look, &site, 0, rows[i].position, look->first + i);
        if (rows[i].id != look->ids[i])
            return inspect_differ(look, &site, 1, rows[i].id, look->ids[i]);
    }
    return r;
}

static int check_embedding(struct inspection *look)
{
    const struct workspace *w = look->pass->workspace;
    const struct model_params *params = &look->model->params;
    const struct model_tensor *positions = &look->model->tensors[TENSOR_POSITIONS];
    int r = inspect_bring_rows(look, w->stream, w->embd_stride * sizeof(float), look->stream);
    for (uint32_t i = 0; i < look->n_picked && r == 0; i++) {
        const struct model_tensor *table = &look->model->tensors[TENSOR_EMBEDDING];
        const struct inspect_site site = {"embed", table, 0, look->picked[i], 1e-6};
        reference_row_of(table, (uint32_t)look->ids[look->picked[i]], look->weights);
        for (uint32_t k = 0; k < params->n_embd; k++)
            look->expected[k] = (double)params->embedding_scale * (double)look->weights[k];
        const uint32_t position = look->first + look->picked[i];
        if (positions->weight && position < positions->rows) {
            reference_row_of(positions, position, look->weights);
            for (uint32_t k = 0; k < params->n_embd; k++)
                look->expected[k] += (double)look->weights[k];
        }
        r = inspect_compare(look, &site, look->stream + (size_t)i * w->embd_stride, look->expected,
                            params->n_embd);
    }
    return r;
}

/* Of a half of two parts: what each of row i is normed to, added, in look->more, which has experts' part. */
static void join_parts(struct inspection *look, uint32_t i, const struct model_layer *from)
{
    const uint32_t n = look->model->params.n_embd, stride = look->pass->workspace->embd_stride;
    const struct norm *norm = &from->traits.norm;
    for (uint32_t k = 0; k < n; k++)
        look->expected[k] = (double)look->shared[(size_t)i * stride + k];
    reference_norm(norm, &from->tensors[TENSOR_PLAIN_POST_NORM], look->expected, n, look->weights,
                   look->expected);
    reference_norm(norm, &from->tensors[TENSOR_EXPERT_POST_NORM], look->more, n, look->weights, look->more);
    for (uint32_t k = 0; k < n; k++)
        look->more[k] += look->expected[k];
}

static bool has_parts(const struct model_layer *layer, enum tensor_role post_norm)
{
    return post_norm == TENSOR_FFN_POST_NORM && layer->traits.experts.beside;
}

/* What delta makes of row i of the stream, into look->expected. */
static void add_delta(struct inspection *look, uint32_t i, uint32_t layer, enum tensor_role post_norm)
{
    const uint32_t n = look->model->params.n_embd, stride = look->pass->workspace->embd_stride;
    const struct model_layer *from = &look->model->layers[layer];
    for (uint32_t k = 0; k < n; k++)
        look->more[k] = (double)look->delta[(size_t)i * stride + k];
    if (has_parts(from, post_norm))
        join_parts(look, i, from);
    reference_norm(&from->traits.norm, &from->tensors[post_norm], look->more, n, look->weights, look->more);
    const bool scales = post_norm == pass_last_norm(&from->traits) && from->traits.stream_scale;
    if (scales)
        reference_row_of(&from->tensors[TENSOR_STREAM_SCALE], 0, look->weights);
    for (uint32_t k = 0; k < n; k++)
        look->expected[k] = ((double)look->stream[(size_t)i * stride + k] +
                             (double)from->traits.residual_scale * look->more[k]) *
                            (scales ? (double)look->weights[0] : 1);
}

/* The end of a half, or of another part: its last product, what that makes of the stream, and the norm of
 * what comes next; `next` NULL: only the product. */
static int check_half(struct inspection *look, uint32_t layer, enum tensor_role matrix, const struct held *x,
                      enum tensor_role post_norm, const struct norm *norm, const struct model_tensor *next)
{
    const struct model_layer *from = &look->model->layers[layer];
    const bool experts = matrix == TENSOR_DOWN && from->traits.experts.n > 0;
    const bool fused =
        !experts && look->n_rows == 1 && !look->pass->invariant && !pass_is_large(look->pass, look->n_rows);
    const char *kernel = fused && next ? "multiply_norm" : "multiply";
    const char *norms = fused ? kernel : has_parts(from, post_norm) ? "norm_parts" : "norm";
    const struct workspace *w = look->pass->workspace;
    const size_t row_bytes = w->embd_stride * sizeof(float);
    int r = inspect_bring_rows(look, w->delta, row_bytes, look->delta);
    if (r == 0 && experts)
        r = inspect_mixture(look, layer);
    else if (r == 0)
        r = inspect_layer_product(look, kernel, layer, matrix, x, look->delta, w->embd_stride);
    if (r < 0 || !next)
        return r;
    for (uint32_t i = 0; i < look->n_picked && r == 0; i++) {
        const struct inspect_site site = {norms, NULL, layer, look->picked[i], OFF_ROW};
        float *stream = look->stream + (size_t)i * w->embd_stride;
        add_delta(look, i, layer, post_norm);
        r = inspection_bring(look, w->stream + (size_t)look->picked[i] * w->embd_stride, row_bytes, stream);
        if (r == 0)
            r = inspect_compare(look, &site, stream, look->expected, look->model->params.n_embd);
    }
    return r < 0 ? r : inspect_norm(look, norms, layer, norm, next);
}

static const struct model_tensor no_vector;

/* The layer's last part. */
static int check_last(struct inspection *look, uint32_t layer, enum tensor_role matrix)
{
    const struct model *model = look->model;
    const bool last = layer + 1 == model->params.n_layers;
    const struct model_layer *next = &model->layers[last ? layer : layer + 1];
    return check_half(look, layer, matrix, &look->activated, pass_last_norm(&model->layers[layer].traits),
                      &next->traits.norm, last ? NULL : &next->tensors[TENSOR_ATTENTION_NORM]);
}

static int check_down(struct inspection *look, uint32_t layer)
{
    const struct layer_traits *traits = &look->model->layers[layer].traits;
    return traits->n_layer_embd > 0 ? check_half(look, layer, TENSOR_DOWN, &look->activated,
                                                 TENSOR_FFN_POST_NORM, &traits->norm, &no_vector)
                                    : check_last(look, layer, TENSOR_DOWN);
}

static int check_attention_output(struct inspection *look, uint32_t layer)
{
    const struct model_layer *from = &look->model->layers[layer];
    const enum tensor_role output =
        from->traits.mixer == MIXER_DELTA ? TENSOR_DELTA_OUTPUT : TENSOR_ATTENTION_OUTPUT;
    return check_half(look, layer, output, &look->attended, TENSOR_ATTENTION_POST_NORM, &from->traits.norm,
                      from->traits.parallel ? &no_vector : &from->tensors[TENSOR_FFN_NORM]);
}

/* ---- the end of a pass ---- */

/* Output 0 is the pass's last row, which is the last that is picked; from here on it is the only one. */
static int check_output_norm(struct inspection *look)
{
    const struct model_params *params = &look->model->params;
    const uint32_t last = params->n_layers - 1;
    const struct model_layer *from = &look->model->layers[last];
    const enum tensor_role post_norm = pass_last_norm(&from->traits);
    const char *kernel = has_parts(from, post_norm) ? "norm_parts" : "norm";
    add_delta(look, look->n_picked - 1, last, post_norm);
    look->n_rows = look->n_picked = 1;
    look->picked[0] = 0;
    int r = inspect_bring_activations(look, &look->pass->workspace->normed, &look->normed);
    if (r < 0)
        return r;
    reference_norm(&look->model->output_norm, &look->model->tensors[TENSOR_OUTPUT_NORM], look->expected,
                   params->n_embd, look->weights, look->expected);
    return inspect_activations(look, kernel, params->n_layers, 0, &look->normed, look->expected,
                               params->n_embd);
}

static int check_logits(struct inspection *look)
{
    const struct workspace *w = look->pass->workspace;
    int r = inspection_bring(look, w->logits, w->vocab_stride * sizeof(float), look->logits);
    return r < 0 ? r
                 : inspect_product(look, "multiply", &look->model->tensors[TENSOR_OUTPUT], &look->normed,
                                   look->logits, w->vocab_stride);
}

static int check_attention_products(struct inspection *look, uint32_t layer)
{
    int r = inspect_qkv(look, layer);
    return r == 0 && look->model->layers[layer].traits.output_gate ? inspect_output_gate(look, layer) : r;
}

int inspect_part(void *arg, enum pass_part part, uint32_t layer)
{
    struct inspection *look = arg;
    const struct model_layer *first = &look->model->layers[0];
    const bool delta = look->model->layers[layer].traits.mixer == MIXER_DELTA;
    if (look->broken)
        return 0;
    switch (part) {
    case PASS_RESOLVE:
        return check_rows(look);
    case PASS_EMBED:
        return check_embedding(look);
    case PASS_BEGIN:
        return inspect_norm(look, "norm", 0, &first->traits.norm, &first->tensors[TENSOR_ATTENTION_NORM]);
    case PASS_QKV:
        return delta ? inspect_delta_products(look, layer) : check_attention_products(look, layer);
    case PASS_HEADS:
        return inspect_heads(look, layer);
    case PASS_DELTA_ROWS:
        return inspect_delta_rows(look, layer);
    case PASS_DELTA_RULE:
        return inspect_delta_rule(look, layer);
    case PASS_ATTENTION:
        return delta ? inspect_delta_gate(look, layer) : inspect_attention(look, layer);
    case PASS_ATTENTION_OUTPUT:
        return check_attention_output(look, layer);
    case PASS_PROJECT:
        return inspect_projection(look);
    case PASS_INPUTS:
        return inspect_inputs(look);
    case PASS_PLAIN:
        return inspect_activate(look, layer);
    case PASS_ROUTE:
        return inspect_route(look, layer);
    case PASS_ACTIVATE:
        return look->model->layers[layer].traits.experts.n > 0 ? inspect_experts(look, layer)
                                                               : inspect_activate(look, layer);
    case PASS_DOWN:
        return check_down(look, layer);
    case PASS_INPUT:
        return inspect_input(look, layer);
    case PASS_INPUT_END:
        return check_last(look, layer, TENSOR_INPUT_PROJECTION);
    case PASS_OUTPUT_NORM:
        return check_output_norm(look);
    case PASS_LOGITS:
        return check_logits(look);
    }
    return 0;
}

/* ---- memory ---- */

static void *take(struct inspection *look, size_t n, size_t size)
{
    void *memory = calloc(n + 1, size);
    look->lacking |= memory == NULL;
    look->taken[look->n_taken++] = memory;
    return memory;
}

static void take_held(struct inspection *look, uint32_t stride, struct held *ret_held)
{
    const size_t n = (size_t)INSPECTION_PICKED * stride;
    *ret_held = (struct held){.values = take(look, n, sizeof(float)),
                              .quants = take(look, n, 1),
                              .scales = take(look, n / 32, sizeof(float)),
                              .sums = take(look, n / 32, sizeof(float)),
                              .stride = stride};
}

static float *take_rows(struct inspection *look, uint32_t stride)
{
    return take(look, (size_t)INSPECTION_ROWS * stride, sizeof(float));
}

static void take_delta(struct inspection *look, struct held_delta *held)
{
    const struct workspace *w = look->pass->workspace;
    size_t most = 0;
    for (uint32_t l = 0; l < look->model->params.n_layers; l++) {
        const struct layer_traits *traits = &look->model->layers[l].traits;
        const size_t n = traits->mixer == MIXER_DELTA ? kernels_delta_numbers(&traits->delta) : 0;
        most = n > most ? n : most;
    }
    held->q = take_rows(look, w->q_stride);
    held->k = take_rows(look, w->kv_stride);
    held->v = take_rows(look, w->kv_stride);
    held->queries = take_rows(look, w->deltas.key_stride);
    held->keys = take_rows(look, w->deltas.key_stride);
    held->values = take_rows(look, w->deltas.value_stride);
    held->betas = take_rows(look, w->deltas.gate_stride);
    held->decays = take_rows(look, w->deltas.gate_stride);
    held->given = take_rows(look, w->deltas.value_stride);
    held->before = take(look, most, sizeof(float));
    held->after = take(look, most, sizeof(float));
    held->snapshot = take(look, most, sizeof(float));
}

int inspection_init(struct inspection *look, struct steps *steps, const struct pass *pass, struct error *err)
{
    const struct workspace *w = pass->workspace;
    const size_t pool = (size_t)INSPECTION_BLOCKS * BACKEND_BLOCK_TOKENS * w->kv_stride;
    size_t layer_bytes = 0;
    uint32_t dim = 0;
    for (uint32_t i = 0; i < w->n_shapes; i++) {
        const struct device_kv *kv = &w->attention[i].kv;
        layer_bytes = kv->layer_bytes > layer_bytes ? kv->layer_bytes : layer_bytes;
        dim = kv->dim > dim ? kv->dim : dim;
    }
    uint32_t most = w->embd_stride > w->q_stride ? w->embd_stride : w->q_stride;
    most = w->attended.stride > most ? w->attended.stride : most;
    most = w->deltas.gate_stride > most ? w->deltas.gate_stride : most;
    most = w->ff_stride > most ? w->ff_stride : most;
    most = w->experts.ff_stride > most ? w->experts.ff_stride : most;
    most = w->experts.scores_stride > most ? w->experts.scores_stride : most;
    most = w->inputs.projected_stride > most ? w->inputs.projected_stride : most;
    *look = (struct inspection){.steps = steps, .pass = pass, .model = pass->model, .err = err};
    take_held(look, w->embd_stride, &look->normed);
    take_held(look, w->attended.stride, &look->attended);
    take_held(look, w->ff_stride, &look->activated);
    look->stream = take(look, (size_t)INSPECTION_PICKED * w->embd_stride, sizeof(float));
    look->delta = take(look, (size_t)INSPECTION_PICKED * w->embd_stride, sizeof(float));
    look->q = take(look, (size_t)INSPECTION_PICKED * w->q_stride, sizeof(float));
    look->turned = take(look, (size_t)INSPECTION_PICKED * w->q_stride, sizeof(float));
    look->k = take(look, (size_t)INSPECTION_PICKED * w->kv_stride, sizeof(float));
    look->v = take(look, (size_t)INSPECTION_PICKED * w->kv_stride, sizeof(float));
    look->gate = take(look, (size_t)INSPECTION_PICKED * w->ff_stride, sizeof(float));
    look->up = take(look, (size_t)INSPECTION_PICKED * w->ff_stride, sizeof(float));
    look->scores = take(look, (size_t)INSPECTION_PICKED * w->experts.scores_stride, sizeof(float));
    look->expert_gate = take(look, w->experts.ff_stride, sizeof(float));
    look->expert_up = take(look, w->experts.ff_stride, sizeof(float));
    look->expert_out = take(look, w->embd_stride, sizeof(float));
    take_held(look, w->experts.ff_stride, &look->expert_activated);
    look->shared = take(look, (size_t)INSPECTION_PICKED * w->embd_stride, sizeof(float));
    look->share = take(look, INSPECTION_PICKED, sizeof(float));
    look->projected = take(look, (size_t)INSPECTION_PICKED * w->inputs.projected_stride, sizeof(float));
    look->inputs = take(look, (size_t)INSPECTION_PICKED * w->inputs.stride, sizeof(float));
    look->output_gate = take(look, (size_t)INSPECTION_PICKED * w->attended.stride, sizeof(float));
    look->betas = take(look, (size_t)INSPECTION_PICKED * w->deltas.gate_stride, sizeof(float));
    look->decays = take(look, (size_t)INSPECTION_PICKED * w->deltas.gate_stride, sizeof(float));
    if (pass->states->pool.n > 0)
        take_delta(look, &look->delta_net);
    look->keys = take(look, pool, sizeof(float));
    look->values = take(look, pool, sizeof(float));
    look->logits = take(look, w->vocab_stride, sizeof(float));
    look->weights = take(look, most, sizeof(float));
    look->expected = take(look, most, sizeof(double));
    look->more = take(look, most, sizeof(double));
    look->frequencies = take(look, dim, sizeof(double));
    look->block = take(look, layer_bytes, 1);
    return look->lacking ? -ENOMEM : 0;
}

void inspection_deinit(struct inspection *look)
{
    for (uint32_t i = 0; i < look->n_taken; i++)
        free(look->taken[i]);
}

void inspection_turn_to(struct inspection *look, const struct pass *pass, const uint32_t *names)
{
    look->pass = pass;
    look->model = pass->model;
    look->names = names;
}

void inspection_begin(struct inspection *look, uint32_t first, const int32_t *ids, uint32_t n,
                      uint32_t snapshot_rows)
{
    look->snapshot_rows = snapshot_rows;
    look->first = first;
    look->ids = ids;
    look->n_rows = n;
    look->n_picked = n < INSPECTION_PICKED ? n : INSPECTION_PICKED;
    for (uint32_t i = 0; i < look->n_picked; i++)
        look->picked[i] = look->n_picked > 1 ? i * (n - 1) / (look->n_picked - 1) : 0;
}
