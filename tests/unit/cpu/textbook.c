/* SPDX-License-Identifier: MIT */
/* See textbook.h. One position after the other, one head after the other; nothing is fast. */

#include "tests/unit/cpu/textbook.h"

#include <math.h>
#include <stdlib.h>

#include "gguf/format.h"
#include "tests/unit/cpu/activations.h"
#include "tests/unit/run.h"

static double weight_at(const struct gguf_tensor *tensor, uint64_t i)
{
    if (tensor->format == FORMAT_F32)
        return (double)((const float *)tensor->data)[i];
    return (double)format_f16_to_f32(((const uint16_t *)tensor->data)[i]); /* models are made F32 or F16 */
}

static void linear(const struct model_tensor *t, const double *x, double *y)
{
    for (uint64_t r = 0; r < t->rows; r++) {
        y[r] = t->bias ? weight_at(t->bias, t->first_row + r) : 0;
        for (uint64_t c = 0; c < t->columns; c++)
            y[r] += weight_at(t->weight, (t->first_row + r) * t->columns + c) * x[c];
    }
}

static void normalize(const struct norm *norm, const struct model_tensor *t, const double *x, uint32_t n,
                      double *y)
{
    double mean = 0, squares = 0;
    switch (norm->kind) {
    case NORM_RMS:
        break;
    case NORM_LAYER:
        for (uint32_t i = 0; i < n; i++)
            mean += x[i] / n;
        break;
    }
    for (uint32_t i = 0; i < n; i++)
        squares += (x[i] - mean) * (x[i] - mean);
    for (uint32_t i = 0; i < n; i++) {
        double v = (x[i] - mean) / sqrt(squares / n + (double)norm->epsilon);
        if (!t->weight)
            y[i] = x[i];
        else
            y[i] =
                v * (weight_at(t->weight, i) + (double)norm->offset) + (t->bias ? weight_at(t->bias, i) : 0);
    }
}

static double capped(double x, float cap)
{
    return cap > 0 ? (double)cap * tanh(x / (double)cap) : x;
}

/* By how often pair `i` turns in the length of training: often enough, and it stays; seldom, and it is
 * slowed. The ramp between has its ends on whole pairs. */
static double yarn_angle(const struct rotary *rotary, uint32_t i, double angle)
{
    const double pairs_for_e = rotary->dims / 2.0 / log((double)rotary->base);
    const double most = rotary->trained_context / (2 * M_PI);
    double first = floor(pairs_for_e * log(most / (double)rotary->fast_turns));
    double last = ceil(pairs_for_e * log(most / (double)rotary->slow_turns));
    first = first < 0 ? 0 : first;
    last = last > rotary->dims - 1 ? rotary->dims - 1 : last;
    double slowed = i <= first ? 0 : i >= last ? 1 : (i - first) / (last - first);
    return angle - slowed * (angle - angle / (double)rotary->factor);
}

static void turn(const struct model *model, const struct rotary *rotary, double *head, uint32_t position)
{
    const struct gguf_tensor *factors = model->tensors[TENSOR_ROTARY_FACTORS].weight;
    uint32_t stride = 0, apart = 0;
    switch (rotary->kind) {
    case ROTARY_NONE:
        return;
    case ROTARY_PAIRS:
        stride = 2;
        apart = 1;
        break;
    case ROTARY_HALVES:
        stride = 1;
        apart = rotary->dims / 2;
        break;
    }
    for (uint32_t i = 0; i < rotary->dims / 2; i++) {
        double angle = position * pow((double)rotary->base, -2.0 * i / rotary->dims);
        angle /= rotary->scaling == ROTARY_LINEAR ? (double)rotary->factor : 1;
        angle /= factors ? weight_at(factors, i) : 1;
        if (rotary->scaling == ROTARY_YARN)
            angle = yarn_angle(rotary, i, angle);
        double *a = head + stride * i, *b = a + apart;
        double x = *a, y = *b;
        *a = (x * cos(angle) - y * sin(angle)) * (double)rotary->magnitude;
        *b = (y * cos(angle) + x * sin(angle)) * (double)rotary->magnitude;
    }
}

/* Keys and values are kept in half precision. */
static double rounded(double x)
{
    return (double)format_f16_to_f32(format_f32_to_f16((float)x));
}

struct heads {
    double *q, *k, *v; /* [TEXTBOOK_IDS][heads][dim] */
    size_t n_q, n_kv;  /* of one position */
};

