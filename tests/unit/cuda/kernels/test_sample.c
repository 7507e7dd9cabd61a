/* SPDX-License-Identifier: MIT */
/* What the end of a step promises, one by one: ends, drafts, faults, rows that are not sampled, the mailbox.
 */

#include "tests/unit/cuda/kernels/sample_rig.h"

static void fill_ramp(const struct step_set *set, uint32_t nth, uint32_t best)
{
    for (uint32_t i = 0; i < n_vocab; i++)
        logits_of(set, nth)[i] = i == best ? 5 : -0.01f * (float)i;
}

START_TEST(a_stop_id_or_the_length_ends_a_sequence_once)
{
    set_up(64);
    for (uint32_t slot = 0; slot < 3; slot++)
        open_slot(slot)->end_position = slot == 1 ? 12 : 13;
    slots.states[0].n_stop_ids = 100;
    slots.stop_ids[97] = 7;
    for (uint32_t i = 0; i < 3; i++) {
        begin_step();
        for (uint32_t slot = 0; slot < 3; slot++) {
            struct step_set *set = add_set(slot, 1, BACKEND_SAMPLE_LAST);
            set->from_slot = 1;
            fill_ramp(set, 0, 7);
        }
        run_step(3);
    }
    ck_assert_uint_eq(slots.states[0].end, BACKEND_END_STOP);
    ck_assert_uint_eq(slots.states[0].position, 11);
    ck_assert_uint_eq(slots.states[1].end, BACKEND_END_LENGTH);
    ck_assert_uint_eq(slots.states[1].position, 11);
    ck_assert_uint_eq(slots.states[2].end, BACKEND_END_LENGTH);
    ck_assert_uint_eq(slots.states[2].position, 12);
    close_device();
}
END_TEST

START_TEST(a_right_draft_is_accepted_up_to_the_first_wrong_id)
{
    set_up(64);
    open_slot(0);
    begin_step();
    struct step_set *set = add_set(0, 4, BACKEND_SAMPLE_ALL);
    for (uint32_t i = 0; i < 4; i++) {
        fill_ramp(set, i, 20 + i);
        memory.ids[i] = i == 3 ? 50 : 19 + (int32_t)i;
    }
    run_step(8);
    const struct set_result *result = &mailboxes[1].sets[0];
    ck_assert_uint_eq(result->n_ids, 3);
    ck_assert_uint_eq(result->n_accepted, 2);
    ck_assert_uint_eq(slots.states[0].position, 13);
    ck_assert_int_eq(slots.states[0].last_id, 22);
    close_device();
}
END_TEST

/* 5, 3, 1, then below id 0's 0: each time that the draft has it, id 20 is less likely. */
START_TEST(ids_of_a_draft_count_as_used)
{
    set_up(64);
    struct slot_state *state = open_slot(0);
    state->keeps_uses = 1;
    state->frequency_penalty = 2;
    begin_step();
    struct step_set *set = add_set(0, 6, BACKEND_SAMPLE_ALL);
    for (uint32_t i = 0; i < 6; i++) {
        fill_ramp(set, i, 20);
        memory.ids[i] = 20;
    }
    run_step(6);
    ck_assert_uint_eq(mailboxes[1].sets[0].n_accepted, 3);
    ck_assert_int_eq(mailboxes[1].ids[3], 0);
    ck_assert_uint_eq(slots.uses[20].in_output, 3);
    close_device();
}
END_TEST

START_TEST(a_row_without_a_finite_logit_is_a_fault_of_its_own)
{
    set_up(64);
    for (uint32_t slot = 0; slot < 3; slot++)
        open_slot(slot)->temperature = slot == 1 ? 0 : 1;
    begin_step();
    for (uint32_t slot = 0; slot < 3; slot++) {
        struct step_set *set = add_set(slot, 1, BACKEND_SAMPLE_LAST);
        fill_ramp(set, 0, 9);
        for (uint32_t i = 0; slot == 0 && i < n_vocab; i++)
            logits_of(set, 0)[i] = i % 2 ? NAN : INFINITY;
        if (slot == 1)
            memset(add_masks(set, 1), 0, n_words * sizeof(uint32_t));
    }
    run_step(3);
    ck_assert_uint_eq(slots.states[0].end, BACKEND_END_FAULT);
    ck_assert_uint_eq(slots.states[1].end, BACKEND_END_FAULT);
    ck_assert_uint_eq(slots.states[2].end, BACKEND_RUNNING);
    close_device();
}
END_TEST

START_TEST(sets_that_sample_nothing_move_and_forget_the_last_id)
{
    set_up(64);
    for (uint32_t slot = 0; slot < 4; slot++)
        open_slot(slot);
    begin_step();
    add_set(0, 5, BACKEND_OUTPUT_NONE);
    add_set(1, 3, BACKEND_LOGITS_ALL);
    fill_ramp(add_set(2, 2, BACKEND_SAMPLE_LAST), 0, 11);
    add_set(3, 1, BACKEND_LOGITS_LAST);
    run_step(16);
    ck_assert_uint_eq(slots.states[0].position, 15);
    ck_assert_int_eq(slots.states[1].last_id, -1);
    ck_assert_int_eq(slots.states[2].last_id, 11);
    begin_step();
    add_set(0, 5, BACKEND_OUTPUT_NONE); /* no output at all */
    run_step(0);
    ck_assert_uint_eq(slots.states[0].position, 20);
    close_device();
}
END_TEST

START_TEST(surplus_rows_leave_their_slot_as_it_is)
{
    set_up(64);
    open_slot(0)->end = BACKEND_END_STOP;
    open_slot(1);
    begin_step();
    for (uint32_t slot = 0; slot < 2; slot++) {
        struct step_set *set = add_set(slot, 1, BACKEND_SAMPLE_LAST);
        set->from_slot = 1;
        fill_ramp(set, 0, 30);
    }
    struct slot_state before = slots.states[0];
    run_step(8);
    ck_assert_mem_eq(&slots.states[0], &before, sizeof before);
    ck_assert_uint_eq(mailboxes[1].sets[0].n_ids, 0);
    ck_assert_uint_eq(mailboxes[1].sets[0].end, BACKEND_END_STOP);
    close_device();
}
END_TEST

START_TEST(results_go_into_the_steps_own_mailbox)
{
    set_up(64);
    open_slot(0);
    for (uint32_t i = 1; i <= 2 * MAILBOXES; i++) {
        begin_step();
        fill_ramp(add_set(0, 1, BACKEND_SAMPLE_LAST), 0, i);
        run_step(1);
        for (uint32_t j = 0; j < MAILBOXES; j++)
            if (j != i % MAILBOXES)
                ck_assert_uint_lt(*mailboxes[j].number, i);
    }
    ck_assert_int_eq(mailboxes[1].ids[0], MAILBOXES + 1);
    ck_assert_int_eq(mailboxes[2].ids[0], MAILBOXES + 2);
    close_device();
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_stop_id_or_the_length_ends_a_sequence_once);
    tcase_add_test(tests, a_right_draft_is_accepted_up_to_the_first_wrong_id);
    tcase_add_test(tests, ids_of_a_draft_count_as_used);
    tcase_add_test(tests, a_row_without_a_finite_logit_is_a_fault_of_its_own);
    tcase_add_test(tests, sets_that_sample_nothing_move_and_forget_the_last_id);
    tcase_add_test(tests, surplus_rows_leave_their_slot_as_it_is);
    tcase_add_test(tests, results_go_into_the_steps_own_mailbox);
}

int main(void)
{
    return run_tests("sample", add);
}
