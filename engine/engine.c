/* SPDX-License-Identifier: MIT */
/* The engine: sequences through steps, results into events.
 *
 * A sequence waits, runs, and ends (sequence.h); the scheduler owns it all along, and delivery tells the
 * owner. A step is a *flight* from submit to poll. A synchronous backend has one flight at most; others two,
 * so that the device computes step n + 1 while the host reads step n. A sequence that ends, or is to leave,
 * while a later flight still carries it keeps slot and blocks until that flight is read, and what the flight
 * says about it is dropped; so is what follows an abandoned flight.
 *
 * engine_cancel only marks: it may be called from the progress hook, in the middle of submit or poll. When
 * the device fails, all sequences end with its reason, and the engine is good for nothing but engine_free. */

#include "engine/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/amount.h"
#include "common/clock.h"
#include "engine/delivery.h"
#include "engine/limits.h"
#include "engine/observe.h"
#include "engine/sampling/masks.h"
#include "engine/plan.h"
#include "engine/scheduler.h"
#include "model/model.h"

#define MOST_FLIGHTS 2
#define POLL_MS      10 /* the owner's loop comes round at least this often */

_Static_assert(SEQUENCE_MOST_SNAPSHOTS >= MOST_FLIGHTS, "a snapshot for each flight");
_Static_assert(ENGINE_SHARED_SALT_BYTES == PREFIX_STORE_MAX_SALT, "as engine.h says");

struct flight {
    struct plan plan;
    uint64_t ticket;
    uint64_t submitted_ns;
};

struct engine {
    struct engine_config config;
    struct backend *backend;
    struct scheduler scheduler;
    struct planner planner;
    struct delivery delivery;
    struct masks *masks;
    uint64_t n_arrived;
    uint32_t n_due;          /* marked since the last look */
    uint64_t first_deadline; /* of all alive, or earlier; UINT64_MAX: none */

    struct flight flights[MOST_FLIGHTS]; /* a ring of most_flights: n_flights from first_flight */
    uint32_t first_flight, n_flights, most_flights;
    uint64_t last_read_ns;

    struct engine_stats stats;
    struct measures measures;
    const struct engine_observer *observer; /* NULL: nobody */
    int failed;                             /* -errno: why, once the device is lost */
    struct error failure;
};

/* ---- life ---- */

static void fill_defaults(struct engine_config *config)
{
    struct backend_config *backend = &config->backend_config;
    backend->model = config->model;
    if (backend->n_slots == 0) {
        backend->n_slots = ENGINE_DEFAULT_SLOTS;
        backend->most_slots = ENGINE_MOST_SLOTS;
    }
    if (backend->n_context == 0)
        backend->n_context = config->model->params.n_context;
}

static int check_backend(const struct engine *engine, const struct backend_info *info, struct error *err)
{
    const char *name = engine->config.backend->name;
    const struct backend_config *config = &engine->config.backend_config;
    const uint32_t n_slots = info->n_slots;
    if (n_slots < config->n_slots || (n_slots > config->n_slots && n_slots > config->most_slots))
        return error_set(err, -EINVAL, "%s: %u slots instead of %u", name, n_slots, config->n_slots);
    if (info->n_groups < 1 || info->n_groups > BACKEND_MOST_GROUPS)
        return error_prefix(
            err,
            error_out_of_range(err, -EINVAL, "number of KV groups", info->n_groups, 1, BACKEND_MOST_GROUPS),
            "%s", name);
    for (uint32_t g = 0; g < info->n_groups; g++)
        if (info->max_rows < n_slots || info->groups[g].n_blocks == 0)
            return error_set(err, -EINVAL, "%s: %u rows per step and %u KV blocks are too few for %u slots",
                             name, info->max_rows, info->groups[g].n_blocks, n_slots);
    return 0;
}