static void project(const struct model *model, const struct model_layer *layer, const double *normed,
                    uint32_t position, struct heads *h)
{
    const struct model_params *p = &model->params;
    const struct layer_traits *traits = &layer->traits;
    double *q = h->q + position * h->n_q, *k = h->k + position * h->n_kv, *v = h->v + position * h->n_kv;
    linear(&layer->tensors[TENSOR_Q], normed, q);
    linear(&layer->tensors[TENSOR_K], normed, k);
    linear(&layer->tensors[TENSOR_V], normed, v);
    const struct model_tensor *q_norm = &layer->tensors[TENSOR_Q_NORM],
                              *k_norm = &layer->tensors[TENSOR_K_NORM];
    const bool whole = traits->qk_norm == QK_NORM_ALL;
    for (uint32_t n = whole ? (uint32_t)h->n_q : p->head_dim, i = 0; i < h->n_q; i += n)
        normalize(&traits->norm, q_norm, q + i, n, q + i);
    for (uint32_t n = whole ? (uint32_t)h->n_kv : p->head_dim, i = 0; i < h->n_kv; i += n)
        normalize(&traits->norm, k_norm, k + i, n, k + i);
    for (uint32_t i = 0; i < p->n_heads; i++)
        turn(model, &traits->rotary, q + (size_t)i * p->head_dim, position);
    for (uint32_t i = 0; i < p->n_kv_heads; i++)
        turn(model, &traits->rotary, k + (size_t)i * p->head_dim, position);
    const struct query_growth *growth = &traits->query_growth;
    for (size_t i = 0; i < h->n_q && growth->factor > 0; i++)
        q[i] *= 1 + (double)growth->factor * log(1 + floor((double)position / growth->span));
    for (size_t i = 0; i < h->n_kv; i++) {
        k[i] = rounded(k[i]);
        v[i] = rounded(v[i]);
    }
}

static void attend(const struct model_params *p, const struct model_layer *layer, uint32_t position,
                   const struct heads *h, double *out)
{
    const struct layer_traits *traits = &layer->traits;
    uint32_t from = traits->window && position >= traits->window ? position - traits->window + 1 : 0;
    for (uint32_t head = 0; head < p->n_heads; head++) {
        const double *q = h->q + position * h->n_q + (size_t)head * p->head_dim;
        size_t kv = (size_t)(head / (p->n_heads / p->n_kv_heads)) * p->head_dim;
        double weights[TEXTBOOK_IDS],
            total = traits->sinks ? exp(weight_at(layer->tensors[TENSOR_SINKS].weight, head)) : 0;
        for (uint32_t t = from; t <= position; t++) {
            double score = 0;
            for (uint32_t d = 0; d < p->head_dim; d++)
                score += q[d] * h->k[t * h->n_kv + kv + d];
            weights[t] = exp(capped(score * (double)traits->attention_scale, traits->attention_cap));
            total += weights[t];
        }
        for (uint32_t d = 0; d < p->head_dim; d++) {
            double sum = 0;
            for (uint32_t t = from; t <= position; t++)
                sum += weights[t] / total * h->v[t * h->n_kv + kv + d];
            out[(size_t)head * p->head_dim + d] = sum;
        }
    }
}

/* Matrix `e` of one that is several. */
static struct model_tensor one_of(const struct model_tensor *t, uint32_t e)
{
    struct model_tensor one = *t;
    one.first_row += e * t->rows;
    return one;
}

static void through_expert(const struct model_layer *layer, const enum tensor_role roles[3], uint32_t e,
                           const double *x, double *out)
{
    const struct model_tensor ups = one_of(&layer->tensors[roles[0]], e);
    const struct model_tensor gates = one_of(&layer->tensors[roles[1]], e);
    const struct model_tensor downs = one_of(&layer->tensors[roles[2]], e);
    double *up = calloc(ups.rows, sizeof *up), *gate = calloc(ups.rows, sizeof *gate);
    linear(&ups, x, up);
    if (layer->traits.gated)
        linear(&gates, x, gate);
    for (uint32_t i = 0; i < ups.rows; i++)
        up[i] = layer->traits.gated ? gated(layer->traits.activation, gate[i], up[i])
                                    : activated(layer->traits.activation, up[i]);
    linear(&downs, up, out);
    free(up);
    free(gate);
}

/* Softmax over all experts, then the best of them, their shares made to add up to 1. */
static void mixture(const struct model_params *p, const struct model_layer *layer, const double *x,
                    double *out)
{
    static const enum tensor_role roles[] = {TENSOR_EXPERT_UPS, TENSOR_EXPERT_GATES, TENSOR_EXPERT_DOWNS};
    static const enum tensor_role shared[] = {TENSOR_SHARED_UP, TENSOR_SHARED_GATE, TENSOR_SHARED_DOWN};
    const struct experts *experts = &layer->traits.experts;
    double shares[64], total = 0, chosen = 0, *got = calloc(p->n_embd, sizeof *got);
    ck_assert_uint_le(experts->n, 64);
    linear(&layer->tensors[TENSOR_ROUTER], x, shares);
    for (uint32_t e = 0; e < experts->n; e++)
        total += shares[e] = exp(shares[e]);
    memset(out, 0, p->n_embd * sizeof *out);
    for (uint32_t k = 0; k < experts->n_used; k++) {
        uint32_t best = 0;
        for (uint32_t e = 1; e < experts->n; e++)
            best = shares[e] > shares[best] ? e : best;
        double share = shares[best] / total;
        shares[best] = -1;
        chosen += share;
        through_expert(layer, roles, best, x, got);
        for (uint32_t i = 0; i < p->n_embd; i++)
            out[i] += share * got[i];
    }
    for (uint32_t i = 0; i < p->n_embd; i++)
        out[i] /= chosen;
    if (experts->n_shared_ff > 0)
        through_expert(layer, shared, 0, x, got);
    for (uint32_t i = 0; i < p->n_embd && experts->n_shared_ff > 0; i++)
        out[i] += got[i];
    free(got);
}

