/* SPDX-License-Identifier: MIT */
/* The library of large steps as it may be: not there, without an algorithm for a shape, failing in a call.
 * What it refuses or lacks is told, and our own products do. */

#include "cuda/host/library_products.h"
#include "tests/unit/cuda/large_backend.h"

START_TEST(without_a_library_our_own_products_do_and_one_line_says_why)
{
    static const struct {
        const char *fault, *reasons;
    } cases[] = {{"missing", "the emulated device has no libcublasLt.so.13; the emulated device has no "
                             "libcublasLt.so.12"},
                 {"cublasLtCreate=1",
                  "cublasLtCreate of version 13: CUBLAS_STATUS_NOT_INITIALIZED; cublasLtCreate "
                  "of version 12: CUBLAS_STATUS_NOT_INITIALIZED"}};
    model = make_model(&small_shape, "Q8_0");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct backend *backend = NULL;
        struct error err;
        char expected[320];
        ck_assert_msg(open_with(cases[i].fault, &backend, &err) == 0, "%s", err.text);
        snprintf(expected, sizeof expected, "cuBLASLt is not available, using our own kernels: %s\n",
                 cases[i].reasons);
        ck_assert_str_eq(said, expected);
        check_own(backend);
    }
    model_free(model);
}
END_TEST

START_TEST(a_version_that_does_not_start_leaves_the_work_to_an_older_one)
{
    static const char *const faults[] = {"13: missing", "13: cublasLtCreate=1"};
    model = make_model(&small_shape, "Q8_0");
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        struct backend *backend = NULL;
        struct error err;
        ck_assert_msg(open_with(faults[i], &backend, &err) == 0, "%s", err.text);
        ck_assert_msg(
            strstr(said, "steps of 65 rows or more that read a prompt are multiplied by cuBLASLt 12.0.0\n"),
            "%s: %s", faults[i], said);
        quern_backend.close(backend);
    }
    model_free(model);
}
END_TEST

START_TEST(a_shape_without_an_algorithm_keeps_our_own_products)
{
    struct backend *backend = NULL;
    struct error err;
    model = make_model(&small_shape, "Q8_0");
    ck_assert_msg(open_with("cublasLtMatmulAlgoGetHeuristic=15", &backend, &err) == 0, "%s", err.text);
    ck_assert_msg(
        strstr(said, "cuBLASLt, products of 512 × 256: it has no algorithm; using our own kernels\n"), "%s",
        said);
    check_own(backend);
    model_free(model);
}
END_TEST

/* All shapes, and all but the first. */
START_TEST(the_gate_holds_a_shape_without_an_algorithm_to_our_own_rounding)
{
    static const char *const faults[] = {"cublasLtMatmulAlgoGetHeuristic=15",
                                         "cublasLtMatmulAlgoGetHeuristic=15:2"};
    static const char *const of[] = {"Q8_0", "BF16"};
    struct synth_shape shape = small_shape;
    struct error err;
    shape.n_layers = 1;
    for (int i = test_is_scaled() ? 3 : 0; i < 4; i++) {
        model = make_model(&shape, of[i % 2]);
        setenv("QUERN_EMU_CUBLAS", faults[i / 2], 1);
        ck_assert_msg(open_checked("", &err) == 0, "%s of %s: %s", faults[i / 2], of[i % 2], err.text);
        unsetenv("QUERN_EMU_CUBLAS");
        ck_assert_msg(strstr(said, "it has no algorithm; using our own kernels\n"), "%s", said);
        model_free(model);
    }
}
END_TEST

/* A plain half beside experts, and what layers get of tokens; where everything is slow, the latter are only
 * opened. */
START_TEST(the_gate_holds_products_of_few_models_to_it)
{
    struct synth_shape beside = differing_shape, borrowing = differing_shape;
    struct error err;
    beside.n_experts = 4;
    beside.n_experts_used = 3;
    beside.n_expert_ff = 96;
    borrowing.n_layers = 4;
    borrowing.full_kv_heads = 0;
    borrowing.n_borrowing_layers = 2;
    borrowing.n_layer_embd = 64;
    borrowing.borrowing_ff = 768;
    model = make_model(_i ? &borrowing : &beside, "Q8_0");
    if (_i && test_is_scaled())
        quern_backend.close(open_backend(&quern_backend, ROWS));
    else
        ck_assert_msg(open_checked("", &err) == 0, "%s", err.text);
    ck_assert_msg(strstr(said, _i ? "products of 64 × 256: " : "products of 512 × 256: ") != NULL, "%s",
                  said);
    ck_assert_msg(strstr(said, "no algorithm") == NULL, "%s", said);
    model_free(model);
}
END_TEST

static uint64_t bytes_of_step(struct backend *backend)
{
    const struct backend_kernel *kernels;
    uint64_t bytes = 0;
    launches(backend, "");
    free(logits_of(&quern_backend, backend, ROWS));
    const uint32_t n = device_kernels(backend_device(backend), &kernels);
    for (uint32_t i = 0; i < n; i++)
        bytes += kernels[i].bytes;
    return bytes;
}

