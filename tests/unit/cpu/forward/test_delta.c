/* SPDX-License-Identifier: MIT */
/* The kernels of gated delta nets against plain C in double, on every build; and the geometry of states. */

#include "cpu/kernels/kernels.h"
#include "cpu/memory/states.h"
#include "tests/unit/cpu/random_weights.h"
#include "tests/unit/cpu/small_model.h"
#include "tests/unit/run.h"

#include <math.h>

#define N 64

START_TEST(a_gate_multiplies_by_its_sigmoid)
{
    const struct kernels *kernels = kernels_at((uint32_t)_i);
    float x[N], factor[N], out[N];
    for (uint32_t i = 0; i < N; i++) {
        x[i] = random_float() * 20;
        factor[i] = random_float();
    }
    kernels->sigmoid(x, factor, N, out);
    for (uint32_t i = 0; i < N; i++)
        ck_assert_double_eq_tol((double)out[i], (double)factor[i] / (1 + exp(-(double)x[i])), 1e-6);
    kernels->sigmoid(x, factor, N, factor);
    ck_assert_mem_eq(factor, out, sizeof out);
    x[7] = NAN;
    kernels->sigmoid(x, factor, N, out);
    ck_assert(isnan(out[7]));
}
END_TEST

/* The sum of squares, not their mean; and what is behind is zeroed up to a multiple of eight, no further. */
START_TEST(a_unit_vector_has_the_length_of_its_scale)
{
    const struct kernels *kernels = kernels_at((uint32_t)_i);
    for (uint32_t n = 1; n <= N - 8; n++) {
        float x[N], out[N];
        double squares = 0;
        for (uint32_t i = 0; i < n; i++) {
            x[i] = random_float() * 0.01f;
            squares += (double)x[i] * (double)x[i];
        }
        memset(out, 0xff, sizeof out);
        kernels->unit(x, n, 1e-6f, 0.25f, out);
        for (uint32_t i = 0; i < n; i++)
            ck_assert_double_eq_tol((double)out[i], 0.25 * (double)x[i] / sqrt(squares + 1e-6), 1e-6);
        for (uint32_t i = n; i < (n + 7) / 8 * 8; i++)
            ck_assert_float_eq(out[i], 0);
        for (uint32_t i = (n + 7) / 8 * 8; i < N; i++)
            ck_assert(isnan(out[i]));
    }
    float zeros[8] = {0}, out[8];
    kernels->unit(zeros, 8, 1e-6f, 1, out);
    ck_assert_mem_eq(out, zeros, sizeof out);
}
END_TEST

START_TEST(a_convolution_sums_its_taps)
{
    const struct kernels *kernels = kernels_at((uint32_t)_i);
    float values[5][N], taps[5][N + 8], out[N];
    for (uint32_t n_taps = 1; n_taps <= 5; n_taps++) {
        const float *rows[5];
        for (uint32_t t = 0; t < n_taps; t++) {
            rows[t] = values[(t * 3 + 1) % 5]; /* rows need not lie in order */
            for (uint32_t i = 0; i < N; i++) {
                values[(t * 3 + 1) % 5][i] = random_float();
                taps[t][i] = random_float();
            }
        }
        kernels->convolve(rows, taps[0], n_taps, N + 8, N, out);
        for (uint32_t i = 0; i < N; i++) {
            double sum = 0;
            for (uint32_t t = 0; t < n_taps; t++)
                sum += (double)taps[t][i] * (double)rows[t][i];
            ck_assert_double_eq_tol((double)out[i], sum, 1e-6);
        }
    }
}
END_TEST

/* Rows go through one after the other, the paper's way; and through two calls as through one. */
START_TEST(the_delta_rule_is_the_papers)
{
    enum { ROWS = 9, KEY = 24 };
    const struct kernels *kernels = kernels_at((uint32_t)_i);
    float queries[ROWS][KEY], keys[ROWS][KEY], values[ROWS][16], again[ROWS][16], decays[ROWS][3],
        betas[ROWS][3], state[KEY][8], state_again[KEY][8];
    double expected[KEY][8];
    for (uint32_t k = 0; k < KEY; k++)
        for (uint32_t j = 0; j < 8; j++)
            expected[k][j] = (double)(state_again[k][j] = state[k][j] = random_float());
    for (uint32_t r = 0; r < ROWS; r++) {
        for (uint32_t k = 0; k < KEY; k++) {
            queries[r][k] = random_float();
            keys[r][k] = random_float() * 0.3f;
        }
        for (uint32_t j = 0; j < 16; j++)
            again[r][j] = values[r][j] = random_float();
        decays[r][0] = 0.5f + 0.5f * random_float() * random_float();
        betas[r][0] = 0.5f + 0.4f * random_float();
    }
    struct delta_rows rows = {queries[0], keys[0], values[0], decays[0], betas[0], KEY, 16, 3, ROWS, KEY, 8};
    kernels->delta_rule(&rows, state[0]);
    for (uint32_t r = 0; r < ROWS; r++)
        for (uint32_t j = 0; j < 8; j++) {
            double recalled = 0, out = 0;
            for (uint32_t k = 0; k < KEY; k++)
                recalled += (expected[k][j] *= (double)decays[r][0]) * (double)keys[r][k];
            for (uint32_t k = 0; k < KEY; k++) {
                expected[k][j] += (double)betas[r][0] * ((double)again[r][j] - recalled) * (double)keys[r][k];
                out += expected[k][j] * (double)queries[r][k];
            }
            ck_assert_double_eq_tol((double)values[r][j], out, 1e-5);
            ck_assert_float_eq(values[r][8 + j], again[r][8 + j]); /* the next eight are others' */
        }
    for (uint32_t k = 0; k < KEY; k++)
        for (uint32_t j = 0; j < 8; j++)
            ck_assert_double_eq_tol((double)state[k][j], expected[k][j], 1e-5);
    rows.values = again[0];
    rows.n = 4;
    kernels->delta_rule(&rows, state_again[0]);
    rows =
        (struct delta_rows){queries[4], keys[4], again[4], decays[4], betas[4], KEY, 16, 3, ROWS - 4, KEY, 8};
    kernels->delta_rule(&rows, state_again[0]);
    ck_assert_mem_eq(state, state_again, sizeof state);
    ck_assert_mem_eq(values, again, sizeof values);
}
END_TEST

