/* SPDX-License-Identifier: MIT */
/* The contract of engine/backend/backend.h, asked of a backend that computes a small model: slots, blocks and
 * steps. What is sampled is asked in backend_contract_sampling.c. */

#include "tests/unit/engine/backend/backend_contract.h"
#include "tests/unit/engine/backend/backend_contract_fixture.h"
#include "tests/unit/cpu/small_model.h"

#include <errno.h>
#include <math.h>
#include <string.h>

START_TEST(a_sampled_id_is_fed_once_or_replaced)
{
    struct fixture f;
    contract_set_up(&f, "Q8_0");
    const struct backend_result *results;
    struct backend_row_set next = next_at(N_PROMPT, BACKEND_OUTPUT_NONE);
    contract_feed_prompt(&f, &greedy);
    ck_assert_int_eq(contract_run(&f, &next, 1, &results), 0);
    next.position++;
    ck_assert_int_eq(contract_run(&f, &next, 1, &results), -EINVAL); /* it was fed */
    const int32_t forced[] = {7, 8};
    next.ids = forced;
    next.n_ids = 2;
    next.output = BACKEND_SAMPLE_LAST;
    ck_assert_int_eq(contract_run(&f, &next, 1, &results), 0);
    next.position += 2;
    next.output = BACKEND_OUTPUT_NONE;
    ck_assert_int_eq(contract_run(&f, &next, 1, &results), 0);
    next = next_at(next.position + 2, BACKEND_SAMPLE_LAST);
    ck_assert_int_eq(contract_run(&f, &next, 1, &results), -EINVAL); /* others took its place */
    contract_tear_down(&f);
}
END_TEST

START_TEST(a_sequence_ends_at_its_stop_ids_and_its_length)
{
    struct fixture f;
    contract_set_up(&f, "Q8_0");
    const struct backend_result *result = contract_feed_prompt(&f, &greedy);
    ck_assert_int_eq(result->end, BACKEND_RUNNING);
    int32_t sampled = result->ids[0];
    contract_ops->slot_close(f.backend, 0);

    int32_t stops[] = {1, sampled};
    struct backend_slot stopping = greedy;
    stopping.stop_ids = stops;
    stopping.n_stop_ids = 2;
    result = contract_feed_prompt(&f, &stopping);
    ck_assert_int_eq(result->end, BACKEND_END_STOP);
    ck_assert_int_eq(result->ids[0], sampled);
    contract_ops->slot_close(f.backend, 0);

    struct backend_slot ending = greedy;
    ending.end_position = N_PROMPT + 1;
    ck_assert_int_eq(contract_feed_prompt(&f, &ending)->end, BACKEND_END_LENGTH);
    contract_tear_down(&f);
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
    ck_assert_int_eq(contract_ops->slot_open(f->backend, 0, &greedy), 0);
    ck_assert_int_eq(contract_run(f, &set, 1, &results), 0);
}

/* Slot 1 begins behind, or inside, blocks that have the first ids: the logits after the same ids. Its second
 * block is 3. */
static void continue_at(struct fixture *f, uint32_t block, uint32_t from, const int32_t ids[LONG],
                        float *logits)
{
    const uint32_t blocks[] = {block, 3};
    struct backend_slot params = greedy;
    params.position = from;
    const struct backend_row_set set = {.slot = 1,
                                        .position = from,
                                        .ids = ids + from,
                                        .n_ids = LONG - from,
                                        .blocks = {{blocks, 2, 0}},
                                        .output = BACKEND_LOGITS_LAST,
                                        .logits = logits};
    const struct backend_result *results;
    ck_assert_int_eq(contract_ops->slot_open(f->backend, 1, &params), 0);
    ck_assert_int_eq(contract_run(f, &set, 1, &results), 0);
    contract_ops->slot_close(f->backend, 1);
}

