/* SPDX-License-Identifier: MIT */
/* The contract of engine/backend/backend.h, the part about ids: what is sampled from logits, under penalties,
 * biases, masks and drafts. */

#include "tests/unit/engine/backend/backend_contract_fixture.h"

#include <errno.h>
#include <math.h>
#include <string.h>

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
    contract_set_up(&f, "Q8_0");
    int32_t first = contract_feed_prompt(&f, &greedy)->ids[0];
    float logits[405], again[405];
    /* A set without ids feeds what was sampled: the same bytes as feeding it by hand. */
    struct backend_row_set next = next_at(N_PROMPT, BACKEND_LOGITS_LAST);
    const struct backend_result *results;
    next.logits = logits;
    ck_assert_int_eq(contract_run(&f, &next, 1, &results), 0);
    contract_logits_of(&f, N_PROMPT, first, again);
    contract_check_same_logits(logits, again);
    contract_logits_of(&f, N_PROMPT - 1, prompt[N_PROMPT - 1], logits);
    ck_assert_int_eq(first, best_of(logits, 405));
    contract_tear_down(&f);
}
END_TEST

START_TEST(log_probabilities_are_of_the_sampled_id_and_the_likeliest)
{
    struct fixture f;
    contract_set_up(&f, "Q8_0");
    struct backend_slot params = greedy;
    params.n_logprobs = 3;
    const struct backend_result *result = contract_feed_prompt(&f, &params);
    ck_assert_ptr_nonnull(result->logprobs);
    struct logprob got[3];
    memcpy(got, result->logprobs, sizeof got);
    int32_t sampled = result->ids[0];
    float logits[405];
    contract_logits_of(&f, N_PROMPT - 1, prompt[N_PROMPT - 1], logits);
    double total = 0;
    for (int i = 0; i < 405; i++)
        total += exp((double)logits[i]);
    ck_assert_int_eq(got[0].id, sampled);
    ck_assert_int_eq(got[1].id, sampled);
    for (int i = 0; i < 3; i++)
        ck_assert_double_eq_tol((double)got[i].logprob, (double)logits[got[i].id] - log(total), 1e-4);
    ck_assert(got[2].logprob <= got[1].logprob);
    contract_tear_down(&f);
}
END_TEST

START_TEST(the_penalty_counts_history_and_output)
{
    struct fixture f;
    contract_set_up(&f, "Q8_0");
    int32_t sampled = contract_feed_prompt(&f, &greedy)->ids[0];
    contract_ops->slot_close(f.backend, 0);
    /* An id of the history is never the first choice when its logit is divided by a million. */
    struct backend_slot params = greedy;
    params.sampling.repetition_penalty = 1e6f;
    params.history = &sampled;
    params.n_history = 1;
    params.n_prompt = 1; /* the prompt counts as much as what was made before a recompute */
    ck_assert_int_ne(contract_feed_prompt(&f, &params)->ids[0], sampled);
    contract_ops->slot_close(f.backend, 0);
    params.n_prompt = 0;
    int32_t other = contract_feed_prompt(&f, &params)->ids[0];
    ck_assert_int_ne(other, sampled);
    for (uint32_t position = N_PROMPT; position < N_PROMPT + 5; position++) {
        struct backend_row_set next = next_at(position, BACKEND_SAMPLE_LAST);
        const struct backend_result *results;
        ck_assert_int_eq(contract_run(&f, &next, 1, &results), 0);
        ck_assert_int_ne(results[0].ids[0], other);
        ck_assert_int_ne(results[0].ids[0], sampled);
    }
    contract_tear_down(&f);
}
END_TEST

