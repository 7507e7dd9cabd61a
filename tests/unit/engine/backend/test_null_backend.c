/* SPDX-License-Identifier: MIT */
/* The null backend: free tokens, but the contract of a real device. */

#include "tests/unit/run.h"
#include "tests/unit/engine/fake.h"
#include "model/model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct backend *open_null(void)
{
    struct backend *backend;
    const struct backend_config config = {
        .model = &fake_model, .n_slots = 4, .n_context = 100, .max_rows = 16};
    ck_assert_int_eq(backend_null.open(&config, &backend, NULL), 0);
    return backend;
}

static struct backend_result step(struct backend *backend, const struct backend_row_set *set)
{
    const struct backend_result *results;
    uint64_t ticket;
    const struct backend_step one = {set, 1};
    ck_assert_int_eq(backend_null.submit(backend, &one, &ticket), 0);
    ck_assert_int_eq(backend_null.poll(backend, ticket, 0, &results, NULL), 0);
    return results[0];
}

static const int32_t prompt[] = {65, 66, 67};
static const uint32_t block[] = {0};
static const struct backend_row_set prefill = {
    .n_ids = 3, .ids = prompt, .blocks = {{block, 1, 0}}, .output = BACKEND_SAMPLE_LAST};

/* Opens slot 0 and feeds the prompt. */
static struct backend_result start(struct backend *backend, const struct backend_slot *params,
                                   const struct backend_row_set *set)
{
    ck_assert_int_eq(backend_null.slot_open(backend, 0, params), 0);
    return step(backend, set);
}

static struct backend_row_set next_at(uint32_t position)
{
    return (struct backend_row_set){
        .position = position, .n_ids = 1, .blocks = {{.told = 1}}, .output = BACKEND_SAMPLE_LAST};
}

START_TEST(the_same_seed_and_position_give_the_same_printable_id_in_any_slot)
{
    struct backend *backend = open_null();
    int different = 0;
    for (uint32_t seed = 0; seed < 50; seed++) {
        struct backend_slot slot = {.sampling = {.seed = seed}, .end_position = 100};
        int32_t id = start(backend, &slot, &prefill).ids[0];
        ck_assert_int_eq(backend_null.slot_open(backend, 1, &slot), 0);
        struct backend_row_set chunk = prefill; /* two and one in place of three */
        chunk.slot = 1;
        chunk.n_ids = 2;
        chunk.output = BACKEND_OUTPUT_NONE;
        step(backend, &chunk);
        chunk = (struct backend_row_set){.slot = 1,
                                         .position = 2,
                                         .n_ids = 1,
                                         .ids = prompt + 2,
                                         .blocks = {{.told = 1}},
                                         .output = BACKEND_SAMPLE_LAST};
        ck_assert_int_eq(step(backend, &chunk).ids[0], id);
        ck_assert(id >= ' ' && id <= '~');
        chunk = next_at(3);
        chunk.slot = 1;
        different += step(backend, &chunk).ids[0] != id;
        for (uint32_t i = 0; i < 2; i++)
            backend_null.slot_close(backend, i);
    }
    ck_assert_int_gt(different, 40);
    backend_null.close(backend);
}
END_TEST

START_TEST(stop_ids_and_lengths_are_tested)
{
    struct backend *backend = open_null();
    struct backend_slot slot = {.sampling = {.seed = 9}, .end_position = 5};
    struct backend_result result = start(backend, &slot, &prefill);
    int32_t first = result.ids[0];
    ck_assert_int_eq(result.end, BACKEND_RUNNING);
    backend_null.slot_close(backend, 0);
    slot.end_position = 4;
    ck_assert_int_eq(start(backend, &slot, &prefill).end, BACKEND_END_LENGTH);
    struct backend_row_set surplus = next_at(3);
    result = step(backend, &surplus);
    ck_assert_uint_eq(result.n_ids, 0);
    ck_assert_int_eq(result.end, BACKEND_END_LENGTH);
    backend_null.slot_close(backend, 0);
    slot.stop_ids = &first;
    slot.n_stop_ids = 1;
    ck_assert_int_eq(start(backend, &slot, &prefill).end, BACKEND_END_STOP);
    backend_null.close(backend);
}
END_TEST

