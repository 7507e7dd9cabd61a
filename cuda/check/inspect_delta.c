/* SPDX-License-Identifier: MIT */
/* Gated delta nets: the products, the convolution and what is made of its rows, the recurrence, and the norm
 * and gate behind it.
 *
 * The recurrence needs all rows of a pass, and is looked at for one of sixteen rows of S: what they
 * gave at each row, and what was left of them in the state and in the snapshot. Of the tail every number
 * has to be the one that it is a copy of. */

#include "cuda/check/inspect_parts.h"

#include <math.h>
#include <string.h>

#include "cuda/check/inspect_compare.h"
#include "cuda/check/reference.h"

#define PROBED 16 /* rows of a head of which one is looked at */

static const struct delta_net *net_of(const struct inspection *look, uint32_t layer)
{
    return &look->model->layers[layer].traits.delta;
}

/* All rows of an array. */
static int bring_all(struct inspection *look, const float *from, uint32_t stride, float *to)
{
    return inspection_bring(look, from, (size_t)look->n_rows * stride * sizeof *to, to);
}

/* A layer's part of the sequence's state, or of the snapshot. */
static int bring_state(struct inspection *look, uint32_t layer, bool snapshot, float *to)
{
    const struct device_states *states = look->pass->states;
    const float *from = snapshot ? states->pool.snapshots : states->pool.slots;
    return inspection_bring(look, from + states->offsets[layer],
                            kernels_delta_numbers(net_of(look, layer)) * sizeof *to, to);
}

/* ---- products ---- */

int inspect_output_gate(struct inspection *look, uint32_t layer)
{
    const struct workspace *w = look->pass->workspace;
    const uint32_t stride = w->attended.stride;
    int r = inspect_bring_rows(look, w->output_gate, stride * sizeof(float), look->output_gate);
    return r < 0 ? r
                 : inspect_layer_product(look, "multiply", layer, TENSOR_OUTPUT_GATE, &look->normed,
                                         look->output_gate, stride);
}

int inspect_delta_products(struct inspection *look, uint32_t layer)
{
    const struct workspace *w = look->pass->workspace;
    const uint32_t stride = w->deltas.gate_stride;
    int r = inspect_qkv(look, layer);
    if (r == 0)
        r = inspect_output_gate(look, layer);
    if (r == 0)
        r = inspect_bring_rows(look, w->deltas.betas, stride * sizeof(float), look->betas);
    if (r == 0)
        r = inspect_bring_rows(look, w->deltas.decays, stride * sizeof(float), look->decays);
    if (r == 0)
        r = inspect_layer_product(look, "multiply", layer, TENSOR_BETA, &look->normed, look->betas, stride);
    if (r == 0)
        r = inspect_layer_product(look, "multiply", layer, TENSOR_ALPHA, &look->normed, look->decays, stride);
    if (r == 0)
        r = bring_all(look, w->q, w->q_stride, look->delta_net.q);
    if (r == 0)
        r = bring_all(look, w->k, w->kv_stride, look->delta_net.k);
    if (r == 0)
        r = bring_all(look, w->v, w->kv_stride, look->delta_net.v);
    return r < 0 ? r : bring_state(look, layer, false, look->delta_net.before);
}

/* ---- rows before the recurrence ---- */

/* A channel of the row `at` before the convolution; rows before the pass, from −1 down, are in the tail. */
static float channel_at(const struct inspection *look, uint32_t layer, int64_t at, uint32_t channel)
{
    const struct workspace *w = look->pass->workspace;
    const struct delta_net *net = net_of(look, layer);
    const uint32_t queries = net->n_key_heads * net->key_dim;
    if (at < 0)
        return look->delta_net
            .before[(size_t)(at + net->n_taps - 1) * kernels_state_padded(delta_net_channels(net)) + channel];
    if (channel < queries)
        return look->delta_net.q[(size_t)at * w->q_stride + channel];
    return channel < 2 * queries ? look->delta_net.k[(size_t)at * w->kv_stride + channel - queries]
                                 : look->delta_net.v[(size_t)at * w->kv_stride + channel - 2 * queries];
}