START_TEST(a_block_that_is_full_already_is_attached_or_copied)
{
    struct fixture f;
    struct backend_info info;
    int32_t ids[LONG];
    float here[405], there[405];
    contract_set_up(&f, "Q4_K_M");
    feed_long(&f, ids, here);
    continue_at(&f, 2, 32, ids, there);
    contract_check_same_logits(here, there);

    contract_ops->info(f.backend, &info);
    uint8_t *host = malloc(2 * info.groups[0].block_bytes);
    const struct backend_copy out = {.blocks = (uint32_t[]){0, 2}, .n = 2, .host = host};
    const struct backend_copy in = {.blocks = (uint32_t[]){1, 4}, .n = 2, .host = host};
    const struct backend_copy beyond = {.blocks = (uint32_t[]){N_BLOCKS}, .n = 1, .host = host};
    const struct backend_result *results;
    uint64_t first, second;
    ck_assert_int_eq(contract_ops->copy_out(f.backend, &out, &first), 0);
    ck_assert_int_eq(contract_wait(&f, first, &results), 0);
    ck_assert_int_eq(contract_ops->copy_in(f.backend, &in, &second), 0);
    ck_assert_int_eq(contract_wait(&f, second, &results), 0);
    ck_assert_int_eq(contract_ops->copy_out(f.backend, &beyond, &first), -EINVAL);
    ck_assert_int_eq(contract_ops->copy_in(f.backend, &beyond, &first), -EINVAL);
    free(host);
    memset(there, 0, sizeof there);
    continue_at(&f, 4, 32, ids, there);
    contract_check_same_logits(here, there);
    contract_tear_down(&f);
}
END_TEST

/* What is copied of a block, up to the last id but one, is like what was computed, and its owner keeps it. */
START_TEST(a_slot_begins_inside_a_block_that_was_copied)
{
    struct fixture f;
    int32_t ids[LONG], others[LONG];
    float here[405], there[405], other[405];
    contract_set_up(&f, "Q4_K_M");
    feed_long(&f, ids, here);
    static const uint32_t from[] = {1, 15, 31, 33, LONG - 1};
    for (int i = 0; i < 5; i++) {
        const uint32_t first = from[i] < 32 ? 5 : 2;
        ck_assert_int_eq(contract_ops->copy_block(f.backend, 0, from[i] < 32 ? 2 : 0, from[i] < 32 ? 5 : 3),
                         0);
        memset(there, 0, sizeof there);
        continue_at(&f, first, from[i], ids, there);
        contract_check_same_logits(here, there);
    }
    /* Other ids from there on are written to the copy alone. */
    memcpy(others, ids, sizeof others);
    others[20]++;
    ck_assert_int_eq(contract_ops->copy_block(f.backend, 0, 2, 5), 0);
    continue_at(&f, 5, 20, others, other);
    ck_assert(memcmp(here, other, sizeof here) != 0);
    ck_assert_int_eq(contract_ops->copy_block(f.backend, 0, 0, 3), 0);
    continue_at(&f, 2, LONG - 1, ids, there);
    contract_check_same_logits(here, there);
    ck_assert_int_eq(contract_ops->copy_block(f.backend, 0, N_BLOCKS, 3), -EINVAL);
    ck_assert_int_eq(contract_ops->copy_block(f.backend, 0, 3, N_BLOCKS), -EINVAL);
    ck_assert_int_eq(contract_ops->copy_block(f.backend, 1, 0, 3), -EINVAL);
    contract_tear_down(&f);
}
END_TEST

START_TEST(trimming_gives_blocks_back_and_keeps_what_is_before)
{
    struct fixture f;
    contract_set_up(&f, "Q8_0");
    contract_feed_prompt(&f, &greedy);
    float before[405], after[405];
    contract_logits_of(&f, N_PROMPT, 77, before);
    int32_t ids[40] = {1, 2, 3};
    const uint32_t block = 5;
    struct backend_row_set more = {.position = N_PROMPT, .ids = ids, .n_ids = 40, .blocks = {{&block, 1, 1}}};
    const struct backend_result *results;
    ck_assert_int_eq(contract_run(&f, &more, 1, &results), 0);
    contract_ops->trim(f.backend, 0, N_PROMPT, 0);
    contract_ops->trim(f.backend, 0, N_PROMPT + 9, 0); /* not there: nothing to cut */
    /* Positions beyond the first block are no longer there. */
    more.blocks[0].n = 0;
    ck_assert_int_eq(contract_run(&f, &more, 1, &results), -EINVAL);
    more.n_ids = 1;
    ck_assert_int_eq(contract_run(&f, &more, 1, &results), 0);
    contract_logits_of(&f, N_PROMPT, 77, after);
    contract_check_same_logits(before, after);
    contract_tear_down(&f);
}
END_TEST

