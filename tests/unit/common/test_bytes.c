/* SPDX-License-Identifier: MIT */
#include "common/bytes.h"
#include "tests/unit/run.h"

#include <errno.h>

START_TEST(appended_bytes_come_back_in_order)
{
    struct buffer b = {0};
    for (int i = 0; i < 1000; i++) {
        uint8_t byte = (uint8_t)i;
        ck_assert_int_eq(buffer_append(&b, &byte, 1), 0);
    }
    ck_assert_uint_eq(b.len, 1000);
    for (int i = 0; i < 1000; i++)
        ck_assert_uint_eq(b.data[i], (uint8_t)i);
    buffer_consume(&b, 990);
    ck_assert_uint_eq(b.len, 10);
    ck_assert_uint_eq(b.data[0], (uint8_t)990);
    buffer_consume(&b, 100);
    ck_assert_uint_eq(b.len, 0);
    buffer_deinit(&b);
}
END_TEST

START_TEST(an_absurd_reservation_is_refused_and_changes_nothing)
{
    struct buffer b = {0};
    ck_assert_int_eq(buffer_append(&b, "abc", 3), 0);
    ck_assert_int_eq(buffer_reserve(&b, SIZE_MAX - 1), -ENOMEM);
    ck_assert_int_eq(buffer_reserve(&b, SIZE_MAX / 2), -ENOMEM);
    ck_assert_uint_eq(b.len, 3);
    ck_assert_mem_eq(b.data, "abc", 3);
    buffer_deinit(&b);
}
END_TEST

START_TEST(ids_grow_and_keep_their_order)
{
    struct ids ids = {0};
    int32_t three[] = {7, 8, 9};
    for (int32_t i = 0; i < 300; i++)
        ck_assert_int_eq(ids_push(&ids, i), 0);
    ck_assert_int_eq(ids_append(&ids, three, 3), 0);
    ck_assert_uint_eq(ids.len, 303);
    ck_assert_int_eq(ids.data[299], 299);
    ck_assert_int_eq(ids.data[302], 9);
    ids_deinit(&ids);
    ck_assert_uint_eq(ids.cap, 0);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, appended_bytes_come_back_in_order);
    tcase_add_test(tests, an_absurd_reservation_is_refused_and_changes_nothing);
    tcase_add_test(tests, ids_grow_and_keep_their_order);
}

int main(void)
{
    return run_tests("bytes", add);
}
