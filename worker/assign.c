/* SPDX-License-Identifier: MIT */
/* Assignments into engine requests: the prompt in any of its forms to ids, bounds to errors by name.
 *
 * The broker has checked the shape of a generation and fixed its defaults; what needs the model is checked
 * here. A request that cannot be served still gets its last frame and `finished`, like any other. */

#include "worker/worker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"

#include <utlist.h>

struct refusal {
    enum proto_error error;
    struct error reason;
};

static bool refuse(struct refusal *refusal, enum proto_error error, const char *text)
{
    refusal->error = error;
    error_set(&refusal->reason, 0, "%s", text);
    return false;
}

static bool chat_to_ids(struct worker *worker, const struct prompt *prompt, struct ids *ids,
                        struct refusal *ret_refusal)
{
    if (!worker->chat)
        return refuse(ret_refusal, PROTO_UNSUPPORTED, worker->no_chat.text);
    struct chat_turn *turns = calloc(prompt->chat.n, sizeof *turns);
    if (!turns)
        return refuse(ret_refusal, PROTO_INTERNAL, "out of memory for the conversation");
    for (size_t i = 0; i < prompt->chat.n; i++)
        turns[i] = (struct chat_turn){prompt->chat.items[i].role, prompt->chat.items[i].content};
    int r = chat_template_encode(worker->chat, worker->model->tokenizer, turns, prompt->chat.n,
                                 worker->most_prompt_bytes, ids, &ret_refusal->reason);
    free(turns);
    ret_refusal->error = r == -ENOMEM ? PROTO_INTERNAL : r == -E2BIG ? PROTO_TOO_LONG : PROTO_BAD_REQUEST;
    if (r != 0 && ret_refusal->reason.text[0] == 0)
        error_set(&ret_refusal->reason, 0, "the conversation could not be made a prompt");
    return r == 0;
}

static bool text_to_ids(struct worker *worker, struct bytes text, unsigned flags, struct ids *ids,
                        struct refusal *ret_refusal)
{
    int r = tokenizer_encode(worker->model->tokenizer, text, flags, ids);
    if (r == -EILSEQ)
        return refuse(ret_refusal, PROTO_BAD_REQUEST, "the text is not UTF-8");
    if (r < 0)
        return refuse(ret_refusal, PROTO_INTERNAL, "out of memory for the text");
    return true;
}

/* Appends the ids of a prompt; false with the reason. */
static bool prompt_to_ids(struct worker *worker, const struct prompt *prompt, struct ids *ids,
                          struct refusal *ret_refusal)
{
    switch (prompt->form) {
    case PROMPT_TEXT:
        if (prompt->text.len > worker->most_prompt_bytes) {
            ret_refusal->error = PROTO_TOO_LONG;
            error_set(&ret_refusal->reason, 0, "the prompt has %zu bytes, at most %zu can fit",
                      prompt->text.len, worker->most_prompt_bytes);
            return false;
        }
        if (!text_to_ids(worker, prompt->text,
                         TOKENIZER_ADD_SPECIAL | (prompt->special ? TOKENIZER_PARSE_SPECIAL : 0), ids,
                         ret_refusal))
            return false;
        break;
    case PROMPT_IDS:
        if (ids_append(ids, prompt->ids.items, prompt->ids.n) < 0)
            return refuse(ret_refusal, PROTO_INTERNAL, "out of memory for the prompt");
        break;
    case PROMPT_CHAT:
        if (!chat_to_ids(worker, prompt, ids, ret_refusal))
            return false;
        break;
    }
    return ids->len > 0 ? true : refuse(ret_refusal, PROTO_BAD_REQUEST, "the prompt is empty");
}

static struct sampling sampling_of(const struct generation *generation)
{
    return (struct sampling){.temperature = (float)generation->temperature,
                             .top_k = generation->top_k,
                             .top_p = (float)generation->top_p,
                             .min_p = (float)generation->min_p,
                             .repetition_penalty = (float)generation->repetition_penalty,
                             .seed = generation->seed};
}