/* n channels of a row from `first` on, behind the convolution, into look->expected. */
static void convolve(struct inspection *look, uint32_t layer, uint32_t row, uint32_t first, uint32_t n)
{
    const struct delta_net *net = net_of(look, layer);
    const struct model_tensor *taps = &look->model->layers[layer].tensors[TENSOR_TAPS];
    for (uint32_t c = 0; c < n; c++) {
        double sum = 0;
        reference_row_of(taps, first + c, look->weights);
        for (uint32_t t = 0; t < net->n_taps; t++)
            sum += (double)look->weights[t] *
                   (double)channel_at(look, layer, (int64_t)row + t + 1 - net->n_taps, first + c);
        look->expected[c] = reference_activation(ACTIVATION_SILU, sum);
    }
}

/* Heads of queries, keys or values: `scale` 0: they are no unit vectors. */
struct heads {
    const float *found; /* of the row */
    uint32_t n, dim, channel;
    double scale;
};

static int check_heads(struct inspection *look, uint32_t layer, uint32_t row, const struct heads *heads)
{
    const struct inspect_site site = {"delta_prepare", NULL, layer, row, OFF_ROW};
    int r = 0;
    for (uint32_t h = 0; h < heads->n && r == 0; h++) {
        double squares = 0;
        convolve(look, layer, row, heads->channel + h * heads->dim, heads->dim);
        for (uint32_t d = 0; d < heads->dim; d++)
            squares += look->expected[d] * look->expected[d];
        for (uint32_t d = 0; d < heads->dim && heads->scale > 0; d++)
            look->expected[d] *= heads->scale / sqrt(squares + (double)DELTA_NET_EPSILON);
        r = inspect_compare(look, &site, heads->found + (size_t)h * heads->dim, look->expected, heads->dim);
    }
    return r;
}

/* β and α of picked row i, from what the products gave. */
static int check_gates(struct inspection *look, uint32_t layer, uint32_t i)
{
    const struct model_layer *from = &look->model->layers[layer];
    const struct inspect_site site = {"delta_prepare", NULL, layer, look->picked[i], OFF_ROW};
    const uint32_t n = from->traits.delta.n_value_heads, stride = look->pass->workspace->deltas.gate_stride;
    const size_t row = (size_t)look->picked[i] * stride, before = (size_t)i * stride;
    int r = 0;
    reference_row_of(&from->tensors[TENSOR_STEP_BIAS], 0, look->weights);
    for (uint32_t h = 0; h < n; h++) {
        const double x = (double)look->decays[before + h] + (double)look->weights[h];
        look->expected[h] = x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
    }
    reference_row_of(&from->tensors[TENSOR_DECAY], 0, look->weights);
    for (uint32_t h = 0; h < n && r == 0; h++) {
        const double alpha = exp((double)look->weights[h] * look->expected[h]);
        const double beta = 1 / (1 + exp(-(double)look->betas[before + h]));
        if (!inspect_agree((double)look->delta_net.decays[row + h], alpha, 1, site.off))
            r = inspect_differ(look, &site, h, (double)look->delta_net.decays[row + h], alpha);
        else if (!inspect_agree((double)look->delta_net.betas[row + h], beta, 1, site.off))
            r = inspect_differ(look, &site, h, (double)look->delta_net.betas[row + h], beta);
    }
    return r;
}

int inspect_delta_rows(struct inspection *look, uint32_t layer)
{
    const struct delta_workspace *w = &look->pass->workspace->deltas;
    const struct delta_net *net = net_of(look, layer);
    const uint32_t queries = net->n_key_heads * net->key_dim;
    int r = bring_all(look, w->queries, w->key_stride, look->delta_net.queries);
    if (r == 0)
        r = bring_all(look, w->keys, w->key_stride, look->delta_net.keys);
    if (r == 0)
        r = bring_all(look, w->values, w->value_stride, look->delta_net.values);
    if (r == 0)
        r = bring_all(look, w->betas, w->gate_stride, look->delta_net.betas);
    if (r == 0)
        r = bring_all(look, w->decays, w->gate_stride, look->delta_net.decays);
    for (uint32_t i = 0; i < look->n_picked && r == 0 && !look->broken; i++) {
        const uint32_t row = look->picked[i];
        const struct heads parts[] = {
            {look->delta_net.queries + (size_t)row * w->key_stride, net->n_key_heads, net->key_dim, 0,
             1 / sqrt(net->key_dim)},
            {look->delta_net.keys + (size_t)row * w->key_stride, net->n_key_heads, net->key_dim, queries, 1},
            {look->delta_net.values + (size_t)row * w->value_stride, net->n_value_heads, net->value_dim,
             2 * queries, 0}};
        for (uint32_t p = 0; p < 3 && r == 0 && !look->broken; p++)
            r = check_heads(look, layer, row, &parts[p]);
        if (r == 0 && !look->broken)
            r = check_gates(look, layer, i);
    }
    return r;
}

