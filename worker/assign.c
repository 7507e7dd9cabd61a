/* SPDX-License-Identifier: MIT */
/* Assignments into engine requests.
 *
 * A request keeps the message that assigned it until the engine has copied what it needs; its prompt is
 * prepared on another thread meanwhile, in place. The engine and the preparer know a request by its address.
 * So one that ends while either still holds it (a cancel during preparation, a newer attempt) leaves the
 * table, falls silent, and is freed when it is let go of. */

#include "worker/assign.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"

#define HASH_NONFATAL_OOM 1 /* what was not added has no table */
#include <uthash.h>
#include <utlist.h>

enum stage {
    STAGE_PREPARING, /* its prompt is with the preparer */
    STAGE_PREPARED,  /* it waits for the end of the step */
    STAGE_RUNNING    /* the engine has it */
};

struct request {
    enum stage stage;
    bool silent; /* whatever it still says is dropped */
    struct output output;
    struct received *received; /* its assignment; NULL once it runs */
    struct preparation preparation;
    struct assignments *owner;
    uint32_t credit;                   /* outputs that it may make for now; 0: any number */
    enum end_limit limit;              /* what sets the most that it may make at all */
    uint32_t lost;                     /* workers that had died with it before */
    uint64_t assigned_ns, deadline_ns; /* on clock_ns; 0: no deadline */
    double prepared_ms;                /* from the assignment until the engine had it */
    struct request *next, *prev;       /* in unstarted or silent */
    UT_hash_handle hh;                 /* by topic, while it is not silent */
};

void assignments_init(struct assignments *assignments, struct link *link, struct preparer *preparer,
                      struct engine *engine, struct publisher *publisher,
                      const struct prompt_encoder *encoder, const struct sampling_defaults *sampling)
{
    *assignments = (struct assignments){.link = link,
                                        .preparer = preparer,
                                        .engine = engine,
                                        .publisher = publisher,
                                        .encoder = encoder,
                                        .sampling = sampling};
}

/* ---- the table ---- */

static struct request *find(struct assignments *assignments, struct id128 session, struct id128 id,
                            uint8_t ret_topic[PROTO_TOPIC_BYTES])
{
    struct request *request;
    memcpy(ret_topic, &session, sizeof session);
    memcpy(ret_topic + sizeof session, &id, sizeof id);
    HASH_FIND(hh, assignments->requests, ret_topic, PROTO_TOPIC_BYTES, request);
    return request;
}

static void free_request(struct request *request)
{
    struct assignments *assignments = request->owner;
    if (request->silent)
        DL_DELETE(assignments->silent, request);
    else
        HASH_DELETE(hh, assignments->requests, request);
    if (!request->silent && request->stage != STAGE_RUNNING)
        DL_DELETE(assignments->unstarted, request);
    assignments->n--;
    publish_drop(assignments->publisher, &request->output);
    ids_deinit(&request->preparation.ids);
    words_deinit(&request->preparation.words);
    grammar_free(request->preparation.made);
    received_free(request->received);
    free(request);
}

void assignments_deinit(struct assignments *assignments)
{
    struct request *request, *next;
    HASH_ITER(hh, assignments->requests, request, next)
    {
        free_request(request);
    }
    DL_FOREACH_SAFE(assignments->silent, request, next)
    {
        free_request(request);
    }
}

/* Takes a request out of the table: it says nothing more. It is freed now, or when it is let go of. */
static void silence(struct request *request)
{
    struct assignments *assignments = request->owner;
    if (request->stage == STAGE_RUNNING)
        engine_cancel(assignments->engine, (uint64_t)(uintptr_t)request);
    else if (request->stage == STAGE_PREPARED ||
             preparer_remove(assignments->preparer, &request->preparation)) {
        free_request(request);
        return;
    }
    if (request->stage != STAGE_RUNNING)
        DL_DELETE(assignments->unstarted, request);
    HASH_DELETE(hh, assignments->requests, request);
    publish_drop(assignments->publisher, &request->output);
    request->silent = true;
    DL_APPEND(assignments->silent, request);
}

