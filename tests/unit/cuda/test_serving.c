/* SPDX-License-Identifier: MIT */
/* What serving costs on the emulated device: recorded graphs give what single launches give, nothing is
 * allocated or recorded once the backend is open, and a layer is few kernels. */

#include "tests/unit/cuda/decoding.h"

#include <stdio.h>

/* What tests of a loop are about. */
enum variant { PLAIN, MIXTURE, HYBRID, KV_Q8, KV_Q4, N_VARIANTS };

static enum backend_kv_type kv_of(enum variant variant)
{
    static const enum backend_kv_type types[N_VARIANTS] = {BACKEND_KV_F16, BACKEND_KV_F16, BACKEND_KV_F16,
                                                           BACKEND_KV_Q8, BACKEND_KV_Q4};
    return types[variant];
}

/* The same with experts. */
static struct synth_shape mixture_shape(void)
{
    struct synth_shape mixture = decoded_shape;
    mixture.n_experts = 6;
    mixture.n_experts_used = 2;
    mixture.n_expert_ff = 32;
    return mixture;
}

/* The same with a recurrent layer, and a gate in the other. */
static struct synth_shape hybrid(void)
{
    struct synth_shape hybrid = decoded_shape;
    hybrid.architecture = "qwen35";
    hybrid.delta = (struct delta_net){2, 4, 16, 8, 4, false};
    hybrid.attention_interval = 2;
    return hybrid;
}

static struct model *model_of(enum variant variant, const char *type)
{
    const struct synth_shape shapes[N_VARIANTS] = {decoded_shape, mixture_shape(), hybrid(), decoded_shape,
                                                   decoded_shape};
    return make_model(&shapes[variant], type);
}

/* As decode(), and blocks are copied out afterwards: nothing is allocated or recorded. */
static void decode_and_copy(struct backend *backend, struct trace *trace)
{
    const struct device_counts before = device_counts(backend_device(backend));
    uint8_t *host = malloc((size_t)SLOTS * 4 * 65536);
    const uint32_t blocks[] = {0, 1, 2, 3};
    const struct backend_copy copy = {.blocks = blocks, .n = 4, .host = host};
    const struct backend_result *unused;
    uint64_t ticket;
    int r;
    decode(backend, trace);
    ck_assert_int_eq(quern_backend.copy_out(backend, &copy, &ticket), 0);
    do
        r = quern_backend.poll(backend, ticket, 1000, &unused, NULL);
    while (r == -EAGAIN);
    ck_assert_int_eq(r, 0);
    const struct device_counts after = device_counts(backend_device(backend));
    ck_assert_uint_eq(after.allocations, before.allocations);
    ck_assert_uint_eq(after.captures, before.captures);
    ck_assert_uint_eq(after.bytes, before.bytes);
    free(host);
}

/* And serving allocates and records nothing. */
START_TEST(recorded_decodes_give_the_bits_of_single_launches)
{
    struct model *model = model_of(_i, "F32");
    static struct trace recorded, eager;
    struct backend *backend = open_backend(model, kv_of(_i), false);
    const struct device_counts before = device_counts(backend_device(backend));
    decode_and_copy(backend, &recorded);
    struct device_counts counts = device_counts(backend_device(backend));
    ck_assert(backend_decode_kernels(backend, 1, false) > 0 && backend_decode_kernels(backend, 5, false) > 0);
    /* All but the first of each recording stand behind another launch. */
    ck_assert_uint_ge(counts.overlaps, counts.captures * (backend_decode_kernels(backend, 1, true) - 1));
    ck_assert_uint_eq(backend_decode_kernels(backend, 9, false), 0); /* more than there are slots */
    ck_assert_uint_eq(counts.graph_launches - before.graph_launches, STEPS);
    for (int i = 0; i < (test_is_scaled() ? 1 : 2) && _i == PLAIN;
         i++) { /* nor does what was served before change a bit */
        static struct trace again;
        decode_and_copy(backend, &again);
        ck_assert_mem_eq(&recorded, &again, sizeof again);
    }
    quern_backend.close(backend);

    setenv("QUERN_EAGER", "1", 1);
    backend = open_backend(model, kv_of(_i), false);
    unsetenv("QUERN_EAGER");
    decode(backend, &eager);
    counts = device_counts(backend_device(backend));
    ck_assert_uint_eq(backend_decode_kernels(backend, 1, false) + counts.graph_launches, 0);
    quern_backend.close(backend);
    ck_assert_mem_eq(&recorded, &eager, sizeof eager);
    model_free(model);
}
END_TEST

/* Of launches of that name. */
static uint64_t launches_of(const struct backend_kernel *kernels, uint32_t n, const char *name)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(kernels[i].name, name) == 0)
            return kernels[i].n;
    return 0;
}

