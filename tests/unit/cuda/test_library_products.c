/* SPDX-License-Identifier: MIT */
/* Large steps by a library: near to what the file says, and only where they are asked for. */

#include "tests/unit/cuda/large_backend.h"

#include <math.h>

#define PROMPT 72

static double nmse(const float *found, const float *expected, uint32_t n)
{
    double error = 0, power = 0;
    for (size_t i = 0; i < (size_t)n * model->params.n_vocab; i++) {
        ck_assert(isfinite(found[i]));
        error += ((double)found[i] - (double)expected[i]) * ((double)found[i] - (double)expected[i]);
        power += (double)expected[i] * (double)expected[i];
    }
    return error / power;
}

/* What is the same of each layer costs less with one. */
static struct synth_shape one_layer(void)
{
    struct synth_shape shape = small_shape;
    shape.n_layers = 1;
    return shape;
}

/* ---- answers ---- */

static const char *const types[] = {"F32",  "F16",  "BF16", "Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "Q3_K",
                                    "Q2_K", "Q5_1", "Q5_0", "Q4_1", "Q4_0", "IQ4_NL", "IQ4_XS", "MXFP4"};
#define N_TYPES ((int)(sizeof types / sizeof *types))

/* Of one layer, so that what is rounded once is seen. */
START_TEST(large_steps_are_near_to_what_the_file_says_in_every_format)
{
    const bool by_itself = strcmp(types[_i], "F32") == 0;
    const struct synth_shape shape = one_layer();
    model = make_model(&shape, types[_i]);
    struct backend *exact = open_backend(&backend_cpu, 0), *large = open_backend(&quern_backend, ROWS);
    launches(large, "");
    float *expected = logits_of(&backend_cpu, exact, ROWS), *found = logits_of(&quern_backend, large, ROWS);
    const double off = nmse(found, expected, ROWS);
    ck_assert_uint_eq(launches(large, "cublasLtMatmul"), by_itself ? 0 : 7);
    ck_assert_msg(off > 0 && off <= 2e-4, "%s: %g", types[_i], off);
    free(expected);
    free(found);
    backend_cpu.close(exact);
    quern_backend.close(large);
    model_free(model);
}
END_TEST

/* What is rounded to bfloat16 is rounded less than to 8 bits in blocks of 32; F32 stays as it is. */
START_TEST(quantized_files_are_met_better_than_by_our_own_products)
{
    static const char *const of[] = {"Q8_0", "Q4_K_M", "F32"};
    const struct synth_shape shape = one_layer();
    for (int i = 0; i < (test_is_scaled() ? 1 : 3); i++) {
        model = make_model(&shape, of[i]);
        struct backend *exact = open_backend(&backend_cpu, 0), *own = open_backend(&quern_backend, 0),
                       *large = open_backend(&quern_backend, ROWS);
        float *expected = logits_of(&backend_cpu, exact, ROWS), *a = logits_of(&quern_backend, own, ROWS),
              *b = logits_of(&quern_backend, large, ROWS);
        if (i == 2)
            ck_assert_mem_eq(a, b, ROWS * model->params.n_vocab * sizeof *a);
        else
            ck_assert_msg(nmse(b, expected, ROWS) < nmse(a, expected, ROWS), "%s: %g is worse than %g", of[i],
                          nmse(b, expected, ROWS), nmse(a, expected, ROWS));
        free(expected);
        free(a);
        free(b);
        backend_cpu.close(exact);
        quern_backend.close(own);
        quern_backend.close(large);
        model_free(model);
    }
}
END_TEST

