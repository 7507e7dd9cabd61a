/* SPDX-License-Identifier: MIT */
/* Slots and KV blocks under continuous batching.
 *
 * Blocks are allotted as positions grow. When none is free the most junior sequence gives up its own and is
 * computed again later; a sequence never preempts its senior. So the most senior one always advances, and
 * whoever fits alone finishes. Admission asks for room for the whole prompt, beside what running prompts
 * still need and a block for each who decodes: preemption is then the exception. It asks this of the head of
 * the waiting list alone, where the preempted stand first: newcomers that need less do not overtake them. A
 * sequence whose steps are in flight, or which is already part of the step being built, is only marked, and
 * leaves when they are done. */

#include "engine/scheduler.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "engine/following.h"

/* Ids of a block in common with another prompt that are worth a copy of it: a step of up to eight rows takes
 * as long as one row. */
#define LEAST_COPIED 8

/* Sequences that wait for what others compute and are passed by in one look. */
#define MOST_PASSED 32

int scheduler_init(struct scheduler *scheduler, const struct backend_ops *ops, struct backend *backend,
                   uint32_t n_slots, uint32_t most_cached)
{
    *scheduler = (struct scheduler){.ops = ops, .backend = backend, .n_slots = n_slots};
    ops->info(backend, &scheduler->info);
    scheduler->running = calloc(n_slots, sizeof *scheduler->running);
    scheduler->free_slots = calloc(n_slots, sizeof *scheduler->free_slots);
    bool made = scheduler->running && scheduler->free_slots;
    for (uint32_t g = 0; made && g < scheduler->info.n_groups; g++)
        made = blocks_new(scheduler->info.groups[g].n_blocks, &scheduler->blocks[g]) == 0;
    made = made && prefix_new(scheduler->info.groups, scheduler->info.n_groups, scheduler->blocks,
                              most_cached, &scheduler->prefix) == 0;
    if (scheduler->info.state_bytes > 0)
        made = made && blocks_new(scheduler->info.n_snapshots, &scheduler->snapshots) == 0 &&
               prefix_use_snapshots(scheduler->prefix, scheduler->snapshots) == 0;
    if (!made) {
        scheduler_deinit(scheduler);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < n_slots; i++)
        scheduler->free_slots[i] = n_slots - 1 - i;
    return 0;
}

void scheduler_deinit(struct scheduler *scheduler)
{
    struct sequence *sequence, *next;
    DL_FOREACH_SAFE(scheduler->waiting, sequence, next)
    {
        sequence_free(sequence);
    }
    DL_FOREACH_SAFE(scheduler->held, sequence, next)
    {
        sequence_free(sequence);
    }
    for (uint32_t i = 0; i < scheduler->n_running; i++)
        sequence_free(scheduler->running[i]);
    free(scheduler->running);
    free(scheduler->free_slots);
    prefix_free(scheduler->prefix);
    for (uint32_t g = 0; g < scheduler->info.n_groups; g++)
        blocks_free(scheduler->blocks[g]);
    blocks_free(scheduler->snapshots);
    *scheduler = (struct scheduler){0};
}

/* ---- waiting and running ---- */

static void enqueue(struct scheduler *scheduler, struct sequence *sequence)
{
    sequence->is_held = sequence_is_held(sequence);
    if (sequence->is_held) {
        DL_APPEND(scheduler->held, sequence);
        scheduler->n_held++;
        return;
    }
    /* From the back: most arrive in order. */
    struct sequence *at = scheduler->waiting ? scheduler->waiting->prev : NULL;
    while (at && sequence_goes_before(sequence, at))
        at = at == scheduler->waiting ? NULL : at->prev;
    if (at)
        DL_APPEND_ELEM(scheduler->waiting, at, sequence);
    else
        DL_PREPEND(scheduler->waiting, sequence);
    scheduler->n_waiting++;
    scheduler->n_new += !sequence->started;
}

void scheduler_add(struct scheduler *scheduler, struct sequence *sequence, struct bytes salt)
{
    sequence->unsalted = salt.len == 0;
    sequence->space = sequence->uncached ? 0 : prefix_enter(scheduler->prefix, salt);
    enqueue(scheduler, sequence);
}

void scheduler_dequeue(struct scheduler *scheduler, struct sequence *sequence)
{
    if (sequence->is_held) {
        DL_DELETE(scheduler->held, sequence);
        scheduler->n_held--;
        sequence->is_held = false;
        return;
    }
    DL_DELETE(scheduler->waiting, sequence);
    scheduler->n_waiting--;
    scheduler->n_new -= !sequence->started;
}

