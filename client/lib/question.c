/* SPDX-License-Identifier: MIT */
/* The answer to a question (status, tokenize) that is waited for: one at a time, known by its reference.
 *
 * It is copied out of the message into memory that the client owns until the next question. Texts are made
 * fit for a terminal on the way: where they come from anybody may write them. */

#include "client/lib/question.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"

/* Copies a text into `*memory` (which is large enough), zero-terminated. */
static const char *keep(char **memory, struct bytes text)
{
    char *kept = utf8_printable(text, text.len + 1, *memory);
    *memory += text.len + 1;
    return kept;
}

/* How a value of the message becomes one of the public struct, and what room it takes in memory for texts. */
#define KEEP_NAME(value)      keep(&texts, value)
#define KEEP_NAME_OR_0(value) keep(&texts, value)
#define KEEP_TEXT_OR_0(value) keep(&texts, value)
#define KEEP_STATE(value)     worker_state_name(value)
#define KEEP_FLAG(value)      (value)
#define KEEP_U32_OR_0(value)  (value)
#define KEEP_U64(value)       (value)
#define KEEP_U64_OR_0(value)  (value)
#define KEEP_REAL(value)      (value)
#define ROOM_OF(value)        _Generic((value), struct bytes : room_of_text(&(value)), default : 0)

static size_t room_of_text(const void *text)
{
    return ((const struct bytes *)text)->len + 1;
}

static size_t room_of_worker(const struct worker_status *from)
{
    size_t room = 0;
#define ADD_ROOM(type, name) room += ROOM_OF(from->name);
    WORKER_STATUS_FIELDS(ADD_ROOM)
    return room;
}

static void keep_status(struct quern *client, const struct message *message)
{
    size_t n = message->status_ok.workers.n, room = message->status_ok.version.len + 1;
    const struct worker_status *from = message->status_ok.workers.items;
    for (size_t i = 0; i < n; i++)
        room += room_of_worker(&from[i]);
    char *memory = calloc(1, n * sizeof(struct quern_worker) + room);
    if (!memory)
        return; /* asked again */
    free(client->status_memory);
    client->status_memory = memory;
    struct quern_worker *workers = (struct quern_worker *)(void *)memory;
    char *texts = memory + n * sizeof *workers;
#define KEEP_OF_WORKER(type, name) workers[i].name = KEEP_##type(from[i].name);
    for (size_t i = 0; i < n; i++) {
        WORKER_STATUS_FIELDS(KEEP_OF_WORKER)
    }
#define KEEP_OF_POOL(type, name) client->status.name = KEEP_##type(message->status_ok.name);
    POOL_STATUS_FIELDS(KEEP_OF_POOL)
    client->status.workers = workers;
    client->status.n_workers = n;
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
        char reason[PROTO_MAX_TEXT_BYTES + 1];
        question->code = -EREMOTEIO;
        error_set(&question->err, 0, "%s: %s", proto_error_name(message->error.error),
                  utf8_printable(message->error.text, sizeof reason, reason));
        question->answered = true;
    }
}
