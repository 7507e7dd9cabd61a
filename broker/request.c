/* SPDX-License-Identifier: MIT */
/* The ledger: which requests there are, and under whose name.
 *
 *     QUEUED ──assign──▶ RUNNING ──cancel──▶ CANCELLING
 *        │ ◀──returned────  │                    │
 *        └───────┬──────────┴────────────────────┘  its end is in the journal
 *                ▼
 *              ENDED ──60 s, or the journal needs the room──▶ forgotten
 *
 * The ledger owns every request from admission until it is forgotten. A request is in at most one list of
 * each kind: its worker's while assigned, its session's (or that of the abandoned) until it ends, the ended
 * ones' afterwards. Keys are chosen by clients, so the hash is seeded with a secret. */

#include "broker/request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

static const char *const state_names[] = {
    [REQUEST_QUEUED] = "queued",
    [REQUEST_RUNNING] = "running",
    [REQUEST_CANCELLING] = "cancelling",
    [REQUEST_ENDED] = "ended",
};

const char *request_state_name(enum request_state state)
{
    return state < REQUEST_STATE_COUNT ? state_names[state] : "unknown";
}

static unsigned key_hash(const struct ledger *ledger, const struct request_key *key)
{
    return (unsigned)hash64(key, sizeof *key, ledger->seed);
}

struct request *ledger_add(struct ledger *ledger, struct request_key key)
{
    struct request *request = calloc(1, sizeof *request);
    if (!request)
        return NULL;
    request->home = request->current = key;
    request->deadline_ns = UINT64_MAX;
    HASH_ADD_BYHASHVALUE(by_home, ledger->by_home, home, sizeof request->home, key_hash(ledger, &key),
                         request);
    ledger->n++;
    return request;
}

struct request *ledger_find_home(struct ledger *ledger, const struct request_key *key)
{
    struct request *request;
    HASH_FIND_BYHASHVALUE(by_home, ledger->by_home, key, sizeof *key, key_hash(ledger, key), request);
    return request;
}

struct request *ledger_find(struct ledger *ledger, const struct request_key *key)
{
    struct request *request = ledger_find_home(ledger, key);
    if (!request && ledger->by_current)
        HASH_FIND_BYHASHVALUE(by_current, ledger->by_current, key, sizeof *key, key_hash(ledger, key),
                              request);
    return request;
}

static bool at_home(const struct request *request)
{
    return memcmp(&request->current, &request->home, sizeof request->home) == 0;
}

int ledger_attach(struct ledger *ledger, struct request *request, struct id128 session)
{
    struct request_key key = {session, request->home.id};
    struct request *holder = ledger_find(ledger, &key);
    if (holder && holder != request)
        return -EEXIST;
    if (!at_home(request))
        HASH_DELETE(by_current, ledger->by_current, request);
    request->current = key;
    if (!at_home(request))
        HASH_ADD_BYHASHVALUE(by_current, ledger->by_current, current, sizeof key, key_hash(ledger, &key),
                             request);
    return 0;
}

void ledger_ended(struct ledger *ledger, struct request *request, uint64_t now)
{
    request->state = REQUEST_ENDED;
    request->ended_ns = now;
    buffer_deinit(&request->body);
    buffer_deinit(&request->finished_message);
    DL_APPEND2(ledger->ended, request, ended_prev, ended_next);
}

void ledger_remove(struct ledger *ledger, struct journal *journal, struct request *request)
{
    if (request->state == REQUEST_ENDED)
        DL_DELETE2(ledger->ended, request, ended_prev, ended_next);
    if (!at_home(request))
        HASH_DELETE(by_current, ledger->by_current, request);
    HASH_DELETE(by_home, ledger->by_home, request);
    ledger->n--;
    journal_release(journal, &request->log);
    buffer_deinit(&request->body);
    buffer_deinit(&request->finished_message);
    buffer_deinit(&request->end_message);
    free(request);
}

void ledger_make_room(struct ledger *ledger, struct journal *journal, uint64_t bytes)
{
    while (ledger->ended && !journal_has_room(journal, bytes))
        ledger_remove(ledger, journal, ledger->ended);
}

bool request_same_body(const struct request *request, const void *body, size_t len)
{
    struct hash128 hash = hash128(body, len, 0);
    if (hash.low != request->body_hash.low || hash.high != request->body_hash.high)
        return false;
    /* Without the body, after the end, the hash alone decides: a client could only deceive itself. */
    return request->state == REQUEST_ENDED ||
           bytes_equal((struct bytes){body, len}, (struct bytes){request->body.data, request->body.len});
}

uint64_t request_overhead(void)
{
    /* The struct, its share of the hash table's buckets, the buffer of its end message. */
    return sizeof(struct request) + 64 + 512;
}