START_TEST(presence_and_frequency_count_output_before_a_recompute_but_no_prompt)
{
    for (int which = 0; which < 2; which++) {
        struct fixture f;
        contract_set_up(&f, "Q8_0");
        int32_t sampled = contract_feed_prompt(&f, &greedy)->ids[0];
        contract_ops->slot_close(f.backend, 0);
        struct backend_slot params = greedy;
        *(which ? &params.sampling.presence_penalty : &params.sampling.frequency_penalty) = 1e6;
        params.history = &sampled;
        params.n_history = 1;
        params.n_prompt = 1;
        ck_assert_int_eq(contract_feed_prompt(&f, &params)->ids[0], sampled);
        contract_ops->slot_close(f.backend, 0);
        params.n_prompt = 0;
        ck_assert_int_ne(contract_feed_prompt(&f, &params)->ids[0], sampled);
        contract_tear_down(&f);
    }
}
END_TEST

START_TEST(biases_are_the_slots_own)
{
    struct fixture f;
    contract_set_up(&f, "Q8_0");
    struct logit_bias forced = {233, 1e6f};
    struct backend_slot params = greedy;
    params.sampling.logit_bias = (struct logit_bias_list){&forced, 1};
    ck_assert_int_eq(contract_feed_prompt(&f, &params)->ids[0], 233);
    forced.id = 5;
    struct backend_row_set next = next_at(N_PROMPT, BACKEND_SAMPLE_LAST);
    const struct backend_result *results;
    ck_assert_int_eq(contract_run(&f, &next, 1, &results), 0);
    ck_assert_int_eq(results[0].ids[0], 233);
    contract_tear_down(&f);
}
END_TEST

/* Hot, so that many ids may come; each filter at its narrowest leaves the one that greedy takes. */
START_TEST(each_filter_of_a_slot_is_its_own)
{
    enum { SEEDS = 8 };
    const struct sampling hot = {.temperature = 50, SAMPLING_OFF};
    struct sampling filters[6] = {hot, hot, hot, hot, hot, hot};
    filters[1].top_k = 1;
    filters[2].top_p = 0;
    filters[3].min_p = 1;
    filters[4].top_n_sigma = 1e-6;
    filters[5].dynatemp_range = 100;
    filters[5].dynatemp_exponent = 100; /* as good as 0 unless the entropy is the highest */
    filters[5].temperature = 0.001;
    struct fixture f;
    contract_set_up(&f, "Q8_0");
    int32_t best = contract_feed_prompt(&f, &greedy)->ids[0];
    contract_ops->slot_close(f.backend, 0);
    for (int i = 0; i < 6; i++) {
        unsigned others = 0;
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            struct backend_slot params = greedy;
            params.sampling = filters[i];
            params.sampling.seed = seed;
            others += contract_feed_prompt(&f, &params)->ids[0] != best;
            contract_ops->slot_close(f.backend, 0);
        }
        ck_assert_msg((others > 0) == (i == 0), "filter %d: %u of %d are others", i, others, SEEDS);
    }
    contract_tear_down(&f);
}
END_TEST

START_TEST(a_seed_repeats_an_id_and_others_give_others)
{
    enum { SEEDS = 8 };
    struct fixture f;
    int32_t ids[2][SEEDS];
    unsigned others = 0;
    contract_set_up(&f, "Q8_0");
    for (int round = 0; round < 2; round++)
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            struct backend_slot params = greedy;
            params.sampling.temperature = 50;
            params.sampling.seed = seed;
            ids[round][seed] = contract_feed_prompt(&f, &params)->ids[0];
            others += ids[round][seed] != ids[0][0];
            contract_ops->slot_close(f.backend, 0);
        }
    ck_assert_mem_eq(ids[0], ids[1], sizeof ids[0]);
    ck_assert_uint_gt(others, 0);
    contract_tear_down(&f);
}
END_TEST