/* Two recurrent layers of 3 key heads of 11, 6 value heads of 13, and two rows of tail. */
START_TEST(a_state_has_room_for_every_recurrent_layer)
{
    struct synth_shape shape = odd_hybrid_shape;
    shape.n_layers = 4;
    struct model *model = make_model(&shape, "F32");
    struct backend_config config = {.model = model, .n_slots = 3, .n_snapshots = 5};
    struct memory memory = {0};
    struct states states;
    const size_t tail = 2 * (40 + 40 + 80), heads = 6 * 16 * 16; /* lengths rounded up to eight */
    ck_assert_uint_eq(layer_state_numbers(&model->layers[0].traits), 6 * 13 * 11 + 2 * (33 + 33 + 78));
    ck_assert_uint_eq(layer_state_numbers(&model->layers[1].traits), 0);
    ck_assert_uint_eq(states_bytes(model), 2 * (tail + heads) * sizeof(float));
    ck_assert_int_eq(states_init(&states, &config, &memory, NULL), 0);
    ck_assert_uint_eq(states.n, 2 * (tail + heads));
    ck_assert_uint_eq(states.offsets[0], 0);
    ck_assert_uint_eq(states.offsets[2], tail + heads);
    ck_assert_ptr_eq(states_of(&states, 2), states.slots + 2 * states.n);
    ck_assert_uint_eq(states.n_snapshots, 5);
    ck_assert_ptr_eq(states_snapshot(&states, 4), states.snapshots + 4 * states.n);
    memory_deinit(&memory);

    config.drafts = true; /* one more for each slot */
    ck_assert_int_eq(states_init(&states, &config, &memory, NULL), 0);
    ck_assert_uint_eq(states.n_snapshots, 8);
    memory_deinit(&memory);
    model_free(model);

    config.model = model = make_model(&odd_shape, "F32");
    ck_assert_int_eq(states_init(&states, &config, &memory, NULL), 0);
    ck_assert_ptr_null(states_of(&states, 0));
    ck_assert_uint_eq(memory.total, 0);
    model_free(model);
}
END_TEST

/* How many rows of S a vector holds is nobody's matter: all of them at once, or eight by eight. */
START_TEST(the_delta_rule_has_the_same_bits_for_any_number_of_values)
{
    enum { ROWS = 5, KEY = 16, MOST = 88 };
    const struct kernels *kernels = kernels_at((uint32_t)_i);
    float queries[ROWS][KEY], keys[ROWS][KEY], values[ROWS][MOST], apart[ROWS][MOST], decays[ROWS],
        betas[ROWS];
    float state[MOST / 8][KEY][8], state_apart[MOST / 8][KEY][8];
    for (uint32_t value_dim = 8; value_dim <= MOST; value_dim += 8) {
        for (uint32_t r = 0; r < ROWS; r++) {
            for (uint32_t k = 0; k < KEY; k++) {
                queries[r][k] = random_float();
                keys[r][k] = random_float() * 0.3f;
            }
            for (uint32_t j = 0; j < MOST; j++)
                values[r][j] = apart[r][j] = random_float();
            decays[r] = 0.5f + 0.5f * random_float() * random_float();
            betas[r] = 0.5f + 0.4f * random_float();
        }
        for (uint32_t i = 0; i < MOST * KEY; i++)
            (&state[0][0][0])[i] = (&state_apart[0][0][0])[i] = random_float();
        struct delta_rows rows = {queries[0], keys[0], values[0], decays, betas,    KEY,
                                  MOST,       1,       ROWS,      KEY,    value_dim};
        kernels->delta_rule(&rows, state[0][0]);
        rows.value_dim = 8;
        for (uint32_t d = 0; d < value_dim; d += 8) {
            rows.values = apart[0] + d;
            kernels->delta_rule(&rows, state_apart[d / 8][0]);
        }
        ck_assert_mem_eq(state, state_apart, sizeof state);
        ck_assert_mem_eq(values, apart, sizeof values); /* those of others as they were */
    }
}
END_TEST

static void add(TCase *tests)
{
    int n = 0;
    while (kernels_at((uint32_t)n))
        n++;
    tcase_add_loop_test(tests, a_gate_multiplies_by_its_sigmoid, 0, n);
    tcase_add_loop_test(tests, a_unit_vector_has_the_length_of_its_scale, 0, n);
    tcase_add_loop_test(tests, a_convolution_sums_its_taps, 0, n);
    tcase_add_loop_test(tests, the_delta_rule_is_the_papers, 0, n);
    tcase_add_loop_test(tests, the_delta_rule_has_the_same_bits_for_any_number_of_values, 0, n);
    tcase_add_test(tests, a_state_has_room_for_every_recurrent_layer);
}

int main(void)
{
    return run_tests("delta", add);
}