/* ---- the recurrence ---- */

/* A row of S on its way, in look->more: what it was, and what is left of it. */
struct probe {
    uint32_t head, d;
    size_t at;   /* in a layer's part of a state */
    double size; /* of what was added up, at most */
};

/* Of each PROBED rows of a head one, others in each layer. */
static uint32_t n_probes(const struct delta_net *net)
{
    return net->n_value_heads * ((net->value_dim + PROBED - 1) / PROBED);
}

static struct probe probe_of(const struct inspection *look, uint32_t layer, uint32_t nth)
{
    const struct delta_net *net = net_of(look, layer);
    const uint32_t n_parts = (net->value_dim + PROBED - 1) / PROBED, head = nth / n_parts;
    const uint32_t d = nth % n_parts * PROBED + (nth + layer) * 7 % PROBED;
    struct probe probe = {.head = head, .d = d < net->value_dim ? d : net->value_dim - 1};
    probe.at = kernels_delta_tail(net) +
               ((size_t)head * net->value_dim + probe.d) * kernels_state_padded(net->key_dim);
    return probe;
}

/* Is what is kept of the probe what it is now? */
static int check_kept(struct inspection *look, uint32_t layer, const struct probe *probe, uint32_t row,
                      const float *state)
{
    const struct inspect_site site = {"delta_rule", NULL, layer, row, OFF_ROW};
    int r = 0;
    for (uint32_t i = 0; i < net_of(look, layer)->key_dim && r == 0; i++)
        if (!inspect_agree((double)state[probe->at + i], look->more[i], probe->size, site.off))
            r = inspect_differ(look, &site, i, (double)state[probe->at + i], look->more[i]);
    return r;
}

/* One row of the pass: S ← α S, d = β (v − S k), S ← S + d kᵀ, S q. */
static int follow(struct inspection *look, uint32_t layer, struct probe *probe, uint32_t row)
{
    const struct delta_workspace *w = &look->pass->workspace->deltas;
    const struct delta_net *net = net_of(look, layer);
    const struct inspect_site site = {"delta_rule", NULL, layer, row, OFF_ROW};
    const size_t key = (size_t)row * w->key_stride + delta_net_key_head(net, probe->head) * net->key_dim;
    const size_t value = (size_t)row * w->value_stride + probe->head * net->value_dim + probe->d;
    const size_t gate = (size_t)row * w->gate_stride + probe->head;
    const double alpha = (double)look->delta_net.decays[gate], v = (double)look->delta_net.values[value];
    double recalled = 0, given = 0, terms = fabs(v), size = 0, longest = 0;
    for (uint32_t i = 0; i < net->key_dim; i++) {
        const double term = alpha * look->more[i] * (double)look->delta_net.keys[key + i];
        recalled += term;
        terms += fabs(term);
    }
    const double delta = (double)look->delta_net.betas[gate] * (v - recalled);
    for (uint32_t i = 0; i < net->key_dim; i++) {
        const double q = (double)look->delta_net.queries[key + i];
        look->more[i] = alpha * look->more[i] + delta * (double)look->delta_net.keys[key + i];
        given += look->more[i] * q;
        size += fabs(look->more[i] * q);
        longest = fmax(longest, fabs(q));
        terms = fmax(terms, fabs(look->more[i]));
    }
    probe->size = fmax(probe->size, terms);
    const double found = (double)look->delta_net.given[value];
    return inspect_agree(found, given, size + probe->size * longest, site.off)
               ? 0
               : inspect_differ(look, &site, probe->head * net->value_dim + probe->d, found, given);
}