/* Ends a request that the engine does not have, or whatever it makes of it. */
static void end_here(struct request *request, enum end_reason reason, enum proto_error error,
                     const char *text)
{
    const struct ending ending = {.reason = reason,
                                  .error = error,
                                  .text = bytes_of_string(text),
                                  .lost = request->lost,
                                  .timing = {.queue_ms = request->output.queue_ms}};
    trace_end(request->owner->trace, request->output.topic, &ending, request->output.seq);
    publish_end(request->owner->publisher, &request->output, &ending);
    silence(request);
}

/* ---- credit ---- */

static uint32_t counted(uint64_t ids)
{
    return ids < UINT32_MAX ? (uint32_t)ids : UINT32_MAX;
}

/* Never takes away. */
static void give_credit(struct request *request, uint64_t ids)
{
    if (counted(ids) <= request->credit)
        return;
    request->credit = counted(ids);
    if (request->stage == STAGE_RUNNING)
        engine_credit(request->owner->engine, (uint64_t)(uintptr_t)request, request->credit);
}

void assignments_credit(struct assignments *assignments, const struct message *message)
{
    uint8_t topic[PROTO_TOPIC_BYTES];
    struct id128 session, id;
    for (size_t i = 0; i < message->credit.topics.n; i++) {
        const uint8_t *said = message->credit.topics.items[i].data;
        memcpy(&session, said, sizeof session);
        memcpy(&id, said + sizeof session, sizeof id);
        struct request *request = find(assignments, session, id, topic);
        if (request && request->credit > 0)
            give_credit(request, (uint64_t)message->credit.counts.items[i]);
    }
}

/* ---- assignments ---- */

/* One of this topic, in the table; NULL when out of memory. */
static struct request *new_request(struct assignments *assignments, const uint8_t topic[PROTO_TOPIC_BYTES])
{
    struct request *request = calloc(1, sizeof *request);
    if (!request)
        return NULL;
    memcpy(request->output.topic, topic, PROTO_TOPIC_BYTES);
    HASH_ADD_KEYPTR(hh, assignments->requests, request->output.topic, PROTO_TOPIC_BYTES, request);
    if (request->hh.tbl)
        return request;
    free(request);
    return NULL;
}

static struct request *add_request(struct assignments *assignments, const uint8_t topic[PROTO_TOPIC_BYTES])
{
    struct request *request = new_request(assignments, topic);
    struct received *received = link_keep(assignments->link);
    if (!request) { /* no way to keep it, but a way to say so */
        struct message answer = {.kind = MESSAGE_FINISHED};
        answer.finished.session = received->message.assign.session;
        answer.finished.id = received->message.assign.id;
        answer.finished.epoch = received->message.assign.epoch;
        answer.finished.count = received->message.assign.generation.output.n;
        answer.finished.end = (struct ending){.reason = END_ERROR,
                                              .error = PROTO_INTERNAL,
                                              .text = BYTES_LITERAL("the worker is out of memory")};
        link_must_send(assignments->link, &answer);
        received_free(received);
        return NULL;
    }
    const struct message *message = &received->message;
    uint64_t deadline_ms = message->assign.deadline_left_ms;
    request->output.epoch = message->assign.epoch;
    request->output.seq = message->assign.generation.output.n;
    request->output.off = message->assign.generation.off;
    request->output.queue_ms = (double)message->assign.queue_us / 1e3;
    request->output.pieces = message->assign.generation.pieces;
    request->lost = message->assign.generation.lost;
    request->owner = assignments;
    request->credit = counted(message->assign.credit);
    request->received = received;
    request->assigned_ns = clock_ns();
    request->deadline_ns = deadline_ms ? request->assigned_ns + deadline_ms * CLOCK_NS_PER_MS : 0;
    request->stage = STAGE_PREPARED;
    trace_admitted(assignments->trace, topic, message->assign.generation.request_id, message->assign.queue_us,
                   request->assigned_ns);
    DL_APPEND(assignments->unstarted, request);
    assignments->n++;
    return request;
}

