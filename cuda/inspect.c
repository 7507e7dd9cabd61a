/* SPDX-License-Identifier: MIT */
/* Comparing. What is allowed is a kernel's own rounding, in parts of the size of what it adds up. */

#include "cuda/inspect.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/layout.h"
#include "cuda/reference.h"
#include "cuda/wait.h"
#include "worker/model/frequencies.h"

#define OUTPUTS 8 /* of a matrix and row */

#define OFF_PRODUCT   2e-5
#define OFF_ROW       2e-4 /* norms, turned heads, activations */
#define OFF_HALF      1e-3 /* what is stored as f16 */
#define OFF_ATTENTION 2e-3 /* weights are f16 */

/* ---- verdicts ---- */

/* What is compared: a kernel's work, of a tensor where it has one. */
struct site {
    const char *kernel;
    const struct model_tensor *tensor; /* NULL: none */
    uint32_t layer, row;               /* of the pass */
    double off;
};

int inspection_refuse(struct inspection *look, const char *format, ...)
{
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return error_set(look->err, -ENODEV, "%s computes wrongly: %s",
                     device_properties(look->steps->device)->name, text);
}

static bool agree(double found, double expected, double size, double off)
{
    return fabs(found - expected) <= off * size + 1e-30;
}

static int differ(struct inspection *look, const struct site *site, uint32_t column, double found,
                  double expected)
{
    char what[160];
    if (!isfinite((float)expected)) {
        look->broken = true;
        return 0;
    }
    if (site->tensor) {
        const struct gguf_tensor *weight = site->tensor->weight;
        snprintf(what, sizeof what, "%.*s, %s, %u × %u", (int)weight->name.len,
                 (const char *)weight->name.data, format_traits(weight->format)->name, site->tensor->rows,
                 site->tensor->columns);
    } else {
        snprintf(what, sizeof what, "layer %u", site->layer);
    }
    return inspection_refuse(look, "kernel %s (%s), with %u rows: column %u of row %u is %.7g, not %.7g",
                             site->kernel, what, look->n_rows, column, site->row, found, expected);
}

static double largest(const double *x, uint32_t n)
{
    double most = 0;
    for (uint32_t i = 0; i < n; i++)
        most = fabs(x[i]) > most ? fabs(x[i]) : most;
    return most;
}

/* Columns of a row with what they should be, measured by the largest. */
static int compare(struct inspection *look, const struct site *site, const float *found,
                   const double *expected, uint32_t n)
{
    const double size = largest(expected, n);
    for (uint32_t i = 0; i < n; i++)
        if (!agree((double)found[i], expected[i], size, site->off))
            return differ(look, site, i, (double)found[i], expected[i]);
    return 0;
}

/* ---- from the device ---- */

int inspection_bring(struct inspection *look, const void *from, size_t bytes, void *to)
{
    struct steps *steps = look->steps;
    struct device_stream *stream = device_stream(steps->device);
    const size_t most = (size_t)STEPS_LOGITS_ROWS * look->pass->workspace->vocab_stride * sizeof(float);
    int r = 0;
    for (size_t done = 0; done < bytes && r == 0;) {
        const size_t n = bytes - done < most ? bytes - done : most;
        r = device_copy(stream, steps->logits, (const uint8_t *)from + done, n);
        if (r == 0)
            r = device_mark(stream, MARK_LOGITS);
        if (r == 0)
            r = device_wait_due(steps->device, MARK_LOGITS);
        if (r == 0)
            memcpy((uint8_t *)to + done, steps->logits, n);
        done += n;
    }
    return r;
}

/* The picked rows of an array. */
static int bring_rows(struct inspection *look, const void *from, size_t row_bytes, void *to)
{
    int r = 0;
    for (uint32_t i = 0; i < look->n_picked && r == 0; i++)
        r = inspection_bring(look, (const uint8_t *)from + look->picked[i] * row_bytes, row_bytes,
                             (uint8_t *)to + i * row_bytes);
    return r;
}

