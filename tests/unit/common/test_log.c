/* SPDX-License-Identifier: MIT */
/* The log never waits for whoever should read it. */

#include "common/log.h"
#include "tests/unit/run.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int out; /* read end of the pipe that stderr is */

static void make_pipe(void)
{
    int fds[2];
    ck_assert_int_eq(pipe(fds), 0);
    ck_assert_int_ge(dup2(fds[1], STDERR_FILENO), 0);
    close(fds[1]);
    out = fds[0];
    ck_assert_int_eq(fcntl(out, F_SETFL, O_NONBLOCK), 0);
    log_init("tester");
}

/* All that is in the pipe; returns the last 4,095 bytes of it. */
static const char *drain(void)
{
    static char text[4096];
    char some[2048];
    size_t len = 0;
    for (ssize_t n; (n = read(out, some, sizeof some)) > 0;) {
        if (len + (size_t)n > sizeof text - 1) {
            size_t keep = sizeof text - 1 - (size_t)n;
            memmove(text, text + len - keep, keep);
            len = keep;
        }
        memcpy(text + len, some, (size_t)n);
        len += (size_t)n;
    }
    text[len] = 0;
    return text;
}

START_TEST(a_line_has_a_time_a_name_a_level_and_one_end)
{
    make_pipe();
    log_warn("%d lamps", 3);
    const char *line = drain();
    ck_assert_str_eq(line + strlen("HH:MM:SS.mmm"), " tester warn 3 lamps\n");
    char endless[5000];
    memset(endless, 'x', sizeof endless);
    log_warn("%.*s", (int)sizeof endless, endless);
    line = drain();
    ck_assert_uint_lt(strlen(line), 1025);
    ck_assert_ptr_eq(strchr(line, '\n'), line + strlen(line) - 1);
}
END_TEST

static int made;

static int make(void)
{
    return ++made;
}

START_TEST(what_a_debug_line_says_is_made_for_who_wants_it)
{
    make_pipe();
    log_debug("%d lamps", make());
    ck_assert(!log_wants(LOG_DEBUG));
    ck_assert_int_eq(made, 0);
    setenv("QUERN_LOG", "debug", 1);
    log_init("tester");
    log_debug("%d lamps", make());
    ck_assert(log_wants(LOG_DEBUG));
    ck_assert_ptr_nonnull(strstr(drain(), " tester debug 1 lamps\n"));
}
END_TEST

START_TEST(a_full_pipe_costs_lines_and_no_time_and_is_told_afterwards)
{
    make_pipe();
    for (int i = 0; i < 10000; i++) /* a pipe holds 64 KiB; Check's time limit is the proof */
        log_warn("line %04d that nobody reads, and that is long enough to fill the pipe", i);
    drain();
    log_warn("somebody reads again");
    const char *text = drain();
    ck_assert_ptr_nonnull(strstr(text, " dropped: stderr was not writable"));
    const char *last = strstr(text, "somebody reads again\n");
    ck_assert_ptr_nonnull(last);
    ck_assert(last > strstr(text, " dropped: stderr was not writable"));
    log_warn("told once");
    ck_assert_ptr_null(strstr(drain(), "dropped"));
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, what_a_debug_line_says_is_made_for_who_wants_it);
    tcase_add_test(tests, a_line_has_a_time_a_name_a_level_and_one_end);
    tcase_add_test(tests, a_full_pipe_costs_lines_and_no_time_and_is_told_afterwards);
}

int main(void)
{
    return run_tests("common/log", add);
}
