/* SPDX-License-Identifier: MIT */
/* What the gate compares with, by the textbook. */

#include "cuda/check/reference.h"
#include "tests/unit/cpu/activations.h"
#include "tests/unit/run.h"

#include <math.h>

START_TEST(the_reference_activates_by_the_textbook)
{
    for (size_t a = 0; a < KINDS_OF(ACTIVATIONS); a++)
        for (double x = -30; x < 30; x += 0.37) {
            double expected = activated(every_activation[a], x);
            ck_assert_double_eq_tol(reference_activation(every_activation[a], x), expected,
                                    1e-12 * (1 + fabs(expected)));
            ck_assert_double_eq_tol(reference_activation(every_activation[a], 2) *
                                        reference_factor(every_activation[a], x),
                                    gated(every_activation[a], 2, x), 1e-12 * (1 + fabs(x)));
        }
    for (size_t a = 0; a < KINDS_OF(ACTIVATIONS); a++) {
        ck_assert_double_nan(reference_activation(every_activation[a], NAN));
        ck_assert_double_nan(reference_factor(every_activation[a], NAN));
    }
}
END_TEST

START_TEST(the_reference_lets_queries_grow)
{
    const struct layer_traits plain = {.attention_scale = 0.25f},
                              growing = {.attention_scale = 0.25f, .query_growth = {0.5f, 10}};
    ck_assert_double_eq(reference_query_scale(&plain, 1000), 0.25);
    ck_assert_double_eq(reference_query_scale(&growing, 9), 0.25);
    ck_assert_double_eq_tol(reference_query_scale(&growing, 10), 0.25 * (1 + 0.5 * log(2)), 1e-12);
    ck_assert_double_eq_tol(reference_query_scale(&growing, 69), 0.25 * (1 + 0.5 * log(7)), 1e-12);
}
END_TEST

/* Two positions and a sink of equal scores: a third of each. */
START_TEST(the_reference_gives_a_sink_its_part)
{
    static const float keys[] = {1, 1}, values[] = {6, 12}, query = 2, sink = 2, far_below = -1000;
    struct reference_attention attention = {
        .keys = keys, .values = values, .dim = 1, .stride = 1, .position = 1, .sink = &sink};
    double out;
    ck_assert_double_eq(reference_attend(&attention, &query, &out), 12);
    ck_assert_double_eq_tol(out, 6, 1e-12);
    attention.sink = &far_below;
    reference_attend(&attention, &query, &out);
    ck_assert_double_eq_tol(out, 9, 1e-12);
    attention.sink = NULL;
    reference_attend(&attention, &query, &out);
    ck_assert_double_eq_tol(out, 9, 1e-12);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, the_reference_activates_by_the_textbook);
    tcase_add_test(tests, the_reference_lets_queries_grow);
    tcase_add_test(tests, the_reference_gives_a_sink_its_part);
}

int main(void)
{
    return run_tests("cuda reference", add);
}
