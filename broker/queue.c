/* SPDX-License-Identifier: MIT */
/* Heaps of heaps.
 *
 *     class ──▶ lanes, by (turn, their first request) ──▶ requests of one session, by (due, arrival)
 *
 * A lane that gave a request stands in the next turn, and so does one that is new: who comes back with
 * request after request, or as a new session each time, finds those who wait before him. Turns of a class
 * thus differ by one at most, but for lanes whose requests are all bulky and have no room: those keep theirs,
 * and are first when there is some. A deadline moves a request forward among those of its session, and its
 * session within the turn; more requests get nobody more turns.
 *
 * Between classes only those requests are compared whose turn it is. One of a lower class so waits for none
 * that came later than its class is worth, though others that came earlier may wait behind that one.
 *
 * Deadlines have a heap of their own, because the first to expire may stand anywhere. A request knows its
 * place in both heaps, so that a cancelled one leaves in logarithmic time. */

#include "broker/queue.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/hash.h"

/* ---- order ---- */

/* When it is to start, in terms of the middle class. */
static int64_t due(const struct request *request)
{
    uint64_t ns = request->arrived_ns + QUEUE_PRESSING_NS;
    if (request->deadline_ns < ns)
        ns = request->deadline_ns;
    return (int64_t)ns - request->priority * QUEUE_CLASS_NS;
}

static bool presses_more(const struct request *a, const struct request *b)
{
    int64_t x = due(a), y = due(b);
    return x != y ? x < y : a->queue_order < b->queue_order;
}

static struct request *request_of(const struct heap_node *node)
{
    return HEAP_ITEM(node, struct request, queue_node);
}

static bool request_before(const struct heap_node *a, const struct heap_node *b)
{
    return presses_more(request_of(a), request_of(b));
}

static bool deadline_before(const struct heap_node *a, const struct heap_node *b)
{
    return HEAP_ITEM(a, struct request, deadline_node)->deadline_ns <
           HEAP_ITEM(b, struct request, deadline_node)->deadline_ns;
}

static struct queue_lane *lane_of(const struct heap_node *node)
{
    return HEAP_ITEM(node, struct queue_lane, node);
}

static struct queue_lane *brief_lane_of(const struct heap_node *node)
{
    return HEAP_ITEM(node, struct queue_lane, brief_node);
}

static struct request *first_in(const struct heap *requests)
{
    const struct heap_node *node = heap_first(requests);
    return node ? request_of(node) : NULL;
}

static struct request *first_of(const struct queue_lane *lane)
{
    struct request *brief = first_in(&lane->brief), *bulky = first_in(&lane->bulky);
    return !bulky || (brief && presses_more(brief, bulky)) ? brief : bulky;
}

static bool lane_before(const struct heap_node *a, const struct heap_node *b)
{
    const struct queue_lane *x = lane_of(a), *y = lane_of(b);
    return x->turn != y->turn ? x->turn < y->turn : presses_more(first_of(x), first_of(y));
}

static bool brief_lane_before(const struct heap_node *a, const struct heap_node *b)
{
    const struct queue_lane *x = brief_lane_of(a), *y = brief_lane_of(b);
    return x->turn != y->turn ? x->turn < y->turn : presses_more(first_in(&x->brief), first_in(&y->brief));
}

/* ---- lanes ---- */

static unsigned hash_of(const struct queue *queue, const struct queue_lane_key *key)
{
    return (unsigned)hash64(key, sizeof *key, queue->seed);
}

static struct queue_lane_key key_of(const struct request *request)
{
    _Static_assert(sizeof(struct queue_lane_key) == sizeof(struct id128) + sizeof(int32_t), "no padding");
    return (struct queue_lane_key){*request_client(request), request->priority - QUEUE_PRIORITY_MIN};
}

static struct queue_lane *find_lane(const struct queue *queue, const struct queue_lane_key *key)
{
    struct queue_lane *lane;
    HASH_FIND_BYHASHVALUE(hh, queue->by_key, key, sizeof *key, hash_of(queue, key), lane);
    return lane;
}

static void free_lane(struct queue *queue, struct queue_lane *lane)
{
    HASH_DEL(queue->by_key, lane);
    heap_deinit(&lane->brief);
    heap_deinit(&lane->bulky);
    free(lane);
}

/* An empty lane, in the next turn, that stands in no heap yet. NULL: out of memory. */
static struct queue_lane *new_lane(struct queue *queue, const struct queue_lane_key *key)
{
    struct queue_lane *lane = calloc(1, sizeof *lane);
    if (!lane)
        return NULL;
    lane->key = *key;
    lane->turn = queue->classes[key->class].turn + 1;
    lane->brief.before = lane->bulky.before = request_before;
    HASH_ADD_BYHASHVALUE(hh, queue->by_key, key, sizeof lane->key, hash_of(queue, key), lane);
    return lane;
}

static bool is_empty(const struct queue_lane *lane)
{
    return lane->brief.n == 0 && lane->bulky.n == 0;
}

static struct heap *heap_for(struct queue_lane *lane, const struct request *request)
{
    return request->queued_brief ? &lane->brief : &lane->bulky;
}

/* Puts the lane where it belongs, its requests or its turn having changed. */
static void settle(struct queue *queue, struct queue_lane *lane)
{
    struct queue_class *class = &queue->classes[lane->key.class];
    heap_settle(&class->lanes, &lane->node);
    if (lane->brief.n > 0)
        heap_settle(&class->brief_lanes, &lane->brief_node);
}

/* Adds a request to its lane, and the lane to the heaps in which it is not yet. 0, or -ENOMEM with nothing
 * changed. */