START_TEST(only_allowed_ids_are_sampled)
{
    struct fixture f;
    contract_set_up(&f, "Q8_0");
    contract_feed_prompt(&f, &greedy);
    uint32_t allowed[13] = {0};
    allowed[7] = 1u << 9; /* 233 alone */
    struct backend_row_set next = next_at(N_PROMPT, BACKEND_SAMPLE_LAST);
    next.allowed = allowed;
    const struct backend_result *results;
    ck_assert_int_eq(contract_run(&f, &next, 1, &results), 0);
    ck_assert_int_eq(results[0].ids[0], 233);
    contract_tear_down(&f);
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
    contract_set_up(&f, "Q8_0");
    contract_feed_prompt(&f, &greedy);
    for (uint32_t i = 0; i < 4; i++) {
        struct late_mask mask = {.id = 100 + 77 * i};
        struct backend_row_set next = next_at(N_PROMPT + i, BACKEND_SAMPLE_LAST);
        next.allowed = mask.bits;
        next.await = make_late;
        next.await_arg = &mask;
        const struct backend_result *results;
        ck_assert_int_eq(contract_run(&f, &next, 1, &results), 0);
        ck_assert_int_eq(results[0].ids[0], (int32_t)mask.id);
    }
    contract_tear_down(&f);
}
END_TEST

/* Samples `n` ids one by one after the prompt. */
static void decode(struct fixture *f, const struct backend_slot *params, int32_t *ids, uint32_t n)
{
    ids[0] = contract_feed_prompt(f, params)->ids[0];
    for (uint32_t i = 1; i < n; i++) {
        struct backend_row_set next = next_at(N_PROMPT + i - 1, BACKEND_SAMPLE_LAST);
        const struct backend_result *results;
        ck_assert_int_eq(contract_run(f, &next, 1, &results), 0);
        ids[i] = results[0].ids[0];
    }
    contract_ops->slot_close(f->backend, 0);
}

static struct backend_row_set draft_of(const int32_t *ids, uint32_t n)
{
    return (struct backend_row_set){
        .position = N_PROMPT, .ids = ids, .n_ids = n, .blocks = {{.told = 1}}, .output = BACKEND_SAMPLE_ALL};
}

START_TEST(a_draft_gives_what_agreed_of_it_and_the_id_after)
{
    struct fixture f;
    contract_set_up(&f, "Q8_0");
    struct backend_slot params = greedy;
    params.sampling.repetition_penalty = 1.3f; /* what was accepted counts, what was not does not */
    params.n_logprobs = 1;
    int32_t ids[8];
    decode(&f, &params, ids, 8);
    for (uint32_t right = 0; right <= 3; right++) { /* drafted ids that agree, of three */
        contract_feed_prompt(&f, &params);
        int32_t draft[4] = {ids[0], ids[1], ids[2], ids[3]};
        if (right < 3)
            draft[right + 1] = (draft[right + 1] + 1) % 300;
        struct backend_row_set set = draft_of(draft, 4);
        const struct backend_result *results;
        ck_assert_int_eq(contract_run(&f, &set, 1, &results), 0);
        ck_assert_uint_eq(results[0].n_accepted, right);
        ck_assert_uint_eq(results[0].n_ids, right + 1);
        ck_assert_mem_eq(results[0].ids, ids + 1, (right + 1) * sizeof *ids);
        ck_assert_int_eq(results[0].logprobs[right].id, ids[right + 1]);
        for (uint32_t i = right + 2; i < 8; i++) { /* the slot goes on from there */
            struct backend_row_set next = next_at(N_PROMPT + i - 1, BACKEND_SAMPLE_LAST);
            ck_assert_int_eq(contract_run(&f, &next, 1, &results), 0);
            ck_assert_int_eq(results[0].ids[0], ids[i]);
        }
        contract_ops->slot_close(f.backend, 0);
    }
    contract_tear_down(&f);
}
END_TEST

