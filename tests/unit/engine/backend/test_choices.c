/* SPDX-License-Identifier: MIT */
/* Tables of choices: which are believed, and files of them that somebody has spoiled. */

#include "engine/backend/choices/kept.h"
#include "common/clock.h"
#include "common/files/rundir.h"
#include "gguf/format.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[RUNDIR_PATH_MAX + 1];
static struct choices table;

static void make_table(void)
{
    memset(&table, 0, sizeof table);
    table.key = (struct choices_key){.device = "NVIDIA H200",
                                     .driver = "580.65.06 (CUDA 13.0)",
                                     .build = 7,
                                     .library = 130000,
                                     .max_rows = 2048};
    strcpy(table.model, "llama, 32 layers of 4096");
    table.n_launches = 2;
    table.complete = 1;
    table.measured_ns = 412000000;
    for (uint32_t i = 0; i < 2; i++) {
        table.launches[i].n = i + 1;
        for (uint32_t m = 0; m <= i; m++)
            table.launches[i].matrices[m] =
                (struct choices_matrix){4096, 1024 * (m + 1), FORMAT_Q4_K, (uint8_t)m, {0, 0}};
        for (uint32_t b = 3; b < CHOICES_BUCKETS; b++)
            table.launches[i].buckets[b] =
                (struct choices_bucket){.way = b > 8 ? PRODUCT_LIBRARY : PRODUCT_WIDE,
                                        .rule = PRODUCT_WIDE,
                                        .ns = {0, 5, 5, 5, 5, 4}};
    }
    table.key.launches = choices_digest_launches(&table);
}

static void set_up(void)
{
    struct error err = {0};
    ck_assert_int_eq(rundir_temporary(folder, &err), 0);
    setenv("XDG_CACHE_HOME", folder, 1);
    make_table();
}

static void tear_down(void)
{
    char command[RUNDIR_PATH_MAX + 32];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}

/* ---- tables ---- */

