/* SPDX-License-Identifier: MIT */
/* The boot number never falls, and is never guessed. */

#include "supervisor/boot.h"
#include "common/rundir.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void write_boot(const char *rundir, const char *text)
{
    char path[RUNDIR_PATH_MAX + 8];
    snprintf(path, sizeof path, "%s/boot", rundir);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

START_TEST(each_start_raises_the_number_by_one)
{
    char rundir[RUNDIR_PATH_MAX + 1];
    uint64_t boot;
    ck_assert_int_eq(rundir_temporary(rundir, NULL), 0);
    for (uint64_t i = 1; i < 5; i++) {
        ck_assert_int_eq(boot_raise(rundir, &boot, NULL), 0);
        ck_assert_uint_eq(boot, i);
    }
    rundir_remove(rundir);
}
END_TEST

START_TEST(a_file_without_a_number_is_an_error_that_names_it)
{
    static const char *const wrong[] = {"", "\n", "x\n", "-1\n", "12", "1 2\n", "99999999999999999999\n"};
    char rundir[RUNDIR_PATH_MAX + 1];
    ck_assert_int_eq(rundir_temporary(rundir, NULL), 0);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct error err = {{0}};
        uint64_t boot = 77;
        write_boot(rundir, wrong[i]);
        ck_assert_int_eq(boot_raise(rundir, &boot, &err), -EINVAL);
        ck_assert_uint_eq(boot, 77);
        ck_assert_ptr_nonnull(strstr(err.text, "/boot"));
    }
    rundir_remove(rundir);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, each_start_raises_the_number_by_one);
    tcase_add_test(tests, a_file_without_a_number_is_an_error_that_names_it);
}

int main(void)
{
    return run_tests("supervisor/boot", add);
}