/* The ids that greedy decoding makes are made stop ids: they end it where they may come, and no earlier. */
START_TEST(a_stop_id_is_not_sampled_before_its_time)
{
    struct fixture f;
    contract_set_up(&f, "Q8_0");
    int32_t plain[6], ids[6];
    decode(&f, &greedy, plain, 6);
    struct backend_slot params = greedy;
    const int32_t stops[] = {plain[0], plain[2], plain[0]}; /* one of them is said twice */
    params.stop_ids = stops;
    params.n_stop_ids = 3;
    for (uint32_t least = 1; least <= 3; least++) {
        params.stops_from = N_PROMPT + least;
        decode(&f, &params, ids, least);
        for (uint32_t i = 0; i < least; i++)
            ck_assert(ids[i] != plain[0] && ids[i] != plain[2]);
    }
    params.stops_from = N_PROMPT; /* where its time has come, it ends the sequence */
    const struct backend_result *result = contract_feed_prompt(&f, &params);
    ck_assert_int_eq(result->ids[0], plain[0]);
    ck_assert_int_eq(result->end, BACKEND_END_STOP);
    contract_ops->slot_close(f.backend, 0);
    contract_tear_down(&f);
}
END_TEST

/* The ids that greedy decoding makes are used: each row says what must not come, and what comes else. */
START_TEST(ids_in_their_order_bear_on_what_is_sampled)
{
    struct fixture f;
    contract_set_up(&f, "Q8_0");
    int32_t plain[6], ids[6], history[N_PROMPT + 4];
    decode(&f, &greedy, plain, 6);
    struct backend_slot params = greedy;
    memcpy(history, prompt, N_PROMPT * sizeof *history);
    params.history = history;
    params.n_history = params.n_prompt = N_PROMPT;

    const int32_t word[] = {2, plain[0], plain[1]};
    params.sampling.bad_words = (struct id_sequences){word, 3, 1};
    decode(&f, &params, ids, 6);
    ck_assert_int_eq(ids[0], plain[0]);
    ck_assert_int_ne(ids[1], plain[1]);
    for (uint32_t i = 1; i < 6; i++)
        ck_assert(ids[i - 1] != plain[0] || ids[i] != plain[1]);

    /* The last two ids of the prompt stood at its beginning, before what would come. */
    params.sampling = greedy.sampling;
    params.sampling.dry_multiplier = 100;
    params.sampling.dry_base = 100;
    history[0] = prompt[N_PROMPT - 2];
    history[1] = prompt[N_PROMPT - 1];
    history[2] = plain[0];
    decode(&f, &params, ids, 1);
    ck_assert_int_ne(ids[0], plain[0]);
    params.sampling.dry_penalty_last_n = N_PROMPT - 1;
    decode(&f, &params, ids, 1);
    ck_assert_int_eq(ids[0], plain[0]);
    params.sampling.dry_penalty_last_n = -1;
    params.sampling.dry_allowed_length = 3;
    decode(&f, &params, ids, 1);
    ck_assert_int_eq(ids[0], plain[0]);

    /* A penalty over the last two ids keeps those from coming, and lets them come again. */
    params.sampling = greedy.sampling;
    params.sampling.repeat_last_n = 2;
    params.sampling.repetition_penalty = 1e6f;
    decode(&f, &params, ids, 6);
    for (uint32_t i = 1; i < 6; i++)
        ck_assert(ids[i] != ids[i - 1] && (i < 2 || ids[i] != ids[i - 2]));
    params.sampling.repeat_last_n = 0;
    decode(&f, &params, ids, 6);
    ck_assert_mem_eq(ids, plain, sizeof ids);

    /* No draft of such a sequence is verified. */
    params.sampling.repeat_last_n = 2;
    contract_feed_prompt(&f, &params);
    struct backend_row_set set = draft_of(ids, 4);
    const struct backend_result *results;
    ck_assert_int_eq(contract_run(&f, &set, 1, &results), -EINVAL);
    contract_ops->slot_close(f.backend, 0);
    contract_tear_down(&f);
}
END_TEST

