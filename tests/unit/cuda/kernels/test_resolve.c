/* SPDX-License-Identifier: MIT */
/* What the host described becomes rows, on a device that knows more than the host. */

#include "cuda/kernels/kernels.h"
#include "tests/unit/cuda/device.h"
#include "engine/backend/backend.h"

#define N_SLOTS    6
#define TABLE_SIZE 8
#define MAX_ROWS   64

static struct slots slots;
static struct step_memory memory;
static struct step_set *sets;

static void set_up(void)
{
    open_device();
    slots = (struct slots){.n_slots = N_SLOTS, .table_size = TABLE_SIZE, .n_groups = 1};
    slots.states = take(N_SLOTS, sizeof *slots.states);
    slots.tables = take(N_SLOTS * TABLE_SIZE, sizeof *slots.tables);
    memory = (struct step_memory){.max_rows = MAX_ROWS, .max_blocks = MAX_ROWS};
    memory.step = take(1, sizeof *memory.step);
    memory.sets = sets = take(MAX_ROWS, sizeof *memory.sets);
    memory.ids = take(MAX_ROWS, sizeof *memory.ids);
    memory.blocks = take(MAX_ROWS, sizeof *memory.blocks);
    memory.rows = take(MAX_ROWS, sizeof *memory.rows);
    memory.outputs = take(MAX_ROWS, sizeof *memory.outputs);
    for (uint32_t i = 0; i < N_SLOTS; i++)
        slots.states[i] = (struct slot_state){.position = 10 * i, .last_id = 100 + (int32_t)i};
    for (uint32_t i = 0; i < MAX_ROWS; i++) {
        memory.ids[i] = 1000 + (int32_t)i;
        memory.blocks[i] = 50 + i;
        memory.outputs[i] = memory.rows[i].position = 77;
    }
    memset(slots.tables, 0xff, N_SLOTS * TABLE_SIZE * sizeof *slots.tables);
}

static void add_set(uint32_t slot, uint32_t n_rows, bool from_slot, enum backend_output output)
{
    struct step *step = memory.step;
    uint32_t n_outputs = output == BACKEND_OUTPUT_NONE                                  ? 0
                         : output == BACKEND_SAMPLE_ALL || output == BACKEND_LOGITS_ALL ? n_rows
                                                                                        : 1;
    sets[step->n_sets++] = (struct step_set){.slot = slot,
                                             .first_row = step->n_rows,
                                             .n_rows = n_rows,
                                             .from_slot = from_slot,
                                             .output = output,
                                             .first_output = step->n_outputs};
    step->n_rows += n_rows;
    step->n_outputs += n_outputs;
}

static void resolve(uint32_t n_rows)
{
    ck_assert_int_eq(kernels_resolve(stream, &slots, &memory, n_rows), 0);
    run_queue();
}

static void assert_row(uint32_t row, uint32_t slot, uint32_t position, int32_t id, uint32_t set)
{
    const struct step_row *r = &memory.rows[row];
    ck_assert_msg(r->slot == slot && r->position == position && r->id == id && r->set == set,
                  "row %u: slot %u position %u id %d set %u", row, r->slot, r->position, r->id, r->set);
}

START_TEST(rows_with_ids_begin_where_the_slot_stands)
{
    set_up();
    add_set(2, 3, false, BACKEND_OUTPUT_NONE);
    add_set(0, 1, false, BACKEND_SAMPLE_LAST);
    resolve(4);
    for (uint32_t i = 0; i < 3; i++)
        assert_row(i, 2, 20 + i, 1000 + (int32_t)i, 0);
    assert_row(3, 0, 0, 1003, 1);
    ck_assert_uint_eq(memory.outputs[0], 3);
    close_device();
}
END_TEST

START_TEST(a_row_from_its_slot_takes_position_and_last_id_there)
{
    set_up();
    add_set(5, 1, true, BACKEND_SAMPLE_LAST);
    add_set(3, 1, true, BACKEND_LOGITS_LAST);
    resolve(2);
    assert_row(0, 5, 50, 105, 0);
    assert_row(1, 3, 30, 103, 1);
    ck_assert_uint_eq(memory.outputs[0], 0);
    ck_assert_uint_eq(memory.outputs[1], 1);
    close_device();
}
END_TEST

