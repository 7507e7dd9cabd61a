/* SPDX-License-Identifier: MIT */
/* What quern status makes of a pool's numbers, however large. */

#include "client/command/status_view.h"
#include "tests/unit/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* To be freed. */
static char *shown_in(const struct quern_status *status, bool colours)
{
    FILE *before = stdout;
    char *text = NULL;
    size_t len;
    stdout = open_memstream(&text, &len);
    ck_assert_ptr_nonnull(stdout);
    status_print(status, 0, colours);
    ck_assert_int_eq(fclose(stdout), 0);
    stdout = before;
    return text;
}

static char *shown(const struct quern_status *status)
{
    return shown_in(status, false);
}

static void check_shown(const struct quern_status *status, const char *expected)
{
    char *text = shown(status);
    ck_assert_msg(strstr(text, expected) != NULL, "\"%s\" is not in\n%s", expected, text);
    free(text);
}

START_TEST(workers_are_added_up)
{
    const struct quern_worker workers[] = {{.name = "worker-0",
                                            .state = "ready",
                                            .model = "m",
                                            .device = "cpu",
                                            .reason = "",
                                            .cache_hits = 30,
                                            .prefill_tokens = 50,
                                            .kv_total = 4,
                                            .kv_cached = 1,
                                            .kv_block_bytes = 1 << 20},
                                           {.name = "worker-1",
                                            .state = "ready",
                                            .model = "m",
                                            .device = "cpu",
                                            .reason = "",
                                            .prefill_tokens = 20}};
    const struct quern_status status = {.version = "1", .workers = workers, .n_workers = 2};
    check_shown(&status, "\n70 prompt tokens computed, 30 found in caches: 30%\n");
    check_shown(&status, "\nKV caches of 4 MiB, 1 MiB of them kept for prompts\n");
}
END_TEST

START_TEST(the_context_of_a_model_is_told_once)
{
    struct quern_worker worker = {.name = "worker-0",
                                  .state = "ready",
                                  .model = "m",
                                  .device = "",
                                  .reason = "",
                                  .context = 512,
                                  .arithmetic = "cpu avx2 kv=f16 weights=0123"};
    struct quern_worker workers[] = {worker, worker, worker, worker};
    const struct quern_status status = {.version = "1", .workers = workers, .n_workers = 4};
    workers[2].arithmetic = "cpu avx2 kv=q8_0 weights=0123";
    workers[3].model = "other";
    workers[3].arithmetic = NULL;
    check_shown(&status,
                "for prompts\nm: context of 512 tokens, KV type f16\nm: context of 512 tokens, KV type "
                "q8_0\nother: context of 512 tokens\n\nWORKER");
}
END_TEST

START_TEST(other_names_of_a_model_are_told_once)
{
    static const char *const names[] = {"gpt-4o", "llama", NULL}, *const none[] = {NULL};
    struct quern_worker worker = {
        .name = "worker-0", .state = "ready", .model = "m", .device = "", .reason = "", .aliases = names};
    struct quern_worker workers[] = {worker, worker, worker};
    const struct quern_status status = {.version = "1", .workers = workers, .n_workers = 3};
    workers[2].model = "other";
    workers[2].aliases = none;
    char *text = shown(&status);
    const char *told = strstr(text, "\nm answers to gpt-4o, llama too\n");
    ck_assert_ptr_nonnull(told);
    ck_assert_ptr_null(strstr(told + strlen("\nm answers to"), "answers to"));
    free(text);
}
END_TEST

START_TEST(no_sum_of_counters_wraps)
{
    struct quern_worker worker = {
        .name = "worker-0", .state = "ready", .model = "", .device = "", .reason = ""};
    worker.cache_hits = worker.prefill_tokens = (UINT64_MAX >> 1) + 1;
    worker.kv_total = worker.kv_cached = worker.kv_block_bytes = UINT32_MAX;
    const struct quern_worker workers[] = {worker, worker};
    const struct quern_status status = {.version = "1", .workers = workers, .n_workers = 2};
    check_shown(&status, " found in caches: 50%\n");
    check_shown(&status, "\nKV caches of 16.0 EiB,");
}
END_TEST

START_TEST(what_a_gpu_has_launched_is_told)
{
    struct quern_worker worker = {.name = "worker-0",
                                  .state = "ready",
                                  .model = "m",
                                  .device = "",
                                  .reason = "",
                                  .launches = 120,
                                  .recorded_launches = 3400,
                                  .padding_rows = 25,
                                  .step_rows.sum = 75};
    const struct quern_status status = {.version = "1", .workers = &worker, .n_workers = 1};
    check_shown(&status, "\nworker-0: 3400 steps launched as one recording, 120 kernels one by one, 25% of "
                         "rows are padding\n");
    worker.padding_rows = 0;
    check_shown(&status, ", 120 kernels one by one\n");
    worker.refused_recordings = 4;
    check_shown(&status, ", 120 kernels one by one, recordings of 4 sizes refused by the driver\n");
    worker.launches = worker.recorded_launches = 0;
    char *text = shown(&status);
    ck_assert_ptr_null(strstr(text, "kernels"));
    free(text);
}
END_TEST

START_TEST(states_have_colours_which_take_no_room)
{
    const struct quern_worker workers[] = {
        {.name = "worker-0", .state = "ready", .model = "m", .device = "cpu", .reason = ""},
        {.name = "worker-1", .state = "loading", .model = "", .device = "", .reason = ""},
        {.name = "worker-2", .state = "failed", .model = "", .device = "", .reason = "no such file"}};
    const struct quern_status status = {.version = "1", .workers = workers, .n_workers = 3};
    char *plain = shown(&status), *coloured = shown_in(&status, true);
    ck_assert_ptr_null(strchr(plain, '\033'));
    ck_assert_ptr_nonnull(strstr(coloured, "\033[32mready\033[0m"));
    ck_assert_ptr_nonnull(strstr(coloured, "\033[33mloading\033[0m"));
    ck_assert_ptr_nonnull(strstr(coloured, "\033[31mfailed\033[0m"));
    ck_assert_ptr_nonnull(strstr(coloured, "\033[31mworker-2: no such file\033[0m"));
    char *to = coloured; /* without the sequences it is the same */
    for (const char *from = coloured; *from;)
        if (*from == '\033')
            from += strcspn(from, "m") + 1;
        else
            *to++ = *from++;
    *to = 0;
    ck_assert_str_eq(coloured, plain);
    free(plain);
    free(coloured);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, what_a_gpu_has_launched_is_told);
    tcase_add_test(tests, states_have_colours_which_take_no_room);
    tcase_add_test(tests, workers_are_added_up);
    tcase_add_test(tests, the_context_of_a_model_is_told_once);
    tcase_add_test(tests, other_names_of_a_model_are_told_once);
    tcase_add_test(tests, no_sum_of_counters_wraps);
}

int main(void)
{
    return run_tests("client status view", add);
}
