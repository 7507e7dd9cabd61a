/* SPDX-License-Identifier: MIT */
/* The contract of worker/engine/backend.h, asked of a backend that computes a small model. */

#include "tests/unit/worker/backend_contract.h"
#include "tests/unit/worker/cpu/small_model.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static const struct backend_ops *ops;
static bool exact;

#define N_BLOCKS 6

static const int32_t prompt[] = {5, 17, 300, 44, 44, 9, 201, 33, 8, 120};
#define N_PROMPT ((uint32_t)(sizeof prompt / sizeof *prompt))

struct fixture {
    struct model *model;
    struct backend *backend;
    bool abandon;
    uint32_t seen;
};

static bool progress(void *arg)
{
    struct fixture *f = arg;
    f->seen++;
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
                                    .cpu = {.n_threads = 2},
                                    .progress = progress,
                                    .progress_arg = f};
    struct error err = {0};
    ck_assert_msg(ops->open(&config, &f->backend, &err) == 0, "%s", err.text);
    ck_assert_uint_ge(f->seen, 7 * small_shape.n_layers + 1); /* each matrix packed is progress */
    f->seen = 0;
}

static void tear_down(struct fixture *f)
{
    ops->close(f->backend);
    model_free(f->model);
}

static int wait_for(struct fixture *f, uint64_t ticket, const struct backend_result **ret_results)
{
    int r;
    do
        r = ops->poll(f->backend, ticket, 100, ret_results, NULL);
    while (r == -EAGAIN);
    return r;
}

static int run(struct fixture *f, const struct backend_row_set *sets, uint32_t n,
               const struct backend_result **ret_results)
{
    struct backend_step step = {sets, n};
    uint64_t ticket;
    int r = ops->submit(f->backend, &step, &ticket);
    return r < 0 ? r : wait_for(f, ticket, ret_results);
}

/* Opens slot 0 with block 2 and feeds the prompt; the sampled ids. */
static const struct backend_result *feed_prompt(struct fixture *f, const struct backend_slot *params)
{
    static const uint32_t block = 2;
    const struct backend_result *results;
    ck_assert_int_eq(ops->slot_open(f->backend, 0, params), 0);
    struct backend_row_set set = {
        .ids = prompt, .n_ids = N_PROMPT, .blocks = {{&block, 1, 0}}, .output = BACKEND_SAMPLE_LAST};
    ck_assert_int_eq(run(f, &set, 1, &results), 0);
    return results;
}

/* The logits after `id` at a position of slot 0, which then stands before it; its blocks are in `told`. */
static void logits_of(struct fixture *f, uint32_t position, int32_t id, float *logits)
{
    struct backend_row_set set = {.position = position,
                                  .ids = &id,
                                  .n_ids = 1,
                                  .blocks = {{.told = 1}},
                                  .output = BACKEND_LOGITS_LAST,
                                  .logits = logits};
    const struct backend_result *results;
    ops->trim(f->backend, 0, position);
    ck_assert_int_eq(run(f, &set, 1, &results), 0);
    ck_assert_uint_eq(results[0].n_ids, 0);
    ops->trim(f->backend, 0, position);
}

/* A decode: the id that slot 0 sampled last, in its first block. */
static struct backend_row_set next_at(uint32_t position, enum backend_output output)
{
    return (struct backend_row_set){
        .position = position, .n_ids = 1, .blocks = {{.told = 1}}, .output = output};
}

/* The same, and the same bits where the backend promises that. */
static void check_same_logits(const float *a, const float *b)
{
    if (exact)
        ck_assert_mem_eq(a, b, 405 * sizeof *a);
    for (int i = 0; i < 405; i++)
        ck_assert_float_eq_tol(a[i], b[i], 1e-3f);
}

static int32_t best_of(const float *logits, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        if (logits[i] > logits[best])
            best = i;
    return (int32_t)best;
}

START_TEST(a_greedy_sample_is_the_largest_logit_and_feeds_the_next_step)
{
    struct fixture f;
    set_up(&f, "Q8_0");
    int32_t first = feed_prompt(&f, &greedy)->ids[0];
    float logits[405], again[405];
    /* A set without ids feeds what was sampled: the same bytes as feeding it by hand. */
    struct backend_row_set next = next_at(N_PROMPT, BACKEND_LOGITS_LAST);
    const struct backend_result *results;
    next.logits = logits;
    ck_assert_int_eq(run(&f, &next, 1, &results), 0);
    logits_of(&f, N_PROMPT, first, again);
    check_same_logits(logits, again);
    logits_of(&f, N_PROMPT - 1, prompt[N_PROMPT - 1], logits);
    ck_assert_int_eq(first, best_of(logits, 405));
    tear_down(&f);
}
END_TEST

