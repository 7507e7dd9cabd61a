/* SPDX-License-Identifier: MIT */
/* The queue: class, then deadline, then arrival; and nothing is lost on the way out of the middle. */

#include "broker/queue.h"
#include "tests/unit/run.h"

#include <stdlib.h>

static struct request make(int32_t priority, uint64_t deadline)
{
    return (struct request){.priority = priority, .deadline_ns = deadline};
}

static struct request *pop(struct queue *queue)
{
    struct request *request = queue_first(queue);
    if (request)
        queue_remove(queue, request);
    return request;
}

START_TEST(a_higher_class_goes_first_whatever_the_deadlines)
{
    struct queue queue = {0};
    struct request low = make(-1, 5), middle = make(0, 1), high = make(3, UINT64_MAX);
    queue_push(&queue, &low);
    queue_push(&queue, &middle);
    queue_push(&queue, &high);
    ck_assert_ptr_eq(pop(&queue), &high);
    ck_assert_ptr_eq(pop(&queue), &middle);
    ck_assert_ptr_eq(pop(&queue), &low);
    ck_assert_ptr_null(pop(&queue));
    queue_deinit(&queue);
}
END_TEST

START_TEST(within_a_class_the_earliest_deadline_goes_first_then_the_first_to_come)
{
    struct queue queue = {0};
    struct request a = make(0, UINT64_MAX), b = make(0, 20), c = make(0, UINT64_MAX), d = make(0, 10);
    queue_push(&queue, &a);
    queue_push(&queue, &b);
    queue_push(&queue, &c);
    queue_push(&queue, &d);
    ck_assert_uint_eq(queue_next_deadline(&queue), 10);
    ck_assert_ptr_eq(pop(&queue), &d);
    ck_assert_ptr_eq(pop(&queue), &b);
    ck_assert_ptr_eq(pop(&queue), &a);
    ck_assert_ptr_eq(pop(&queue), &c);
    ck_assert_uint_eq(queue_next_deadline(&queue), UINT64_MAX);
    queue_deinit(&queue);
}
END_TEST

START_TEST(an_expired_request_is_found_behind_a_higher_class)
{
    struct queue queue = {0};
    struct request high = make(8, 100), low = make(-8, 50);
    queue_push(&queue, &high);
    queue_push(&queue, &low);
    ck_assert_ptr_null(queue_expired(&queue, 49));
    ck_assert_ptr_eq(queue_expired(&queue, 50), &low);
    queue_remove(&queue, &low);
    ck_assert_ptr_null(queue_expired(&queue, 99));
    ck_assert_ptr_eq(queue_expired(&queue, 100), &high);
    queue_deinit(&queue);
}
END_TEST

START_TEST(requests_removed_from_anywhere_leave_the_order_intact)
{
    enum { N = 500 };
    static struct request requests[N];
    struct queue queue = {0};
    srand(7);
    for (int i = 0; i < N; i++) {
        requests[i] = make(rand() % 3, (uint64_t)(rand() % 100));
        ck_assert_int_eq(queue_push(&queue, &requests[i]), 0);
    }
    for (int i = 0; i < N; i += 3)
        queue_remove(&queue, &requests[i]);
    size_t left = queue.n;
    struct request *before = pop(&queue), *next;
    for (; (next = pop(&queue)); before = next, left--) {
        ck_assert_int_ge(before->priority, next->priority);
        if (before->priority != next->priority)
            continue;
        ck_assert_uint_le(before->deadline_ns, next->deadline_ns);
        if (before->deadline_ns == next->deadline_ns)
            ck_assert_uint_lt(before->queue_order, next->queue_order);
    }
    ck_assert_uint_eq(left, 1);
    queue_deinit(&queue);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_higher_class_goes_first_whatever_the_deadlines);
    tcase_add_test(tests, within_a_class_the_earliest_deadline_goes_first_then_the_first_to_come);
    tcase_add_test(tests, an_expired_request_is_found_behind_a_higher_class);
    tcase_add_test(tests, requests_removed_from_anywhere_leave_the_order_intact);
}

int main(void)
{
    return run_tests("broker/queue", add);
}