/* There is nothing to copy, but whoever asks is answered as by a device that keeps something. */
START_TEST(a_copy_has_a_ticket_beside_those_of_steps)
{
    struct backend *backend = open_null();
    const struct backend_slot slot = {.end_position = 100};
    const struct backend_step one = {&prefill, 1};
    const struct backend_result *results;
    struct error err;
    uint64_t first, second, of_step;
    uint8_t host[2 * BACKEND_BLOCK_TOKENS];
    memset(host, 1, sizeof host);
    const struct backend_copy copy = {.blocks = (uint32_t[]){1, 0}, .n = 2, .host = host};
    const struct backend_copy elsewhere = {
        .group = BACKEND_MOST_GROUPS, .blocks = block, .n = 1, .host = host};
    const struct backend_copy beyond = {.blocks = (uint32_t[]){UINT32_MAX}, .n = 1, .host = host};
    ck_assert_int_eq(backend_null.slot_open(backend, 0, &slot), 0);
    ck_assert_int_eq(backend_null.submit(backend, &one, &of_step), 0);
    ck_assert_int_eq(backend_null.copy_out(backend, &copy, &first), 0);
    for (size_t i = 0; i < sizeof host; i++)
        ck_assert_uint_eq(host[i], 0); /* what a block of it is */
    ck_assert_int_eq(backend_null.copy_in(backend, &copy, &second), 0);
    ck_assert_uint_ne(first, second);
    ck_assert_int_eq(backend_null.poll(backend, second, 0, &results, NULL), 0);
    ck_assert_int_eq(backend_null.poll(backend, first, 0, &results, NULL), 0);
    ck_assert_int_eq(backend_null.poll(backend, second + 1, 0, &results, &err), -EINVAL);
    ck_assert_int_eq(backend_null.poll(backend, first - 1, 0, &results, &err), -EINVAL);
    ck_assert_int_eq(backend_null.poll(backend, of_step, 0, &results, NULL), 0);
    ck_assert_int_eq(backend_null.poll(backend, of_step, 0, &results, &err), -EINVAL);
    ck_assert_int_eq(backend_null.copy_out(backend, &elsewhere, &first), -EINVAL);
    ck_assert_int_eq(backend_null.copy_in(backend, &beyond, &first), -EINVAL);
    ck_assert_int_eq(backend_null.copy_block(backend, 0, 0, 1), 0);
    ck_assert_int_eq(backend_null.copy_block(backend, beyond.group, beyond.blocks[0], 0), -EINVAL);
    ck_assert_int_eq(backend_null.copy_block(backend, beyond.group, 0, beyond.blocks[0]), -EINVAL);
    ck_assert_int_eq(backend_null.copy_block(backend, elsewhere.group, 0, 1), -EINVAL);
    backend_null.close(backend);
}
END_TEST

/* Four blocks are told, of which two stay: what was fed behind them is fed again, and goes on as before. */
START_TEST(what_was_trimmed_is_fed_again_and_goes_on_as_before)
{
    static const int32_t ids[100] = {70};
    static const uint32_t four[4] = {3, 2, 1, 0};
    struct backend *backend;
    const struct backend_config config = {
        .model = &fake_model, .n_slots = 1, .n_context = 128, .max_rows = 128};
    const struct backend_slot slot = {.sampling = {.seed = 3}, .end_position = 128};
    struct backend_row_set set = {
        .n_ids = 100, .ids = ids, .blocks = {{four, 4, 0}}, .output = BACKEND_SAMPLE_LAST};
    const struct backend_step one = {&set, 1};
    uint64_t ticket;
    ck_assert_int_eq(backend_null.open(&config, &backend, NULL), 0);
    const int32_t id = start(backend, &slot, &set).ids[0];
    backend_null.trim(backend, 0, 101, 0); /* beyond what there is: nothing to cut */
    set = (struct backend_row_set){
        .position = 100, .n_ids = 1, .blocks = {{.told = 4}}, .output = BACKEND_SAMPLE_LAST};
    const int32_t next = step(backend, &set).ids[0];
    backend_null.trim(backend, 0, 33, 0);
    set = (struct backend_row_set){
        .position = 33, .n_ids = 1, .blocks = {{four, 1, 2}}, .output = BACKEND_SAMPLE_LAST};
    ck_assert_int_eq(backend_null.submit(backend, &one, &ticket), -EINVAL); /* its last id is none any more */
    set.ids = ids;
    set.n_ids = 67;
    set.blocks[0] = (struct backend_blocks){four, 2, 4};
    ck_assert_int_eq(backend_null.submit(backend, &one, &ticket), -EINVAL); /* two blocks are left */
    set.blocks[0].told = 2;
    ck_assert_int_eq(step(backend, &set).ids[0], id);
    set = (struct backend_row_set){
        .position = 100, .n_ids = 1, .blocks = {{.told = 4}}, .output = BACKEND_SAMPLE_LAST};
    ck_assert_int_eq(step(backend, &set).ids[0], next);
    backend_null.close(backend);
}
END_TEST