void scheduler_credited(struct scheduler *scheduler, struct sequence *sequence)
{
    if (!sequence->is_held || sequence_is_held(sequence))
        return;
    scheduler_dequeue(scheduler, sequence);
    enqueue(scheduler, sequence);
}

void scheduler_forget(struct scheduler *scheduler, struct sequence *sequence)
{
    prefix_leave(scheduler->prefix, sequence->space);
    sequence_free(sequence);
}

/* Blocks of a group that a running sequence will want besides those it holds: what its prompt does, and one
 * more to go on with; or, with a window, no more than that takes. */
static uint32_t still_wants(const struct backend_group *group, const struct sequence *running, uint32_t held)
{
    uint32_t prompt = backend_held_blocks(group, running->n_prefill);
    uint32_t most = backend_held_blocks(group, running->end_position);
    uint32_t wants = running->state != SEQUENCE_ENDED && prompt > held ? prompt - held : 0;
    return wants + (group->window == 0 || held + wants < most);
}

/* Does the group have room for a sequence with `n` blocks found, beside what runs? */
static bool fits_group(const struct scheduler *scheduler, const struct sequence *sequence, uint32_t n,
                       uint32_t g)
{
    const struct backend_group *group = &scheduler->info.groups[g];
    const uint32_t first = backend_first_block(group, n * BACKEND_BLOCK_TOKENS);
    const uint32_t most = backend_held_blocks(group, (uint32_t)sequence->ids.len + 1);
    uint64_t need = most > n - first ? most - (n - first) : 0;
    need += prefix_idle(scheduler->prefix, g, sequence->tables[g] + first, n - first);
    for (uint32_t i = 0; i < scheduler->n_running; i++) {
        const struct sequence *running = scheduler->running[i];
        need += still_wants(group, running, running->n_blocks - running->n_slid[g]);
    }
    return need <= prefix_available(scheduler->prefix, g);
}

static bool fits(const struct scheduler *scheduler, const struct sequence *sequence, uint32_t n)
{
    bool fits = true;
    if (scheduler->n_running == 0)
        return true; /* alone it fits: its limits were checked */
    for (uint32_t g = 0; fits && g < scheduler->info.n_groups; g++)
        fits = fits_group(scheduler, sequence, n, g);
    return fits;
}

/* What `fits` and the look-up depend on. As long as it stays the same, so does the answer. */
static struct scheduler_look look_now(const struct scheduler *scheduler, const struct sequence *head)
{
    const struct prefix_counts counts = prefix_counts(scheduler->prefix);
    struct scheduler_look look = {.arrival = head->arrival,
                                  .changes = counts.inserted + counts.completed + counts.snapshots_given,
                                  .n_running = scheduler->n_running};
    for (uint32_t g = 0; g < scheduler->info.n_groups; g++)
        look.available[g] = prefix_available(scheduler->prefix, g);
    return look;
}

static bool is_same_look(const struct scheduler_look *a, const struct scheduler_look *b)
{
    return a->arrival == b->arrival && a->changes == b->changes &&
           memcmp(a->available, b->available, sizeof a->available) == 0 && a->n_running == b->n_running;
}

/* Finds what the cache has of the sequence's ids. *ret_reach: nodes, if all had snapshots. */
static uint32_t look_up(const struct scheduler *scheduler, struct sequence *sequence, uint32_t *ret_reach)
{
    const uint32_t n =
        prefix_find_reaching(scheduler->prefix, sequence->space, sequence->ids.data,
                             sequence_most_found(sequence), sequence->tables, &sequence->place, ret_reach);
    sequence->branch = *ret_reach > n ? *ret_reach * BACKEND_BLOCK_TOKENS : 0;
    return n;
}

/* Whether the store may have something behind the first n blocks, which are found. */
static bool may_restore(const struct scheduler *scheduler, const struct sequence *sequence, uint32_t n)
{
    return scheduler->tier && sequence->space != 0 && n < sequence_most_found(sequence) &&
           sequence->n_missing != n + 1;
}

/* Brings into the cache what the store has behind the first n blocks. True: there may be more of it, and the
 * sequence waits for that. */