static int open_parts(struct engine *engine, struct error *err)
{
    const struct engine_config *config = &engine->config;
    struct backend_info info;
    /* Before the backend, which may keep this thread, and those that it starts, on one core. */
    int r = masks_new(config->model->tokenizer, config->model->params.n_vocab, &engine->masks);
    if (r < 0)
        return error_set(err, r, "engine: cannot start a thread for masks: %s", strerror(-r));
    r = config->backend->open(&config->backend_config, &engine->backend, err);
    if (r < 0)
        return r;
    config->backend->info(engine->backend, &info);
    r = check_backend(engine, &info, err);
    if (r < 0)
        return r;
    if (engine->config.max_waiting == 0)
        engine->config.max_waiting = ENGINE_DEFAULT_WAITING + 2 * info.n_slots;
    engine->most_flights = info.most_flights < MOST_FLIGHTS ? info.most_flights : MOST_FLIGHTS;
    const bool recurrent = info.state_bytes > 0;
    r = scheduler_init(&engine->scheduler, config->backend, engine->backend, info.n_slots,
                       config->most_cached);
    if (r == 0)
        r = planner_init(&engine->planner, &engine->scheduler, config->step_ms);
    if (r == 0)
        r = delivery_embeds(&engine->delivery, config->model, info.n_embedding);
    for (uint32_t i = 0; i < engine->most_flights && r == 0; i++)
        r = plan_init(&engine->flights[i].plan, &engine->scheduler);
    if (r < 0)
        return error_set(err, r, "engine: out of memory");
    engine->planner.draft = recurrent ? NULL : config->draft; /* nothing leads back from a wrong draft */
    engine->planner.draft_arg = config->draft_arg;
    engine->planner.most_draft = config->most_draft;
    return 0;
}

int engine_new(const struct engine_config *config, engine_sink *sink, void *sink_arg,
               struct engine **ret_engine, struct error *err)
{
    struct engine *engine = calloc(1, sizeof *engine);
    if (!engine)
        return error_set(err, -ENOMEM, "engine: out of memory");
    engine->config = *config;
    fill_defaults(&engine->config);
    engine->delivery.sink = sink;
    engine->delivery.sink_arg = sink_arg;
    engine->delivery.tokenizer = config->model->tokenizer;
    engine->delivery.measures = &engine->measures;
    engine->first_deadline = UINT64_MAX;
    int r = open_parts(engine, err);
    if (r < 0) {
        engine_free(engine);
        return r;
    }
    *ret_engine = engine;
    return 0;
}

struct engine *engine_free(struct engine *engine)
{
    if (!engine)
        return NULL;
    struct tier *tier = engine->scheduler.tier;
    delivery_deinit(&engine->delivery);
    if (engine->scheduler.ops)
        scheduler_deinit(&engine->scheduler);
    planner_deinit(&engine->planner);
    if (engine->backend)
        engine->config.backend->close(engine->backend);
    masks_free(engine->masks);
    tier_free(tier); /* its copies were dropped */
    for (uint32_t i = 0; i < MOST_FLIGHTS; i++)
        plan_deinit(&engine->flights[i].plan);
    free(engine);
    return NULL;
}

int engine_share_prefixes(struct engine *engine, int fd, struct error *err)
{
    struct scheduler *scheduler = &engine->scheduler;
    struct prefix_store_kind kind = {.layout = scheduler->info.kv_layout};
    struct prefix_store *store;
    for (uint32_t g = 0; g < scheduler->info.n_groups; g++)
        kind.block_bytes += scheduler->info.groups[g].block_bytes;
    memcpy(kind.model, engine->config.model->digest, sizeof kind.model);
    int r = prefix_store_open(fd, &kind, &store, err);
    if (r < 0)
        return r;
    r = tier_new(scheduler->ops, scheduler->backend, scheduler->prefix, store, &scheduler->tier);
    if (r < 0) {
        prefix_store_close(store);
        return error_set(err, r, "prefix store: out of memory");
    }
    return 0;
}

