/* SPDX-License-Identifier: MIT */
/* See textbook.h. One position after the other, one head after the other; nothing is fast. */

#include "tests/unit/cpu/forward/textbook.h"

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

/* Matrix `e` of those that are several. */
static void linear_of(const struct model_tensor *t, uint32_t e, const double *x, double *y)
{
    for (uint64_t r = 0; r < t->rows; r++) {
        const uint64_t row = e * (uint64_t)t->rows + r;
        y[r] = t->bias ? weight_at(t->bias, t->first_row + row) : 0;
        for (uint64_t c = 0; c < t->columns; c++)
            y[r] += weight_at(t->weight, model_tensor_row(t, row) * t->columns + c) * x[c];
    }
}

static void linear(const struct model_tensor *t, const double *x, double *y)
{
    linear_of(t, 0, x, y);
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
        angle /= factors && !rotary->unfactored ? weight_at(factors, i) : 1;
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

static void make_mean_square_one(double *x, uint32_t n, double epsilon)
{
    double squares = 0;
    for (uint32_t i = 0; i < n; i++)
        squares += x[i] * x[i] / n;
    for (uint32_t i = 0; i < n; i++)
        x[i] /= sqrt(squares + epsilon);
}

struct heads {
    double *q, *k, *v; /* [TEXTBOOK_IDS][heads][dim] */
    size_t n_q, n_kv;  /* of one position */
};

static void project(const struct model *model, const struct model_layer *layer, const double *normed,
                    uint32_t position, struct heads *h)
{
    const struct layer_traits *traits = &layer->traits;
    const struct head_shape *p = &traits->heads;
    double *q = h->q + position * h->n_q, *k = h->k + position * h->n_kv, *v = h->v + position * h->n_kv;
    linear(&layer->tensors[TENSOR_Q], normed, q);
    for (size_t i = 0; i < h->n_kv && traits->borrows_kv; i++)
        k[i] = v[i] = 0; /* made here for nobody */
    if (!traits->borrows_kv) {
        linear(&layer->tensors[TENSOR_K], normed, k);
        linear(&layer->tensors[traits->values_are_keys ? TENSOR_K : TENSOR_V], normed, v);
    }
    for (uint32_t i = 0; i < p->n_kv && traits->value_norm; i++)
        make_mean_square_one(v + (size_t)i * p->dim, p->dim, (double)traits->norm.epsilon);
    const struct model_tensor *q_norm = &layer->tensors[TENSOR_Q_NORM],
                              *k_norm = &layer->tensors[TENSOR_K_NORM];
    const bool whole = traits->qk_norm == QK_NORM_ALL;
    for (uint32_t n = whole ? (uint32_t)h->n_q : p->dim, i = 0; i < h->n_q; i += n)
        normalize(&traits->norm, q_norm, q + i, n, q + i);
    for (uint32_t n = whole ? (uint32_t)h->n_kv : p->dim, i = 0; i < h->n_kv && !traits->borrows_kv; i += n)
        normalize(&traits->norm, k_norm, k + i, n, k + i);
    for (uint32_t i = 0; i < p->n; i++)
        turn(model, &traits->rotary, q + (size_t)i * p->dim, position);
    for (uint32_t i = 0; i < p->n_kv; i++)
        turn(model, &traits->rotary, k + (size_t)i * p->dim, position);
    const struct query_growth *growth = &traits->query_growth;
    for (size_t i = 0; i < h->n_q && growth->factor > 0; i++)
        q[i] *= 1 + (double)growth->factor * log(1 + floor((double)position / growth->span));
    for (size_t i = 0; i < h->n_kv; i++) {
        k[i] = rounded(k[i]);
        v[i] = rounded(v[i]);
    }
}

static void attend(const struct model_layer *layer, uint32_t position, const struct heads *h, double *out)
{
    const struct layer_traits *traits = &layer->traits;
    const struct head_shape *p = &traits->heads;
    uint32_t from = traits->window && position >= traits->window ? position - traits->window + 1 : 0;
    for (uint32_t head = 0; head < p->n; head++) {
        const double *q = h->q + position * h->n_q + (size_t)head * p->dim;
        size_t kv = (size_t)(head / (p->n / p->n_kv)) * p->dim;
        double weights[TEXTBOOK_IDS],
            total = traits->sinks ? exp(weight_at(layer->tensors[TENSOR_SINKS].weight, head)) : 0;
        for (uint32_t t = from; t <= position; t++) {
            double score = 0;
            for (uint32_t d = 0; d < p->dim; d++)
                score += q[d] * h->k[t * h->n_kv + kv + d];
            weights[t] = exp(capped(score * (double)traits->attention_scale, traits->attention_cap));
            total += weights[t];
        }
        for (uint32_t d = 0; d < p->dim; d++) {
            double sum = 0;
            for (uint32_t t = from; t <= position; t++)
                sum += weights[t] / total * h->v[t * h->n_kv + kv + d];
            out[(size_t)head * p->dim + d] = sum;
        }
    }
}

static void through_expert(const struct model_layer *layer, const enum tensor_role roles[3], uint32_t e,
                           const double *x, double *out)
{
    const uint32_t rows = layer->tensors[roles[0]].rows;
    double *up = calloc(rows, sizeof *up), *gate = calloc(rows, sizeof *gate);
    linear_of(&layer->tensors[roles[0]], e, x, up);
    if (layer->traits.gated)
        linear_of(&layer->tensors[roles[1]], e, x, gate);
    for (uint32_t i = 0; i < rows; i++)
        up[i] = layer->traits.gated ? gated(layer->traits.activation, gate[i], up[i])
                                    : activated(layer->traits.activation, up[i]);
    linear_of(&layer->tensors[roles[2]], e, up, out);
    free(up);
    free(gate);
}

/* Softmax over all experts, then the best of them, their shares made to add up to 1. */
static void mixture(const struct model_params *p, const struct model_layer *layer, const double *router_x,
                    const double *x, double *out)
{
    static const enum tensor_role roles[] = {TENSOR_EXPERT_UPS, TENSOR_EXPERT_GATES, TENSOR_EXPERT_DOWNS};
    static const enum tensor_role shared[] = {TENSOR_SHARED_UP, TENSOR_SHARED_GATE, TENSOR_SHARED_DOWN};
    const struct experts *experts = &layer->traits.experts;
    double shares[64], total = 0, chosen = 0, *got = calloc(p->n_embd, sizeof *got);
    ck_assert_uint_le(experts->n, 64);
    linear(&layer->tensors[TENSOR_ROUTER], router_x, shares);
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
        if (experts->scaled)
            share *= weight_at(layer->tensors[TENSOR_EXPERT_SCALES].weight, best);
        for (uint32_t i = 0; i < p->n_embd; i++)
            out[i] += share * got[i];
    }
    for (uint32_t i = 0; i < p->n_embd; i++)
        out[i] /= chosen;
    if (experts->n_shared_ff > 0)
        through_expert(layer, shared, 0, x, got);
    double score = 0;
    for (uint32_t i = 0; i < p->n_embd && experts->shared_gate; i++)
        score += weight_at(layer->tensors[TENSOR_SHARED_ROUTER].weight, i) * x[i];
    for (uint32_t i = 0; i < p->n_embd && experts->n_shared_ff > 0; i++)
        out[i] += experts->shared_gate ? got[i] / (1 + exp(-score)) : got[i];
    free(got);
}

