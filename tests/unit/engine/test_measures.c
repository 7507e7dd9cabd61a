/* SPDX-License-Identifier: MIT */
/* What is noted of steps and tokens, and in which histogram. */

#include "engine/measures.h"
#include "tests/unit/run.h"

#define MS 1000000ull

static struct measures measures;

static void set_up(void)
{
    measures = (struct measures){0};
}

/* The bucket of a value: the first whose bound it does not exceed. */
static uint32_t bucket_of(const struct histogram_scale *scale, uint64_t value)
{
    uint32_t bucket = 0;
    while (bucket < HISTOGRAM_BOUNDS && value > scale->bounds[bucket])
        bucket++;
    return bucket;
}

/* It has these values, and no other. */
static void check(const struct histogram *histogram, const struct histogram_scale *scale, size_t n,
                  const uint64_t *values)
{
    struct histogram expected = {0};
    for (size_t i = 0; i < n; i++) {
        expected.counts[bucket_of(scale, values[i])]++;
        expected.sum += values[i];
    }
    ck_assert_uint_eq(histogram->sum, expected.sum);
    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++)
        ck_assert_uint_eq(histogram->counts[i], expected.counts[i]);
}

#define CHECK(histogram, scale, ...)                                                                         \
    check(&measures.histogram, &scale, sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t),           \
          (const uint64_t[]){__VA_ARGS__})

START_TEST(a_step_is_of_the_kind_of_its_rows)
{
    measures_step(&measures, 4, 0, 0, 3 * MS);
    measures_step(&measures, 0, 512, 0, 90 * MS);
    measures_step(&measures, 4, 100, 0, 20 * MS);
    measures_step(&measures, 1, 1, 0, 4 * MS);
    CHECK(step_decode, histogram_seconds, 3 * MS);
    CHECK(step_prefill, histogram_seconds, 90 * MS);
    CHECK(step_mixed, histogram_seconds, 20 * MS, 4 * MS);
    CHECK(step_rows, histogram_rows, 4, 512, 104, 2);
    ck_assert_uint_eq(histogram_count(&measures.token_gap), 0);
}
END_TEST

START_TEST(use_is_a_share_of_what_there_is)
{
    measures_use(&measures, 3, 4, 0, 1000);
    measures_use(&measures, 4, 4, 1000, 1000);
    measures_use(&measures, 0, 0, 0, 0); /* a backend may have nothing to share out */
    measures_use(&measures, 1, 32, UINT32_MAX, UINT32_MAX);
    CHECK(slots_used, histogram_shares, 750, 1000, 0, 31);
    CHECK(kv_used, histogram_shares, 0, 1000, 0, 1000);
}
END_TEST

START_TEST(ids_that_came_together_share_the_time)
{
    measures_ids(&measures, 1, 10 * MS);
    measures_ids(&measures, 4, 10 * MS);
    CHECK(token_gap, histogram_seconds, 10 * MS, 10 * MS / 4, 10 * MS / 4, 10 * MS / 4, 10 * MS / 4);
    measures_first(&measures, 700 * MS);
    CHECK(first_token, histogram_seconds, 700 * MS);
    ck_assert_uint_eq(histogram_count(&measures.token_gap), 5);
}
END_TEST

/* The search for a bucket begins at that of the value before, wherever that was. */
START_TEST(values_in_any_order_land_in_their_buckets)
{
    uint64_t seed = 1, times[200], rows[200];
    for (size_t i = 0; i < 200; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        times[i] = (seed >> 20) % (1ull << (1 + (seed >> 58) % 38)); /* of all magnitudes: to five minutes */
        rows[i] = 1 + (seed >> 33) % (1u << (seed >> 60));
        if (i % 10 == 0)
            times[i] = histogram_seconds.bounds[(i / 10) % HISTOGRAM_BOUNDS] + (i / 10) % 2; /* at a border */
        measures_step(&measures, (uint32_t)rows[i], 0, 3, times[i]);
        measures_ids(&measures, 1, times[i]);
    }
    check(&measures.step_decode, &histogram_seconds, 200, times);
    check(&measures.token_gap, &histogram_seconds, 200, times);
    check(&measures.step_rows, &histogram_rows, 200, rows);
    for (size_t i = 0; i < 200; i++)
        rows[i] += 3;
    check(&measures.computed_rows, &histogram_rows, 200, rows);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, NULL);
    tcase_add_test(tests, a_step_is_of_the_kind_of_its_rows);
    tcase_add_test(tests, use_is_a_share_of_what_there_is);
    tcase_add_test(tests, ids_that_came_together_share_the_time);
    tcase_add_test(tests, values_in_any_order_land_in_their_buckets);
}

int main(void)
{
    return run_tests("engine/measures", add);
}
