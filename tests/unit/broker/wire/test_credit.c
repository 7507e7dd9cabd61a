/* SPDX-License-Identifier: MIT */
/* Credit: what is under way is counted in messages and bytes until it is taken, and who was refused is told.
 */

#include "broker/wire/credit.h"
#include "tests/unit/run.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

static struct credit_total total;
static struct credit *credit;
static void *context, *from, *to;
static char large[CREDIT_BYTES + 1];

static void set_up(void)
{
    int none = 0;
    ck_assert_int_eq(credit_total_init(&total, NULL), 0);
    ck_assert_ptr_nonnull(credit = credit_new(&total));
    context = zmq_ctx_new();
    from = zmq_socket(context, ZMQ_PAIR);
    to = zmq_socket(context, ZMQ_PAIR);
    zmq_setsockopt(from, ZMQ_LINGER, &none, sizeof none);
    ck_assert_int_eq(zmq_bind(from, "inproc://credit"), 0);
    ck_assert_int_eq(zmq_connect(to, "inproc://credit"), 0);
}

static void tear_down(void)
{
    zmq_close(from);
    zmq_close(to);
    zmq_ctx_term(context);
    credit = credit_free(credit);
    ck_assert_uint_eq(atomic_load(&total.bytes), 0);
    credit_total_deinit(&total);
}

static void hand_over(size_t len)
{
    zmq_msg_t message;
    ck_assert_int_eq(credit_message(credit, large, len, &message), 0);
    ck_assert_int_eq(zmq_msg_send(&message, from, ZMQ_DONTWAIT), (int)len);
}

static void take(size_t len)
{
    zmq_msg_t message;
    zmq_msg_init(&message);
    ck_assert_int_eq(zmq_msg_recv(&message, to, 0), (int)len);
    zmq_msg_close(&message);
}

START_TEST(who_has_too_many_messages_under_way_waits_until_half_are_taken)
{
    for (int i = 0; i < CREDIT_MESSAGES; i++) {
        ck_assert(credit_ask(credit));
        hand_over(100);
    }
    ck_assert(!credit_ask(credit));
    ck_assert_uint_eq(atomic_load(&total.bytes), 100 * CREDIT_MESSAGES);
    for (int i = 0; i < CREDIT_MESSAGES / 2; i++)
        take(100);
    ck_assert(!credit_total_woken(&total));
    take(100);
    ck_assert(credit_total_woken(&total));
    ck_assert(!credit_total_woken(&total)); /* once is enough */
    ck_assert(credit_ask(credit));
}
END_TEST

START_TEST(who_has_too_many_bytes_under_way_waits_until_they_are_taken)
{
    ck_assert(credit_ask(credit));
    hand_over(sizeof large);
    ck_assert(!credit_ask(credit));
    take(sizeof large);
    ck_assert(credit_total_woken(&total));
    ck_assert(credit_ask(credit));
}
END_TEST

START_TEST(as_many_bytes_as_may_be_are_not_too_many)
{
    hand_over(CREDIT_BYTES);
    ck_assert(credit_ask(credit));
    hand_over(1);
    ck_assert(!credit_ask(credit));
    take(CREDIT_BYTES);
    take(1);
    const size_t few = CREDIT_FEW_BYTES;
    hand_over(few + 1);
    atomic_fetch_add(&total.bytes, CREDIT_TOTAL_BYTES - few - 1); /* others': together just the most */
    ck_assert(credit_ask(credit));
    atomic_fetch_add(&total.bytes, 1); /* from here on each has a few */
    ck_assert(!credit_ask(credit));
    take(few + 1);
    hand_over(few);
    atomic_fetch_add(&total.bytes, 1);
    ck_assert(credit_ask(credit));
    take(few);
    atomic_fetch_sub(&total.bytes, CREDIT_TOTAL_BYTES + 1 - few);
}
END_TEST

START_TEST(nobody_is_woken_who_did_not_ask)
{
    hand_over(sizeof large);
    take(sizeof large);
    ck_assert(!credit_total_woken(&total));
}
END_TEST

START_TEST(what_is_under_way_outlives_its_credit)
{
    struct credit *other = credit_new(&total);
    hand_over(10);
    ck_assert(credit_ask(credit));
    credit = credit_free(credit);
    ck_assert_uint_eq(atomic_load(&total.bytes), 10);
    take(10);
    ck_assert_uint_eq(atomic_load(&total.bytes), 0);
    credit_free(other);
}
END_TEST