static void feed_forward(const struct model_params *p, const struct model_layer *layer, const double *x,
                         double *out)
{
    static const enum tensor_role roles[] = {TENSOR_UP, TENSOR_GATE, TENSOR_DOWN};
    if (layer->traits.experts.n > 0)
        mixture(p, layer, x, x, out);
    else
        through_expert(layer, roles, 0, x, out);
}

/* The plain half and the experts, each with norms of its own; `x` is the stream. */
static void both_halves(const struct model_params *p, const struct model_layer *layer, const double *x,
                        double *out)
{
    static const enum tensor_role roles[] = {TENSOR_UP, TENSOR_GATE, TENSOR_DOWN};
    const struct norm *norm = &layer->traits.norm;
    double *routed = calloc(p->n_embd, sizeof *routed), *row = calloc(p->n_embd, sizeof *row),
           *given = calloc(p->n_embd, sizeof *given);
    normalize(norm, &layer->tensors[TENSOR_ROUTER_NORM], x, p->n_embd, routed);
    for (uint32_t i = 0; i < p->n_embd; i++)
        routed[i] /= sqrt(p->n_embd);
    normalize(norm, &layer->tensors[TENSOR_EXPERT_NORM], x, p->n_embd, row);
    mixture(p, layer, routed, row, given);
    normalize(norm, &layer->tensors[TENSOR_EXPERT_POST_NORM], given, p->n_embd, given);
    normalize(norm, &layer->tensors[TENSOR_FFN_NORM], x, p->n_embd, row);
    through_expert(layer, roles, 0, row, out);
    normalize(norm, &layer->tensors[TENSOR_PLAIN_POST_NORM], out, p->n_embd, out);
    for (uint32_t i = 0; i < p->n_embd; i++)
        out[i] += given[i];
    free(routed);
    free(row);
    free(given);
}

