/* SPDX-License-Identifier: MIT */
/* Programs that check settings for a supervisor: good ones, and those that fail in their own way. */

#include "supervisor/children/check.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"

static char folder[] = "/tmp/quern-test-XXXXXX", worker[64], gateway[64];
static struct options options = {.model = "-x.gguf", .device = "cpu", .kv_type = "q9", .http = "127.0.0.1:1"};
static struct check check;
static struct error err;

static void make_folder(void)
{
    strcpy(folder, "/tmp/quern-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(worker, sizeof worker, "%s/quern-worker", folder);
    snprintf(gateway, sizeof gateway, "%s/quern-gateway", folder);
}

static void remove_folder(void)
{
    unlink(worker);
    unlink(gateway);
    rmdir(folder);
}

static void write_program(const char *path, const char *lines)
{
    FILE *file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    fprintf(file, "#!/bin/sh\n%s\n", lines);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(chmod(path, 0700), 0);
}

/* What the check finds, with a gateway if that has lines. */
static int find(const char *worker_lines, const char *gateway_lines)
{
    int r;
    write_program(worker, worker_lines);
    if (gateway_lines)
        write_program(gateway, gateway_lines);
    err.text[0] = 0;
    ck_assert_int_eq(
        check_begin(&check, worker, gateway_lines ? gateway : NULL, STDIN_FILENO, &options, clock_ns(), &err),
        0);
    while ((r = check_turn(&check, clock_ns(), &err)) == 1)
        usleep(1000);
    ck_assert_ptr_null(check.program);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1); /* nobody is left */
    return r;
}

START_TEST(settings_are_good_when_all_say_so)
{
    ck_assert_int_eq(find("exit 0", NULL), 0);
    ck_assert_int_eq(find("exit 0", "exit 0"), 0);
    ck_assert_int_eq(find("echo quern-worker: of no account", "exit 0"), 0);
}
END_TEST

START_TEST(the_reason_is_the_line_of_the_program)
{
    ck_assert_int_eq(
        find("echo 10:11 worker-0 info quern-worker: no; echo quern-worker: why; exit 1", "exit 0"), -EINVAL);
    ck_assert_str_eq(err.text, "why");
    ck_assert_int_eq(find("exit 0", "echo quern-gateway: for a key >&2; echo more; exit 2"), -EINVAL);
    ck_assert_str_eq(err.text, "for a key");
}
END_TEST

START_TEST(programs_get_the_settings)
{
    ck_assert_int_eq(find("echo \"quern-worker: $*\"; exit 1", NULL), -EINVAL);
    ck_assert_ptr_eq(strstr(err.text, "--check --device cpu --kv-type q9 "), err.text);
    ck_assert_str_eq(strstr(err.text, " -- "), " -- -x.gguf");
    ck_assert_int_eq(find("exit 0", "echo \"quern-gateway: $*\"; exit 1"), -EINVAL);
    ck_assert_ptr_eq(strstr(err.text, "--check --listen 127.0.0.1:1 --listen-fd 0 "), err.text);
}
END_TEST

START_TEST(programs_that_say_nothing_are_named)
{
    ck_assert_int_eq(find("exit 3", NULL), -EINVAL);
    ck_assert_str_eq(err.text, "quern-worker ended with status 3 while checking the settings");
    ck_assert_int_eq(find("exit 0", "kill -9 $$"), -EINVAL);
    ck_assert_str_eq(err.text, "quern-gateway was killed by signal 9 while checking the settings");
    ck_assert_int_eq(find("yes | head -c 300000; exit 4", NULL), -EINVAL);
    ck_assert_str_eq(err.text, "quern-worker ended with status 4 while checking the settings");
    ck_assert_int_eq(check_begin(&check, "/no/such", NULL, 0, &options, clock_ns(), &err), -ENOENT);
    ck_assert_ptr_null(check.program);
}
END_TEST

START_TEST(one_that_does_not_end_is_killed)
{
    write_program(worker, "exec sleep 1000 >&- 2>&-");
    ck_assert_int_eq(check_begin(&check, worker, gateway, 0, &options, 0, &err), 0);
    while (check.fd >= 0) { /* what it says has ended: nothing is news from then on */
        ck_assert_int_eq(check_turn(&check, 0, &err), 1);
        usleep(1000);
    }
    ck_assert_int_eq(check_turn(&check, 61 * CLOCK_NS_PER_S, &err), -ETIMEDOUT);
    ck_assert_str_eq(err.text, "quern-worker did not finish checking the settings within 60 s");
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
    ck_assert_int_eq(check_begin(&check, worker, NULL, 0, &options, 0, &err), 0);
    check_stop(&check);
    check_stop(&check); /* there is none any more */
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, make_folder, remove_folder);
    tcase_add_test(tests, settings_are_good_when_all_say_so);
    tcase_add_test(tests, the_reason_is_the_line_of_the_program);
    tcase_add_test(tests, programs_get_the_settings);
    tcase_add_test(tests, programs_that_say_nothing_are_named);
    tcase_add_test(tests, one_that_does_not_end_is_killed);
}

int main(void)
{
    return run_tests("supervisor/check", add);
}