START_TEST(outputs_are_the_last_row_or_all_of_them)
{
    static const uint32_t expected[] = {2, 3, 4, 5, 8, 9, 10};
    set_up();
    add_set(0, 3, false, BACKEND_SAMPLE_LAST);
    add_set(1, 3, false, BACKEND_SAMPLE_ALL);
    add_set(2, 2, false, BACKEND_OUTPUT_NONE);
    add_set(3, 1, false, BACKEND_LOGITS_LAST);
    add_set(4, 2, false, BACKEND_LOGITS_ALL);
    resolve(32);
    for (uint32_t i = 0; i < 7; i++)
        ck_assert_uint_eq(memory.outputs[i], expected[i]);
    close_device();
}
END_TEST

START_TEST(padding_is_dead_and_its_outputs_are_row_0)
{
    set_up();
    add_set(1, 2, false, BACKEND_SAMPLE_LAST);
    resolve(40);
    for (uint32_t i = 2; i < 40; i++)
        ck_assert_uint_eq(memory.rows[i].position, ROW_DEAD);
    for (uint32_t i = 1; i < 40; i++)
        ck_assert_uint_eq(memory.outputs[i], 0);
    ck_assert_uint_eq(memory.rows[40].position, 77); /* no further than asked */
    ck_assert_uint_eq(memory.outputs[40], 77);
    close_device();
}
END_TEST

START_TEST(rows_of_an_ended_slot_are_dead_and_those_around_are_not)
{
    set_up();
    slots.states[1].end = BACKEND_END_STOP;
    slots.states[2].last_id = -1;
    add_set(0, 1, true, BACKEND_SAMPLE_LAST);
    add_set(1, 3, false, BACKEND_SAMPLE_ALL);
    add_set(2, 1, true, BACKEND_SAMPLE_LAST);
    add_set(3, 1, true, BACKEND_SAMPLE_LAST);
    resolve(6);
    assert_row(0, 0, 0, 100, 0);
    for (uint32_t i = 1; i < 5; i++)
        ck_assert_uint_eq(memory.rows[i].position, ROW_DEAD);
    assert_row(5, 3, 30, 103, 3);
    close_device();
}
END_TEST

START_TEST(blocks_are_appended_where_the_host_says_to_an_ended_slot_too)
{
    uint32_t expected[N_SLOTS * TABLE_SIZE];
    set_up();
    slots.states[4].end = BACKEND_END_LENGTH;
    add_set(2, 1, true, BACKEND_SAMPLE_LAST);
    add_set(4, 1, true, BACKEND_SAMPLE_LAST);
    add_set(0, 1, true, BACKEND_SAMPLE_LAST);
    sets[0].told = 3, sets[0].first_block = 0, sets[0].n_blocks = 2;
    sets[1].told = 0, sets[1].first_block = 2, sets[1].n_blocks = 8;
    memset(expected, 0xff, sizeof expected);
    expected[2 * TABLE_SIZE + 3] = 50;
    expected[2 * TABLE_SIZE + 4] = 51;
    for (uint32_t i = 0; i < 8; i++)
        expected[4 * TABLE_SIZE + i] = 52 + i;
    resolve(3);
    ck_assert_mem_eq(slots.tables, expected, sizeof expected);
    close_device();
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, rows_with_ids_begin_where_the_slot_stands);
    tcase_add_test(tests, a_row_from_its_slot_takes_position_and_last_id_there);
    tcase_add_test(tests, outputs_are_the_last_row_or_all_of_them);
    tcase_add_test(tests, padding_is_dead_and_its_outputs_are_row_0);
    tcase_add_test(tests, rows_of_an_ended_slot_are_dead_and_those_around_are_not);
    tcase_add_test(tests, blocks_are_appended_where_the_host_says_to_an_ended_slot_too);
}

int main(void)
{
    return run_tests("resolve", add);
}
