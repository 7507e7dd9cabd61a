/* SPDX-License-Identifier: MIT */
/* The digest of a model that is loaded: read once, and remembered as long as the files are what they were. */

#include "tests/unit/run.h"
#include "worker/start/digest.h"
#include "worker/start/digest_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/files/rundir.h"
#include "model/convert/synth.h"
#include "model/files.h"

static char folder[RUNDIR_PATH_MAX + 1], model_path[RUNDIR_PATH_MAX + 32], places[RUNDIR_PATH_MAX + 32];
static int n_progress;

static bool count(void *arg)
{
    n_progress++;
    return false;
}

static void set_up(void)
{
    struct error err = {0};
    ck_assert_int_eq(rundir_temporary(folder, &err), 0);
    ck_assert_int_eq(setenv("XDG_CACHE_HOME", folder, 1), 0);
    snprintf(model_path, sizeof model_path, "%s/model.gguf", folder);
    snprintf(places, sizeof places, "%s/quern/digests", folder);
    n_progress = 0;
}

static void tear_down(void)
{
    char path[sizeof folder + 8];
    snprintf(path, sizeof path, "%s/quern", folder);
    rundir_remove(places);
    rundir_remove(path);
    rundir_remove(folder);
}

/* How many places there are, and the path of one of them. */
static unsigned count_places(char ret_path[PATH_MAX])
{
    unsigned n = 0;
    DIR *dir = opendir(places);
    struct dirent *entry;
    while (dir && (entry = readdir(dir)))
        if (entry->d_name[0] != '.') {
            snprintf(ret_path, PATH_MAX, "%s/%s", places, entry->d_name);
            n++;
        }
    if (dir)
        closedir(dir);
    return n;
}

static void make_model(uint64_t seed)
{
    struct error err = {0};
    ck_assert_int_eq(synth_write(synth_shape_by_name("tiny"), mixture_by_name("F16"), seed, model_path, &err),
                     0);
}

/* Looks at its files, until they have been at rest for long enough to be known by their times; then opens
 * them, and the digest. */
static struct model *open_at_rest(struct digest *digest)
{
    struct model_files files = {0};
    struct error err = {0};
    struct model *model;
    for (int round = 0; round < 200; round++, usleep(50000)) {
        ck_assert_int_eq(model_files_find(model_path, NULL, &files, &err), 0);
        if (files.settled)
            break;
        model_files_deinit(&files);
    }
    ck_assert_msg(files.settled, "the file is not at rest after ten seconds");
    digest_open(digest, files.key, true);
    ck_assert_int_ge(digest->fd, 0);
    model_files_deinit(&files);
    ck_assert_int_eq(model_open(model_path, false, &model, &err), 0);
    return model;
}

/* Loads it as a worker does. True: the files had to be read. */
static bool load(uint8_t ret_digest[16])
{
    struct error err = {0};
    struct digest digest;
    struct model *model = open_at_rest(&digest);
    ck_assert_int_eq(digest_begin(&digest, model, NULL, 2, count, NULL, &err), 0);
    bool reads = digest.is_reading;
    ck_assert_int_eq(digest_finish(&digest, count, NULL, &err), 0);
    ck_assert_mem_eq(digest_known(&digest), model->digest, 16);
    memcpy(ret_digest, model->digest, 16);
    digest_keep(&digest);
    digest_close(&digest);
    model_free(model);
    return reads;
}

static void read_whole(uint8_t ret_digest[16])
{
    struct error err = {0};
    struct model *model;
    ck_assert_int_eq(model_open(model_path, false, &model, &err), 0);
    ck_assert_int_eq(model_read_digest(model, 1, NULL, NULL, &err), 0);
    memcpy(ret_digest, model->digest, 16);
    model_free(model);
}

START_TEST(files_are_read_once)
{
    uint8_t whole[16], first[16], again[16];
    make_model(1);
    read_whole(whole);
    ck_assert(load(first));
    ck_assert_mem_eq(first, whole, 16);
    ck_assert(!load(again));
    ck_assert_mem_eq(again, whole, 16);
}
END_TEST

