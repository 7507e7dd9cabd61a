/* SPDX-License-Identifier: MIT */
/* The rules of backend.h that bind the caller: the fake backend aborts on each breach, or tests that lean on
 * it would prove nothing. And what it promises a caller that keeps them while two steps are in flight. */

#include "tests/unit/run.h"
#include "tests/unit/engine/fake.h"
#include "model/model.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#define N_PROMPT 40

static struct backend *backend;
static int32_t prompt[N_PROMPT];
static const uint32_t blocks[] = {3, 5, 1, 0};
static const struct backend_slot plain = {
    .end_position = 100, .history = prompt, .n_history = N_PROMPT, .n_prompt = N_PROMPT};

static void set_up(void)
{
    const struct backend_config config = {
        .model = &fake_model, .n_slots = 3, .n_context = 128, .n_blocks = 8, .max_rows = 64};
    fake_script = (struct fake_script){.asynchronous = true, .embeds = true};
    ck_assert_int_eq(backend_fake.open(&config, &backend, NULL), 0);
    for (int32_t i = 0; i < N_PROMPT; i++)
        prompt[i] = 'A' + i % 20;
    ck_assert_int_eq(backend_fake.slot_open(backend, 0, &plain), 0);
}

static void tear_down(void)
{
    backend_fake.close(backend);
}

static struct backend_row_set whole_prompt(void)
{
    return (struct backend_row_set){
        .ids = prompt, .n_ids = N_PROMPT, .blocks = {{blocks, 2, 0}}, .output = BACKEND_SAMPLE_LAST};
}

static struct backend_row_set next_at(uint32_t position)
{
    return (struct backend_row_set){
        .position = position, .n_ids = 1, .blocks = {{.told = 2}}, .output = BACKEND_SAMPLE_LAST};
}

static uint64_t submit(struct backend_row_set set)
{
    const struct backend_step step = {&set, 1};
    uint64_t ticket;
    ck_assert_int_eq(backend_fake.submit(backend, &step, &ticket), 0);
    return ticket;
}

static const struct backend_result *poll_it(uint64_t ticket)
{
    const struct backend_result *results;
    ck_assert_int_eq(backend_fake.poll(backend, ticket, 0, &results, NULL), 0);
    return results;
}

/* ---- breaches: each aborts at its last call ---- */

static void breach_position(void)
{
    submit(whole_prompt());
    submit(next_at(N_PROMPT + 1));
}

static void breach_ids_before_the_sample_was_read(void)
{
    struct backend_row_set set = next_at(N_PROMPT);
    const int32_t id = 'a';
    submit(whole_prompt());
    set.ids = &id;
    submit(set);
}

static void breach_nothing_sampled(void)
{
    struct backend_row_set set = whole_prompt();
    set.output = BACKEND_OUTPUT_NONE;
    submit(set);
    submit(next_at(N_PROMPT));
}

static void breach_fed_twice(void)
{
    struct backend_row_set set = next_at(N_PROMPT);
    set.output = BACKEND_OUTPUT_NONE;
    poll_it(submit(whole_prompt()));
    poll_it(submit(set));
    submit(next_at(N_PROMPT + 1));
}

static void breach_blocks_not_told(void)
{
    struct backend_row_set set = whole_prompt();
    set.blocks[0].n = 1;
    submit(set);
}

static void breach_count_of_what_was_told(void)
{
    struct backend_row_set set = next_at(N_PROMPT);
    submit(whole_prompt());
    set.blocks[0] = (struct backend_blocks){blocks + 2, 1, 3};
    submit(set);
}

static void breach_block_of_another(void)
{
    struct backend_row_set set = whole_prompt();
    submit(set);
    ck_assert_int_eq(backend_fake.slot_open(backend, 1, &plain), 0);
    set.slot = 1;
    submit(set);
}

static void breach_masked_and_run_ahead(void)
{
    static const uint32_t allowed[(FAKE_VOCAB + 31) / 32] = {[3] = ~0u};
    struct backend_row_set set = next_at(N_PROMPT);
    submit(whole_prompt());
    set.allowed = allowed;
    submit(set);
}

