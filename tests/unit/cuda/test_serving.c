/* SPDX-License-Identifier: MIT */
/* What serving costs on the emulated device: recorded graphs give what single launches give, nothing is
 * allocated or recorded once the backend is open, and a layer is few kernels. */

#include "cuda/backend.h"
#include "tests/unit/run.h"
#include "tests/unit/cpu/small_model.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SLOTS    5
#define STEPS    40
#define LOGPROBS 2

static const struct synth_shape shape = {.name = "serving",
                                         .n_vocab = 360,
                                         .n_context = 256,
                                         .n_embd = 64,
                                         .n_layers = 2,
                                         .n_heads = 4,
                                         .n_kv_heads = 2,
                                         .head_dim = 32,
                                         .n_ff = 96,
                                         .norm_epsilon = 1e-5f,
                                         .rope_base = 10000};

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
    struct synth_shape mixture = shape;
    mixture.n_experts = 6;
    mixture.n_experts_used = 2;
    mixture.n_expert_ff = 32;
    return mixture;
}

/* The same with a recurrent layer, and a gate in the other. */
static struct synth_shape hybrid(void)
{
    struct synth_shape hybrid = shape;
    hybrid.architecture = "qwen35";
    hybrid.delta = (struct delta_net){2, 4, 16, 8, 4, false};
    hybrid.attention_interval = 2;
    return hybrid;
}

static struct model *model_of(enum variant variant, const char *type)
{
    const struct synth_shape shapes[N_VARIANTS] = {shape, mixture_shape(), hybrid(), shape, shape};
    return make_model(&shapes[variant], type);
}

static struct backend *open_backend(struct model *model, enum backend_kv_type kv_type, bool invariant)
{
    const struct backend_config config = {.model = model,
                                          .n_slots = SLOTS,
                                          .n_context = 128,
                                          .n_blocks = SLOTS * 4,
                                          .max_rows = 64,
                                          .kv_type = kv_type,
                                          .invariant = invariant};
    struct backend *backend = NULL;
    struct error err = {0};
    ck_assert_msg(quern_backend.open(&config, &backend, &err) == 0, "%s", err.text);
    return backend;
}

static const struct backend_result *run(struct backend *backend, const struct backend_row_set *sets,
                                        uint32_t n)
{
    const struct backend_step step = {sets, n};
    const struct backend_result *results = NULL;
    uint64_t ticket;
    ck_assert_int_eq(quern_backend.submit(backend, &step, &ticket), 0);
    int r;
    do
        r = quern_backend.poll(backend, ticket, 1000, &results, NULL);
    while (r == -EAGAIN);
    ck_assert_int_eq(r, 0);
    return results;
}

/* Slot s: greedy, sampled, with penalties; its ids come one by one after a prompt of its own. */
static void open_slot(struct backend *backend, uint32_t s)
{
    int32_t history[30];
    const struct backend_slot params = {.sampling = {SAMPLING_RARE_OFF, .temperature = s % 2 ? 0.9 : 0,
                                                     .top_k = s == 3 ? 20 : 0, .top_p = 0.95,
                                                     .repetition_penalty = s > 1 ? 1.2 : 1,
                                                     .frequency_penalty = s > 2 ? 0.2 : 0, .seed = s + 1},
                                        .n_logprobs = LOGPROBS,
                                        .end_position = 120,
                                        .history = history,
                                        .n_history = 5 + s,
                                        .n_prompt = 5 + s};
    for (uint32_t i = 0; i < 5 + s; i++)
        history[i] = (int32_t)(3 + (s * 31 + i * 17) % 300);
    ck_assert_int_eq(quern_backend.slot_open(backend, s, &params), 0);
    const uint32_t blocks[] = {4 * s, 4 * s + 1, 4 * s + 2, 4 * s + 3};
    const struct backend_row_set prompt = {
        .slot = s, .ids = history, .n_ids = 5 + s, .blocks = {{blocks, 4, 0}}};
    run(backend, &prompt, 1);
}

struct trace {
    int32_t ids[STEPS][SLOTS];
    struct logprob logprobs[STEPS][SLOTS][LOGPROBS];
};

/* Decodes with one more sequence every few steps, so that every bucket up to SLOTS is used. */
static void decode(struct backend *backend, struct trace *trace)
{
    uint32_t positions[SLOTS];
    for (uint32_t s = 0; s < SLOTS; s++) {
        open_slot(backend, s);
        positions[s] = 5 + s;
    }
    for (uint32_t i = 0; i < STEPS; i++) {
        struct backend_row_set sets[SLOTS];
        const uint32_t n = 1 + i * SLOTS / STEPS;
        int32_t first[SLOTS];
        for (uint32_t s = 0; s < n; s++) {
            first[s] = (int32_t)s;
            bool begins = positions[s] == 5 + s;
            sets[s] = (struct backend_row_set){.slot = s,
                                               .position = positions[s]++,
                                               .n_ids = 1,
                                               .ids = begins ? &first[s] : NULL,
                                               .blocks = {{.told = 4}},
                                               .output = BACKEND_SAMPLE_LAST};
        }
        const struct backend_result *results = run(backend, sets, n);
        for (uint32_t s = 0; s < n; s++) {
            ck_assert_uint_eq(results[s].n_ids, 1);
            trace->ids[i][s] = results[s].ids[0];
            memcpy(trace->logprobs[i][s], results[s].logprobs, sizeof trace->logprobs[i][s]);
        }
    }
    for (uint32_t s = 0; s < SLOTS; s++)
        quern_backend.slot_close(backend, s);
}

