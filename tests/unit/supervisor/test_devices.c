/* SPDX-License-Identifier: MIT */
/* A pool that was told no number of workers, and a program that counts devices for it. */

#include "supervisor/children/devices.h"
#include "tests/unit/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"

static char folder[] = "/tmp/quern-test-XXXXXX", program[64], asked[64];

static void make_folder(void)
{
    strcpy(folder, "/tmp/quern-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(program, sizeof program, "%s/worker", folder);
    snprintf(asked, sizeof asked, "%s/asked", folder);
}

static void remove_folder(void)
{
    unlink(program);
    unlink(asked);
    rmdir(folder);
}

/* A program of these lines, which leaves its arguments in the file `asked`. */
static void write_program(const char *lines)
{
    FILE *file = fopen(program, "we");
    ck_assert_ptr_nonnull(file);
    fprintf(file, "#!/bin/sh\necho \"$@\" >%s\n%s\n", asked, lines);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(chmod(program, 0700), 0);
}

static uint32_t workers(const char *device, uint32_t given, int signal_fd)
{
    static struct options options;
    options = (struct options){.model = "-x.gguf", .workers = given};
    snprintf(options.device, sizeof options.device, "%s", device);
    const uint32_t n = devices_workers(&options, program, signal_fd);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1); /* nobody is left */
    return n;
}

START_TEST(there_is_a_worker_for_each_device)
{
    char words[256] = "";
    write_program("echo 3");
    ck_assert_uint_eq(workers("cuda", 0, -1), 3);
    FILE *file = fopen(asked, "re");
    ck_assert_ptr_nonnull(fgets(words, sizeof words, file));
    fclose(file);
    ck_assert_str_eq(words, "--count-devices --device cuda -- -x.gguf\n");
    ck_assert_uint_eq(workers("auto", 0, -1), 3);
}
END_TEST

START_TEST(what_was_asked_for_and_the_processor_are_not_counted)
{
    write_program("echo 3");
    ck_assert_uint_eq(workers("cuda", 2, -1), 2);
    ck_assert_uint_eq(workers("cpu", 0, -1), 1);
    ck_assert_uint_eq(workers("null", 0, -1), 1);
    ck_assert_int_ne(access(asked, F_OK), 0);
}
END_TEST

START_TEST(whoever_cannot_say_a_number_is_one_worker)
{
    static const char *const lines[] = {"echo 0", "exit 1",  "echo 3; exit 1", "echo 3; echo no",
                                        "",       "echo -1", "kill -9 $$",     "echo 3; kill -9 $$"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        write_program(lines[i]);
        ck_assert_msg(workers("cuda", 0, -1) == 1, "%s", lines[i]);
    }
    strcat(program, "-not-there");
    ck_assert_uint_eq(workers("cuda", 0, -1), 1);
}
END_TEST

START_TEST(a_driver_may_talk_before_the_number)
{
    write_program("echo of 7 >&2; i=0; while [ $i -lt 300 ]; do echo 'a warning of the driver, at length'; "
                  "i=$((i + 1)); done; echo 5");
    ck_assert_uint_eq(workers("cuda", 0, -1), 5);
}
END_TEST

START_TEST(a_pool_has_so_many_workers_at_most)
{
    write_program("echo 64");
    ck_assert_uint_eq(workers("cuda", 0, -1), 64);
    write_program("echo 65");
    ck_assert_uint_eq(workers("cuda", 0, -1), 64);
}
END_TEST

START_TEST(a_signal_ends_the_wait)
{
    const uint64_t start = clock_ns();
    int fd = eventfd(1, EFD_CLOEXEC); /* can be read, as a signalfd with a signal */
    write_program("exec sleep 50");
    ck_assert_uint_eq(workers("cuda", 0, fd), 1);
    ck_assert(clock_ns() - start < 30 * CLOCK_NS_PER_S);
    close(fd);
}
END_TEST

/* All is said, and it stays. */
START_TEST(a_driver_that_does_not_let_go_is_not_waited_for)
{
    const uint64_t start = clock_ns();
    write_program("echo 3; exec sleep 50 >&- 2>&-");
    ck_assert_uint_eq(workers("cuda", 0, -1), 1);
    ck_assert(clock_ns() - start < 30 * CLOCK_NS_PER_S);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, make_folder, remove_folder);
    tcase_add_test(tests, there_is_a_worker_for_each_device);
    tcase_add_test(tests, what_was_asked_for_and_the_processor_are_not_counted);
    tcase_add_test(tests, whoever_cannot_say_a_number_is_one_worker);
    tcase_add_test(tests, a_driver_may_talk_before_the_number);
    tcase_add_test(tests, a_pool_has_so_many_workers_at_most);
    tcase_add_test(tests, a_signal_ends_the_wait);
    tcase_add_test(tests, a_driver_that_does_not_let_go_is_not_waited_for);
}

int main(void)
{
    return run_tests("supervisor/devices", add);
}
