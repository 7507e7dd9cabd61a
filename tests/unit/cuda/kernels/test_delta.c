/* SPDX-License-Identifier: MIT */
/* Gated delta nets: convolution, recurrence and gate are those of plain C, and the bits of a row and of a
 * state depend on the sequence alone: not on how it is cut into steps, nor on what else a step has. */

#include "cuda/kernels/kernels.h"
#include "tests/unit/cuda/device.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define SLOTS  4
#define ROWS   48 /* of a sequence, and of a step at most */
#define STRIDE 768

static const struct delta_net nets[] = {{2, 4, 32, 16, 4, false}, {2, 6, 11, 13, 3, true},
                                        {1, 3, 40, 20, 2, false}, {3, 3, 5, 7, 1, false},
                                        {1, 2, 128, 18, 4, true}, {1, 1, 200, 33, 4, false}};
#define NETS ((int)(sizeof nets / sizeof *nets))

/* A sequence's rows as the products make them, and where what comes of them is put. */
struct sequence {
    float *q, *k, *v, *betas, *decays; /* [ROWS][STRIDE] */
    float *given;
};

static struct delta_step step;
static struct step_memory memory;
static struct sequence sequences[SLOTS];
static float *taps, *step_bias, *rates;
static size_t offset_of_others = 8; /* of another layer's part before this one's */

static float *random_rows(uint32_t *seed, float size)
{
    float *rows = take(ROWS * STRIDE, sizeof *rows);
    for (uint32_t i = 0; i < ROWS * STRIDE; i++)
        rows[i] = size * next_real(seed);
    return rows;
}

static void set_up(int nth)
{
    const struct delta_net *net = &nets[nth];
    uint32_t seed = 17 + (uint32_t)nth;
    open_device();
    const uint32_t channels = delta_net_channels(net);
    taps = take(channels * net->n_taps, sizeof *taps);
    step_bias = take(net->n_value_heads, sizeof *step_bias);
    rates = take(net->n_value_heads, sizeof *rates);
    for (uint32_t i = 0; i < channels * net->n_taps; i++)
        taps[i] = next_real(&seed);
    for (uint32_t i = 0; i < net->n_value_heads; i++) {
        step_bias[i] = next_real(&seed);
        rates[i] = -0.05f - 0.5f * fabsf(next_real(&seed));
    }
    step = (struct delta_step){.net = *net,
                               .q = take(ROWS * STRIDE, sizeof(float)),
                               .k = take(ROWS * STRIDE, sizeof(float)),
                               .v = take(ROWS * STRIDE, sizeof(float)),
                               .taps = taps,
                               .step_bias = step_bias,
                               .rates = rates,
                               .betas = take(ROWS * STRIDE, sizeof(float)),
                               .decays = take(ROWS * STRIDE, sizeof(float)),
                               .queries = take(ROWS * STRIDE, sizeof(float)),
                               .keys = take(ROWS * STRIDE, sizeof(float)),
                               .values = take(ROWS * STRIDE, sizeof(float)),
                               .q_stride = STRIDE,
                               .kv_stride = STRIDE,
                               .gate_stride = STRIDE,
                               .key_stride = STRIDE,
                               .value_stride = STRIDE,
                               .offset = offset_of_others};
    step.states = (struct state_pool){
        .n = offset_of_others + kernels_delta_numbers(net) + 4, .n_slots = SLOTS, .n_snapshots = SLOTS};
    step.states.slots = take(SLOTS * step.states.n, sizeof(float));
    step.states.snapshots = take(SLOTS * step.states.n, sizeof(float));
    memory = (struct step_memory){.step = take(1, sizeof *memory.step),
                                  .sets = take(ROWS, sizeof *memory.sets),
                                  .rows = take(ROWS, sizeof *memory.rows),
                                  .max_rows = ROWS};
    for (uint32_t s = 0; s < SLOTS; s++)
        sequences[s] = (struct sequence){random_rows(&seed, 1), random_rows(&seed, 1),
                                         random_rows(&seed, 1), random_rows(&seed, 2),
                                         random_rows(&seed, 2), take(ROWS * STRIDE, sizeof(float))};
}

