/* SPDX-License-Identifier: MIT */
/* The files of a model, by their names alone, and the key that stands for what is in them. */

#include "tests/unit/run.h"
#include "model/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/files/rundir.h"

static char dir[RUNDIR_PATH_MAX + 1];

/* How far the wall clock is moved forward. */
static time_t ahead_s;

time_t __real_time(time_t *ret);
time_t __wrap_time(time_t *ret);
time_t __wrap_time(time_t *ret)
{
    const time_t now = __real_time(NULL) + ahead_s;
    if (ret)
        *ret = now;
    return now;
}

static void set_up(void)
{
    ck_assert_int_eq(rundir_temporary(dir, NULL), 0);
}

static void tear_down(void)
{
    ahead_s = 0;
    rundir_remove(dir);
}

static const char *path_of(const char *name)
{
    static char paths[4][sizeof dir + 64];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof *paths, "%s/%s", dir, name);
    return path;
}

/* Files of `size` bytes: they need not be models. */
static void make(const char *name, size_t size)
{
    int fd = open(path_of(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, (off_t)size), 0);
    close(fd);
}

static struct model_files find(const char *path, const char *variant)
{
    struct model_files files;
    struct error err = {0};
    ck_assert_msg(model_files_find(path, variant, &files, &err) == 0, "%s", err.text);
    return files;
}

/* Its paths are these names, in the order of its own. */
static void check_names(const struct model_files *files, const char *const *names, size_t n)
{
    ck_assert_uint_eq(files->n, n);
    for (size_t i = 0; i < n; i++)
        ck_assert_str_eq(files->paths[i], path_of(names[i]));
}

START_TEST(a_file_is_itself_and_one_that_is_not_there_none)
{
    make("a.gguf", 100);
    struct model_files files = find(path_of("a.gguf"), NULL);
    check_names(&files, (const char *const[]){"a.gguf"}, 1);
    ck_assert_uint_eq(files.bytes, 100);
    model_files_deinit(&files);
    files = find(path_of("b.gguf"), NULL);
    ck_assert_uint_eq(files.n, 0);
    model_files_deinit(&files);
    files = find("/dev/null", NULL); /* no plain file */
    ck_assert_uint_eq(files.n, 0);
    model_files_deinit(&files);
}
END_TEST

START_TEST(the_name_of_the_first_part_tells_the_others)
{
    static const char *const parts[] = {"m-00001-of-00003.gguf", "m-00002-of-00003.gguf",
                                        "m-00003-of-00003.gguf"};
    static const char *const lone[] = {"m-00001-of-0003.gguf", "-00001-of-99999.gguf",
                                       "m-00001-of-+0003.gguf", "m-00002-of-00004.gguf"};
    for (int i = 0; i < 3; i++)
        make(parts[i], 100);
    make("m-00004-of-00004.gguf", 100);
    struct model_files files = find(path_of(parts[0]), NULL);
    check_names(&files, parts, 3);
    ck_assert_uint_eq(files.bytes, 300);
    ck_assert(!model_files_changed(&files));
    ck_assert_int_eq(unlink(path_of(parts[2])), 0);
    ck_assert(model_files_changed(&files));
    model_files_deinit(&files);
    files = find(path_of(parts[0]), NULL); /* whoever opens it says that it is missing */
    check_names(&files, parts, 2);
    model_files_deinit(&files);
    for (int i = 0; i < 4; i++) {
        make(lone[i], 10);
        files = find(path_of(lone[i]), NULL);
        check_names(&files, &lone[i], 1);
        model_files_deinit(&files);
    }
}
END_TEST

START_TEST(a_folder_is_all_its_plain_files_and_those_that_links_lead_to)
{
    static const char *const names[] = {"1_Pooling/config.json", "config.json", "model.safetensors",
                                        "notes.txt"};
    char blob[sizeof dir + 8];
    snprintf(blob, sizeof blob, "%s.blob", dir);
    close(open(blob, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    ck_assert_int_eq(truncate(blob, 1000), 0);
    make("config.json", 10);
    make("notes.txt", 20);
    make(".hidden", 30);
    ck_assert_int_eq(mkdir(path_of("1_Pooling"), 0700), 0);
    make("1_Pooling/config.json", 40);
    make("1_Pooling/other.json", 50);
    ck_assert_int_eq(symlink(blob, path_of("model.safetensors")), 0);
    ck_assert_int_eq(symlink("nowhere", path_of("broken.json")), 0);
    struct model_files files = find(dir, NULL);
    check_names(&files, names, 4);
    ck_assert_uint_eq(files.bytes, 1000);
    ck_assert_int_eq(truncate(blob, 1001), 0);
    ck_assert(model_files_changed(&files));
    model_files_deinit(&files);
    unlink(blob);
    unlink(path_of("1_Pooling/config.json"));
    unlink(path_of("1_Pooling/other.json"));
    rmdir(path_of("1_Pooling"));
}
END_TEST

START_TEST(the_key_changes_with_a_file_and_is_no_proof_while_it_is_new)
{
    const char *path = path_of("a.gguf");
    struct stat st;
    make("a.gguf", 100);
    struct model_files files = find(path, NULL), again = find(path, NULL), other = find(path, "Q8_0");
    ck_assert(!files.settled);
    ck_assert_mem_eq(files.key, again.key, 16);
    ck_assert_mem_ne(files.key, other.key, 16); /* two ways of reading, two models */
    ck_assert(!model_files_changed(&files) && !model_files_changed(&other));
    model_files_deinit(&again);
    model_files_deinit(&other);
    ck_assert_int_eq(stat(path, &st), 0);

    /* Written to in place, and its time set back. Within a tick of the file system's clock it does not show.
     */
    const struct timespec same[] = {st.st_atim, st.st_mtim}, changed = st.st_ctim;
    while (stat(path, &st) == 0 && memcmp(&st.st_ctim, &changed, sizeof changed) == 0) {
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        ck_assert_int_eq(pwrite(fd, "\1", 1, st.st_size - 1), 1);
        close(fd);
        utimensat(AT_FDCWD, path, same, 0);
    }
    ck_assert(model_files_changed(&files));
    again = find(path, NULL);
    ck_assert(!again.settled);
    ck_assert_mem_ne(files.key, again.key, 16);
    model_files_deinit(&files);
    ahead_s = 4;
    files = find(path, NULL);
    ck_assert(files.settled);
    ck_assert_mem_eq(files.key, again.key, 16);
    model_files_deinit(&files);
    model_files_deinit(&again);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_file_is_itself_and_one_that_is_not_there_none);
    tcase_add_test(tests, the_name_of_the_first_part_tells_the_others);
    tcase_add_test(tests, a_folder_is_all_its_plain_files_and_those_that_links_lead_to);
    tcase_add_test(tests, the_key_changes_with_a_file_and_is_no_proof_while_it_is_new);
}

int main(void)
{
    return run_tests("files", add);
}