/* stream += the half's output, normed and scaled as the layer does. */
static void join(const struct model_layer *layer, enum tensor_role post_norm, double *delta, uint32_t n,
                 double *stream)
{
    normalize(&layer->traits.norm, &layer->tensors[post_norm], delta, n, delta);
    for (uint32_t i = 0; i < n; i++)
        stream[i] += (double)layer->traits.residual_scale * delta[i];
}

/* ---- mixers ---- */

/* Keys and values of a layer, for those that borrow them. */
struct kept {
    double *k, *v;
};

/* What attention makes of the normed rows, before the last product: [TEXTBOOK_IDS][heads · dim]. */
static double *attention(const struct model *model, const struct model_layer *layer, const double *normed,
                         struct kept *kept)
{
    const uint32_t l = (uint32_t)(layer - model->layers);
    const struct head_shape *p = &layer->traits.heads;
    struct heads h = {.n_q = (size_t)p->n * p->dim, .n_kv = (size_t)p->n_kv * p->dim};
    h.q = calloc(TEXTBOOK_IDS * h.n_q, sizeof *h.q);
    kept[l].k = calloc(TEXTBOOK_IDS * h.n_kv, sizeof *h.k);
    kept[l].v = calloc(TEXTBOOK_IDS * h.n_kv, sizeof *h.v);
    double *out = calloc(TEXTBOOK_IDS * h.n_q, sizeof *out), *gate = calloc(h.n_q, sizeof *gate);
    for (uint32_t t = 0; t < TEXTBOOK_IDS; t++) {
        const double *x = normed + (size_t)t * model->params.n_embd;
        h.k = kept[l].k;
        h.v = kept[l].v;
        project(model, layer, x, t, &h);
        h.k = kept[layer->traits.borrows_kv ? layer->traits.kv_layer : l].k;
        h.v = kept[layer->traits.borrows_kv ? layer->traits.kv_layer : l].v;
        attend(layer, t, &h, out + t * h.n_q);
        if (layer->traits.output_gate)
            linear(&layer->tensors[TENSOR_OUTPUT_GATE], x, gate);
        for (size_t i = 0; i < h.n_q && layer->traits.output_gate; i++)
            out[t * h.n_q + i] /= 1 + exp(-gate[i]);
    }
    free(h.q);
    free(gate);
    return out;
}

/* Queries, keys and values of all rows behind the convolution, [TEXTBOOK_IDS][channels]. */
static double *convolved(const struct model *model, const struct model_layer *layer, const double *normed)
{
    static const enum tensor_role roles[] = {TENSOR_Q, TENSOR_K, TENSOR_V};
    const struct gguf_tensor *taps = layer->tensors[TENSOR_TAPS].weight;
    const size_t n = delta_net_channels(&layer->traits.delta), n_taps = layer->traits.delta.n_taps;
    double *before = calloc(TEXTBOOK_IDS * n, sizeof *before),
           *after = calloc(TEXTBOOK_IDS * n, sizeof *after);
    for (uint32_t t = 0; t < TEXTBOOK_IDS; t++) {
        double *row = before + t * n;
        for (int i = 0; i < 3; row += layer->tensors[roles[i++]].rows)
            linear(&layer->tensors[roles[i]], normed + (size_t)t * model->params.n_embd, row);
    }
    for (uint32_t t = 0; t < TEXTBOOK_IDS; t++)
        for (size_t c = 0; c < n; c++) {
            double sum = 0;
            for (size_t back = 0; back < n_taps && back <= t; back++)
                sum += weight_at(taps, c * n_taps + n_taps - 1 - back) * before[(t - back) * n + c];
            after[t * n + c] = activated(ACTIVATION_SILU, sum);
        }
    free(before);
    return after;
}

