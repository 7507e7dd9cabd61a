/* SPDX-License-Identifier: MIT */
/* What --kv-type may be. */

#include "tests/unit/run.h"
#include "engine/backend/kv_type.h"

#include <errno.h>

START_TEST(every_type_has_a_name_that_is_read_again)
{
    static const struct {
        enum backend_kv_type type;
        const char *name;
    } cases[] = {{BACKEND_KV_F16, "f16"},
                 {BACKEND_KV_BF16, "bf16"},
                 {BACKEND_KV_Q8, "q8_0"},
                 {BACKEND_KV_F32, "f32"},
                 {BACKEND_KV_Q4, "q4_0"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enum backend_kv_type type = BACKEND_KV_DEFAULT;
        ck_assert_int_eq(kv_type_by_name(cases[i].name, &type, NULL), 0);
        ck_assert_int_eq(type, cases[i].type);
        ck_assert_str_eq(kv_type_name(type), cases[i].name);
    }
    ck_assert_str_eq(kv_type_name(BACKEND_KV_DEFAULT), "none");
}
END_TEST

START_TEST(all_else_is_refused_with_what_there_is)
{
    static const char *const wrong[] = {"", "none", "F16", "q8", "q4_1"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        enum backend_kv_type type = BACKEND_KV_BF16;
        struct error err = {0};
        char expected[128];
        ck_assert_int_eq(kv_type_by_name(wrong[i], &type, &err), -EINVAL);
        ck_assert_int_eq(type, BACKEND_KV_BF16);
        snprintf(expected, sizeof expected, "unknown KV type \"%s\" (" KV_TYPE_NAMES ")", wrong[i]);
        ck_assert_str_eq(err.text, expected);
    }
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, every_type_has_a_name_that_is_read_again);
    tcase_add_test(tests, all_else_is_refused_with_what_there_is);
}

int main(void)
{
    return run_tests("KV types", add);
}
