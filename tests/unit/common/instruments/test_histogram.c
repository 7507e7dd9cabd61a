/* SPDX-License-Identifier: MIT */
/* Which bucket a value falls into, and the scales. */

#include "common/instruments/histogram.h"
#include "tests/unit/run.h"

static const struct histogram_scale *const scales[] = {&histogram_seconds, &histogram_rows,
                                                       &histogram_shares};

START_TEST(bounds_rise_and_are_the_same_in_both_units)
{
    for (size_t s = 0; s < 3; s++)
        for (size_t i = 0; i < HISTOGRAM_BOUNDS; i++) {
            ck_assert_double_eq(scales[s]->reals[i], (double)scales[s]->bounds[i] / scales[s]->per_unit);
            if (i > 0)
                ck_assert_uint_gt(scales[s]->bounds[i], scales[s]->bounds[i - 1]);
        }
}
END_TEST

START_TEST(a_value_falls_into_its_bucket_wherever_the_search_begins)
{
    for (size_t s = 0; s < 3; s++)
        for (uint32_t hint = 0; hint <= HISTOGRAM_BUCKETS; hint++)
            for (uint32_t i = 0; i < HISTOGRAM_BOUNDS; i++) {
                struct histogram histogram = {0};
                const uint64_t bound = scales[s]->bounds[i];
                ck_assert_uint_eq(histogram_add(&histogram, scales[s], hint, bound, 1), i);
                ck_assert_uint_eq(histogram_add(&histogram, scales[s], hint, bound + 1, 2), i + 1);
                ck_assert_uint_eq(histogram.counts[i], 1);
                ck_assert_uint_eq(histogram.counts[i + 1], 2);
                ck_assert_uint_eq(histogram.sum, 3 * bound + 2);
                ck_assert_uint_eq(histogram_count(&histogram), 3);
            }
}
END_TEST

START_TEST(the_smallest_and_the_largest_have_buckets_too)
{
    struct histogram histogram = {0};
    ck_assert_uint_eq(histogram_add(&histogram, &histogram_seconds, 9, 0, 1), 0);
    ck_assert_uint_eq(histogram_add(&histogram, &histogram_seconds, 0, UINT64_MAX, 1), HISTOGRAM_BOUNDS);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, bounds_rise_and_are_the_same_in_both_units);
    tcase_add_test(tests, a_value_falls_into_its_bucket_wherever_the_search_begins);
    tcase_add_test(tests, the_smallest_and_the_largest_have_buckets_too);
}

int main(void)
{
    return run_tests("common/histogram", add);
}
