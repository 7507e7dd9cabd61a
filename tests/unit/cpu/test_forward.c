/* SPDX-License-Identifier: MIT */
/* Whole passes against plain C in double, which reads the description and the tensors as they stand in the
 * file and shares no arithmetic with the backend: every architecture of the registry on random shapes, and
 * traits that no architecture of it has, put into a model's description by hand. */

#include "tests/unit/run.h"
#include "tests/unit/cpu/activations.h"
#include "tests/unit/cpu/random_weights.h"
#include "tests/unit/cpu/small_model.h"
#include "cpu/kernels/kernels.h"
#include "engine/backend/backend.h"
#include "model/architecture.h"
#include "model/traits.h"

#include <errno.h>
#include <math.h>

#define N_IDS 71

/* ---- the reference ---- */

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
    double *q, *k, *v; /* [N_IDS][heads][dim] */
    size_t n_q, n_kv;  /* of one position */
};

static void project(const struct model *model, const struct model_layer *layer, const double *normed,
                    uint32_t position, struct heads *h)
{
    const struct layer_traits *traits = &layer->traits;
    const struct head_shape *p = &traits->heads;
    double *q = h->q + position * h->n_q, *k = h->k + position * h->n_kv, *v = h->v + position * h->n_kv;
    linear(&layer->tensors[TENSOR_Q], normed, q);
    linear(&layer->tensors[TENSOR_K], normed, k);
    linear(&layer->tensors[TENSOR_V], normed, v);
    const struct model_tensor *q_norm = &layer->tensors[TENSOR_Q_NORM],
                              *k_norm = &layer->tensors[TENSOR_K_NORM];
    const bool whole = traits->qk_norm == QK_NORM_ALL;
    for (uint32_t n = whole ? (uint32_t)h->n_q : p->dim, i = 0; i < h->n_q; i += n)
        normalize(&traits->norm, q_norm, q + i, n, q + i);
    for (uint32_t n = whole ? (uint32_t)h->n_kv : p->dim, i = 0; i < h->n_kv; i += n)
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
        double weights[N_IDS],
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

/* ---- mixers ---- */

/* What attention makes of the normed rows, before the last product: [N_IDS][heads · dim]. */
static double *attention(const struct model *model, const struct model_layer *layer, const double *normed)
{
    const struct head_shape *p = &layer->traits.heads;
    struct heads h = {.n_q = (size_t)p->n * p->dim, .n_kv = (size_t)p->n_kv * p->dim};
    h.q = calloc(N_IDS * h.n_q, sizeof *h.q);
    h.k = calloc(N_IDS * h.n_kv, sizeof *h.k);
    h.v = calloc(N_IDS * h.n_kv, sizeof *h.v);
    double *out = calloc(N_IDS * h.n_q, sizeof *out), *gate = calloc(h.n_q, sizeof *gate);
    for (uint32_t t = 0; t < N_IDS; t++) {
        const double *x = normed + (size_t)t * model->params.n_embd;
        project(model, layer, x, t, &h);
        attend(layer, t, &h, out + t * h.n_q);
        if (layer->traits.output_gate)
            linear(&layer->tensors[TENSOR_OUTPUT_GATE], x, gate);
        for (size_t i = 0; i < h.n_q && layer->traits.output_gate; i++)
            out[t * h.n_q + i] /= 1 + exp(-gate[i]);
    }
    free(h.q);
    free(h.k);
    free(h.v);
    free(gate);
    return out;
}

/* Queries, keys and values of all rows behind the convolution, [N_IDS][channels]. */
static double *convolved(const struct model *model, const struct model_layer *layer, const double *normed)
{
    static const enum tensor_role roles[] = {TENSOR_Q, TENSOR_K, TENSOR_V};
    const struct gguf_tensor *taps = layer->tensors[TENSOR_TAPS].weight;
    const size_t n = delta_net_channels(&layer->traits.delta), n_taps = layer->traits.delta.n_taps;
    double *before = calloc(N_IDS * n, sizeof *before), *after = calloc(N_IDS * n, sizeof *after);
    for (uint32_t t = 0; t < N_IDS; t++) {
        double *row = before + t * n;
        for (int i = 0; i < 3; row += layer->tensors[roles[i++]].rows)
            linear(&layer->tensors[roles[i]], normed + (size_t)t * model->params.n_embd, row);
    }
    for (uint32_t t = 0; t < N_IDS; t++)
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
    double *mixed = convolved(model, layer, normed), *out = calloc(N_IDS * n_values, sizeof *out);
    double *states = calloc(net->n_value_heads * n_state, sizeof *states);
    double *gate = calloc(n_values, sizeof *gate);
    double *alphas = calloc(net->n_value_heads, sizeof *alphas),
           *betas = calloc(net->n_value_heads, sizeof *betas);
    for (uint32_t t = 0; t < N_IDS; t++) {
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

static void run_layer(const struct model *model, const struct model_layer *layer, double *stream)
{
    const struct model_params *p = &model->params;
    const struct layer_traits *traits = &layer->traits;
    const bool recurrent = traits->mixer == MIXER_DELTA;
    const struct model_tensor *last =
        &layer->tensors[recurrent ? TENSOR_DELTA_OUTPUT : TENSOR_ATTENTION_OUTPUT];
    double *normed = calloc((size_t)N_IDS * p->n_embd, sizeof *normed);
    double *delta = calloc(p->n_embd, sizeof *delta), *other = calloc(p->n_embd, sizeof *other);
    for (uint32_t t = 0; t < N_IDS; t++)
        normalize(&traits->norm, &layer->tensors[TENSOR_ATTENTION_NORM], stream + (size_t)t * p->n_embd,
                  p->n_embd, normed + (size_t)t * p->n_embd);
    double *mixed = (recurrent ? delta_net : attention)(model, layer, normed);
    for (uint32_t t = 0; t < N_IDS; t++) {
        double *x = stream + (size_t)t * p->n_embd, *row = normed + (size_t)t * p->n_embd;
        linear(last, mixed + (size_t)t * last->columns, delta);
        if (traits->parallel)
            feed_forward(p, layer, row, other);
        join(layer, TENSOR_ATTENTION_POST_NORM, delta, p->n_embd, x);
        if (!traits->parallel) {
            normalize(&traits->norm, &layer->tensors[TENSOR_FFN_NORM], x, p->n_embd, row);
            feed_forward(p, layer, row, other);
        }
        join(layer, TENSOR_FFN_POST_NORM, other, p->n_embd, x);
    }
    free(normed);
    free(delta);
    free(other);
    free(mixed);
}

struct expected {
    double *logits; /* [N_IDS][n_vocab] of all positions */
    double *sums;   /* [n_embd] of their final states */
};

static struct expected reference(const struct model *model, const int32_t ids[N_IDS])
{
    const struct model_params *p = &model->params;
    const struct gguf_tensor *positions = model->tensors[TENSOR_POSITIONS].weight;
    double *stream = calloc((size_t)N_IDS * p->n_embd, sizeof *stream);
    for (uint32_t t = 0; t < N_IDS; t++)
        for (uint32_t i = 0; i < p->n_embd; i++) {
            double *x = stream + (size_t)t * p->n_embd + i;
            *x = weight_at(model->tensors[TENSOR_EMBEDDING].weight, (uint64_t)ids[t] * p->n_embd + i);
            *x *= (double)p->embedding_scale;
            *x += positions ? weight_at(positions, (uint64_t)t * p->n_embd + i) : 0;
        }
    for (uint32_t l = 0; l < p->n_layers; l++)
        run_layer(model, &model->layers[l], stream);
    double *logits = calloc((size_t)N_IDS * p->n_vocab, sizeof *logits);
    double *sums = calloc(p->n_embd, sizeof *sums);
    for (uint32_t t = 0; t < N_IDS; t++) {
        double *x = stream + (size_t)t * p->n_embd, *row = logits + (size_t)t * p->n_vocab;
        normalize(&model->output_norm, &model->tensors[TENSOR_OUTPUT_NORM], x, p->n_embd, x);
        linear(&model->tensors[TENSOR_OUTPUT], x, row);
        for (uint32_t i = 0; i < p->n_embd; i++)
            sums[i] += x[i];
        for (uint32_t i = 0; i < p->n_vocab; i++)
            row[i] = capped(row[i] * (double)p->logit_factor, p->logit_cap);
    }
    free(stream);
    return (struct expected){logits, sums};
}

/* ---- the backend ---- */

/* The logits of all positions; or, in *ret_sums, the sums of their final states, and NULL. */
static float *run_backend(const struct model *model, const char *kernels, const int32_t ids[N_IDS],
                          double *ret_sums)
{
    static const uint32_t blocks[] = {2, 0, 1};
    struct backend_info info;
    struct backend_config config = {.model = model,
                                    .n_slots = 1,
                                    .n_context = N_IDS,
                                    .n_blocks = 3,
                                    .max_rows = 40,
                                    .cpu = {.n_threads = 2}};
    struct backend *backend = NULL;
    struct error err = {0};
    float *logits = ret_sums ? NULL : calloc((size_t)N_IDS * model->params.n_vocab, sizeof *logits);
    setenv("QUERN_KERNELS", kernels, 1);
    ck_assert_msg(backend_cpu.open(&config, &backend, &err) == 0, "%s", err.text);
    struct backend_slot slot = {.sampling = {.top_p = 1, .repetition_penalty = 1},
                                .end_position = N_IDS + 1,
                                .embeds = ret_sums != NULL};
    ck_assert_int_eq(backend_cpu.slot_open(backend, 0, &slot), 0);
    backend_cpu.info(backend, &info);
    ck_assert_uint_eq(info.n_embedding, model->params.n_embd);
    uint32_t told = 0;
    for (uint32_t at = 0, n; at < N_IDS; at += n) {
        n = at == 0 ? 37 : at < 60 ? 1 : N_IDS - at;
        uint32_t need = backend_blocks_for(at + n);
        struct backend_row_set set = {
            .ids = ids + at, .n_ids = n, .position = at, .output = BACKEND_LOGITS_ALL};
        if (ret_sums)
            set.output = at + n < N_IDS ? BACKEND_OUTPUT_NONE : BACKEND_SUM_LAST;
        else
            set.logits = logits + (size_t)at * model->params.n_vocab;
        struct backend_step step = {.sets = &set, .n_sets = 1};
        const struct backend_result *results;
        uint64_t ticket;
        for (uint32_t g = 0; g < info.n_groups; g++)
            set.blocks[g] = (struct backend_blocks){blocks + told, need - told, told};
        told = need;
        ck_assert_int_eq(backend_cpu.submit(backend, &step, &ticket), 0);
        ck_assert_int_eq(backend_cpu.poll(backend, ticket, 0, &results, NULL), 0);
        ck_assert_int_eq(results->sums != NULL, ret_sums && at + n == N_IDS);
        if (results->sums && ret_sums)
            memcpy(ret_sums, results->sums, model->params.n_embd * sizeof *ret_sums);
    }
    backend_cpu.close(backend);
    return logits;
}

/* That the sums are right but for what rounding does. */
static void check_sums(const struct model *model, const char *what, const char *kernels,
                       const int32_t ids[N_IDS], const double *expected)
{
    double *sums = calloc(model->params.n_embd, sizeof *sums), wrong = 0, size = 0;
    run_backend(model, kernels, ids, sums);
    for (uint32_t i = 0; i < model->params.n_embd; i++) {
        wrong += (sums[i] - expected[i]) * (sums[i] - expected[i]);
        size += expected[i] * expected[i];
    }
    ck_assert_msg(wrong <= 1e-6 * size, "%s, %s: sums of states, NMSE %.2g", what, kernels, wrong / size);
    free(sums);
}

/* Every row of logits, and what an embedding is made of, on every build of the kernels. */
static void check(const struct model *model, const char *what)
{
    int32_t ids[N_IDS];
    uint32_t n = model->params.n_vocab;
    for (uint32_t i = 0; i < N_IDS; i++)
        ids[i] = (int32_t)(random_u32() % n);
    const struct expected right = reference(model, ids);
    const double *expected = right.logits;
    const struct kernels *kernels;
    for (uint32_t k = 0; (kernels = kernels_at(k)); k++) {
        float *logits = run_backend(model, kernels->name, ids, NULL);
        check_sums(model, what, kernels->name, ids, right.sums);
        for (uint32_t t = 0; t < N_IDS; t++) {
            double wrong = 0, size = 0;
            for (uint32_t i = 0; i < n; i++) {
                double y = expected[(size_t)t * n + i], off = (double)logits[(size_t)t * n + i] - y;
                wrong += off * off;
                size += y * y;
            }
            ck_assert_msg(wrong <= 1e-6 * size, "%s, %s, position %u: NMSE %.2g", what, kernels->name, t,
                          wrong / size);
        }
        free(logits);
    }
    free(right.logits);
    free(right.sums);
}

/* ---- models ---- */

/* Norms of synthetic models are ones: they get weights that matter, in copies which the caller frees. */
struct copies {
    struct gguf_tensor tensors[256];
    size_t n;
};

static void shake(struct model_tensor *t, struct copies *copies)
{
    if (!t->weight)
        return;
    ck_assert_uint_lt(copies->n, 256);
    struct gguf_tensor *copy = &copies->tensors[copies->n++];
    *copy = *t->weight;
    float *values = malloc(copy->size);
    for (size_t i = 0; i < copy->size / sizeof *values; i++)
        values[i] = 1 + 0.5f * random_float();
    copy->data = values;
    t->weight = copy;
}

static void shake_norms(struct model *model, struct copies *copies)
{
    shake(&model->tensors[TENSOR_OUTPUT_NORM], copies);
    for (uint32_t l = 0; l < model->params.n_layers; l++)
        for (enum tensor_role role = TENSOR_LAYER_ROLES; role < TENSOR_ROLES; role++)
            if (tensor_is_vector(role) && role != TENSOR_DECAY) /* which is negative */
                shake(&model->layers[l].tensors[role], copies);
}

static void free_all(struct model *model, struct copies *copies)
{
    for (size_t i = 0; i < copies->n; i++)
        free((void *)copies->tensors[i].data);
    copies->n = 0;
    model_free(model);
}

static struct synth_shape random_shape(const char *architecture)
{
    uint32_t n_kv_heads = 1 + random_u32() % 2, group = 1 + random_u32() % 3;
    struct synth_shape shape = {.name = "random",
                                .architecture = architecture,
                                .n_vocab = 360 + random_u32() % 9,
                                .n_context = 80,
                                .n_embd = 16 + random_u32() % 40,
                                .n_layers = 2,
                                .n_heads = n_kv_heads * group,
                                .n_kv_heads = n_kv_heads,
                                .head_dim = 4 + 2 * (random_u32() % 9),
                                .n_ff = 10 + random_u32() % 50,
                                .norm_epsilon = 1e-5f,
                                .rope_base = 10000,
                                .tied = random_u32() % 2,
                                .window = random_u32() % 2 ? 1 + random_u32() % 50 : 0};
    shape.rope_dims = shape.head_dim - 2 * (random_u32() % 2);
    return shape;
}

/* The first and third layer are recurrent. */
static void make_hybrid(struct synth_shape *shape)
{
    const uint32_t n_keys = 1 + random_u32() % 3;
    shape->n_layers = 4;
    shape->attention_interval = 2;
    shape->delta = (struct delta_net){.n_key_heads = n_keys,
                                      .n_value_heads = n_keys * (1 + random_u32() % 3),
                                      .key_dim = 3 + random_u32() % 20,
                                      .value_dim = 3 + random_u32() % 20,
                                      .n_taps = 1 + random_u32() % 4};
}

START_TEST(every_architecture_computes_what_its_description_says)
{
    const struct architecture *architecture = architectures[_i];
    struct copies *copies = calloc(1, sizeof *copies);
    for (int round = 0; round < 3; round++) {
        struct synth_shape shape = random_shape(architecture->name);
        shape.biases = round == 1;
        shape.rope_factor = round == 2 ? 4 : 0;
        shape.cap = round == 2 ? 20 : 0;
        shape.n_layers = strcmp(architecture->name, "gemma3") == 0 ? 7 : 2; /* the sixth sees everything */
        if (architecture->delta_nets)
            make_hybrid(&shape);
        if (architecture->always_experts || round == 1) {
            shape.n_experts = 3 + random_u32() % 9;
            shape.n_experts_used = 1 + random_u32() % 3;
            shape.n_expert_ff = 5 + random_u32() % 30;
            shape.n_shared_ff = round == 1 ? 3 + random_u32() % 60 : 0;
        }
        if (shape.tied && (architecture->biases & TENSOR_BIT(TENSOR_OUTPUT)))
            shape.tied = false;
        struct model *model = make_model(&shape, round == 0 ? "F16" : "F32");
        ck_assert_str_eq(model->params.architecture, architecture->name);
        shake_norms(model, copies);
        check(model, architecture->name);
        free_all(model, copies);
    }
    free(copies);
}
END_TEST

static void scales(struct model *model)
{
    model->params.embedding_scale = 3;
    model->params.logit_factor = 0.3f;
    for (uint32_t l = 0; l < model->params.n_layers; l++) {
        model->layers[l].traits.residual_scale = 0.7f;
        model->layers[l].traits.attention_scale = 0.9f;
    }
}

static void offsets(struct model *model)
{
    model->output_norm.offset = 1;
    for (uint32_t l = 0; l < model->params.n_layers; l++)
        model->layers[l].traits.norm.offset = 0.5f;
}

static void norms_behind_only(struct model *model)
{
    for (uint32_t l = 0; l < model->params.n_layers; l++) {
        struct model_layer *layer = &model->layers[l];
        layer->traits.norm_place = NORM_AFTER;
        layer->tensors[TENSOR_ATTENTION_POST_NORM] = layer->tensors[TENSOR_ATTENTION_NORM];
        layer->tensors[TENSOR_FFN_POST_NORM] = layer->tensors[TENSOR_FFN_NORM];
        layer->tensors[TENSOR_ATTENTION_NORM].weight = layer->tensors[TENSOR_FFN_NORM].weight = NULL;
    }
}

static void squared_relu_in_one_layer_no_gate_in_the_other(struct model *model)
{
    model->layers[0].traits.activation = ACTIVATION_RELU_SQUARED;
    model->layers[1].traits.gated = false;
}

static void side_by_side(struct model *model)
{
    for (uint32_t l = 0; l < model->params.n_layers; l++)
        model->layers[l].traits.parallel = true;
}

static void linear_scaling_of_one_layer(struct model *model)
{
    struct rotary *rotary = &model->layers[1].traits.rotary;
    rotary->scaling = ROTARY_LINEAR;
    rotary->factor = 3;
}

static void yarn_scaling_of_one_layer(struct model *model)
{
    struct rotary *rotary = &model->layers[1].traits.rotary;
    rotary->scaling = ROTARY_YARN;
    rotary->factor = 4;
    rotary->base = 20;
    rotary->trained_context = 40;
    rotary->fast_turns = 2;
    rotary->slow_turns = 0.5f;
    rotary->magnitude = 1.1386f;
}

static void growing_queries_of_one_layer(struct model *model)
{
    model->layers[1].traits.query_growth = (struct query_growth){.factor = 0.7f, .span = 5};
}

START_TEST(traits_beyond_the_registry_are_executed_too)
{
    static const struct {
        const char *what;
        void (*change)(struct model *model);
        enum model_trait trait;
    } cases[] = {{"scales", scales, TRAIT_SCALES},
                 {"offsets", offsets, TRAIT_NORM_OFFSET},
                 {"norms behind only", norms_behind_only, TRAIT_NORM_AFTER},
                 {"squared ReLU, no gate", squared_relu_in_one_layer_no_gate_in_the_other, TRAIT_UNGATED},
                 {"side by side", side_by_side, TRAIT_PARALLEL},
                 {"linear scaling", linear_scaling_of_one_layer, TRAIT_ROTARY_LINEAR},
                 {"YaRN", yarn_scaling_of_one_layer, TRAIT_ROTARY_YARN},
                 {"growing queries", growing_queries_of_one_layer, TRAIT_QUERY_GROWTH}};
    struct copies *copies = calloc(1, sizeof *copies);
    struct synth_shape shape = random_shape(NULL);
    struct model *model = make_model(&shape, "F32");
    shake_norms(model, copies);
    ck_assert(!(model_traits(model) & TRAIT_BIT(cases[_i].trait)));
    cases[_i].change(model);
    ck_assert(model_traits(model) & TRAIT_BIT(cases[_i].trait));
    check(model, cases[_i].what);
    free_all(model, copies);
    free(copies);
}
END_TEST

/* Every kind there is, whether an architecture of the registry has it or not. */
START_TEST(every_kind_is_computed_by_the_textbook)
{
    static const enum norm_kind norms[] = {
#define EACH(name, id, words) NORM_##name,
        NORM_KINDS(EACH)
#undef EACH
    };
    static const enum rotary_kind rotaries[] = {
#define EACH(name, id, words) ROTARY_##name,
        ROTARY_KINDS(EACH)
#undef EACH
    };
    const size_t most = KINDS_OF(ACTIVATIONS) * KINDS_OF(NORM_KINDS) * KINDS_OF(ROTARY_KINDS);
    struct copies *copies = calloc(1, sizeof *copies);
    struct synth_shape shape = random_shape(NULL);
    struct model *model = make_model(&shape, "F32");
    shake_norms(model, copies);
    for (size_t i = 0; i < most; i++) {
        for (uint32_t l = 0; l < model->params.n_layers; l++) {
            struct layer_traits *traits = &model->layers[l].traits;
            traits->activation = every_activation[(i + l) % KINDS_OF(ACTIVATIONS)];
            traits->norm.kind = norms[(i / KINDS_OF(ACTIVATIONS) + l) % KINDS_OF(NORM_KINDS)];
            traits->rotary.kind =
                rotaries[(i / KINDS_OF(ACTIVATIONS) / KINDS_OF(NORM_KINDS) + l) % KINDS_OF(ROTARY_KINDS)];
        }
        check(model, "every kind");
    }
    free_all(model, copies);
    free(copies);
}
END_TEST

static void expect_refusal(const struct model *model, uint32_t n_context, const char *says)
{
    struct backend_config config = {
        .model = model, .n_slots = 1, .n_context = n_context, .max_rows = 8, .cpu = {.n_threads = 1}};
    struct backend *backend = NULL;
    struct error err = {0};
    ck_assert_int_eq(backend_cpu.open(&config, &backend, &err), -EINVAL);
    ck_assert_msg(strstr(err.text, says), "\"%s\" expected: %s", says, err.text);
    ck_assert_ptr_null(backend);
}

START_TEST(what_cannot_be_computed_is_refused_by_its_name)
{
    struct synth_shape shape = random_shape("gpt2");
    struct model *model = make_model(&shape, "F32");
    expect_refusal(model, 81, "a context of 81 exceeds the model's 80 learned positions");
    model_free(model);
}
END_TEST

static void add(TCase *tests)
{
    int n = 0;
    while (architectures[n])
        n++;
    tcase_add_loop_test(tests, every_architecture_computes_what_its_description_says, 0, n);
    tcase_add_test(tests, every_kind_is_computed_by_the_textbook);
    tcase_add_loop_test(tests, traits_beyond_the_registry_are_executed_too, 0, 8);
    tcase_add_test(tests, what_cannot_be_computed_is_refused_by_its_name);
}

int main(void)
{
    return run_tests("forward", add);
}
