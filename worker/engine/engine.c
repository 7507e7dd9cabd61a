/* SPDX-License-Identifier: MIT */
/* The engine: sequences through steps, results into events.
 *
 * A sequence waits, runs, and ends; preemption sends it from running back to waiting. The scheduler owns it
 * all along; the table of tags knows it until its last event. A step is a *flight* from submit to poll. A
 * synchronous backend has one flight at most; others two, so that the device computes step n + 1 while the
 * host reads step n. A sequence that ends, or is to leave, while a later flight still carries it keeps slot
 * and blocks until that flight is read, and what the flight says about it is dropped.
 *
 * engine_cancel only marks: it may be called from the progress hook, in the middle of submit or poll. Events
 * leave in end_sequence and deliver alone, so each sequence ends exactly once. When the device fails, all
 * sequences end with its reason, and the engine is good for nothing but engine_free. */

#include "worker/engine/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "worker/engine/limits.h"
#include "worker/engine/scheduler.h"
#include "worker/model/model.h"

#include <utlist.h>

#define MOST_FLIGHTS 2
#define POLL_MS      10 /* the owner's loop comes round at least this often */

struct flight {
    struct plan plan;
    uint64_t ticket;
    uint64_t submitted_ns;
};

struct engine {
    struct engine_config config;
    struct backend *backend;
    struct backend_info info;
    engine_sink *sink;
    void *sink_arg;

    struct scheduler scheduler;
    struct sequence *alive; /* uthash by tag: those whose last event is not out */
    uint64_t n_arrived;
    uint32_t n_cancelled;    /* marked since the last look */
    uint64_t first_deadline; /* of all alive, or earlier; UINT64_MAX: none */

    struct flight flights[MOST_FLIGHTS]; /* a ring of most_flights: n_flights from first_flight */
    uint32_t first_flight, n_flights, most_flights;
    uint64_t last_read_ns;

    struct buffer text; /* of the event being made */
    struct engine_stats stats;
    bool failed;
    struct error failure;
};

/* ---- life ---- */

static void fill_defaults(struct engine_config *config)
{
    struct backend_config *backend = &config->backend_config;
    backend->model = config->model;
    if (backend->n_slots == 0)
        backend->n_slots = ENGINE_DEFAULT_SLOTS;
    if (backend->n_context == 0)
        backend->n_context = config->model->params.n_context;
    if (backend->max_rows == 0)
        backend->max_rows = ENGINE_DEFAULT_ROWS;
    if (backend->max_rows < backend->n_slots)
        backend->max_rows = backend->n_slots;
    if (config->max_waiting == 0)
        config->max_waiting = ENGINE_DEFAULT_WAITING;
    if (config->step_ms == 0)
        config->step_ms = ENGINE_DEFAULT_STEP_MS;
}

int engine_new(const struct engine_config *config, engine_sink *sink, void *sink_arg,
               struct engine **ret_engine, struct error *err)
{
    struct engine *engine = calloc(1, sizeof *engine);
    if (!engine)
        return error_set(err, -ENOMEM, "engine: out of memory");
    engine->config = *config;
    fill_defaults(&engine->config);
    engine->sink = sink;
    engine->sink_arg = sink_arg;
    engine->first_deadline = UINT64_MAX;

    const struct backend_ops *ops = config->backend;
    uint32_t n_slots = engine->config.backend_config.n_slots;
    int r = ops->open(&engine->config.backend_config, &engine->backend, err);
    if (r < 0)
        goto fail;
    ops->info(engine->backend, &engine->info);
    engine->most_flights = engine->info.synchronous ? 1 : MOST_FLIGHTS;
    r = engine->info.max_rows < n_slots || engine->info.n_blocks == 0 ? -EINVAL : 0;
    if (r < 0) {
        error_set(err, r, "%s: %u rows a step and %u KV blocks are too few for %u slots", ops->name,
                  engine->info.max_rows, engine->info.n_blocks, n_slots);
        goto fail;
    }
    r = scheduler_init(&engine->scheduler, ops, engine->backend, n_slots, engine->config.step_ms);
    for (uint32_t i = 0; i < engine->most_flights && r == 0; i++)
        r = plan_init(&engine->flights[i].plan, n_slots);
    if (r < 0) {
        error_set(err, r, "engine: out of memory");
        goto fail;
    }
    *ret_engine = engine;
    return 0;
fail:
    engine_free(engine);
    return r;
}