START_TEST(an_abandoned_step_spoils_its_slots_and_nothing_else)
{
    struct fixture f;
    int32_t ids[LONG];
    float before[405], after[405];
    contract_set_up(&f, "Q8_0");
    feed_long(&f, ids, before);
    ck_assert_int_eq(contract_ops->slot_open(f.backend, 1, &greedy), 0); /* not in the step */
    f.abandon = true;
    const struct backend_row_set more = {
        .position = LONG, .ids = ids, .n_ids = 20, .blocks = {{.told = 2}}, .output = BACKEND_SAMPLE_LAST};
    const struct backend_result *results;
    /* A device may be done before anybody waits for it, and then nobody is asked. */
    int r;
    while ((r = contract_run(&f, &more, 1, &results)) == 0)
        contract_ops->trim(f.backend, 0, LONG, 0);
    ck_assert_int_eq(r, -ECANCELED);
    f.abandon = false;
    ck_assert_int_eq(contract_run(&f, &more, 1, &results), -EINVAL);
    contract_ops->trim(f.backend, 0, 32, 0);
    ck_assert_int_eq(contract_run(&f, &more, 1, &results), -EINVAL); /* good for closing only */
    const struct backend_row_set other = {
        .slot = 1, .ids = ids, .n_ids = 20, .blocks = {{(uint32_t[]){5}, 1, 0}}};
    ck_assert_int_eq(contract_run(&f, &other, 1, &results), 0);
    contract_ops->slot_close(f.backend, 0);
    contract_ops->slot_close(f.backend, 1);
    continue_at(&f, 2, 32, ids, after); /* what it had computed before is whole */
    contract_check_same_logits(before, after);
    contract_tear_down(&f);
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
    ck_assert_int_eq(contract_ops->open(&config, &f.backend, NULL), 0);
    const struct backend_result *result = contract_feed_prompt(&f, &greedy);
    ck_assert_int_eq(result->end, BACKEND_END_FAULT);
    ck_assert_uint_eq(result->n_ids, 0);
    contract_tear_down(&f);
    free(values);
}
END_TEST

START_TEST(a_step_that_breaks_the_contract_is_refused_whole)
{
    struct fixture f;
    contract_set_up(&f, "Q8_0");
    contract_feed_prompt(&f, &greedy);
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
        ck_assert_msg(contract_run(&f, &bad[i], 1, &results) == -EINVAL, "case %zu was taken", i);
    }
    const struct backend_row_set twice[2] = {
        {.position = 10, .ids = &fine, .n_ids = 1, .blocks = {{.told = 1}}},
        {.position = 10, .ids = &fine, .n_ids = 1, .blocks = {{.told = 1}}}};
    ck_assert_int_eq(contract_run(&f, twice, 2, &results), -EINVAL);
    ck_assert_int_eq(contract_run(&f, twice, 0, &results), -EINVAL);
    ck_assert_int_eq(contract_run(&f, twice, 1, &results), 0); /* nothing of all that was done */
    ck_assert_int_eq(contract_ops->slot_open(f.backend, 0, &greedy), -EINVAL);
    ck_assert_int_eq(contract_ops->slot_open(f.backend, 2, &greedy), -EINVAL);
    contract_tear_down(&f);
}
END_TEST

START_TEST(a_ticket_is_read_once_and_before_the_next_step)
{
    struct fixture f;
    contract_set_up(&f, "Q8_0");
    contract_feed_prompt(&f, &greedy);
    const struct backend_result *results;
    struct error err = {0};
    ck_assert_int_eq(contract_ops->poll(f.backend, 1, 0, &results, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "ticket 1"));
    struct backend_row_set next = next_at(N_PROMPT, BACKEND_SAMPLE_LAST);
    const struct backend_step step = {&next, 1};
    uint64_t ticket;
    ck_assert_int_eq(contract_ops->submit(f.backend, &step, &ticket), 0);
    ck_assert_int_eq(contract_ops->poll(f.backend, ticket + 1, 0, &results, &err), -EINVAL);
    ck_assert_int_eq(contract_wait(&f, ticket, &results), 0);
    ck_assert_int_eq(contract_ops->poll(f.backend, ticket, 0, &results, &err), -EINVAL);
    contract_tear_down(&f);
}
END_TEST

void backend_contract_add(TCase *tests, const struct backend_ops *of, bool same_bits)
{
    contract_ops = of;
    contract_exact = same_bits;
    tcase_add_test(tests, a_sampled_id_is_fed_once_or_replaced);
    tcase_add_test(tests, a_sequence_ends_at_its_stop_ids_and_its_length);
    tcase_add_test(tests, a_block_that_is_full_already_is_attached_or_copied);
    tcase_add_test(tests, a_slot_begins_inside_a_block_that_was_copied);
    tcase_add_test(tests, trimming_gives_blocks_back_and_keeps_what_is_before);
    tcase_add_test(tests, an_abandoned_step_spoils_its_slots_and_nothing_else);
    tcase_add_test(tests, a_model_that_computes_no_number_is_a_fault_and_not_an_id);
    tcase_add_test(tests, a_step_that_breaks_the_contract_is_refused_whole);
    tcase_add_test(tests, a_ticket_is_read_once_and_before_the_next_step);
    contract_add_sampling(tests);
}
