/* SPDX-License-Identifier: MIT */
/* A step under two budgets: rows, by the backend's limit, and time.
 *
 * Every step takes the next token of all sequences that decode. What is left of the step's time, by measured
 * speed, goes to prompts. Half of it is the most senior prompt's, so that a long one ends however many others
 * come; the other half goes to those with the fewest rows left, so that a short prompt waits for a step or
 * two behind any number of long ones. What one side does not need the other takes.
 *
 * Where drafts are made a sequence is not run ahead: a draft follows ids that were read. They take what rows
 * a step has left that cost hardly anything. Nor is one run ahead with a mask, which gets no draft, as one
 * gets none that is sampled by the ids before; and if its masks take long, it stays out of steps until the
 * next one is there. A sequence with a budget for its thoughts runs ahead, and gets drafts, only as far as
 * the budget cannot be used up.
 */

#include "engine/plan.h"

#include <errno.h>
#include <stdlib.h>

#include "common/clock.h"
#include "engine/drafts.h"
#include "engine/snapshots.h"

#define CHUNK_FIRST   128 /* rows of prompts before the speed is known, nobody decoding */
#define MEASURE_SHARE 0.25

int planner_init(struct planner *planner, struct scheduler *scheduler, uint32_t step_ms)
{
    const struct backend_info *info = &scheduler->info;
    *planner = (struct planner){.scheduler = scheduler};
    planner->step_ns = (step_ms ? step_ms : info->step_ms) * CLOCK_NS_PER_MS;
    planner->alone_ns = planner->step_ns * info->alone_ms / info->step_ms;
    planner->prompts = calloc(scheduler->n_slots, sizeof *planner->prompts);
    return planner->prompts ? 0 : -ENOMEM;
}

void planner_deinit(struct planner *planner)
{
    free(planner->prompts);
    *planner = (struct planner){0};
}

int plan_init(struct plan *plan, const struct scheduler *scheduler)
{
    plan->sets = calloc(scheduler->n_slots, sizeof *plan->sets);
    plan->sequences = calloc(scheduler->n_slots, sizeof *plan->sequences);
    plan->drafts = calloc(scheduler->info.max_rows, sizeof *plan->drafts);
    if (plan->sets && plan->sequences && plan->drafts)
        return 0;
    plan_deinit(plan);
    return -ENOMEM;
}

void plan_deinit(struct plan *plan)
{
    free(plan->sets);
    free(plan->sequences);
    free(plan->drafts);
    *plan = (struct plan){0};
}

/* Adds up to `rows` rows of the sequence, and its draft, as far as there are blocks; returns how many. */
static uint32_t add_rows(struct planner *planner, struct plan *plan, struct sequence *sequence, uint32_t rows,
                         int32_t *draft, uint32_t n_draft)
{
    uint32_t end = sequence->fed + rows + n_draft, border = 0, snapshot;
    if (planner->scheduler->snapshots)
        border = snapshots_next(sequence, end);
    if (border > 0 && snapshots_follow(sequence, border, end))
        end = border;
    if (end > sequence->n_blocks * BACKEND_BLOCK_TOKENS)
        end = scheduler_allot(planner->scheduler, sequence, end);
    if (end <= sequence->fed)
        return 0;
    uint32_t reach = end - sequence->fed, snapshot_rows = border - sequence->fed;
    rows = reach < rows ? reach : rows;
    n_draft = reach - rows;
    if (n_draft > 0 && !drafts_begin(planner->scheduler, sequence))
        n_draft = 0;
    struct backend_row_set *set = &plan->sets[plan->n];
    sequence_plan(sequence, rows, draft, n_draft, set);
    if (border > 0 && border <= end &&
        scheduler_take_snapshot(planner->scheduler, sequence, border, &snapshot)) {
        set->snapshot_rows = snapshot_rows;
        set->snapshot = snapshot;
    } else if (n_draft > 0 && sequence->drafts.has_spare) {
        set->snapshot_rows = 1;
        set->snapshot = sequence->drafts.spare;
    }
    plan->sequences[plan->n++] = sequence;
    return set->n_ids;
}