START_TEST(files_that_changed_are_read_again)
{
    uint8_t first[16], second[16], whole[16];
    struct stat before;
    make_model(1);
    ck_assert(load(first));
    /* One byte of a tensor, in place, and the time of modification as it was. */
    ck_assert_int_eq(stat(model_path, &before), 0);
    int fd = open(model_path, O_RDWR | O_CLOEXEC);
    uint8_t byte;
    ck_assert_int_eq(pread(fd, &byte, 1, before.st_size - 100), 1);
    byte ^= 1;
    ck_assert_int_eq(pwrite(fd, &byte, 1, before.st_size - 100), 1);
    ck_assert_int_eq(futimens(fd, (struct timespec[2]){before.st_atim, before.st_mtim}), 0);
    close(fd);
    ck_assert(load(second));
    ck_assert_mem_ne(second, first, 16);
    read_whole(whole);
    ck_assert_mem_eq(second, whole, 16);
}
END_TEST

/* A file that was written to just now may be written to again within the grain of its times. */
START_TEST(files_not_at_rest_are_not_remembered)
{
    struct error err = {0};
    struct model *model;
    struct model_files files = {.settled = true};
    struct digest digest;
    for (int round = 0; round < 20 && files.settled; round++) { /* a machine may stand still in between */
        model_files_deinit(&files);
        make_model(1);
        ck_assert_int_eq(model_files_find(model_path, NULL, &files, &err), 0);
    }
    ck_assert(!files.settled);
    digest_open(&digest, files.key, files.settled);
    ck_assert_int_eq(digest.fd, -1);
    model_files_deinit(&files);
    ck_assert_int_eq(model_open(model_path, false, &model, &err), 0);
    ck_assert_int_eq(digest_begin(&digest, model, NULL, 1, count, NULL, &err), 0);
    ck_assert(digest.is_reading);
    ck_assert_int_eq(digest_finish(&digest, count, NULL, &err), 0);
    digest_keep(&digest);
    digest_close(&digest);
    model_free(model);
    ck_assert_int_ne(access(places, F_OK), 0);
}
END_TEST

/* A worker that gives up while its files are read waits for the thread that reads them. */
START_TEST(reading_may_be_given_up)
{
    struct error err = {0};
    struct digest digest;
    make_model(1);
    struct model *model = open_at_rest(&digest);
    ck_assert_int_eq(digest_begin(&digest, model, NULL, 1, count, NULL, &err), 0);
    digest_close(&digest);
    digest_close(&digest);
    model_free(model);
    struct digest none = {0};
    digest_close(&none);
}
END_TEST

START_TEST(a_place_keeps_the_last_digest_that_was_put_there)
{
    uint8_t key[16] = "sixteen letters", digest[16] = "and its digest.", other[16] = "another digest.";
    uint8_t found[16], missing[16] = "not this letter";
    char path[PATH_MAX];
    int fd = digest_file_open(key);
    ck_assert_int_ge(fd, 0);
    ck_assert(!digest_file_find(fd, key, found));
    ck_assert_int_eq(digest_file_keep(fd, key, digest), 0);
    ck_assert(digest_file_find(fd, key, found));
    ck_assert_mem_eq(found, digest, 16);
    ck_assert(!digest_file_find(fd, missing, found));
    ck_assert_int_eq(digest_file_keep(fd, key, other), 0);
    close(fd);

    fd = digest_file_open(key); /* and another process finds it */
    ck_assert(digest_file_find(fd, key, found));
    ck_assert_mem_eq(found, other, 16);
    close(fd);
    ck_assert(!digest_file_find(-1, key, found));
    ck_assert_int_lt(digest_file_keep(-1, key, digest), 0);
    ck_assert_uint_eq(count_places(path), 1);

    for (uint32_t i = 0; i < 10000; i++) { /* ten thousand models take no more than the table */
        struct stat st;
        memcpy(key, &i, sizeof i);
        fd = digest_file_open(key);
        ck_assert_int_eq(digest_file_keep(fd, key, digest), 0);
        ck_assert(digest_file_find(fd, key, found));
        ck_assert_int_eq(fstat(fd, &st), 0);
        ck_assert_int_eq(st.st_size, 64); /* and one that is open is of one place */
        close(fd);
    }
    ck_assert_uint_le(count_places(path), 1024);
}
END_TEST