START_TEST(a_mask_is_obeyed_and_an_empty_one_is_a_fault)
{
    struct backend *backend = open_null();
    const struct backend_slot slot = {.end_position = 100};
    uint32_t allowed[(FAKE_VOCAB + 31) / 32] = {0};
    struct backend_row_set set = prefill;
    set.allowed = allowed;
    ck_assert_int_eq(start(backend, &slot, &set).end, BACKEND_END_FAULT);
    backend_null.slot_close(backend, 0);
    allowed['x' / 32] = 1u << ('x' % 32);
    ck_assert_int_eq(start(backend, &slot, &set).ids[0], 'x');
    allowed['x' / 32] = 0;
    allowed[0] = 1u << 3; /* not printable, but all there is */
    set = next_at(3);
    set.allowed = allowed;
    ck_assert_int_eq(step(backend, &set).ids[0], 3);
    backend_null.close(backend);
}
END_TEST

START_TEST(outputs_are_as_asked)
{
    struct backend *backend = open_null();
    const struct backend_slot slot = {.end_position = 100, .n_logprobs = 3};
    struct backend_row_set set = prefill;
    set.output = BACKEND_OUTPUT_NONE;
    ck_assert_uint_eq(start(backend, &slot, &set).n_ids, 0);
    float logits[FAKE_VOCAB];
    set = (struct backend_row_set){.position = 3,
                                   .n_ids = 1,
                                   .ids = prompt,
                                   .blocks = {{.told = 1}},
                                   .output = BACKEND_LOGITS_LAST,
                                   .logits = logits};
    step(backend, &set);
    backend_null.trim(backend, 0, 3, 0);
    set.output = BACKEND_SAMPLE_LAST;
    struct backend_result one = step(backend, &set);
    ck_assert_uint_eq(one.n_ids, 1);
    ck_assert_int_eq(one.logprobs[0].id, one.ids[0]);
    ck_assert(one.logprobs[0].logprob > one.logprobs[1].logprob);
    ck_assert(logits[one.ids[0]] == 1 && logits[0] == 0);
    backend_null.close(backend);
}
END_TEST

START_TEST(a_draft_gives_what_agreed_of_it_and_the_id_after)
{
    struct backend *backend = open_null();
    const struct backend_slot slot = {.sampling = {.seed = 3}, .end_position = 100};
    int32_t ids[6];
    ids[0] = start(backend, &slot, &prefill).ids[0];
    for (uint32_t i = 1; i < 6; i++) {
        struct backend_row_set next = next_at(2 + i);
        ids[i] = step(backend, &next).ids[0];
    }
    for (uint32_t right = 0; right <= 3; right++) {
        backend_null.slot_close(backend, 0);
        start(backend, &slot, &prefill);
        int32_t draft[4] = {ids[0], ids[1], ids[2], ids[3]};
        if (right < 3)
            draft[right + 1]++;
        struct backend_row_set set = next_at(3);
        set.ids = draft;
        set.n_ids = 4;
        set.output = BACKEND_SAMPLE_ALL;
        struct backend_result result = step(backend, &set);
        ck_assert_uint_eq(result.n_accepted, right);
        ck_assert_uint_eq(result.n_ids, right + 1);
        ck_assert_mem_eq(result.ids, ids + 1, (right + 1) * sizeof *ids);
        struct backend_row_set next = next_at(4 + right);
        ck_assert_int_eq(step(backend, &next).ids[0], ids[right + 2]);
    }
    backend_null.close(backend);
}
END_TEST