static float *state_of(uint32_t slot)
{
    return step.states.slots + slot * step.states.n;
}

/* ---- steps ---- */

static uint32_t n_rows; /* of the step that is being written */

static void begin_step(void)
{
    n_rows = 0;
    *memory.step = (struct step){0};
    for (uint32_t i = 0; i < ROWS; i++) /* whatever was there before */
        memory.rows[i] = (struct step_row){0, ROW_DEAD, 0, 0};
}

/* Rows first … first + n − 1 of a slot's sequence; a snapshot behind `snapshot_rows` of them. */
static void add_set(uint32_t slot, uint32_t first, uint32_t n, uint32_t snapshot_rows, bool dead)
{
    const uint32_t s = memory.step->n_sets++;
    const struct sequence *from = &sequences[slot];
    memory.sets[s] = (struct step_set){.slot = slot,
                                       .first_row = n_rows,
                                       .n_rows = n,
                                       .snapshot_rows = snapshot_rows,
                                       .snapshot = SLOTS - 1 - slot};
    for (uint32_t i = 0; i < n; i++, n_rows++) {
        const size_t row = (size_t)(first + i) * STRIDE, to = (size_t)n_rows * STRIDE;
        memory.rows[n_rows] = (struct step_row){slot, dead ? ROW_DEAD : first + i, 0, s};
        memcpy((float *)(uintptr_t)step.q + to, from->q + row, STRIDE * sizeof(float));
        memcpy((float *)(uintptr_t)step.k + to, from->k + row, STRIDE * sizeof(float));
        memcpy((float *)(uintptr_t)step.v + to, from->v + row, STRIDE * sizeof(float));
        memcpy(step.betas + to, from->betas + row, STRIDE * sizeof(float));
        memcpy(step.decays + to, from->decays + row, STRIDE * sizeof(float));
    }
}

/* In a launch of so many rows and sets, of which the last are nobody's. */
static void run_step(uint32_t launched)
{
    memory.step->n_rows = n_rows;
    ck_assert_uint_ge(launched, n_rows);
    ck_assert_int_eq(kernels_delta_prepare(stream, &step, &memory, launched), 0);
    ck_assert_int_eq(kernels_delta_rule(stream, &step, &memory, launched), 0);
    run_queue();
}

/* What rows of a set gave, to its sequence. */
static void take_given(uint32_t s, uint32_t first)
{
    const struct step_set *set = &memory.sets[s];
    for (uint32_t i = 0; i < set->n_rows; i++)
        memcpy(sequences[set->slot].given + (size_t)(first + i) * STRIDE,
               step.values + (size_t)(set->first_row + i) * STRIDE, STRIDE * sizeof(float));
}

/* ---- plainly ---- */

static double silu(double x)
{
    return x / (1 + exp(-x));
}

/* A channel of a row before the convolution; zero before the first. */
static double channel_at(const struct sequence *s, int64_t row, uint32_t channel)
{
    const uint32_t queries = step.net.n_key_heads * step.net.key_dim;
    if (row < 0)
        return 0;
    const size_t at = (size_t)row * STRIDE;
    return (double)(channel < queries       ? s->q[at + channel]
                    : channel < 2 * queries ? s->k[at + channel - queries]
                                            : s->v[at + channel - 2 * queries]);
}

static void convolve_plainly(const struct sequence *s, uint32_t row, uint32_t channel, uint32_t n,
                             double *out)
{
    for (uint32_t c = 0; c < n; c++) {
        double sum = 0;
        for (uint32_t t = 0; t < step.net.n_taps; t++)
            sum += (double)taps[(channel + c) * step.net.n_taps + t] *
                   channel_at(s, (int64_t)row + t + 1 - step.net.n_taps, channel + c);
        out[c] = silu(sum);
    }
}

