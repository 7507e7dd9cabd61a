/* SPDX-License-Identifier: MIT */
/* How options name the rows from which a library multiplies. */

#include "tests/unit/run.h"
#include "engine/backend/library_rows.h"

#include <errno.h>

START_TEST(words_and_numbers_are_read)
{
    static const struct {
        const char *name;
        uint32_t rows;
    } cases[] = {
        {"off", 0}, {"auto", BACKEND_LIBRARY_MEASURED}, {"65", 65}, {"2048", 2048}, {"65536", 65536}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t rows = 7;
        ck_assert_int_eq(library_rows_by_name(cases[i].name, &rows, NULL), 0);
        ck_assert_uint_eq(rows, cases[i].rows);
    }
}
END_TEST

START_TEST(all_else_is_refused_with_what_there_is)
{
    static const char *const wrong[] = {"", "on", "0", "64", "65537", "-70", "70x", "AUTO"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        uint32_t rows = 7;
        struct error err = {0};
        char expected[128];
        ck_assert_int_eq(library_rows_by_name(wrong[i], &rows, &err), -EINVAL);
        ck_assert_uint_eq(rows, 7);
        snprintf(expected, sizeof expected, "\"%s\" is not off, auto or a number of rows from 65 to 65536",
                 wrong[i]);
        ck_assert_str_eq(err.text, expected);
    }
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, words_and_numbers_are_read);
    tcase_add_test(tests, all_else_is_refused_with_what_there_is);
}

int main(void)
{
    return run_tests("library rows", add);
}