START_TEST(what_breaks_the_contract_is_refused)
{
    struct backend *backend = open_null();
    const struct backend_slot slot = {.end_position = 100};
    ck_assert_int_eq(backend_null.slot_open(backend, 0, &slot), 0);
    ck_assert_int_eq(backend_null.slot_open(backend, 0, &slot), -EINVAL);
    int32_t many[17] = {0};
    const struct backend_row_set bad[] = {
        {.n_ids = 17, .ids = many, .blocks = {{block, 1, 0}}},               /* too many rows */
        {.n_ids = 1, .ids = many},                                           /* no block */
        {.n_ids = 1, .ids = many, .blocks = {{block, 1, 1}}},                /* told of none before */
        {.n_ids = 1, .ids = many, .blocks = {{block, 1, 0}}, .position = 1}, /* not where it stands */
        {.n_ids = 1, .blocks = {{block, 1, 0}}},                             /* nothing was sampled */
        {.n_ids = 1, .ids = many, .blocks = {{block, 1, 0}}, .slot = 1},     /* not open */
        {.n_ids = 1, .ids = many, .blocks = {{block, 1, 0}}, .slot = 4},     /* not there */
    };
    const struct backend_result *results;
    uint64_t ticket;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const struct backend_step one = {&bad[i], 1};
        ck_assert_msg(backend_null.submit(backend, &one, &ticket) == -EINVAL, "case %zu was taken", i);
    }
    struct error err = {0};
    ck_assert_int_eq(backend_null.poll(backend, 0, 0, &results, &err), -EINVAL);
    ck_assert_int_eq(backend_null.poll(backend, 1, 0, &results, &err), -EINVAL);
    ck_assert_str_eq(err.text, "null backend: no ticket 1 is open");
    struct backend_row_set next = {.n_ids = 1, .ids = many, .blocks = {{block, 1, 0}}};
    next.output = BACKEND_SAMPLE_LAST;
    step(backend, &next);
    next = next_at(1);
    next.output = BACKEND_OUTPUT_NONE;
    step(backend, &next);
    next.position = 2;
    const struct backend_step again = {&next, 1};
    ck_assert_int_eq(backend_null.submit(backend, &again, &ticket), -EINVAL); /* the id was fed */
    backend_null.close(backend);
}
END_TEST

START_TEST(what_it_has_not_is_refused_not_ignored)
{
    static const uint32_t device = 0;
    const struct backend_config good = {.model = &fake_model, .n_slots = 4, .n_context = 100};
    struct backend_config bad[] = {good, good, good, good};
    bad[0].devices = &device, bad[0].n_devices = 1;
    bad[1].weights = (struct weight_store *)&good;
    bad[2].kv_type = BACKEND_KV_F16;
    bad[3].profile = true;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct backend *backend;
        struct error err = {0};
        ck_assert_int_eq(backend_null.open(&bad[i], &backend, &err), -ENOTSUP);
        ck_assert_str_eq(err.text, "the null backend has no devices, weights, KV types or kernels");
    }
}
END_TEST

START_TEST(it_says_what_it_is)
{
    struct backend *backend = open_null();
    struct backend_info info;
    backend_null.info(backend, &info);
    ck_assert_str_eq(info.device, "null");
    ck_assert_uint_eq(info.max_rows, 16);
    ck_assert_uint_eq(info.n_groups, 1);
    ck_assert_uint_eq(info.groups[0].n_blocks, 4 * 4); /* four slots of 100 ids each, in blocks of 32 */
    ck_assert_uint_gt(info.groups[0].block_bytes, 0);
    ck_assert_uint_eq(info.most_flights, 1);
    /* Prompts are read in chunks beside decoding sequences: it measures the engine as a CPU would. */
    ck_assert(0 < info.step_ms && info.step_ms < info.alone_ms);
    ck_assert(0 < info.chunk_least && info.chunk_least < info.chunk_most);
    ck_assert_int_eq(backend_null.verdict(backend, NULL), 0);
    backend_null.close(backend);
}
END_TEST

