/* SPDX-License-Identifier: MIT */
/* The CPU backend against the contract of worker/engine/backend.h. */

#include "worker/engine/backend.h"
#include "tests/unit/run.h"
#include "tests/unit/worker/cpu/small_model.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define N_BLOCKS 6

static const int32_t prompt[] = {5, 17, 300, 44, 44, 9, 201, 33, 8, 120};
#define N_PROMPT ((uint32_t)(sizeof prompt / sizeof *prompt))

struct fixture {
    struct model *model;
    struct backend *backend;
    bool abandon;
    uint32_t layers_seen;
};

static bool progress(void *arg)
{
    struct fixture *f = arg;
    f->layers_seen++;
    return f->abandon;
}

static const struct backend_slot greedy = {.sampling = {.top_p = 1, .repetition_penalty = 1},
                                           .end_position = 100};

static void set_up(struct fixture *f, const char *type)
{
    *f = (struct fixture){.model = make_model(&small_shape, type)};
    struct backend_config config = {.model = f->model,
                                    .n_slots = 2,
                                    .n_context = 96,
                                    .n_blocks = N_BLOCKS,
                                    .max_rows = 64,
                                    .n_threads = 2,
                                    .progress = progress,
                                    .progress_arg = f};
    struct error err = {0};
    ck_assert_msg(backend_cpu.open(&config, &f->backend, &err) == 0, "%s", err.text);
}

static void tear_down(struct fixture *f)
{
    backend_cpu.close(f->backend);
    model_free(f->model);
}

static int run(struct fixture *f, const struct backend_row_set *sets, uint32_t n,
               const struct backend_result **ret_results)
{
    struct backend_step step = {sets, n};
    uint64_t ticket;
    int r = backend_cpu.submit(f->backend, &step, &ticket);
    return r < 0 ? r : backend_cpu.poll(f->backend, ticket, 0, ret_results, NULL);
}

/* Opens slot 0 with block 2 and feeds the prompt; the sampled ids. */
static const struct backend_result *feed_prompt(struct fixture *f, const struct backend_slot *params)
{
    static const uint32_t block = 2;
    const struct backend_result *results;
    ck_assert_int_eq(backend_cpu.slot_open(f->backend, 0, params), 0);
    struct backend_row_set set = {
        .ids = prompt, .n_ids = N_PROMPT, .blocks = &block, .n_blocks = 1, .output = BACKEND_SAMPLE_LAST};
    ck_assert_int_eq(run(f, &set, 1, &results), 0);
    return results;
}

static void logits_of(struct fixture *f, uint32_t slot, uint32_t position, int32_t id, float *logits)
{
    struct backend_row_set set = {.slot = slot,
                                  .position = position,
                                  .ids = &id,
                                  .n_ids = 1,
                                  .output = BACKEND_LOGITS_LAST,
                                  .logits = logits};
    const struct backend_result *results;
    ck_assert_int_eq(run(f, &set, 1, &results), 0);
    ck_assert_uint_eq(results[0].n_ids, 0);
}

static int32_t best_of(const float *logits, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        if (logits[i] > logits[best])
            best = i;
    return (int32_t)best;
}

START_TEST(the_backend_says_what_it_is)
{
    struct fixture f;
    struct backend_info info;
    set_up(&f, "F32");
    backend_cpu.info(f.backend, &info);
    ck_assert_ptr_nonnull(strstr(info.device, "cpu "));
    ck_assert_ptr_nonnull(strstr(info.device, "2 threads"));
    ck_assert_uint_eq(info.n_blocks, N_BLOCKS);
    ck_assert_uint_eq(info.block_bytes,
                      2 * 2 * 2 * 64 * 32 * 2); /* layers · K and V · heads · dim · tokens · f16 */
    ck_assert(info.synchronous);
    size_t matrices =
        2 * (256 * 256 * 2 + 128 * 256 * 2 + 3 * 512 * 256) + (405 + 3) * 256; /* head padded to 8 */
    ck_assert_uint_eq(info.weight_bytes, (matrices + 256) * 4);
    tear_down(&f);
}
END_TEST

