/* SPDX-License-Identifier: MIT */
/* Sequences through steps, results into events.
 *
 * A step is a *flight* from submit to poll. A synchronous backend has one flight at most; others two, so that
 * the device computes step n + 1 while the host reads step n. A sequence that ends, or is to leave, while a
 * later flight still carries it keeps slot and blocks until that flight is read, and what the flight says
 * about it is dropped; so is what follows an abandoned flight.
 *
 * When the device fails, all sequences end with its reason, and the engine is good for nothing but
 * engine_free. */

#include "engine/engine.h"

#include <errno.h>
#include <string.h>

#include "common/clock.h"
#include "engine/drafts.h"
#include "engine/inside.h"
#include "engine/observe.h"

#define POLL_MS 10 /* the owner's loop comes round at least this often */

static bool is_expired(const struct sequence *sequence, uint64_t now)
{
    return sequence->deadline_ns != 0 && sequence->deadline_ns <= now;
}

bool engine_step_is_moot(const struct engine *engine)
{
    if (engine->n_flights == 0)
        return false;
    const struct plan *plan = &engine->flights[engine->first_flight].plan;
    uint64_t now = engine->first_deadline == UINT64_MAX ? 0 : clock_ns();
    for (uint32_t i = 0; i < plan->n; i++) {
        const struct sequence *sequence = plan->sequences[i];
        if (sequence->state != SEQUENCE_DUE && sequence->state != SEQUENCE_ENDED &&
            sequence->state != SEQUENCE_SPOILED && !is_expired(sequence, now))
            return false;
    }
    return true;
}

/* ---- ends ---- */

/* Lets a sequence go that has ended or gives its slot back, unless a flight still carries it. */
static void let_go(struct engine *engine, struct sequence *sequence)
{
    bool ended = sequence->state == SEQUENCE_ENDED;
    if (sequence->in_flight > 0)
        return;
    if (sequence->slot != SEQUENCE_NO_SLOT)
        scheduler_release(&engine->scheduler, sequence);
    else
        scheduler_dequeue(&engine->scheduler, sequence);
    if (ended)
        scheduler_forget(&engine->scheduler, sequence);
}

static void end(struct engine *engine, struct sequence *sequence, enum engine_end how, const char *fault)
{
    delivery_end(&engine->delivery, sequence, how, fault);
    let_go(engine, sequence);
}

/* Ends what is due or past its deadline. */
static void end_unwanted(struct engine *engine)
{
    struct sequence *sequence, *next;
    uint64_t now = engine->first_deadline == UINT64_MAX ? 0 : clock_ns();
    bool late = engine->first_deadline <= now;
    if (engine->n_due == 0 && !late)
        return;
    engine->n_due = 0;
    engine->first_deadline = UINT64_MAX;
    HASH_ITER(hh, engine->delivery.alive, sequence, next)
    {
        if (sequence->state == SEQUENCE_DUE)
            end(engine, sequence, sequence->due, NULL);
        else if (is_expired(sequence, now))
            end(engine, sequence, ENGINE_END_DEADLINE, NULL);
        else if (sequence->deadline_ns != 0 && sequence->deadline_ns < engine->first_deadline)
            engine->first_deadline = sequence->deadline_ns;
    }
}

/* The device is lost: everyone hears why, in the device's own words where it has some. */
static int fail(struct engine *engine, int code, struct error *err)
{
    struct sequence *sequence, *next;
    struct error reason = {0};
    const char *name = engine->config.backend->name;
    int verdict = engine->config.backend->verdict(engine->backend, &reason);
    if (verdict < 0) {
        code = verdict;
        error_set(&engine->failure, code, "%s: %s", name, reason.text);
    }
    engine->failed = code;
    HASH_ITER(hh, engine->delivery.alive, sequence, next)
    {
        delivery_end(&engine->delivery, sequence, ENGINE_END_FAULT, engine->failure.text);
    }
    return error_set(err, code, "%s", engine->failure.text);
}