START_TEST(a_sampled_id_is_fed_once_or_replaced)
{
    struct fixture f;
    set_up(&f, "Q8_0");
    const struct backend_result *results;
    struct backend_row_set next = next_at(N_PROMPT, BACKEND_OUTPUT_NONE);
    feed_prompt(&f, &greedy);
    ck_assert_int_eq(run(&f, &next, 1, &results), 0);
    next.position++;
    ck_assert_int_eq(run(&f, &next, 1, &results), -EINVAL); /* it was fed */
    const int32_t forced[] = {7, 8};
    next.ids = forced;
    next.n_ids = 2;
    next.output = BACKEND_SAMPLE_LAST;
    ck_assert_int_eq(run(&f, &next, 1, &results), 0);
    next.position += 2;
    next.output = BACKEND_OUTPUT_NONE;
    ck_assert_int_eq(run(&f, &next, 1, &results), 0);
    next = next_at(next.position + 2, BACKEND_SAMPLE_LAST);
    ck_assert_int_eq(run(&f, &next, 1, &results), -EINVAL); /* others took its place */
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
    ops->slot_close(f.backend, 0);

    int32_t stops[] = {1, sampled};
    struct backend_slot stopping = greedy;
    stopping.stop_ids = stops;
    stopping.n_stop_ids = 2;
    result = feed_prompt(&f, &stopping);
    ck_assert_int_eq(result->end, BACKEND_END_STOP);
    ck_assert_int_eq(result->ids[0], sampled);
    ops->slot_close(f.backend, 0);

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
    logits_of(&f, N_PROMPT - 1, prompt[N_PROMPT - 1], logits);
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
    ops->slot_close(f.backend, 0);
    /* An id of the history is never the first choice when its logit is divided by a million. */
    struct backend_slot params = greedy;
    params.sampling.repetition_penalty = 1e6f;
    params.history = &sampled;
    params.n_history = 1;
    params.n_prompt = 1; /* the prompt counts as much as what was made before a recompute */
    ck_assert_int_ne(feed_prompt(&f, &params)->ids[0], sampled);
    ops->slot_close(f.backend, 0);
    params.n_prompt = 0;
    int32_t other = feed_prompt(&f, &params)->ids[0];
    ck_assert_int_ne(other, sampled);
    for (uint32_t position = N_PROMPT; position < N_PROMPT + 5; position++) {
        struct backend_row_set next = next_at(position, BACKEND_SAMPLE_LAST);
        const struct backend_result *results;
        ck_assert_int_eq(run(&f, &next, 1, &results), 0);
        ck_assert_int_ne(results[0].ids[0], other);
        ck_assert_int_ne(results[0].ids[0], sampled);
    }
    tear_down(&f);
}
END_TEST

START_TEST(presence_and_frequency_count_output_before_a_recompute_but_no_prompt)
{
    for (int which = 0; which < 2; which++) {
        struct fixture f;
        set_up(&f, "Q8_0");
        int32_t sampled = feed_prompt(&f, &greedy)->ids[0];
        ops->slot_close(f.backend, 0);
        struct backend_slot params = greedy;
        *(which ? &params.sampling.presence_penalty : &params.sampling.frequency_penalty) = 1e6;
        params.history = &sampled;
        params.n_history = 1;
        params.n_prompt = 1;
        ck_assert_int_eq(feed_prompt(&f, &params)->ids[0], sampled);
        ops->slot_close(f.backend, 0);
        params.n_prompt = 0;
        ck_assert_int_ne(feed_prompt(&f, &params)->ids[0], sampled);
        tear_down(&f);
    }
}
END_TEST