static void breach_mask_changed_too_early(void)
{
    static uint32_t allowed[(FAKE_VOCAB + 31) / 32] = {[3] = ~0u};
    struct backend_row_set set = whole_prompt();
    set.allowed = allowed;
    uint64_t ticket = submit(set);
    allowed[3] = 1;
    poll_it(ticket);
}

static void breach_logits_touched_too_early(void)
{
    static float logits[FAKE_VOCAB];
    struct backend_row_set set = whole_prompt();
    set.output = BACKEND_LOGITS_LAST;
    set.logits = logits;
    uint64_t ticket = submit(set);
    logits[7] = 0;
    poll_it(ticket);
}

static void breach_closed_in_flight(void)
{
    submit(whole_prompt());
    backend_fake.slot_close(backend, 0);
}

static void breach_trimmed_in_flight(void)
{
    submit(whole_prompt());
    backend_fake.trim(backend, 0, 32, 0);
}

static void breach_three_flights(void)
{
    submit(whole_prompt());
    submit(next_at(N_PROMPT));
    submit(next_at(N_PROMPT + 1));
}

static void breach_polled_out_of_order(void)
{
    submit(whole_prompt());
    poll_it(submit(next_at(N_PROMPT)));
}

static void breach_goes_on_after_it_was_abandoned(void)
{
    const struct backend_result *results;
    fake_script.abandon_at = 1;
    uint64_t ticket = submit(whole_prompt());
    ck_assert_int_eq(backend_fake.poll(backend, ticket, 0, &results, NULL), -ECANCELED);
    submit(next_at(N_PROMPT));
}

static void breach_copied_over(void)
{
    int32_t host[1][BACKEND_BLOCK_TOKENS] = {{0}};
    uint64_t ticket;
    submit(whole_prompt());
    backend_fake.copy_in(backend, &(struct backend_copy){.blocks = blocks, .n = 1, .host = host}, &ticket);
}

static void breach_attached_but_not_filled(void)
{
    struct backend_slot params = plain;
    params.position = 32;
    ck_assert_int_eq(backend_fake.slot_open(backend, 1, &params), 0);
    poll_it(submit((struct backend_row_set){.slot = 1,
                                            .position = 32,
                                            .ids = prompt + 32,
                                            .n_ids = N_PROMPT - 32,
                                            .blocks = {{blocks, 2, 0}},
                                            .output = BACKEND_SAMPLE_LAST}));
}

static void breach_two_sets_of_a_slot(void)
{
    const struct backend_row_set sets[] = {whole_prompt(), next_at(N_PROMPT)};
    uint64_t ticket;
    backend_fake.submit(backend, &(struct backend_step){sets, 2}, &ticket);
}

static void breach_embedding_that_samples(void)
{
    struct backend_slot params = plain;
    struct backend_row_set set = whole_prompt();
    params.embeds = true;
    ck_assert_int_eq(backend_fake.slot_open(backend, 1, &params), 0);
    set.slot = 1;
    submit(set);
}

static void breach_embedding_behind_a_prefix(void)
{
    struct backend_slot params = plain;
    params.embeds = true;
    params.position = 32;
    backend_fake.slot_open(backend, 1, &params);
}

static void breach_embedding_trimmed(void)
{
    struct backend_slot params = plain;
    struct backend_row_set set = whole_prompt();
    params.embeds = true;
    ck_assert_int_eq(backend_fake.slot_open(backend, 1, &params), 0);
    set.slot = 1;
    set.output = BACKEND_SUM_LAST;
    ck_assert_ptr_nonnull(poll_it(submit(set))->sums);
    backend_fake.trim(backend, 1, 32, 0);
}

static void breach_sums_of_a_slot_that_samples(void)
{
    struct backend_row_set set = whole_prompt();
    set.output = BACKEND_SUM_LAST;
    submit(set);
}

