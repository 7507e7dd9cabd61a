/* SPDX-License-Identifier: MIT */
/* What the emulator finds: each error ends the process with the name of the kernel and of what it did. Those
 * that end do so in a child, whose stderr is read; so this holds in builds that do not fork for each test. */

#include "cuda/host/memory/memory.h"
#include "tests/unit/cuda/emu/emulator_kernels.h"
#include "tests/unit/child.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS 64

static struct device *device;
static struct device_stream *stream;
static uint32_t *pinned; /* [THREADS] */
static char said[65536]; /* by the child, on stderr */

static void open_device(void)
{
    struct error err = {0};
    ck_assert_msg(device_open(0, &device, &err) == 0, "%s", err.text);
    stream = device_stream(device);
    pinned = device_pinned(device, THREADS * sizeof *pinned);
    memset(pinned, 0, THREADS * sizeof *pinned);
}

static void close_device(void)
{
    device = device_close(device);
}

/* Runs `act` in a child with a setting of the emulator, "NAME=VALUE" or NULL; its status. */
static int run_child(void (*act)(void), char *setting)
{
    struct child child;
    if (child_begin(&child)) {
        if (setting)
            putenv(setting);
        open_device();
        act();
        close_device();
        _exit(0);
    }
    return child_end(&child, said, sizeof said);
}

static void check_death(void (*act)(void), const char *expected)
{
    int status = run_child(act, NULL);
    ck_assert_msg(status != 0, "it lives where \"%s\" was expected", expected);
    ck_assert_msg(strstr(said, expected), "\"%s\" is not in: %s", expected, said);
}

static void check_life(void (*act)(void), char *setting)
{
    int status = run_child(act, setting);
    ck_assert_msg(status == 0, "status %d: %s", status, said);
}

/* ---- threads ---- */

static void barrier_without_all(void)
{
    emulator_kernels_barrier_without_all(stream);
    device_synchronize(stream);
}

START_TEST(a_barrier_that_somebody_never_comes_to_is_an_error)
{
    check_death(barrier_without_all, "emulator: kernel barrier_without_all, block 0,0,0: threads wait for "
                                     "others that never arrive\n  threads 0 to 4: the block's barrier\n  "
                                     "threads 5 to 5: ended\n  threads 6 to 63: the block's barrier\n");
}
END_TEST

static void lanes_apart(void)
{
    emulator_kernels_lanes_apart(stream);
    device_synchronize(stream);
}

static void sums_apart(void)
{
    emulator_kernels_sums_apart(stream);
    device_synchronize(stream);
}

START_TEST(lanes_that_meet_at_different_operations_are_an_error)
{
    check_death(sums_apart, "lanes of a warp meet at different operations\n");
    ck_assert_ptr_nonnull(strstr(said, "emulator: kernel sums_apart, block 0,0,0, thread "));
    check_death(lanes_apart, "lanes of a warp meet at different operations\n");
    ck_assert_ptr_nonnull(strstr(said, "emulator: kernel lanes_apart, block 0,0,0, thread "));
}
END_TEST

static void queue_hasty_behind_another(void)
{
    emulator_kernels_grid(stream, 1);
    emulator_kernels_hasty(stream);
}

static void hasty_behind_another(void)
{
    queue_hasty_behind_another();
    device_synchronize(stream);
}

static void hasty_behind_another_in_a_graph(void)
{
    struct device_graph *graph;
    device_record(stream);
    queue_hasty_behind_another();
    device_record_end(stream, &graph);
    device_graph_launch(stream, graph);
    device_synchronize(stream);
    device_graph_free(graph);
}

/* What is no launch lets nothing by. */
static void hasty_behind_others(void)
{
    emulator_kernels_hasty(stream);
    device_fill(stream, pinned, 0, sizeof *pinned);
    emulator_kernels_hasty(stream);
    device_mark(stream, 0);
    emulator_kernels_hasty(stream);
    device_synchronize(stream);
}

START_TEST(a_kernel_that_does_not_wait_for_the_launch_before_it_is_an_error)
{
    const char *text = "emulator: kernel hasty, block 0,0,0, thread 0,0,0: it ends without simt_start";
    check_death(hasty_behind_another, text);
    check_death(hasty_behind_another_in_a_graph, text);
    check_life(hasty_behind_others, NULL);
}
END_TEST

static void too_deep(void)
{
    emulator_kernels_deep(stream, 100000, pinned);
    device_synchronize(stream);
}

static void deep_enough(void)
{
    emulator_kernels_deep(stream, 20, pinned);
    device_synchronize(stream);
    ck_assert_uint_eq(pinned[THREADS - 1], 20 * 21 / 2);
}

