/* SPDX-License-Identifier: MIT */
/* Rows between products, and the notes of a profile: the first member makes them, when all have met. */

#include "cpu/forward/phases.h"

#include <stdio.h>
#include <string.h>

#include "common/clock.h"

void phases_scale(float *x, uint32_t n, float factor)
{
    for (uint32_t i = 0; factor != 1 && i < n; i++)
        x[i] *= factor;
}

void phases_normalize(const struct kernels *kernels, const struct norm *norm, const struct vector *vector,
                      const float *x, uint32_t n, float *out)
{
    if (!vector->weight) {
        if (out != x)
            memcpy(out, x, n * sizeof *out);
        return;
    }
    switch (norm->kind) {
    case NORM_RMS:
        kernels->rms_norm(x, vector->weight, n, norm->epsilon, out);
        break;
    case NORM_LAYER:
        kernels->layer_norm(x, vector->weight, vector->bias, n, norm->epsilon, out);
        break;
    }
}

void phases_round_row(const struct forward *forward, const struct activations *x, uint32_t row)
{
    if (forward->weights->any_quantized && !forward->multiplier.float_activations)
        forward->kernels->quantize(x, row);
}

void phases_norm_row(const struct forward *forward, uint32_t row, const struct norm *norm,
                     const struct vector *vector, uint32_t to)
{
    const struct activations *x = &forward->normed;
    phases_normalize(forward->kernels, norm, vector, forward->stream + (size_t)row * forward->embd_stride,
                     forward->model->params.n_embd, x->values + (size_t)to * x->stride);
    phases_round_row(forward, x, to);
}

void phases_add_delta(const struct forward *forward, uint32_t l, enum tensor_role post_norm, uint32_t row)
{
    const struct layer_traits *traits = &forward->model->layers[l].traits;
    const struct vector *vector = &forward->weights->layers[l].vectors[post_norm];
    size_t at = (size_t)row * forward->embd_stride;
    float *delta = forward->delta + at;
    phases_normalize(forward->kernels, &traits->norm, vector, delta, forward->model->params.n_embd, delta);
    phases_scale(delta, forward->embd_stride, traits->residual_scale);
    forward->kernels->add(forward->stream + at, delta, forward->embd_stride);
}

void phases_end_layer(const struct forward *forward, uint32_t l, uint32_t row)
{
    const float *scale = forward->weights->layers[l].vectors[TENSOR_STREAM_SCALE].weight;
    const bool gets = forward->model->layers[l].traits.n_layer_embd > 0;
    phases_add_delta(forward, l, gets ? TENSOR_INPUT_POST_NORM : TENSOR_FFN_POST_NORM, row);
    if (scale)
        phases_scale(forward->stream + (size_t)row * forward->embd_stride, forward->embd_stride, *scale);
}

void phases_copy_row(const struct forward *forward, uint32_t row)
{
    const struct activations *x = &forward->normed;
    memcpy(x->values + (size_t)row * x->stride, forward->stream + (size_t)row * forward->embd_stride,
           x->stride * sizeof *x->values);
    phases_round_row(forward, x, row);
}

void phases_activate_row(const struct forward *forward, const struct layer_traits *traits, const float *gate,
                         const float *up, const struct activations *x, uint32_t row, uint32_t n)
{
    const size_t at = (size_t)row * x->stride;
    const uint32_t padded = (n + KERNELS_BLOCK - 1) / KERNELS_BLOCK * KERNELS_BLOCK;
    forward->kernels->activate[traits->activation]((gate ? gate : up) + at, gate ? up + at : NULL, padded,
                                                   x->values + at);
    memset(x->values + at + n, 0, (x->stride - n) * sizeof *x->values);
    phases_round_row(forward, x, row);
}

void phases_finish_attended(const struct forward *forward, uint32_t row, uint32_t n)
{
    const struct activations *x = &forward->attended;
    memset(x->values + (size_t)row * x->stride + n, 0, (x->stride - n) * sizeof *x->values);
    phases_round_row(forward, x, row);
}

/* ---- ends ---- */

/* "q k v Q4_K+Q6_K": a phase, and each format of what it multiplies once. */
static void name_phase(const char *phase, const struct product *products, uint32_t n,
                       char ret_name[BACKEND_KERNEL_NAME])
{
    size_t used = (size_t)snprintf(ret_name, BACKEND_KERNEL_NAME, "%s", phase);
    uint64_t named = 0;
    for (uint32_t i = 0; i < n && used < BACKEND_KERNEL_NAME; i++) {
        const enum format format = products[i].matrix->tensor->format;
        if (!(named >> format & 1))
            used += (size_t)snprintf(ret_name + used, BACKEND_KERNEL_NAME - used, "%s%s", named ? "+" : " ",
                                     format_traits(format)->name);
        named |= 1ull << format;
    }
}

/* What a phase took, which has just ended for all; `products` are those it made. */
static struct backend_kernel *note_phase(struct forward *forward, const char *phase,
                                         const struct product *products, uint32_t n_products)
{
    char name[BACKEND_KERNEL_NAME];
    const uint64_t now = clock_ns();
    name_phase(phase, products, n_products, name);
    struct backend_kernel *kernel = profile_kernel(forward->profile, name);
    kernel->n++;
    kernel->ns += now - forward->phase_begun;
    for (uint32_t i = 0; i < n_products; i++) {
        const struct matrix *matrix = products[i].matrix;
        kernel->bytes += matrix->n_groups * matrix->group_bytes;
        kernel->macs += (uint64_t)products[i].n * matrix->n_rows * matrix->n_columns;
    }
    forward->phase_begun = now;
    return kernel;
}

struct backend_kernel *phases_end_noted(struct forward *forward, uint32_t index, const char *phase)
{
    threads_barrier(forward->threads);
    return index == 0 && forward->profile ? note_phase(forward, phase, NULL, 0) : NULL;
}

void phases_end_products(struct forward *forward, uint32_t index, const char *phase,
                         const struct product *products, uint32_t n_products)
{
    threads_barrier(forward->threads);
    if (index == 0 && forward->profile)
        note_phase(forward, phase, products, n_products);
}

void phases_end(struct forward *forward, uint32_t index, const char *phase)
{
    phases_end_products(forward, index, phase, NULL, 0);
}