START_TEST(the_file_of_an_earlier_version_makes_room)
{
    const uint8_t key[16] = "sixteen letters";
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/quern", folder);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    close(open(places, O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    int fd = digest_file_open(key);
    ck_assert_int_ge(fd, 0);
    close(fd);
    ck_assert_uint_eq(count_places(path), 1);
}
END_TEST

START_TEST(what_is_damaged_counts_as_not_there)
{
    uint8_t key[16] = "sixteen letters", digest[16] = "and its digest.", found[16];
    for (off_t at = 0; at < 40; at++) {
        uint8_t byte;
        int fd = digest_file_open(key);
        ck_assert_int_eq(digest_file_keep(fd, key, digest), 0);
        ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
        byte ^= 0x10;
        ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
        ck_assert(!digest_file_find(fd, key, found));
        ck_assert_int_eq(ftruncate(fd, at), 0);
        ck_assert(!digest_file_find(fd, key, found));
        close(fd);
    }
}
END_TEST

START_TEST(what_others_may_have_written_is_not_trusted)
{
    const uint8_t key[16] = "sixteen letters";
    char path[PATH_MAX], elsewhere[sizeof folder + 16];
    int fd = digest_file_open(key);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fchmod(fd, 0622), 0);
    close(fd);
    ck_assert_int_eq(digest_file_open(key), -1);
    ck_assert_uint_eq(count_places(path), 1);
    snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", folder);
    close(open(elsewhere, O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(symlink(elsewhere, path), 0);
    ck_assert_int_eq(digest_file_open(key), -1);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(digest_file_open(key), -1);
}
END_TEST

START_TEST(without_a_home_nothing_is_remembered)
{
    const char *home = getenv("HOME");
    const uint8_t key[16] = "sixteen letters";
    char *before = home ? strdup(home) : NULL;
    setenv("XDG_CACHE_HOME", "relative", 1); /* to be ignored, as the specification of these folders says */
    setenv("HOME", folder, 1);
    int fd = digest_file_open(key);
    ck_assert_int_ge(fd, 0);
    close(fd);
    char path[sizeof folder + 32];
    snprintf(path, sizeof path, "%s/.cache/quern/digests", folder);
    ck_assert_int_eq(access(path, F_OK), 0);
    rundir_remove(path);
    snprintf(path, sizeof path, "%s/.cache/quern", folder);
    rmdir(path);
    snprintf(path, sizeof path, "%s/.cache", folder);
    rmdir(path);
    unsetenv("HOME");
    ck_assert_int_eq(digest_file_open(key), -1);
    setenv("HOME", "/nowhere/at/all", 1);
    ck_assert_int_eq(digest_file_open(key), -1);
    if (before)
        setenv("HOME", before, 1);
    free(before);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, files_are_read_once);
    tcase_add_test(tests, files_that_changed_are_read_again);
    tcase_add_test(tests, files_not_at_rest_are_not_remembered);
    tcase_add_test(tests, reading_may_be_given_up);
    tcase_add_test(tests, a_place_keeps_the_last_digest_that_was_put_there);
    tcase_add_test(tests, the_file_of_an_earlier_version_makes_room);
    tcase_add_test(tests, what_is_damaged_counts_as_not_there);
    tcase_add_test(tests, what_others_may_have_written_is_not_trusted);
    tcase_add_test(tests, without_a_home_nothing_is_remembered);
}

int main(void)
{
    return run_tests("digest", add);
}
