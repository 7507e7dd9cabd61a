/* SPDX-License-Identifier: MIT */
#include "common/rundir.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

START_TEST(the_default_is_under_the_runtime_directory)
{
    char path[RUNDIR_PATH_MAX + 1];
    setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
    ck_assert_int_eq(rundir_path(NULL, path, NULL), 0);
    ck_assert_str_eq(path, "/run/user/7/quern");
    unsetenv("XDG_RUNTIME_DIR");
    ck_assert_int_eq(rundir_path(NULL, path, NULL), 0);
    ck_assert_int_eq(strncmp(path, "/tmp/quern-", 11), 0);
}
END_TEST

START_TEST(a_path_too_long_for_a_socket_is_refused)
{
    char path[RUNDIR_PATH_MAX + 1] = "untouched", wanted[200];
    memset(wanted, 'x', sizeof wanted);
    wanted[0] = '/';
    wanted[199] = 0;
    struct error err;
    ck_assert_int_eq(rundir_path(wanted, path, &err), -ENAMETOOLONG);
    ck_assert_str_eq(path, "untouched");
}
END_TEST

START_TEST(a_second_pool_cannot_take_the_lock)
{
    char path[RUNDIR_PATH_MAX + 1];
    struct error err;
    int fd, other;
    ck_assert_int_eq(rundir_temporary(path, &err), 0);
    ck_assert_int_eq(rundir_prepare(path, &err), 0);
    ck_assert_int_eq(rundir_lock(path, &fd, &err), 0);
    ck_assert_int_eq(rundir_lock(path, &other, &err), -EBUSY);
    ck_assert_ptr_nonnull(strstr(err.text, path));
    close(fd);
    ck_assert_int_eq(rundir_lock(path, &other, &err), 0);
    close(other);
    rundir_remove(path);
    ck_assert_int_eq(access(path, F_OK), -1);
}
END_TEST

START_TEST(a_lock_is_not_lost_with_the_files_of_the_directory)
{
    char path[RUNDIR_PATH_MAX + 1], command[RUNDIR_PATH_MAX + 16];
    struct error err;
    int fd, other;
    ck_assert_int_eq(rundir_temporary(path, &err), 0);
    ck_assert_int_eq(rundir_lock(path, &fd, &err), 0);
    snprintf(command, sizeof command, "rm -rf %s/*", path);
    ck_assert_int_eq(system(command), 0);
    ck_assert_int_eq(rundir_lock(path, &other, &err), -EBUSY);
    close(fd);
    rundir_remove(path);
}
END_TEST

START_TEST(a_directory_that_others_may_enter_is_refused)
{
    char path[RUNDIR_PATH_MAX + 1];
    struct error err;
    ck_assert_int_eq(rundir_temporary(path, &err), 0);
    ck_assert_int_eq(chmod(path, 0755), 0);
    ck_assert_int_eq(rundir_prepare(path, &err), -EPERM);
    ck_assert_ptr_nonnull(strstr(err.text, "0755"));
    rundir_remove(path);
}
END_TEST

START_TEST(a_link_and_a_file_are_no_run_directory)
{
    char path[RUNDIR_PATH_MAX + 1], name[RUNDIR_PATH_MAX + 8];
    struct error err;
    ck_assert_int_eq(rundir_temporary(path, &err), 0);
    snprintf(name, sizeof name, "%s/link", path);
    ck_assert_int_eq(rundir_check(name, &err), -ENOENT);
    ck_assert_int_eq(symlink(path, name), 0);
    ck_assert_int_eq(rundir_check(name, &err), -ENOTDIR);
    ck_assert_ptr_nonnull(strstr(err.text, name));
    snprintf(name, sizeof name, "%s/file", path);
    ck_assert_int_eq(close(creat(name, 0700)), 0);
    ck_assert_int_eq(rundir_check(name, &err), -ENOTDIR);
    ck_assert_int_eq(rundir_check(path, &err), 0);
    rundir_remove(path);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, the_default_is_under_the_runtime_directory);
    tcase_add_test(tests, a_path_too_long_for_a_socket_is_refused);
    tcase_add_test(tests, a_second_pool_cannot_take_the_lock);
    tcase_add_test(tests, a_lock_is_not_lost_with_the_files_of_the_directory);
    tcase_add_test(tests, a_directory_that_others_may_enter_is_refused);
    tcase_add_test(tests, a_link_and_a_file_are_no_run_directory);
}

int main(void)
{
    return run_tests("rundir", add);
}
