/* SPDX-License-Identifier: MIT */
#include "common/files/output_file.h"
#include "common/files/rundir.h"
#include "tests/unit/child.h"
#include "tests/unit/run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[RUNDIR_PATH_MAX + 1], path[128];
static struct error err;

static void set_up(void)
{
    ck_assert_int_eq(rundir_temporary(dir, &err), 0);
    snprintf(path, sizeof path, "%s/out", dir);
}

static void tear_down(void)
{
    rundir_remove(dir);
}

static void put(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static const char *content(const char *name)
{
    static char text[256];
    FILE *file = fopen(name, "r");
    if (!file)
        return NULL;
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    return text;
}

static int n_files(void)
{
    int n = 0;
    DIR *folder = opendir(dir);
    for (struct dirent *entry; (entry = readdir(folder));)
        n += entry->d_name[0] != '.';
    closedir(folder);
    return n;
}

static int write_text(const char *to, const char *text)
{
    struct output_file file;
    int r = output_file_open(&file, to, &err);
    if (r == 0)
        r = output_file_write(&file, text, strlen(text), &err);
    return r < 0 ? r : output_file_commit(&file, &err);
}

START_TEST(the_old_file_is_there_until_the_new_one_is_complete)
{
    struct output_file file;
    put(path, "old");
    ck_assert_int_eq(output_file_open(&file, path, &err), 0);
    ck_assert_int_eq(output_file_write(&file, "new, and longer", 15, &err), 0);
    ck_assert_str_eq(content(path), "old");
    ck_assert_int_eq(output_file_commit(&file, &err), 0);
    ck_assert_str_eq(content(path), "new, and longer");
    ck_assert_int_eq(n_files(), 1);
}
END_TEST

START_TEST(what_is_given_up_leaves_the_old_file_and_nothing_else)
{
    struct output_file file;
    put(path, "old");
    ck_assert_int_eq(output_file_open(&file, path, &err), 0);
    ck_assert_int_eq(output_file_write(&file, "new", 3, &err), 0);
    ck_assert_int_eq(output_file_discard(&file, -EDOM), -EDOM);
    ck_assert_str_eq(content(path), "old");
    ck_assert_int_eq(n_files(), 1);
}
END_TEST

START_TEST(a_process_that_is_killed_leaves_nothing)
{
    put(path, "old");
    pid_t pid = fork_child();
    if (pid == 0) {
        struct output_file file;
        if (output_file_open(&file, path, NULL) == 0 && output_file_write(&file, "new", 3, NULL) == 0)
            raise(SIGKILL);
        _exit(1);
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status));
    ck_assert_str_eq(content(path), "old");
    ck_assert_int_eq(n_files(), 1);
}
END_TEST

START_TEST(a_new_file_has_the_usual_mode_and_a_replaced_one_keeps_its_own)
{
    struct stat st;
    umask(027);
    ck_assert_int_eq(write_text(path, "x"), 0);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_mode & 0777, 0640);
    ck_assert_int_eq(chmod(path, 0604), 0);
    ck_assert_int_eq(write_text(path, "y"), 0);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_mode & 0777, 0604);
}
END_TEST

/* Or permissions of its group would be another group's, and root would take files from their owners. */
START_TEST(a_replaced_file_keeps_its_owner_and_group_as_far_as_may_be)
{
    struct stat st;
    gid_t groups[NGROUPS_MAX], other = getegid() + 1;
    uid_t owner = geteuid() == 0 ? 1 : geteuid(); /* root may give a file any */
    int n = getgroups(NGROUPS_MAX, groups);
    for (int i = 0; i < n; i++)
        if (groups[i] != getegid())
            other = groups[i];
    put(path, "old");
    ck_assert_int_eq(chmod(path, 0660), 0);
    if (chown(path, owner, other) < 0)
        other = getegid();
    ck_assert_int_eq(write_text(path, "new"), 0);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_uid, owner);
    ck_assert_uint_eq(st.st_gid, other);
    ck_assert_int_eq(st.st_mode & 0777, 0660);
}
END_TEST

START_TEST(a_link_is_followed_and_stays_one)
{
    char link[128];
    struct stat st;
    snprintf(link, sizeof link, "%s/link", dir);
    put(path, "old");
    ck_assert_int_eq(symlink("out", link), 0);
    ck_assert_int_eq(write_text(link, "new"), 0);
    ck_assert_int_eq(lstat(link, &st), 0);
    ck_assert(S_ISLNK(st.st_mode));
    ck_assert_str_eq(content(path), "new");
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(write_text(link, "new"), -ENOENT);
    ck_assert_int_eq(lstat(link, &st), 0);
}
END_TEST

