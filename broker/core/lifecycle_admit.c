/* SPDX-License-Identifier: MIT */
/* Admission: the beginning of a request's life.
 *
 * The same generate twice is one request, found again under (session, id). A new one is checked against what
 * no worker needs to be asked for, room for its end is reserved in the journal, at the cost of requests that
 * ended, and it is queued with everything fixed that a later worker must not choose anew. Until the last step
 * succeeded nothing is changed; that step is its record in the vault. */

#include "broker/core/lifecycle_admit.h"

#include "broker/books/record.h"
#include "broker/choose/scheduler.h"
#include "broker/core/lifecycle.h"
#include "common/hash.h"

/* Bytes of the largest embedding that a worker makes; while none has registered, of any. */
static uint64_t embedding_bytes(const struct broker *broker)
{
    uint32_t largest = 0;
    for (uint32_t i = 0; i < broker->n_workers; i++)
        if (broker->workers[i].embedding > largest)
            largest = broker->workers[i].embedding;
    return sizeof(float) * (uint64_t)(largest > 0 ? largest : PROTO_MAX_EMBEDDING);
}

static uint32_t token_bytes(const struct broker *broker, const struct generation *generation)
{
    return generation->embed ? (uint32_t)embedding_bytes(broker)
                             : journal_token_bytes(generation->logprobs, generation->pieces);
}

