/* SPDX-License-Identifier: MIT */
/* What happened between two looks at histograms. */

#include "client/command/latency_view.h"
#include "tests/unit/run.h"

static const double bounds[QUERN_HISTOGRAM_BOUNDS] = {1,   2,   4,    8,    16,   32,   64,   128,
                                                      256, 512, 1024, 2048, 4096, 8192, 16384};

START_TEST(a_quantile_lies_evenly_inside_its_bucket)
{
    struct quern_histogram histogram = {.bounds = bounds};
    ck_assert_double_eq(latency_quantile(&histogram, 0.5), 0);
    histogram.counts[0] = 2;
    ck_assert_double_eq(latency_quantile(&histogram, 0.5), 0.5); /* the first bucket begins at 0 */
    histogram.counts[3] = 2;                                     /* above 4, up to 8 */
    ck_assert_double_eq(latency_quantile(&histogram, 0.5), 1);
    ck_assert_double_eq(latency_quantile(&histogram, 0.75), 6);
    ck_assert_double_eq(latency_quantile(&histogram, 1), 8);
    histogram.counts[QUERN_HISTOGRAM_BOUNDS] = 96;
    ck_assert_double_eq(latency_quantile(&histogram, 0.99), 16384); /* the last one has no end */
}
END_TEST

START_TEST(only_what_came_since_the_last_look_counts)
{
    const struct quern_histogram before = {.bounds = bounds, .counts = {5, 1}, .sum = 6};
    struct quern_histogram now = {.bounds = bounds, .counts = {5, 4, [15] = 1}, .sum = 20000};
    const struct quern_histogram since = latency_since(&now, &before);
    ck_assert_uint_eq(since.counts[0], 0);
    ck_assert_uint_eq(since.counts[1], 3);
    ck_assert_uint_eq(since.counts[15], 1);
    ck_assert_double_eq(since.sum, 19994);
    ck_assert_ptr_eq(since.bounds, bounds);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_quantile_lies_evenly_inside_its_bucket);
    tcase_add_test(tests, only_what_came_since_the_last_look_counts);
}

int main(void)
{
    return run_tests("client/latency_view", add);
}
