/* SPDX-License-Identifier: MIT */
/* Steps of hundreds of sequences on the emulated device: recorded up to 256 rows, queued kernel by kernel
 * beyond, and every row as in a step of its own. */

#include "cuda/backend.h"
#include "tests/unit/run.h"
#include "tests/unit/cpu/small_model.h"
#include "tests/unit/cuda/run_step.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define STEPS    3
#define MOST     260
#define LOGPROBS 2

static const struct synth_shape shape = {.name = "wide",
                                         .n_vocab = 360,
                                         .n_context = 64,
                                         .n_embd = 64,
                                         .n_layers = 1,
                                         .n_heads = 2,
                                         .n_kv_heads = 1,
                                         .head_dim = 32,
                                         .n_ff = 96,
                                         .norm_epsilon = 1e-5f,
                                         .rope_base = 10000};

struct trace {
    int32_t ids[STEPS][MOST];
    struct logprob logprobs[STEPS][MOST][LOGPROBS];
};

static struct backend *open_backend(struct model *model, uint32_t n_slots)
{
    const struct backend_config config = {.model = model,
                                          .n_slots = n_slots,
                                          .n_context = 32,
                                          .n_blocks = n_slots,
                                          .max_rows = n_slots,
                                          .invariant = true};
    struct backend *backend = NULL;
    struct error err = {0};
    ck_assert_msg(quern_backend.open(&config, &backend, &err) == 0, "%s", err.text);
    return backend;
}

/* Every third is greedy; the others have samplers of all kinds. */
static void open_slot(struct backend *backend, uint32_t s)
{
    struct backend_slot params = {.sampling = SAMPLING_GREEDY,
                                  .n_logprobs = LOGPROBS,
                                  .end_position = 30,
                                  .history = &(int32_t){(int32_t)s},
                                  .n_history = 1,
                                  .n_prompt = 1};
    params.sampling.temperature = s % 3 ? 0.9 : 0;
    params.sampling.seed = s + 1;
    params.sampling.top_p = s % 5 == 1 ? 0.9 : 1;
    params.sampling.typical_p = s % 5 == 2 ? 0.9 : 1;
    params.sampling.dry_multiplier = s % 7 == 1 ? 1 : 0;
    params.sampling.repetition_penalty = s % 4 == 1 ? 1.2 : 1;
    ck_assert_int_eq(quern_backend.slot_open(backend, s, &params), 0);
}

/* The i-th step's set of a slot. */
static struct backend_row_set set_of(uint32_t s, uint32_t i, int32_t *first, const uint32_t *block)
{
    *first = (int32_t)s;
    return (struct backend_row_set){.slot = s,
                                    .position = i,
                                    .n_ids = 1,
                                    .ids = i == 0 ? first : NULL,
                                    .blocks = {{block, i == 0, i > 0}},
                                    .output = BACKEND_SAMPLE_LAST};
}

static void note(struct trace *trace, uint32_t s, uint32_t i, const struct backend_result *result)
{
    ck_assert_uint_eq(result->n_ids, 1);
    trace->ids[i][s] = result->ids[0];
    memcpy(trace->logprobs[i][s], result->logprobs, sizeof trace->logprobs[i][s]);
}

static void run_together(struct backend *backend, uint32_t n, struct trace *trace)
{
    static struct backend_row_set sets[MOST];
    int32_t first[MOST];
    uint32_t blocks[MOST];
    for (uint32_t s = 0; s < n; s++)
        open_slot(backend, s);
    for (uint32_t i = 0; i < STEPS; i++) {
        for (uint32_t s = 0; s < n; s++) {
            blocks[s] = s;
            sets[s] = set_of(s, i, &first[s], &blocks[s]);
        }
        const struct backend_result *results = run_step(backend, sets, n);
        for (uint32_t s = 0; s < n; s++)
            note(trace, s, i, &results[s]);
    }
    for (uint32_t s = 0; s < n; s++)
        quern_backend.slot_close(backend, s);
}

static void run_alone(struct backend *backend, uint32_t n, struct trace *trace)
{
    for (uint32_t s = 0; s < n; s++) {
        int32_t first;
        open_slot(backend, s);
        for (uint32_t i = 0; i < STEPS; i++) {
            const struct backend_row_set set = set_of(s, i, &first, &s);
            note(trace, s, i, run_step(backend, &set, 1));
        }
        quern_backend.slot_close(backend, s);
    }
}

START_TEST(a_step_of_hundreds_of_rows_is_as_many_single_ones)
{
    static const uint32_t counts[] = {256, MOST};
    static struct trace together, alone;
    struct model *model = make_model(&shape, "F32");
    struct backend *backend = open_backend(model, MOST);
    run_alone(backend, MOST, &alone);
    ck_assert(backend_decode_kernels(backend, 256, false) > 0); /* the largest recording */
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        const uint32_t n = counts[c];
        const struct device_counts before = device_counts(backend_device(backend));
        run_together(backend, n, &together);
        const struct device_counts after = device_counts(backend_device(backend));
        ck_assert_uint_eq(after.graph_launches - before.graph_launches, n <= 256 ? STEPS : 0);
        for (uint32_t i = 0; i < STEPS; i++) {
            ck_assert_mem_eq(together.ids[i], alone.ids[i], n * sizeof *alone.ids[i]);
            ck_assert_mem_eq(together.logprobs[i], alone.logprobs[i], n * sizeof *alone.logprobs[i]);
        }
    }
    quern_backend.close(backend);
    model_free(model);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_test(tests, a_step_of_hundreds_of_rows_is_as_many_single_ones);
}

int main(void)
{
    return run_tests("wide", add);
}