START_TEST(a_greedy_sample_is_the_largest_logit_and_feeds_the_next_step)
{
    struct fixture f;
    set_up(&f, "Q8_0");
    int32_t first = feed_prompt(&f, &greedy)->ids[0];
    float logits[405], again[405];
    logits_of(&f, 0, N_PROMPT - 1, prompt[N_PROMPT - 1], logits);
    ck_assert_int_eq(first, best_of(logits, 405));

    /* FROM_SLOT feeds what was sampled: the same bytes as feeding it by hand. */
    struct backend_row_set next = {
        .position = N_PROMPT, .n_ids = 1, .output = BACKEND_LOGITS_LAST, .logits = logits};
    const struct backend_result *results;
    ck_assert_int_eq(run(&f, &next, 1, &results), 0);
    logits_of(&f, 0, N_PROMPT, first, again);
    ck_assert_mem_eq(logits, again, sizeof logits);
    tear_down(&f);
}
END_TEST

START_TEST(a_sequence_ends_at_its_stop_ids_and_its_length)
{
    struct fixture f;
    set_up(&f, "Q8_0");
    const struct backend_result *result = feed_prompt(&f, &greedy);
    ck_assert_int_eq(result->end, BACKEND_RUNNING);
    int32_t sampled = result->ids[0];
    backend_cpu.slot_close(f.backend, 0);

    int32_t stops[] = {1, sampled};
    struct backend_slot stopping = greedy;
    stopping.stop_ids = stops;
    stopping.n_stop_ids = 2;
    result = feed_prompt(&f, &stopping);
    ck_assert_int_eq(result->end, BACKEND_END_STOP);
    ck_assert_int_eq(result->ids[0], sampled);
    backend_cpu.slot_close(f.backend, 0);

    struct backend_slot ending = greedy;
    ending.end_position = N_PROMPT + 1;
    ck_assert_int_eq(feed_prompt(&f, &ending)->end, BACKEND_END_LENGTH);
    tear_down(&f);
}
END_TEST

START_TEST(log_probabilities_are_of_the_sampled_id_and_the_likeliest)
{
    struct fixture f;
    set_up(&f, "Q8_0");
    struct backend_slot params = greedy;
    params.n_logprobs = 3;
    const struct backend_result *result = feed_prompt(&f, &params);
    ck_assert_ptr_nonnull(result->logprobs);
    struct logprob got[3];
    memcpy(got, result->logprobs, sizeof got);
    int32_t sampled = result->ids[0];
    float logits[405];
    logits_of(&f, 0, N_PROMPT - 1, prompt[N_PROMPT - 1], logits);
    double total = 0;
    for (int i = 0; i < 405; i++)
        total += exp((double)logits[i]);
    ck_assert_int_eq(got[0].id, sampled);
    ck_assert_int_eq(got[1].id, sampled);
    for (int i = 0; i < 3; i++)
        ck_assert_double_eq_tol((double)got[i].logprob, (double)logits[got[i].id] - log(total), 1e-4);
    ck_assert(got[2].logprob <= got[1].logprob);
    tear_down(&f);
}
END_TEST

START_TEST(the_penalty_counts_history_and_output)
{
    struct fixture f;
    set_up(&f, "Q8_0");
    int32_t sampled = feed_prompt(&f, &greedy)->ids[0];
    backend_cpu.slot_close(f.backend, 0);
    /* An id of the history is never the first choice when its logit is divided by a million. */
    struct backend_slot params = greedy;
    params.sampling.repetition_penalty = 1e6f;
    params.history = &sampled;
    params.n_history = 1;
    int32_t other = feed_prompt(&f, &params)->ids[0];
    ck_assert_int_ne(other, sampled);
    for (uint32_t position = N_PROMPT; position < N_PROMPT + 5; position++) {
        struct backend_row_set next = {.position = position, .n_ids = 1, .output = BACKEND_SAMPLE_LAST};
        const struct backend_result *results;
        ck_assert_int_eq(run(&f, &next, 1, &results), 0);
        ck_assert_int_ne(results[0].ids[0], other);
        ck_assert_int_ne(results[0].ids[0], sampled);
    }
    tear_down(&f);
}
END_TEST