struct engine *engine_free(struct engine *engine)
{
    if (!engine)
        return NULL;
    HASH_CLEAR(hh, engine->alive); /* the scheduler has them all */
    if (engine->scheduler.ops)
        scheduler_deinit(&engine->scheduler);
    if (engine->backend)
        engine->config.backend->close(engine->backend);
    for (uint32_t i = 0; i < MOST_FLIGHTS; i++)
        plan_deinit(&engine->flights[i].plan);
    buffer_deinit(&engine->text);
    free(engine);
    return NULL;
}

/* ---- requests ---- */

int engine_submit(struct engine *engine, const struct engine_request *request, struct error *err)
{
    struct sequence *sequence;
    if (engine->failed)
        return error_set(err, -EIO, "%s", engine->failure.text);
    int r = engine_check_request(request, engine->config.model, engine_context(engine),
                                 engine_max_tokens_in_cache(engine), err);
    if (r != 0)
        return r;
    HASH_FIND(hh, engine->alive, &request->tag, sizeof request->tag, sequence);
    if (sequence)
        return error_set(err, ENGINE_E_INVALID, "tag %llu is alive already",
                         (unsigned long long)request->tag);
    if (engine->scheduler.n_waiting >= engine->config.max_waiting)
        return error_set(err, ENGINE_E_FULL, "%u requests are waiting already", engine->scheduler.n_waiting);
    r = sequence_new(request, tokenizer_end_ids(engine->config.model->tokenizer), engine->n_arrived,
                     clock_ns(), &sequence);
    if (r < 0)
        return error_set(err, r, "out of memory for a request of %u tokens", request->n_prompt);
    engine->n_arrived++;
    HASH_ADD(hh, engine->alive, tag, sizeof sequence->tag, sequence);
    scheduler_enqueue(&engine->scheduler, sequence);
    if (sequence->deadline_ns != 0 && sequence->deadline_ns < engine->first_deadline)
        engine->first_deadline = sequence->deadline_ns;
    return 0;
}

bool engine_cancel(struct engine *engine, uint64_t tag)
{
    struct sequence *sequence;
    HASH_FIND(hh, engine->alive, &tag, sizeof tag, sequence);
    if (!sequence)
        return false;
    sequence->cancelled = true;
    engine->n_cancelled++;
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
    for (uint32_t i = 0; i < plan->n; i++)
        if (!plan->sequences[i]->cancelled && !plan->sequences[i]->ended &&
            !is_expired(plan->sequences[i], now))
            return false;
    return true;
}

/* ---- events ---- */

/* Frees an ended sequence, unless a flight still carries it. */
static void let_go(struct engine *engine, struct sequence *sequence)
{
    if (sequence->in_flight > 0)
        return;
    if (sequence->running)
        scheduler_release(&engine->scheduler, sequence);
    else
        scheduler_dequeue(&engine->scheduler, sequence);
    sequence_free(sequence);
}

/* Sends the last event, with what `event` holds already, and frees the tag. */
static void end_sequence(struct engine *engine, struct sequence *sequence, struct engine_event *event,
                         enum engine_end end, const char *fault)
{
    event->tag = sequence->tag;
    event->end = end;
    event->fault = fault;
    event->n_prompt = sequence->n_prompt;
    event->n_output = (uint32_t)sequence->ids.len - sequence->n_prompt;
    if (sequence->first_ns) {
        event->prefill_ns = sequence->first_ns - sequence->submitted_ns;
        event->decode_ns = sequence->last_ns - sequence->first_ns;
    }
    HASH_DELETE(hh, engine->alive, sequence);
    sequence->ended = true;
    engine->sink(engine->sink_arg, event);
}