/* Nothing is a multiple of eight; in buckets, at their ends, and beyond the first. */
START_TEST(any_number_of_rows_and_columns_will_do)
{
    static const uint32_t counts[] = {65, 127, 128, 129, 150};
    model = make_model(&odd_shape, "BF16");
    struct backend_config config = config_of(ROWS);
    struct backend *exact = open_backend(&backend_cpu, 0), *large = NULL;
    struct error err;
    config.max_rows = 150;
    ck_assert_msg(open_as(&quern_backend, &config, &large, &err) == 0, "%s", err.text);
    backend_cpu.close(exact);
    config.cpu.float_activations = true;
    ck_assert_int_eq(backend_cpu.open(&config, &exact, &err), 0);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        float *expected = logits_of(&backend_cpu, exact, counts[i]),
              *found = logits_of(&quern_backend, large, counts[i]);
        const double off = nmse(found, expected, counts[i]);
        ck_assert_msg(off <= 3e-4, "%u rows: %g", counts[i], off);
        free(expected);
        free(found);
    }
    backend_cpu.close(exact);
    quern_backend.close(large);
    model_free(model);
}
END_TEST

START_TEST(smaller_steps_have_the_bits_that_they_had)
{
    const struct synth_shape shape = one_layer();
    model = make_model(&shape, "Q4_K_M");
    struct backend *own = open_backend(&quern_backend, 0), *large = open_backend(&quern_backend, ROWS);
    launches(large, "");
    for (uint32_t n = 1; n < ROWS; n += 21) {
        float *a = logits_of(&quern_backend, own, n), *b = logits_of(&quern_backend, large, n);
        ck_assert_mem_eq(a, b, n * model->params.n_vocab * sizeof *a);
        free(a);
        free(b);
    }
    ck_assert_uint_eq(launches(large, "cublasLtMatmul"), 0);
    quern_backend.close(own);
    quern_backend.close(large);
    model_free(model);
}
END_TEST

START_TEST(a_large_step_gives_the_same_bits_every_time_and_allocates_nothing)
{
    const struct synth_shape shape = one_layer();
    model = make_model(&shape, "Q8_0");
    struct backend *backend = open_backend(&quern_backend, ROWS);
    const uint64_t allocations = device_counts(backend_device(backend)).allocations;
    float *once = logits_of(&quern_backend, backend, PROMPT), *again;
    free(logits_of(&quern_backend, backend, 128));
    again = logits_of(&quern_backend, backend, PROMPT);
    ck_assert_mem_eq(once, again, PROMPT * model->params.n_vocab * sizeof *once);
    ck_assert_uint_eq(device_counts(backend_device(backend)).allocations, allocations);
    free(once);
    free(again);
    quern_backend.close(backend);
    model_free(model);
}
END_TEST

/* Prompts of 20 ids and, beside the next id of the first, of 64: the logits of its last id, and of that. */
static void run_beside(const struct backend_ops *ops, struct backend *backend, float *of_decode,
                       float *of_prompt)
{
    static const uint32_t blocks[2][2] = {{0, 1}, {2, 3}};
    const struct backend_slot slot = {.sampling = SAMPLING_GREEDY, .end_position = UINT32_MAX};
    int32_t ids[64];
    for (int i = 0; i < 64; i++)
        ids[i] = 3 + i * 31 % 300;
    const struct backend_row_set first = {
        .ids = ids, .n_ids = 20, .blocks = {{blocks[0], 1, 0}}, .output = BACKEND_OUTPUT_NONE};
    const struct backend_row_set both[] = {{.position = 20,
                                            .ids = ids + 20,
                                            .n_ids = 1,
                                            .blocks = {{blocks[0], 0, 1}},
                                            .output = BACKEND_LOGITS_LAST,
                                            .logits = of_decode},
                                           {.slot = 1,
                                            .ids = ids,
                                            .n_ids = 64,
                                            .blocks = {{blocks[1], 2, 0}},
                                            .output = BACKEND_LOGITS_LAST,
                                            .logits = of_prompt}};
    struct error err = {0};
    for (uint32_t s = 0; s < 2; s++)
        ck_assert_int_eq(ops->slot_open(backend, s, &slot), 0);
    ck_assert_msg(run(ops, backend, &first, 1, &err) == 0, "%s", err.text);
    ck_assert_msg(run(ops, backend, both, 2, &err) == 0, "%s", err.text);
    for (uint32_t s = 0; s < 2; s++)
        ops->slot_close(backend, s);
}

