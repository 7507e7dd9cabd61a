/* SPDX-License-Identifier: MIT */
#include "proto/board.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct board *board;

static void setup(void)
{
    board = aligned_alloc(4096, (board_size(2) + 4095) & ~(size_t)4095);
    memset(board, 0, board_size(2));
    board_init(board, 2);
}

static void teardown(void)
{
    free(board);
}

/* A snapshot whose every field tells the same story, so that a torn one is seen. */
static struct board_snapshot uniform(uint32_t n)
{
    struct board_snapshot snapshot = {.state = n, .pid = n, .incarnation = n, .active = n, .waiting = n};
    snapshot.kv_free = snapshot.kv_total = snapshot.slots = n;
    snapshot.tokens = snapshot.cache_hits = snapshot.step_started_ns = n;
    snapshot.tokens_per_s = n;
    memset(snapshot.device, (int)('a' + n % 26), sizeof snapshot.device);
    return snapshot;
}

static bool is_uniform(const struct board_snapshot *snapshot)
{
    struct board_snapshot expected = uniform(snapshot->pid);
    return memcmp(snapshot, &expected, sizeof expected) == 0;
}

START_TEST(a_header_that_does_not_fit_is_refused)
{
    ck_assert_int_eq(board_check(board, board_size(2)), 0);
    ck_assert_int_eq(board_check(board, board_size(2) - 1), -EINVAL);
    ck_assert_int_eq(board_check(board, 100), -EINVAL);
    board->n_slots = BOARD_MAX_SLOTS + 1;
    ck_assert_int_eq(board_check(board, SIZE_MAX), -EINVAL);
    board_init(board, 2);
    board->version++;
    ck_assert_int_eq(board_check(board, board_size(2)), -EINVAL);
}
END_TEST

struct writing {
    struct board_slot *slot;
    _Atomic bool stop;
};

static void *write_for_ever(void *arg)
{
    struct writing *writing = arg;
    for (uint32_t n = 1; !atomic_load(&writing->stop); n++) {
        struct board_snapshot snapshot = uniform(n);
        board_write(writing->slot, &snapshot);
    }
    return NULL;
}

START_TEST(a_reader_never_sees_half_a_write)
{
    struct writing writing = {.slot = &board->slots[1]};
    struct board_snapshot first = uniform(1), seen;
    board_write(&board->slots[1], &first);
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, write_for_ever, &writing), 0);
    int good = 0;
    for (int i = 0; i < 20000; i++) {
        if (board_read(&board->slots[1], &seen) == 0) {
            ck_assert(is_uniform(&seen));
            good++;
        }
    }
    atomic_store(&writing.stop, true);
    pthread_join(thread, NULL);
    ck_assert_int_gt(good, 0);
    ck_assert_int_eq(board_read(&board->slots[0], &seen), 0);
    ck_assert_uint_eq(seen.pid, 0);
}
END_TEST

START_TEST(a_writer_killed_in_between_does_not_hang_its_readers)
{
    struct board_slot *slot = &board->slots[0];
    struct board_snapshot snapshot = uniform(7), seen = uniform(3);
    board_write(slot, &snapshot);
    /* What a kill between the two stores leaves behind: an odd sequence and half the words. */
    atomic_fetch_add(&slot->sequence, 1);
    slot->snapshot.pid = 8;
    ck_assert_int_eq(board_read(slot, &seen), -EAGAIN);
    ck_assert_uint_eq(seen.pid, 3);

    atomic_store(&slot->layers, 99);
    board_reset(slot);
    ck_assert_int_eq(board_read(slot, &seen), 0);
    ck_assert_uint_eq(seen.state, WORKER_ABSENT);
    ck_assert_uint_eq(seen.pid, 0);
    ck_assert_uint_eq(atomic_load(&slot->layers), 0);

    board_write(slot, &snapshot);
    ck_assert_int_eq(board_read(slot, &seen), 0);
    ck_assert_uint_eq(seen.pid, 7);
}
END_TEST

START_TEST(the_next_writer_recovers_from_an_odd_sequence)
{
    struct board_slot *slot = &board->slots[0];
    struct board_snapshot snapshot = uniform(5), seen;
    atomic_store(&slot->sequence, 41);
    board_write(slot, &snapshot);
    ck_assert_uint_eq(atomic_load(&slot->sequence) % 2, 0);
    ck_assert_int_eq(board_read(slot, &seen), 0);
    ck_assert(is_uniform(&seen));
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, a_header_that_does_not_fit_is_refused);
    tcase_add_test(tests, a_reader_never_sees_half_a_write);
    tcase_add_test(tests, a_writer_killed_in_between_does_not_hang_its_readers);
    tcase_add_test(tests, the_next_writer_recovers_from_an_odd_sequence);
}

int main(void)
{
    return run_tests("board", add);
}