static int bring_activations(struct inspection *look, const struct device_activations *from, struct held *to)
{
    const size_t blocks = from->stride / 32;
    int r = bring_rows(look, from->values, from->stride * sizeof *to->values, to->values);
    if (r == 0)
        r = bring_rows(look, from->quants, from->stride, to->quants);
    if (r == 0)
        r = bring_rows(look, from->scales, blocks * sizeof *to->scales, to->scales);
    return r < 0 ? r : bring_rows(look, from->sums, blocks * sizeof *to->sums, to->sums);
}

/* ---- parts ---- */

/* Is a block of 32 rounded to the nearest, with its scale and sum? */
static bool is_rounded(const float *values, const int8_t *quants, double scale, double sum)
{
    double most = 0, total = 0, magnitudes = 0;
    for (uint32_t i = 0; i < 32; i++) {
        const int8_t quant = quants[i / 16 * 128 + i % 16];
        most = fabs((double)values[i]) > most ? fabs((double)values[i]) : most;
        total += quant;
        magnitudes += abs(quant);
        if (fabs((double)values[i] - scale * quant) > 0.501 * scale + 1e-30)
            return false;
    }
    return agree(scale, most / 127, most / 127, 1e-6) && agree(sum, scale * total, scale * magnitudes, 1e-6);
}

/* The picked rows of activations, whose values should be `expected` for row i, [n_columns]. */
static int check_activations(struct inspection *look, const char *kernel, uint32_t layer, uint32_t i,
                             const struct held *held, const double *expected, uint32_t n_columns)
{
    const struct site site = {kernel, NULL, layer, look->picked[i], OFF_ROW};
    const float *values = held->values + (size_t)i * held->stride;
    const int8_t *quants = held->quants + (size_t)i * held->stride;
    int r = compare(look, &site, values, expected, n_columns);
    for (uint32_t k = 0; k < held->stride && r == 0 && !look->broken; k += 32) {
        const size_t block = ((size_t)i * held->stride + k) / 32;
        if (!is_rounded(values + k, quants + layout_quant_place(k), (double)held->scales[block],
                        (double)held->sums[block]))
            r = inspection_refuse(look,
                                  "kernel %s (layer %u), with %u rows: columns %u … %u of row %u are not "
                                  "rounded to 8 bits",
                                  kernel, layer, look->n_rows, k, k + 31, look->picked[i]);
    }
    return r;
}

/* Which outputs of a matrix are looked at: its ends, and others that differ from tensor to tensor. */
static uint32_t output_of(const struct model_tensor *matrix, uint32_t row, uint32_t nth)
{
    if (nth < 2)
        return nth == 0 ? 0 : matrix->rows - 1;
    uint64_t x = (uintptr_t)matrix->weight->data / 32 + matrix->first_row + row * 64 + nth;
    x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9;
    return (uint32_t)((x ^ x >> 32) % matrix->rows);
}

/* Row i of a product: one output, with what the head does to it. */
static int check_output(struct inspection *look, const struct site *site, uint32_t output,
                        const struct reference_row *x, double found)
{
    const struct model_params *params = &look->model->params;
    double size, expected = reference_product(site->tensor, output, x, look->weights, &size);
    if (site->tensor == &look->model->tensors[TENSOR_OUTPUT]) {
        expected *= (double)params->logit_scale;
        size *= fabs((double)params->logit_scale);
        if (params->logit_cap > 0)
            expected = (double)params->logit_cap * tanh(expected / (double)params->logit_cap);
    }
    return agree(found, expected, size, site->off) ? 0 : differ(look, site, output, found, expected);
}

/* A product's outputs for the picked rows, [INSPECTION_PICKED][stride]: a few, and any that is no number. */
static int check_product(struct inspection *look, const char *kernel, const struct model_tensor *matrix,
                         const struct held *x, const float *found, uint32_t stride)
{
    int r = 0;
    for (uint32_t i = 0; i < look->n_picked; i++) {
        const struct site site = {kernel, matrix, 0, look->picked[i], OFF_PRODUCT};
        const struct reference_row row = {x->values + (size_t)i * x->stride,
                                          x->quants + (size_t)i * x->stride,
                                          x->scales + (size_t)i * x->stride / 32};
        const float *outputs = found + (size_t)i * stride;
        for (uint32_t nth = 0; nth < OUTPUTS && r == 0; nth++) {
            const uint32_t output = output_of(matrix, i, nth);
            r = check_output(look, &site, output, &row, (double)outputs[output]);
        }
        for (uint32_t output = 0; output < matrix->rows && r == 0 && !look->broken; output++)
            if (!isfinite(outputs[output]))
                r = check_output(look, &site, output, &row, (double)outputs[output]);
    }
    return r;
}