static int check_probe(struct inspection *look, uint32_t layer, struct probe probe)
{
    int r = 0;
    for (uint32_t i = 0; i < net_of(look, layer)->key_dim; i++)
        look->more[i] = (double)look->delta_net.before[probe.at + i];
    for (uint32_t row = 0; row < look->n_rows && r == 0 && !look->broken; row++) {
        r = follow(look, layer, &probe, row);
        if (r == 0 && !look->broken && row + 1 == look->snapshot_rows)
            r = check_kept(look, layer, &probe, row, look->delta_net.snapshot);
    }
    return r < 0 || look->broken ? r
                                 : check_kept(look, layer, &probe, look->n_rows - 1, look->delta_net.after);
}

/* The tail behind n rows of the pass. */
static int check_tail(struct inspection *look, uint32_t layer, uint32_t n, const float *state)
{
    const struct delta_net *net = net_of(look, layer);
    const struct inspect_site site = {"delta_rule, the tail", NULL, layer, n - 1, 0};
    const uint32_t channels = delta_net_channels(net), n_tail = net->n_taps - 1;
    int r = 0;
    for (uint32_t t = 0; t < n_tail; t++)
        for (uint32_t c = 0; c < channels && r == 0; c++) {
            const float expected = channel_at(look, layer, (int64_t)n + t - n_tail, c);
            const float found = state[(size_t)t * kernels_state_padded(channels) + c];
            if (memcmp(&found, &expected, sizeof found) != 0)
                r = inspect_differ(look, &site, c, (double)found, (double)expected);
        }
    return r;
}

int inspect_delta_rule(struct inspection *look, uint32_t layer)
{
    const struct delta_workspace *w = &look->pass->workspace->deltas;
    int r = bring_all(look, w->values, w->value_stride, look->delta_net.given);
    if (r == 0)
        r = bring_state(look, layer, false, look->delta_net.after);
    if (r == 0 && look->snapshot_rows > 0)
        r = bring_state(look, layer, true, look->delta_net.snapshot);
    for (uint32_t nth = 0; nth < n_probes(net_of(look, layer)) && r == 0 && !look->broken; nth++)
        r = check_probe(look, layer, probe_of(look, layer, nth));
    if (r == 0 && !look->broken && look->snapshot_rows > 0)
        r = check_tail(look, layer, look->snapshot_rows, look->delta_net.snapshot);
    return r < 0 || look->broken ? r : check_tail(look, layer, look->n_rows, look->delta_net.after);
}

/* ---- behind it ---- */

int inspect_delta_gate(struct inspection *look, uint32_t layer)
{
    const struct workspace *w = look->pass->workspace;
    const struct model_layer *from = &look->model->layers[layer];
    const struct delta_net *net = net_of(look, layer);
    const struct norm norm = {.kind = NORM_RMS, .epsilon = from->traits.norm.epsilon};
    const uint32_t dim = net->value_dim, n = net->n_value_heads * dim;
    int r = inspect_bring_activations(look, &w->attended, &look->attended);
    for (uint32_t i = 0; i < look->n_picked && r == 0; i++) {
        const float *given = look->delta_net.given + (size_t)look->picked[i] * w->deltas.value_stride;
        const float *gate = look->output_gate + (size_t)i * w->attended.stride;
        for (uint32_t c = 0; c < n; c++)
            look->expected[c] = (double)given[c];
        for (uint32_t h = 0; h < net->n_value_heads; h++)
            reference_norm(&norm, &from->tensors[TENSOR_DELTA_NORM], look->expected + h * dim, dim,
                           look->weights, look->expected + h * dim);
        for (uint32_t c = 0; c < n; c++)
            look->expected[c] *= reference_activation(ACTIVATION_SILU, (double)gate[c]);
        r = inspect_activations(look, "delta_gate", layer, i, &look->attended, look->expected, n);
    }
    return r;
}

/* ---- made up ---- */

/* Other numbers for each, within ±0.5. */
static float invent(uint32_t of)
{
    uint32_t x = (of + 1) * 2654435761u;
    x = (x ^ x >> 15) * 2246822519u;
    return (float)((x ^ x >> 13) % 255) / 254 - 0.5f;
}

int inspection_invent_state(struct inspection *look, uint32_t layer)
{
    const struct device_states *states = look->pass->states;
    const size_t n = kernels_delta_numbers(net_of(look, layer));
    for (size_t i = 0; i < n; i++)
        look->delta_net.before[i] = invent((uint32_t)i);
    return inspection_send(look, look->delta_net.before, n * sizeof(float),
                           states->pool.snapshots + states->offsets[layer]);
}
