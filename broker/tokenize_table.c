/* SPDX-License-Identifier: MIT */
/* Questions under way to a worker.
 *
 * The broker knows no tokenizer: it passes the text on under a ref of its own and passes the answer back
 * under the client's. A small fixed table; a question leaves it by its answer, by time, or with its worker.
 */

#include "broker/tokenize_table.h"

#include "common/clock.h"

bool tokenize_table_add(struct tokenize_table *table, struct id128 session, uint64_t client_ref,
                        uint32_t worker, uint64_t now, uint64_t *ret_ref)
{
    for (size_t i = 0; i < TOKENIZE_TABLE_MAX && table->n < TOKENIZE_TABLE_MAX; i++) {
        struct tokenize_question *question = &table->questions[i];
        if (question->used)
            continue;
        *question = (struct tokenize_question){.used = true,
                                               .ref = ++table->next_ref,
                                               .client_ref = client_ref,
                                               .session = session,
                                               .worker = worker,
                                               .until = now + TOKENIZE_TIMEOUT_MS * CLOCK_NS_PER_MS};
        table->n++;
        *ret_ref = question->ref;
        return true;
    }
    return false;
}

static void take(struct tokenize_table *table, struct tokenize_question *question,
                 struct tokenize_question *ret_question)
{
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
        if (!question->used || (question->until > now && (int)question->worker != lost_worker))
            continue;
        take(table, question, ret_question);
        return true;
    }
    return false;
}