static void make_unit(double *x, uint32_t n, double scale)
{
    double squares = 0;
    for (uint32_t i = 0; i < n; i++)
        squares += x[i] * x[i];
    for (uint32_t i = 0; i < n; i++)
        x[i] *= scale / sqrt(squares + 1e-6);
}

/* One head of the whole sequence: its S behind it, and its part of `given`, [rows][value_dim]. */
static void run_plainly(const struct sequence *s, uint32_t rows, uint32_t head, double *S, double *given)
{
    const struct delta_net *net = &step.net;
    const uint32_t key_head =
        net->neighbours ? head / (net->n_value_heads / net->n_key_heads) : head % net->n_key_heads;
    const uint32_t queries = net->n_key_heads * net->key_dim, dk = net->key_dim, dv = net->value_dim;
    double q[256], k[256], v[64];
    memset(S, 0, dk * dv * sizeof *S);
    for (uint32_t row = 0; row < rows; row++) {
        const size_t at = (size_t)row * STRIDE + head;
        const double x = (double)s->decays[at] + (double)step_bias[head];
        const double alpha = exp((double)rates[head] * log1p(exp(x)));
        const double beta = 1 / (1 + exp(-(double)s->betas[at]));
        convolve_plainly(s, row, key_head * dk, dk, q);
        convolve_plainly(s, row, queries + key_head * dk, dk, k);
        convolve_plainly(s, row, 2 * queries + head * dv, dv, v);
        make_unit(q, dk, 1 / sqrt(dk));
        make_unit(k, dk, 1);
        for (uint32_t d = 0; d < dv; d++) {
            double recalled = 0, sum = 0;
            for (uint32_t i = 0; i < dk; i++) {
                S[d * dk + i] *= alpha;
                recalled += S[d * dk + i] * k[i];
            }
            for (uint32_t i = 0; i < dk; i++) {
                S[d * dk + i] += beta * (v[d] - recalled) * k[i];
                sum += S[d * dk + i] * q[i];
            }
            given[row * dv + d] = sum;
        }
    }
}

static void check_number(float found, double expected, const char *what, uint32_t head, uint32_t at)
{
    ck_assert_msg(fabs((double)found - expected) <= 2e-5 * (1 + fabs(expected)),
                  "%s %u of head %u: %g, not %g", what, at, head, (double)found, expected);
}

/* What the sequence gave, and the state behind it. */
static void check_sequence(uint32_t slot, uint32_t rows, const float *state)
{
    const struct delta_net *net = &step.net;
    const uint32_t dk = net->key_dim, dv = net->value_dim, channels = delta_net_channels(net);
    static double S[256 * 64], given[ROWS * 64];
    const float *heads = state + step.offset + kernels_delta_tail(net);
    for (uint32_t head = 0; head < net->n_value_heads; head++) {
        run_plainly(&sequences[slot], rows, head, S, given);
        for (uint32_t i = 0; i < rows * dv; i++)
            check_number(sequences[slot].given[i / dv * STRIDE + head * dv + i % dv], given[i], "number",
                         head, i);
        for (uint32_t i = 0; i < dv * dk; i++)
            check_number(heads[(head * dv + i / dk) * kernels_state_padded(dk) + i % dk], S[i],
                         "number of the state", head, i);
    }
    for (uint32_t t = 0; t + 1 < net->n_taps; t++)
        for (uint32_t c = 0; c < channels; c++)
            ck_assert_float_eq(state[step.offset + t * kernels_state_padded(channels) + c],
                               (float)channel_at(&sequences[slot], (int64_t)rows + t + 1 - net->n_taps, c));
}

/* ---- tests ---- */

START_TEST(a_sequence_gives_what_plain_c_gives)
{
    set_up(_i);
    begin_step();
    add_set(1, 0, 37, 0, false);
    run_step(ROWS);
    take_given(0, 0);
    check_sequence(1, 37, state_of(1));
    close_device();
}
END_TEST