/* ---- requests ---- */

static int make_sequence(struct engine *engine, const struct engine_request *request,
                         struct sequence **ret_sequence, struct error *err)
{
    const struct tokenizer *tokenizer = engine->config.model->tokenizer;
    struct sequence *sequence;
    int r = sequence_new(request, tokenizer_end_ids(tokenizer), engine->scheduler.info.n_groups,
                         ++engine->n_arrived, clock_ns(), &sequence);
    if (r < 0)
        return error_set(err, r, "not enough memory for the request");
    if (request->thinking)
        r = thought_new(request->thinking, engine->config.model->params.n_vocab, &sequence->thought);
    if (r == 0 && (request->n_output > 0 || request->text_offset > 0))
        r = sequence_resume(sequence, request, tokenizer, err);
    if (r == 0 && request->grammar && sequence->state != SEQUENCE_DUE)
        r = mask_new(engine->masks, request->grammar,
                     (struct ids_view){sequence->stop_ids.data, sequence->stop_ids.len},
                     (struct ids_view){sequence->spelled, sequence->n_spelled},
                     (struct ids_view){request->output, request->n_output}, &sequence->mask);
    if (r != 0) {
        sequence_free(sequence);
        return r == -ENOMEM ? error_set(err, r, "not enough memory for the request") : r;
    }
    *ret_sequence = sequence;
    return 0;
}

int engine_submit(struct engine *engine, const struct engine_request *request, struct error *err)
{
    struct sequence *sequence = NULL;
    if (engine->failed)
        return error_set(err, engine->failed, "%s", engine->failure.text);
    int r = engine_check_request(request, engine->config.model, &engine->scheduler.info,
                                 engine_context(engine), engine_max_tokens_in_cache(engine), err);
    if (r != 0)
        return r;
    if (delivery_find(&engine->delivery, request->tag))
        return error_set(err, ENGINE_E_INVALID, "tag %llu is already in use",
                         (unsigned long long)request->tag);
    if (request->n_output == 0 && engine->scheduler.n_new >= engine->config.max_waiting)
        return error_set(err, ENGINE_E_FULL, "queue full: %s waiting",
                         amount_of(engine->scheduler.n_new, "request").text);
    r = make_sequence(engine, request, &sequence, err);
    if (r != 0)
        return r;
    r = delivery_add(&engine->delivery, sequence);
    if (r < 0) {
        sequence_free(sequence);
        return error_set(err, r, "not enough memory for the request");
    }
    engine->n_due += sequence->state == SEQUENCE_DUE;
    scheduler_add(&engine->scheduler, sequence, request->cache_salt);
    if (sequence->deadline_ns != 0 && sequence->deadline_ns < engine->first_deadline)
        engine->first_deadline = sequence->deadline_ns;
    return 0;
}

bool engine_cancel(struct engine *engine, uint64_t tag)
{
    struct sequence *sequence = delivery_find(&engine->delivery, tag);
    if (!sequence)
        return false;
    if (sequence->state != SEQUENCE_DUE) {
        sequence->due = ENGINE_END_CANCELLED;
        sequence_become(sequence, SEQUENCE_DUE);
        engine->n_due++;
    }
    return true;
}

bool engine_credit(struct engine *engine, uint64_t tag, uint32_t credit)
{
    struct sequence *sequence = delivery_find(&engine->delivery, tag);
    if (!sequence)
        return false;
    sequence_set_credit(sequence, credit);
    scheduler_credited(&engine->scheduler, sequence);
    return true;
}

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
            observe_started(engine->observer, sequence, n_filled);
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

/* A flight was read that took this long. */
static void measure(struct engine *engine, const struct plan *plan, uint64_t ns)
{
    const struct scheduler *scheduler = &engine->scheduler;
    const uint32_t blocks = blocks_total(scheduler->blocks[0]);
    plan_measure(&engine->planner, plan, ns);
    engine->stats.prefill_tokens += plan->prefill_rows;
    engine->stats.steps++;
    measures_step(&engine->measures, plan->decode_rows, plan->prefill_rows, ns);
    measures_use(&engine->measures, scheduler->n_running, scheduler->n_slots,
                 blocks - prefix_available(scheduler->prefix, 0), blocks);
}

