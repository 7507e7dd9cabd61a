/* SPDX-License-Identifier: MIT */
/* Cores of workers: disjoint when there are enough, unpinned when there are not. */

#include "supervisor/launch.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const int allowed[] = {2, 3, 5, 7, 11};

START_TEST(workers_share_the_cores_without_overlap)
{
    char list[64];
    ck_assert_uint_eq(launch_cores(allowed, 5, 0, 2, 0, list, sizeof list), 2);
    ck_assert_str_eq(list, "2,3");
    ck_assert_uint_eq(launch_cores(allowed, 5, 1, 2, 0, list, sizeof list), 2);
    ck_assert_str_eq(list, "5,7");
    ck_assert_uint_eq(launch_cores(allowed, 5, 0, 1, 0, list, sizeof list), 5);
    ck_assert_str_eq(list, "2,3,5,7,11");
}
END_TEST

START_TEST(too_many_workers_get_one_thread_and_no_core_of_their_own)
{
    char list[64];
    ck_assert_uint_eq(launch_cores(allowed, 5, 6, 7, 0, list, sizeof list), 1);
    ck_assert_str_eq(list, "");
}
END_TEST

START_TEST(threads_asked_for_are_given_and_pinned_only_if_they_fit)
{
    char list[64];
    ck_assert_uint_eq(launch_cores(allowed, 5, 1, 2, 1, list, sizeof list), 1);
    ck_assert_str_eq(list, "3");
    ck_assert_uint_eq(launch_cores(allowed, 5, 1, 2, 4, list, sizeof list), 4);
    ck_assert_str_eq(list, "");
}
END_TEST

static struct launch_plan plan_for(const char *program)
{
    static struct options options = {.model = "no model", .device = "null", .workers = 1};
    return (struct launch_plan){.options = &options,
                                .program = program,
                                .worker_link = "ipc:///nowhere",
                                .stream = "ipc:///nowhere",
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
    ck_assert_ptr_nonnull(strstr(said, "no model --broker ipc:///nowhere --name worker-0"));
    ck_assert_int_eq(read(fd, said, sizeof said), 0);
    close(fd);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, workers_share_the_cores_without_overlap);
    tcase_add_test(tests, too_many_workers_get_one_thread_and_no_core_of_their_own);
    tcase_add_test(tests, a_program_that_is_not_there_is_named_and_leaves_no_descriptor);
    tcase_add_test(tests, what_a_worker_says_on_stderr_comes_through_the_pipe);
    tcase_add_test(tests, threads_asked_for_are_given_and_pinned_only_if_they_fit);
}

int main(void)
{
    return run_tests("supervisor/launch", add);
}
