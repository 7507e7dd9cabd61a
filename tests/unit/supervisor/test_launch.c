/* SPDX-License-Identifier: MIT */
/* Processes: what they are told, and what they say. */

#include "supervisor/children/launch.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct launch_plan plan_for(const char *program)
{
    static struct options options = {.model = "-x.gguf", .device = "null", .workers = 1};
    return (struct launch_plan){.options = &options,
                                .program = program,
                                .doors = {STDOUT_FILENO, STDERR_FILENO},
                                .name = "worker-0",
                                .incarnation = 1,
                                .board_fd = STDIN_FILENO};
}

START_TEST(a_program_that_is_not_there_is_named_and_leaves_no_descriptor)
{
    struct launch_plan plan = plan_for("/no/such/quern-worker");
    struct error err = {0};
    pid_t pid;
    int fd, before = dup(STDIN_FILENO), after;
    close(before);
    ck_assert_int_eq(launch_worker(&plan, &pid, &fd, &err), -ENOENT);
    ck_assert_str_eq(err.text, "/no/such/quern-worker: No such file or directory");
    after = dup(STDIN_FILENO);
    close(after);
    ck_assert_int_eq(before, after);
}
END_TEST

START_TEST(what_a_worker_says_on_stderr_comes_through_the_pipe)
{
    struct launch_plan plan = plan_for("/bin/echo"); /* its stdout goes there, too */
    struct error err = {0};
    char said[4096] = "";
    pid_t pid;
    int fd, status;
    ck_assert_msg(launch_worker(&plan, &pid, &fd, &err) == 0, "%s", err.text);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ck_assert_int_gt(read(fd, said, sizeof said - 1), 0);
    ck_assert_ptr_nonnull(strstr(said, "--name worker-0 --incarnation 1 --link-fd 1 --stream-fd 2"));
    ck_assert_ptr_nonnull(strstr(said, " -- -x.gguf\n")); /* and so no option */
    ck_assert_int_eq(read(fd, said, sizeof said), 0);
    close(fd);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_program_that_is_not_there_is_named_and_leaves_no_descriptor);
    tcase_add_test(tests, what_a_worker_says_on_stderr_comes_through_the_pipe);
}

int main(void)
{
    return run_tests("supervisor/launch", add);
}