START_TEST(biases_are_the_slots_own)
{
    struct fixture f;
    set_up(&f, "Q8_0");
    struct logit_bias forced = {233, 1e6f};
    struct backend_slot params = greedy;
    params.sampling.logit_bias = (struct logit_bias_list){&forced, 1};
    ck_assert_int_eq(feed_prompt(&f, &params)->ids[0], 233);
    forced.id = 5;
    struct backend_row_set next = next_at(N_PROMPT, BACKEND_SAMPLE_LAST);
    const struct backend_result *results;
    ck_assert_int_eq(run(&f, &next, 1, &results), 0);
    ck_assert_int_eq(results[0].ids[0], 233);
    tear_down(&f);
}
END_TEST

/* Hot, so that many ids may come; each filter at its narrowest leaves the one that greedy takes. */
START_TEST(each_filter_of_a_slot_is_its_own)
{
    enum { SEEDS = 8 };
    const struct sampling hot = {.temperature = 50, .top_p = 1, .repetition_penalty = 1};
    struct sampling filters[4] = {hot, hot, hot, hot};
    filters[1].top_k = 1;
    filters[2].top_p = 0;
    filters[3].min_p = 1;
    struct fixture f;
    set_up(&f, "Q8_0");
    int32_t best = feed_prompt(&f, &greedy)->ids[0];
    ops->slot_close(f.backend, 0);
    for (int i = 0; i < 4; i++) {
        unsigned others = 0;
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            struct backend_slot params = greedy;
            params.sampling = filters[i];
            params.sampling.seed = seed;
            others += feed_prompt(&f, &params)->ids[0] != best;
            ops->slot_close(f.backend, 0);
        }
        ck_assert_msg((others > 0) == (i == 0), "filter %d: %u of %d are others", i, others, SEEDS);
    }
    tear_down(&f);
}
END_TEST

START_TEST(a_seed_repeats_an_id_and_others_give_others)
{
    enum { SEEDS = 8 };
    struct fixture f;
    int32_t ids[2][SEEDS];
    unsigned others = 0;
    set_up(&f, "Q8_0");
    for (int round = 0; round < 2; round++)
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            struct backend_slot params = greedy;
            params.sampling.temperature = 50;
            params.sampling.seed = seed;
            ids[round][seed] = feed_prompt(&f, &params)->ids[0];
            others += ids[round][seed] != ids[0][0];
            ops->slot_close(f.backend, 0);
        }
    ck_assert_mem_eq(ids[0], ids[1], sizeof ids[0]);
    ck_assert_uint_gt(others, 0);
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
    struct backend_row_set next = next_at(N_PROMPT, BACKEND_SAMPLE_LAST);
    next.allowed = allowed;
    const struct backend_result *results;
    ck_assert_int_eq(run(&f, &next, 1, &results), 0);
    ck_assert_int_eq(results[0].ids[0], 233);
    tear_down(&f);
}
END_TEST

/* A mask that is made while the step runs: asked for before it is read, perhaps more than once. */
struct late_mask {
    uint32_t bits[13];
    uint32_t id;
};

static void make_late(void *arg)
{
    struct late_mask *mask = arg;
    mask->bits[mask->id / 32] = 1u << mask->id % 32;
}

START_TEST(a_mask_may_come_while_the_step_runs)
{
    struct fixture f;
    set_up(&f, "Q8_0");
    feed_prompt(&f, &greedy);
    for (uint32_t i = 0; i < 4; i++) {
        struct late_mask mask = {.id = 100 + 77 * i};
        struct backend_row_set next = next_at(N_PROMPT + i, BACKEND_SAMPLE_LAST);
        next.allowed = mask.bits;
        next.await = make_late;
        next.await_arg = &mask;
        const struct backend_result *results;
        ck_assert_int_eq(run(&f, &next, 1, &results), 0);
        ck_assert_int_eq(results[0].ids[0], (int32_t)mask.id);
    }
    tear_down(&f);
}
END_TEST

/* Samples `n` ids one by one after the prompt. */
static void decode(struct fixture *f, const struct backend_slot *params, int32_t *ids, uint32_t n)
{
    ids[0] = feed_prompt(f, params)->ids[0];
    for (uint32_t i = 1; i < n; i++) {
        struct backend_row_set next = next_at(N_PROMPT + i - 1, BACKEND_SAMPLE_LAST);
        const struct backend_result *results;
        ck_assert_int_eq(run(f, &next, 1, &results), 0);
        ids[i] = results[0].ids[0];
    }
    ops->slot_close(f->backend, 0);
}