static bool restore(struct scheduler *scheduler, struct sequence *sequence, uint32_t *n)
{
    bool more = false;
    if (!may_restore(scheduler, sequence, *n))
        return false;
    *n += tier_restore(scheduler->tier, sequence, *n, sequence_most_found(sequence), &more);
    sequence->n_missing = more ? 0 : *n + 1;
    return more;
}

/* The same of a model with states. Nobody holds what was brought, and who waits next could take its place: so
 * the sequence is looked up again at once, as long as that finds more, and begins with what it found. */
static bool restore_snapshot(struct scheduler *scheduler, struct sequence *sequence, uint32_t *n,
                             uint32_t reach)
{
    while (may_restore(scheduler, sequence, *n)) {
        const uint32_t had = *n, reached = reach;
        bool more;
        const uint32_t brought =
            tier_restore_snapshot(scheduler->tier, sequence, *n, reach, sequence_most_found(sequence), &more);
        if (more)
            return true;
        if (brought > 0)
            *n = look_up(scheduler, sequence, &reach);
        if (*n <= had && reach <= reached)
            sequence->n_missing = *n + 1;
    }
    return false;
}

struct sequence *scheduler_next(struct scheduler *scheduler, uint32_t *ret_filled)
{
    uint32_t passed = 0;
    if (scheduler->n_running == scheduler->n_slots)
        return NULL;
    for (struct sequence *head = scheduler->waiting; head && passed < MOST_PASSED;
         head = head->next, passed++) {
        const struct scheduler_look look = look_now(scheduler, head);
        if (head->state != SEQUENCE_WAITING || is_same_look(&look, &scheduler->refused))
            return NULL;
        if (head->turn_ns == 0)
            head->turn_ns = clock_ns();
        if (following_goes_on(scheduler, head))
            continue;
        uint32_t reach, n = look_up(scheduler, head, &reach);
        if (following_begin(scheduler, head, n))
            continue;
        if (!fits(scheduler, head, n)) {
            scheduler->refused = look;
            return NULL;
        }
        if (scheduler->snapshots ? restore_snapshot(scheduler, head, &n, reach)
                                 : restore(scheduler, head, &n))
            continue;
        *ret_filled = n;
        return head;
    }
    return NULL;
}

/* Holds the blocks that were found: of group 0 all, so that those before the window count as used now, and of
 * each other one those in the window, which are all that were found of it. */
static void hold_found(struct scheduler *scheduler, struct sequence *sequence, uint32_t n)
{
    for (uint32_t g = 0; g < scheduler->info.n_groups; g++) {
        const struct backend_group *group = &scheduler->info.groups[g];
        const uint32_t first = g > 0 ? backend_first_block(group, n * BACKEND_BLOCK_TOKENS) : 0;
        prefix_hold(scheduler->prefix, g, sequence->tables[g] + first, n - first);
        sequence->n_slid[g] = first;
    }
}

static uint32_t available_of_each(const struct scheduler *scheduler);
static void take_blocks(struct scheduler *scheduler, struct sequence *sequence, uint32_t at, uint32_t n);
static void slide(struct scheduler *scheduler, struct sequence *sequence);

/* Whether blocks that are not full are kept and copied: a state cannot begin inside a block. */
static bool shares_tails(const struct scheduler *scheduler, const struct sequence *sequence)
{
    return scheduler->ops->copy_block && !scheduler->snapshots && sequence->place != 0;
}

/* Behind the n full blocks that it holds: takes a block, and copies there what another has begun with the
 * same ids. *ret_copied: how many; 0: too few, or there is no room. */
static int copy_common(struct scheduler *scheduler, struct sequence *sequence, uint32_t n,
                       uint32_t *ret_copied)
{
    const uint32_t begun = n * BACKEND_BLOCK_TOKENS, left = (uint32_t)sequence->ids.len - 1 - begun;
    const uint32_t most = left < BACKEND_BLOCK_TOKENS - 1 ? left : BACKEND_BLOCK_TOKENS - 1;
    uint32_t from[BACKEND_MOST_GROUPS];
    int r = 0;
    *ret_copied = 0;
    if (most < LEAST_COPIED || !shares_tails(scheduler, sequence))
        return 0;
    const uint32_t common = prefix_find_common(scheduler->prefix, sequence->place, sequence->ids.data + begun,
                                               most, sequence->unsalted, from);
    if (common < LEAST_COPIED)
        return 0;
    for (uint32_t g = 0; g < scheduler->info.n_groups; g++)
        prefix_hold(scheduler->prefix, g, &from[g], 1);
    if (available_of_each(scheduler) > 0) {
        take_blocks(scheduler, sequence, n, 1);
        *ret_copied = common;
        for (uint32_t g = 0; g < scheduler->info.n_groups && r == 0; g++)
            r = scheduler->ops->copy_block(scheduler->backend, g, from[g], sequence->tables[g][n]);
    }
    for (uint32_t g = scheduler->info.n_groups; g-- > 0;)
        prefix_release(scheduler->prefix, g, &from[g], 1);
    return r;
}