/* ---- steps ---- */

static void admit(struct engine *engine)
{
    struct sequence *sequence;
    uint32_t n_filled;
    while ((sequence = scheduler_next(&engine->scheduler, &n_filled))) {
        struct error reason;
        int r = scheduler_start(&engine->scheduler, sequence, n_filled);
        if (r == -ENOMEM)
            error_set(&reason, r, "%s: out of memory for the sequence", engine->config.backend->name);
        else if (r < 0)
            error_set(&reason, r, "%s: sequence rejected: %s", engine->config.backend->name, strerror(-r));
        if (r == 0 && engine->observer)
            observe_started(engine->observer, sequence);
        if (r < 0)
            end(engine, sequence, ENGINE_END_FAULT, reason.text);
        else
            delivery_reading(&engine->delivery, sequence);
    }
}

/* Whether what its flights bring counts. */
static bool counts(const struct sequence *sequence)
{
    return sequence->state == SEQUENCE_PREFILLING || sequence->state == SEQUENCE_DECODING ||
           sequence->state == SEQUENCE_LEAVING;
}

/* Nothing could be sampled. With a mask that may be how the answer ends, where no id says so. */
static void end_fault(struct engine *engine, struct sequence *sequence)
{
    struct error reason;
    if (!sequence->mask)
        delivery_end(&engine->delivery, sequence, ENGINE_END_FAULT,
                     "the model produced no finite logit to sample");
    else if (sequence->thought && thought_is_excluded(sequence->thought) &&
             !mask_was_too_much(sequence->mask))
        delivery_end(&engine->delivery, sequence, ENGINE_END_INVALID,
                     "thinking_budget: the grammar does not allow the end of the thought where the budget is "
                     "used up");
    else if (mask_has_ended(sequence->mask, &reason))
        delivery_end(&engine->delivery, sequence, ENGINE_END_STOP, NULL);
    else
        delivery_end(&engine->delivery, sequence,
                     mask_was_too_much(sequence->mask) ? ENGINE_END_INVALID : ENGINE_END_FAULT, reason.text);
}

/* Takes one sequence's part of a flight; without a result it was abandoned. */
static void take(struct engine *engine, struct sequence *sequence, const struct backend_row_set *set,
                 const struct backend_result *result, uint64_t now)
{
    uint32_t n = sequence_settle(sequence, set, result);
    bool fault = result && result->end == BACKEND_END_FAULT && counts(sequence);
    if (n > 0 && sequence->mask && result->end == BACKEND_RUNNING)
        mask_take(sequence->mask, result->ids[0]); /* n is 1, and the next mask is made from here on */
    if (sequence->watched && result && counts(sequence))
        delivery_reading(&engine->delivery, sequence);
    if (result && result->sums && counts(sequence))
        delivery_embedding(&engine->delivery, sequence, result->sums, now);
    if (engine->observer && result && counts(sequence))
        observe_read(engine->observer, sequence, set, n, now);
    if (n > 0)
        delivery_ids(&engine->delivery, sequence, result, n, now);
    drafts_end(&engine->scheduler, sequence, set, result);
    scheduler_offer(&engine->scheduler, sequence);
    if (fault && sequence->state != SEQUENCE_ENDED)
        end_fault(engine, sequence);
    if (sequence->state == SEQUENCE_DUE)
        delivery_end(&engine->delivery, sequence, sequence->due, NULL);
    if (sequence->state == SEQUENCE_DECODING && sequence->in_flight == 0 && sequence_is_held(sequence))
        sequence_become(sequence, SEQUENCE_LEAVING);
    if (sequence->state != SEQUENCE_PREFILLING && sequence->state != SEQUENCE_DECODING)
        let_go(engine, sequence);
}