static void (*const breaches[])(void) = {breach_position,
                                         breach_ids_before_the_sample_was_read,
                                         breach_nothing_sampled,
                                         breach_fed_twice,
                                         breach_blocks_not_told,
                                         breach_count_of_what_was_told,
                                         breach_block_of_another,
                                         breach_masked_and_run_ahead,
                                         breach_mask_changed_too_early,
                                         breach_logits_touched_too_early,
                                         breach_closed_in_flight,
                                         breach_trimmed_in_flight,
                                         breach_three_flights,
                                         breach_polled_out_of_order,
                                         breach_goes_on_after_it_was_abandoned,
                                         breach_copied_over,
                                         breach_attached_but_not_filled,
                                         breach_two_sets_of_a_slot,
                                         breach_embedding_that_samples,
                                         breach_embedding_behind_a_prefix,
                                         breach_embedding_trimmed,
                                         breach_sums_of_a_slot_that_samples};
#define N_BREACHES ((int)(sizeof breaches / sizeof *breaches))

START_TEST(a_breach_of_the_contract_aborts)
{
    breaches[_i]();
}
END_TEST

/* ---- promises ---- */

START_TEST(a_device_that_is_ahead_knows_where_its_slot_stands)
{
    int32_t ids[N_PROMPT + 8], out[6];
    memcpy(ids, prompt, sizeof prompt);
    for (int i = 0; i < 6; i++)
        ids[N_PROMPT + i] = out[i] = fake_next(0, ids, N_PROMPT + (uint32_t)i);
    ck_assert_int_eq(poll_it(submit(whole_prompt()))->ids[0], out[0]);
    /* The second drafted id is wrong. What follows is submitted before that is known. */
    const int32_t draft[] = {out[0], out[1], 'z', 'z'};
    struct backend_row_set set = next_at(N_PROMPT);
    set.ids = draft;
    set.n_ids = 4;
    set.output = BACKEND_SAMPLE_ALL;
    uint64_t first = submit(set), second = submit(next_at(N_PROMPT + 4));
    const struct backend_result *result = poll_it(first);
    ck_assert_uint_eq(result->n_accepted, 1);
    ck_assert_uint_eq(result->n_ids, 2);
    ck_assert_mem_eq(result->ids, out + 1, 2 * sizeof *out);
    ck_assert_int_eq(poll_it(second)->ids[0], out[3]);
    ck_assert_int_eq(poll_it(submit(next_at(N_PROMPT + 3)))->ids[0], out[4]);
}
END_TEST

START_TEST(copies_are_in_order_with_the_steps)
{
    int32_t host[2][BACKEND_BLOCK_TOKENS] = {{0}};
    const struct backend_result *results;
    const struct backend_copy out = {.blocks = blocks, .n = 2, .host = host};
    const uint32_t elsewhere[] = {6, 7};
    const struct backend_copy in = {.blocks = elsewhere, .n = 1, .host = host};
    uint64_t copied, filled;
    uint64_t prefill = submit(whole_prompt());
    ck_assert_int_eq(backend_fake.copy_out(backend, &out, &copied), 0);
    ck_assert_int_eq(backend_fake.poll(backend, copied, 0, &results, NULL), -EAGAIN);
    int32_t sampled = poll_it(prefill)->ids[0];
    ck_assert_int_eq(backend_fake.poll(backend, copied, 0, &results, NULL), 0);
    ck_assert_mem_eq(host, prompt, sizeof prompt);
    /* And back, into blocks that another slot then begins behind. */
    ck_assert_int_eq(backend_fake.copy_in(backend, &in, &filled), 0);
    struct backend_slot params = plain;
    params.position = 32;
    ck_assert_int_eq(backend_fake.slot_open(backend, 1, &params), 0);
    prefill = submit((struct backend_row_set){.slot = 1,
                                              .position = 32,
                                              .ids = prompt + 32,
                                              .n_ids = N_PROMPT - 32,
                                              .blocks = {{elsewhere, 2, 0}},
                                              .output = BACKEND_SAMPLE_LAST});
    ck_assert_int_eq(poll_it(prefill)->ids[0], sampled);
    ck_assert_int_eq(backend_fake.poll(backend, filled, 0, &results, NULL), 0);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    if (tests_fork())
        tcase_add_loop_test_raise_signal(tests, a_breach_of_the_contract_aborts, SIGABRT, 0, N_BREACHES);
    tcase_add_test(tests, a_device_that_is_ahead_knows_where_its_slot_stands);
    tcase_add_test(tests, copies_are_in_order_with_the_steps);
}

int main(void)
{
    return run_tests("contract", add);
}
