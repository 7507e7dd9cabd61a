/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CHOOSE_QUEUE_H
#define BROKER_CHOOSE_QUEUE_H

/* The queue of admitted requests decides which one is next. It borrows the requests.
 *
 * Within a priority class sessions take turns: in one turn each waiting session gives one request, its most
 * urgent. "Session" here also means a client with a key, which counts as one session however many it opens,
 * and a tenant that stands alone. Within a client, its other tenants take turns (struct party, tenants.h). A
 * request is more urgent the sooner it is due: 30 s after its arrival, or at its deadline if that is sooner.
 * Within a turn the most urgent goes first. The same holds between classes, where each step of priority is
 * worth 30 s. So at some point every request is due before all new ones, and none waits forever, whatever
 * others send.
 *
 * Requests that had begun and lost their worker go first, because their clients are already reading. There
 * are never more of them than workers had running, and sessions take turns there too.
 *
 * Each request has a target, which says what it needs from a worker (targets.h). While no worker has room for
 * some targets, the first request of the other targets can be taken. The passed-over requests keep their turn
 * and come first once there is room; meanwhile their sessions give requests of other targets. So a request
 * that waits for one worker does not delay requests for another. A request given in a turn that its session
 * had kept counts like any other: every request is eventually served, whatever else its session sends, and a
 * session with more targets gets no more turns. */

#include <stddef.h>
#include <stdint.h>

#include <uthash.h>

#include "broker/books/request.h"
#include "broker/choose/tenants.h"
#include "broker/choose/targets.h"
#include "common/heap.h"

#define QUEUE_PRIORITY_MIN (-8)
#define QUEUE_PRIORITY_MAX 8
#define QUEUE_BEGUN        (QUEUE_PRIORITY_MAX - QUEUE_PRIORITY_MIN + 1) /* the class of begun requests */
#define QUEUE_CLASSES      (QUEUE_BEGUN + 1)

struct queue_lane_key {
    struct id128 party; /* the id of party_in_turn */
    int32_t class;
};

struct queue_group { /* a session's waiting requests of one class and one target */
    struct queue_lane *lane;
    struct queue_group *next; /* next group of the lane */
    uint32_t target;
    struct tenants requests;
    struct heap_node node;
    uint64_t turn; /* of its first request: the lane's, or an earlier one in which it was passed over */
};

struct queue_lane { /* a session's waiting requests of one class; exists while there are any */
    struct queue_lane_key key;
    struct queue_group *groups; /* none is empty */
    uint64_t turn;              /* the turn in which it gives the next request */
    UT_hash_handle hh;
};

struct queue_class {
    struct heap groups[TARGETS_MAX]; /* by target, the group with the earliest turn first */
    size_t n;                        /* requests */
    uint64_t turn;                   /* the latest turn in which a request was taken */
};

struct queue {
    uint64_t seed; /* of the hash: sessions are chosen by clients */
    struct queue_class classes[QUEUE_CLASSES];
    struct targets targets;
    struct queue_lane *by_key;
    struct tenant_lines lines; /* of all groups */
    struct heap deadlines;     /* requests with a deadline */
    size_t n;
    uint64_t tokens; /* estimated tokens of all requests, to process and generate */
    uint64_t order;
};

/* Empty; the caller sets the seed. */
void queue_init(struct queue *queue, uint64_t seed);
void queue_deinit(struct queue *queue);

/* Adds a request. Reads home, arrived_ns, priority (clamped into range), deadline_ns and its target, which
 * must not change while it waits. 0 or -ENOMEM. */
int queue_push(struct queue *queue, struct request *request);

/* A worker announced this model. Waiting requests for it that share the target of unknown models get a
 * separate target, if one is free, and keep their turn. If memory is short, some stay where they are. */
void queue_know(struct queue *queue, struct bytes model);

/* A set of targets, by their numbers. */
#define QUEUE_TARGET(target) (UINT64_C(1) << (target))
#define QUEUE_ALL            UINT64_MAX

/* The next request of one of these targets, not removed; NULL: there is none. */
struct request *queue_first(const struct queue *queue, uint64_t targets);

/* A request whose deadline is at or before `now`; NULL: there is none. */
struct request *queue_expired(const struct queue *queue, uint64_t now);

/* The earliest deadline; UINT64_MAX: there is none. */
uint64_t queue_next_deadline(const struct queue *queue);

/* Removes a queued request. queue_take: the request was the first of these targets, for which there was room;
 * its lane has used its turn. queue_remove: no turn is used. */
void queue_take(struct queue *queue, struct request *request, uint64_t targets);
void queue_remove(struct queue *queue, struct request *request);

#endif