/* preparer_deliver's call. */
static void on_prepared(void *arg, struct preparation *preparation)
{
    struct request *request = arg;
    request->stage = STAGE_PREPARED;
    if (request->silent)
        free_request(request);
    else if (!preparation->ok)
        end_here(request, END_ERROR, preparation->refusal.error, preparation->refusal.reason.text);
}

static bool has_dry(const struct assignments *assignments, const struct generation *generation)
{
    return words_with_dry(generation, assignments->sampling->values[SAMPLING_AT_dry_multiplier]);
}

static void prepare(struct request *request)
{
    const struct generation *generation = &request->received->message.assign.generation;
    const bool dry = has_dry(request->owner, generation);
    request->preparation = (struct preparation){
        .prompt = &generation->prompt,
        .tools = generation->tools,
        .grammar = grammar_text_is_none(&generation->grammar) ? NULL : &generation->grammar,
        .wording = words_are_wanted(generation, dry) ? generation : NULL,
        .dry = dry,
        .priority = generation->priority,
        .done = on_prepared,
        .arg = request};
    if (preparer_add(request->owner->preparer, &request->preparation))
        request->stage = STAGE_PREPARING;
    else
        end_here(request, END_ERROR, PROTO_OVERLOADED, "too many prompts are waiting for their tokens");
}

static bool needs_preparation(const struct assignments *assignments, const struct generation *generation)
{
    return generation->prompt.form != PROMPT_IDS || generation->prompt.has_thinking_budget ||
           !grammar_text_is_none(&generation->grammar) ||
           words_are_wanted(generation, has_dry(assignments, generation));
}

void assignments_take(struct assignments *assignments)
{
    uint8_t topic[PROTO_TOPIC_BYTES];
    const struct message *message = &assignments->link->received->message;
    struct request *older = find(assignments, message->assign.session, message->assign.id, topic);
    int order = older ? epoch_compare(message->assign.epoch, older->output.epoch) : 1;
    if (order == 0 && older->credit > 0) /* said twice, perhaps by another broker */
        give_credit(older, message->assign.credit);
    if (order <= 0)
        return;
    if (older)
        silence(older);
    struct request *request = add_request(assignments, topic);
    if (!request)
        return;
    if (assignments->closed)
        end_here(request, END_ERROR, assignments->closed, assignments->closed_because);
    else if (needs_preparation(assignments, &request->received->message.assign.generation))
        prepare(request);
}

void assignments_cancel(struct assignments *assignments, const struct message *cancel)
{
    uint8_t topic[PROTO_TOPIC_BYTES];
    struct request *request = find(assignments, cancel->cancel.session, cancel->cancel.id, topic);
    if (request && request->stage == STAGE_RUNNING)
        engine_cancel(assignments->engine, (uint64_t)(uintptr_t)request);
    else if (request)
        end_here(request, END_CANCELLED, PROTO_OK, "");
}

void assignments_close(struct assignments *assignments, enum proto_error error, const char *because)
{
    assignments->closed = error;
    assignments->closed_because = because;
}

void assignments_abandon(struct assignments *assignments, enum proto_error error, const char *because)
{
    struct request *request, *next;
    assignments_close(assignments, error, because);
    DL_FOREACH_SAFE(assignments->unstarted, request, next)
    {
        end_here(request, END_ERROR, error, because);
    }
}

void assignments_give_back(struct assignments *assignments)
{
    struct request *request, *next;
    HASH_ITER(hh, assignments->requests, request, next)
    {
        publish_now(assignments->publisher, &request->output);
        end_here(request, END_ERROR, assignments->closed, assignments->closed_because);
    }
}

