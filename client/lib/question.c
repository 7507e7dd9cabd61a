/* SPDX-License-Identifier: MIT */
/* Status and tokenize: a question with a reference, waited for.
 *
 * One question at a time. It is asked again every second until its answer comes: that costs nothing, and a
 * broker that restarts in between is met in stride. The answer is copied out of the message into memory that
 * the client owns until the next question. */

#include "client/lib/client.h"

#include <errno.h>
#include <stdlib.h>

/* Copies a text into `*memory` (which is large enough), zero-terminated. */
static const char *keep(char **memory, struct bytes text)
{
    char *kept = *memory;
    if (text.len > 0)
        memcpy(kept, text.data, text.len);
    kept[text.len] = 0;
    *memory += text.len + 1;
    return kept;
}

static void keep_status(struct quern *client, const struct message *message)
{
    size_t n = message->status_ok.workers.n, bytes = message->status_ok.version.len + 1;
    const struct worker_status *from = message->status_ok.workers.items;
    for (size_t i = 0; i < n; i++)
        bytes += from[i].name.len + from[i].device.len + from[i].model.len + from[i].reason.len + 4;
    char *memory = malloc(n * sizeof(struct quern_worker) + bytes);
    if (!memory)
        return; /* asked again */
    free(client->status_memory);
    client->status_memory = memory;
    struct quern_worker *workers = (struct quern_worker *)(void *)memory;
    char *texts = memory + n * sizeof *workers;
    for (size_t i = 0; i < n; i++)
        workers[i] = (struct quern_worker){
            .name = keep(&texts, from[i].name),
            .device = keep(&texts, from[i].device),
            .model = keep(&texts, from[i].model),
            .state = worker_state_name(from[i].state),
            .pid = from[i].pid,
            .incarnation = from[i].incarnation,
            .restarts = from[i].restarts,
            .active = from[i].active,
            .waiting = from[i].waiting,
            .slots = from[i].slots,
            .kv_free = from[i].kv_free,
            .kv_total = from[i].kv_total,
            .steps = from[i].steps,
            .tokens = from[i].tokens,
            .cache_hits = from[i].cache_hits,
            .tokens_per_s = from[i].tokens_per_s,
            .reason = keep(&texts, from[i].reason),
        };
    client->status = (struct quern_status){
        .boot = message->status_ok.boot,
        .draining = message->status_ok.draining,
        .version = keep(&texts, message->status_ok.version),
        .sessions = message->status_ok.sessions,
        .queued = message->status_ok.queued,
        .running = message->status_ok.running,
        .admitted = message->status_ok.admitted,
        .ended = message->status_ok.ended,
        .rejected = message->status_ok.rejected,
        .tokens = message->status_ok.tokens,
        .journal_bytes = message->status_ok.journal_bytes,
        .workers = workers,
        .n_workers = n,
    };
    client->question.answered = true;
}

void question_answer(struct quern *client, const struct message *message)
{
    struct question *question = &client->question;
    if (question->ref == 0)
        return;
    if (message->kind == MESSAGE_STATUS_OK && message->status_ok.ref == question->ref) {
        keep_status(client, message);
    } else if (message->kind == MESSAGE_TOKENIZE_OK && message->tokenize_ok.ref == question->ref) {
        client->tokens.len = 0;
        question->answered =
            ids_append(&client->tokens, message->tokenize_ok.ids.items, message->tokenize_ok.ids.n) == 0;
    } else if (message->kind == MESSAGE_ERROR && message->error.ref == question->ref) {
        question->code = -EREMOTEIO;
        error_set(&question->err, 0, "%s: %.*s", proto_error_name(message->error.error),
                  (int)message->error.text.len, (const char *)message->error.text.data);
        question->answered = true;
    }
}

/* Sends the message, and again, until the answer to `ref` is there. */
static int ask(struct quern *client, const struct message *message, uint64_t ref, int timeout_ms,
               struct quern_error *ret_err)
{
    client->question = (struct question){.ref = ref};
    uint64_t start = clock_ns(), sent = 0;
    int r = 0;
    while (r >= 0 && !client->question.answered) {
        uint64_t now = clock_ns();
        struct error err = {0};
        if (now - start >= (uint64_t)timeout_ms * CLOCK_NS_PER_MS) {
            error_set(&err, 0, "the broker at %s did not answer within %d ms", client->endpoint, timeout_ms);
            r = client_say(ret_err, -ETIMEDOUT, &err);
            break;
        }
        if (client->state == SESSION_OPEN && now - sent >= SILENCE_NS) {
            r = session_send(client, message, &err);
            sent = now;
            if (r < 0 && r != -EAGAIN) {
                client_say(ret_err, r, &err);
                break;
            }
        }
        r = quern_dispatch(client, 20, ret_err);
    }
    if (client->question.answered)
        r = client->question.code < 0 ? client_say(ret_err, client->question.code, &client->question.err) : 0;
    client->question = (struct question){0};
    return r;
}

int quern_status(struct quern *client, int timeout_ms, const struct quern_status **ret_status,
                 struct quern_error *err)
{
    struct message message = {.kind = MESSAGE_STATUS};
    message.status.ref = ++client->last_ref;
    int r = ask(client, &message, message.status.ref, timeout_ms, err);
    if (r == 0)
        *ret_status = &client->status;
    return r;
}

int quern_tokenize(struct quern *client, const char *model, const char *text, size_t text_len, bool special,
                   int timeout_ms, const int32_t **ret_ids, size_t *ret_n, struct quern_error *err)
{
    struct message message = {.kind = MESSAGE_TOKENIZE};
    message.tokenize.ref = ++client->last_ref;
    message.tokenize.model = bytes_of_string(model ? model : "");
    message.tokenize.text = (struct bytes){text, text_len};
    message.tokenize.special = special;
    int r = ask(client, &message, message.tokenize.ref, timeout_ms, err);
    if (r == 0) {
        *ret_ids = client->tokens.data;
        *ret_n = client->tokens.len;
    }
    return r;
}