START_TEST(only_allowed_ids_are_sampled)
{
    struct fixture f;
    set_up(&f, "Q8_0");
    feed_prompt(&f, &greedy);
    uint32_t allowed[13] = {0};
    allowed[7] = 1u << 9; /* 233 alone */
    struct backend_row_set next = {
        .position = N_PROMPT, .n_ids = 1, .output = BACKEND_SAMPLE_LAST, .allowed = allowed};
    const struct backend_result *results;
    ck_assert_int_eq(run(&f, &next, 1, &results), 0);
    ck_assert_int_eq(results[0].ids[0], 233);
    tear_down(&f);
}
END_TEST

START_TEST(a_draft_is_sampled_at_every_row)
{
    struct fixture f;
    set_up(&f, "Q8_0");
    int32_t ids[5] = {feed_prompt(&f, &greedy)->ids[0]};
    const struct backend_result *results;
    for (uint32_t i = 1; i < 5; i++) {
        struct backend_row_set next = {
            .position = N_PROMPT + i - 1, .n_ids = 1, .output = BACKEND_SAMPLE_LAST};
        ck_assert_int_eq(run(&f, &next, 1, &results), 0);
        ids[i] = results[0].ids[0];
    }
    backend_cpu.slot_close(f.backend, 0);
    feed_prompt(&f, &greedy);
    /* Two drafted ids are right, the third is not. */
    int32_t draft[4] = {ids[0], ids[1], ids[2], (ids[3] + 1) % 300};
    struct backend_row_set set = {
        .position = N_PROMPT, .ids = draft, .n_ids = 4, .output = BACKEND_SAMPLE_ALL};
    ck_assert_int_eq(run(&f, &set, 1, &results), 0);
    ck_assert_uint_eq(results[0].n_ids, 4);
    ck_assert_mem_eq(results[0].ids, ids + 1, 3 * sizeof *ids);
    /* The slot goes on from the last id that agreed with the samples. */
    backend_cpu.trim(f.backend, 0, N_PROMPT + 3);
    struct backend_row_set next = {.position = N_PROMPT + 3, .n_ids = 1, .output = BACKEND_SAMPLE_LAST};
    ck_assert_int_eq(run(&f, &next, 1, &results), 0);
    ck_assert_int_eq(results[0].ids[0], ids[4]);
    tear_down(&f);
}
END_TEST

START_TEST(copied_blocks_continue_the_sequence_elsewhere)
{
    struct fixture f;
    struct backend_info info;
    set_up(&f, "Q4_K_M");
    backend_cpu.info(f.backend, &info);
    int32_t sampled = feed_prompt(&f, &greedy)->ids[0];
    float here[405], there[405];
    logits_of(&f, 0, N_PROMPT, sampled, here);

    uint8_t *copy = malloc(2 * info.block_bytes);
    const uint32_t from[] = {2, 0}, to[] = {4, 1};
    ck_assert_int_eq(backend_cpu.blocks_read(f.backend, from, 2, copy), 0);
    ck_assert_int_eq(backend_cpu.blocks_write(f.backend, to, 2, copy), 0);
    free(copy);
    ck_assert_int_eq(backend_cpu.blocks_read(f.backend, &(uint32_t){N_BLOCKS}, 1, NULL), -EINVAL);
    ck_assert_int_eq(backend_cpu.blocks_write(f.backend, &(uint32_t){N_BLOCKS}, 1, NULL), -EINVAL);

    ck_assert_int_eq(backend_cpu.slot_open(f.backend, 1, &greedy), 0);
    struct backend_row_set set = {.slot = 1,
                                  .position = N_PROMPT,
                                  .ids = &sampled,
                                  .n_ids = 1,
                                  .blocks = to,
                                  .n_blocks = 1,
                                  .output = BACKEND_LOGITS_LAST,
                                  .logits = there};
    const struct backend_result *results;
    ck_assert_int_eq(run(&f, &set, 1, &results), 0);
    ck_assert_mem_eq(here, there, sizeof here);
    tear_down(&f);
}
END_TEST