static struct backend_row_set draft_of(const int32_t *ids, uint32_t n)
{
    return (struct backend_row_set){
        .position = N_PROMPT, .ids = ids, .n_ids = n, .blocks = {{.told = 1}}, .output = BACKEND_SAMPLE_ALL};
}

START_TEST(a_draft_gives_what_agreed_of_it_and_the_id_after)
{
    struct fixture f;
    set_up(&f, "Q8_0");
    struct backend_slot params = greedy;
    params.sampling.repetition_penalty = 1.3f; /* what was accepted counts, what was not does not */
    params.n_logprobs = 1;
    int32_t ids[8];
    decode(&f, &params, ids, 8);
    for (uint32_t right = 0; right <= 3; right++) { /* drafted ids that agree, of three */
        feed_prompt(&f, &params);
        int32_t draft[4] = {ids[0], ids[1], ids[2], ids[3]};
        if (right < 3)
            draft[right + 1] = (draft[right + 1] + 1) % 300;
        struct backend_row_set set = draft_of(draft, 4);
        const struct backend_result *results;
        ck_assert_int_eq(run(&f, &set, 1, &results), 0);
        ck_assert_uint_eq(results[0].n_accepted, right);
        ck_assert_uint_eq(results[0].n_ids, right + 1);
        ck_assert_mem_eq(results[0].ids, ids + 1, (right + 1) * sizeof *ids);
        ck_assert_int_eq(results[0].logprobs[right].id, ids[right + 1]);
        for (uint32_t i = right + 2; i < 8; i++) { /* the slot goes on from there */
            struct backend_row_set next = next_at(N_PROMPT + i - 1, BACKEND_SAMPLE_LAST);
            ck_assert_int_eq(run(&f, &next, 1, &results), 0);
            ck_assert_int_eq(results[0].ids[0], ids[i]);
        }
        ops->slot_close(f.backend, 0);
    }
    tear_down(&f);
}
END_TEST

START_TEST(a_draft_ends_where_the_sequence_ends)
{
    struct fixture f;
    set_up(&f, "Q8_0");
    int32_t ids[5];
    const struct backend_result *results;
    decode(&f, &greedy, ids, 5);
    struct backend_slot params = greedy;
    params.end_position = N_PROMPT + 3;
    feed_prompt(&f, &params);
    struct backend_row_set set = draft_of(ids, 4);
    ck_assert_int_eq(run(&f, &set, 1, &results), 0);
    ck_assert_uint_eq(results[0].n_ids, 2);
    ck_assert_int_eq(results[0].end, BACKEND_END_LENGTH);
    ops->slot_close(f.backend, 0);

    params = greedy;
    params.stop_ids = &ids[1];
    params.n_stop_ids = ids[1] != ids[0];
    ck_assert_uint_eq(params.n_stop_ids, 1);
    feed_prompt(&f, &params);
    ck_assert_int_eq(run(&f, &set, 1, &results), 0);
    ck_assert_uint_eq(results[0].n_ids, 1);
    ck_assert_int_eq(results[0].end, BACKEND_END_STOP);
    /* Whatever was on its way then is surplus. */
    struct backend_row_set surplus = next_at(N_PROMPT + 1, BACKEND_SAMPLE_LAST);
    ck_assert_int_eq(run(&f, &surplus, 1, &results), 0);
    ck_assert_uint_eq(results[0].n_ids, 0);
    ck_assert_int_eq(results[0].end, BACKEND_END_STOP);
    ops->trim(f.backend, 0, N_PROMPT); /* its end is forgotten */
    ck_assert_int_eq(run(&f, &set, 1, &results), 0);
    ck_assert_uint_eq(results[0].n_ids, 1);
    tear_down(&f);
}
END_TEST

START_TEST(each_row_of_a_draft_has_its_mask)
{
    struct fixture f;
    set_up(&f, "Q8_0");
    int32_t first = feed_prompt(&f, &greedy)->ids[0];
    uint32_t allowed[3][13] = {{0}};
    const int32_t forced[3] = {233, 12, 300};
    for (int i = 0; i < 3; i++)
        allowed[i][forced[i] / 32] = 1u << (forced[i] % 32);
    const int32_t draft[3] = {first, 233, 12};
    struct backend_row_set set = draft_of(draft, 3);
    const struct backend_result *results;
    set.allowed = allowed[0];
    ck_assert_int_eq(run(&f, &set, 1, &results), 0);
    ck_assert_uint_eq(results[0].n_ids, 3);
    ck_assert_mem_eq(results[0].ids, forced, sizeof forced);
    tear_down(&f);
}
END_TEST

