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

#include "broker/books/ledger.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "broker/books/record.h"

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
    request->log.owner = ++ledger->owners;
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

/* ---- ended requests ---- */

static struct kept *kept_of(const struct heap_node *node)
{
    return HEAP_ITEM(node, struct kept, node);
}

static bool keeps_more(const struct heap_node *a, const struct heap_node *b)
{
    return kept_of(a)->bytes > kept_of(b)->bytes;
}

static unsigned session_hash(const struct ledger *ledger, const struct id128 *session)
{
    return (unsigned)hash64(session, sizeof *session, ledger->seed);
}

static struct kept *find_kept(const struct ledger *ledger, const struct id128 *session)
{
    struct kept *kept;
    HASH_FIND_BYHASHVALUE(hh, ledger->kept, session, sizeof *session, session_hash(ledger, session), kept);
    return kept;
}

/* What the session has that asked first, made if need be; NULL when out of memory. */
static struct kept *kept_for(struct ledger *ledger, const struct id128 *session)
{
    struct kept *kept = find_kept(ledger, session);
    if (kept || !(kept = calloc(1, sizeof *kept)))
        return kept;
    kept->session = *session;
    ledger->most_kept.before = keeps_more;
    if (heap_push(&ledger->most_kept, &kept->node) < 0) {
        free(kept);
        return NULL;
    }
    HASH_ADD_BYHASHVALUE(hh, ledger->kept, session, sizeof kept->session, session_hash(ledger, session),
                         kept);
    return kept;
}

static void keep(struct ledger *ledger, struct request *request)
{
    struct kept *kept = kept_for(ledger, &request->home.session);
    request->kept = kept;
    if (!kept)
        return;
    DL_APPEND2(kept->requests, request, kept_prev, kept_next);
    kept->bytes += journal_charge(&request->log);
    heap_settle(&ledger->most_kept, &kept->node);
}

static void keep_no_more(struct ledger *ledger, struct request *request)
{
    struct kept *kept = request->kept;
    if (!request->log.unread)
        DL_DELETE2(ledger->read, request, kept_prev, kept_next);
    request->kept = NULL;
    if (!kept)
        return;
    DL_DELETE2(kept->requests, request, kept_prev, kept_next);
    kept->bytes -= journal_charge(&request->log);
    if (kept->requests) {
        heap_settle(&ledger->most_kept, &kept->node);
        return;
    }
    heap_remove(&ledger->most_kept, &kept->node);
    HASH_DEL(ledger->kept, kept);
    free(kept);
    if (ledger->most_kept.n == 0)
        heap_deinit(&ledger->most_kept);
}

static uint64_t retention(const struct ledger *ledger)
{
    return ledger->retention_ns ? ledger->retention_ns : LEDGER_RETENTION_NS;
}

void ledger_ended(struct ledger *ledger, struct journal *journal, struct request *request, uint64_t now)
{
    request->state = REQUEST_ENDED;
    request->ended_ns = now;
    ledger_asked(ledger, request, now);
    if (request->on_disconnect == DISCONNECT_KEEP && request->keep_ns > retention(ledger))
        request->kept_until = now + request->keep_ns;
    record_ended(journal->vault, request);
    buffer_deinit(&request->finished_message);
    free(request->pieces);
    request->pieces = NULL;
    journal_settle(journal, &request->log, request_overhead());
    DL_APPEND2(ledger->ended, request, ended_prev, ended_next);
    keep(ledger, request);
}

void ledger_remove(struct ledger *ledger, struct journal *journal, struct request *request)
{
    if (request->state == REQUEST_ENDED) {
        DL_DELETE2(ledger->ended, request, ended_prev, ended_next);
        keep_no_more(ledger, request);
    }
    if (!at_home(request))
        HASH_DELETE(by_current, ledger->by_current, request);
    HASH_DELETE(by_home, ledger->by_home, request);
    ledger->n--;
    record_forget(journal->vault, request); /* first: frames without a record are nobody's */
    journal_release(journal, &request->log);
    buffer_deinit(&request->finished_message);
    buffer_deinit(&request->end_message);
    free(request->pieces);
    free(request);
}

void ledger_asked(const struct ledger *ledger, struct request *request, uint64_t now)
{
    if (request->kept_until < now + retention(ledger))
        request->kept_until = now + retention(ledger);
}

/* In the order of their ends; what is kept for longer goes behind the others, and is looked at again then. */
void ledger_forget(struct ledger *ledger, struct journal *journal, uint64_t now)
{
    struct request *request;
    while ((request = ledger->ended) && now - request->ended_ns >= retention(ledger)) {
        if (request->kept_until <= now) {
            ledger_remove(ledger, journal, request);
            continue;
        }
        DL_DELETE2(ledger->ended, request, ended_prev, ended_next);
        request->ended_ns = now;
        DL_APPEND2(ledger->ended, request, ended_prev, ended_next);
    }
}

void ledger_taken(struct ledger *ledger, struct journal *journal, struct request *request)
{
    if (request->state != REQUEST_ENDED || !request->log.unread)
        return;
    keep_no_more(ledger, request);
    journal_taken(journal, &request->log);
    record_taken(request);
    DL_APPEND2(ledger->read, request, kept_prev, kept_next);
}

void ledger_taken_by(struct ledger *ledger, struct journal *journal, const struct id128 *session)
{
    struct request *request, *next;
    struct kept *kept = find_kept(ledger, session);
    DL_FOREACH_SAFE2(kept ? kept->requests : NULL, request, next, kept_next)
    {
        if (at_home(request))
            ledger_taken(ledger, journal, request);
    }
}

/* What is to be forgotten first; NULL when nothing may be. */
static struct request *next_to_forget(const struct ledger *ledger, bool unread_too)
{
    const struct heap_node *most = heap_first(&ledger->most_kept);
    if (ledger->read || !unread_too)
        return ledger->read;
    return most ? kept_of(most)->requests : ledger->ended;
}

void ledger_make_room(struct ledger *ledger, struct journal *journal, uint64_t bytes, bool needs)
{
    struct request *request;
    while (!journal_has_room(journal, bytes) &&
           (request = next_to_forget(ledger, needs || journal_may_drop_unread(journal))))
        ledger_remove(ledger, journal, request);
}