START_TEST(a_stack_that_overflows_is_an_error)
{
    check_life(deep_enough, NULL);
#if defined(EMU_ASAN) || defined(EMU_TSAN)
    check_death(too_deep, "stack-overflow");
#else
    check_death(too_deep, ": its stack of 128 KiB overflows\n");
    ck_assert_ptr_nonnull(strstr(said, "emulator: kernel deep, block 0,0,0, thread "));
#endif
}
END_TEST

static void without_barrier(void)
{
    emulator_kernels_neighbour(stream, false, pinned);
    device_synchronize(stream);
}

static void with_barrier(void)
{
    emulator_kernels_neighbour(stream, true, pinned);
    device_synchronize(stream);
    for (uint32_t i = 0; i < THREADS; i++)
        ck_assert_uint_eq(pinned[i], (i + 1) % THREADS);
}

START_TEST(a_missing_barrier_is_a_race)
{
    check_life(with_barrier, NULL);
    check_life(with_barrier, "QUERN_EMU_SHUFFLE=5");
#ifdef EMU_TSAN
    check_death(without_barrier, "data race");
    ck_assert_ptr_nonnull(strstr(said, "neighbour"));
#else
    check_life(without_barrier, NULL); /* not seen, and no harm to the emulator */
#endif
}
END_TEST

/* ---- memory ---- */

static void misaligned(void)
{
    emulator_kernels_misaligned(stream, pinned);
    device_synchronize(stream);
}

START_TEST(a_vector_load_that_is_not_aligned_is_an_error)
{
    check_death(misaligned, "is not aligned\n");
    ck_assert_ptr_nonnull(strstr(said, "emulator: kernel misaligned, block 0,0,0, thread "));
    ck_assert_ptr_nonnull(strstr(said, ": a load of 16 bytes from 0x"));
}
END_TEST

#ifdef EMU_ALIGNED
static void misaligned_vector(void)
{
    emulator_kernels_misaligned_access(stream, pinned, false);
    device_synchronize(stream);
}

static void misaligned_store(void)
{
    emulator_kernels_misaligned_access(stream, pinned, true);
    device_synchronize(stream);
}

START_TEST(any_access_that_is_not_aligned_is_an_error)
{
    check_death(misaligned_vector, "is not aligned\n");
    ck_assert_ptr_nonnull(strstr(said, "emulator: kernel misaligned_vector, block 0,0,0, thread "));
    ck_assert_ptr_nonnull(strstr(said, ", in ../tests/unit/cuda/emu/emulator_kernels.cc:"));
    check_death(misaligned_store, "is not aligned\n");
    ck_assert_ptr_nonnull(strstr(said, "emulator: kernel misaligned_store, block 0,0,0, thread "));
}
END_TEST
#endif

static void too_much_shared(void)
{
    emulator_kernels_shared(stream, device_properties(device)->shared_bytes + 1);
}

static void enough_shared(void)
{
    emulator_kernels_shared(stream, device_properties(device)->shared_bytes);
    device_synchronize(stream);
}

START_TEST(more_shared_memory_than_there_is_is_an_error)
{
    check_life(enough_shared, NULL);
    check_death(
        too_much_shared,
        "emulator: kernel shared requests 101377 bytes of shared memory; a block has at most 101376\n");
}
END_TEST

static void behind_shared(void)
{
    emulator_kernels_behind_shared(stream);
    device_synchronize(stream);
}

START_TEST(shared_memory_ends_where_it_was_asked_for)
{
#ifdef EMU_ASAN
    check_death(behind_shared, "use-after-poison");
    ck_assert_ptr_nonnull(strstr(said, "behind_shared"));
#else
    check_death(behind_shared, "emulator: kernel behind_shared, block 0,0,0: it wrote past the end of its 64 "
                               "bytes of shared memory\n");
#endif
}
END_TEST

static void empty_grid(void)
{
    emulator_kernels_grid(stream, 0);
}

static void high_grid(void)
{
    emulator_kernels_grid(stream, 65536);
}

START_TEST(a_grid_that_no_gpu_has_is_an_error)
{
    check_death(empty_grid, "emulator: kernel grid: invalid grid 1,0,1\n");
    check_death(high_grid, "emulator: kernel grid: invalid grid 1,65536,1\n");
}
END_TEST

static void copy_from_elsewhere(void)
{
    uint32_t elsewhere = 1;
    device_copy(stream, pinned, &elsewhere, sizeof elsewhere);
    device_synchronize(stream);
}

static void copy_too_much(void)
{
    void *memory = device_alloc(device, THREADS * sizeof *pinned + 1);
    device_copy(stream, memory, pinned, THREADS * sizeof *pinned + 1);
    device_synchronize(stream);
}

static void free_twice(void)
{
    void *memory = device_alloc(device, 1);
    device_free(device, memory);
    device_free(device, memory);
}