#define LONG 40

/* Feeds LONG ids to slot 0 in blocks 2 and 0, and gives the logits after them. */
static void feed_long(struct fixture *f, int32_t ids[LONG], float *logits)
{
    static const uint32_t blocks[] = {2, 0};
    for (int32_t i = 0; i < LONG; i++)
        ids[i] = (7 + i * 31) % 400;
    const struct backend_row_set set = {.ids = ids,
                                        .n_ids = LONG,
                                        .blocks = {{blocks, 2, 0}},
                                        .output = BACKEND_LOGITS_LAST,
                                        .logits = logits};
    const struct backend_result *results;
    ck_assert_int_eq(ops->slot_open(f->backend, 0, &greedy), 0);
    ck_assert_int_eq(run(f, &set, 1, &results), 0);
}

/* Slot 1 begins behind a full block: the logits after the same ids. */
static void continue_behind(struct fixture *f, uint32_t block, const int32_t ids[LONG], float *logits)
{
    const uint32_t blocks[] = {block, 3};
    struct backend_slot params = greedy;
    params.position = 32;
    const struct backend_row_set set = {.slot = 1,
                                        .position = 32,
                                        .ids = ids + 32,
                                        .n_ids = LONG - 32,
                                        .blocks = {{blocks, 2, 0}},
                                        .output = BACKEND_LOGITS_LAST,
                                        .logits = logits};
    const struct backend_result *results;
    ck_assert_int_eq(ops->slot_open(f->backend, 1, &params), 0);
    ck_assert_int_eq(run(f, &set, 1, &results), 0);
    ops->slot_close(f->backend, 1);
}

START_TEST(a_block_that_is_full_already_is_attached_or_copied)
{
    struct fixture f;
    struct backend_info info;
    int32_t ids[LONG];
    float here[405], there[405];
    set_up(&f, "Q4_K_M");
    feed_long(&f, ids, here);
    continue_behind(&f, 2, ids, there);
    check_same_logits(here, there);

    ops->info(f.backend, &info);
    uint8_t *host = malloc(2 * info.groups[0].block_bytes);
    const struct backend_copy out = {.blocks = (uint32_t[]){0, 2}, .n = 2, .host = host};
    const struct backend_copy in = {.blocks = (uint32_t[]){1, 4}, .n = 2, .host = host};
    const struct backend_copy beyond = {.blocks = (uint32_t[]){N_BLOCKS}, .n = 1, .host = host};
    const struct backend_result *results;
    uint64_t first, second;
    ck_assert_int_eq(ops->copy_out(f.backend, &out, &first), 0);
    ck_assert_int_eq(wait_for(&f, first, &results), 0);
    ck_assert_int_eq(ops->copy_in(f.backend, &in, &second), 0);
    ck_assert_int_eq(wait_for(&f, second, &results), 0);
    ck_assert_int_eq(ops->copy_out(f.backend, &beyond, &first), -EINVAL);
    ck_assert_int_eq(ops->copy_in(f.backend, &beyond, &first), -EINVAL);
    free(host);
    memset(there, 0, sizeof there);
    continue_behind(&f, 4, ids, there);
    check_same_logits(here, there);
    tear_down(&f);
}
END_TEST

START_TEST(trimming_gives_blocks_back_and_keeps_what_is_before)
{
    struct fixture f;
    set_up(&f, "Q8_0");
    feed_prompt(&f, &greedy);
    float before[405], after[405];
    logits_of(&f, N_PROMPT, 77, before);
    int32_t ids[40] = {1, 2, 3};
    const uint32_t block = 5;
    struct backend_row_set more = {.position = N_PROMPT, .ids = ids, .n_ids = 40, .blocks = {{&block, 1, 1}}};
    const struct backend_result *results;
    ck_assert_int_eq(run(&f, &more, 1, &results), 0);
    ops->trim(f.backend, 0, N_PROMPT);
    ops->trim(f.backend, 0, N_PROMPT + 9); /* not there: nothing to cut */
    /* Positions beyond the first block are no longer there. */
    more.blocks[0].n = 0;
    ck_assert_int_eq(run(&f, &more, 1, &results), -EINVAL);
    more.n_ids = 1;
    ck_assert_int_eq(run(&f, &more, 1, &results), 0);
    logits_of(&f, N_PROMPT, 77, after);
    check_same_logits(before, after);
    tear_down(&f);
}
END_TEST

