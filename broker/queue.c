/* SPDX-License-Identifier: MIT */
/* A binary heap for each priority class.
 *
 * Within a class the heap is ordered by (deadline, arrival), so its top has the class's earliest deadline:
 * both the next request and the next one to expire are found among the tops. A request knows its place, so
 * that a cancelled one leaves the middle of the heap in logarithmic time. */

#include "broker/queue.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

static struct queue_class *class_of(struct queue *queue, const struct request *request)
{
    int priority = request->priority;
    if (priority < QUEUE_PRIORITY_MIN)
        priority = QUEUE_PRIORITY_MIN;
    if (priority > QUEUE_PRIORITY_MAX)
        priority = QUEUE_PRIORITY_MAX;
    return &queue->classes[priority - QUEUE_PRIORITY_MIN];
}

static bool before(const struct request *a, const struct request *b)
{
    if (a->deadline_ns != b->deadline_ns)
        return a->deadline_ns < b->deadline_ns;
    return a->queue_order < b->queue_order;
}

static void put(struct queue_class *class, size_t at, struct request *request)
{
    class->items[at] = request;
    request->queue_index = at;
}

/* Moves the request at `at` up or down to where it belongs. */
static void settle(struct queue_class *class, size_t at)
{
    struct request *request = class->items[at];
    while (at > 0 && before(request, class->items[(at - 1) / 2])) {
        put(class, at, class->items[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < class->n && before(class->items[child + 1], class->items[child]))
            child++;
        if (child >= class->n || !before(class->items[child], request))
            break;
        put(class, at, class->items[child]);
        at = child;
    }
    put(class, at, request);
}

int queue_push(struct queue *queue, struct request *request)
{
    struct queue_class *class = class_of(queue, request);
    if (class->n == class->cap) {
        size_t cap = class->cap ? class->cap * 2 : 16;
        struct request **items = realloc(class->items, cap * sizeof *items);
        if (!items)
            return -ENOMEM;
        class->items = items;
        class->cap = cap;
    }
    request->queue_order = queue->order++;
    put(class, class->n++, request);
    settle(class, class->n - 1);
    queue->n++;
    return 0;
}

struct request *queue_first(const struct queue *queue)
{
    for (int i = QUEUE_CLASSES - 1; queue->n > 0 && i >= 0; i--)
        if (queue->classes[i].n > 0)
            return queue->classes[i].items[0];
    return NULL;
}

struct request *queue_expired(const struct queue *queue, uint64_t now)
{
    for (int i = 0; queue->n > 0 && i < QUEUE_CLASSES; i++)
        if (queue->classes[i].n > 0 && queue->classes[i].items[0]->deadline_ns <= now)
            return queue->classes[i].items[0];
    return NULL;
}

uint64_t queue_next_deadline(const struct queue *queue)
{
    uint64_t next = UINT64_MAX;
    for (int i = 0; queue->n > 0 && i < QUEUE_CLASSES; i++)
        if (queue->classes[i].n > 0 && queue->classes[i].items[0]->deadline_ns < next)
            next = queue->classes[i].items[0]->deadline_ns;
    return next;
}

void queue_remove(struct queue *queue, struct request *request)
{
    struct queue_class *class = class_of(queue, request);
    size_t at = request->queue_index;
    struct request *last = class->items[--class->n];
    queue->n--;
    if (last == request)
        return;
    put(class, at, last);
    settle(class, at);
}

void queue_deinit(struct queue *queue)
{
    for (int i = 0; i < QUEUE_CLASSES; i++)
        free(queue->classes[i].items);
    *queue = (struct queue){0};
}
