/* SPDX-License-Identifier: MIT */
/* Questions without an answer.
 *
 * The broker knows no tokenizer: it passes texts and ids on under a ref of its own, and the answer back under
 * the client's. A small fixed table; a question leaves it by its answer, by time, or with its worker. */

#include "broker/core/tokenize_table.h"

#include <errno.h>
#include <string.h>

#include "broker/choose/share.h"
#include "common/clock.h"

#include <utlist.h>

struct tokenize_had tokenize_table_had(const struct tokenize_table *table, const struct id128 *client)
{
    struct tokenize_had had = {0};
    for (size_t i = 0; i < TOKENIZE_TABLE_MAX; i++) {
        const struct tokenize_question *question = &table->questions[i];
        if (!question->used || memcmp(&question->client, client, sizeof *client) != 0)
            continue;
        had.questions++;
        had.bytes += question->message.len;
    }
    return had;
}

/* Room for one more of the client, of so many bytes; NULL when it may have none. */
static struct tokenize_question *find_room(struct tokenize_table *table, const struct id128 *client,
                                           size_t bytes)
{
    struct tokenize_had had = tokenize_table_had(table, client);
    if (!share_allows(had.questions, 1, TOKENIZE_TABLE_MAX - table->n) ||
        !share_allows(had.bytes, bytes, TOKENIZE_TABLE_MAX_BYTES - table->waiting_bytes))
        return NULL;
    size_t i = 0;
    while (table->questions[i].used) /* one is free, or nobody could have more */
        i++;
    return &table->questions[i];
}

static void enter(struct tokenize_table *table, struct tokenize_question *question,
                  const struct tokenize_question *asked, uint32_t worker, uint64_t now)
{
    *question = (struct tokenize_question){.used = true,
                                           .ref = ++table->next_ref,
                                           .kind = asked->kind,
                                           .client_ref = asked->client_ref,
                                           .session = asked->session,
                                           .client = asked->client,
                                           .key = asked->key,
                                           .worker = worker,
                                           .until = now + TOKENIZE_TIMEOUT_MS * CLOCK_NS_PER_MS};
    table->n++;
}

int tokenize_table_add(struct tokenize_table *table, const struct tokenize_question *asked, uint32_t worker,
                       uint64_t now, uint64_t *ret_ref)
{
    struct tokenize_question *question = find_room(table, &asked->client, 0);
    if (!question)
        return TOKENIZE_E_FULL;
    enter(table, question, asked, worker, now);
    *ret_ref = question->ref;
    return 0;
}

int tokenize_table_keep(struct tokenize_table *table, const struct tokenize_question *asked,
                        struct bytes message, struct bytes model, uint64_t now)
{
    struct buffer copy = {0};
    struct tokenize_question *question = find_room(table, &asked->client, message.len);
    if (!question)
        return TOKENIZE_E_FULL;
    int r = buffer_append(&copy, message.data, message.len);
    if (r < 0)
        return r;
    enter(table, question, asked, TOKENIZE_NO_WORKER, now);
    question->message = copy;
    if (model.len > 0) {
        size_t at = (size_t)((const uint8_t *)model.data - (const uint8_t *)message.data);
        question->model = (struct bytes){copy.data + at, model.len};
    }
    table->waiting_bytes += copy.len;
    DL_APPEND(table->waiting, question);
    return 0;
}

struct buffer tokenize_table_asked(struct tokenize_table *table, struct tokenize_question *question,
                                   uint32_t worker)
{
    struct buffer message = question->message;
    if (question->worker == TOKENIZE_NO_WORKER)
        DL_DELETE(table->waiting, question);
    question->next = question->prev = NULL;
    table->waiting_bytes -= message.len;
    question->message = (struct buffer){0};
    question->model = (struct bytes){0};
    question->worker = worker;
    return message;
}

static void take(struct tokenize_table *table, struct tokenize_question *question,
                 struct tokenize_question *ret_question)
{
    struct buffer message = tokenize_table_asked(table, question, question->worker);
    buffer_deinit(&message);
    *ret_question = *question;
    question->used = false;
    table->n--;
}

bool tokenize_table_take(struct tokenize_table *table, uint64_t ref, uint32_t worker,
                         struct tokenize_question *ret_question)
{
    for (size_t i = 0; i < TOKENIZE_TABLE_MAX && table->n > 0; i++) {
        struct tokenize_question *question = &table->questions[i];
        if (!question->used || question->ref != ref || question->worker != worker)
            continue;
        take(table, question, ret_question);
        return true;
    }
    return false;
}

bool tokenize_table_expire(struct tokenize_table *table, uint64_t now, int lost_worker,
                           struct tokenize_question *ret_question)
{
    for (size_t i = 0; i < TOKENIZE_TABLE_MAX && table->n > 0; i++) {
        struct tokenize_question *question = &table->questions[i];
        bool lost = lost_worker >= 0 && question->worker == (uint32_t)lost_worker;
        if (!question->used || (question->until > now && !lost))
            continue;
        take(table, question, ret_question);
        return true;
    }
    return false;
}

void tokenize_table_deinit(struct tokenize_table *table)
{
    struct tokenize_question question;
    while (tokenize_table_expire(table, UINT64_MAX, -1, &question))
        ;
}