START_TEST(an_abandoned_step_spoils_its_slots_and_nothing_else)
{
    struct fixture f;
    int32_t ids[LONG];
    float before[405], after[405];
    set_up(&f, "Q8_0");
    feed_long(&f, ids, before);
    ck_assert_int_eq(ops->slot_open(f.backend, 1, &greedy), 0); /* not in the step */
    f.abandon = true;
    const struct backend_row_set more = {
        .position = LONG, .ids = ids, .n_ids = 20, .blocks = {{.told = 2}}, .output = BACKEND_SAMPLE_LAST};
    const struct backend_result *results;
    /* A device may be done before anybody waits for it, and then nobody is asked. */
    int r;
    while ((r = run(&f, &more, 1, &results)) == 0)
        ops->trim(f.backend, 0, LONG);
    ck_assert_int_eq(r, -ECANCELED);
    f.abandon = false;
    ck_assert_int_eq(run(&f, &more, 1, &results), -EINVAL);
    ops->trim(f.backend, 0, 32);
    ck_assert_int_eq(run(&f, &more, 1, &results), -EINVAL); /* good for closing only */
    const struct backend_row_set other = {
        .slot = 1, .ids = ids, .n_ids = 20, .blocks = {{(uint32_t[]){5}, 1, 0}}};
    ck_assert_int_eq(run(&f, &other, 1, &results), 0);
    ops->slot_close(f.backend, 0);
    ops->slot_close(f.backend, 1);
    continue_behind(&f, 2, ids, after); /* what it had computed before is whole */
    check_same_logits(before, after);
    tear_down(&f);
}
END_TEST

/* A weight that is not finite, in a copy of the norm: everything after it is not a number. */
START_TEST(a_model_that_computes_no_number_is_a_fault_and_not_an_id)
{
    struct fixture f = {.model = make_model(&small_shape, "Q8_0")};
    struct gguf_tensor broken = *f.model->tensors[TENSOR_OUTPUT_NORM].weight;
    float *values = malloc(broken.size);
    for (size_t i = 0; i < broken.size / sizeof *values; i++)
        values[i] = NAN;
    broken.data = values;
    f.model->tensors[TENSOR_OUTPUT_NORM].weight = &broken;
    struct backend_config config = {.model = f.model,
                                    .n_slots = 1,
                                    .n_context = 64,
                                    .n_blocks = N_BLOCKS,
                                    .max_rows = 64,
                                    .cpu = {.n_threads = 1}};
    ck_assert_int_eq(ops->open(&config, &f.backend, NULL), 0);
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
        {.slot = 1, .ids = &fine, .n_ids = 1, .blocks = {{&good, 1, 0}}}, /* not open */
        {.slot = 2, .ids = &fine, .n_ids = 1},                            /* not there */
        {.position = 10, .ids = &fine, .n_ids = 0, .blocks = {{.told = 1}}},
        {.position = 9, .ids = &fine, .n_ids = 1, .blocks = {{.told = 1}}},  /* not where it stands */
        {.position = 11, .ids = &fine, .n_ids = 1, .blocks = {{.told = 1}}}, /* the same */
        {.position = 9, .n_ids = 1, .blocks = {{.told = 1}}},                /* the same */
        {.position = 10, .n_ids = 2, .blocks = {{.told = 1}}},               /* one id is known */
        {.position = 32, .n_ids = 1, .blocks = {{.told = 1}}},               /* beyond its blocks */
        {.position = UINT32_MAX, .n_ids = 1, .blocks = {{.told = 1}}},       /* far beyond */
        {.position = 10, .ids = &fine, .n_ids = 1, .blocks = {{&beyond, 1, 1}}},
        {.position = 10, .ids = &fine, .n_ids = 1, .blocks = {{&good, 1, 0}}}, /* it was told of one */
        {.position = 10, .ids = &unknown, .n_ids = 1, .blocks = {{.told = 1}}},
        {.position = 10, .ids = &negative, .n_ids = 1, .blocks = {{.told = 1}}},
        {.position = 10, .ids = &fine, .n_ids = 1, .blocks = {{.told = 1}}, .output = BACKEND_LOGITS_LAST},
        {.position = 10,
         .ids = many,
         .n_ids = 65,
         .blocks = {{(uint32_t[]){3, 4}, 2, 1}}}, /* too many rows */
        {.position = 10, .ids = many, .n_ids = 1, .blocks = {{(uint32_t[]){3, 4, 5}, 3, 1}}}, /* n_context */
    };
    const struct backend_result *results;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_msg(run(&f, &bad[i], 1, &results) == -EINVAL, "case %zu was taken", i);
    }
    const struct backend_row_set twice[2] = {
        {.position = 10, .ids = &fine, .n_ids = 1, .blocks = {{.told = 1}}},
        {.position = 10, .ids = &fine, .n_ids = 1, .blocks = {{.told = 1}}}};
    ck_assert_int_eq(run(&f, twice, 2, &results), -EINVAL);
    ck_assert_int_eq(run(&f, twice, 0, &results), -EINVAL);
    ck_assert_int_eq(run(&f, twice, 1, &results), 0); /* nothing of all that was done */
    ck_assert_int_eq(ops->slot_open(f.backend, 0, &greedy), -EINVAL);
    ck_assert_int_eq(ops->slot_open(f.backend, 2, &greedy), -EINVAL);
    struct backend_slot odd = greedy;
    odd.position = 31;
    ck_assert_int_eq(ops->slot_open(f.backend, 1, &odd), -EINVAL);
    tear_down(&f);
}
END_TEST