/* The backend's memory, too. */
static void copy_behind_the_backend(void)
{
    struct device_memory memory = {.device = device};
    void *taken = device_memory_take(&memory, 100);
    ck_assert_uint_eq(device_counts(device).bytes, memory.bytes);
    device_copy(stream, taken, pinned, 100);
    device_synchronize(stream);
    device_copy(stream, taken, pinned, 101);
    device_synchronize(stream);
}

START_TEST(copies_stay_within_what_was_allocated)
{
    check_death(copy_from_elsewhere, "emulator: the source of a copy, 4 bytes at 0x");
    check_death(copy_too_much, "emulator: the source of a copy, 257 bytes at 0x");
    check_death(copy_behind_the_backend, "emulator: the target of a copy, 101 bytes at 0x");
    check_death(free_twice, " is freed but was not allocated\n");
}
END_TEST

#ifdef EMU_ASAN
static void host_looks(void)
{
    volatile uint32_t *memory = device_alloc(device, sizeof *memory);
    pinned[0] = memory[0];
}

static void kernel_reads_too_far(void)
{
    uint32_t *memory = device_alloc(device, 3 * sizeof *memory);
    emulator_kernels_read(stream, memory, 3, pinned);
    device_synchronize(stream);
}

static void kernel_reads_behind_the_backend(void)
{
    struct device_memory memory = {.device = device};
    uint32_t *taken = device_memory_take_zeroed(&memory, 3 * sizeof *taken);
    emulator_kernels_read(stream, taken, 3, pinned);
    device_synchronize(stream);
}

static void kernel_reads_what_is_freed(void)
{
    uint32_t *memory = device_alloc(device, sizeof *memory);
    emulator_kernels_read(stream, memory, 0, pinned);
    device_free(device, memory);
    device_synchronize(stream);
}

START_TEST(device_memory_is_for_work_on_the_device_alone)
{
    check_death(host_looks, "use-after-poison");
    check_death(kernel_reads_too_far, "heap-buffer-overflow");
    check_death(kernel_reads_behind_the_backend, "heap-buffer-overflow");
    check_death(kernel_reads_what_is_freed, "heap-use-after-free");
}
END_TEST
#endif

/* ---- what a GPU does not promise ---- */

static void fresh_is_255(void)
{
    emulator_kernels_fresh(stream, pinned);
    device_synchronize(stream);
    ck_assert_uint_eq(pinned[0], UINT32_MAX);
}

START_TEST(fresh_memory_is_full_of_the_byte_that_was_asked_for)
{
    check_life(fresh_is_255, "QUERN_EMU_FILL=255");
}
END_TEST

static bool threads_ran_in_order(void)
{
    uint32_t *count = device_pinned(device, sizeof *count), in_order = 0, sum = 0;
    *count = 0;
    emulator_kernels_turns(stream, count, pinned);
    device_synchronize(stream);
    for (uint32_t i = 0; i < THREADS; i++) {
        in_order += pinned[i] == i;
        sum += pinned[i];
    }
    ck_assert_uint_eq(sum, THREADS * (THREADS - 1) / 2);
    return in_order == THREADS;
}

static void in_order(void)
{
    ck_assert(threads_ran_in_order());
}

static void out_of_order(void)
{
    ck_assert(!threads_ran_in_order());
}

START_TEST(a_seed_changes_the_order_in_which_threads_run)
{
    check_life(in_order, "QUERN_EMU_SHUFFLE=0");
    check_life(out_of_order, "QUERN_EMU_SHUFFLE=1");
}
END_TEST

/* Of 64 launches, in how many the first of 8 warps came before the last. */
static uint32_t first_was_first(void)
{
    uint32_t *count = device_pinned(device, sizeof *count), n = 0;
    for (int i = 0; i < 64; i++) {
        *count = 0;
        emulator_kernels_warps_after_a_sum(stream, count, pinned);
        device_synchronize(stream);
        n += pinned[0] < pinned[7];
    }
    return n;
}

static void warps_in_order(void)
{
    ck_assert_uint_eq(first_was_first(), 64);
}

static void warps_out_of_order(void)
{
    const uint32_t n = first_was_first();
    ck_assert_msg(n > 16 && n < 48, "%u of 64", n);
}

/* Else a kernel in which a warp must come after another would pass in every order that is tried. */
START_TEST(a_seed_puts_no_warp_before_another)
{
    check_life(warps_in_order, "QUERN_EMU_SHUFFLE=0");
    check_life(warps_out_of_order, "QUERN_EMU_SHUFFLE=1");
}
END_TEST