void assignments_expire(struct assignments *assignments, uint64_t now)
{
    struct request *request, *next;
    DL_FOREACH_SAFE(assignments->unstarted, request, next)
    {
        if (request->deadline_ns && now >= request->deadline_ns)
            end_here(request, END_DEADLINE, PROTO_OK, "");
    }
}

/* ---- the engine ---- */

#define SALT_BYTES (1 + PROTO_MAX_SPACE_BYTES + PROTO_MAX_NAME_BYTES)
_Static_assert(SALT_BYTES <= ENGINE_SHARED_SALT_BYTES, "all of them are shared between workers");

/* The space and the salt in one, so that no two pairs are the same bytes. */
static struct bytes salt_of(const struct generation *generation, uint8_t text[SALT_BYTES])
{
    const struct bytes space = generation->cache_space, salt = generation->cache_salt;
    if (space.len + salt.len == 0)
        return (struct bytes){"", 0};
    text[0] = (uint8_t)space.len;
    if (space.len > 0)
        memcpy(text + 1, space.data, space.len);
    if (salt.len > 0)
        memcpy(text + 1 + space.len, salt.data, salt.len);
    return (struct bytes){text, 1 + space.len + salt.len};
}

/* What the engine is asked for. Everything is borrowed from the generation and the ids. */
static struct engine_request engine_request_of(const struct generation *generation, struct id_list prompt)
{
    return (struct engine_request){.prompt = prompt.items,
                                   .n_prompt = (uint32_t)prompt.n,
                                   .sampling = generation->sampling,
                                   .stop = generation->stop.items,
                                   .n_stop = (uint32_t)generation->stop.n,
                                   .stop_ids = generation->stop_ids.items,
                                   .n_stop_ids = (uint32_t)generation->stop_ids.n,
                                   .min_tokens = generation->min_tokens,
                                   .n_logprobs = generation->logprobs,
                                   .priority = generation->priority,
                                   .embed = generation->embed,
                                   .watched = generation->progress,
                                   .uncached = !generation->cache_prompt || generation->embed};
}

/* Most tokens to make, and what sets that limit. One that was not given, or came with fit_context, is lowered
 * to the room that the prompt leaves and to what the pool allows, so that it is no reason to refuse a prompt
 * that fits. Ids that a move brings along count as made. */
static uint32_t most_to_make(const struct engine *engine, const struct message *assign, uint32_t n_prompt,
                             enum end_limit *ret_limit)
{
    const struct generation *generation = &assign->assign.generation;
    uint32_t context = engine_context(engine), cache = engine_max_tokens_in_cache(engine);
    uint32_t holds = context < cache ? context : cache, most = n_prompt < holds ? holds - n_prompt : 1;
    *ret_limit = LIMIT_MAX_TOKENS;
    if (generation->max_tokens && !generation->fit_context)
        return generation->max_tokens;
    *ret_limit = LIMIT_CONTEXT;
    if (assign->assign.most > 0 && assign->assign.most < most) {
        most = (uint32_t)assign->assign.most;
        *ret_limit = LIMIT_POOL;
    }
    if (generation->max_tokens && generation->max_tokens <= most) {
        most = generation->max_tokens;
        *ret_limit = LIMIT_MAX_TOKENS;
    }
    return most < generation->output.n ? (uint32_t)generation->output.n : most;
}

static enum proto_error error_of_submit(int r)
{
    return r == ENGINE_E_INVALID    ? PROTO_BAD_REQUEST
           : r == ENGINE_E_TOO_LONG ? PROTO_TOO_LONG
           : r == ENGINE_E_FULL     ? PROTO_OVERLOADED
           : r == -ENOMEM           ? PROTO_INTERNAL
                                    : PROTO_MODEL_ERROR;
}

