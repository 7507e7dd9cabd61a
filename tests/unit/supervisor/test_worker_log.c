/* SPDX-License-Identifier: MIT */
/* What a worker says: its last line is remembered, without the dress of a log, fit for a message. */

#include "supervisor/children/worker_log.h"
#include "tests/unit/run.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* The last log of a process that wrote this and ended. */
static const char *last_of(struct worker_log *log, const char *said)
{
    int fds[2];
    ck_assert_ptr_nonnull(freopen("/dev/null", "w", stderr)); /* where the lines before the last go */
    ck_assert_int_eq(pipe(fds), 0);
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    ck_assert_int_eq(write(fds[1], said, strlen(said)), (ssize_t)strlen(said));
    close(fds[1]);
    worker_log_open(log, fds[0]);
    worker_log_close(log, true);
    ck_assert_int_eq(log->fd, -1);
    return worker_log_last(log);
}

START_TEST(the_last_line_is_the_reason)
{
    struct worker_log log;
    ck_assert_str_eq(last_of(&log, "one\ntwo\n"), "two");
    ck_assert_str_eq(last_of(&log, "one\ntwo"), "two");
    ck_assert_str_eq(last_of(&log, "one\n\n\n"), "one");
    ck_assert_str_eq(last_of(&log, ""), "");
}
END_TEST

START_TEST(the_dress_of_a_log_line_is_taken_off)
{
    struct worker_log log;
    ck_assert_str_eq(last_of(&log, "09:41:00.123 worker-0 error m.gguf: not GGUF\n"), "m.gguf: not GGUF");
    ck_assert_str_eq(last_of(&log, "09:41:00.123 worker-0 info ready\n"), "");
    ck_assert_str_eq(last_of(&log, "09:41:00.123\n"), "09:41:00.123");
}
END_TEST

START_TEST(a_line_without_end_is_cut_and_not_lost)
{
    char said[3 * WORKER_LOG_LINE_MAX];
    struct worker_log log;
    memset(said, 'x', sizeof said - 1);
    said[sizeof said - 1] = 0;
    said[sizeof said - 2] = 'y';
    const char *last = last_of(&log, said);
    ck_assert_uint_lt(strlen(last), WORKER_LOG_LINE_MAX);
    ck_assert_int_eq(last[strlen(last) - 1], 'y');
}
END_TEST

START_TEST(what_a_terminal_would_obey_is_not_passed_on)
{
    static const char text[] = "caf\303\251 \033]0;t\007\xff\nlast \033[2J\n";
    char seen[256] = "";
    int fds[2], said[2];
    struct worker_log log;
    ck_assert_int_eq(pipe2(fds, O_NONBLOCK), 0);
    ck_assert_int_eq(pipe(said), 0);
    ck_assert_int_eq(dup2(said[1], STDERR_FILENO), STDERR_FILENO);
    ck_assert_int_eq(write(fds[1], text, sizeof text - 1), sizeof text - 1);
    close(fds[1]);
    worker_log_open(&log, fds[0]);
    worker_log_close(&log, true);
    ck_assert_int_gt(read(said[0], seen, sizeof seen - 1), 0);
    ck_assert_str_eq(seen, "caf\303\251 ?]0;t??\n");
    ck_assert_str_eq(worker_log_last(&log), "last ?[2J");
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, the_last_line_is_the_reason);
    tcase_add_test(tests, the_dress_of_a_log_line_is_taken_off);
    tcase_add_test(tests, a_line_without_end_is_cut_and_not_lost);
    tcase_add_test(tests, what_a_terminal_would_obey_is_not_passed_on);
}

int main(void)
{
    return run_tests("supervisor/worker_log", add);
}
