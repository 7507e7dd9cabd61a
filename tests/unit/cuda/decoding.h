/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_CUDA_DECODING_H
#define TESTS_UNIT_CUDA_DECODING_H

/* Sequences that decode together on a small model, and all their results. */

#include "cuda/backend.h"
#include "tests/unit/run.h"
#include "tests/unit/cpu/small_model.h"
#include "tests/unit/cuda/run_step.h"

#include <errno.h>
#include <string.h>

#define SLOTS      5
#define STEPS      (test_is_scaled() ? 10 : MOST_STEPS)
#define MOST_STEPS 20
/* Of the first; each other is longer by one, and all but one or two cross a block in decodes. */
#define PROMPT      (test_is_scaled() ? 26u : 20u)
#define MOST_PROMPT 26
#define LOGPROBS    2

static const struct synth_shape decoded_shape = {.name = "serving",
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

static inline struct backend *open_backend(struct model *model, enum backend_kv_type kv_type, bool invariant)
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

/* Opens slot s, greedy, sampled, or with penalties, and processes its prompt. */
static inline void open_slot(struct backend *backend, uint32_t s)
{
    int32_t history[MOST_PROMPT + SLOTS];
    const struct backend_slot params = {.sampling = {SAMPLING_RARE_OFF, .temperature = s % 2 ? 0.9 : 0,
                                                     .top_k = s == 3 ? 20 : 0, .top_p = 0.95,
                                                     .repetition_penalty = s > 1 ? 1.2 : 1,
                                                     .frequency_penalty = s > 2 ? 0.2 : 0, .seed = s + 1},
                                        .n_logprobs = LOGPROBS,
                                        .end_position = 120,
                                        .history = history,
                                        .n_history = PROMPT + s,
                                        .n_prompt = PROMPT + s};
    for (uint32_t i = 0; i < PROMPT + s; i++)
        history[i] = (int32_t)(3 + (s * 31 + i * 17) % 300);
    ck_assert_int_eq(quern_backend.slot_open(backend, s, &params), 0);
    const uint32_t blocks[] = {4 * s, 4 * s + 1, 4 * s + 2, 4 * s + 3};
    const struct backend_row_set prompt = {
        .slot = s, .ids = history, .n_ids = PROMPT + s, .blocks = {{blocks, 4, 0}}};
    run_step(backend, &prompt, 1);
}

struct trace {
    int32_t ids[MOST_STEPS][SLOTS];
    struct logprob logprobs[MOST_STEPS][SLOTS][LOGPROBS];
};

/* Decodes, adding a sequence every few steps, so that every bucket up to SLOTS is used. */
static inline void decode(struct backend *backend, struct trace *trace)
{
    uint32_t positions[SLOTS];
    for (uint32_t s = 0; s < SLOTS; s++) {
        open_slot(backend, s);
        positions[s] = PROMPT + s;
    }
    for (uint32_t i = 0, steps = STEPS; i < steps; i++) {
        struct backend_row_set sets[SLOTS];
        const uint32_t n = 1 + i * SLOTS / steps;
        int32_t first[SLOTS];
        for (uint32_t s = 0; s < n; s++) {
            first[s] = (int32_t)s;
            bool begins = positions[s] == PROMPT + s;
            sets[s] = (struct backend_row_set){.slot = s,
                                               .position = positions[s]++,
                                               .n_ids = 1,
                                               .ids = begins ? &first[s] : NULL,
                                               .blocks = {{.told = 4}},
                                               .output = BACKEND_SAMPLE_LAST};
        }
        const struct backend_result *results = run_step(backend, sets, n);
        for (uint32_t s = 0; s < n; s++) {
            ck_assert_uint_eq(results[s].n_ids, 1);
            trace->ids[i][s] = results[s].ids[0];
            memcpy(trace->logprobs[i][s], results[s].logprobs, sizeof trace->logprobs[i][s]);
        }
    }
    for (uint32_t s = 0; s < SLOTS; s++)
        quern_backend.slot_close(backend, s);
}

#endif
