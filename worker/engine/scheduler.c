/* SPDX-License-Identifier: MIT */
/* Continuous batching under two budgets: KV blocks and time.
 *
 * Every step takes the next token of all sequences that decode. What is left of the step's time, by measured
 * speed, goes to prompts, in order of seniority; none takes more than half while another wants some, so that
 * a long prompt does not hold up a short one.
 *
 * Blocks are allotted as positions grow. When none is free the most junior sequence gives up its own and is
 * computed again later; a sequence never preempts its senior. So the most senior one always advances, and
 * whoever fits alone finishes. Admission asks for room for the whole prompt, beside what running prompts
 * still need and a block for each who decodes: preemption is then the exception. A sequence whose steps are
 * in flight, or which is already part of the step being built, is only marked, and leaves when they are
 * done. */

#include "worker/engine/scheduler.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"

#include <utlist.h>

#define CHUNK_LEAST   32  /* rows of a prompt that a step takes, however slow they are */
#define CHUNK_MOST    512 /* beside sequences that decode */
#define CHUNK_FIRST   128 /* before the speed is known */
#define ALONE_STEPS   10
#define MEASURE_SHARE 0.25
#define MEASURE_ROWS  16 /* fewer rows of prefill say little about the speed of many */

int scheduler_init(struct scheduler *scheduler, const struct backend_ops *ops, struct backend *backend,
                   uint32_t n_slots, uint32_t step_ms)
{
    struct backend_info info;
    ops->info(backend, &info);
    *scheduler = (struct scheduler){.ops = ops,
                                    .backend = backend,
                                    .n_slots = n_slots,
                                    .max_rows = info.max_rows,
                                    .step_ns = step_ms * CLOCK_NS_PER_MS};
    scheduler->running = calloc(n_slots, sizeof *scheduler->running);
    scheduler->free_slots = calloc(n_slots, sizeof *scheduler->free_slots);
    if (!scheduler->running || !scheduler->free_slots || blocks_new(info.n_blocks, &scheduler->blocks) < 0) {
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
    for (uint32_t i = 0; i < scheduler->n_running; i++)
        sequence_free(scheduler->running[i]);
    free(scheduler->running);
    free(scheduler->free_slots);
    blocks_free(scheduler->blocks);
    *scheduler = (struct scheduler){0};
}

int plan_init(struct plan *plan, uint32_t n_slots)
{
    plan->sets = calloc(n_slots, sizeof *plan->sets);
    plan->sequences = calloc(n_slots, sizeof *plan->sequences);
    if (plan->sets && plan->sequences)
        return 0;
    plan_deinit(plan);
    return -ENOMEM;
}

void plan_deinit(struct plan *plan)
{
    free(plan->sets);
    free(plan->sequences);
    *plan = (struct plan){0};
}

/* ---- waiting and running ---- */

void scheduler_enqueue(struct scheduler *scheduler, struct sequence *sequence)
{
    /* From the back: most arrive in order. */
    struct sequence *at = scheduler->waiting ? scheduler->waiting->prev : NULL;
    while (at && sequence_goes_before(sequence, at))
        at = at == scheduler->waiting ? NULL : at->prev;
    if (at)
        DL_APPEND_ELEM(scheduler->waiting, at, sequence);
    else
        DL_PREPEND(scheduler->waiting, sequence);
    scheduler->n_waiting++;
}

void scheduler_dequeue(struct scheduler *scheduler, struct sequence *sequence)
{
    DL_DELETE(scheduler->waiting, sequence);
    scheduler->n_waiting--;
}

struct sequence *scheduler_next(struct scheduler *scheduler)
{
    struct sequence *head = scheduler->waiting;
    if (!head || scheduler->n_running == scheduler->n_slots)
        return NULL;
    if (scheduler->n_running == 0)
        return head; /* alone it fits: its limits were checked */
    uint64_t need = backend_blocks_for((uint32_t)head->ids.len + 1) + (uint64_t)scheduler->n_running;
    for (uint32_t i = 0; i < scheduler->n_running; i++) {
        uint32_t prompt = backend_blocks_for(scheduler->running[i]->n_prefill);
        if (!scheduler->running[i]->ended && prompt > scheduler->running[i]->n_blocks)
            need += prompt - scheduler->running[i]->n_blocks;
    }
    return need <= blocks_available(scheduler->blocks) ? head : NULL;
}

int scheduler_start(struct scheduler *scheduler, struct sequence *sequence)
{
    uint32_t slot = scheduler->free_slots[scheduler->n_slots - 1 - scheduler->n_running];
    const struct backend_slot params = {.sampling = sequence->sampling,
                                        .n_logprobs = sequence->n_logprobs,
                                        .stop_ids = sequence->stop_ids.data,
                                        .n_stop_ids = (uint32_t)sequence->stop_ids.len,
                                        .end_position = sequence->end_position,
                                        .history = sequence->ids.data,
                                        .n_history = (uint32_t)sequence->ids.len};
    int r = scheduler->ops->slot_open(scheduler->backend, slot, &params);
    if (r < 0)
        return r;
    scheduler_dequeue(scheduler, sequence);
    sequence->running = true;
    sequence->slot = slot;
    sequence->n_prefill = sequence->n_planned = (uint32_t)sequence->ids.len;
    sequence->computed = 0;
    uint32_t at = scheduler->n_running++;
    for (; at > 0 && sequence_is_senior(sequence, scheduler->running[at - 1]); at--)
        scheduler->running[at] = scheduler->running[at - 1];
    scheduler->running[at] = sequence;
    return 0;
}

void scheduler_release(struct scheduler *scheduler, struct sequence *sequence)
{
    assert(sequence->running && sequence->in_flight == 0);
    scheduler->ops->slot_close(scheduler->backend, sequence->slot);
    blocks_unref(scheduler->blocks, sequence->blocks, sequence->n_blocks);
    sequence->n_blocks = 0;
    sequence->running = sequence->preempted = false;
    uint32_t at = 0;
    while (scheduler->running[at] != sequence)
        at++;
    scheduler->n_running--;
    memmove(&scheduler->running[at], &scheduler->running[at + 1],
            (scheduler->n_running - at) * sizeof scheduler->running[0]);
    scheduler->free_slots[scheduler->n_slots - 1 - scheduler->n_running] = sequence->slot;
}

void scheduler_preempt(struct scheduler *scheduler, struct sequence *sequence)
{
    sequence->preempted = true;
    scheduler_settle(scheduler, sequence);
}

void scheduler_settle(struct scheduler *scheduler, struct sequence *sequence)
{
    if (!sequence->preempted || sequence->in_flight > 0)
        return;
    scheduler_release(scheduler, sequence);
    scheduler_enqueue(scheduler, sequence);
    scheduler->preemptions++;
}

/* ---- blocks ---- */

static bool may_advance(const struct sequence *sequence)
{
    return !sequence->ended && !sequence->preempted && !sequence->cancelled;
}

/* Preempts juniors of `sequence`, the most junior first, until a block is free or on its way. True when one
 * is free now. */
static bool make_room(struct scheduler *scheduler, const struct sequence *sequence)
{
    while (blocks_available(scheduler->blocks) == 0) {
        struct sequence *victim = NULL;
        for (uint32_t i = scheduler->n_running; i-- > 0 && !victim;) {
            struct sequence *junior = scheduler->running[i];
            if (junior == sequence)
                return false; /* its seniors hold all the rest: it waits for them */
            if (junior->n_blocks > 0 && (junior->ended || junior->preempted))
                return false; /* its blocks are on their way */
            if (junior->n_blocks > 0)
                victim = junior;
        }
        if (!victim)
            return false;
        scheduler_preempt(scheduler, victim);
        if (victim->preempted)
            return false;
    }
    return true;
}

/* Allots blocks so that positions below `end` have one; returns how far they reach. */
static uint32_t allot(struct scheduler *scheduler, struct sequence *sequence, uint32_t end)
{
    uint32_t need = backend_blocks_for(end);
    if (need > sequence->n_blocks) {
        uint32_t more = need - sequence->n_blocks;
        if (blocks_available(scheduler->blocks) == 0 && !make_room(scheduler, sequence))
            more = 0;
        if (more > blocks_available(scheduler->blocks))
            more = blocks_available(scheduler->blocks);
        bool taken = blocks_alloc(scheduler->blocks, more, sequence->blocks + sequence->n_blocks);
        assert(taken);
        (void)taken;
        sequence->n_blocks += more;
    }
    uint32_t reach = sequence->n_blocks * BACKEND_BLOCK_TOKENS;
    return reach < end ? reach : end;
}

/* ---- the step ---- */

/* Adds up to `rows` rows of the sequence, as many as there are blocks for; returns how many. */
static uint32_t add_rows(struct scheduler *scheduler, struct plan *plan, struct sequence *sequence,
                         uint32_t rows)
{
    uint32_t first = sequence->computed, had = sequence->n_blocks;
    uint32_t end = allot(scheduler, sequence, first + rows);
    if (end <= first)
        return 0;
    bool from_slot = first >= sequence->n_prefill;
    bool last = end == sequence->n_planned;
    plan->sets[plan->n] =
        (struct backend_row_set){.slot = sequence->slot,
                                 .position = first,
                                 .n_ids = end - first,
                                 .ids = from_slot ? NULL : sequence->ids.data + first,
                                 .blocks = sequence->blocks + had,
                                 .n_blocks = sequence->n_blocks - had,
                                 .output = last ? BACKEND_SAMPLE_LAST : BACKEND_OUTPUT_NONE};
    plan->sequences[plan->n++] = sequence;
    sequence->in_flight++;
    sequence->computed = end;
    sequence->n_planned += last;
    return end - first;
}

/* Rows of prompts in a step: what fits into the time that decoding sequences leave of it, or, where nobody
 * waits for his next token, into several steps' time, so that who comes next need not wait for ever. */
static uint32_t prefill_budget(const struct scheduler *scheduler, uint32_t decode_rows)
{
    uint32_t room = scheduler->max_rows - decode_rows;
    double ns = decode_rows > 0 ? (double)scheduler->step_ns - scheduler->decode_ns
                                : (double)scheduler->step_ns * ALONE_STEPS;
    double rows = decode_rows > 0 ? CHUNK_LEAST : CHUNK_FIRST;
    if (scheduler->row_ns > 0)
        rows = ns / scheduler->row_ns;
    double most = decode_rows > 0 && room > CHUNK_MOST ? CHUNK_MOST : room;
    rows = rows < CHUNK_LEAST ? CHUNK_LEAST : rows;
    return (uint32_t)(rows < most ? rows : most);
}

static bool wants_prefill(const struct sequence *sequence)
{
    return may_advance(sequence) && sequence->computed < sequence->n_prefill;
}

static void plan_prefill(struct scheduler *scheduler, struct plan *plan, uint32_t budget)
{
    uint64_t wanted = 0; /* rows, by this one and those behind it */
    for (uint32_t i = 0; i < scheduler->n_running; i++)
        if (wants_prefill(scheduler->running[i]))
            wanted += scheduler->running[i]->n_prefill - scheduler->running[i]->computed;
    uint32_t half = (budget + 1) / 2; /* rows of several share one product, so small parts cost nothing */
    /* By index and from the front: a preemption only removes juniors, which stand behind. */
    for (uint32_t i = 0; i < scheduler->n_running && budget > 0; i++) {
        struct sequence *sequence = scheduler->running[i];
        if (!wants_prefill(sequence))
            continue;
        uint32_t rows = sequence->n_prefill - sequence->computed;
        wanted -= rows;
        uint32_t spare = wanted < budget ? budget - (uint32_t)wanted : 0;
        uint32_t most = spare > half ? spare : half;
        most = most < budget ? most : budget;
        uint32_t taken = add_rows(scheduler, plan, sequence, rows < most ? rows : most);
        plan->prefill_rows += taken;
        budget -= taken;
    }
}

void scheduler_plan(struct scheduler *scheduler, struct plan *ret_plan)
{
    struct plan *plan = ret_plan;
    plan->n = plan->decode_rows = plan->prefill_rows = 0;
    for (uint32_t i = 0; i < scheduler->n_running && plan->decode_rows < scheduler->max_rows; i++) {
        struct sequence *sequence = scheduler->running[i];
        if (may_advance(sequence) && sequence->computed >= sequence->n_prefill &&
            sequence->n_planned < sequence->end_position)
            plan->decode_rows += add_rows(scheduler, plan, sequence, 1);
    }
    plan_prefill(scheduler, plan, prefill_budget(scheduler, plan->decode_rows));
}

static double learn(double old, double seen)
{
    return old > 0 ? old + MEASURE_SHARE * (seen - old) : seen;
}

void scheduler_measure(struct scheduler *scheduler, const struct plan *plan, uint64_t ns)
{
    if (plan->prefill_rows == 0) {
        scheduler->decode_ns = learn(scheduler->decode_ns, (double)ns);
    } else if (plan->prefill_rows >= MEASURE_ROWS) {
        double spent = (double)ns - (plan->decode_rows > 0 ? scheduler->decode_ns : 0);
        double row = spent / plan->prefill_rows;
        scheduler->row_ns = learn(scheduler->row_ns, row > 1 ? row : 1);
    }
}