/* Ends the request of a step that has no other and was refused all the same. */
static void end_refused(struct engine *engine, struct plan *plan, int code)
{
    struct error reason;
    struct sequence *sequence = plan->sequences[0];
    const char *name = engine->config.backend->name;
    if (code == -ENOMEM)
        error_set(&reason, code, "%s: out of memory for a step of %u rows", name, plan->sets[0].n_ids);
    else
        error_set(&reason, code, "%s: step of %u rows rejected: %s", name, plan->sets[0].n_ids,
                  strerror(-code));
    if (sequence->state != SEQUENCE_DUE)
        delivery_end(&engine->delivery, sequence, ENGINE_END_FAULT, reason.text);
    plan_cut(plan, 0);
    take(engine, sequence, &plan->sets[0], NULL, 0);
}

/* Submits the plan, or as much of it as the backend takes: of a step that it refuses, for want of memory or
 * by its rules, nothing was done and the device is sound. So half of it is tried, down to one sequence, whose
 * request ends if that is refused too; those left out are computed again, as after an abandoned step. 0 with
 * the plan as it is in flight, empty if nothing is; else -errno: the device failed. */
static int submit_what_fits(struct engine *engine, struct flight *flight)
{
    struct plan *plan = &flight->plan;
    for (;;) {
        const struct backend_step step = {plan->sets, plan->n};
        int r = engine->config.backend->submit(engine->backend, &step, &flight->ticket);
        if (r != -ENOMEM && r != -EINVAL)
            return r;
        if (plan->n == 1) {
            end_refused(engine, plan, r);
            return 0;
        }
        uint32_t had = plan->n;
        plan_cut(plan, had / 2);
        for (uint32_t i = plan->n; i < had; i++)
            take(engine, plan->sequences[i], &plan->sets[i], NULL, 0);
    }
}

/* Submits a step if there is anything to do. 1: did; 0: nothing; -errno. */
static int launch(struct engine *engine)
{
    struct flight *flight =
        &engine->flights[(engine->first_flight + engine->n_flights) % engine->most_flights];
    plan_build(&engine->planner, &flight->plan);
    if (flight->plan.n == 0)
        return 0;
    flight->submitted_ns = clock_ns();
    engine->n_flights++; /* before submit: the progress hook asks about it */
    int r = submit_what_fits(engine, flight);
    if (r < 0) {
        error_set(&engine->failure, r, "%s: a step could not be started: %s", engine->config.backend->name,
                  strerror(-r));
        return r;
    }
    engine->n_flights -= flight->plan.n == 0;
    if (engine->observer)
        observe_submitted(engine->observer, &flight->plan, flight->submitted_ns);
    return flight->plan.n > 0;
}

/* Of the flight that was read. */
static struct backend_facts facts_of(const struct engine *engine)
{
    struct backend_facts facts = {0};
    if (engine->config.backend->facts)
        engine->config.backend->facts(engine->backend, &facts);
    return facts;
}

/* A flight was read that took this long. */
static void measure(struct engine *engine, const struct plan *plan, const struct backend_facts *facts,
                    uint64_t ns)
{
    const struct scheduler *scheduler = &engine->scheduler;
    const uint32_t blocks = blocks_total(scheduler->blocks[0]);
    plan_measure(&engine->planner, plan, ns);
    engine->stats.prefill_tokens += plan->prefill_rows;
    engine->stats.steps++;
    measures_step(&engine->measures, plan->decode_rows, plan->prefill_rows, facts->padding_rows, ns);
    measures_use(&engine->measures, scheduler->n_running, scheduler->n_slots,
                 blocks - prefix_available(scheduler->prefix, 0), blocks);
}

static void tell_step(const struct engine *engine, const struct plan *plan, const struct backend_facts *known,
                      uint64_t begun, uint64_t now, uint64_t tokens_before)
{
    struct engine_step_facts facts = {.number = engine->stats.steps,
                                      .decode_rows = plan->decode_rows,
                                      .prefill_rows = plan->prefill_rows,
                                      .ids = (uint32_t)(engine->delivery.tokens - tokens_before),
                                      .begun_ns = begun,
                                      .read_ns = now,
                                      .backend = *known};
    engine->observer->step(engine->observer->arg, &facts);
}