static void tell_step(const struct engine *engine, const struct plan *plan, uint64_t begun, uint64_t now,
                      uint64_t tokens_before)
{
    struct engine_step_facts facts = {.number = engine->stats.steps,
                                      .decode_rows = plan->decode_rows,
                                      .prefill_rows = plan->prefill_rows,
                                      .ids = (uint32_t)(engine->delivery.tokens - tokens_before),
                                      .begun_ns = begun,
                                      .read_ns = now};
    if (engine->config.backend->facts)
        engine->config.backend->facts(engine->backend, &facts.backend);
    engine->observer->step(engine->observer->arg, &facts);
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
    if (!abandoned)
        measure(engine, &flight->plan, now - from);
    engine->last_read_ns = now;
    engine->first_flight = (engine->first_flight + 1) % engine->most_flights;
    engine->n_flights--;
    for (uint32_t i = 0; i < flight->plan.n; i++)
        take(engine, flight->plan.sequences[i], &flight->plan.sets[i], abandoned ? NULL : &results[i], now);
    if (engine->observer && !abandoned)
        tell_step(engine, &flight->plan, from, now, tokens);
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

/* ---- what there is ---- */

void engine_observe(struct engine *engine, const struct engine_observer *observer)
{
    engine->observer = engine->scheduler.observer = observer;
    if (engine->config.backend->watch)
        engine->config.backend->watch(engine->backend, observer != NULL);
}

void engine_stats(const struct engine *engine, struct engine_stats *ret_stats)
{
    const struct scheduler *scheduler = &engine->scheduler;
    const struct prefix_counts cache = prefix_counts(scheduler->prefix);
    *ret_stats = engine->stats;
    ret_stats->active = scheduler->n_running;
    ret_stats->waiting = scheduler->n_waiting + scheduler->n_held;
    ret_stats->held = scheduler->n_held;
    ret_stats->slots = scheduler->n_slots;
    ret_stats->blocks_free = prefix_available(scheduler->prefix, 0);
    ret_stats->blocks_total = blocks_total(scheduler->blocks[0]);
    for (uint32_t g = 0; g < scheduler->info.n_groups; g++)
        ret_stats->blocks_held[g] =
            blocks_total(scheduler->blocks[g]) - prefix_available(scheduler->prefix, g);
    ret_stats->preemptions = scheduler->preemptions;
    ret_stats->cache_hits = scheduler->cache_hits;
    ret_stats->blocks_cached = cache.cached;
    ret_stats->evictions = cache.evicted;
    ret_stats->restores = scheduler->tier ? tier_restores(scheduler->tier) : 0;
    ret_stats->tokens = engine->delivery.tokens;
    for (const struct sequence *s = scheduler->waiting; s; s = s->next)
        ret_stats->waiting_tokens += s->ids.len;
    for (uint32_t i = 0; i < scheduler->n_running; i++)
        if (scheduler->running[i]->state == SEQUENCE_PREFILLING)
            ret_stats->waiting_tokens += sequence_wants(scheduler->running[i]);
}

const struct measures *engine_measures(const struct engine *engine)
{
    return &engine->measures;
}

uint32_t engine_embedding(const struct engine *engine)
{
    return engine->delivery.n_embedding;
}

uint32_t engine_context(const struct engine *engine)
{
    return engine->config.backend_config.n_context;
}

uint32_t engine_max_tokens_in_cache(const struct engine *engine)
{
    return scheduler_most_positions(&engine->scheduler);
}

const struct backend_info *engine_backend_info(const struct engine *engine)
{
    return &engine->scheduler.info;
}