static void feed_forward(const struct model_params *p, const struct model_layer *layer, const double *x,
                         double *out)
{
    static const enum tensor_role roles[] = {TENSOR_UP, TENSOR_GATE, TENSOR_DOWN};
    if (layer->traits.experts.n > 0)
        mixture(p, layer, x, out);
    else
        through_expert(layer, roles, 0, x, out);
}

/* stream += the half's output, normed and scaled as the layer does. */
static void join(const struct model_layer *layer, enum tensor_role post_norm, double *delta, uint32_t n,
                 double *stream)
{
    normalize(&layer->traits.norm, &layer->tensors[post_norm], delta, n, delta);
    for (uint32_t i = 0; i < n; i++)
        stream[i] += (double)layer->traits.residual_scale * delta[i];
}

static void run_layer(const struct model *model, const struct model_layer *layer, double *stream)
{
    const struct model_params *p = &model->params;
    const struct layer_traits *traits = &layer->traits;
    struct heads h = {.n_q = (size_t)p->n_heads * p->head_dim, .n_kv = (size_t)p->n_kv_heads * p->head_dim};
    h.q = calloc(TEXTBOOK_IDS * h.n_q, sizeof *h.q);
    h.k = calloc(TEXTBOOK_IDS * h.n_kv, sizeof *h.k);
    h.v = calloc(TEXTBOOK_IDS * h.n_kv, sizeof *h.v);
    double *normed = calloc(p->n_embd, sizeof *normed), *delta = calloc(p->n_embd, sizeof *delta);
    double *attended = calloc(h.n_q, sizeof *attended), *other = calloc(p->n_embd, sizeof *other);
    for (uint32_t t = 0; t < TEXTBOOK_IDS; t++) {
        double *x = stream + (size_t)t * p->n_embd;
        normalize(&traits->norm, &layer->tensors[TENSOR_ATTENTION_NORM], x, p->n_embd, normed);
        project(model, layer, normed, t, &h);
        attend(p, layer, t, &h, attended);
        linear(&layer->tensors[TENSOR_ATTENTION_OUTPUT], attended, delta);
        if (traits->parallel)
            feed_forward(p, layer, normed, other);
        join(layer, TENSOR_ATTENTION_POST_NORM, delta, p->n_embd, x);
        if (!traits->parallel) {
            normalize(&traits->norm, &layer->tensors[TENSOR_FFN_NORM], x, p->n_embd, normed);
            feed_forward(p, layer, normed, other);
        }
        join(layer, TENSOR_FFN_POST_NORM, other, p->n_embd, x);
    }
    free(h.q);
    free(h.k);
    free(h.v);
    free(normed);
    free(delta);
    free(attended);
    free(other);
}

struct textbook textbook_forward(const struct model *model, const int32_t ids[TEXTBOOK_IDS])
{
    const struct model_params *p = &model->params;
    const struct gguf_tensor *positions = model->tensors[TENSOR_POSITIONS].weight;
    double *stream = calloc((size_t)TEXTBOOK_IDS * p->n_embd, sizeof *stream);
    for (uint32_t t = 0; t < TEXTBOOK_IDS; t++)
        for (uint32_t i = 0; i < p->n_embd; i++) {
            double *x = stream + (size_t)t * p->n_embd + i;
            *x = weight_at(model->tensors[TENSOR_EMBEDDING].weight, (uint64_t)ids[t] * p->n_embd + i);
            *x *= (double)p->embedding_scale;
            *x += positions ? weight_at(positions, (uint64_t)t * p->n_embd + i) : 0;
        }
    for (uint32_t l = 0; l < p->n_layers; l++)
        run_layer(model, &model->layers[l], stream);
    double *logits = calloc((size_t)TEXTBOOK_IDS * p->n_vocab, sizeof *logits);
    double *sums = calloc(p->n_embd, sizeof *sums);
    for (uint32_t t = 0; t < TEXTBOOK_IDS; t++) {
        double *x = stream + (size_t)t * p->n_embd, *row = logits + (size_t)t * p->n_vocab;
        normalize(&model->output_norm, &model->tensors[TENSOR_OUTPUT_NORM], x, p->n_embd, x);
        linear(&model->tensors[TENSOR_OUTPUT], x, row);
        for (uint32_t i = 0; i < p->n_embd; i++)
            sums[i] += x[i];
        for (uint32_t i = 0; i < p->n_vocab; i++)
            row[i] = capped(row[i] * (double)p->logit_factor, p->logit_cap);
    }
    free(stream);
    return (struct textbook){logits, sums};
}