START_TEST(trimming_gives_blocks_back_and_keeps_what_is_before)
{
    struct fixture f;
    set_up(&f, "Q8_0");
    feed_prompt(&f, &greedy);
    float before[405], after[405];
    logits_of(&f, 0, N_PROMPT, 77, before);
    int32_t ids[40] = {1, 2, 3};
    const uint32_t block = 5;
    struct backend_row_set more = {
        .position = N_PROMPT, .ids = ids, .n_ids = 40, .blocks = &block, .n_blocks = 1};
    const struct backend_result *results;
    ck_assert_int_eq(run(&f, &more, 1, &results), 0);
    backend_cpu.trim(f.backend, 0, N_PROMPT);
    /* Positions beyond the first block are no longer there. */
    more.n_blocks = 0;
    ck_assert_int_eq(run(&f, &more, 1, &results), -EINVAL);
    logits_of(&f, 0, N_PROMPT, 77, after);
    ck_assert_mem_eq(before, after, sizeof before);
    tear_down(&f);
}
END_TEST

START_TEST(an_abandoned_step_leaves_its_sequences_as_they_were)
{
    struct fixture f;
    set_up(&f, "Q8_0");
    int32_t sampled = feed_prompt(&f, &greedy)->ids[0];
    ck_assert_uint_eq(f.layers_seen, 2);
    float before[405], after[405];
    logits_of(&f, 0, N_PROMPT, sampled, before);
    f.abandon = true;
    f.layers_seen = 0;
    int32_t ids[40] = {3, 2, 1};
    const uint32_t block = 5;
    struct backend_row_set more = {.position = N_PROMPT,
                                   .ids = ids,
                                   .n_ids = 40,
                                   .blocks = &block,
                                   .n_blocks = 1,
                                   .output = BACKEND_SAMPLE_LAST};
    const struct backend_result *results;
    ck_assert_int_eq(run(&f, &more, 1, &results), -ECANCELED);
    ck_assert_uint_eq(f.layers_seen, 1);
    f.abandon = false;
    more.n_blocks = 0; /* the block was not kept, so the rows do not fit */
    ck_assert_int_eq(run(&f, &more, 1, &results), -EINVAL);
    struct backend_row_set next = {
        .position = N_PROMPT, .n_ids = 1, .output = BACKEND_LOGITS_LAST, .logits = after};
    ck_assert_int_eq(run(&f, &next, 1, &results), 0);
    ck_assert_mem_eq(before, after, sizeof before);
    tear_down(&f);
}
END_TEST

/* A weight that is not finite, in a copy of the norm: everything after it is not a number. */
START_TEST(a_model_that_computes_no_number_is_a_fault_and_not_an_id)
{
    struct fixture f = {.model = make_model(&small_shape, "Q8_0")};
    struct gguf_tensor broken = *f.model->output_norm;
    float *values = malloc(broken.size);
    for (size_t i = 0; i < broken.size / sizeof *values; i++)
        values[i] = NAN;
    broken.data = values;
    f.model->output_norm = &broken;
    struct backend_config config = {.model = f.model,
                                    .n_slots = 1,
                                    .n_context = 64,
                                    .n_blocks = N_BLOCKS,
                                    .max_rows = 64,
                                    .n_threads = 1};
    ck_assert_int_eq(backend_cpu.open(&config, &f.backend, NULL), 0);
    const struct backend_result *result = feed_prompt(&f, &greedy);
    ck_assert_int_eq(result->end, BACKEND_END_FAULT);
    ck_assert_uint_eq(result->n_ids, 0);
    tear_down(&f);
    free(values);
}
END_TEST

