/* SPDX-License-Identifier: MIT */
/* Questions under way to a worker.
 *
 * The broker knows no tokenizer: it passes the text on under a ref of its own and passes the answer back
 * under the client's. A small fixed table; a question leaves it by its answer, by time, or with its worker.
 */

#include "broker/tokenize.h"

#include "common/clock.h"

bool tokenize_add(struct tokenize *tokenize, struct id128 session, uint64_t client_ref, uint32_t worker,
                  uint64_t now, uint64_t *ret_ref)
{
    for (size_t i = 0; i < TOKENIZE_MAX && tokenize->n < TOKENIZE_MAX; i++) {
        struct tokenize_entry *entry = &tokenize->entries[i];
        if (entry->used)
            continue;
        *entry = (struct tokenize_entry){.used = true,
                                         .ref = ++tokenize->next_ref,
                                         .client_ref = client_ref,
                                         .session = session,
                                         .worker = worker,
                                         .until = now + TOKENIZE_TIMEOUT_MS * CLOCK_NS_PER_MS};
        tokenize->n++;
        *ret_ref = entry->ref;
        return true;
    }
    return false;
}

static void take(struct tokenize *tokenize, struct tokenize_entry *entry, struct tokenize_entry *ret_entry)
{
    *ret_entry = *entry;
    entry->used = false;
    tokenize->n--;
}

bool tokenize_take(struct tokenize *tokenize, uint64_t ref, uint32_t worker, struct tokenize_entry *ret_entry)
{
    for (size_t i = 0; i < TOKENIZE_MAX && tokenize->n > 0; i++) {
        struct tokenize_entry *entry = &tokenize->entries[i];
        if (!entry->used || entry->ref != ref || entry->worker != worker)
            continue;
        take(tokenize, entry, ret_entry);
        return true;
    }
    return false;
}

bool tokenize_expire(struct tokenize *tokenize, uint64_t now, int lost_worker,
                     struct tokenize_entry *ret_entry)
{
    for (size_t i = 0; i < TOKENIZE_MAX && tokenize->n > 0; i++) {
        struct tokenize_entry *entry = &tokenize->entries[i];
        if (!entry->used || (entry->until > now && (int)entry->worker != lost_worker))
            continue;
        take(tokenize, entry, ret_entry);
        return true;
    }
    return false;
}
