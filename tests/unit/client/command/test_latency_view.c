/* SPDX-License-Identifier: MIT */
/* What happened between two looks at histograms. */

#include "client/command/latency_view.h"
#include "tests/unit/run.h"

#include <stdlib.h>
#include <string.h>

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

/* The table of two workers in a terminal of so many columns; to be freed. */
static char *shown_in(size_t width, bool colours)
{
    struct quern_worker workers[2] = {{.name = "worker-0"}, {.name = "worker-with-a-long-name"}};
    struct quern_histogram *all[] = {
        &workers[0].step_decode, &workers[0].step_prefill, &workers[0].step_mixed, &workers[0].token_gap,
        &workers[0].first_token, &workers[0].step_rows,    &workers[0].slots_used, &workers[0].kv_used};
    const struct quern_status status = {.workers = workers, .n_workers = 2};
    static struct latency_view view;
    FILE *before = stdout;
    char *text = NULL;
    size_t len;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        *all[i] = (struct quern_histogram){.bounds = bounds, .counts = {10}, .sum = 5};
    view = (struct latency_view){0};
    stdout = open_memstream(&text, &len);
    ck_assert_ptr_nonnull(stdout);
    latency_print(&view, &status, width, colours);
    ck_assert_int_eq(fclose(stdout), 0);
    stdout = before;
    return text;
}

static size_t longest_line(const char *text)
{
    size_t longest = 0, len;
    for (; *text; text += len + (text[len] == '\n')) {
        len = strcspn(text, "\n");
        longest = len > longest ? len : longest;
    }
    return longest;
}

START_TEST(what_matters_least_is_left_out_where_there_is_no_room)
{
    static const char *const in_order[] = {"ROWS",        "SLOTS",       "KV",       "PROMPT STEP",
                                           "DECODE STEP", "FIRST TOKEN", "TOKEN GAP"};
    size_t left = 0;
    char *whole = shown_in(0, false);
    const size_t line = longest_line(whole);
    ck_assert_ptr_nonnull(strstr(whole, "\nworker-with-a-long-name "));
    for (size_t i = 0; i < 7; i++)
        ck_assert_ptr_nonnull(strstr(whole, in_order[i]));
    for (size_t width = line; width > 20; width--) {
        char *text = shown_in(width, false);
        ck_assert_uint_le(longest_line(text), width < 23 ? 23 : width); /* names stay */
        while (left < 7 && !strstr(text, in_order[left]))
            left++;
        for (size_t i = left; i < 7; i++)
            ck_assert_ptr_nonnull(strstr(text, in_order[i]));
        ck_assert_ptr_nonnull(strstr(text, "\nworker-with-a-long-name"));
        free(text);
    }
    ck_assert_uint_eq(left, 7);
    free(whole);
}
END_TEST

START_TEST(shares_have_bars_where_there_is_room)
{
    char *whole = shown_in(0, false), *narrow = shown_in(longest_line(whole) - 1, false);
    ck_assert_ptr_nonnull(strstr(whole, " 50%  #####-----"));
    ck_assert_ptr_ne(strstr(whole, "#####-----"), strrchr(whole, '#') - 4); /* two of them */
    ck_assert_ptr_nonnull(strstr(narrow, " 50%  #####-----"));              /* that of the KV cache */
    ck_assert_ptr_eq(strstr(narrow, "#####-----"), strrchr(narrow, '#') - 4);
    ck_assert_ptr_nonnull(strstr(narrow, "SLOTS"));
    free(whole);
    free(narrow);
}
END_TEST

START_TEST(only_long_times_have_a_colour)
{
    char *text = shown_in(0, true);
    ck_assert_ptr_nonnull(strstr(text, "\033[33m500 ms, 990 ms\033[0m")); /* the gap */
    ck_assert_ptr_nonnull(strstr(text, "  500 ms, 990 ms  "));            /* a step, and a first token */
    free(text);
}
END_TEST

/* Of steps of 1 row, each of which a GPU computed as 2. */
START_TEST(rows_that_fill_a_recorded_size_are_told)
{
    struct quern_worker worker = {.name = "worker-0", .padding_rows = 4};
    const struct quern_status status = {.workers = &worker, .n_workers = 1};
    struct latency_view view = {0};
    FILE *before = stdout;
    char *text = NULL;
    size_t len;
    worker.step_rows = (struct quern_histogram){.bounds = bounds, .counts = {4}, .sum = 4};
    stdout = open_memstream(&text, &len);
    ck_assert_ptr_nonnull(stdout);
    latency_print(&view, &status, 0, false);
    worker.step_rows.counts[0] = 6; /* two more, without padding */
    worker.step_rows.sum = 6;
    latency_print(&view, &status, 0, false);
    ck_assert_int_eq(fclose(stdout), 0);
    stdout = before;
    const char *again = strstr(text, " 1.0 of 2.0 ");
    ck_assert_ptr_nonnull(again);
    ck_assert_ptr_null(strstr(again + 8, " of "));
    ck_assert_ptr_nonnull(strstr(again + 8, " 1.0 "));
    free(text);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, rows_that_fill_a_recorded_size_are_told);
    tcase_add_test(tests, what_matters_least_is_left_out_where_there_is_no_room);
    tcase_add_test(tests, shares_have_bars_where_there_is_room);
    tcase_add_test(tests, only_long_times_have_a_colour);
    tcase_add_test(tests, a_quantile_lies_evenly_inside_its_bucket);
    tcase_add_test(tests, only_what_came_since_the_last_look_counts);
}

int main(void)
{
    return run_tests("client/latency_view", add);
}