/* Of each group those from n_slid up to the n-th. */
static void release_blocks(struct scheduler *scheduler, struct sequence *sequence, uint32_t n)
{
    for (uint32_t g = scheduler->info.n_groups; g-- > 0;)
        prefix_release(scheduler->prefix, g, sequence->tables[g] + sequence->n_slid[g],
                       n - sequence->n_slid[g]);
}

static int open_slot(struct scheduler *scheduler, const struct sequence *sequence, uint32_t slot,
                     uint32_t position)
{
    uint32_t snapshot = 0;
    if (position > 0 && scheduler->snapshots &&
        !prefix_snapshot_at(scheduler->prefix, sequence->place, &snapshot))
        return -EINVAL; /* which prefix_find excludes */
    const struct backend_slot params = {.sampling = sequence->sampling,
                                        .n_logprobs = sequence->n_logprobs,
                                        .stop_ids = sequence->stop_ids.data,
                                        .n_stop_ids = (uint32_t)sequence->stop_ids.len,
                                        .stops_from = sequence->stops_from,
                                        .end_position = sequence->end_position,
                                        .position = position,
                                        .snapshot = snapshot,
                                        .history = sequence->ids.data,
                                        .n_history = (uint32_t)sequence->ids.len,
                                        .n_prompt = sequence->n_prompt,
                                        .embeds = sequence->embeds};
    return scheduler->ops->slot_open(scheduler->backend, slot, &params);
}

int scheduler_start(struct scheduler *scheduler, struct sequence *sequence, uint32_t n_filled)
{
    const uint32_t slot = scheduler->free_slots[scheduler->n_slots - 1 - scheduler->n_running];
    uint32_t n_copied;
    hold_found(scheduler, sequence, n_filled);
    int r = copy_common(scheduler, sequence, n_filled, &n_copied);
    if (r == 0)
        r = open_slot(scheduler, sequence, slot, n_filled * BACKEND_BLOCK_TOKENS + n_copied);
    if (r < 0) {
        release_blocks(scheduler, sequence, n_filled + (n_copied > 0));
        memset(sequence->n_slid, 0, sizeof sequence->n_slid);
        return r;
    }
    scheduler_dequeue(scheduler, sequence);
    sequence->follows = 0;
    sequence->n_wanted = 0;
    sequence->n_missing = 0; /* by when it waits again its own blocks may be there */
    sequence_start(sequence, slot, n_filled, n_copied);
    slide(scheduler, sequence);
    if (sequence->started_ns == 0)
        sequence->started_ns = clock_ns();
    scheduler->cache_hits += sequence->fed;
    uint32_t at = scheduler->n_running++;
    for (; at > 0 && sequence_is_senior(sequence, scheduler->running[at - 1]); at--)
        scheduler->running[at] = scheduler->running[at - 1];
    scheduler->running[at] = sequence;
    return 0;
}

static void offer_tail(struct scheduler *scheduler, const struct sequence *sequence);

void scheduler_release(struct scheduler *scheduler, struct sequence *sequence)
{
    assert(sequence->in_flight == 0);
    uint32_t at = 0;
    while (scheduler->running[at] != sequence)
        at++;
    scheduler->n_running--;
    memmove(&scheduler->running[at], &scheduler->running[at + 1],
            (scheduler->n_running - at) * sizeof scheduler->running[0]);
    scheduler->free_slots[scheduler->n_slots - 1 - scheduler->n_running] = sequence->slot;
    scheduler->ops->slot_close(scheduler->backend, sequence->slot);
    offer_tail(scheduler, sequence);
    release_blocks(scheduler, sequence, sequence->n_blocks);
    if (sequence->turn && scheduler->tier)
        tier_offer_snapshot(scheduler->tier, sequence->turn, sequence->n_turn - 1);
    while (sequence->n_snapshots > 0) /* of what was not computed, or is not kept */
        prefix_return_snapshot(scheduler->prefix, sequence->snapshots[--sequence->n_snapshots].snapshot);
    sequence_leave(sequence);
    if (sequence->state == SEQUENCE_WAITING) {
        if (scheduler->observer)
            scheduler->observer->mark(scheduler->observer->arg, sequence->tag, ENGINE_MARK_SLOT_LOST,
                                      sequence->ids.len, clock_ns());
        enqueue(scheduler, sequence);
        scheduler->preemptions += !sequence->is_held;
    }
}