/* Greedy sequences decode; kernels of others are launched only beside one that needs them. */
static void check_greedy(struct backend *backend, int32_t ids[MOST_STEPS])
{
    const struct sampling drawn = {SAMPLING_RARE_OFF, .temperature = 1, .top_p = 1, .repetition_penalty = 1};
    const struct {
        struct sampling sampling;
        uint32_t n_logprobs;
        bool is_greedy;
    } cases[] = {{SAMPLING_GREEDY, 0, true}, {SAMPLING_GREEDY, 1, false}, {drawn, 0, false}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const struct backend_slot slots[] = {
            {.sampling = SAMPLING_GREEDY, .end_position = 120},
            {.sampling = cases[c].sampling, .n_logprobs = cases[c].n_logprobs, .end_position = 120}};
        struct backend_row_set sets[2];
        const int32_t first[] = {7, 9};
        const uint32_t blocks[2][4] = {{0, 1, 2, 3}, {4, 5, 6, 7}};
        for (uint32_t s = 0; s < 2; s++) {
            ck_assert_int_eq(quern_backend.slot_open(backend, s, &slots[s]), 0);
            sets[s] = (struct backend_row_set){.slot = s,
                                               .ids = &first[s],
                                               .n_ids = 1,
                                               .blocks = {{blocks[s], 4, 0}},
                                               .output = BACKEND_SAMPLE_LAST};
        }
        const struct backend_kernel *kernels;
        device_kernels(backend_device(backend), &kernels);
        for (uint32_t i = 0, steps = STEPS; i < steps; i++) {
            const struct backend_result *results = run_step(backend, sets, 2);
            if (c == 0)
                ids[i] = results[0].ids[0];
            ck_assert_int_eq(results[0].ids[0], ids[i]); /* in whatever company */
            for (uint32_t s = 0; s < 2; s++)
                sets[s] = (struct backend_row_set){.slot = s,
                                                   .position = i + 1,
                                                   .n_ids = 1,
                                                   .blocks = {{.told = 4}},
                                                   .output = BACKEND_SAMPLE_LAST};
        }
        const uint32_t n = device_kernels(backend_device(backend), &kernels);
        const uint64_t others = cases[c].is_greedy ? 0 : STEPS;
        ck_assert_uint_eq(launches_of(kernels, n, "find_best"), STEPS);
        ck_assert_uint_eq(launches_of(kernels, n, "accept"), STEPS);
        ck_assert_uint_eq(launches_of(kernels, n, "weigh"), others);
        ck_assert_uint_eq(launches_of(kernels, n, "cut"), others);
        ck_assert_uint_eq(launches_of(kernels, n, "logprobs"), others);
        for (uint32_t s = 0; s < 2; s++)
            quern_backend.slot_close(backend, s);
    }
}

START_TEST(greedy_steps_launch_no_kernels_of_sampling)
{
    struct model *model = model_of(PLAIN, "Q8_0");
    static int32_t recorded[MOST_STEPS], eager[MOST_STEPS];
    struct backend *backend = open_backend(model, BACKEND_KV_F16, false);
    for (uint32_t n = 1; n <= SLOTS; n++) /* weigh, cut and logprobs */
        ck_assert_uint_eq(backend_decode_kernels(backend, n, true) + 3,
                          backend_decode_kernels(backend, n, false));
    check_greedy(backend, recorded);
    quern_backend.close(backend);
    setenv("QUERN_EAGER", "1", 1);
    backend = open_backend(model, BACKEND_KV_F16, false);
    unsetenv("QUERN_EAGER");
    check_greedy(backend, eager);
    quern_backend.close(backend);
    ck_assert_mem_eq(recorded, eager, sizeof eager);
    model_free(model);
}
END_TEST

/* Kernels that one more layer than the shape has takes in a recorded decode of one row. */
static uint32_t kernels_of_a_layer(struct synth_shape layers, enum backend_kv_type kv_type, bool invariant)
{
    uint32_t kernels[2];
    for (uint32_t i = 0; i < 2; i++) {
        layers.n_layers += i;
        struct model *model = make_model(&layers, "Q8_0");
        struct backend *backend = open_backend(model, kv_type, invariant);
        kernels[i] = backend_decode_kernels(backend, 1, false);
        quern_backend.close(backend);
        model_free(model);
    }
    ck_assert_uint_gt(kernels[0], 0);
    return kernels[1] - kernels[0];
}

START_TEST(a_layer_of_a_dense_llama_is_few_kernels)
{
    const uint32_t n = kernels_of_a_layer(decoded_shape, BACKEND_KV_F16, false);
    ck_assert_uint_le(n, 6);
    ck_assert_uint_le(kernels_of_a_layer(decoded_shape, BACKEND_KV_F16, true), 9);
    ck_assert_uint_eq(kernels_of_a_layer(decoded_shape, BACKEND_KV_Q8, false), n);
    ck_assert_uint_eq(kernels_of_a_layer(decoded_shape, BACKEND_KV_Q4, false), n);
}
END_TEST

START_TEST(a_layer_of_a_mixture_is_no_more_than_a_dozen)
{
    ck_assert_uint_le(kernels_of_a_layer(mixture_shape(), BACKEND_KV_F16, false), 11);
    ck_assert_uint_le(kernels_of_a_layer(mixture_shape(), BACKEND_KV_F16, true), 13);
}
END_TEST