START_TEST(what_is_decoded_beside_a_large_chunk_is_near_too)
{
    model = make_model(&small_shape, "Q6_K");
    struct backend *exact = open_backend(&backend_cpu, 0), *large = open_backend(&quern_backend, ROWS);
    const size_t bytes = model->params.n_vocab * sizeof(float);
    float *expected = calloc(2, bytes), *found = calloc(2, bytes);
    launches(large, "");
    run_beside(&backend_cpu, exact, expected, expected + model->params.n_vocab);
    run_beside(&quern_backend, large, found, found + model->params.n_vocab);
    ck_assert_uint_eq(launches(large, "cublasLtMatmul"), 7 * small_shape.n_layers);
    ck_assert_double_le(nmse(found, expected, 1), 3e-3); /* what it saw was rounded to 8 bits */
    ck_assert_double_le(nmse(found + model->params.n_vocab, expected + model->params.n_vocab, 1), 3e-4);
    free(expected);
    free(found);
    backend_cpu.close(exact);
    quern_backend.close(large);
    model_free(model);
}
END_TEST

#define MANY    72 /* sequences */
#define DRAFTED 9  /* ids of a sequence that verifies a draft, in so few that there are as many rows */

/* Launches of the library when each of n slots has so many rows, which are no prompt's but of a draft. */
static uint64_t launches_of_decode(struct backend *backend, uint32_t n, uint32_t n_ids)
{
    static const struct backend_slot slot = {.sampling = SAMPLING_GREEDY, .end_position = UINT32_MAX};
    static const int32_t ids[DRAFTED] = {3, 20, 37, 54, 71, 88, 105, 122, 139};
    struct backend_row_set sets[MANY];
    uint32_t blocks[MANY];
    struct error err = {0};
    launches(backend, "");
    for (uint32_t i = 0; i < n; i++) {
        blocks[i] = i;
        ck_assert_int_eq(quern_backend.slot_open(backend, i, &slot), 0);
        sets[i] = (struct backend_row_set){.slot = i,
                                           .ids = ids,
                                           .n_ids = n_ids,
                                           .blocks = {{&blocks[i], 1, 0}},
                                           .output = n_ids == 1 ? BACKEND_SAMPLE_LAST : BACKEND_SAMPLE_ALL};
    }
    ck_assert_msg(run(&quern_backend, backend, sets, n, &err) == 0, "%s", err.text);
    for (uint32_t i = 0; i < n; i++)
        quern_backend.slot_close(backend, i);
    return launches(backend, "cublasLtMatmul");
}

static uint64_t counted_products(struct backend *backend)
{
    struct backend_usage usage;
    quern_backend.usage(backend, &usage);
    return usage.library_products;
}

START_TEST(what_only_decodes_never_comes_to_the_library)
{
    const struct synth_shape shape = one_layer();
    struct backend *backend = NULL;
    struct error err;
    model = make_model(&shape, "Q8_0");
    struct backend_config config = config_of(ROWS);
    config.n_slots = MANY;
    ck_assert_msg(open_as(&quern_backend, &config, &backend, &err) == 0, "%s", err.text);
    const uint64_t before = counted_products(backend);
    ck_assert_uint_eq(before, 0); /* opening has made some, which do not count */
    ck_assert_uint_eq(launches_of_decode(backend, MANY, 1), 0);
    ck_assert_uint_eq(launches_of_decode(backend, MANY / DRAFTED, DRAFTED), 0);
    ck_assert_uint_eq(counted_products(backend), before);
    free(logits_of(&quern_backend, backend, MANY));
    ck_assert_uint_eq(launches(backend, "cublasLtMatmul"), 7);
    ck_assert_uint_eq(counted_products(backend), before + 7);
    quern_backend.close(backend);
    model_free(model);
}
END_TEST