/* ---- blocks ---- */

/* Gives back what no row to come can see: rows in flight, and drafts, stand behind what is final. The block
 * that was offered last stays, for the next one is offered as its child. */
static void slide(struct scheduler *scheduler, struct sequence *sequence)
{
    for (uint32_t g = 0; g < scheduler->info.n_groups; g++) {
        uint32_t out = backend_first_block(&scheduler->info.groups[g], sequence->n_final);
        if (out >= sequence->n_offered)
            out = sequence->n_offered > 0 ? sequence->n_offered - 1 : 0;
        if (out > sequence->n_slid[g]) {
            prefix_release(scheduler->prefix, g, sequence->tables[g] + sequence->n_slid[g],
                           out - sequence->n_slid[g]);
            sequence->n_slid[g] = out;
        }
    }
}

/* ---- snapshots ---- */

bool scheduler_take_snapshot(struct scheduler *scheduler, struct sequence *sequence, uint32_t border,
                             uint32_t *ret_snapshot)
{
    const uint32_t n = sequence->n_snapshots;
    if (!scheduler->snapshots || n == SEQUENCE_MOST_SNAPSHOTS ||
        !prefix_take_snapshot(scheduler->prefix, ret_snapshot))
        return false;
    sequence->snapshots[n].snapshot = *ret_snapshot;
    sequence->snapshots[n].border = border;
    sequence->n_snapshots++;
    return true;
}

/* The node at the sequence's place, which ends at a border, gets the snapshot that was taken there. One of an
 * answer takes the place of the one before. */
static void give_snapshot(struct scheduler *scheduler, struct sequence *sequence, uint32_t border)
{
    uint32_t i = 0;
    while (i < sequence->n_snapshots && sequence->snapshots[i].border != border)
        i++;
    if (i == sequence->n_snapshots)
        return;
    const uint32_t snapshot = sequence->snapshots[i].snapshot;
    sequence->snapshots[i] = sequence->snapshots[--sequence->n_snapshots];
    if (!prefix_give_snapshot(scheduler->prefix, sequence->place, snapshot))
        return;
    if (border < sequence->n_prefill) {
        if (scheduler->tier)
            tier_offer_snapshot(scheduler->tier, sequence->place, border / BACKEND_BLOCK_TOKENS - 1);
        return;
    }
    prefix_drop_snapshot(scheduler->prefix, sequence->turn);
    sequence->turn = sequence->place;
    sequence->n_turn = border / BACKEND_BLOCK_TOKENS;
}

/* Ids that the cache may be told: a draft's end may be fed and not be part of the answer. */
static uint32_t final_ids(const struct sequence *sequence)
{
    const uint32_t known = (uint32_t)sequence->ids.len;
    return sequence->n_final < known ? sequence->n_final : known;
}

/* The n-th blocks, of each group. */
static void blocks_at(const struct sequence *sequence, uint32_t n, uint32_t ret_blocks[BACKEND_MOST_GROUPS])
{
    for (uint32_t g = 0; g < sequence->n_groups; g++)
        ret_blocks[g] = sequence->tables[g][n];
}

/* Offers the cache what is final of the block that is not full. */
static void offer_tail(struct scheduler *scheduler, const struct sequence *sequence)
{
    const uint32_t begun = sequence->n_offered * BACKEND_BLOCK_TOKENS, end = final_ids(sequence);
    uint32_t blocks[BACKEND_MOST_GROUPS];
    if (end < begun + LEAST_COPIED || end >= begun + BACKEND_BLOCK_TOKENS ||
        !shares_tails(scheduler, sequence))
        return;
    blocks_at(sequence, sequence->n_offered, blocks);
    prefix_insert_tail(scheduler->prefix, sequence->place, sequence->ids.data + begun, end - begun,
                       sequence->unsalted, blocks);
}

