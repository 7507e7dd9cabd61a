/* SPDX-License-Identifier: MIT */
/* Heaps of heaps.
 *
 *     class, target ──▶ groups, by (turn, first request) ──▶ requests of one session, its tenants in turn
 *
 * A lane holds what one session has waiting in one class; a group holds those of a lane with the same target.
 *
 * A lane that gave a request moves to the next turn with its groups, and a new lane starts there: a client
 * that sends request after request, or opens a session for each, lines up behind those who already wait. A
 * deadline moves a request forward within its session, and its session within the turn. More requests do not
 * buy more turns.
 *
 * When a lane gives a request of one group and another of its groups had no room, that other group stays in
 * the turn it was in. All other turns grow with every request given, so the group is eventually first,
 * however often its lane gives meanwhile. What it gives then costs the lane one turn like any other: the
 * lane, with those of its groups that were not left behind, moves on by one. More targets therefore do not
 * buy more turns either: a lane has given as many requests as it has moved turns, and is ahead by at most one
 * for each group.
 *
 * Classes are compared by the first request of each only. A request of a lower class thus never waits for one
 * that arrived later than the advantage of that one's class, though it may wait behind an earlier request of
 * its own class.
 *
 * Deadlines have a heap of their own, because the first to expire may be anywhere. A request knows its place
 * in both heaps, so cancelling one takes logarithmic time. */

#include "broker/choose/queue.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/hash.h"

/* ---- order ---- */

static bool deadline_before(const struct heap_node *a, const struct heap_node *b)
{
    return HEAP_ITEM(a, struct request, deadline_node)->deadline_ns <
           HEAP_ITEM(b, struct request, deadline_node)->deadline_ns;
}

static struct queue_group *group_of(const struct heap_node *node)
{
    return HEAP_ITEM(node, struct queue_group, node);
}

static struct request *first_in(const struct queue_group *group)
{
    return tenants_first(&group->requests);
}

/* Neither is empty. */
static bool is_before(const struct queue_group *a, const struct queue_group *b)
{
    return a->turn != b->turn ? a->turn < b->turn : request_presses_more(first_in(a), first_in(b));
}

static bool group_before(const struct heap_node *a, const struct heap_node *b)
{
    return is_before(group_of(a), group_of(b));
}

/* ---- lanes ---- */

static unsigned hash_of(const struct queue *queue, const struct queue_lane_key *key)
{
    return (unsigned)hash64(key, sizeof *key, queue->seed);
}

static struct queue_lane_key key_of(const struct request *request)
{
    _Static_assert(sizeof(struct queue_lane_key) == sizeof(struct id128) + sizeof(int32_t), "no padding");
    const struct party party = request_party(request);
    return (struct queue_lane_key){*party_in_turn(&party), request->queued_class};
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
    free(lane);
}

/* An empty lane, in the next turn. NULL: out of memory. */
static struct queue_lane *new_lane(struct queue *queue, const struct queue_lane_key *key)
{
    struct queue_lane *lane = calloc(1, sizeof *lane);
    if (!lane)
        return NULL;
    lane->key = *key;
    lane->turn = queue->classes[key->class].turn + 1;
    HASH_ADD_BYHASHVALUE(hh, queue->by_key, key, sizeof lane->key, hash_of(queue, key), lane);
    return lane;
}

/* ---- groups ---- */

static struct heap *heap_of(struct queue *queue, const struct queue_group *group)
{
    return &queue->classes[group->lane->key.class].groups[group->target];
}

static struct queue_group *find_group(const struct queue_lane *lane, uint32_t target)
{
    struct queue_group *group = lane->groups;
    while (group && group->target != target)
        group = group->next;
    return group;
}

static void free_group(struct queue_group *group)
{
    struct queue_group **at = &group->lane->groups;
    while (*at != group)
        at = &(*at)->next;
    *at = group->next;
    tenants_deinit(&group->requests);
    free(group);
}

/* The turn of a new group: its lane's, or as of a new lane if nothing stands in that any more. */
static uint64_t turn_to_enter(const struct queue *queue, const struct queue_lane *lane)
{
    for (const struct queue_group *group = lane->groups; group; group = group->next)
        if (group->turn == lane->turn)
            return lane->turn;
    return queue->classes[lane->key.class].turn + 1;
}

/* A group of this one request in its lane and class. 0, or -ENOMEM with nothing changed. */
static int add_group(struct queue *queue, struct queue_lane *lane, struct request *request)
{
    struct queue_group *group = calloc(1, sizeof *group);
    if (!group)
        return -ENOMEM;
    *group = (struct queue_group){.lane = lane,
                                  .next = lane->groups,
                                  .target = request->queued_target,
                                  .turn = turn_to_enter(queue, lane)};
    lane->groups = group;
    tenants_init(&group->requests);
    int r = tenants_push(&group->requests, &queue->lines, request);
    if (r == 0 && (r = heap_push(heap_of(queue, group), &group->node)) < 0) {
        tenants_leave(&group->requests, request);
        tenant_line_tidy(&queue->lines, request->queued_line);
    }
    if (r == 0)
        lane->turn = group->turn;
    else
        free_group(group);
    return r;
}