/* Ends a sequence that made nothing new; the text that was withheld goes with the event. */
static void cut_off(struct engine *engine, struct sequence *sequence, enum engine_end end, const char *fault)
{
    struct engine_event event = {0};
    engine->text.len = 0;
    if (text_finish(&sequence->text, &engine->text) == 0)
        event.text = (struct bytes){engine->text.data, engine->text.len};
    end_sequence(engine, sequence, &event, end, fault);
}

/* Hands an id to the owner. */
static void deliver(struct engine *engine, struct sequence *sequence, const struct backend_result *result,
                    uint64_t now)
{
    enum engine_end end = ENGINE_RUNNING;
    int32_t id = result->ids[0];
    engine->text.len = 0;
    int r = sequence_accept(sequence, engine->config.model->tokenizer, id, result->end, &engine->text, &end);
    if (r < 0) {
        cut_off(engine, sequence, ENGINE_END_FAULT, "out of memory");
        return;
    }
    if (sequence->first_ns == 0)
        sequence->first_ns = now;
    sequence->last_ns = now;
    engine->stats.tokens++;
    struct engine_event event = {.tag = sequence->tag,
                                 .ids = &id,
                                 .n_ids = 1,
                                 .text = {engine->text.data, engine->text.len},
                                 .logprobs = result->logprobs,
                                 .n_logprobs = result->logprobs ? sequence->n_logprobs : 0};
    if (end == ENGINE_RUNNING)
        engine->sink(engine->sink_arg, &event);
    else
        end_sequence(engine, sequence, &event, end, NULL);
}

/* Ends every sequence, waiting or running, that `is_due` picks. */
static void end_due(struct engine *engine, bool (*is_due)(const struct sequence *, uint64_t now),
                    uint64_t now, enum engine_end end)
{
    struct sequence *sequence, *next;
    HASH_ITER(hh, engine->alive, sequence, next)
    {
        if (!is_due(sequence, now))
            continue;
        cut_off(engine, sequence, end, NULL);
        let_go(engine, sequence);
    }
}

static bool is_cancelled(const struct sequence *sequence, uint64_t now)
{
    return sequence->cancelled;
}

/* Ends what was cancelled or is past its deadline. */
static void end_unwanted(struct engine *engine)
{
    if (engine->n_cancelled > 0) {
        engine->n_cancelled = 0;
        end_due(engine, is_cancelled, 0, ENGINE_END_CANCELLED);
    }
    if (engine->first_deadline == UINT64_MAX)
        return;
    uint64_t now = clock_ns();
    if (now < engine->first_deadline)
        return;
    end_due(engine, is_expired, now, ENGINE_END_DEADLINE);
    engine->first_deadline = UINT64_MAX;
    for (struct sequence *sequence = engine->alive; sequence; sequence = sequence->hh.next)
        if (sequence->deadline_ns != 0 && sequence->deadline_ns < engine->first_deadline)
            engine->first_deadline = sequence->deadline_ns;
}

/* ---- steps ---- */

/* The device is lost: everyone hears why. */
static int fail(struct engine *engine, int code, struct error *err)
{
    struct sequence *sequence, *next;
    engine->failed = true;
    HASH_ITER(hh, engine->alive, sequence, next)
    {
        cut_off(engine, sequence, ENGINE_END_FAULT, engine->failure.text);
    }
    return error_set(err, code, "%s", engine->failure.text);
}

static void admit(struct engine *engine)
{
    struct sequence *sequence;
    while ((sequence = scheduler_next(&engine->scheduler))) {
        if (scheduler_start(&engine->scheduler, sequence) == 0)
            continue;
        cut_off(engine, sequence, ENGINE_END_FAULT, "out of memory");
        let_go(engine, sequence);
    }
}

/* Submits a step if there is anything to do. 1: did; 0: nothing; -errno. */
static int launch(struct engine *engine)
{
    struct flight *flight =
        &engine->flights[(engine->first_flight + engine->n_flights) % engine->most_flights];
    scheduler_plan(&engine->scheduler, &flight->plan);
    if (flight->plan.n == 0)
        return 0;
    flight->submitted_ns = clock_ns();
    engine->n_flights++; /* before submit: the progress hook asks about it */
    const struct backend_step step = {flight->plan.sets, flight->plan.n};
    int r = engine->config.backend->submit(engine->backend, &step, &flight->ticket);
    if (r < 0) {
        error_set(&engine->failure, r, "%s: a step could not be started: %s", engine->config.backend->name,
                  strerror(-r));
        return r;
    }
    return 1;
}

