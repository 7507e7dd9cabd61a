/* SPDX-License-Identifier: MIT */
/* The null backend: free tokens, but the contract of a real device. */

#include "tests/unit/run.h"
#include "tests/unit/worker/engine/fake.h"

#include <errno.h>
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
static const struct backend_row_set prefill = {.n_ids = 3, .ids = prompt, .output = BACKEND_SAMPLE_LAST};

START_TEST(the_same_seed_and_position_give_the_same_printable_id_in_any_slot)
{
    struct backend *backend = open_null();
    int different = 0;
    for (uint32_t seed = 0; seed < 50; seed++) {
        struct backend_slot slot = {.sampling = {.seed = seed}, .end_position = 100};
        for (uint32_t i = 0; i < 2; i++)
            ck_assert_int_eq(backend_null.slot_open(backend, i, &slot), 0);
        struct backend_row_set other = {
            .slot = 1, .position = 2, .n_ids = 1, .ids = prompt, .output = BACKEND_SAMPLE_LAST};
        int32_t id = step(backend, &prefill).ids[0];
        ck_assert_int_eq(step(backend, &other).ids[0], id);
        ck_assert(id >= ' ' && id <= '~');
        other.position = 3;
        different += step(backend, &other).ids[0] != id;
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
    ck_assert_int_eq(backend_null.slot_open(backend, 0, &slot), 0);
    int32_t first = step(backend, &prefill).ids[0];
    ck_assert_int_eq(step(backend, &prefill).end, BACKEND_RUNNING);
    backend_null.slot_close(backend, 0);
    slot.end_position = 4;
    ck_assert_int_eq(backend_null.slot_open(backend, 0, &slot), 0);
    ck_assert_int_eq(step(backend, &prefill).end, BACKEND_END_LENGTH);
    backend_null.slot_close(backend, 0);
    slot.stop_ids = &first;
    slot.n_stop_ids = 1;
    ck_assert_int_eq(backend_null.slot_open(backend, 0, &slot), 0);
    ck_assert_int_eq(step(backend, &prefill).end, BACKEND_END_STOP);
    backend_null.close(backend);
}
END_TEST

START_TEST(a_mask_is_obeyed_and_an_empty_one_is_a_fault)
{
    struct backend *backend = open_null();
    const struct backend_slot slot = {.end_position = 100};
    ck_assert_int_eq(backend_null.slot_open(backend, 0, &slot), 0);
    uint32_t allowed[(FAKE_VOCAB + 31) / 32] = {0};
    struct backend_row_set set = prefill;
    set.allowed = allowed;
    ck_assert_int_eq(step(backend, &set).end, BACKEND_END_FAULT);
    allowed['x' / 32] = 1u << ('x' % 32);
    ck_assert_int_eq(step(backend, &set).ids[0], 'x');
    allowed['x' / 32] = 0;
    allowed[0] = 1u << 3; /* not printable, but all there is */
    ck_assert_int_eq(step(backend, &set).ids[0], 3);
    backend_null.close(backend);
}
END_TEST

START_TEST(outputs_are_as_asked)
{
    struct backend *backend = open_null();
    const struct backend_slot slot = {.end_position = 100, .n_logprobs = 3};
    ck_assert_int_eq(backend_null.slot_open(backend, 0, &slot), 0);
    struct backend_row_set set = prefill;
    set.output = BACKEND_OUTPUT_NONE;
    ck_assert_uint_eq(step(backend, &set).n_ids, 0);
    set.output = BACKEND_SAMPLE_ALL;
    struct backend_result all = step(backend, &set);
    ck_assert_uint_eq(all.n_ids, 3);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(all.logprobs[3 * i].id, all.ids[i]);
        ck_assert(all.logprobs[3 * i].logprob > all.logprobs[3 * i + 1].logprob);
    }
    float logits[FAKE_VOCAB];
    int32_t last = all.ids[2];
    set.output = BACKEND_LOGITS_LAST;
    set.logits = logits;
    step(backend, &set);
    ck_assert(logits[last] == 1 && logits[0] == 0);
    backend_null.close(backend);
}
END_TEST

START_TEST(a_step_too_large_and_a_ticket_unknown_are_errors)
{
    struct backend *backend = open_null();
    const struct backend_slot slot = {.end_position = 100};
    ck_assert_int_eq(backend_null.slot_open(backend, 0, &slot), 0);
    int32_t many[17] = {0};
    const struct backend_row_set set = {.n_ids = 17, .ids = many};
    const struct backend_step large = {&set, 1};
    const struct backend_result *results;
    uint64_t ticket;
    ck_assert_int_eq(backend_null.submit(backend, &large, &ticket), -E2BIG);
    ck_assert_int_eq(backend_null.poll(backend, 1, 0, &results, NULL), -EINVAL);
    backend_null.close(backend);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, the_same_seed_and_position_give_the_same_printable_id_in_any_slot);
    tcase_add_test(tests, stop_ids_and_lengths_are_tested);
    tcase_add_test(tests, a_mask_is_obeyed_and_an_empty_one_is_a_fault);
    tcase_add_test(tests, outputs_are_as_asked);
    tcase_add_test(tests, a_step_too_large_and_a_ticket_unknown_are_errors);
}

int main(void)
{
    return run_tests("null_backend", add);
}