void scheduler_offer_blocks(struct scheduler *scheduler, struct sequence *sequence)
{
    const uint32_t end = final_ids(sequence) / BACKEND_BLOCK_TOKENS;
    for (; sequence->n_offered < end; sequence->n_offered++) {
        const uint32_t n = sequence->n_offered;
        const uint64_t before = sequence->place;
        uint32_t blocks[BACKEND_MOST_GROUPS];
        blocks_at(sequence, n, blocks);
        if (prefix_insert(scheduler->prefix, &sequence->place,
                          sequence->ids.data + (size_t)n * BACKEND_BLOCK_TOKENS, blocks) &&
            scheduler->tier)
            tier_offer(scheduler->tier, sequence, n, before);
        if ((n + 1) * BACKEND_BLOCK_TOKENS <= sequence->n_prefill && shares_tails(scheduler, sequence))
            prefix_share(scheduler->prefix, sequence->place,
                         (n + 1) * BACKEND_BLOCK_TOKENS == sequence->n_prefill);
        if (sequence->n_snapshots > 0)
            give_snapshot(scheduler, sequence, (n + 1) * BACKEND_BLOCK_TOKENS);
    }
    const uint32_t prompt = sequence->n_prefill;
    if (sequence->n_final >= prompt && sequence->n_offered * BACKEND_BLOCK_TOKENS < prompt)
        offer_tail(scheduler, sequence);
    sequence_set_offer(sequence);
    slide(scheduler, sequence);
}

/* Blocks that can be had of every group. */
static uint32_t available_of_each(const struct scheduler *scheduler)
{
    uint32_t least = UINT32_MAX;
    for (uint32_t g = 0; g < scheduler->info.n_groups; g++) {
        const uint32_t n = prefix_available(scheduler->prefix, g);
        least = n < least ? n : least;
    }
    return least;
}

/* Preempts juniors of `sequence`, the most junior first, until a block of each group is free or on its way.
 * True when they are free now. */
static bool make_room(struct scheduler *scheduler, const struct sequence *sequence)
{
    while (available_of_each(scheduler) == 0) {
        struct sequence *victim = NULL;
        for (uint32_t i = scheduler->n_running; i-- > 0 && !victim;) {
            struct sequence *junior = scheduler->running[i];
            if (junior == sequence)
                return false; /* its seniors hold all the rest: it waits for them */
            if (junior->n_blocks > 0 && !sequence_stays(junior))
                return false; /* its blocks are on their way */
            if (junior->n_blocks > 0)
                victim = junior;
        }
        if (!victim)
            return false;
        sequence_become(victim, SEQUENCE_LEAVING);
        if (victim->in_flight > 0)
            return false;
        scheduler_release(scheduler, victim);
    }
    return true;
}

/* Takes n blocks of each group, which there are, for its tables from `at` on. From the last group on: what
 * group 0 evicts may have been in the others. */
static void take_blocks(struct scheduler *scheduler, struct sequence *sequence, uint32_t at, uint32_t n)
{
    for (uint32_t g = scheduler->info.n_groups; g-- > 0;) {
        uint32_t *blocks = sequence->tables[g] + at;
        bool taken = prefix_alloc(scheduler->prefix, g, n, blocks);
        assert(taken);
        (void)taken;
        if (scheduler->tier)
            tier_fresh(scheduler->tier, g, blocks, n);
    }
}

uint32_t scheduler_allot(struct scheduler *scheduler, struct sequence *sequence, uint32_t end)
{
    uint32_t need = backend_blocks_for(end);
    if (need > sequence->n_blocks) {
        uint32_t more = need - sequence->n_blocks;
        if (available_of_each(scheduler) == 0 && !make_room(scheduler, sequence))
            more = 0;
        if (more > available_of_each(scheduler))
            more = available_of_each(scheduler);
        take_blocks(scheduler, sequence, sequence->n_blocks, more);
        sequence->n_blocks += more;
    }
    uint32_t reach = sequence->n_blocks * BACKEND_BLOCK_TOKENS;
    return reach < end ? reach : end;
}

uint32_t scheduler_most_positions(const struct scheduler *scheduler)
{
    uint64_t most = UINT32_MAX;
    for (uint32_t g = 0; g < scheduler->info.n_groups; g++) {
        const struct backend_group *group = &scheduler->info.groups[g];
        const uint64_t positions = (uint64_t)group->n_blocks * BACKEND_BLOCK_TOKENS;
        if (group->n_blocks < backend_held_blocks(group, UINT32_MAX) && positions < most)
            most = positions;
    }
    return (uint32_t)most;
}
