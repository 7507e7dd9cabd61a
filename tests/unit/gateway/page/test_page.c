/* SPDX-License-Identifier: MIT */
/* The page's files, and whether a browser has one already. */

#include "gateway/page/page.h"
#include "gateway/page/page_files.h"
#include "tests/unit/run.h"

#include <string.h>

START_TEST(a_tag_that_is_named_matches)
{
    static const char *const named[] = {
        "\"a1\"", "W/\"a1\"", "*", " \"a1\" ", "\"x\", \"a1\"", "\"x\",W/\"a1\",\"y\"", "\"x\"\t, *"};
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        ck_assert_msg(page_matches(named[i], "\"a1\""), "%s", named[i]);
}
END_TEST

START_TEST(another_one_does_not)
{
    static const char *const others[] = {"",        ",",      " ",  "a1",   "\"a1", "\"a12\"",
                                         "\"a1\"x", "\"A1\"", "W/", "W/a1", "\"\""};
    ck_assert(!page_matches(NULL, "\"a1\""));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ck_assert_msg(!page_matches(others[i], "\"a1\""), "%s", others[i]);
}
END_TEST

START_TEST(every_file_has_a_name_and_a_tag_of_its_own)
{
    bool index = false;
    ck_assert_uint_gt(n_page_files, 0);
    for (size_t i = 0; i < n_page_files; i++) {
        const struct page_file *file = &page_files[i];
        ck_assert_uint_gt(file->data.len, 0);
        ck_assert_uint_eq(strlen(file->etag), 18);
        index |= strcmp(file->name, "index.html") == 0 && strncmp(file->type, "text/html", 9) == 0;
        for (size_t j = 0; j < i; j++) {
            ck_assert_str_ne(file->name, page_files[j].name);
            ck_assert_str_ne(file->etag, page_files[j].etag);
        }
    }
    ck_assert(index);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_tag_that_is_named_matches);
    tcase_add_test(tests, another_one_does_not);
    tcase_add_test(tests, every_file_has_a_name_and_a_tag_of_its_own);
}

int main(void)
{
    return run_tests("gateway/page", add);
}