START_TEST(a_step_that_breaks_the_contract_is_refused_whole)
{
    struct fixture f;
    set_up(&f, "Q8_0");
    feed_prompt(&f, &greedy);
    const uint32_t good = 3, beyond = N_BLOCKS;
    const int32_t unknown = 405, negative = -1, fine = 4;
    int32_t many[65] = {0};
    const struct backend_row_set bad[] = {
        {.slot = 1, .ids = &fine, .n_ids = 1, .blocks = &good, .n_blocks = 1}, /* not open */
        {.slot = 2, .ids = &fine, .n_ids = 1},                                 /* not there */
        {.slot = 0, .ids = &fine, .n_ids = 0},                                 /* no rows */
        {.slot = 0, .position = 32, .ids = &fine, .n_ids = 1},                 /* beyond its blocks */
        {.slot = 0, .position = UINT32_MAX, .ids = &fine, .n_ids = 1},         /* far beyond */
        {.slot = 0, .position = 32, .ids = &fine, .n_ids = 1, .blocks = &beyond, .n_blocks = 1},
        {.slot = 0, .position = 10, .ids = &unknown, .n_ids = 1},
        {.slot = 0, .position = 10, .ids = &negative, .n_ids = 1},
        {.slot = 0,
         .ids = many,
         .n_ids = 65,
         .blocks = (uint32_t[]){3, 4},
         .n_blocks = 2}, /* too many rows */
        {.slot = 0,
         .ids = many,
         .n_ids = 1,
         .blocks = (uint32_t[]){3, 4, 5},
         .n_blocks = 3}, /* beyond n_context */
    };
    const struct backend_result *results;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct backend_row_set sets[2] = {
            {.position = 12, .ids = &fine, .n_ids = 1, .blocks = &good, .n_blocks = 1}, bad[i]};
        ck_assert_msg(run(&f, &bad[i], 1, &results) == -EINVAL, "case %zu was taken", i);
        if (bad[i].slot == 0)
            continue;
        ck_assert_int_eq(run(&f, sets, 2, &results), -EINVAL);
    }
    ck_assert_int_eq(backend_cpu.slot_open(f.backend, 0, &greedy), -EINVAL);
    ck_assert_int_eq(backend_cpu.slot_open(f.backend, 2, &greedy), -EINVAL);
    tear_down(&f);
}
END_TEST

START_TEST(results_live_until_the_second_submit_after_theirs)
{
    struct fixture f;
    set_up(&f, "Q8_0");
    const struct backend_result *first = feed_prompt(&f, &greedy);
    int32_t sampled = first->ids[0];
    float logits[405];
    logits_of(&f, 0, N_PROMPT, 7, logits);
    ck_assert_int_eq(first->ids[0], sampled);
    const struct backend_result *results;
    ck_assert_int_eq(backend_cpu.poll(f.backend, 1, 0, &results, NULL), 0);
    logits_of(&f, 0, N_PROMPT, 8, logits);
    struct error err = {0};
    ck_assert_int_eq(backend_cpu.poll(f.backend, 1, 0, &results, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "gone"));
    tear_down(&f);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, the_backend_says_what_it_is);
    tcase_add_test(tests, a_greedy_sample_is_the_largest_logit_and_feeds_the_next_step);
    tcase_add_test(tests, a_sequence_ends_at_its_stop_ids_and_its_length);
    tcase_add_test(tests, log_probabilities_are_of_the_sampled_id_and_the_likeliest);
    tcase_add_test(tests, the_penalty_counts_history_and_output);
    tcase_add_test(tests, only_allowed_ids_are_sampled);
    tcase_add_test(tests, a_draft_is_sampled_at_every_row);
    tcase_add_test(tests, copied_blocks_continue_the_sequence_elsewhere);
    tcase_add_test(tests, trimming_gives_blocks_back_and_keeps_what_is_before);
    tcase_add_test(tests, an_abandoned_step_leaves_its_sequences_as_they_were);
    tcase_add_test(tests, a_model_that_computes_no_number_is_a_fault_and_not_an_id);
    tcase_add_test(tests, a_step_that_breaks_the_contract_is_refused_whole);
    tcase_add_test(tests, results_live_until_the_second_submit_after_theirs);
}

int main(void)
{
    return run_tests("cpu backend", add);
}
