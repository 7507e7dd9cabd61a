/* SPDX-License-Identifier: MIT */
/* The boot number never falls, and is never guessed. */

#include "supervisor/boot.h"
#include "common/files/rundir.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void write_boot(const char *rundir, const char *text)
{
    char path[RUNDIR_PATH_MAX + 8];
    snprintf(path, sizeof path, "%s/boot", rundir);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

START_TEST(each_broker_of_one_supervisor_gets_the_next_number)
{
    char rundir[RUNDIR_PATH_MAX + 1];
    struct boot boot = {0};
    ck_assert_int_eq(rundir_temporary(rundir, NULL), 0);
    for (uint64_t i = 1; i <= 2 * BOOT_TAKEN_AT_ONCE + 1; i++) {
        ck_assert_int_eq(boot_raise(&boot, rundir, NULL), 0);
        ck_assert_uint_eq(boot.number, i);
    }
    rundir_remove(rundir);
}
END_TEST

/* Whether the one before was ended or killed, and whatever it had used. */
START_TEST(the_next_supervisor_begins_behind_all_numbers_of_the_one_before)
{
    char rundir[RUNDIR_PATH_MAX + 1];
    uint64_t last = 0;
    ck_assert_int_eq(rundir_temporary(rundir, NULL), 0);
    for (int i = 0; i < 5; i++) {
        struct boot boot = {0};
        for (int raises = 0; raises <= i * 600; raises++) {
            ck_assert_int_eq(boot_raise(&boot, rundir, NULL), 0);
            ck_assert_uint_gt(boot.number, last);
            last = boot.number;
        }
    }
    rundir_remove(rundir);
}
END_TEST

START_TEST(a_file_that_is_removed_or_put_back_takes_no_number_back)
{
    static const char *const texts[] = {NULL, "0\n", "1000\n"};
    char rundir[RUNDIR_PATH_MAX + 1], path[RUNDIR_PATH_MAX + 8];
    struct boot boot = {0}, next = {0};
    uint64_t last = 0;
    ck_assert_int_eq(rundir_temporary(rundir, NULL), 0);
    snprintf(path, sizeof path, "%s/boot", rundir);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        for (int raises = 0; raises <= BOOT_TAKEN_AT_ONCE; raises++) {
            ck_assert_int_eq(boot_raise(&boot, rundir, NULL), 0);
            ck_assert_uint_eq(boot.number, ++last);
        }
        if (texts[i])
            write_boot(rundir, texts[i]);
        else
            ck_assert_int_eq(unlink(path), 0);
    }
    for (int raises = 0; raises <= BOOT_TAKEN_AT_ONCE; raises++)
        ck_assert_int_eq(boot_raise(&boot, rundir, NULL), 0);
    ck_assert_int_eq(boot_raise(&next, rundir, NULL), 0); /* what is taken from there on is written down */
    ck_assert_uint_gt(next.number, boot.number);
    rundir_remove(rundir);
}
END_TEST

static bool file_synced, directory_synced_behind_it;

int __wrap_fsync(int fd); /* the linker's names */
int __real_fsync(int fd);

int __wrap_fsync(int fd)
{
    struct stat what;
    bool is_directory = fstat(fd, &what) == 0 && S_ISDIR(what.st_mode);
    directory_synced_behind_it = file_synced && is_directory;
    file_synced |= !is_directory;
    return __real_fsync(fd);
}

START_TEST(a_number_that_is_used_is_on_disk_under_its_name)
{
    char rundir[RUNDIR_PATH_MAX + 1];
    struct boot boot = {0};
    ck_assert_int_eq(rundir_temporary(rundir, NULL), 0);
    ck_assert_int_eq(boot_raise(&boot, rundir, NULL), 0);
    ck_assert(file_synced && directory_synced_behind_it);
    rundir_remove(rundir);
}
END_TEST

/* A broker that died is followed whatever has become of the disk. */
START_TEST(a_number_that_was_taken_before_needs_no_disk)
{
    char rundir[RUNDIR_PATH_MAX + 1];
    struct boot boot = {0};
    struct error err;
    ck_assert_int_eq(rundir_temporary(rundir, NULL), 0);
    ck_assert_int_eq(boot_raise(&boot, rundir, NULL), 0);
    rundir_remove(rundir);
    for (uint64_t i = 2; i <= BOOT_TAKEN_AT_ONCE; i++) {
        ck_assert_int_eq(boot_raise(&boot, rundir, NULL), 0);
        ck_assert_uint_eq(boot.number, i);
    }
    ck_assert_int_eq(boot_raise(&boot, rundir, &err), -ENOENT);
    ck_assert_uint_eq(boot.number, BOOT_TAKEN_AT_ONCE);
}
END_TEST

START_TEST(a_file_without_a_number_is_an_error_that_names_it)
{
    /* The last: more than is read for a number; what is read ends like one. */
    static const char *const wrong[] = {"",
                                        "\n",
                                        "x\n",
                                        "-1\n",
                                        "12",
                                        "1 2\n",
                                        "1\n2\n",
                                        "99999999999999999999\n",
                                        "000000000000000000000000000001\n2\n"};
    char rundir[RUNDIR_PATH_MAX + 1];
    ck_assert_int_eq(rundir_temporary(rundir, NULL), 0);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct error err = {{0}};
        struct boot boot = {0};
        write_boot(rundir, wrong[i]);
        ck_assert_int_eq(boot_raise(&boot, rundir, &err), -EINVAL);
        ck_assert_uint_eq(boot.number, 0);
        ck_assert_ptr_nonnull(strstr(err.text, "/boot"));
    }
    rundir_remove(rundir);
}
END_TEST

/* A crash leaves such files, where blocks were given to a file and not written. */
START_TEST(a_zero_byte_ends_no_number)
{
    char rundir[RUNDIR_PATH_MAX + 1], path[RUNDIR_PATH_MAX + 8];
    struct boot boot = {0};
    struct error err;
    ck_assert_int_eq(rundir_temporary(rundir, NULL), 0);
    snprintf(path, sizeof path, "%s/boot", rundir);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite("10\0\0\n", 1, 5, file), 5);
    fclose(file);
    ck_assert_int_eq(boot_raise(&boot, rundir, &err), -EINVAL);
    ck_assert_uint_eq(boot.number, 0);
    rundir_remove(rundir);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, each_broker_of_one_supervisor_gets_the_next_number);
    tcase_add_test(tests, the_next_supervisor_begins_behind_all_numbers_of_the_one_before);
    tcase_add_test(tests, a_file_that_is_removed_or_put_back_takes_no_number_back);
    tcase_add_test(tests, a_number_that_is_used_is_on_disk_under_its_name);
    tcase_add_test(tests, a_number_that_was_taken_before_needs_no_disk);
    tcase_add_test(tests, a_file_without_a_number_is_an_error_that_names_it);
    tcase_add_test(tests, a_zero_byte_ends_no_number);
}

int main(void)
{
    return run_tests("supervisor/boot", add);
}