START_TEST(recorded_decodes_give_the_bits_of_single_launches)
{
    struct model *model = model_of(_i, "F32");
    static struct trace recorded, eager;
    struct backend *backend = open_backend(model, kv_of(_i), false);
    const struct device_counts before = device_counts(backend_device(backend));
    decode(backend, &recorded);
    struct device_counts counts = device_counts(backend_device(backend));
    ck_assert(backend_decode_kernels(backend, 1) > 0 && backend_decode_kernels(backend, 5) > 0);
    /* All but the first of each recording stand behind another launch. */
    ck_assert_uint_ge(counts.overlaps, counts.captures * (backend_decode_kernels(backend, 1) - 1));
    ck_assert_uint_eq(backend_decode_kernels(backend, 9), 0); /* more than there are slots */
    ck_assert_uint_eq(counts.graph_launches - before.graph_launches, STEPS);
    quern_backend.close(backend);

    setenv("QUERN_EAGER", "1", 1);
    backend = open_backend(model, kv_of(_i), false);
    unsetenv("QUERN_EAGER");
    decode(backend, &eager);
    counts = device_counts(backend_device(backend));
    ck_assert_uint_eq(backend_decode_kernels(backend, 1) + counts.graph_launches, 0);
    quern_backend.close(backend);
    ck_assert_mem_eq(&recorded, &eager, sizeof eager);
    model_free(model);
}
END_TEST

START_TEST(serving_allocates_and_records_nothing)
{
    struct model *model = model_of(_i, "F32");
    static struct trace first, again;
    struct backend *backend = open_backend(model, kv_of(_i), false);
    const struct device_counts before = device_counts(backend_device(backend));
    uint8_t *host = malloc((size_t)SLOTS * 4 * 65536);
    const uint32_t blocks[] = {0, 1, 2, 3};
    const int rounds = _i == PLAIN ? 3 : 1;
    const struct backend_copy copy = {.blocks = blocks, .n = 4, .host = host};
    for (int i = 0; i < rounds; i++) {
        memset(&again, 0, sizeof again);
        decode(backend, &again);
        if (i == 0)
            first = again;
        ck_assert_mem_eq(&first, &again, sizeof again);
        const struct backend_result *unused;
        uint64_t ticket;
        int r;
        ck_assert_int_eq(quern_backend.copy_out(backend, &copy, &ticket), 0);
        do
            r = quern_backend.poll(backend, ticket, 1000, &unused, NULL);
        while (r == -EAGAIN);
        ck_assert_int_eq(r, 0);
    }
    const struct device_counts after = device_counts(backend_device(backend));
    ck_assert_uint_eq(after.allocations, before.allocations);
    ck_assert_uint_eq(after.captures, before.captures);
    ck_assert_uint_eq(after.bytes, before.bytes);
    free(host);
    quern_backend.close(backend);
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
        kernels[i] = backend_decode_kernels(backend, 1);
        quern_backend.close(backend);
        model_free(model);
    }
    ck_assert_uint_gt(kernels[0], 0);
    return kernels[1] - kernels[0];
}

START_TEST(a_layer_of_a_dense_llama_is_few_kernels)
{
    const uint32_t n = kernels_of_a_layer(shape, BACKEND_KV_F16, false);
    ck_assert_uint_le(n, 6);
    ck_assert_uint_le(kernels_of_a_layer(shape, BACKEND_KV_F16, true), 9);
    ck_assert_uint_eq(kernels_of_a_layer(shape, BACKEND_KV_Q8, false), n);
    ck_assert_uint_eq(kernels_of_a_layer(shape, BACKEND_KV_Q4, false), n);
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
                                               .position = 5 + s,
                                               .n_ids = 1,
                                               .ids = &ids[s],
                                               .blocks = {{.told = 4}},
                                               .output = BACKEND_LOGITS_LAST,
                                               .logits = logits[alone][s]};
        }
        for (uint32_t s = 0; s < SLOTS && alone; s++)
            run(backend, &sets[s], 1);
        if (!alone)
            run(backend, sets, SLOTS);
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
    ck_assert_uint_eq(backend_decode_kernels(backend, 1), backend_decode_kernels(untold, 1));
    quern_backend.close(untold);
    open_slot(backend, 0);
    quern_backend.close(backend);
}

START_TEST(an_invariant_device_says_what_that_costs)
{
    static const char pattern[] =
        "invariant: a token of one sequence takes %lf ms, and would take %lf otherwise; "
        "of %u at once %lf and %lf; from %u on there is no difference";
    struct model *model = make_model(&shape, "Q8_0");
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
    tcase_add_loop_test(tests, serving_allocates_and_records_nothing, 0, N_VARIANTS);
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