/* Hands the request to the engine; false with the reason. */
static bool submit(struct worker *worker, struct request *request, const struct message *message,
                   struct refusal *ret_refusal)
{
    const struct generation *generation = &message->assign.generation;
    struct ids prompt = {0};
    uint64_t deadline_ms = message->assign.deadline_left_ms;
    if (worker->draining)
        return refuse(ret_refusal, PROTO_DRAINING, "the worker is shutting down");
    if (!prompt_to_ids(worker, &generation->prompt, &prompt, ret_refusal)) {
        ids_deinit(&prompt);
        return false;
    }
    const struct engine_request wanted = {.tag = (uint64_t)(uintptr_t)request,
                                          .prompt = prompt.data,
                                          .n_prompt = (uint32_t)prompt.len,
                                          .max_tokens = generation->max_tokens,
                                          .sampling = sampling_of(generation),
                                          .stop = generation->stop.items,
                                          .n_stop = (uint32_t)generation->stop.n,
                                          .stop_ids = generation->stop_ids.items,
                                          .n_stop_ids = (uint32_t)generation->stop_ids.n,
                                          .n_logprobs = generation->logprobs,
                                          .priority = generation->priority,
                                          .deadline_ns =
                                              deadline_ms ? clock_ns() + deadline_ms * CLOCK_NS_PER_MS : 0,
                                          .cache_salt = generation->cache_salt};
    int r = engine_submit(worker->engine, &wanted, &ret_refusal->reason);
    ids_deinit(&prompt);
    ret_refusal->error = r == ENGINE_E_INVALID    ? PROTO_BAD_REQUEST
                         : r == ENGINE_E_TOO_LONG ? PROTO_TOO_LONG
                         : r == ENGINE_E_FULL     ? PROTO_OVERLOADED
                         : r == -ENOMEM           ? PROTO_INTERNAL
                                                  : PROTO_MODEL_ERROR;
    return r == 0;
}

/* An older attempt at the same request says nothing more. */
static void mute(struct worker *worker, struct request *request)
{
    HASH_DELETE(hh, worker->requests, request);
    request->muted = true;
    if (request->is_pending)
        DL_DELETE2(worker->pending, request, prev_pending, next_pending);
    request->is_pending = false;
    engine_cancel(worker->engine, (uint64_t)(uintptr_t)request);
}

void assign_take(struct worker *worker, const struct message *message)
{
    uint8_t topic[PROTO_TOPIC_BYTES];
    struct request *request;
    memcpy(topic, &message->assign.session, sizeof(struct id128));
    memcpy(topic + sizeof(struct id128), &message->assign.id, sizeof(struct id128));
    HASH_FIND(hh, worker->requests, topic, sizeof topic, request);
    if (request && epoch_compare(message->assign.epoch, request->epoch) <= 0)
        return; /* said twice */
    if (request)
        mute(worker, request);

    request = calloc(1, sizeof *request);
    if (!request) { /* no way to keep it, but a way to say so */
        struct message answer = {.kind = MESSAGE_ERROR};
        answer.error.has_id = true;
        answer.error.id = message->assign.id;
        answer.error.error = PROTO_INTERNAL;
        answer.error.text = BYTES_LITERAL("the worker is out of memory");
        link_send(worker, &answer);
        return;
    }
    memcpy(request->topic, topic, sizeof topic);
    request->epoch = message->assign.epoch;
    request->queue_ms = (double)message->assign.queue_us / 1e3;
    HASH_ADD(hh, worker->requests, topic, sizeof request->topic, request);
    worker->n_requests++;
    struct refusal refusal = {0};
    if (!submit(worker, request, message, &refusal))
        publish_refusal(worker, request, refusal.error, refusal.reason.text);
}

void assign_tokenize(struct worker *worker, const struct message *message)
{
    struct ids ids = {0};
    struct refusal refusal = {0};
    struct message answer = {.kind = MESSAGE_TOKENIZE_OK};
    unsigned flags = TOKENIZER_ADD_SPECIAL | (message->tokenize.special ? TOKENIZER_PARSE_SPECIAL : 0);
    bool done = text_to_ids(worker, message->tokenize.text, flags, &ids, &refusal);
    if (done && ids.len > PROTO_MAX_PROMPT_IDS)
        done = refuse(&refusal, PROTO_TOO_LONG, "the text has too many tokens for one message");
    if (done) {
        answer.tokenize_ok.ref = message->tokenize.ref;
        answer.tokenize_ok.ids = (struct id_list){ids.data, ids.len};
    } else {
        answer.kind = MESSAGE_ERROR;
        answer.error.ref = message->tokenize.ref;
        answer.error.error = refusal.error;
        answer.error.text = bytes_of_string(refusal.reason.text);
    }
    link_send(worker, &answer);
    ids_deinit(&ids);
}
