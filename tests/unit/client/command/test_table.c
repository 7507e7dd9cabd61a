/* SPDX-License-Identifier: MIT */
/* Which columns of a table fit. */

#include "client/command/terminal/table.h"
#include "tests/unit/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The second column is empty: it has no title either. */
static void fill(const void *arg, size_t row, size_t column, struct table_cell *ret_cell)
{
    static const char *const cells[] = {"one", "", "123", "45"};
    snprintf(ret_cell->text, sizeof ret_cell->text, "%s", cells[column]);
}

static void check_shown(size_t width, const char *expected)
{
    static const struct table_column columns[] = {
        {"A", 9, true}, {"", 8, true}, {"B", 7, false}, {"C", 1, false}};
    const struct table table = {.columns = columns, .n_columns = 4, .n_rows = 1, .fill = fill};
    FILE *before = stdout;
    char *text = NULL;
    size_t len;
    stdout = open_memstream(&text, &len);
    ck_assert_ptr_nonnull(stdout);
    table_print(&table, width, false);
    ck_assert_int_eq(fclose(stdout), 0);
    stdout = before;
    ck_assert_str_eq(text, expected);
    free(text);
}

START_TEST(a_line_may_be_as_wide_as_the_terminal)
{
    check_shown(12, "A      B   C\none  123  45\n");
}
END_TEST

START_TEST(what_matters_least_goes_first)
{
    check_shown(11, "A      B\none  123\n");
    check_shown(0, "A      B   C\none  123  45\n");
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_line_may_be_as_wide_as_the_terminal);
    tcase_add_test(tests, what_matters_least_goes_first);
}

int main(void)
{
    return run_tests("table", add);
}