static int check_rows(struct inspection *look)
{
    struct step_row rows[INSPECTION_ROWS];
    int r = inspection_bring(look, look->pass->memory.rows, look->n_rows * sizeof *rows, rows);
    for (uint32_t i = 0; i < look->n_rows && r == 0; i++) {
        const struct site site = {"resolve", NULL, 0, i, 0};
        if (rows[i].position != look->first + i)
            return differ(look, &site, 0, rows[i].position, look->first + i);
        if (rows[i].id != look->ids[i])
            return differ(look, &site, 1, rows[i].id, look->ids[i]);
    }
    return r;
}

static int check_embedding(struct inspection *look)
{
    const struct workspace *w = look->pass->workspace;
    const struct model_params *params = &look->model->params;
    const struct model_tensor *positions = &look->model->tensors[TENSOR_POSITIONS];
    int r = bring_rows(look, w->stream, w->embd_stride * sizeof(float), look->stream);
    for (uint32_t i = 0; i < look->n_picked && r == 0; i++) {
        const struct model_tensor *table = &look->model->tensors[TENSOR_EMBEDDING];
        const struct site site = {"embed", table, 0, look->picked[i], 1e-6};
        reference_row_of(table, (uint32_t)look->ids[look->picked[i]], look->weights);
        for (uint32_t k = 0; k < params->n_embd; k++)
            look->expected[k] = (double)params->embedding_scale * (double)look->weights[k];
        const uint32_t position = look->first + look->picked[i];
        if (positions->weight && position < positions->rows) {
            reference_row_of(positions, position, look->weights);
            for (uint32_t k = 0; k < params->n_embd; k++)
                look->expected[k] += (double)look->weights[k];
        }
        r = compare(look, &site, look->stream + (size_t)i * w->embd_stride, look->expected, params->n_embd);
    }
    return r;
}

/* What the picked rows of the stream are normed to. */
static int check_norm(struct inspection *look, const char *kernel, uint32_t layer, const struct norm *norm,
                      const struct model_tensor *vector)
{
    const uint32_t n = look->model->params.n_embd;
    int r = bring_activations(look, &look->pass->workspace->normed, &look->normed);
    for (uint32_t i = 0; i < look->n_picked && r == 0; i++) {
        for (uint32_t k = 0; k < n; k++)
            look->expected[k] = (double)look->stream[(size_t)i * look->normed.stride + k];
        reference_norm(norm, vector, look->expected, n, look->weights, look->expected);
        r = check_activations(look, kernel, layer, i, &look->normed, look->expected, n);
    }
    return r;
}

/* What delta makes of row i of the stream, into look->expected. */
static void add_delta(struct inspection *look, uint32_t i, uint32_t layer, enum tensor_role post_norm)
{
    const uint32_t n = look->model->params.n_embd, stride = look->pass->workspace->embd_stride;
    const struct model_layer *from = &look->model->layers[layer];
    for (uint32_t k = 0; k < n; k++)
        look->more[k] = (double)look->delta[(size_t)i * stride + k];
    reference_norm(&from->traits.norm, &from->tensors[post_norm], look->more, n, look->weights, look->more);
    for (uint32_t k = 0; k < n; k++)
        look->expected[k] = (double)look->stream[(size_t)i * stride + k] +
                            (double)from->traits.residual_scale * look->more[k];
}

/* A half's end: its last product, what that makes of the stream, and the norm of what comes next; `next`
 * NULL: only the product. */