START_TEST(a_draft_ends_where_the_sequence_ends)
{
    struct fixture f;
    contract_set_up(&f, "Q8_0");
    int32_t ids[5];
    const struct backend_result *results;
    decode(&f, &greedy, ids, 5);
    struct backend_slot params = greedy;
    params.end_position = N_PROMPT + 3;
    contract_feed_prompt(&f, &params);
    struct backend_row_set set = draft_of(ids, 4);
    ck_assert_int_eq(contract_run(&f, &set, 1, &results), 0);
    ck_assert_uint_eq(results[0].n_ids, 2);
    ck_assert_int_eq(results[0].end, BACKEND_END_LENGTH);
    contract_ops->slot_close(f.backend, 0);

    params = greedy;
    params.stop_ids = &ids[1];
    params.n_stop_ids = ids[1] != ids[0];
    ck_assert_uint_eq(params.n_stop_ids, 1);
    contract_feed_prompt(&f, &params);
    ck_assert_int_eq(contract_run(&f, &set, 1, &results), 0);
    ck_assert_uint_eq(results[0].n_ids, 1);
    ck_assert_int_eq(results[0].end, BACKEND_END_STOP);
    /* Whatever was on its way then is surplus. */
    struct backend_row_set surplus = next_at(N_PROMPT + 1, BACKEND_SAMPLE_LAST);
    ck_assert_int_eq(contract_run(&f, &surplus, 1, &results), 0);
    ck_assert_uint_eq(results[0].n_ids, 0);
    ck_assert_int_eq(results[0].end, BACKEND_END_STOP);
    contract_ops->trim(f.backend, 0, N_PROMPT, 0); /* its end is forgotten */
    ck_assert_int_eq(contract_run(&f, &set, 1, &results), 0);
    ck_assert_uint_eq(results[0].n_ids, 1);
    contract_tear_down(&f);
}
END_TEST

START_TEST(each_row_of_a_draft_has_its_mask)
{
    struct fixture f;
    contract_set_up(&f, "Q8_0");
    int32_t first = contract_feed_prompt(&f, &greedy)->ids[0];
    uint32_t allowed[3][13] = {{0}};
    const int32_t forced[3] = {233, 12, 300};
    for (int i = 0; i < 3; i++)
        allowed[i][forced[i] / 32] = 1u << (forced[i] % 32);
    const int32_t draft[3] = {first, 233, 12};
    struct backend_row_set set = draft_of(draft, 3);
    const struct backend_result *results;
    set.allowed = allowed[0];
    ck_assert_int_eq(contract_run(&f, &set, 1, &results), 0);
    ck_assert_uint_eq(results[0].n_ids, 3);
    ck_assert_mem_eq(results[0].ids, forced, sizeof forced);
    contract_tear_down(&f);
}
END_TEST

void contract_add_sampling(TCase *tests)
{
    tcase_add_test(tests, a_greedy_sample_is_the_largest_logit_and_feeds_the_next_step);
    tcase_add_test(tests, log_probabilities_are_of_the_sampled_id_and_the_likeliest);
    tcase_add_test(tests, the_penalty_counts_history_and_output);
    tcase_add_test(tests, presence_and_frequency_count_output_before_a_recompute_but_no_prompt);
    tcase_add_test(tests, biases_are_the_slots_own);
    tcase_add_test(tests, a_stop_id_is_not_sampled_before_its_time);
    tcase_add_test(tests, each_filter_of_a_slot_is_its_own);
    tcase_add_test(tests, a_seed_repeats_an_id_and_others_give_others);
    tcase_add_test(tests, only_allowed_ids_are_sampled);
    tcase_add_test(tests, a_mask_may_come_while_the_step_runs);
    tcase_add_test(tests, a_draft_gives_what_agreed_of_it_and_the_id_after);
    tcase_add_test(tests, ids_in_their_order_bear_on_what_is_sampled);
    tcase_add_test(tests, a_draft_ends_where_the_sequence_ends);
    tcase_add_test(tests, each_row_of_a_draft_has_its_mask);
}