/* ---- the gate ---- */

START_TEST(the_gate_holds_the_library_to_its_own_rounding)
{
    const struct synth_shape shape = one_layer();
    struct synth_shape mixture = shape;
    struct error err;
    mixture.n_experts = 4;
    mixture.n_experts_used = 2;
    mixture.n_expert_ff = 96;
    struct synth_shape shared = mixture;
    shared.architecture = "granitemoe";
    shared.n_shared_ff = 640; /* wider than anything else that is multiplied */
    shared.biases = false;
    shared.rope_factor = 0;
    const struct synth_shape *const shapes[] = {&shape, &odd_shape, &mixture, &shared};
    static const char *const of[] = {"Q4_K_M", "F16", "Q8_0", "Q8_0"};
    for (int i = 0; i < 4; i++) {
        model = make_model(shapes[i], of[i]);
        ck_assert_msg(open_checked("", &err) == 0, "%s: %s", of[i], err.text);
        model_free(model);
    }
}
END_TEST

START_TEST(what_is_computed_wrongly_for_the_library_or_by_it_is_named)
{
    static const char *const kernels[] = {"cublasLtMatmul", "unpack_weights"};
    struct error err;
    model = make_model(&small_shape, "Q8_0");
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        ck_assert_int_eq(open_checked(kernels[i], &err), -ENODEV);
        ck_assert_msg(strstr(err.text, "computes wrong results: kernel cublasLtMatmul (blk.0.attn_"),
                      "%s: %s", kernels[i], err.text);
    }
    model_free(model);
}
END_TEST

/* ---- what is asked for ---- */

static void check_refused(const struct backend_config *config, const char *text)
{
    struct backend *backend = NULL;
    struct error err;
    ck_assert_int_eq(open_as(&quern_backend, config, &backend, &err), -EINVAL);
    ck_assert_msg(strstr(err.text, text), "%s", err.text);
}

START_TEST(invariance_and_few_rows_do_not_go_with_it)
{
    struct backend_config config;
    model = make_model(&small_shape, "Q8_0");
    config = config_of(ROWS);
    config.invariant = true;
    check_refused(&config, "not available on an invariant device");
    config = config_of(64);
    check_refused(&config, "steps of at least 65 rows; 64 were requested");
    model_free(model);
}
END_TEST

START_TEST(steps_that_are_never_so_large_are_told_of)
{
    const struct synth_shape shape = one_layer();
    model = make_model(&shape, "Q8_0");
    struct backend *backend = open_backend(&quern_backend, 129);
    ck_assert_str_eq(said, "cuBLASLt is not used: a step has at most 128 rows, fewer than 129\n");
    check_own(backend);
    model_free(model);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_loop_test(tests, large_steps_are_near_to_what_the_file_says_in_every_format, 0, N_TYPES);
    tcase_add_test(tests, quantized_files_are_met_better_than_by_our_own_products);
    tcase_add_test(tests, any_number_of_rows_and_columns_will_do);
    tcase_add_test(tests, smaller_steps_have_the_bits_that_they_had);
    tcase_add_test(tests, a_large_step_gives_the_same_bits_every_time_and_allocates_nothing);
    tcase_add_test(tests, what_is_decoded_beside_a_large_chunk_is_near_too);
    tcase_add_test(tests, what_only_decodes_never_comes_to_the_library);
    tcase_add_test(tests, the_gate_holds_the_library_to_its_own_rounding);
    tcase_add_test(tests, what_is_computed_wrongly_for_the_library_or_by_it_is_named);
    tcase_add_test(tests, invariance_and_few_rows_do_not_go_with_it);
    tcase_add_test(tests, steps_that_are_never_so_large_are_told_of);
}

int main(void)
{
    return run_tests("cuda large products", add);
}