/* A recurrent layer, whose products are two launches and whose mixer is three more. */
START_TEST(a_recurrent_layer_is_few_kernels)
{
    struct synth_shape layers = hybrid();
    layers.n_layers = layers.attention_interval = 3; /* the fourth is one */
    ck_assert_uint_le(kernels_of_a_layer(layers, BACKEND_KV_F16, false), 8);
    ck_assert_uint_le(kernels_of_a_layer(layers, BACKEND_KV_F16, true), 11);
}
END_TEST

/* Logits of a sequence's last row, decoded with others or alone. */
START_TEST(an_invariant_device_gives_a_sequence_the_same_bits_in_any_company)
{
    struct model *model = model_of(_i, "Q8_0");
    struct backend *backend = open_backend(model, kv_of(_i), true);
    static float logits[2][SLOTS][360];
    for (int alone = 0; alone < 2; alone++) {
        struct backend_row_set sets[SLOTS];
        int32_t ids[SLOTS];
        for (uint32_t s = 0; s < SLOTS; s++) {
            open_slot(backend, s);
            ids[s] = (int32_t)(7 + 31 * s);
            sets[s] = (struct backend_row_set){.slot = s,
                                               .position = PROMPT + s,
                                               .n_ids = 1,
                                               .ids = &ids[s],
                                               .blocks = {{.told = 4}},
                                               .output = BACKEND_LOGITS_LAST,
                                               .logits = logits[alone][s]};
        }
        for (uint32_t s = 0; s < SLOTS && alone; s++)
            run_step(backend, &sets[s], 1);
        if (!alone)
            run_step(backend, sets, SLOTS);
        for (uint32_t s = 0; s < SLOTS; s++)
            quern_backend.slot_close(backend, s);
    }
    ck_assert_mem_eq(logits[0], logits[1], sizeof logits[0]);
    ck_assert(logits[0][0][0] != logits[0][1][0]);
    quern_backend.close(backend);
    model_free(model);
}
END_TEST

/* The line that an opened backend was described with; "": none. */
static void keep_line(void *arg, const char *line)
{
    snprintf(arg, 256, "%s", line);
}

/* And decodes are recorded as they were, and slots are free. */
static void check_told(struct model *model, uint32_t n_slots, bool invariant, const char *pattern)
{
    char line[256] = "";
    const struct backend_config config = {.model = model,
                                          .n_slots = n_slots,
                                          .n_context = 128,
                                          .max_rows = 64,
                                          .invariant = invariant,
                                          .say = keep_line,
                                          .say_arg = line};
    struct backend *backend = NULL;
    struct error err = {0};
    double numbers[4] = {0};
    unsigned sequences = 0, from = 0;
    ck_assert_msg(quern_backend.open(&config, &backend, &err) == 0, "%s", err.text);
    const int n =
        sscanf(line, pattern, &numbers[0], &numbers[1], &sequences, &numbers[2], &numbers[3], &from);
    ck_assert_msg(n == (!invariant ? EOF : n_slots > 1 ? 6 : 2), "%s", line);
    for (int i = 0; i < n - 2; i++)
        ck_assert_msg(numbers[i] > 0, "%s", line);
    if (n == 6) {
        ck_assert_uint_eq(sequences, n_slots < 4 ? n_slots : 4);
        ck_assert_uint_eq(from, 5);
    }
    struct backend *untold = open_backend(model, BACKEND_KV_F16, invariant);
    ck_assert_uint_eq(backend_decode_kernels(backend, 1, false), backend_decode_kernels(untold, 1, false));
    quern_backend.close(untold);
    open_slot(backend, 0);
    quern_backend.close(backend);
}

START_TEST(an_invariant_device_says_what_that_costs)
{
    static const char pattern[] =
        "invariant: a token of one sequence takes %lf ms, and would take %lf otherwise; "
        "of %u at once %lf and %lf; from %u on there is no difference";
    struct model *model = make_model(&decoded_shape, "Q8_0");
    check_told(model, 5, true, pattern);
    check_told(model, 3, true, pattern);
    check_told(model, 1, true, pattern);
    check_told(model, 5, false, pattern);
    model_free(model);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_loop_test(tests, recorded_decodes_give_the_bits_of_single_launches, 0, N_VARIANTS);
    tcase_add_test(tests, greedy_steps_launch_no_kernels_of_sampling);
    tcase_add_test(tests, a_layer_of_a_dense_llama_is_few_kernels);
    tcase_add_test(tests, a_layer_of_a_mixture_is_no_more_than_a_dozen);
    tcase_add_test(tests, a_recurrent_layer_is_few_kernels);
    tcase_add_loop_test(tests, an_invariant_device_gives_a_sequence_the_same_bits_in_any_company, MIXTURE,
                        N_VARIANTS);
    tcase_add_test(tests, an_invariant_device_says_what_that_costs);
}

int main(void)
{
    return run_tests("cuda serving", add);
}