/* Read where it is, unpacked before, or left to our own kernels. */
START_TEST(a_profile_has_every_byte_of_weights_once)
{
    static const char *const of[] = {"BF16", "Q4_K_M", "BF16", "Q4_K_M", "BF16"};
    struct synth_shape shape = small_shape, borrowing = borrowing_shape;
    shape.n_layers = 1;
    borrowing.window = CONTEXT; /* one group of layers */
    for (int i = test_is_scaled(); i < 5; i += test_is_scaled() ? 3 : 1) {
        struct backend *own, *large = NULL;
        struct error err;
        model = make_model(i == 4 ? &borrowing : &shape, of[i]);
        own = open_backend(&quern_backend, 0);
        ck_assert_msg(open_with(i % 4 < 2 ? "" : "cublasLtMatmulAlgoGetHeuristic=15:2", &large, &err) == 0,
                      "%s", err.text);
        const uint64_t expected = bytes_of_step(own);
        ck_assert_uint_gt(expected, 0);
        ck_assert_msg(bytes_of_step(large) == expected, "%s", of[i]);
        quern_backend.close(own);
        quern_backend.close(large);
        model_free(model);
    }
}
END_TEST

/* Launches of our own wide tiles in a step, and of those that blocks share. */
static uint64_t wide_launches(struct backend *backend, uint64_t *ret_shared)
{
    const struct backend_kernel *kernels;
    uint64_t n_wide = 0;
    launches(backend, "");
    free(logits_of(&quern_backend, backend, ROWS));
    const uint32_t n = device_kernels(backend_device(backend), &kernels);
    *ret_shared = 0;
    for (uint32_t i = 0; i < n; i++) {
        n_wide += strcmp(kernels[i].name, "multiply_wide") == 0 ? kernels[i].n : 0;
        *ret_shared += strcmp(kernels[i].name, "multiply_stream_k") == 0 ? kernels[i].n : 0;
    }
    return n_wide + *ret_shared;
}

/* Of Q, K and V the library takes Q alone here: K and V still go together, and no tile is left whole. */
START_TEST(what_the_library_leaves_is_multiplied_as_it_would_be_without_it)
{
    struct backend *own, *large = NULL;
    struct error err;
    uint64_t shared, shared_beside;
    model = make_model(&odd_shape, "Q8_0");
    setenv("QUERN_SHARES", "always", 1);
    own = open_backend(&quern_backend, 0);
    ck_assert_msg(open_with("cublasLtMatmulAlgoGetHeuristic=15:2", &large, &err) == 0, "%s", err.text);
    unsetenv("QUERN_SHARES");
    const uint64_t expected = wide_launches(own, &shared);
    ck_assert_uint_eq(wide_launches(large, &shared_beside), expected);
    ck_assert_uint_gt(shared, 0);
    ck_assert_uint_eq(shared_beside, shared);
    quern_backend.close(own);
    quern_backend.close(large);
    model_free(model);
}
END_TEST

static size_t memory_of(uint32_t library_rows)
{
    struct backend *backend = open_backend(&quern_backend, library_rows);
    struct backend_info info;
    quern_backend.info(backend, &info);
    quern_backend.close(backend);
    return info.memory_bytes;
}

START_TEST(a_model_that_the_library_takes_nothing_of_gives_it_no_memory)
{
    model = make_model(&small_shape, "F32");
    ck_assert_uint_eq(memory_of(ROWS), memory_of(0));
    model_free(model);
    model = make_model(&small_shape, "BF16");
    ck_assert_uint_gt(memory_of(ROWS), memory_of(0));
    model_free(model);
}
END_TEST

START_TEST(what_multiplies_is_told_only_where_it_does)
{
    struct backend *backend = NULL;
    struct error err;
    model = make_model(&small_shape, "F32");
    if (!test_is_scaled())
        check_own(open_backend(&quern_backend, ROWS));
    backend = open_backend(&quern_backend, ROWS);
    ck_assert_str_eq(said, "cuBLASLt is not used for this model: its layers are F32\n");
    quern_backend.close(backend);
    model_free(model);
    model = make_model(&small_shape, "Q8_0");
    ck_assert_int_eq(open_with("cublasLtMatmulAlgoGetHeuristic=15", &backend, &err), 0);
    ck_assert_msg(!strstr(said, "are multiplied by"), "%s", said);
    quern_backend.close(backend);
    ck_assert_int_eq(open_with("cublasLtMatmulAlgoGetHeuristic=15:2", &backend, &err), 0);
    ck_assert_msg(strstr(said, "are multiplied by cuBLASLt 13.0.0\n"), "%s", said);
    quern_backend.close(backend);
    model_free(model);
}
END_TEST

/* Of a size that is asked for; the link sends all calls here. */
static size_t lacking;
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
    return lacking && size == lacking ? NULL : __real_calloc(n, size);
}

START_TEST(want_of_memory_for_plans_is_told)
{
    struct backend *backend = NULL;
    struct error err;
    model = make_model(&small_shape, "Q8_0");
    const struct backend_config config = config_of(ROWS);
    lacking = sizeof(struct library_bucket);
    ck_assert_int_eq(open_as(&quern_backend, &config, &backend, &err), -ENOMEM);
    lacking = 0;
    ck_assert_str_eq(err.text, "not enough memory for the plans of cuBLASLt");
    model_free(model);
}
END_TEST