/* Work is queued many times: how often the host saw it done before it asked, and how often it had to ask. */
static void pieces(void)
{
    uint32_t early = 0, asked = 0, *memory = device_alloc(device, sizeof *memory);
    bool random = strcmp(getenv("QUERN_EMU_SHUFFLE"), "0") != 0;
    for (uint32_t i = 1; i <= 100; i++) {
        pinned[0] = i;
        device_copy(stream, memory, pinned, sizeof *pinned);
        device_copy(stream, pinned + 1, memory, sizeof *pinned);
        device_mark(stream, 0);
        early += pinned[1] == i;
        for (int r; (r = device_query(stream, 0)) != 0; asked++)
            ck_assert_int_eq(r, -EAGAIN);
        ck_assert_uint_eq(pinned[1], i);
    }
    if (random)
        ck_assert_msg(early > 0 && early < 100, "%u", early);
    else
        ck_assert_msg(early == 0 && asked == 200, "%u, %u", early, asked);
}

START_TEST(the_queue_runs_in_pieces_that_a_seed_decides)
{
    check_life(pieces, "QUERN_EMU_SHUFFLE=0");
    check_life(pieces, "QUERN_EMU_SHUFFLE=1");
}
END_TEST

static void profile(void)
{
    emulator_kernels_shared(stream, 0);
    with_barrier();
}

START_TEST(a_profile_counts_launches_and_blocks)
{
    check_life(profile, "QUERN_EMU_PROFILE=1");
    ck_assert_str_eq(said, "kernel                         launches       blocks   bytes streamed\n"
                           "shared                                1            1                0\n"
                           "neighbour                             1            3                0\n");
    check_life(profile, "QUERN_EMU_PROFILE=0");
    ck_assert_str_eq(said, "");
}
END_TEST

START_TEST(there_are_as_many_devices_as_it_is_told)
{
    struct error err = {0};
    struct device *devices[3], *beyond;
    uint32_t n;
    ck_assert(device_count(&n, &err) == 0 && n == 1);
    setenv("QUERN_EMU_DEVICES", "3", 1);
    ck_assert(device_count(&n, &err) == 0 && n == 3);
    for (uint32_t i = 0; i < n; i++)
        ck_assert_msg(device_open(i, &devices[i], &err) == 0, "%s", err.text);
    ck_assert_int_eq(device_open(n, &beyond, &err), -ENODEV);
    ck_assert_str_eq(err.text, "there is no emulated device 3: there are 3");
    void *memory = device_alloc(devices[1], 4096); /* each has its own */
    ck_assert_ptr_nonnull(memory);
    ck_assert_uint_eq(device_counts(devices[1]).bytes, device_taken(4096));
    ck_assert_uint_eq(device_counts(devices[0]).bytes + device_counts(devices[2]).bytes, 0);
    for (uint32_t i = 0; i < n; i++)
        device_close(devices[i]);
    setenv("QUERN_EMU_DEVICES", "0", 1);
    ck_assert_int_eq(device_count(&n, &err), -ENODEV);
    ck_assert_int_eq(device_open(0, &beyond, &err), -ENODEV);
    ck_assert_str_eq(err.text, "no emulated devices");
    unsetenv("QUERN_EMU_DEVICES");
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_barrier_that_somebody_never_comes_to_is_an_error);
    tcase_add_test(tests, lanes_that_meet_at_different_operations_are_an_error);
    tcase_add_test(tests, a_kernel_that_does_not_wait_for_the_launch_before_it_is_an_error);
    tcase_add_test(tests, a_stack_that_overflows_is_an_error);
    tcase_add_test(tests, a_missing_barrier_is_a_race);
    tcase_add_test(tests, a_vector_load_that_is_not_aligned_is_an_error);
#ifdef EMU_ALIGNED
    tcase_add_test(tests, any_access_that_is_not_aligned_is_an_error);
#endif
    tcase_add_test(tests, more_shared_memory_than_there_is_is_an_error);
    tcase_add_test(tests, shared_memory_ends_where_it_was_asked_for);
    tcase_add_test(tests, a_grid_that_no_gpu_has_is_an_error);
    tcase_add_test(tests, copies_stay_within_what_was_allocated);
#ifdef EMU_ASAN
    tcase_add_test(tests, device_memory_is_for_work_on_the_device_alone);
#endif
    tcase_add_test(tests, fresh_memory_is_full_of_the_byte_that_was_asked_for);
    tcase_add_test(tests, a_seed_changes_the_order_in_which_threads_run);
    tcase_add_test(tests, a_seed_puts_no_warp_before_another);
    tcase_add_test(tests, the_queue_runs_in_pieces_that_a_seed_decides);
    tcase_add_test(tests, a_profile_counts_launches_and_blocks);
    tcase_add_test(tests, there_are_as_many_devices_as_it_is_told);
}

int main(void)
{
    unsetenv("QUERN_EMU_SHUFFLE");
    unsetenv("QUERN_EMU_FILL");
    unsetenv("QUERN_EMU_PROFILE");
    return run_tests("emulator", add);
}
