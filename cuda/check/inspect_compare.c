/* SPDX-License-Identifier: MIT */
/* Comparing. Of a matrix eight outputs are made again, others from tensor to tensor. */

#include "cuda/check/inspect_compare.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/kernels/layout.h"
#include "cuda/check/reference.h"
#include "cuda/device/wait.h"

#define OUTPUTS   8 /* of a matrix and row */
#define ROWS_TEXT 64

int inspection_refuse(struct inspection *look, const char *format, ...)
{
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return error_set(look->err, -ENODEV, "%s computes wrong results: %s",
                     device_properties(look->steps->device)->name, text);
}

/* What verdicts call a layer, and where the pass is that went wrong. */
static uint32_t name_of(const struct inspection *look, uint32_t layer)
{
    return look->names ? look->names[layer] : layer;
}

static const char *say_rows(const struct inspection *look, char ret_text[ROWS_TEXT])
{
    if (look->first > 0)
        snprintf(ret_text, ROWS_TEXT, "%u rows from position %u on", look->n_rows, look->first);
    else
        snprintf(ret_text, ROWS_TEXT, "%u rows", look->n_rows);
    return ret_text;
}

bool inspect_agree(double found, double expected, double size, double off)
{
    return fabs(found - expected) <= off * size + 1e-30;
}

int inspect_differ(struct inspection *look, const struct inspect_site *site, uint32_t column, double found,
                   double expected)
{
    char what[160], rows[ROWS_TEXT];
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
        snprintf(what, sizeof what, "layer %u", name_of(look, site->layer));
    }
    return inspection_refuse(look, "kernel %s (%s), with %s: column %u of row %u is %.7g, not %.7g",
                             site->kernel, what, say_rows(look, rows), column, site->row, found, expected);
}

static double largest(const double *x, uint32_t n)
{
    double most = 0;
    for (uint32_t i = 0; i < n; i++)
        most = fabs(x[i]) > most ? fabs(x[i]) : most;
    return most;
}

/* Columns of a row with what they should be, measured by the largest. */
int inspect_compare(struct inspection *look, const struct inspect_site *site, const float *found,
                    const double *expected, uint32_t n)
{
    const double size = largest(expected, n);
    for (uint32_t i = 0; i < n; i++)
        if (!inspect_agree((double)found[i], expected[i], size, site->off))
            return inspect_differ(look, site, i, (double)found[i], expected[i]);
    return 0;
}

/* ---- from the device ---- */

/* Between the device's memory and ours, through pinned memory: one of `from` and `to` is the device's. */
static int carry(struct inspection *look, const uint8_t *from, size_t bytes, uint8_t *to, bool out)
{
    struct steps *steps = look->steps;
    struct device_stream *stream = device_stream(steps->device);
    const size_t most = (size_t)STEPS_LOGITS_ROWS * look->pass->workspace->vocab_stride * sizeof(float);
    int r = 0;
    for (size_t done = 0; done < bytes && r == 0;) {
        const size_t n = bytes - done < most ? bytes - done : most;
        if (!out)
            memcpy(steps->logits, from + done, n);
        r = out ? device_copy(stream, steps->logits, from + done, n)
                : device_copy(stream, to + done, steps->logits, n);
        if (r == 0)
            r = device_mark(stream, MARK_LOGITS);
        if (r == 0)
            r = device_wait_due(steps->device, MARK_LOGITS);
        if (r == 0 && out)
            memcpy(to + done, steps->logits, n);
        done += n;
    }
    return r;
}

int inspection_bring(struct inspection *look, const void *from, size_t bytes, void *to)
{
    return carry(look, from, bytes, to, true);
}

int inspection_send(struct inspection *look, const void *from, size_t bytes, void *to)
{
    return carry(look, from, bytes, to, false);
}

/* The picked rows of an array. */
int inspect_bring_rows(struct inspection *look, const void *from, size_t row_bytes, void *to)
{
    int r = 0;
    for (uint32_t i = 0; i < look->n_picked && r == 0; i++)
        r = inspection_bring(look, (const uint8_t *)from + look->picked[i] * row_bytes, row_bytes,
                             (uint8_t *)to + i * row_bytes);
    return r;
}

int inspect_bring_activations(struct inspection *look, const struct device_activations *from, struct held *to)
{
    const size_t blocks = from->stride / 32;
    int r = inspect_bring_rows(look, from->values, from->stride * sizeof *to->values, to->values);
    if (r == 0)
        r = inspect_bring_rows(look, from->quants, from->stride, to->quants);
    if (r == 0)
        r = inspect_bring_rows(look, from->scales, blocks * sizeof *to->scales, to->scales);
    return r < 0 ? r : inspect_bring_rows(look, from->sums, blocks * sizeof *to->sums, to->sums);
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
    return inspect_agree(scale, most / 127, most / 127, 1e-6) &&
           inspect_agree(sum, scale * total, scale * magnitudes, 1e-6);
}

