/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_BROKER_CHOOSE_QUEUED_H
#define TESTS_UNIT_BROKER_CHOOSE_QUEUED_H

/* A queue with requests, for its tests. */

#include "broker/choose/queue.h"
#include "tests/unit/run.h"

#define S CLOCK_NS_PER_S

static struct queue queue;

static void set_up(void)
{
    queue_init(&queue, 5);
}

static void tear_down(void)
{
    queue_deinit(&queue);
}

/* Takes the remaining requests, which the test owns, before it ends. */
static void empty(void)
{
    while (queue_first(&queue, QUEUE_ALL))
        queue_remove(&queue, queue_first(&queue, QUEUE_ALL));
    ck_assert_uint_eq(queue.n, 0);
    ck_assert_ptr_null(queue.by_key);
    ck_assert_ptr_null(queue.lines.by_key);
    ck_assert_uint_eq(queue_next_deadline(&queue), UINT64_MAX);
}

static struct request make(uint8_t session, int32_t priority, uint64_t arrived_ns)
{
    return (struct request){.home.session = {{session}},
                            .priority = priority,
                            .arrived_ns = arrived_ns,
                            .deadline_ns = UINT64_MAX};
}

static void push(struct request *request)
{
    ck_assert_int_eq(queue_push(&queue, request), 0);
}

static struct request *take_of(uint64_t targets)
{
    struct request *request = queue_first(&queue, targets);
    if (request)
        queue_take(&queue, request, targets);
    return request;
}

static struct request *take(void)
{
    return take_of(QUEUE_ALL);
}

#endif