/* Whether its next id can be sampled in a step that begins now. One that ends a thought needs the mask of a
 * grammar at once, to see whether that allows it. */
static bool may_sample(const struct sequence *sequence)
{
    const bool forced = sequence->thought && thought_forced(sequence->thought) != TOKENIZER_NONE;
    if (sequence->in_flight > 0 && sequence_free_ids(sequence) == 0)
        return false;
    return !sequence->mask ||
           (sequence->in_flight == 0 && (forced ? mask_is_ready : mask_is_near)(sequence->mask));
}

/* ---- decodes ---- */

static uint32_t lesser(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Ids of a draft of this sequence, `most` at most, into `ret_draft`. */
static uint32_t make_draft(struct planner *planner, struct sequence *sequence, uint32_t most,
                           int32_t *ret_draft)
{
    const uint32_t left = sequence->credit_end - sequence->fed - 2; /* ids after the next */
    const uint32_t free_ids = sequence_free_ids(sequence);
    most = lesser(lesser(most, planner->most_draft), lesser(left, free_ids > 0 ? free_ids - 1 : 0));
    if (most > 0)
        most = drafts_most(planner->scheduler, sequence, most);
    return most > 0 ? planner->draft(planner->draft_arg, sequence->ids.data, (uint32_t)sequence->ids.len,
                                     most, ret_draft)
                    : 0;
}

/* Rows of drafts that a step with so many other rows may have: what costs hardly more time. */
static uint32_t draft_rows(const struct planner *planner, uint32_t others)
{
    const uint32_t cheap = planner->scheduler->info.chunk_least;
    return cheap > others ? cheap - others : 0;
}

/* The next token of one that decodes, where `behind` others get theirs after it. */
static uint32_t add_decode(struct planner *planner, struct plan *plan, struct sequence *sequence,
                           uint32_t behind)
{
    const uint32_t others = plan->decode_rows + behind, room = planner->scheduler->info.max_rows - others;
    int32_t *draft = plan->drafts + plan->decode_rows;
    uint32_t rows = 1, n_draft = 0;
    if (!may_sample(sequence))
        return 0;
    if (planner->draft && !sequence->mask && !sampling_needs_history(&sequence->sampling)) {
        if (sequence->in_flight > 0)
            return 0;
        if (sequence->n_again > 0)
            rows = lesser(sequence->n_again, room);
        else
            n_draft =
                make_draft(planner, sequence, lesser(room - 1, draft_rows(planner, others + 1)), draft + 1);
    }
    return add_rows(planner, plan, sequence, rows, draft, n_draft);
}

static void add_decodes(struct planner *planner, struct plan *plan)
{
    struct scheduler *scheduler = planner->scheduler;
    /* By index and from the front: a preemption only removes juniors, which stand behind. */
    for (uint32_t i = 0; i < scheduler->n_running; i++) {
        struct sequence *sequence = scheduler->running[i];
        uint32_t behind = scheduler->n_running - i - 1; /* a row each is kept for them */
        if (sequence->state == SEQUENCE_DECODING && sequence_wants(sequence) > 0)
            plan->decode_rows += add_decode(planner, plan, sequence, behind);
    }
    plan->n_decodes = plan->n;
}

/* ---- prompts ---- */

/* Rows of prompts in a step: what fits into the time that decoding sequences leave of it, or, where nobody
 * waits for his next token, into that of a step alone. */
static uint32_t prefill_budget(const struct planner *planner, uint32_t decode_rows)
{
    const struct backend_info *info = &planner->scheduler->info;
    uint32_t room = info->max_rows - decode_rows;
    double ns = decode_rows > 0 ? (double)planner->step_ns - planner->decode_ns : (double)planner->alone_ns;
    double rows = decode_rows > 0 ? info->chunk_least : CHUNK_FIRST;
    if (planner->row_ns > 0)
        rows = ns / planner->row_ns;
    double most = decode_rows > 0 && room > info->chunk_most ? info->chunk_most : room;
    rows = rows < info->chunk_least ? info->chunk_least : rows;
    return (uint32_t)(rows < most ? rows : most);
}

/* By priority, then the fewest rows left, then seniority. */
static int compare_prompts(const void *a, const void *b)
{
    const struct sequence *x = *(struct sequence *const *)a, *y = *(struct sequence *const *)b;
    if (x->priority != y->priority)
        return x->priority > y->priority ? -1 : 1;
    uint32_t left = sequence_wants(x), right = sequence_wants(y);
    if (left != right)
        return left < right ? -1 : 1;
    return sequence_is_senior(x, y) ? -1 : 1;
}

static uint32_t add_prompt(struct planner *planner, struct plan *plan, struct sequence *sequence,
                           uint32_t most)
{
    uint32_t rows = sequence_wants(sequence);
    if (rows <= most && !may_sample(sequence))
        return 0; /* its last chunk */
    uint32_t taken = rows > 0 ? add_rows(planner, plan, sequence, rows < most ? rows : most, NULL, 0) : 0;
    plan->prefill_rows += taken;
    return taken;
}

static void add_prompts(struct planner *planner, struct plan *plan, uint32_t budget)
{
    const struct scheduler *scheduler = planner->scheduler;
    struct sequence *senior = NULL;
    uint64_t wanted = 0; /* by all but the senior */
    uint32_t n = 0;
    for (uint32_t i = 0; i < scheduler->n_running; i++) {
        struct sequence *sequence = scheduler->running[i];
        if (sequence->state != SEQUENCE_PREFILLING)
            continue;
        if (!senior) {
            senior = sequence;
            continue;
        }
        wanted += sequence_wants(sequence);
        planner->prompts[n++] = sequence;
    }
    if (!senior || budget == 0)
        return;
    uint32_t half = (budget + 1) / 2; /* rows of several share one product, so small parts cost nothing */
    uint32_t spare = wanted < budget ? budget - (uint32_t)wanted : 0;
    budget -= add_prompt(planner, plan, senior, spare > half ? spare : half);
    qsort(planner->prompts, n, sizeof *planner->prompts, compare_prompts);
    /* One that is preempted on the way wants no more. */
    for (uint32_t i = 0; i < n && budget > 0; i++)
        budget -= add_prompt(planner, plan, planner->prompts[i], budget);
}

void plan_build(struct planner *planner, struct plan *ret_plan)
{
    ret_plan->n = ret_plan->n_decodes = ret_plan->decode_rows = ret_plan->prefill_rows = 0;
    add_decodes(planner, ret_plan);
    add_prompts(planner, ret_plan, prefill_budget(planner, ret_plan->decode_rows));
}

void plan_cut(struct plan *plan, uint32_t n)
{
    plan->n = n;
    plan->n_decodes = lesser(plan->n_decodes, n);
    plan->decode_rows = plan->prefill_rows = 0;
    for (uint32_t i = 0; i < n; i++)
        *(i < plan->n_decodes ? &plan->decode_rows : &plan->prefill_rows) += plan->sets[i].n_ids;
}

/* ---- speed ---- */

static double learn(double old, double seen)
{
    return old > 0 ? old + MEASURE_SHARE * (seen - old) : seen;
}

void plan_measure(struct planner *planner, const struct plan *plan, uint64_t ns)
{
    if (plan->prefill_rows == 0) {
        planner->decode_ns = learn(planner->decode_ns, (double)ns);
    } else if (plan->prefill_rows >= planner->scheduler->info.chunk_least) {
        /* Fewer rows say little about the speed of many. */
        double spent = (double)ns - (plan->decode_rows > 0 ? planner->decode_ns : 0);
        double row = spent / plan->prefill_rows;
        planner->row_ns = learn(planner->row_ns, row > 1 ? row : 1);
    }
}
