/* SPDX-License-Identifier: MIT */
#include "common/program/program.h"
#include "tests/unit/child.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

START_TEST(an_error_is_one_line_with_the_name_and_nothing_that_a_terminal_obeys)
{
    char said[2048] = "", line[1600];
    int ends[2], before = dup(STDERR_FILENO);
    ck_assert_int_eq(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    program_error("no tensor \"%s\"", "a\033[2J\nb");
    dup2(before, STDERR_FILENO);
    ck_assert_int_gt(read(ends[0], said, sizeof said - 1), 0);
    ck_assert_str_eq(said, "test_program: no tensor \"a?[2J?b\"\n");
    /* One that is too long is cut, and still a line. */
    memset(line, 'x', sizeof line - 1);
    line[sizeof line - 1] = 0;
    memset(said, 0, sizeof said);
    dup2(ends[1], STDERR_FILENO);
    program_error("%s", line);
    dup2(before, STDERR_FILENO);
    ssize_t n = read(ends[0], said, sizeof said - 1);
    ck_assert_int_gt(n, 1000);
    ck_assert_int_le(n, 1024);
    ck_assert_ptr_eq(strchr(said, '\n'), said + n - 1);
    close(ends[0]);
    close(ends[1]);
    close(before);
}
END_TEST

/* In a child: limits cannot be raised again. */
static int limit_after_forgoing(void)
{
    struct rlimit limit;
    pid_t pid = fork_child();
    if (pid == 0) {
        program_forgo_core_dumps();
        getrlimit(RLIMIT_CORE, &limit);
        _exit(limit.rlim_cur > 1 || limit.rlim_max > 1 ? 2 : 1);
    }
    int status = 0;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return WEXITSTATUS(status);
}

START_TEST(core_dumps_are_forgone_unless_somebody_wants_them)
{
    struct rlimit limit;
    ck_assert_int_eq(getrlimit(RLIMIT_CORE, &limit), 0);
    unsetenv("QUERN_CORE_DUMPS");
    ck_assert_int_eq(limit_after_forgoing(), 1);
    setenv("QUERN_CORE_DUMPS", "1", 1);
    ck_assert_int_eq(limit_after_forgoing(), limit.rlim_max > 1 ? 2 : 1);
    unsetenv("QUERN_CORE_DUMPS");
}
END_TEST

START_TEST(a_sibling_lies_beside_the_running_program)
{
    char path[PATH_MAX];
    struct error err;
    ck_assert_int_eq(program_sibling("test_program", path, &err), 0);
    ck_assert_str_eq(strrchr(path, '/'), "/test_program");
    ck_assert_int_eq(program_sibling("no-such-program", path, &err), -ENOENT);
    ck_assert_ptr_nonnull(strstr(err.text, "/no-such-program: No such file or directory"));
    ck_assert_str_eq(strrchr(path, '/'), "/test_program");
}
END_TEST

START_TEST(standard_files_that_were_closed_are_held)
{
    struct stat null, in;
    close(STDIN_FILENO);
    program_hold_standard_files();
    ck_assert_int_eq(stat("/dev/null", &null), 0);
    ck_assert_int_eq(fstat(STDIN_FILENO, &in), 0);
    ck_assert_uint_eq(in.st_rdev, null.st_rdev);
    char byte;
    ck_assert_int_eq(read(STDIN_FILENO, &byte, 1), -1);
    int next = open("/dev/null", O_RDONLY);
    ck_assert_int_gt(next, STDERR_FILENO);
    close(next);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, core_dumps_are_forgone_unless_somebody_wants_them);
    tcase_add_test(tests, an_error_is_one_line_with_the_name_and_nothing_that_a_terminal_obeys);
    tcase_add_test(tests, a_sibling_lies_beside_the_running_program);
    tcase_add_test(tests, standard_files_that_were_closed_are_held);
}

int main(void)
{
    return run_tests("program", add);
}