/* What host and device have sampled differently in the flight that was read, before it is delivered. */
static void tell_differences(const struct engine *engine, const struct plan *plan)
{
    const struct backend_difference *differences;
    for (uint32_t i = 0; i < plan->n; i++) {
        const uint32_t n = engine->config.host_sampling->differences(engine->backend, i, &differences);
        for (uint32_t j = 0; j < n && counts(plan->sequences[i]); j++)
            engine->config.differs(engine->config.differs_arg, plan->sequences[i]->tag, &differences[j]);
    }
}

/* Reads the oldest flight. 0, -EAGAIN when it is not done yet, or another -errno. */
static int land(struct engine *engine)
{
    struct flight *flight = &engine->flights[engine->first_flight];
    const struct backend_result *results = NULL;
    struct error reason = {0};
    int r = engine->config.backend->poll(engine->backend, flight->ticket, POLL_MS, &results, &reason);
    if (r == -EAGAIN)
        return r;
    if (r < 0 && r != -ECANCELED) {
        error_set(&engine->failure, r, "%s: %s", engine->config.backend->name,
                  reason.text[0] ? reason.text : strerror(-r));
        return r;
    }
    bool abandoned = r == -ECANCELED;
    uint64_t now = clock_ns(), tokens = engine->delivery.tokens;
    const uint64_t from =
        flight->submitted_ns > engine->last_read_ns ? flight->submitted_ns : engine->last_read_ns;
    const struct backend_facts facts = facts_of(engine);
    if (!abandoned)
        measure(engine, &flight->plan, &facts, now - from);
    engine->last_read_ns = now;
    engine->first_flight = (engine->first_flight + 1) % engine->most_flights;
    engine->n_flights--;
    if (engine->config.host_sampling && engine->config.differs && !abandoned)
        tell_differences(engine, &flight->plan);
    for (uint32_t i = 0; i < flight->plan.n; i++)
        take(engine, flight->plan.sequences[i], &flight->plan.sets[i], abandoned ? NULL : &results[i], now);
    if (engine->observer && !abandoned)
        tell_step(engine, &flight->plan, &facts, from, now, tokens);
    return 0;
}

int engine_step(struct engine *engine, struct error *err)
{
    if (engine->failed)
        return error_set(err, engine->failed, "%s", engine->failure.text);
    end_unwanted(engine);
    int launched = 0, landed = 0, copied = 0;
    struct tier *tier = engine->scheduler.tier;
    if (tier)
        copied = tier_work(tier, &engine->failure);
    if (copied < 0)
        return fail(engine, copied, err);
    admit(engine);
    if (engine->n_flights < engine->most_flights)
        launched = launch(engine);
    if (launched < 0)
        return fail(engine, launched, err);
    if (engine->n_flights == engine->most_flights || (engine->n_flights > 0 && launched == 0))
        landed = land(engine);
    if (landed < 0 && landed != -EAGAIN)
        return fail(engine, landed, err);
    if (launched == 0 && engine->n_flights == 0 && engine->scheduler.n_running > 0)
        masks_wait(engine->masks, POLL_MS);
    else if (launched == 0 && engine->n_flights == 0 && tier)
        copied = tier_wait(tier, POLL_MS, &engine->failure); /* those that wait, wait for what it brings */
    if (copied < 0)
        return fail(engine, copied, err);
    return !engine_is_idle(engine);
}

bool engine_is_idle(const struct engine *engine)
{
    const struct scheduler *scheduler = &engine->scheduler;
    bool late = engine->first_deadline != UINT64_MAX && engine->first_deadline <= clock_ns();
    return scheduler->n_running == 0 && scheduler->n_waiting == 0 && engine->n_flights == 0 &&
           engine->n_due == 0 && !(late && engine->delivery.alive) &&
           !(scheduler->tier && tier_has_work(scheduler->tier));
}