static void make_unit(double *x, uint32_t n)
{
    double squares = 0;
    for (uint32_t i = 0; i < n; i++)
        squares += x[i] * x[i];
    for (uint32_t i = 0; i < n; i++)
        x[i] /= sqrt(squares + 1e-6);
}

/* One row through one head: the paper's equations, S as [value_dim][key_dim]. */
static void recur(double *state, const struct delta_net *net, const double *q, const double *k,
                  const double *v, double decay, double beta, double *out)
{
    for (uint32_t i = 0; i < net->value_dim; i++, state += net->key_dim) {
        double recalled = 0;
        out[i] = 0;
        for (uint32_t j = 0; j < net->key_dim; j++)
            recalled += (state[j] *= decay) * k[j];
        for (uint32_t j = 0; j < net->key_dim; j++) {
            state[j] += beta * (v[i] - recalled) * k[j];
            out[i] += state[j] * q[j] / sqrt(net->key_dim);
        }
    }
}

/* What a gated delta net makes of the normed rows, before the last product. */
static double *delta_net(const struct model *model, const struct model_layer *layer, const double *normed)
{
    const struct delta_net *net = &layer->traits.delta;
    const size_t channels = delta_net_channels(net), n_keys = (size_t)net->n_key_heads * net->key_dim,
                 n_values = (size_t)net->n_value_heads * net->value_dim,
                 n_state = (size_t)net->value_dim * net->key_dim;
    double *mixed = convolved(model, layer, normed), *out = calloc(TEXTBOOK_IDS * n_values, sizeof *out);
    double *states = calloc(net->n_value_heads * n_state, sizeof *states);
    double *gate = calloc(n_values, sizeof *gate);
    double *alphas = calloc(net->n_value_heads, sizeof *alphas),
           *betas = calloc(net->n_value_heads, sizeof *betas);
    for (uint32_t t = 0; t < TEXTBOOK_IDS; t++) {
        const double *x = normed + (size_t)t * model->params.n_embd;
        double *q = mixed + t * channels, *k = q + n_keys, *v = k + n_keys;
        linear(&layer->tensors[TENSOR_OUTPUT_GATE], x, gate);
        linear(&layer->tensors[TENSOR_ALPHA], x, alphas);
        linear(&layer->tensors[TENSOR_BETA], x, betas);
        for (uint32_t h = 0; h < 2 * net->n_key_heads; h++)
            make_unit(q + (size_t)h * net->key_dim, net->key_dim);
        for (uint32_t h = 0; h < net->n_value_heads; h++) {
            const uint32_t shared = net->n_value_heads / net->n_key_heads;
            const size_t key = (net->neighbours ? h / shared : h % net->n_key_heads) * (size_t)net->key_dim;
            const double step = alphas[h] + weight_at(layer->tensors[TENSOR_STEP_BIAS].weight, h);
            const double rate = weight_at(layer->tensors[TENSOR_DECAY].weight, h);
            double *head = out + t * n_values + (size_t)h * net->value_dim;
            recur(states + h * n_state, net, q + key, k + key, v + (size_t)h * net->value_dim,
                  exp(rate * log(1 + exp(step))), 1 / (1 + exp(-betas[h])), head);
            normalize(&layer->traits.norm, &layer->tensors[TENSOR_DELTA_NORM], head, net->value_dim, head);
            for (uint32_t i = 0; i < net->value_dim; i++)
                head[i] *= activated(ACTIVATION_SILU, gate[(size_t)h * net->value_dim + i]);
        }
    }
    free(mixed);
    free(states);
    free(gate);
    free(alphas);
    free(betas);
    return out;
}

/* What a layer gets of a token by itself joins the stream; `given` are its numbers. */
static void add_input(const struct model_params *p, const struct model_layer *layer, const double *given,
                      double *stream)
{
    double *gate = calloc(p->n_layer_embd, sizeof *gate), *delta = calloc(p->n_embd, sizeof *delta);
    linear(&layer->tensors[TENSOR_INPUT_GATE], stream, gate);
    for (uint32_t i = 0; i < p->n_layer_embd; i++)
        gate[i] = gated(layer->traits.activation, gate[i], given[i]);
    linear(&layer->tensors[TENSOR_INPUT_PROJECTION], gate, delta);
    join(layer, TENSOR_INPUT_POST_NORM, delta, p->n_embd, stream);
    free(gate);
    free(delta);
}

