/* SPDX-License-Identifier: MIT */
/* The engine: made of its parts, given requests, and asked what it has. steps.c makes it go.
 *
 * A sequence waits, runs, and ends (sequence.h); the scheduler owns it all along, and delivery tells the
 * owner. engine_cancel only marks: it may be called from the progress hook, in the middle of submit or poll.
 */

#include "engine/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/amount.h"
#include "common/clock.h"
#include "engine/inside.h"
#include "engine/limits.h"
#include "model/model.h"

_Static_assert(SEQUENCE_MOST_SNAPSHOTS >= MOST_FLIGHTS, "a snapshot for each flight");
_Static_assert(ENGINE_SHARED_SALT_BYTES == PREFIX_STORE_MAX_SALT, "as engine.h says");

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
    backend->drafts = config->draft != NULL;
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
    if (config->host_sampling)
        r = config->host_sampling->begin(engine->backend, err);
    if (r < 0)
        return r;
    config->backend->info(engine->backend, &info);
    r = check_backend(engine, &info, err);
    if (r < 0)
        return r;
    if (engine->config.max_waiting == 0)
        engine->config.max_waiting = ENGINE_DEFAULT_WAITING + 2 * info.n_slots;
    engine->most_flights = info.most_flights < MOST_FLIGHTS ? info.most_flights : MOST_FLIGHTS;
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
    engine->planner.draft = config->draft;
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

/* ---- what there is ---- */

/* As much as both ask for. */
static int watch(struct engine *engine)
{
    enum backend_watch what = engine->observer ? BACKEND_WATCH_FACTS : BACKEND_WATCH_NOTHING;
    if (engine->profiles)
        what = BACKEND_WATCH_KERNELS;
    if (what == engine->watched)
        return 0;
    int r = engine->config.backend->watch ? engine->config.backend->watch(engine->backend, what) : -ENOTSUP;
    if (r == 0)
        engine->watched = what;
    return r;
}

void engine_observe(struct engine *engine, const struct engine_observer *observer)
{
    engine->observer = engine->scheduler.observer = observer;
    watch(engine); /* without facts it is told of steps all the same */
}

void engine_compared(const struct engine *engine, uint64_t *ret_compared, uint64_t *ret_different)
{
    *ret_compared = *ret_different = 0;
    if (engine->config.host_sampling)
        engine->config.host_sampling->counts(engine->backend, ret_compared, ret_different);
}

void engine_usage(struct engine *engine, struct backend_usage *ret_usage)
{
    struct backend_info info;
    *ret_usage = (struct backend_usage){0};
    engine->config.backend->info(engine->backend, &info);
    engine->scheduler.info.memory_bytes = info.memory_bytes; /* some may have been given back */
    if (engine->config.backend->usage)
        engine->config.backend->usage(engine->backend, ret_usage);
}

int engine_profile(struct engine *engine, bool on)
{
    if (on && (!engine->config.backend->watch || !engine->config.backend->profile))
        return -ENOTSUP;
    const struct backend_kernel *unused;
    engine->profiles = on;
    int r = watch(engine);
    if (r < 0)
        engine->profiles = false;
    else if (on) /* from here on */
        engine_kernels(engine, &unused);
    return r;
}

uint32_t engine_kernels(struct engine *engine, const struct backend_kernel **ret_kernels)
{
    return engine->config.backend->profile ? engine->config.backend->profile(engine->backend, ret_kernels)
                                           : 0;
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
    ret_stats->drafted = scheduler->drafted;
    ret_stats->accepted = scheduler->accepted;
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