START_TEST(algorithms_are_chosen_once_and_told)
{
    model = make_model(&small_shape, "Q8_0");
    struct backend_config config = config_of(ROWS);
    struct backend *backend = NULL;
    struct error err;
    config.max_rows = 512;
    config.n_context = 600;
    ck_assert_msg(open_as(&quern_backend, &config, &backend, &err) == 0, "%s", err.text);
    ck_assert_msg(
        strstr(said, "steps of 65 rows or more that read a prompt are multiplied by cuBLASLt 13.0.0\n"), "%s",
        said);
    ck_assert_msg(strstr(said, "cuBLASLt, products of 256 × 256 with a bias: algorithm 66, tile 20 to 128 "
                               "rows; algorithm 71, tile 20 to 512 rows\n"),
                  "%s", said);
    quern_backend.close(backend);
    model_free(model);
}
END_TEST

static const char *const calls[] = {"cublasLtMatmulDescCreate",
                                    "cublasLtMatmulDescSetAttribute",
                                    "cublasLtMatrixLayoutCreate",
                                    "cublasLtMatmulPreferenceCreate",
                                    "cublasLtMatmulPreferenceSetAttribute",
                                    "cublasLtMatmulAlgoGetHeuristic",
                                    "cublasLtMatmul"};

START_TEST(a_call_that_fails_while_loading_is_named_with_its_shape)
{
    char fault[96], expected[128];
    struct backend *backend = NULL;
    struct error err;
    model = make_model(&small_shape, "Q8_0");
    for (int late = 0; late < 2; late++) {
        snprintf(fault, sizeof fault, "%s=13%s", calls[_i], late ? ":3" : "");
        ck_assert_int_eq(open_with(fault, &backend, &err), -EIO);
        snprintf(expected, sizeof expected, "%s of ", calls[_i]);
        ck_assert_msg(strncmp(err.text, expected, strlen(expected)) == 0, "%s", err.text);
        ck_assert_msg(strstr(err.text, " × 256 by 128 rows: CUBLAS_STATUS_EXECUTION_FAILED"), "%s", err.text);
    }
    model_free(model);
}
END_TEST

START_TEST(a_call_that_fails_while_serving_is_the_devices_fault)
{
    static const uint32_t blocks[] = {0, 1, 2};
    static const char *const serving[] = {"cublasLtMatmul", "cublasLtMatmulDescSetAttribute"};
    const struct backend_slot slot = {.sampling = SAMPLING_GREEDY, .end_position = UINT32_MAX};
    int32_t ids[ROWS] = {0};
    const struct backend_row_set set = {
        .ids = ids, .n_ids = ROWS, .blocks = {{blocks, 3, 0}}, .output = BACKEND_SAMPLE_LAST};
    model = make_model(&small_shape, "Q8_0");
    for (size_t i = 0; i < 2; i++) {
        struct backend *backend = open_backend(&quern_backend, ROWS);
        struct error err = {0};
        char expected[160];
        snprintf(expected, sizeof expected, "%s=14", serving[i]);
        setenv("QUERN_EMU_CUBLAS", expected, 1);
        ck_assert_int_eq(quern_backend.slot_open(backend, 0, &slot), 0);
        ck_assert_int_eq(run(&quern_backend, backend, &set, 1, &err), -EIO);
        unsetenv("QUERN_EMU_CUBLAS");
        snprintf(expected, sizeof expected, "%s of 256 × 256 by 128 rows: CUBLAS_STATUS_INTERNAL_ERROR",
                 serving[i]);
        ck_assert_str_eq(err.text, expected);
        quern_backend.close(backend);
    }
    model_free(model);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_test(tests, without_a_library_our_own_products_do_and_one_line_says_why);
    tcase_add_test(tests, a_version_that_does_not_start_leaves_the_work_to_an_older_one);
    tcase_add_test(tests, a_shape_without_an_algorithm_keeps_our_own_products);
    tcase_add_test(tests, the_gate_holds_a_shape_without_an_algorithm_to_our_own_rounding);
    tcase_add_loop_test(tests, the_gate_holds_products_of_few_models_to_it, 0, 2);
    tcase_add_test(tests, a_profile_has_every_byte_of_weights_once);
    tcase_add_test(tests, what_the_library_leaves_is_multiplied_as_it_would_be_without_it);
    tcase_add_test(tests, a_model_that_the_library_takes_nothing_of_gives_it_no_memory);
    tcase_add_test(tests, what_multiplies_is_told_only_where_it_does);
    tcase_add_test(tests, want_of_memory_for_plans_is_told);
    tcase_add_test(tests, algorithms_are_chosen_once_and_told);
    tcase_add_loop_test(tests, a_call_that_fails_while_loading_is_named_with_its_shape, 0,
                        sizeof calls / sizeof *calls);
    tcase_add_test(tests, a_call_that_fails_while_serving_is_the_devices_fault);
}

int main(void)
{
    return run_tests("cuda library", add);
}