/* What fills in ends where the model goes on with another part of the file, or another file. */
static void add_fim_stops(const struct tokenizer *tokenizer, int32_t ids[], struct engine_request *wanted)
{
    uint32_t n = wanted->n_stop_ids;
    if (n > 0)
        memcpy(ids, wanted->stop_ids, n * sizeof *ids);
    for (int i = 0; i < FIM_TOKENS; i++)
        if (tokenizer_fim(tokenizer, (enum fim_token)i) != TOKENIZER_NONE && n < PROTO_MAX_STOP_IDS)
            ids[n++] = tokenizer_fim(tokenizer, (enum fim_token)i);
    wanted->stop_ids = ids;
    wanted->n_stop_ids = n;
}

/* The budget of its thoughts. With a grammar only the mark that closes one is sure to be allowed; and a model
 * that may call tools can do so in another part of its answer, unless it opens a thought again. */
static bool limit_thoughts(const struct request *request, const struct generation *generation,
                           struct engine_thinking *ret_thinking)
{
    const struct prompt_encoder *encoder = request->owner->encoder;
    const struct thought_ends *ends = &encoder->thought_ends;
    const bool parts = generation->tools.len > 0 && encoder->dialect.content_open[0];
    const bool held = request->preparation.made != NULL;
    const struct ids *first = held || parts ? &ends->close : &ends->whole,
                     *again = held ? &ends->close : &ends->whole;
    if (!generation->prompt.has_thinking_budget || !encoder->dialect.thoughts.known)
        return false;
    *ret_thinking = (struct engine_thinking){.budget = generation->prompt.thinking_budget,
                                             .inside = request->preparation.inside,
                                             .end = first->data,
                                             .n_end = (uint32_t)first->len,
                                             .again = again->data,
                                             .n_again = (uint32_t)again->len,
                                             .dialect = &encoder->dialect,
                                             .marks = encoder->marks,
                                             .n_marks = encoder->n_marks};
    return true;
}

/* Its first frame says which prompt it is. False: the output that it is to continue is of another one. */
static bool note_prompt(struct request *request, const struct engine_request *wanted, struct error *err)
{
    const struct bytes stated = request->received->message.assign.generation.prompt_digest;
    struct output *output = &request->output;
    if (wanted->embed)
        return true; /* it has no output to continue */
    output->tells_prompt = true;
    prompt_digest((struct id_list){wanted->prompt, wanted->n_prompt}, output->prompt_digest);
    return prompt_digest_is(output->prompt_digest, stated, wanted->n_prompt, err);
}

static void start(struct request *request)
{
    struct assignments *assignments = request->owner;
    const struct message *assign = &request->received->message;
    const struct generation *generation = &assign->assign.generation;
    struct ids *ids = &request->preparation.ids;
    struct error err = {0};
    struct engine_request wanted = engine_request_of(generation, generation->prompt.form == PROMPT_IDS
                                                                     ? generation->prompt.ids
                                                                     : (struct id_list){ids->data, ids->len});
    sampling_complete(&wanted.sampling, assignments->sampling->values);
    words_lend(&request->preparation.words, &wanted.sampling);
    uint8_t salt[SALT_BYTES];
    wanted.cache_salt = salt_of(generation, salt);
    wanted.tag = (uint64_t)(uintptr_t)request;
    wanted.output = generation->output.items;
    wanted.n_output = (uint32_t)generation->output.n;
    if (!wanted.embed)
        wanted.max_tokens = most_to_make(assignments->engine, assign, wanted.n_prompt, &request->limit);
    wanted.credit = request->credit;
    wanted.text_offset = generation->off;
    wanted.deadline_ns = request->deadline_ns;
    if (generation->tools.len > 0 || generation->marks) {
        wanted.spelled = assignments->encoder->marks;
        wanted.n_spelled = assignments->encoder->n_marks;
    }
    int32_t stop_ids[PROTO_MAX_STOP_IDS + FIM_TOKENS];
    if (generation->prompt.has_suffix)
        add_fim_stops(assignments->encoder->tokenizer, stop_ids, &wanted);
    wanted.grammar = request->preparation.made;
    struct engine_thinking thinking;
    if (limit_thoughts(request, generation, &thinking))
        wanted.thinking = &thinking;
    if (!note_prompt(request, &wanted, &err)) {
        end_here(request, END_ERROR, PROTO_CONFLICT, err.text);
        return;
    }
    int r = engine_submit(assignments->engine, &wanted, &err);
    if (r != 0) {
        end_here(request, END_ERROR, error_of_submit(r), err.text);
        return;
    }
    DL_DELETE(assignments->unstarted, request);
    request->stage = STAGE_RUNNING;
    const uint64_t now = clock_ns();
    request->prepared_ms = (double)(now - request->assigned_ns) / 1e6;
    trace_mark(assignments->trace, request->output.topic, TRACE_TOKENIZED, wanted.n_prompt, now);
    request->received = received_free(request->received);
    ids_deinit(ids);
    words_deinit(&request->preparation.words);
    request->preparation.made =
        grammar_free(request->preparation.made); /* the engine has its own reference */
    assignments->n_running++;
}