START_TEST(what_a_closed_connection_did_not_take_is_counted_no_more)
{
    hand_over(sizeof large);
    ck_assert(!credit_ask(credit));
    zmq_close(to);
    zmq_close(from);
    to = zmq_socket(context, ZMQ_PAIR);
    from = zmq_socket(context, ZMQ_PAIR);
    struct pollfd wake = {.fd = total.wake_fd, .events = POLLIN};
    ck_assert_int_eq(poll(&wake, 1, 30000), 1); /* closed by a thread of libzmq's own */
    ck_assert(credit_ask(credit));
}
END_TEST

START_TEST(while_much_is_under_way_to_all_each_gets_a_few)
{
    struct credit *others[CREDIT_TOTAL_BYTES / CREDIT_BYTES];
    size_t n = sizeof others / sizeof *others;
    struct credit *own = credit;
    for (size_t i = 0; i < n; i++) {
        ck_assert_ptr_nonnull(credit = others[i] = credit_new(&total));
        hand_over(sizeof large);
    }
    credit = own;
    for (int i = 0; i < CREDIT_FEW_MESSAGES; i++) {
        ck_assert(credit_ask(credit));
        hand_over(10);
    }
    ck_assert(!credit_ask(credit));
    for (size_t i = 0; i < n; i++)
        take(sizeof large); /* of others, who did not ask */
    ck_assert(credit_ask(credit));
    for (int i = 0; i < CREDIT_FEW_MESSAGES; i++)
        take(10);
    ck_assert(credit_total_woken(&total));
    for (size_t i = 0; i < n; i++)
        credit_free(others[i]);
}
END_TEST

START_TEST(a_message_is_a_copy)
{
    char data[] = "first";
    zmq_msg_t message;
    ck_assert_int_eq(credit_message(credit, data, sizeof data, &message), 0);
    memcpy(data, "later", sizeof data);
    ck_assert_uint_eq(zmq_msg_size(&message), sizeof data);
    ck_assert_str_eq(zmq_msg_data(&message), "first");
    ck_assert_uint_eq(atomic_load(&total.bytes), sizeof data);
    zmq_msg_close(&message);
    ck_assert_uint_eq(atomic_load(&total.bytes), 0);
}
END_TEST

START_TEST(what_waits_is_counted_for_all_together)
{
    struct credit *other = credit_new(&total);
    ck_assert_ptr_nonnull(other);
    credit_wait(credit, 100);
    credit_wait(other, 30);
    ck_assert_uint_eq(total.waiting, 130);
    credit_wait_no_more(credit, 60);
    ck_assert_uint_eq(total.waiting, 70);
    credit_wait_no_more(other, 30);
    credit_wait_no_more(credit, 40);
    ck_assert_uint_eq(total.waiting, 0);
    credit_free(other);
}
END_TEST

START_TEST(the_descriptor_ends_with_the_total_and_once)
{
    struct credit_total own;
    ck_assert_int_eq(credit_total_init(&own, NULL), 0);
    int fd = own.wake_fd;
    ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
    credit_total_deinit(&own);
    ck_assert_int_eq(fcntl(fd, F_GETFD), -1);
    ck_assert_int_eq(own.wake_fd, -1);
    credit_total_deinit(&own);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, who_has_too_many_messages_under_way_waits_until_half_are_taken);
    tcase_add_test(tests, who_has_too_many_bytes_under_way_waits_until_they_are_taken);
    tcase_add_test(tests, as_many_bytes_as_may_be_are_not_too_many);
    tcase_add_test(tests, while_much_is_under_way_to_all_each_gets_a_few);
    tcase_add_test(tests, nobody_is_woken_who_did_not_ask);
    tcase_add_test(tests, what_is_under_way_outlives_its_credit);
    tcase_add_test(tests, what_a_closed_connection_did_not_take_is_counted_no_more);
    tcase_add_test(tests, a_message_is_a_copy);
    tcase_add_test(tests, what_waits_is_counted_for_all_together);
    tcase_add_test(tests, the_descriptor_ends_with_the_total_and_once);
}

int main(void)
{
    return run_tests("broker/credit", add);
}