static uint64_t at_most(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t pool_most(const struct broker *broker)
{
    return broker->options.max_tokens > 0 ? broker->options.max_tokens : UINT64_MAX;
}

/* A number that is not given, or only fits, is lowered to what any context and the journal hold, and to what
 * the pool allows. */
void lifecycle_plan(const struct broker *broker, struct request *request, const struct generation *generation)
{
    uint32_t bytes = token_bytes(broker, generation), context = broker_largest_context(broker);
    uint64_t most = generation->max_tokens > 0 ? generation->max_tokens : UINT64_MAX;
    if (generation->max_tokens == 0 || generation->fit_context)
        most = at_most(at_most(most, generation->output.n + growth_most_ids(&broker->journal, bytes)),
                       pool_most(broker));
    if (context > 0)
        most = at_most(most, context);
    growth_plan(request, generation->embed ? 1 : most, bytes);
}

/* What the ids that it has not made could take in the end, where nobody lowers that. */
static uint64_t most_bytes(const struct broker *broker, const struct generation *generation)
{
    if (generation->fit_context || generation->max_tokens == 0)
        return 0;
    return (generation->max_tokens - generation->output.n) * token_bytes(broker, generation);
}

static enum proto_error refuse_model(struct bytes model, struct error *err)
{
    if (model.len == 0)
        return error_set(err, PROTO_NO_WORKER, "no worker is left");
    return error_set(err, PROTO_NO_WORKER, "no worker serves the model \"%.*s\"", (int)model.len,
                     (const char *)model.data);
}

/* Whose limits a request counts for. A client without a key, beyond the run directory, could be anybody. */
static struct rate_key rate_key_of_arrival(const struct arrival *arrival)
{
    const struct session *session = arrival->session;
    return rate_key_of(arrival->generation->tenant, session->key ? &session->client : NULL);
}

/* An input of a list has its whole cost when it is admitted; a choice of an answer goes on with the others.
 */
static enum rate_scope rate_scope_of(const struct generation *generation)
{
    if (!generation->part)
        return RATE_WHOLE;
    return generation->embed ? RATE_INPUT : RATE_PART;
}

static enum proto_error check_rates(struct broker *broker, const struct arrival *arrival,
                                    struct verdict *verdict)
{
    const struct generation *generation = arrival->generation;
    const struct rate_key key = rate_key_of_arrival(arrival);
    if (!rates_any(&generation->rates))
        return PROTO_OK;
    if (!arrival->session->near && arrival->session->key == 0)
        return error_set(&verdict->reason, PROTO_BAD_REQUEST,
                         "rpm, tpm, rpd and tpd need a client in the run directory, or with a key");
    return rates_check(&broker->rates, &key, &generation->rates, rate_scope_of(generation), broker->now,
                       &verdict->quotas, &verdict->retry_ms, &verdict->reason);
}

static enum proto_error may_enter(struct broker *broker, const struct arrival *arrival,
                                  struct verdict *verdict)
{
    struct worker *worker;
    const struct generation *generation = arrival->generation;
    if (broker->draining)
        return error_set(&verdict->reason, PROTO_DRAINING, "the pool is shutting down");
    const struct scheduler_wish wish = {
        .model = generation->model, .embed = generation->embed, .pair = generation->prompt.has_document};
    bool none = scheduler_pick(broker->workers, broker->n_workers, &wish, &worker) == SCHEDULER_E_NO_WORKER;
    if (none && scheduler_lacks_embeddings(broker->workers, broker->n_workers, &wish))
        return error_set(&verdict->reason, PROTO_UNSUPPORTED, "%s",
                         wish.pair ? LIFECYCLE_NO_RANKING : LIFECYCLE_NO_EMBEDDINGS);
    if (none)
        return refuse_model(generation->model, &verdict->reason);
    uint32_t context = broker_largest_context(broker);
    if (context > 0 && generation->max_tokens > context && !generation->fit_context)
        return error_set(&verdict->reason, PROTO_TOO_LONG, "max_tokens %u is above the context length %u",
                         generation->max_tokens, context);
    if (generation->max_tokens > pool_most(broker) && !generation->fit_context)
        return error_set(&verdict->reason, PROTO_TOO_LONG,
                         "max_tokens %u is above what this pool allows, %u (--max-tokens)",
                         generation->max_tokens, broker->options.max_tokens);
    const struct tenancy tenancy = broker_tenancy(broker, arrival->session, arrival->generation->tenant);
    const struct party party = {session_client(arrival->session), &tenancy};
    struct client_key *key = client_keys_of(&broker->client_keys, arrival->session->key);
    enum proto_error no =
        allowance_check_tokens(&broker->allowance, key, broker->now, &verdict->retry_ms, &verdict->reason);
    if (no == PROTO_OK)
        no = check_rates(broker, arrival, verdict);
    if (no != PROTO_OK)
        return no;
    no = admission_check_queue(&broker->admission, &party, arrival->body.len, &verdict->reason);
    if (no == PROTO_OK)
        no = admission_check_journal(&broker->admission, &party, journal_start_bytes(request_overhead()),
                                     most_bytes(broker, generation), &broker->journal, &verdict->reason);
    if (no == PROTO_OVERLOADED)
        verdict->retry_ms = admission_retry_ms(&broker->admission, broker->now);
    return no;
}

/* The same text in the copy of the message that is kept. */
static struct bytes in_body(const struct request *request, const struct arrival *arrival, struct bytes text)
{
    if (text.len == 0)
        return (struct bytes){0};
    size_t at = (size_t)((const uint8_t *)text.data - (const uint8_t *)arrival->body.data);
    return (struct bytes){(const uint8_t *)request->body.data + at, text.len};
}

/* 0 or -ENOMEM. */
static int enter_rates(struct broker *broker, struct request *request, const struct arrival *arrival)
{
    const struct generation *generation = arrival->generation;
    const struct rate_key key = rate_key_of_arrival(arrival);
    if (!rates_any(&generation->rates))
        return 0;
    request->rate = rates_enter(&broker->rates, &key, &generation->rates, generation->part,
                                request->prompt_tokens, broker->now);
    return request->rate ? 0 : -ENOMEM;
}

/* Copies what was asked into a fresh request and puts it into the queue. */
static int enqueue(struct broker *broker, struct request *request, const struct arrival *arrival)
{
    struct bytes model = arrival->generation->model;
    request->key = arrival->session->key;
    request->client = arrival->session->client;
    request->keyed = arrival->session->key != 0;
    request->near = arrival->session->near;
    request->tenancy = broker_tenancy(broker, arrival->session, arrival->generation->tenant);
    request->embed = arrival->generation->embed;
    request->pair = arrival->generation->prompt.has_document;
    request->n_lost = arrival->generation->lost;
    journal_resume(&request->log, arrival->generation->output.n, arrival->generation->off);
    request->model_known = scheduler_knows(broker->workers, broker->n_workers, model);
    int r = 0;
    if (arrival->room)
        record_fill(request, arrival->room);
    else
        r = record_make(broker->journal.vault, request, arrival->body.data, arrival->body.len);
    if (r < 0)
        return r;
    request->model = in_body(request, arrival, model);
    request->name = in_body(request, arrival, arrival->generation->request_id);
    lifecycle_plan(broker, request, arrival->generation);
    admission_fix(request, arrival->generation, admission_draw_seed(&broker->admission), broker->now);
    struct generation generation = *arrival->generation;
    char space[PROTO_MAX_SPACE_BYTES + 1];
    request_set_cache_space(request, broker->options.share_prefixes, space, &generation);
    routing_admit(&broker->routing, request, &generation);
    request->epoch = (struct epoch){broker->supervisor.boot, 0};
    r = admission_entered(&broker->admission, request);
    if (r < 0)
        return r;
    r = queue_push(&broker->queue, request);
    if (r < 0) {
        admission_withdrawn(&broker->admission, request);
        return r;
    }
    admission_queued(&broker->admission, request);
    r = enter_rates(broker, request, arrival);
    if (r < 0) {
        queue_remove(&broker->queue, request);
        admission_dequeued(&broker->admission, request);
        admission_withdrawn(&broker->admission, request);
    }
    return r;
}

/* Reserves what it has of the journal while it waits, for which there is room at the cost of requests that
 * ended and were read. */
static int reserve(struct broker *broker, struct request *request)
{
    uint64_t bytes = journal_start_bytes(request_overhead());
    ledger_make_room(&broker->ledger, &broker->journal, bytes, false);
    return journal_reserve(&broker->journal, &request->log, bytes);
}

static enum proto_error admit_new(struct broker *broker, struct request_key key,
                                  const struct arrival *arrival, struct verdict *verdict)
{
    struct request *request = ledger_add(&broker->ledger, key);
    if (!request)
        return error_set(&verdict->reason, PROTO_INTERNAL, "out of memory");
    int r = reserve(broker, request);
    if (r == 0)
        r = enqueue(broker, request, arrival);
    if (r != 0) {
        ledger_remove(&broker->ledger, &broker->journal, request);
        return error_set(&verdict->reason, PROTO_INTERNAL, "out of memory");
    }
    session_bind(&broker->sessions, arrival->session, request);
    const struct client_key *client = client_keys_of(&broker->client_keys, request->key);
    record_keep(broker->journal.vault, request, client ? client->bytes : NULL);
    broker->counters.admitted++;
    verdict->request = request;
    return PROTO_OK;
}

void lifecycle_admit(struct broker *broker, const struct arrival *arrival, struct verdict *ret_verdict)
{
    struct request_key key = {arrival->session->id, arrival->id};
    struct verdict verdict = {.request = ledger_find(&broker->ledger, &key)};
    verdict.again = verdict.request != NULL;
    if (!verdict.again) {
        verdict.error = may_enter(broker, arrival, &verdict);
        if (verdict.error == PROTO_OK)
            verdict.error = admit_new(broker, key, arrival, &verdict);
    } else if (!request_same_body(verdict.request, arrival->body.data, arrival->body.len)) {
        verdict.error = error_set(&verdict.reason, PROTO_CONFLICT, "this id was used for another request");
    }
    if (verdict.error == PROTO_OK && verdict.request->rate)
        verdict.quotas = rate_quotas(verdict.request->rate, broker->now);
    *ret_verdict = verdict;
}
