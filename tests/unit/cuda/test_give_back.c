/* SPDX-License-Identifier: MIT */
/* What an open backend gives back it takes again, or does without: bits stay those of whoever multiplies. */

#include "tests/unit/cuda/large_backend.h"

#define LIBRARY "cublasLtMatmul"

static struct backend_given give(struct backend *backend)
{
    static const struct backend_idle nothing;
    struct backend_given given;
    ck_assert_int_eq(quern_give_back(backend, &nothing, &given), 0);
    return given;
}

static struct backend_usage usage_of(struct backend *backend)
{
    struct backend_usage usage;
    quern_backend.usage(backend, &usage);
    return usage;
}

static size_t taken(struct backend *backend)
{
    struct backend_info info;
    quern_backend.info(backend, &info);
    return info.memory_bytes;
}

static void check_prompt(struct backend *backend, const float *expected, bool by_library)
{
    launches(backend, "");
    float *logits = logits_of(&quern_backend, backend, ROWS);
    ck_assert_int_eq(launches(backend, LIBRARY) > 0, by_library);
    ck_assert_mem_eq(logits, expected, ROWS * model->params.n_vocab * sizeof *logits);
    free(logits);
}

START_TEST(the_librarys_memory_and_staging_go_and_come_back)
{
    model = make_model(&small_shape, "Q8_0");
    struct backend *backend = open_backend(&quern_backend, ROWS);
    float *logits = logits_of(&quern_backend, backend, ROWS), *few = logits_of(&quern_backend, backend, 8);
    const struct backend_usage before = usage_of(backend);
    const size_t all = taken(backend);
    for (int i = 0; i < 2; i++) {
        const size_t pinned = usage_of(backend).staging;
        const struct backend_given given = give(backend);
        const struct backend_usage between = usage_of(backend);
        ck_assert_uint_gt(given.library, (size_t)32 << 20);
        ck_assert_uint_gt(given.staging, 0);
        ck_assert_uint_eq(between.device_free, before.device_free + given.library);
        ck_assert_uint_eq(taken(backend), all - given.library);
        ck_assert_uint_eq(between.workspace, before.workspace - given.library);
        ck_assert_uint_eq(between.staging, pinned - given.staging);
        ck_assert_uint_eq(give(backend).library, 0); /* it has nothing more */
        float *again = logits_of(&quern_backend, backend, 8);
        ck_assert_mem_eq(again, few, 8 * model->params.n_vocab * sizeof *again);
        free(again);
        ck_assert_uint_eq(taken(backend), all - given.library); /* few rows do not need it */
        check_prompt(backend, logits, true);
        ck_assert_uint_eq(taken(backend), all);
        ck_assert_uint_eq(usage_of(backend).device_free, before.device_free);
    }
    free(logits);
    free(few);
    quern_backend.close(backend);
    model_free(model);
}
END_TEST

START_TEST(without_memory_for_the_library_our_own_products_do_until_there_is)
{
    model = make_model(&small_shape, "Q8_0");
    setenv("QUERN_EMU_BYTES", "200000000", 1);
    struct backend *backend = open_backend(&quern_backend, ROWS), *own = open_backend(&quern_backend, 0);
    unsetenv("QUERN_EMU_BYTES");
    struct device *device = backend_device(backend);
    float *library = logits_of(&quern_backend, backend, ROWS), *ours = logits_of(&quern_backend, own, ROWS);
    give(backend);
    const size_t few = taken(backend);
    void *others = device_alloc(device, device_free_bytes(device) - ((size_t)20 << 20));
    ck_assert_ptr_nonnull(others);
    check_prompt(backend, ours, false);
    ck_assert_uint_eq(taken(backend), few);                         /* not half of it */
    ck_assert_uint_gt(device_free_bytes(device), (size_t)17 << 20); /* but for rounding */
    device_free(device, others);
    check_prompt(backend, library, true);
    free(library);
    free(ours);
    quern_backend.close(own);
    quern_backend.close(backend);
    model_free(model);
}
END_TEST

/* Steps are queued that still need what is given back. */
START_TEST(steps_in_flight_are_waited_for)
{
    static const uint32_t blocks[] = {0, 1, 2, 3, 4};
    const struct backend_slot slot = {.sampling = SAMPLING_GREEDY, .end_position = UINT32_MAX};
    const struct backend_result *results = NULL;
    struct error err = {0};
    int32_t ids[ROWS], sampled[2];
    for (int i = 0; i < ROWS; i++)
        ids[i] = 3 + i;
    model = make_model(&small_shape, "Q8_0");
    struct backend *backend = open_backend(&quern_backend, ROWS);
    for (int gives = 0; gives < 2; gives++) {
        const struct backend_row_set set = {
            .ids = ids, .n_ids = ROWS, .blocks = {{blocks, 3, 0}}, .output = BACKEND_SAMPLE_LAST};
        const struct backend_step step = {&set, 1};
        uint64_t ticket;
        int r;
        ck_assert_int_eq(quern_backend.slot_open(backend, 0, &slot), 0);
        ck_assert_int_eq(quern_backend.submit(backend, &step, &ticket), 0);
        if (gives)
            ck_assert_uint_gt(give(backend).library, 0);
        do
            r = quern_backend.poll(backend, ticket, 1000, &results, &err);
        while (r == -EAGAIN);
        ck_assert_msg(r == 0, "%s", err.text);
        sampled[gives] = results[0].ids[0];
        quern_backend.slot_close(backend, 0);
    }
    ck_assert_int_eq(sampled[1], sampled[0]);
    quern_backend.close(backend);
    model_free(model);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_test(tests, the_librarys_memory_and_staging_go_and_come_back);
    tcase_add_test(tests, without_memory_for_the_library_our_own_products_do_until_there_is);
    tcase_add_test(tests, steps_in_flight_are_waited_for);
}

int main(void)
{
    return run_tests("cuda give back", add);
}