START_TEST(a_device_is_written_to_and_not_replaced)
{
    struct output_file file;
    struct stat st;
    ck_assert_int_eq(write_text("/dev/null", "x"), 0);
    ck_assert_int_eq(stat("/dev/null", &st), 0);
    ck_assert(S_ISCHR(st.st_mode));
    ck_assert_int_eq(output_file_open_regular(&file, "/dev/null", &err), -EINVAL);
    ck_assert_str_eq(err.text, "/dev/null: not a regular file");
    /* A file system that is full says so, at the write. */
    ck_assert_int_eq(output_file_open(&file, "/dev/full", &err), 0);
    ck_assert_int_eq(output_file_discard(&file, output_file_write(&file, "x", 1, &err)), -ENOSPC);
    ck_assert_str_eq(err.text, "/dev/full: No space left on device");
}
END_TEST

/* As a shell does it: quern logits … --out /dev/stdout >> FILE. */
START_TEST(what_stdout_goes_to_is_continued_and_not_replaced)
{
    put(path, "before, ");
    pid_t pid = fork_child();
    if (pid == 0) {
        int fd = open(path, O_WRONLY | O_APPEND);
        dup2(fd, STDOUT_FILENO);
        _exit(write_text("/dev/stdout", "after") < 0);
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert_str_eq(content(path), "before, after");
}
END_TEST

START_TEST(a_name_that_cannot_be_written_is_refused_before_any_work)
{
    char name[256];
    static const char *const ends[] = {"nowhere/out", "folder/", ""};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct output_file file;
        snprintf(name, sizeof name, "%s/%s", dir, ends[i]);
        ck_assert_int_lt(output_file_open(&file, ends[i][0] ? name : "", &err), 0);
        ck_assert_ptr_nonnull(strstr(err.text, ends[i]));
    }
    struct output_file file;
    ck_assert_int_eq(output_file_open(&file, dir, &err), -EISDIR);
    ck_assert_int_eq(n_files(), 0);
}
END_TEST

START_TEST(a_new_file_can_be_mapped)
{
    struct output_file file;
    ck_assert_int_eq(output_file_open_regular(&file, path, &err), 0);
    ck_assert_int_eq(ftruncate(file.fd, 5), 0);
    char *memory = mmap(NULL, 5, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd, 0);
    ck_assert_ptr_ne(memory, MAP_FAILED);
    memcpy(memory, "bytes", 5);
    munmap(memory, 5);
    ck_assert_int_eq(output_file_commit(&file, &err), 0);
    ck_assert_str_eq(content(path), "bytes");
}
END_TEST

/* Somebody else's, or left by a power failure: it is not ours to take. */
START_TEST(a_name_that_is_taken_is_left_alone)
{
    char taken[256];
    snprintf(taken, sizeof taken, "%s.part-0", path);
    put(taken, "theirs");
    ck_assert_int_eq(write_text(path, "ours"), 0);
    ck_assert_str_eq(content(path), "ours");
    ck_assert_str_eq(content(taken), "theirs");
    ck_assert_int_eq(n_files(), 2);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, the_old_file_is_there_until_the_new_one_is_complete);
    tcase_add_test(tests, what_is_given_up_leaves_the_old_file_and_nothing_else);
    tcase_add_test(tests, a_process_that_is_killed_leaves_nothing);
    tcase_add_test(tests, a_new_file_has_the_usual_mode_and_a_replaced_one_keeps_its_own);
    tcase_add_test(tests, a_replaced_file_keeps_its_owner_and_group_as_far_as_may_be);
    tcase_add_test(tests, a_link_is_followed_and_stays_one);
    tcase_add_test(tests, a_device_is_written_to_and_not_replaced);
    tcase_add_test(tests, what_stdout_goes_to_is_continued_and_not_replaced);
    tcase_add_test(tests, a_name_that_cannot_be_written_is_refused_before_any_work);
    tcase_add_test(tests, a_new_file_can_be_mapped);
    tcase_add_test(tests, a_name_that_is_taken_is_left_alone);
}

int main(void)
{
    return run_tests("output_file", add);
}