START_TEST(a_step_has_the_choice_of_the_smallest_bucket_that_holds_its_rows)
{
    static const uint32_t rows[][2] = {{1, 0}, {2, 1}, {3, 2},     {4, 2},     {5, 3},
                                       {8, 3}, {9, 4}, {1025, 11}, {2048, 11}, {5000, 11}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ck_assert_uint_eq(choices_bucket_of(rows[i][0]), rows[i][1]);
    for (uint32_t b = 0; b < CHOICES_BUCKETS; b++)
        ck_assert_uint_eq(choices_bucket_of(choices_rows(b)), b);
}
END_TEST

START_TEST(what_is_out_of_range_is_refused)
{
    struct error err;
    ck_assert_int_eq(choices_check(&table, &err), 0);
    for (int i = 0; i < 14; i++) {
        make_table();
        struct choices_bucket *bucket = &table.launches[1].buckets[5];
        switch (i) {
        case 0:
            table.n_launches = CHOICES_LAUNCHES + 1;
            break;
        case 1:
            table.launches[0].n = 0;
            break;
        case 2:
            table.launches[0].n = CHOICES_TOGETHER + 1;
            break;
        case 3:
            table.launches[1].matrices[1].format = FORMAT_LIMIT;
            break;
        case 4:
            table.launches[1].matrices[0].n_columns = 0;
            break;
        case 5:
            bucket->way = PRODUCT_WAYS;
            break;
        case 6:
            bucket->rule = PRODUCT_LIBRARY;
            break;
        case 7:
            bucket->ns[PRODUCT_WIDE] = 0; /* chosen, and not measured */
            break;
        case 8:
            table.key.library = 0; /* and yet it makes products */
            break;
        case 9:
            memset(table.key.device, 'x', sizeof table.key.device);
            break;
        case 10:
            strcpy(table.model, "a\nlog line");
            break;
        case 11:
            bucket->own = PRODUCT_LIBRARY;
            break;
        case 12:
            bucket->own = PRODUCT_SHARED;
            bucket->ns[PRODUCT_SHARED] = 0;
            break;
        default:
            table.complete = 2;
        }
        ck_assert_msg(choices_check(&table, &err) == -EINVAL, "change %d is accepted", i);
    }
}
END_TEST

START_TEST(bits_hang_on_what_is_the_librarys_alone)
{
    const uint64_t before = choices_arithmetic(&table);
    ck_assert_uint_ne(before, 0);
    table.launches[0].buckets[4].way = PRODUCT_THIN_16;
    table.launches[1].buckets[4].ns[PRODUCT_WIDE] = 9;
    ck_assert_uint_eq(choices_arithmetic(&table), before);
    table.launches[0].buckets[9].way = PRODUCT_SHARED;
    ck_assert_uint_ne(choices_arithmetic(&table), before);
    for (uint32_t i = 0; i < 2; i++)
        for (uint32_t b = 3; b < CHOICES_BUCKETS; b++)
            table.launches[i].buckets[b].way = PRODUCT_SHARED;
    ck_assert_uint_eq(choices_arithmetic(&table), 0);
}
END_TEST

START_TEST(a_table_is_told_in_a_line)
{
    char summary[CHOICES_SUMMARY], name[CHOICES_NAME];
    choices_summarize(&table, summary);
    ck_assert_str_eq(summary, "2 launches of products timed in 412 ms, 6 of 18 choices differ from the rule");
    table.complete = 0;
    choices_summarize(&table, summary);
    ck_assert_ptr_nonnull(strstr(summary, ", time ran out"));
    choices_name_launch(&table.launches[1], name);
    ck_assert_str_eq(name, "Q4_K 4096 × 1024 + Q4_K 4096 × 2048 with a bias");
}
END_TEST

/* ---- files ---- */

static void count(void *arg, const struct choices *choices)
{
    ++*(int *)arg;
    ck_assert_str_eq(choices->model, table.model);
}

/* How many files are there, apart from locks; *ret_path is the last. */
#define PATH_SIZE (RUNDIR_PATH_MAX + 128)
static int files(char ret_path[PATH_SIZE])
{
    char list[PATH_SIZE], name[64];
    int n = 0;
    snprintf(list, sizeof list, "ls %s/quern/choices | grep -v lock | sort -r", folder);
    FILE *out = popen(list, "re");
    while (fscanf(out, "%63s", name) == 1) {
        snprintf(ret_path, PATH_SIZE, "%s/quern/choices/%s", folder, name);
        n++;
    }
    pclose(out);
    return n;
}

START_TEST(what_is_kept_is_found_by_its_key_alone)
{
    struct choices found;
    struct error why = {0};
    char path[PATH_SIZE];
    int n = 0;
    ck_assert_int_eq(kept_find(&table.key, &found, &why), -ENOENT);
    ck_assert_int_eq(kept_write(&table, &why), 0);
    ck_assert_int_eq(kept_find(&table.key, &found, &why), 0);
    ck_assert_mem_eq(&found, &table, sizeof table);
    ck_assert_int_eq(kept_write(&table, &why), 0); /* again, in its place */
    ck_assert_int_eq(files(path), 1);
    kept_list(count, &n);
    ck_assert_int_eq(n, 1);
    struct choices_key other = table.key;
    other.build++;
    ck_assert_int_lt(kept_find(&other, &found, &why), 0);
    kept_forget(&table.key);
    ck_assert_int_eq(kept_find(&table.key, &found, &why), -ENOENT);
    ck_assert_int_eq(files(path), 0);
}
END_TEST

/* Its place has the file of another key. */
START_TEST(a_foreign_table_in_the_place_is_not_taken)
{
    struct choices found, other = table;
    struct error why = {0};
    char mine[PATH_SIZE], theirs[PATH_SIZE];
    ck_assert_int_eq(kept_write(&table, &why), 0);
    files(mine);
    kept_forget(&table.key);
    other.key.build = 8;
    ck_assert_int_eq(kept_write(&other, &why), 0);
    files(theirs);
    ck_assert(rename(theirs, mine) == 0);
    ck_assert_int_eq(kept_find(&table.key, &found, &why), -ESTALE);
    ck_assert_msg(strstr(why.text, "another device, driver, build or model"), "%s", why.text);
}
END_TEST

/* A shell command, in which $F is the file. */
static void spoil(const char *path, const char *how)
{
    setenv("F", path, 1);
    ck_assert_int_eq(system(how), 0);
}

START_TEST(a_spoiled_file_is_refused_with_a_reason_and_can_be_replaced)
{
    static const struct {
        const char *how, *reason;
    } cases[] = {
        {"truncate -s 0 $F", "wrong size"},
        {"truncate -s -1 $F", "wrong size"},
        {"truncate -s 100M $F", "wrong size"},
        {"printf X | dd of=$F bs=1 seek=0 conv=notrunc 2>/dev/null", "no table of this version"},
        {"printf X | dd of=$F bs=1 seek=9 conv=notrunc 2>/dev/null", "checksum"},
        {"printf X | dd of=$F bs=1 seek=400 conv=notrunc 2>/dev/null", "checksum"},
        {"chmod g+w $F", "not a regular file that only this user can write to"},
        {"mv $F $F.aside && ln -s $F.aside $F", "symbolic links"},
        {"rm $F; mkfifo $F", "not a regular file that only this user can write to"},
        {"rm $F; mkdir $F", "not a regular file that only this user can write to"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct choices found;
        struct error why = {0};
        char path[PATH_SIZE];
        make_table();
        ck_assert_int_eq(kept_write(&table, &why), 0);
        files(path);
        spoil(path, cases[i].how);
        ck_assert_msg(kept_find(&table.key, &found, &why) == -EINVAL, "%s", cases[i].how);
        ck_assert_msg(strstr(why.text, cases[i].reason), "%s: %s", cases[i].how, why.text);
        if (i + 1 < sizeof cases / sizeof *cases) {
            ck_assert_msg(kept_write(&table, &why) == 0, "%s", why.text);
            ck_assert_int_eq(kept_find(&table.key, &found, &why), 0);
        } else {
            ck_assert_int_lt(kept_write(&table, &why), 0); /* a folder: it is said, and nothing is left */
            ck_assert_int_eq(files(path), 2);              /* and the one aside */
        }
    }
}
END_TEST

START_TEST(without_a_folder_nothing_is_kept_and_that_is_said)
{
    static const char *const caches[] = {"/proc/nowhere", "/dev/null"};
    struct error why = {0};
    struct choices found;
    for (size_t i = 0; i < 2; i++) {
        setenv("XDG_CACHE_HOME", caches[i], 1);
        ck_assert_int_lt(kept_write(&table, &why), 0);
        ck_assert_int_lt(kept_find(&table.key, &found, &why), 0);
        ck_assert_int_lt(kept_lock(&table.key, 10, NULL, NULL), 0);
    }
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    ck_assert_int_eq(kept_write(&table, &why), -ENOENT);
    ck_assert_int_eq(kept_find(&table.key, &found, &why), -ENOENT);
    ck_assert_int_eq(kept_lock(&table.key, 10, NULL, NULL), -ENOENT);
    setenv("XDG_CACHE_HOME", folder, 1);
}
END_TEST

static bool count_looks(void *arg)
{
    ++*(int *)arg;
    return false;
}

START_TEST(one_measures_at_a_time_and_the_dead_hold_no_lock)
{
    int pipes[2], looks = 0;
    char ready;
    ck_assert_int_eq(pipe(pipes), 0);
    const pid_t child = fork();
    if (child == 0) {
        if (kept_lock(&table.key, 1000, NULL, NULL) < 0 || write(pipes[1], "x", 1) != 1)
            _exit(1);
        pause();
        _exit(0);
    }
    ck_assert_int_eq((int)read(pipes[0], &ready, 1), 1);
    ck_assert_int_eq(kept_lock(&table.key, 50, count_looks, &looks), -ETIMEDOUT);
    ck_assert_int_gt(looks, 0);
    kill(child, SIGKILL);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    const int lock = kept_lock(&table.key, 1000, NULL, NULL);
    ck_assert_int_ge(lock, 0);
    kept_unlock(lock);
    kept_unlock(-ENOENT);
    close(pipes[0]);
    close(pipes[1]);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_step_has_the_choice_of_the_smallest_bucket_that_holds_its_rows);
    tcase_add_test(tests, what_is_out_of_range_is_refused);
    tcase_add_test(tests, bits_hang_on_what_is_the_librarys_alone);
    tcase_add_test(tests, a_table_is_told_in_a_line);
    tcase_add_test(tests, what_is_kept_is_found_by_its_key_alone);
    tcase_add_test(tests, a_foreign_table_in_the_place_is_not_taken);
    tcase_add_test(tests, a_spoiled_file_is_refused_with_a_reason_and_can_be_replaced);
    tcase_add_test(tests, without_a_folder_nothing_is_kept_and_that_is_said);
    tcase_add_test(tests, one_measures_at_a_time_and_the_dead_hold_no_lock);
}

int main(void)
{
    return run_tests("choices", add);
}