/* The picked rows of activations, whose values should be `expected` for row i, [n_columns]. */
int inspect_activations(struct inspection *look, const char *kernel, uint32_t layer, uint32_t i,
                        const struct held *held, const double *expected, uint32_t n_columns)
{
    const struct inspect_site site = {kernel, NULL, layer, look->picked[i], OFF_ROW};
    const float *values = held->values + (size_t)i * held->stride;
    const int8_t *quants = held->quants + (size_t)i * held->stride;
    char rows[ROWS_TEXT];
    int r = inspect_compare(look, &site, values, expected, n_columns);
    for (uint32_t k = 0; k < held->stride && r == 0 && !look->broken; k += 32) {
        const size_t block = ((size_t)i * held->stride + k) / 32;
        if (!is_rounded(values + k, quants + layout_quant_place(k), (double)held->scales[block],
                        (double)held->sums[block]))
            r = inspection_refuse(look,
                                  "kernel %s (layer %u), with %s: columns %u … %u of row %u are not "
                                  "rounded to 8 bits",
                                  kernel, name_of(look, layer), say_rows(look, rows), k, k + 31,
                                  look->picked[i]);
    }
    return r;
}

int inspect_norm(struct inspection *look, const char *kernel, uint32_t layer, const struct norm *norm,
                 const struct model_tensor *vector)
{
    const uint32_t n = look->model->params.n_embd;
    int r = inspect_bring_activations(look, &look->pass->workspace->normed, &look->normed);
    for (uint32_t i = 0; i < look->n_picked && r == 0; i++) {
        for (uint32_t k = 0; k < n; k++)
            look->expected[k] = (double)look->stream[(size_t)i * look->normed.stride + k];
        reference_norm(norm, vector, look->expected, n, look->weights, look->expected);
        r = inspect_activations(look, kernel, layer, i, &look->normed, look->expected, n);
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
static int check_output(struct inspection *look, const struct inspect_site *site, uint32_t output,
                        const struct reference_row *x, double found)
{
    const struct model_params *params = &look->model->params;
    double size, expected = reference_product(site->tensor, output, x, look->weights, &size);
    if (site->tensor == &look->model->tensors[TENSOR_OUTPUT]) {
        expected *= (double)params->logit_factor;
        size *= fabs((double)params->logit_factor);
        if (params->logit_cap > 0)
            expected = (double)params->logit_cap * tanh(expected / (double)params->logit_cap);
    }
    return inspect_agree(found, expected, size, site->off)
               ? 0
               : inspect_differ(look, site, output, found, expected);
}

/* `given`: kernel, tensor and tolerance. */
static int check_product(struct inspection *look, const struct inspect_site *given, bool bfloat16,
                         const struct held *x, const float *found, uint32_t stride)
{
    const struct model_tensor *matrix = given->tensor;
    int r = 0;
    for (uint32_t i = 0; i < look->n_picked; i++) {
        const struct inspect_site site = {given->kernel, matrix, 0, look->picked[i], given->off};
        const struct reference_row row = {x->values + (size_t)i * x->stride,
                                          x->quants + (size_t)i * x->stride,
                                          x->scales + (size_t)i * x->stride / 32, bfloat16};
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

int inspect_product(struct inspection *look, const char *kernel, const struct model_tensor *matrix,
                    const struct held *x, const float *found, uint32_t stride)
{
    const struct inspect_site site = {kernel, matrix, 0, 0, OFF_PRODUCT};
    return check_product(look, &site, false, x, found, stride);
}

int inspect_layer_product(struct inspection *look, const char *kernel, uint32_t layer, enum tensor_role role,
                          const struct held *x, const float *found, uint32_t stride)
{
    const struct pass *pass = look->pass;
    const struct model_tensor *matrix = &look->model->layers[layer].tensors[role];
    const struct device_product product = {&pass->weights->layers[layer].matrices[role], NULL, stride};
    const struct inspect_site site = {"cublasLtMatmul", matrix, 0, 0, OFF_LARGE};
    return pass_is_large(pass, look->n_rows) && library_products_takes(pass->large, &product, x->stride)
               ? check_product(look, &site, true, x, found, stride)
               : inspect_product(look, kernel, matrix, x, found, stride);
}