/* The rest of memory, other layers' parts of states among it, stays as it was. */
START_TEST(a_step_writes_the_states_and_snapshots_that_it_was_told_to)
{
    set_up(_i);
    for (uint32_t i = 0; i < offset_of_others; i++)
        state_of(2)[i] = 7;
    begin_step();
    add_set(2, 0, 5, 0, false);
    run_step(5);
    for (uint32_t i = 0; i < offset_of_others; i++)
        ck_assert_float_eq(state_of(2)[i], 7);
    for (uint32_t slot = 0; slot < SLOTS; slot++)
        for (size_t i = 0; i < step.states.n; i++) {
            ck_assert(slot == 2 || state_of(slot)[i] == 0);
            ck_assert_float_eq(step.states.snapshots[slot * step.states.n + i], 0);
        }
    for (size_t i = offset_of_others + kernels_delta_numbers(&step.net); i < step.states.n; i++)
        ck_assert_float_eq(state_of(2)[i], 0);
    close_device();
}
END_TEST

/* Whole; and in pieces, in other slots, beside other sequences, with a snapshot on the way. */
START_TEST(bits_depend_on_the_sequence_alone)
{
    static const uint32_t pieces[] = {1, 1, 2, 16, 1, 11};
    set_up(_i);
    begin_step();
    add_set(0, 0, 32, 0, false);
    run_step(32);
    take_given(0, 0);
    sequences[3] = sequences[0];
    sequences[3].given = take(ROWS * STRIDE, sizeof(float));
    for (uint32_t i = 0, first = 0; i < 6; first += pieces[i++]) {
        begin_step();
        add_set(1, i, 1, 0, false);
        add_set(3, first, pieces[i], first + pieces[i] == 20 ? pieces[i] : 0, false);
        add_set(2, 3 * i, 3, 1, false);
        run_step(n_rows + i);
        take_given(1, first);
    }
    const size_t bytes = step.states.n * sizeof(float),
                 n_values = step.net.n_value_heads * step.net.value_dim;
    ck_assert_mem_eq(state_of(3), state_of(0), bytes);
    for (uint32_t row = 0; row < 32; row++)
        ck_assert_mem_eq(sequences[3].given + row * STRIDE, sequences[0].given + row * STRIDE,
                         n_values * sizeof(float));
    /* The snapshot is the state behind 20 rows, and what goes on from there ends as the whole did. */
    memcpy(state_of(0), step.states.snapshots, bytes);
    begin_step();
    add_set(0, 20, 12, 0, false);
    run_step(13);
    ck_assert_mem_eq(state_of(0), state_of(3), bytes);
    close_device();
}
END_TEST

/* In the middle of a set. */
START_TEST(a_snapshot_has_the_bits_of_the_state_there)
{
    set_up(_i);
    const size_t bytes = step.states.n * sizeof(float);
    for (uint32_t n = 1; n < 40; n += test_is_scaled() ? 27 : 9) {
        memset(step.states.slots, 0, SLOTS * bytes);
        begin_step();
        add_set(0, 0, 40, n, false);
        run_step(40);
        begin_step();
        sequences[1] = sequences[0];
        add_set(1, 0, n, 0, false);
        run_step(n);
        ck_assert_mem_eq(step.states.snapshots + (SLOTS - 1) * step.states.n, state_of(1), bytes);
    }
    close_device();
}
END_TEST

START_TEST(rows_of_an_ended_sequence_touch_no_state)
{
    set_up(_i);
    for (uint32_t slot = 0; slot < SLOTS; slot++)
        for (size_t i = 0; i < step.states.n; i++)
            state_of(slot)[i] = step.states.snapshots[slot * step.states.n + i] = (float)(slot + 1);
    begin_step();
    add_set(0, 0, 3, 2, true);
    add_set(1, 0, 1, 1, true);
    run_step(9);
    for (uint32_t slot = 0; slot < SLOTS; slot++)
        for (size_t i = 0; i < step.states.n; i++) {
            ck_assert_float_eq(state_of(slot)[i], (float)(slot + 1));
            ck_assert_float_eq(step.states.snapshots[slot * step.states.n + i], (float)(slot + 1));
        }
    close_device();
}
END_TEST