static int check_half(struct inspection *look, uint32_t layer, enum tensor_role matrix, const struct held *x,
                      enum tensor_role post_norm, const struct norm *norm, const struct model_tensor *next)
{
    const bool fused = look->n_rows == 1 && !look->pass->invariant;
    const char *kernel = fused && next ? "multiply_norm" : "multiply";
    const struct workspace *w = look->pass->workspace;
    const size_t row_bytes = w->embd_stride * sizeof(float);
    int r = bring_rows(look, w->delta, row_bytes, look->delta);
    if (r == 0)
        r = check_product(look, kernel, &look->model->layers[layer].tensors[matrix], x, look->delta,
                          w->embd_stride);
    if (r < 0 || !next)
        return r;
    for (uint32_t i = 0; i < look->n_picked && r == 0; i++) {
        const struct site site = {fused ? "multiply_norm" : "norm", NULL, layer, look->picked[i], OFF_ROW};
        float *stream = look->stream + (size_t)i * w->embd_stride;
        add_delta(look, i, layer, post_norm);
        r = inspection_bring(look, w->stream + (size_t)look->picked[i] * w->embd_stride, row_bytes, stream);
        if (r == 0)
            r = compare(look, &site, stream, look->expected, look->model->params.n_embd);
    }
    return r < 0 ? r : check_norm(look, fused ? "multiply_norm" : "norm", layer, norm, next);
}

static int check_qkv(struct inspection *look, uint32_t layer)
{
    const struct workspace *w = look->pass->workspace;
    const struct model_tensor *tensors = look->model->layers[layer].tensors;
    int r = bring_rows(look, w->q, w->q_stride * sizeof(float), look->q);
    if (r == 0)
        r = bring_rows(look, w->k, w->kv_stride * sizeof(float), look->k);
    if (r == 0)
        r = bring_rows(look, w->v, w->kv_stride * sizeof(float), look->v);
    if (r == 0)
        r = check_product(look, "multiply", &tensors[TENSOR_Q], &look->normed, look->q, w->q_stride);
    if (r == 0)
        r = check_product(look, "multiply", &tensors[TENSOR_K], &look->normed, look->k, w->kv_stride);
    return r < 0 ? r
                 : check_product(look, "multiply", &tensors[TENSOR_V], &look->normed, look->v, w->kv_stride);
}

/* ---- attention ---- */

/* What a layer's part of a block says of its positions: kv.h, written a second time. */
static void read_block(struct inspection *look, uint32_t block)
{
    const struct device_kv *kv = &look->pass->kv;
    const uint32_t dim = kv->dim, padded = (dim + 7) / 8 * 8, stride = kv->n_heads * dim;
    for (uint32_t head = 0; head < kv->n_heads; head++) {
        const uint16_t *keys = (const uint16_t *)look->block + (size_t)head * 2 * padded * 32;
        const uint16_t *values = keys + (size_t)padded * 32;
        for (uint32_t at = 0; at < 32; at++) {
            const size_t to = (size_t)(block * 32 + at) * stride + head * dim;
            for (uint32_t d = 0; d < dim; d++) {
                look->keys[to + d] = format_f16_to_f32(keys[(d / 8 * 32 + at) * 8 + d % 8]);
                look->values[to + d] = format_f16_to_f32(values[(at / 8 * padded + d) * 8 + at % 8]);
            }
        }
    }
}

/* The sequence has blocks 0, 1 …, and so those are where its positions are. */
static int bring_pool(struct inspection *look, uint32_t layer)
{
    const struct device_kv *kv = &look->pass->kv;
    const uint32_t n = backend_blocks_for(look->first + look->n_rows);
    int r = 0;
    for (uint32_t block = 0; block < n && r == 0; block++) {
        r = inspection_bring(look, kv->pool + block * kv->block_bytes + layer * kv->layer_bytes,
                             kv->layer_bytes, look->block);
        if (r == 0)
            read_block(look, block);
    }
    return r;
}

/* A head as the products have made it, normed and turned, times `scale`, into look->expected. */
static void turn(struct inspection *look, uint32_t layer, enum tensor_role norm, uint32_t position,
                 const float *head, double scale)
{
    const struct model_layer *from = &look->model->layers[layer];
    const uint32_t dim = look->model->params.head_dim;
    for (uint32_t d = 0; d < dim; d++)
        look->expected[d] = (double)head[d];
    const struct norm plain = {from->traits.norm.kind, from->traits.norm.epsilon, from->traits.norm.offset};
    reference_norm(&plain, &from->tensors[norm], look->expected, dim, look->weights, look->expected);
    reference_turn(&from->traits.rotary, look->frequencies, position, look->expected);
    for (uint32_t d = 0; d < dim; d++)
        look->expected[d] *= scale;
}

