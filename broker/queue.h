/* SPDX-License-Identifier: MIT */
#ifndef BROKER_QUEUE_H
#define BROKER_QUEUE_H

/* The queue of admitted requests: priority class first, then the earliest deadline, then the order of
 * arrival. It borrows the requests. */

#include <stddef.h>
#include <stdint.h>

#include "broker/request.h"

#define QUEUE_PRIORITY_MIN (-8)
#define QUEUE_PRIORITY_MAX 8
#define QUEUE_CLASSES      (QUEUE_PRIORITY_MAX - QUEUE_PRIORITY_MIN + 1)

struct queue_class {
    struct request **items; /* a heap: items[0] is the next */
    size_t n, cap;
};

struct queue { /* zeroed: empty */
    struct queue_class classes[QUEUE_CLASSES];
    size_t n;
    uint64_t order;
};

/* Adds; reads priority (clamped into range) and deadline_ns, writes queue_index and queue_order. 0 or
 * -ENOMEM. */
int queue_push(struct queue *queue, struct request *request);

/* The request that is next, not removed; NULL when empty. */
struct request *queue_first(const struct queue *queue);

/* A request whose deadline is at or before `now`; NULL when none is. */
struct request *queue_expired(const struct queue *queue, uint64_t now);

/* The earliest deadline of all, UINT64_MAX when there is none. */
uint64_t queue_next_deadline(const struct queue *queue);

/* Removes a request that is in the queue. */
void queue_remove(struct queue *queue, struct request *request);

void queue_deinit(struct queue *queue);

#endif
