/* SPDX-License-Identifier: MIT */
#include "proto/board.h"
#include "tests/unit/child.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/system/shm.h"

static int fd;
static struct board_slot *slot;

static void setup(void)
{
    ck_assert_int_eq(board_create(&fd, &slot), 0);
}

static void teardown(void)
{
    slot = board_unmap(slot);
    close(fd);
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

/* ---- whose it is ---- */

START_TEST(a_slot_that_does_not_fit_is_refused)
{
    struct board_slot *mapped = slot;
    int small;
    ck_assert_int_eq(shm_create("small", sizeof *slot - 1, &small), 0);
    ck_assert_int_eq(board_map(small, &mapped), -EINVAL);
    ck_assert_int_eq(board_map(-1, &mapped), -EBADF);
    slot->version++;
    ck_assert_int_eq(board_map(fd, &mapped), -EINVAL);
    slot->version--;
    slot->magic++;
    ck_assert_int_eq(board_map(fd, &mapped), -EINVAL);
    slot->magic--;
    ck_assert_ptr_eq(mapped, slot);
    ck_assert_int_eq(board_map(fd, &mapped), 0);
    atomic_store(&mapped->layers, 3);
    ck_assert_uint_eq(atomic_load(&slot->layers), 3);
    ck_assert_ptr_null(board_unmap(mapped));
    ck_assert_ptr_null(board_unmap(NULL));
    close(small);
}
END_TEST

START_TEST(what_a_worker_made_of_its_version_keeps_neither_readers_nor_the_next_worker_away)
{
    const struct board_slot *read;
    struct board_slot *mapped;
    const struct board_snapshot snapshot = {.pid = 5};
    struct board_snapshot seen;
    board_write(slot, &snapshot);
    slot->magic = slot->version = UINT32_MAX;
    ck_assert_int_eq(board_map_readonly(fd, &read), 0);
    ck_assert_int_eq(board_read(read, &seen), 0);
    ck_assert_uint_eq(seen.pid, 5);
    board_reset(slot);
    ck_assert_int_eq(board_map(fd, &mapped), 0);
    board_unmap(mapped);
    board_unmap(read);
}
END_TEST

START_TEST(nobody_can_resize_a_slot_or_seal_it_against_others)
{
    struct board_slot *mapped;
    ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
    ck_assert_int_eq(ftruncate(fd, 0), -1);
    ck_assert_int_eq(ftruncate(fd, 2 * sizeof *slot), -1);
    ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), -1);
    ck_assert_int_eq(board_map(fd, &mapped), 0);
    board_unmap(mapped);
}
END_TEST

/* What a process can do that was taken over and has a mapping of its slot: the page behind it is asked for in
 * the way that seccomp leaves to a worker, or in another. */
static void reach_out(bool remap)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *memory = mremap(slot, page, 2 * page, MREMAP_MAYMOVE);
    if (memory == MAP_FAILED)
        _exit(EXIT_FAILURE);
    if (remap && remap_file_pages(memory, page, 0, 1, 0) < 0)
        _exit(EXIT_FAILURE);
    memset(remap ? memory : memory + page, 0xff, page);
    _exit(EXIT_SUCCESS);
}

START_TEST(a_mapping_of_one_slot_cannot_reach_another)
{
    struct board_slot *others[4];
    int fds[4], status;
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(board_create(&fds[i], &others[i]), 0);
    const struct board_slot before = *others[0];
    for (int remap = 0; remap < 2; remap++) {
        pid_t child = fork_child();
        if (child == 0) {
            signal(SIGBUS, SIG_DFL);
            reach_out(remap);
        }
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS, "status %x", (unsigned)status);
    }
    for (int i = 0; i < 4; i++) {
        ck_assert_mem_eq(others[i], &before, sizeof before);
        board_unmap(others[i]);
        close(fds[i]);
    }
}
END_TEST

/* ---- what stands there ---- */

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
    struct writing writing = {.slot = slot};
    struct board_snapshot first = uniform(1), seen;
    board_write(slot, &first);
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, write_for_ever, &writing), 0);
    int good = 0;
    for (int i = 0; i < 20000 || good == 0; i++) { /* the writer may have no core while it writes */
        if (board_read(slot, &seen) == 0) {
            ck_assert(is_uniform(&seen));
            good++;
        }
    }
    atomic_store(&writing.stop, true);
    pthread_join(thread, NULL);
}
END_TEST

START_TEST(a_writer_killed_in_between_does_not_hang_its_readers)
{
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
    tcase_add_test(tests, a_slot_that_does_not_fit_is_refused);
    tcase_add_test(tests, what_a_worker_made_of_its_version_keeps_neither_readers_nor_the_next_worker_away);
    tcase_add_test(tests, nobody_can_resize_a_slot_or_seal_it_against_others);
    tcase_add_test(tests, a_mapping_of_one_slot_cannot_reach_another);
    tcase_add_test(tests, a_reader_never_sees_half_a_write);
    tcase_add_test(tests, a_writer_killed_in_between_does_not_hang_its_readers);
    tcase_add_test(tests, the_next_writer_recovers_from_an_odd_sequence);
}

int main(void)
{
    return run_tests("board", add);
}