static double stored(double x)
{
    return x > 65504 ? 65504 : x < -65504 ? -65504 : x;
}

/* Row i: its queries in their place, its keys and values in the pool. */
static int check_turned(struct inspection *look, uint32_t layer, uint32_t i)
{
    const struct model_params *params = &look->model->params;
    const struct workspace *w = look->pass->workspace;
    const uint32_t dim = params->head_dim, position = look->first + look->picked[i];
    struct site site = {"heads", NULL, layer, look->picked[i], OFF_ROW};
    int r = 0;
    for (uint32_t head = 0; head < params->n_heads && r == 0; head++) {
        const size_t at = (size_t)i * w->q_stride + head * dim;
        turn(look, layer, TENSOR_Q_NORM, position, look->q + at,
             (double)look->model->layers[layer].traits.attention_scale);
        r = compare(look, &site, look->turned + at, look->expected, dim);
    }
    site.off = OFF_HALF;
    for (uint32_t head = 0; head < params->n_kv_heads && r == 0; head++) {
        const size_t from = (size_t)i * w->kv_stride + head * dim;
        const size_t to = (size_t)position * params->n_kv_heads * dim + head * dim;
        turn(look, layer, TENSOR_K_NORM, position, look->k + from, 1);
        for (uint32_t d = 0; d < dim; d++)
            look->expected[d] = stored(look->expected[d]);
        r = compare(look, &site, look->keys + to, look->expected, dim);
        for (uint32_t d = 0; d < dim; d++)
            look->expected[d] = stored((double)look->v[from + d]);
        if (r == 0)
            r = compare(look, &site, look->values + to, look->expected, dim);
    }
    return r;
}

static int check_heads(struct inspection *look, uint32_t layer)
{
    const struct workspace *w = look->pass->workspace;
    const struct gguf_tensor *factors = look->model->tensors[TENSOR_ROTARY_FACTORS].weight;
    rotary_frequencies(&look->model->layers[layer].traits.rotary, factors ? factors->data : NULL,
                       look->frequencies);
    int r = bring_rows(look, w->q, w->q_stride * sizeof(float), look->turned);
    if (r == 0)
        r = bring_pool(look, layer);
    for (uint32_t i = 0; i < look->n_picked && r == 0; i++)
        r = check_turned(look, layer, i);
    return r;
}

static int check_attention(struct inspection *look, uint32_t layer)
{
    const struct model_params *params = &look->model->params;
    const struct layer_traits *traits = &look->model->layers[layer].traits;
    const uint32_t dim = params->head_dim, n = params->n_heads * dim;
    int r = bring_activations(look, &look->pass->workspace->attended, &look->attended);
    for (uint32_t i = 0; i < look->n_picked && r == 0; i++) {
        const struct site site = {"attention", NULL, layer, look->picked[i], OFF_ATTENTION};
        const float *found = look->attended.values + (size_t)i * look->attended.stride;
        for (uint32_t at = 0; at < n && r == 0; at += dim) {
            const uint32_t from = at / dim / (params->n_heads / params->n_kv_heads) * dim;
            const struct reference_attention attention = {.keys = look->keys + from,
                                                          .values = look->values + from,
                                                          .dim = dim,
                                                          .stride = params->n_kv_heads * dim,
                                                          .position = look->first + look->picked[i],
                                                          .window = traits->window,
                                                          .cap = traits->attention_cap};
            const float *query = look->turned + (size_t)i * look->pass->workspace->q_stride + at;
            const double size = reference_attend(&attention, query, look->expected);
            for (uint32_t d = 0; d < dim && r == 0; d++)
                if (!agree((double)found[at + d], look->expected[d], size, OFF_ATTENTION))
                    r = differ(look, &site, at + d, (double)found[at + d], look->expected[d]);
        }
        /* As they are, for how they are rounded. */
        for (uint32_t k = 0; k < n; k++)
            look->expected[k] = (double)found[k];
        if (r == 0)
            r = check_activations(look, "attention", layer, i, &look->attended, look->expected, n);
    }
    return r;
}