START_TEST(heads_are_normed_and_gated)
{
    static const struct {
        uint32_t n_heads, dim;
    } shapes[] = {{4, 64}, {3, 7}, {90, 13}, {9, 128}};
    const uint32_t n_heads = shapes[_i].n_heads, dim = shapes[_i].dim, n = n_heads * dim;
    const uint32_t stride = (n + 255) / 256 * 256, rows = 3;
    uint32_t seed = 5;
    open_device();
    float *heads = take(rows * stride, sizeof *heads), *gate = take(rows * stride, sizeof *gate);
    float *weight = take(dim, sizeof *weight);
    for (uint32_t i = 0; i < rows * stride; i++) {
        heads[i] = next_real(&seed); /* what stands behind a row counts for nothing */
        gate[i] = 4 * next_real(&seed);
    }
    for (uint32_t i = 0; i < dim; i++)
        weight[i] = 1 + next_real(&seed);
    const struct delta_gate_step gating = {.heads = heads,
                                           .gate = gate,
                                           .stride = stride,
                                           .gate_stride = stride,
                                           .n_heads = n_heads,
                                           .dim = dim,
                                           .weight = weight,
                                           .epsilon = 1e-6f,
                                           .out = {take(rows * stride, sizeof(float)), take(rows * stride, 1),
                                                   take(rows * stride / 32, sizeof(float)),
                                                   take(rows * stride / 32, sizeof(float)), stride}};
    ck_assert_int_eq(kernels_delta_gate(stream, &gating, rows), 0);
    run_queue();
    for (uint32_t row = 0; row < rows; row++)
        for (uint32_t c = 0; c < stride; c++) {
            const size_t at = row * stride + c, first = row * stride + c / dim * dim;
            double squares = 0;
            for (uint32_t d = 0; d < dim && c < n; d++)
                squares += (double)heads[first + d] * (double)heads[first + d] / dim;
            const double expected = c < n ? (double)heads[at] / sqrt(squares + 1e-6) *
                                                (double)weight[c % dim] * silu((double)gate[at])
                                          : 0;
            ck_assert_msg(fabs((double)gating.out.values[at] - expected) <= 1e-5 * (1 + fabs(expected)),
                          "row %u, column %u: %g, not %g", row, c, (double)gating.out.values[at], expected);
        }
    struct delta_gate_step odd = gating;
    odd.out.stride = stride - 8;
    ck_assert_int_eq(kernels_delta_gate(stream, &odd, rows), -EINVAL);
    close_device();
}
END_TEST

START_TEST(keys_that_are_too_long_are_refused)
{
    set_up(0);
    step.net.key_dim = KERNELS_DELTA_KEYS + 1;
    ck_assert_int_eq(kernels_delta_rule(stream, &step, &memory, 1), -EINVAL);
    close_device();
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_loop_test(tests, a_sequence_gives_what_plain_c_gives, 0, NETS);
    tcase_add_loop_test(tests, a_step_writes_the_states_and_snapshots_that_it_was_told_to, 0, NETS);
    tcase_add_loop_test(tests, bits_depend_on_the_sequence_alone, 0, NETS);
    tcase_add_loop_test(tests, a_snapshot_has_the_bits_of_the_state_there, 0, NETS);
    tcase_add_loop_test(tests, rows_of_an_ended_sequence_touch_no_state, 0, NETS);
    tcase_add_loop_test(tests, heads_are_normed_and_gated, 0, 4);
    tcase_add_test(tests, keys_that_are_too_long_are_refused);
}

int main(void)
{
    return run_tests("delta", add);
}