static int add_to_lane(struct queue *queue, struct queue_lane *lane, struct request *request)
{
    struct queue_class *class = &queue->classes[lane->key.class];
    struct heap *requests = heap_for(lane, request);
    bool is_new = is_empty(lane), first_brief = request->queued_brief && lane->brief.n == 0;
    int r = heap_push(requests, &request->queue_node);
    if (r < 0)
        return r;
    if (is_new)
        r = heap_push(&class->lanes, &lane->node);
    if (r == 0 && first_brief) {
        r = heap_push(&class->brief_lanes, &lane->brief_node);
        if (r < 0 && is_new)
            heap_remove(&class->lanes, &lane->node);
    }
    if (r < 0)
        heap_remove(requests, &request->queue_node);
    else
        settle(queue, lane);
    return r;
}

/* ---- the queue ---- */

void queue_init(struct queue *queue, uint64_t seed)
{
    *queue = (struct queue){.seed = seed, .deadlines.before = deadline_before};
    for (int i = 0; i < QUEUE_CLASSES; i++) {
        queue->classes[i].lanes.before = lane_before;
        queue->classes[i].brief_lanes.before = brief_lane_before;
    }
}

int queue_push(struct queue *queue, struct request *request)
{
    if (request->priority < QUEUE_PRIORITY_MIN)
        request->priority = QUEUE_PRIORITY_MIN;
    if (request->priority > QUEUE_PRIORITY_MAX)
        request->priority = QUEUE_PRIORITY_MAX;
    bool expires = request->deadline_ns != UINT64_MAX;
    if (expires && heap_push(&queue->deadlines, &request->deadline_node) < 0)
        return -ENOMEM;
    request->queue_order = queue->order++;
    request->queued_brief = request_is_brief(request);
    struct queue_lane_key key = key_of(request);
    struct queue_lane *lane = find_lane(queue, &key);
    if (!lane)
        lane = new_lane(queue, &key);
    int r = lane ? add_to_lane(queue, lane, request) : -ENOMEM;
    if (r == 0) {
        queue->n++;
        return 0;
    }
    if (lane && is_empty(lane))
        free_lane(queue, lane);
    if (expires)
        heap_remove(&queue->deadlines, &request->deadline_node);
    return r;
}

/* Of the classes' first requests the one that is due first; on a tie that of the higher class. */
static struct request *first(const struct queue *queue, bool brief)
{
    struct request *best = NULL;
    for (int i = QUEUE_CLASSES - 1; queue->n > 0 && i >= 0; i--) {
        const struct queue_class *class = &queue->classes[i];
        const struct heap_node *node = heap_first(brief ? &class->brief_lanes : &class->lanes);
        if (!node)
            continue;
        struct request *request = brief ? first_in(&brief_lane_of(node)->brief) : first_of(lane_of(node));
        if (!best || due(request) < due(best))
            best = request;
    }
    return best;
}

struct request *queue_first(const struct queue *queue)
{
    return first(queue, false);
}

struct request *queue_first_brief(const struct queue *queue)
{
    return first(queue, true);
}

static struct request *first_to_expire(const struct queue *queue)
{
    const struct heap_node *node = heap_first(&queue->deadlines);
    return node ? HEAP_ITEM(node, struct request, deadline_node) : NULL;
}

struct request *queue_expired(const struct queue *queue, uint64_t now)
{
    struct request *request = first_to_expire(queue);
    return request && request->deadline_ns <= now ? request : NULL;
}

uint64_t queue_next_deadline(const struct queue *queue)
{
    const struct request *request = first_to_expire(queue);
    return request ? request->deadline_ns : UINT64_MAX;
}

/* Takes the request out of its lane, which then stands in turn `turn`, if there is more in it. */
static void leave(struct queue *queue, struct request *request, struct queue_lane *lane, uint64_t turn)
{
    struct queue_class *class = &queue->classes[lane->key.class];
    struct heap *requests = heap_for(lane, request);
    if (request->deadline_ns != UINT64_MAX)
        heap_remove(&queue->deadlines, &request->deadline_node);
    queue->n--;
    /* Out of the heaps first: they are ordered by what the lane has. */
    if (request->queued_brief && lane->brief.n == 1)
        heap_remove(&class->brief_lanes, &lane->brief_node);
    if (lane->brief.n + lane->bulky.n == 1) {
        heap_remove(&class->lanes, &lane->node);
        free_lane(queue, lane);
        return;
    }
    heap_remove(requests, &request->queue_node);
    lane->turn = turn;
    settle(queue, lane);
}

void queue_take(struct queue *queue, struct request *request)
{
    struct queue_lane_key key = key_of(request);
    struct queue_lane *lane = find_lane(queue, &key);
    struct queue_class *class = &queue->classes[key.class];
    if (lane->turn > class->turn)
        class->turn = lane->turn;
    leave(queue, request, lane, class->turn + 1);
}

void queue_remove(struct queue *queue, struct request *request)
{
    struct queue_lane_key key = key_of(request);
    struct queue_lane *lane = find_lane(queue, &key);
    leave(queue, request, lane, lane->turn);
}

void queue_deinit(struct queue *queue)
{
    struct queue_lane *lane, *next;
    HASH_ITER(hh, queue->by_key, lane, next)
    {
        free_lane(queue, lane);
    }
    for (int i = 0; i < QUEUE_CLASSES; i++) {
        heap_deinit(&queue->classes[i].lanes);
        heap_deinit(&queue->classes[i].brief_lanes);
    }
    heap_deinit(&queue->deadlines);
}