START_TEST(all_of_printable_ascii_is_sampled_and_nothing_else)
{
    struct backend *backend = open_null();
    bool seen[FAKE_VOCAB] = {false};
    for (uint32_t seed = 0; seed < 3000; seed++) {
        const struct backend_slot slot = {.sampling = {.seed = seed}, .end_position = 100};
        seen[start(backend, &slot, &prefill).ids[0]] = true;
        backend_null.slot_close(backend, 0);
    }
    for (int32_t id = 0; id < FAKE_VOCAB; id++)
        ck_assert_msg(seen[id] == (id >= ' ' && id <= '~'), "%d", id);
    backend_null.close(backend);
}
END_TEST

START_TEST(a_slot_has_its_place_and_its_most_stop_ids)
{
    struct backend *backend = open_null();
    struct backend_info info;
    backend_null.info(backend, &info);
    int32_t *stop_ids = calloc(info.most_stop_ids + 1, sizeof *stop_ids);
    struct backend_slot slot = {.end_position = 100, .stop_ids = stop_ids, .n_stop_ids = info.most_stop_ids};
    ck_assert_int_eq(backend_null.slot_open(backend, 3, &slot), 0);
    ck_assert_int_eq(backend_null.slot_open(backend, 4, &slot), -EINVAL);
    slot.n_stop_ids++;
    ck_assert_int_eq(backend_null.slot_open(backend, 2, &slot), -EINVAL);
    free(stop_ids);
    backend_null.close(backend);
}
END_TEST

START_TEST(log_probabilities_are_those_of_certainty)
{
    struct backend *backend = open_null();
    const struct backend_slot slot = {.end_position = 100, .n_logprobs = 3};
    const struct backend_result result = start(backend, &slot, &prefill);
    ck_assert_int_eq(result.logprobs[0].id, result.ids[0]);
    ck_assert(result.logprobs[0].logprob == 0);
    for (int32_t i = 1; i < 3; i++) {
        ck_assert_int_eq(result.logprobs[i].id, ' ' + i - 1);
        ck_assert(result.logprobs[i].logprob == -100);
    }
    backend_null.close(backend);
}
END_TEST

START_TEST(all_logits_of_a_set_are_one_where_the_id_would_be)
{
    struct backend *backend = open_null();
    const struct backend_slot slot = {.sampling = {.seed = 5}, .end_position = 100};
    float logits[3 * FAKE_VOCAB];
    struct backend_row_set set = prefill;
    int32_t ids[3];
    set.n_ids = 1;
    ids[0] = start(backend, &slot, &set).ids[0];
    for (uint32_t i = 1; i < 3; i++) {
        const struct backend_row_set next = next_at(i);
        ids[i] = step(backend, &next).ids[0];
    }
    backend_null.slot_close(backend, 0);
    set = prefill;
    set.output = BACKEND_LOGITS_ALL;
    set.logits = logits;
    start(backend, &slot, &set);
    for (int row = 0; row < 3; row++)
        for (int32_t id = 0; id < FAKE_VOCAB; id++)
            ck_assert(logits[row * FAKE_VOCAB + id] == (id == ids[row]));
    backend_null.close(backend);
}
END_TEST