/* ---- the feed-forward half ---- */

static int check_activated(struct inspection *look, uint32_t layer, const char *kernel)
{
    const struct workspace *w = look->pass->workspace;
    const struct layer_traits *traits = &look->model->layers[layer].traits;
    const uint32_t n = look->model->params.n_ff;
    int r = bring_activations(look, &w->activated, &look->activated);
    for (uint32_t i = 0; i < look->n_picked && r == 0; i++) {
        const size_t at = (size_t)i * w->ff_stride;
        const struct site site = {kernel, NULL, layer, look->picked[i], OFF_ROW};
        for (uint32_t k = 0; k < n && r == 0; k++) {
            const double x = (double)(traits->gated ? look->gate : look->up)[at + k];
            const double factor = traits->gated ? (double)look->up[at + k] : 1;
            const double expected = reference_activation(traits->activation, x) * factor;
            const double found = (double)look->activated.values[at + k];
            look->expected[k] = found;
            if (!agree(found, expected, (fabs(x) + x * x) * fabs(factor), OFF_ROW))
                r = differ(look, &site, k, found, expected);
        }
        if (r == 0)
            r = check_activations(look, kernel, layer, i, &look->activated, look->expected, n);
    }
    return r;
}

static int check_activate(struct inspection *look, uint32_t layer)
{
    const struct workspace *w = look->pass->workspace;
    const struct model_layer *from = &look->model->layers[layer];
    const bool fused = look->n_rows <= 4 && !look->pass->invariant;
    const char *kernel = fused ? "multiply_activate" : "multiply";
    int r = from->traits.gated ? bring_rows(look, w->gate, w->ff_stride * sizeof(float), look->gate) : 0;
    if (r == 0)
        r = bring_rows(look, w->up, w->ff_stride * sizeof(float), look->up);
    if (r == 0 && from->traits.gated)
        r = check_product(look, kernel, &from->tensors[TENSOR_GATE], &look->normed, look->gate, w->ff_stride);
    if (r == 0)
        r = check_product(look, kernel, &from->tensors[TENSOR_UP], &look->normed, look->up, w->ff_stride);
    return r < 0 ? r : check_activated(look, layer, fused ? kernel : "activate");
}

static int check_down(struct inspection *look, uint32_t layer)
{
    const struct model *model = look->model;
    const bool last = layer + 1 == model->params.n_layers;
    const struct model_layer *next = &model->layers[last ? layer : layer + 1];
    return check_half(look, layer, TENSOR_DOWN, &look->activated, TENSOR_FFN_POST_NORM, &next->traits.norm,
                      last ? NULL : &next->tensors[TENSOR_ATTENTION_NORM]);
}

static int check_attention_output(struct inspection *look, uint32_t layer)
{
    static const struct model_tensor none;
    const struct model_layer *from = &look->model->layers[layer];
    return check_half(look, layer, TENSOR_ATTENTION_OUTPUT, &look->attended, TENSOR_ATTENTION_POST_NORM,
                      &from->traits.norm, from->traits.parallel ? &none : &from->tensors[TENSOR_FFN_NORM]);
}

/* ---- the end of a pass ---- */

/* Output 0 is the pass's last row, which is the last that is picked; from here on it is the only one. */
static int check_output_norm(struct inspection *look)
{
    const struct model_params *params = &look->model->params;
    add_delta(look, look->n_picked - 1, params->n_layers - 1, TENSOR_FFN_POST_NORM);
    look->n_rows = look->n_picked = 1;
    look->picked[0] = 0;
    int r = bring_activations(look, &look->pass->workspace->normed, &look->normed);
    if (r < 0)
        return r;
    reference_norm(&look->model->output_norm, &look->model->tensors[TENSOR_OUTPUT_NORM], look->expected,
                   params->n_embd, look->weights, look->expected);
    return check_activations(look, "norm", params->n_layers, 0, &look->normed, look->expected,
                             params->n_embd);
}

