/* SPDX-License-Identifier: MIT */
#include "common/files/rundir.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
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

static struct rlimit usual;

/* Takes its time: the other thread is to find none. */
static void *give_descriptors_back(void *arg)
{
    usleep(50000);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &usual), 0);
    return arg;
}

START_TEST(a_directory_goes_when_there_is_a_descriptor_again)
{
    char path[RUNDIR_PATH_MAX + 1];
    struct error err;
    pthread_t thread;
    ck_assert_int_eq(rundir_temporary(path, &err), 0);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &usual), 0);
    const struct rlimit none = {.rlim_cur = 0, .rlim_max = usual.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, give_descriptors_back, NULL), 0);
    rundir_remove(path);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(access(path, F_OK), -1);
}
END_TEST

static void *make_files(void *arg)
{
    char name[RUNDIR_PATH_MAX + 16];
    for (int i = 0; i < 2000; i++) {
        snprintf(name, sizeof name, "%s/%d", (const char *)arg, i);
        int fd = creat(name, 0600);
        if (fd < 0)
            break; /* it is gone */
        close(fd);
    }
    return NULL;
}

START_TEST(a_directory_goes_although_something_is_made_in_it_meanwhile)
{
    for (int i = 0; i < 20; i++) {
        char path[RUNDIR_PATH_MAX + 1];
        struct error err;
        pthread_t thread;
        ck_assert_int_eq(rundir_temporary(path, &err), 0);
        ck_assert_int_eq(pthread_create(&thread, NULL, make_files, path), 0);
        rundir_remove(path);
        ck_assert_int_eq(pthread_join(thread, NULL), 0);
        ck_assert_int_eq(access(path, F_OK), -1);
    }
}
END_TEST

START_TEST(what_is_named_is_made_absolute_and_links_are_followed)
{
    char path[RUNDIR_PATH_MAX + 1], folder[RUNDIR_PATH_MAX + 1], expected[256], before[4096];
    struct error err;
    ck_assert_ptr_nonnull(getcwd(before, sizeof before));
    ck_assert_int_eq(rundir_temporary(folder, &err), 0);
    ck_assert_int_eq(chdir(folder), 0);
    static const char *const same[] = {"run", "./run", ".//run", "run/", "link", "./link/"};
    ck_assert_int_eq(mkdir("run", 0700), 0);
    ck_assert_int_eq(symlink("run", "link"), 0);
    snprintf(expected, sizeof expected, "%s/run", folder);
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        ck_assert_msg(rundir_path(same[i], path, &err) == 0, "%s", err.text);
        ck_assert_str_eq(path, expected);
        ck_assert_int_eq(rundir_check(path, &err), 0);
    }
    ck_assert_int_eq(rundir_path(".", path, &err), 0);
    ck_assert_str_eq(path, folder);
    ck_assert_int_eq(rundir_path("new", path, &err), 0);
    snprintf(expected, sizeof expected, "%s/new", folder);
    ck_assert_str_eq(path, expected);
    snprintf(expected, sizeof expected, "%s/link", folder);
    ck_assert_int_eq(rundir_path(expected, path, &err), 0);
    ck_assert_str_eq(path + strlen(path) - 4, "/run");
    /* At the default path anyone may have made a link. */
    ck_assert_int_eq(symlink("run", "quern"), 0);
    ck_assert_int_eq(setenv("XDG_RUNTIME_DIR", folder, 1), 0);
    ck_assert_int_eq(rundir_path(NULL, path, &err), 0);
    ck_assert_str_eq(path + strlen(path) - 6, "/quern");
    ck_assert_int_eq(rundir_check(path, &err), -ENOTDIR);
    /* Its own folder is gone. */
    ck_assert_int_eq(unlink("quern") | unlink("link") | rmdir("run"), 0);
    rundir_remove(folder);
    ck_assert_int_eq(rundir_path("run", path, &err), -ENOENT);
    ck_assert_int_eq(chdir(before), 0);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, the_default_is_under_the_runtime_directory);
    tcase_add_test(tests, a_path_too_long_for_a_socket_is_refused);
    tcase_add_test(tests, what_is_named_is_made_absolute_and_links_are_followed);
    tcase_add_test(tests, a_second_pool_cannot_take_the_lock);
    tcase_add_test(tests, a_lock_is_not_lost_with_the_files_of_the_directory);
    tcase_add_test(tests, a_directory_that_others_may_enter_is_refused);
    tcase_add_test(tests, a_link_and_a_file_are_no_run_directory);
    tcase_add_test(tests, a_directory_goes_when_there_is_a_descriptor_again);
    tcase_add_test(tests, a_directory_goes_although_something_is_made_in_it_meanwhile);
}

int main(void)
{
    return run_tests("rundir", add);
}
