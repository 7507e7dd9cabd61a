/* SPDX-License-Identifier: MIT */
/* The reference of the gate. Weights are read where the file has them, a row of a matrix at a time, or made
 * once more where no file has them as they are loaded. */

#include "cuda/check/reference.h"

#include <math.h>
#include <string.h>

#include "cuda/kernels/layout.h"

/* A row as floats; NaN, with which nothing agrees, if it cannot be made. */
static void read_row(const struct gguf_tensor *tensor, uint64_t row, uint32_t columns, float *ret_row)
{
    const uint8_t *rows = tensor->data;
    if (gguf_make_rows(tensor, row, 1, 1, NULL) == 0)
        format_traits(tensor->format)
            ->to_float(rows + row * format_bytes(tensor->format, columns), ret_row, columns);
    else
        for (uint32_t i = 0; i < columns; i++)
            ret_row[i] = NAN;
}

void reference_row_of(const struct model_tensor *table, uint32_t row, float *ret_row)
{
    read_row(table->weight, model_tensor_row(table, row), table->columns, ret_row);
}

/* All of a bias; NULL if it cannot be made. */
static const float *bias_of(const struct gguf_tensor *tensor)
{
    return gguf_make_tensor(tensor, 1, NULL) == 0 ? tensor->data : NULL;
}

static float rounded(const struct reference_row *x, float value)
{
    return x->bfloat16 ? format_bf16_to_f32(format_f32_to_bf16(value)) : value;
}

double reference_product(const struct model_tensor *matrix, uint32_t output, const struct reference_row *x,
                         float *scratch, double *ret_size)
{
    const enum format format = matrix->weight->format;
    const bool floats = x->bfloat16 || format == FORMAT_F32 || format == FORMAT_F16 || format == FORMAT_BF16;
    double sum = 0, size = 0;
    reference_row_of(matrix, output, scratch);
    for (uint32_t i = 0; i < matrix->columns; i++) {
        const double value = floats ? (double)rounded(x, x->values[i])
                                    : (double)x->scales[i / 32] * (double)x->quants[layout_quant_place(i)];
        const double term = (double)rounded(x, scratch[i]) * value;
        sum += term;
        size += fabs(term);
    }
    if (matrix->bias) {
        const float *all = bias_of(matrix->bias);
        const double bias = all ? (double)all[matrix->first_row + output] : (double)NAN;
        sum += bias;
        size += fabs(bias);
    }
    *ret_size = size;
    return sum;
}

void reference_norm(const struct norm *norm, const struct model_tensor *vector, const double *x, uint32_t n,
                    float *scratch, double *ret_y)
{
    double mean = 0, squares = 0;
    if (!vector->weight) {
        memmove(ret_y, x, n * sizeof *x);
        return;
    }
    bool centered = false;
    switch (norm->kind) {
    case NORM_RMS:
        break;
    case NORM_LAYER:
        centered = true;
        break;
    }
    const float *bias = centered && vector->bias ? bias_of(vector->bias) : NULL;
    for (uint32_t i = 0; i < n && centered; i++)
        mean += x[i] / n;
    for (uint32_t i = 0; i < n; i++)
        squares += (x[i] - mean) * (x[i] - mean);
    const double factor = 1 / sqrt(squares / n + (double)norm->epsilon);
    read_row(vector->weight, 0, n, scratch);
    for (uint32_t i = 0; i < n; i++)
        ret_y[i] = (x[i] - mean) * factor * ((double)scratch[i] + (double)norm->offset) +
                   (bias ? (double)bias[i] : 0);
}

static double activation_silu(double x)
{
    return x / (1 + exp(-x));
}

static double activation_gelu(double x)
{
    return x / 2 * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

static double activation_relu_squared(double x)
{
    return x < 0 ? 0 : x * x; /* what is no number stays so */
}

static double activation_swiglu_clamped(double x)
{
    x = x > 7 ? 7 : x;
    return x / (1 + exp(-1.702 * x));
}

double reference_factor(enum activation activation, double up)
{
    switch (activation) {
    case ACTIVATION_SILU:
    case ACTIVATION_GELU:
    case ACTIVATION_RELU_SQUARED:
        return up;
    case ACTIVATION_SWIGLU_CLAMPED:
        return (up > 7 ? 7 : up < -7 ? -7 : up) + 1;
    }
    return (double)NAN;
}

double reference_activation(enum activation activation, double x)
{
#define CASE(name, id, words)                                                                                \
    case ACTIVATION_##name:                                                                                  \
        return activation_##id(x);
    switch (activation) {
        ACTIVATIONS(CASE)
    }
#undef CASE
    return (double)NAN;
}

void reference_turn(const struct rotary *rotary, const double *frequencies, uint32_t position, double *head)
{
    const uint32_t n_pairs = rotary->dims / 2;
    uint32_t stride = 0, apart = 0; /* between pairs, and between the two of one */
    switch (rotary->kind) {
    case ROTARY_NONE:
        return;
    case ROTARY_PAIRS:
        stride = 2;
        apart = 1;
        break;
    case ROTARY_HALVES:
        stride = 1;
        apart = n_pairs;
        break;
    }
    for (uint32_t i = 0; i < n_pairs; i++) {
        double *a = head + stride * i, *b = a + apart;
        const double c = cos(position * frequencies[i]) * (double)rotary->magnitude;
        const double s = sin(position * frequencies[i]) * (double)rotary->magnitude;
        const double first = *a, second = *b;
        *a = first * c - second * s;
        *b = first * s + second * c;
    }
}

double reference_query_scale(const struct layer_traits *traits, uint32_t position)
{
    const struct query_growth *growth = &traits->query_growth;
    const double scale = (double)traits->attention_scale;
    return growth->factor == 0
               ? scale
               : scale * (1 + (double)growth->factor * log(1 + floor((double)position / growth->span)));
}

static double score(const struct reference_attention *attention, const float *query, uint32_t position)
{
    const float *key = attention->keys + (size_t)position * attention->stride;
    const double cap = (double)attention->cap;
    double sum = 0;
    for (uint32_t d = 0; d < attention->dim; d++)
        sum += (double)query[d] * (double)key[d];
    return cap > 0 ? cap * tanh(sum / cap) : sum;
}

double reference_attend(const struct reference_attention *attention, const float *query, double *ret_out)
{
    const uint32_t dim = attention->dim, end = attention->position + 1;
    const uint32_t first = attention->window > 0 && end > attention->window ? end - attention->window : 0;
    double largest = -INFINITY, sum = 0, size = 0;
    for (uint32_t p = first; p < end; p++)
        largest = fmax(largest, score(attention, query, p));
    if (attention->sink) { /* has a weight and no value */
        largest = fmax(largest, (double)*attention->sink);
        sum = exp((double)*attention->sink - largest);
    }
    memset(ret_out, 0, dim * sizeof *ret_out);
    for (uint32_t p = first; p < end; p++) {
        const float *value = attention->values + (size_t)p * attention->stride;
        const double weight = exp(score(attention, query, p) - largest);
        sum += weight;
        for (uint32_t d = 0; d < dim; d++) {
            ret_out[d] += weight * (double)value[d];
            size = fmax(size, fabs((double)value[d]));
        }
    }
    for (uint32_t d = 0; d < dim; d++)
        ret_out[d] /= sum;
    return size;
}