START_TEST(a_ticket_is_read_once_and_before_the_next_step)
{
    struct fixture f;
    set_up(&f, "Q8_0");
    feed_prompt(&f, &greedy);
    const struct backend_result *results;
    struct error err = {0};
    ck_assert_int_eq(ops->poll(f.backend, 1, 0, &results, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "ticket 1"));
    struct backend_row_set next = next_at(N_PROMPT, BACKEND_SAMPLE_LAST);
    const struct backend_step step = {&next, 1};
    uint64_t ticket;
    ck_assert_int_eq(ops->submit(f.backend, &step, &ticket), 0);
    ck_assert_int_eq(ops->poll(f.backend, ticket + 1, 0, &results, &err), -EINVAL);
    ck_assert_int_eq(wait_for(&f, ticket, &results), 0);
    ck_assert_int_eq(ops->poll(f.backend, ticket, 0, &results, &err), -EINVAL);
    tear_down(&f);
}
END_TEST

void backend_contract_add(TCase *tests, const struct backend_ops *of, bool same_bits)
{
    ops = of;
    exact = same_bits;
    tcase_add_test(tests, a_greedy_sample_is_the_largest_logit_and_feeds_the_next_step);
    tcase_add_test(tests, a_sampled_id_is_fed_once_or_replaced);
    tcase_add_test(tests, a_sequence_ends_at_its_stop_ids_and_its_length);
    tcase_add_test(tests, log_probabilities_are_of_the_sampled_id_and_the_likeliest);
    tcase_add_test(tests, the_penalty_counts_history_and_output);
    tcase_add_test(tests, presence_and_frequency_count_output_before_a_recompute_but_no_prompt);
    tcase_add_test(tests, biases_are_the_slots_own);
    tcase_add_test(tests, each_filter_of_a_slot_is_its_own);
    tcase_add_test(tests, a_seed_repeats_an_id_and_others_give_others);
    tcase_add_test(tests, only_allowed_ids_are_sampled);
    tcase_add_test(tests, a_mask_may_come_while_the_step_runs);
    tcase_add_test(tests, a_draft_gives_what_agreed_of_it_and_the_id_after);
    tcase_add_test(tests, a_draft_ends_where_the_sequence_ends);
    tcase_add_test(tests, each_row_of_a_draft_has_its_mask);
    tcase_add_test(tests, a_block_that_is_full_already_is_attached_or_copied);
    tcase_add_test(tests, trimming_gives_blocks_back_and_keeps_what_is_before);
    tcase_add_test(tests, an_abandoned_step_spoils_its_slots_and_nothing_else);
    tcase_add_test(tests, a_model_that_computes_no_number_is_a_fault_and_not_an_id);
    tcase_add_test(tests, a_step_that_breaks_the_contract_is_refused_whole);
    tcase_add_test(tests, a_ticket_is_read_once_and_before_the_next_step);
}