START_TEST(final_states_are_summed_over_all_sets_of_a_prompt)
{
    struct model model = fake_model;
    const struct backend_config config = {.model = &model, .n_slots = 1, .n_context = 100};
    struct backend *backend;
    struct backend_info info;
    const struct backend_slot slot = {.embeds = true, .end_position = 100};
    const struct backend_slot plain = {.end_position = 100};
    double whole[FAKE_EMBD], first[FAKE_EMBD];
    struct backend_row_set set = prefill;
    model.params.n_embd = FAKE_EMBD;
    ck_assert_int_eq(backend_null.open(&config, &backend, NULL), 0);
    backend_null.info(backend, &info);
    ck_assert_uint_eq(info.n_embedding, FAKE_EMBD);
    set.output = BACKEND_SUM_LAST;
    memcpy(whole, start(backend, &slot, &set).sums, sizeof whole);
    for (int i = 0; i < FAKE_EMBD; i++)
        ck_assert(whole[i] != 0 && whole[i] > -1.5 && whole[i] < 1.5);
    backend_null.slot_close(backend, 0);
    set.n_ids = 1;
    memcpy(first, start(backend, &slot, &set).sums, sizeof first);
    ck_assert(memcmp(first, whole, sizeof whole) != 0);
    set = (struct backend_row_set){
        .position = 1, .n_ids = 2, .ids = prompt + 1, .blocks = {{.told = 1}}, .output = BACKEND_SUM_LAST};
    ck_assert_mem_eq(step(backend, &set).sums, whole, sizeof whole);
    backend_null.slot_close(backend, 0);
    const struct backend_step sampled = {&prefill, 1}, summed = {&set, 1};
    uint64_t ticket;
    ck_assert_int_eq(backend_null.slot_open(backend, 0, &slot), 0);
    ck_assert_int_eq(backend_null.submit(backend, &sampled, &ticket), -EINVAL);
    backend_null.slot_close(backend, 0);
    start(backend, &plain, &prefill);
    set.position = 3;
    ck_assert_int_eq(backend_null.submit(backend, &summed, &ticket), -EINVAL);
    backend_null.close(backend);
}
END_TEST

static bool give_up(void *arg)
{
    return *(bool *)arg;
}

START_TEST(a_slot_of_an_abandoned_step_is_good_for_nothing_but_to_be_closed)
{
    bool abandons = true;
    const struct backend_config config = {
        .model = &fake_model, .n_slots = 1, .n_context = 100, .progress = give_up, .progress_arg = &abandons};
    const struct backend_slot slot = {.end_position = 100};
    const struct backend_step one = {&prefill, 1};
    const struct backend_row_set next = next_at(3);
    const struct backend_step two = {&next, 1};
    const struct backend_result *results;
    struct backend *backend;
    uint64_t ticket;
    ck_assert_int_eq(backend_null.open(&config, &backend, NULL), 0);
    ck_assert_int_eq(backend_null.slot_open(backend, 0, &slot), 0);
    ck_assert_int_eq(backend_null.submit(backend, &one, &ticket), 0);
    ck_assert_int_eq(backend_null.poll(backend, ticket, 0, &results, NULL), -ECANCELED);
    abandons = false;
    ck_assert_int_eq(backend_null.submit(backend, &two, &ticket), -EINVAL);
    backend_null.slot_close(backend, 0);
    ck_assert_uint_eq(start(backend, &slot, &prefill).n_ids, 1);
    backend_null.close(backend);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, the_same_seed_and_position_give_the_same_printable_id_in_any_slot);
    tcase_add_test(tests, stop_ids_and_lengths_are_tested);
    tcase_add_test(tests, a_copy_has_a_ticket_beside_those_of_steps);
    tcase_add_test(tests, what_was_trimmed_is_fed_again_and_goes_on_as_before);
    tcase_add_test(tests, a_mask_is_obeyed_and_an_empty_one_is_a_fault);
    tcase_add_test(tests, outputs_are_as_asked);
    tcase_add_test(tests, a_draft_gives_what_agreed_of_it_and_the_id_after);
    tcase_add_test(tests, what_breaks_the_contract_is_refused);
    tcase_add_test(tests, what_it_has_not_is_refused_not_ignored);
    tcase_add_test(tests, it_says_what_it_is);
    tcase_add_test(tests, all_of_printable_ascii_is_sampled_and_nothing_else);
    tcase_add_test(tests, a_slot_has_its_place_and_its_most_stop_ids);
    tcase_add_test(tests, log_probabilities_are_those_of_certainty);
    tcase_add_test(tests, all_logits_of_a_set_are_one_where_the_id_would_be);
    tcase_add_test(tests, final_states_are_summed_over_all_sets_of_a_prompt);
    tcase_add_test(tests, a_slot_of_an_abandoned_step_is_good_for_nothing_but_to_be_closed);
}

int main(void)
{
    return run_tests("null_backend", add);
}
