/* SPDX-License-Identifier: MIT */
/* Which request ids are taken, and what one is that is made. */

#include "gateway/http/request_id.h"
#include "tests/unit/run.h"

#include <string.h>

static bool is_made(const char *id)
{
    return strlen(id) == 36 && strncmp(id, "req_", 4) == 0 && strspn(id + 4, "0123456789abcdef") == 32;
}

START_TEST(a_good_one_is_kept)
{
    static const char *const good[] = {"a", "req-2026.11:27/x", "00-4bf9", "~!{}\""};
    char id[REQUEST_ID_BYTES], longest[REQUEST_ID_BYTES];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        request_id_take(good[i], id);
        ck_assert_str_eq(id, good[i]);
    }
    request_id_take("abc \t", id);
    ck_assert_str_eq(id, "abc");
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    request_id_take(longest, id);
    ck_assert_str_eq(id, longest);
}
END_TEST

START_TEST(for_any_other_one_is_made)
{
    static char huge[10001], one_more[REQUEST_ID_BYTES + 1];
    memset(huge, 'x', sizeof huge - 1);
    memset(one_more, 'x', sizeof one_more - 1);
    const char *const wrong[] = {NULL,
                                 "",
                                 "two words",
                                 " \t",
                                 "a\nb",
                                 "a\r\nSet-Cookie: x",
                                 "gr\xc3\xb6\xc3\x9f"
                                 "e",
                                 "\x7f",
                                 huge,
                                 one_more};
    char id[REQUEST_ID_BYTES], last[REQUEST_ID_BYTES] = "";
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        request_id_take(wrong[i], id);
        ck_assert_msg(is_made(id), "%s", id);
        ck_assert_str_ne(id, last);
        strcpy(last, id);
    }
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_good_one_is_kept);
    tcase_add_test(tests, for_any_other_one_is_made);
}

int main(void)
{
    return run_tests("gateway/request_id", add);
}