void assignments_start(struct assignments *assignments)
{
    struct request *request, *next;
    DL_FOREACH_SAFE(assignments->unstarted, request, next)
    {
        if (request->stage == STAGE_PREPARED)
            start(request);
    }
}

/* ---- events ---- */

static void end_by_event(struct request *request, const struct engine_event *event)
{
    static const enum end_reason reasons[] = {
        [ENGINE_END_STOP] = END_STOP,           [ENGINE_END_LENGTH] = END_LENGTH,
        [ENGINE_END_CANCELLED] = END_CANCELLED, [ENGINE_END_DEADLINE] = END_DEADLINE,
        [ENGINE_END_FAULT] = END_ERROR,         [ENGINE_END_INVALID] = END_ERROR};
    const struct engine_totals *totals = event->totals;
    struct ending ending = {.reason = reasons[event->end],
                            .stop = event->stop,
                            .limit = event->end == ENGINE_END_LENGTH ? request->limit : LIMIT_NONE,
                            .lost = request->lost,
                            .usage = {.prompt_tokens = totals->n_prompt,
                                      .cached_tokens = totals->n_cached,
                                      .output_tokens = totals->n_output,
                                      .drafted_tokens = totals->n_drafted,
                                      .accepted_tokens = totals->n_accepted},
                            .timing = {.queue_ms = request->output.queue_ms,
                                       .prefill_ms = request->prepared_ms + (double)totals->prefill_ns / 1e6,
                                       .prepare_ms = request->prepared_ms,
                                       .wait_ms = (double)totals->wait_ns / 1e6,
                                       .lookup_ms = (double)totals->lookup_ns / 1e6,
                                       .decode_ms = (double)totals->decode_ns / 1e6}};
    if (ending.reason == END_ERROR) {
        ending.error = event->end == ENGINE_END_INVALID ? PROTO_BAD_REQUEST : PROTO_MODEL_ERROR;
        ending.text = bytes_of_string(event->fault);
    }
    trace_end(request->owner->trace, request->output.topic, &ending, totals->n_output);
    publish_end(request->owner->publisher, &request->output, &ending);
}

const uint8_t *assignments_topic_of(uint64_t tag)
{
    return ((const struct request *)(uintptr_t)tag)->output.topic;
}

void assignments_event(void *arg, const struct engine_event *event)
{
    struct assignments *assignments = arg;
    struct request *request = (struct request *)(uintptr_t)event->tag;
    if (event->reading) {
        if (!request->silent)
            publish_reading(assignments->publisher, &request->output, event->reading);
        return;
    }
    if (!request->silent)
        publish_event(assignments->publisher, &request->output, event);
    if (event->end == ENGINE_RUNNING)
        return;
    if (!request->silent)
        end_by_event(request, event);
    assignments->n_running--;
    free_request(request);
}

uint32_t assignments_unstarted(const struct assignments *assignments)
{
    return assignments->n - assignments->n_running;
}