static int check_logits(struct inspection *look)
{
    const struct workspace *w = look->pass->workspace;
    int r = inspection_bring(look, w->logits, w->vocab_stride * sizeof(float), look->logits);
    return r < 0 ? r
                 : check_product(look, "multiply", &look->model->tensors[TENSOR_OUTPUT], &look->normed,
                                 look->logits, w->vocab_stride);
}

int inspect_part(void *arg, enum pass_part part, uint32_t layer)
{
    struct inspection *look = arg;
    const struct model_layer *first = &look->model->layers[0];
    if (look->broken)
        return 0;
    switch (part) {
    case PASS_RESOLVE:
        return check_rows(look);
    case PASS_EMBED:
        return check_embedding(look);
    case PASS_BEGIN:
        return check_norm(look, "norm", 0, &first->traits.norm, &first->tensors[TENSOR_ATTENTION_NORM]);
    case PASS_QKV:
        return check_qkv(look, layer);
    case PASS_HEADS:
        return check_heads(look, layer);
    case PASS_ATTENTION:
        return check_attention(look, layer);
    case PASS_ATTENTION_OUTPUT:
        return check_attention_output(look, layer);
    case PASS_ACTIVATE:
        return check_activate(look, layer);
    case PASS_DOWN:
        return check_down(look, layer);
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

int inspection_init(struct inspection *look, struct steps *steps, const struct pass *pass, struct error *err)
{
    const struct workspace *w = pass->workspace;
    const struct model_params *params = &pass->model->params;
    const size_t pool =
        (size_t)INSPECTION_BLOCKS * BACKEND_BLOCK_TOKENS * params->n_kv_heads * params->head_dim;
    uint32_t most = w->embd_stride > w->q_stride ? w->embd_stride : w->q_stride;
    most = w->ff_stride > most ? w->ff_stride : most;
    *look = (struct inspection){.steps = steps, .pass = pass, .model = pass->model, .err = err};
    take_held(look, w->embd_stride, &look->normed);
    take_held(look, w->q_stride, &look->attended);
    take_held(look, w->ff_stride, &look->activated);
    look->stream = take(look, (size_t)INSPECTION_PICKED * w->embd_stride, sizeof(float));
    look->delta = take(look, (size_t)INSPECTION_PICKED * w->embd_stride, sizeof(float));
    look->q = take(look, (size_t)INSPECTION_PICKED * w->q_stride, sizeof(float));
    look->turned = take(look, (size_t)INSPECTION_PICKED * w->q_stride, sizeof(float));
    look->k = take(look, (size_t)INSPECTION_PICKED * w->kv_stride, sizeof(float));
    look->v = take(look, (size_t)INSPECTION_PICKED * w->kv_stride, sizeof(float));
    look->gate = take(look, (size_t)INSPECTION_PICKED * w->ff_stride, sizeof(float));
    look->up = take(look, (size_t)INSPECTION_PICKED * w->ff_stride, sizeof(float));
    look->keys = take(look, pool, sizeof(float));
    look->values = take(look, pool, sizeof(float));
    look->logits = take(look, w->vocab_stride, sizeof(float));
    look->weights = take(look, most, sizeof(float));
    look->expected = take(look, most, sizeof(double));
    look->more = take(look, most, sizeof(double));
    look->frequencies = take(look, params->head_dim, sizeof(double));
    look->block = take(look, look->pass->kv.layer_bytes, 1);
    return look->lacking ? -ENOMEM : 0;
}

void inspection_deinit(struct inspection *look)
{
    for (uint32_t i = 0; i < look->n_taken; i++)
        free(look->taken[i]);
}

void inspection_begin(struct inspection *look, uint32_t first, const int32_t *ids, uint32_t n)
{
    look->first = first;
    look->ids = ids;
    look->n_rows = n;
    look->n_picked = n < INSPECTION_PICKED ? n : INSPECTION_PICKED;
    for (uint32_t i = 0; i < look->n_picked; i++)
        look->picked[i] = look->n_picked > 1 ? i * (n - 1) / (look->n_picked - 1) : 0;
}