/* Adds a request to its lane. 0, or -ENOMEM with nothing changed. */
static int add_to_lane(struct queue *queue, struct queue_lane *lane, struct request *request)
{
    struct queue_group *group = find_group(lane, request->queued_target);
    int r = group ? tenants_push(&group->requests, &queue->lines, request) : add_group(queue, lane, request);
    if (r == 0 && group)
        heap_settle(heap_of(queue, group), &group->node);
    return r;
}

/* Takes a request out of its group, which is out of its class while it is empty. The caller tidies its line.
 */
static void leave_group(struct queue *queue, struct queue_group *group, struct request *request)
{
    if (group->requests.n == 1) /* before that: it is ordered by what the group has */
        heap_remove(heap_of(queue, group), &group->node);
    tenants_leave(&group->requests, request);
    if (group->requests.n > 0)
        heap_settle(heap_of(queue, group), &group->node);
}

/* Puts it back there, for which there is the memory still. */
static void enter_group_again(struct queue *queue, struct queue_group *group, struct request *request)
{
    tenants_push_again(&group->requests, request);
    if (group->requests.n == 1)
        heap_push(heap_of(queue, group), &group->node);
    else
        heap_settle(heap_of(queue, group), &group->node);
}

/* ---- the queue ---- */

void queue_init(struct queue *queue, uint64_t seed)
{
    *queue = (struct queue){.seed = seed, .lines.seed = seed, .deadlines.before = deadline_before};
    for (int i = 0; i < QUEUE_CLASSES; i++)
        for (int target = 0; target < TARGETS_MAX; target++)
            queue->classes[i].groups[target].before = group_before;
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
    request->queued_kind = request_kind(request);
    request->queued_target = targets_enter(&queue->targets, request);
    request->queued_class =
        journal_made(&request->log) > 0 ? QUEUE_BEGUN : request->priority - QUEUE_PRIORITY_MIN;
    struct queue_lane_key key = key_of(request);
    struct queue_lane *lane = find_lane(queue, &key);
    if (!lane)
        lane = new_lane(queue, &key);
    int r = lane ? add_to_lane(queue, lane, request) : -ENOMEM;
    if (r == 0) {
        queue->n++;
        queue->tokens += request->prompt_tokens + request->decode;
        queue->classes[key.class].n++;
        return 0;
    }
    if (lane && !lane->groups)
        free_lane(queue, lane);
    targets_leave(&queue->targets, request->queued_target);
    if (expires)
        heap_remove(&queue->deadlines, &request->deadline_node);
    return r;
}

static struct request *first_of_class(const struct queue *queue, int class, uint64_t targets)
{
    const struct queue_group *best = NULL;
    for (unsigned i = 0; i < TARGETS_MAX; i++) {
        if (queue->targets.n[i] == 0 || !(targets & QUEUE_TARGET(i)))
            continue;
        const struct heap_node *node = heap_first(&queue->classes[class].groups[i]);
        if (node && (!best || is_before(group_of(node), best)))
            best = group_of(node);
    }
    return best ? first_in(best) : NULL;
}

/* What was begun; else of the classes' first requests the one that is due first; on a tie that of the higher
 * class. */
