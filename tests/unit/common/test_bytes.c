/* SPDX-License-Identifier: MIT */
#include "common/bytes.h"
#include "tests/unit/child.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* Through a pipe, which gives its bytes in pieces. */
START_TEST(a_descriptor_is_read_to_its_end_or_to_the_bound)
{
    static char many[200000];
    for (size_t i = 0; i < sizeof many; i++)
        many[i] = (char)(i % 251);
    for (int over = 0; over < 2; over++) {
        struct buffer b = {0};
        int ends[2];
        ck_assert_int_eq(pipe(ends), 0);
        pid_t writer = fork_child();
        if (writer == 0) {
            signal(SIGPIPE, SIG_DFL);
            close(ends[0]);
            for (size_t at = 0; at < sizeof many; at += 40000)
                if (write(ends[1], many + at, 40000) != 40000)
                    _exit(1);
            _exit(0);
        }
        close(ends[1]);
        ck_assert_int_eq(buffer_append(&b, "abc", 3), 0);
        const size_t all = 3 + sizeof many;
        ck_assert_int_eq(buffer_read(&b, ends[0], over ? all - 1 : all), over ? -EFBIG : 0);
        ck_assert_uint_ge(b.len, all);
        ck_assert_mem_eq(b.data, "abc", 3);
        ck_assert_mem_eq(b.data + 3, many, sizeof many);
        close(ends[0]);
        waitpid(writer, NULL, 0);
        ck_assert_int_eq(buffer_read(&b, ends[0], SIZE_MAX), -EBADF);
        ck_assert_uint_eq(b.len, all);
        buffer_deinit(&b);
    }
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
    tcase_add_test(tests, a_descriptor_is_read_to_its_end_or_to_the_bound);
    tcase_add_test(tests, ids_grow_and_keep_their_order);
}

int main(void)
{
    return run_tests("bytes", add);
}