static void run_layer(const struct model *model, const struct model_layer *layer, const double *inputs,
                      struct kept *kept, double *stream)
{
    const uint32_t l = (uint32_t)(layer - model->layers);
    const struct model_params *p = &model->params;
    const struct layer_traits *traits = &layer->traits;
    const bool recurrent = traits->mixer == MIXER_DELTA;
    const struct model_tensor *last =
        &layer->tensors[recurrent ? TENSOR_DELTA_OUTPUT : TENSOR_ATTENTION_OUTPUT];
    double *normed = calloc((size_t)TEXTBOOK_IDS * p->n_embd, sizeof *normed);
    double *delta = calloc(p->n_embd, sizeof *delta), *other = calloc(p->n_embd, sizeof *other);
    for (uint32_t t = 0; t < TEXTBOOK_IDS; t++)
        normalize(&traits->norm, &layer->tensors[TENSOR_ATTENTION_NORM], stream + (size_t)t * p->n_embd,
                  p->n_embd, normed + (size_t)t * p->n_embd);
    double *mixed = recurrent ? delta_net(model, layer, normed) : attention(model, layer, normed, kept);
    for (uint32_t t = 0; t < TEXTBOOK_IDS; t++) {
        double *x = stream + (size_t)t * p->n_embd, *row = normed + (size_t)t * p->n_embd;
        linear(last, mixed + (size_t)t * last->columns, delta);
        if (traits->parallel)
            feed_forward(p, layer, row, other);
        join(layer, TENSOR_ATTENTION_POST_NORM, delta, p->n_embd, x);
        if (traits->experts.beside) {
            both_halves(p, layer, x, other);
        } else if (!traits->parallel) {
            normalize(&traits->norm, &layer->tensors[TENSOR_FFN_NORM], x, p->n_embd, row);
            feed_forward(p, layer, row, other);
        }
        join(layer, TENSOR_FFN_POST_NORM, other, p->n_embd, x);
        if (traits->n_layer_embd > 0)
            add_input(p, layer, inputs + ((size_t)t * p->n_layers + l) * p->n_layer_embd, x);
        for (uint32_t i = 0; i < p->n_embd && traits->stream_scale; i++)
            x[i] *= weight_at(layer->tensors[TENSOR_STREAM_SCALE].weight, 0);
    }
    free(normed);
    free(delta);
    free(other);
    free(mixed);
}

/* [TEXTBOOK_IDS][n_layers][n_layer_embd]: what each layer gets of each id by itself. */
static double *layer_inputs(const struct model *model, const int32_t ids[TEXTBOOK_IDS], const double *stream)
{
    const struct model_params *p = &model->params;
    const size_t n = p->n_layer_embd, all = n * p->n_layers;
    const struct gguf_tensor *table = model->tensors[TENSOR_LAYER_EMBEDDING].weight;
    double *inputs = calloc(TEXTBOOK_IDS * all + 1, sizeof *inputs);
    for (uint32_t t = 0; t < TEXTBOOK_IDS && n > 0; t++) {
        double *row = inputs + t * all;
        linear(&model->tensors[TENSOR_LAYER_PROJECTION], stream + (size_t)t * p->n_embd, row);
        for (size_t i = 0; i < all; i++)
            row[i] /= sqrt(p->n_embd);
        for (uint32_t l = 0; l < p->n_layers; l++)
            normalize(&model->output_norm, &model->tensors[TENSOR_LAYER_PROJECTION_NORM], row + l * n,
                      (uint32_t)n, row + l * n);
        for (size_t i = 0; i < all; i++)
            row[i] = (row[i] + sqrt((double)n) * weight_at(table, (uint64_t)ids[t] * all + i)) / sqrt(2);
    }
    return inputs;
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
    double *inputs = layer_inputs(model, ids, stream);
    struct kept *kept = calloc(p->n_layers, sizeof *kept);
    for (uint32_t l = 0; l < p->n_layers; l++)
        run_layer(model, &model->layers[l], inputs, kept, stream);
    for (uint32_t l = 0; l < p->n_layers; l++) {
        free(kept[l].k);
        free(kept[l].v);
    }
    free(kept);
    free(inputs);
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