struct request *queue_first(const struct queue *queue, uint64_t targets)
{
    struct request *best = first_of_class(queue, QUEUE_BEGUN, targets);
    if (best)
        return best;
    for (int i = QUEUE_BEGUN - 1; queue->n > 0 && i >= 0; i--) {
        if (queue->classes[i].n == 0)
            continue;
        struct request *request = first_of_class(queue, i, targets);
        if (request && (!best || request_due(request) < request_due(best)))
            best = request;
    }
    return best;
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

void queue_remove(struct queue *queue, struct request *request)
{
    struct queue_lane_key key = key_of(request);
    struct queue_lane *lane = find_lane(queue, &key);
    struct queue_group *group = find_group(lane, request->queued_target);
    if (request->deadline_ns != UINT64_MAX)
        heap_remove(&queue->deadlines, &request->deadline_node);
    targets_leave(&queue->targets, request->queued_target);
    queue->n--;
    queue->tokens -= request->prompt_tokens + request->decode;
    queue->classes[key.class].n--;
    leave_group(queue, group, request);
    tenant_line_tidy(&queue->lines, request->queued_line);
    if (group->requests.n == 0)
        free_group(group);
    if (!lane->groups)
        free_lane(queue, lane);
}

/* A request whose model has become known leaves the group of those that are not. 0, or -ENOMEM with nothing
 * changed. */
static int know_one(struct queue *queue, struct queue_group *unknown, struct request *request)
{
    struct tenant_line *line = request->queued_line;
    request->model_known = true;
    request->queued_target = targets_enter(&queue->targets, request);
    bool is_new = !find_group(unknown->lane, request->queued_target);
    leave_group(queue, unknown, request);
    int r = add_to_lane(queue, unknown->lane, request);
    if (r < 0) {
        request->queued_line = line;
        enter_group_again(queue, unknown, request);
        targets_leave(&queue->targets, request->queued_target);
        request->model_known = false;
        request->queued_target = unknown->target;
        return r;
    }
    targets_leave(&queue->targets, unknown->target);
    struct queue_group *group = find_group(unknown->lane, request->queued_target);
    if (is_new && unknown->turn < group->turn) {
        group->turn = unknown->turn;
        heap_settle(heap_of(queue, group), &group->node);
    }
    return 0;
}

/* Moves requests for the model out of a line of the group and tidies the line. Removing an entry reorders the
 * heap's array, so it may take several rounds to find all of them. Their number, or -ENOMEM. */
static int know_in_line(struct queue *queue, struct queue_group *unknown, struct tenant_line *line,
                        struct bytes model)
{
    int n = 0, r = 0;
    for (size_t i = line->requests.n; r == 0 && i-- > 0;) {
        struct request *request = HEAP_ITEM(line->requests.nodes[i], struct request, queue_node);
        if (!bytes_equal(request->model, model))
            continue;
        r = know_one(queue, unknown, request);
        n += r == 0;
    }
    tenant_line_tidy(&queue->lines, line);
    return r < 0 ? r : n;
}

/* The same for all lines of a group. False: none was found, or out of memory. */
static bool know_some(struct queue *queue, struct queue_group *unknown, struct bytes model)
{
    const struct heap *lines = &unknown->requests.lines;
    int n = 0, r = 0;
    for (size_t i = lines->n; r >= 0 && i-- > 0;) {
        if (i >= lines->n) /* more than one line has left */
            continue;
        r = know_in_line(queue, unknown, HEAP_ITEM(lines->nodes[i], struct tenant_line, node), model);
        n += r;
    }
    return r >= 0 && n > 0;
}

void queue_know(struct queue *queue, struct bytes model)
{
    struct queue_lane *lane, *next;
    targets_know(&queue->targets, model);
    HASH_ITER(hh, queue->by_key, lane, next)
    {
        for (uint32_t kind = 0; kind < REQUEST_KINDS; kind++) {
            struct queue_group *unknown = find_group(lane, TARGETS_SHARED_UNKNOWN + kind);
            while (unknown && know_some(queue, unknown, model))
                ;
            if (unknown && unknown->requests.n == 0)
                free_group(unknown);
        }
    }
}

/* The group's lane gives its first request: it moves on to its next turn, with that group and with those that
 * stood in its turn; but of these it leaves behind those that were passed over in it. What was left behind
 * stays there, and none is while another that was goes: rules without the one or the other let groups of a
 * lane put one another off for hundreds of chances (measured with the patterns of the test). */
static void move_on(struct queue *queue, const struct queue_group *giving, uint64_t targets)
{
    struct queue_lane *lane = giving->lane;
    struct queue_class *class = &queue->classes[lane->key.class];
    uint64_t was = lane->turn;
    bool in_turn = giving->turn == was;
    if (giving->turn > class->turn)
        class->turn = giving->turn;
    lane->turn = (was > class->turn ? was : class->turn) + 1;
    for (struct queue_group *group = lane->groups; group; group = group->next) {
        bool passed_over = in_turn && !(targets & QUEUE_TARGET(group->target));
        if (group == giving || (group->turn == was && !passed_over)) {
            group->turn = lane->turn;
            heap_settle(heap_of(queue, group), &group->node);
        }
    }
}

void queue_take(struct queue *queue, struct request *request, uint64_t targets)
{
    struct queue_lane_key key = key_of(request);
    struct queue_group *group = find_group(find_lane(queue, &key), request->queued_target);
    tenants_give(&group->requests, request);
    heap_settle(heap_of(queue, group), &group->node);
    move_on(queue, group, targets);
    queue_remove(queue, request);
}

void queue_deinit(struct queue *queue)
{
    struct queue_lane *lane, *next;
    HASH_ITER(hh, queue->by_key, lane, next)
    {
        while (lane->groups)
            free_group(lane->groups);
        free_lane(queue, lane);
    }
    for (int i = 0; i < QUEUE_CLASSES; i++)
        for (int target = 0; target < TARGETS_MAX; target++)
            heap_deinit(&queue->classes[i].groups[target]);
    heap_deinit(&queue->deadlines);
    tenant_lines_deinit(&queue->lines);
}