/* Takes one sequence's part of a flight. */
static void take(struct engine *engine, struct sequence *sequence, const struct backend_result *result,
                 uint64_t now)
{
    sequence->in_flight--;
    if (!sequence->ended && sequence->cancelled)
        cut_off(engine, sequence, ENGINE_END_CANCELLED, NULL);
    else if (!sequence->ended && !result) /* abandoned: it starts again from what it has */
        sequence->preempted = true;
    else if (!sequence->ended && result->end == BACKEND_END_FAULT)
        cut_off(engine, sequence, ENGINE_END_FAULT, "the model gave no finite logit to sample from");
    else if (!sequence->ended && result->n_ids > 0)
        deliver(engine, sequence, result, now);
    if (sequence->ended)
        let_go(engine, sequence);
    else if (sequence->preempted)
        scheduler_settle(&engine->scheduler, sequence);
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
    uint64_t now = clock_ns();
    if (!abandoned) {
        uint64_t from =
            flight->submitted_ns > engine->last_read_ns ? flight->submitted_ns : engine->last_read_ns;
        scheduler_measure(&engine->scheduler, &flight->plan, now - from);
        engine->stats.prefill_tokens += flight->plan.prefill_rows;
        engine->stats.steps++;
    }
    engine->last_read_ns = now;
    engine->first_flight = (engine->first_flight + 1) % engine->most_flights;
    engine->n_flights--;
    for (uint32_t i = 0; i < flight->plan.n; i++)
        take(engine, flight->plan.sequences[i], abandoned ? NULL : &results[i], now);
    return 0;
}

int engine_step(struct engine *engine, struct error *err)
{
    if (engine->failed)
        return error_set(err, -EIO, "%s", engine->failure.text);
    end_unwanted(engine);
    admit(engine);
    int launched = 0, landed = 0;
    if (engine->n_flights < engine->most_flights)
        launched = launch(engine);
    if (launched < 0)
        return fail(engine, launched, err);
    if (engine->n_flights == engine->most_flights || (engine->n_flights > 0 && launched == 0))
        landed = land(engine);
    if (landed < 0 && landed != -EAGAIN)
        return fail(engine, landed, err);
    return engine->alive != NULL || engine->n_flights > 0;
}

/* ---- what there is ---- */

void engine_stats(const struct engine *engine, struct engine_stats *ret_stats)
{
    const struct scheduler *scheduler = &engine->scheduler;
    *ret_stats = engine->stats;
    ret_stats->active = scheduler->n_running;
    ret_stats->waiting = scheduler->n_waiting;
    ret_stats->slots = scheduler->n_slots;
    ret_stats->blocks_free = blocks_available(scheduler->blocks);
    ret_stats->blocks_total = blocks_total(scheduler->blocks);
    ret_stats->preemptions = scheduler->preemptions;
    for (const struct sequence *s = scheduler->waiting; s; s = s->next)
        ret_stats->waiting_tokens += s->ids.len;
    for (uint32_t i = 0; i < scheduler->n_running; i++)
        if (scheduler->running[i]->computed < scheduler->running[i]->n_prefill)
            ret_stats->waiting_tokens += scheduler->running[i]->n_prefill - scheduler->running[i]->computed;
}

uint32_t engine_context(const struct engine *engine)
{
    return engine->config.backend_config.n_context;
}

uint32_t engine_max_tokens_in_cache(const struct engine *engine)
{
    uint64_t tokens = (uint64_t)engine->info.n_blocks * BACKEND_BLOCK_TOKENS;
    return tokens > UINT32_MAX ? UINT32_MAX : (uint32_t)tokens;
}

const struct backend_info *engine_backend_info(const struct engine *engine)
{
    return &engine->info;
}
