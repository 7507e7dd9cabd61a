/* SPDX-License-Identifier: MIT */
/* From the vault back to the books.
 *
 *     record ──its end is in its log──────────▶ ended: kept for replays for as long as it would have been
 *        ├──a worker holds it─────────────────▶ running there, under the same epoch: nothing is computed
 * again └──nobody does───────────────────────▶ queued, under an epoch of this broker
 *
 * A worker that holds requests registers again, sends once more the frames that were not acknowledged, and is
 * then told again what it should have (frames_settle); one that died meanwhile is heard of like any other
 * death. Sessions come back by their clients' hello; until then their requests are abandoned, for the grace
 * that silent clients have.
 *
 * Each step counts as a turn of the loop: however much there is, the supervisor sees that it goes on.
 *
 * What is damaged is not believed: a vault is emptied (vault.h), a record is dropped, a log is cut off before
 * its first bad frame, and its request goes on from there under a new epoch. */

#include "broker/core/recover.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "broker/core/lifecycle.h"
#include "broker/core/lifecycle_admit.h"
#include "broker/books/record.h"
#include "common/amount.h"
#include "common/log.h"

struct found { /* a block of the vault */
    void *block;
    size_t size;
    uint64_t owner;
    uint32_t index; /* chunks: in the log */
};

struct finds {
    struct found *items;
    size_t n, cap;
};

struct recovery {
    struct finds records, chunks;
    size_t next_chunk; /* of the sorted ones: the first whose record has not come */
    size_t damaged, running, queued, ended;
};

static int add_find(struct finds *finds, struct found found)
{
    if (finds->n == finds->cap) {
        size_t cap = finds->cap ? finds->cap * 2 : 256;
        struct found *items = reallocarray(finds->items, cap, sizeof *items);
        if (!items)
            return -ENOMEM;
        finds->items = items;
        finds->cap = cap;
    }
    finds->items[finds->n++] = found;
    return 0;
}

static int by_owner(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    if (x->owner != y->owner)
        return x->owner < y->owner ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* Sorts the blocks into records and parts of logs, each in the order of admission. */
static int take_stock(struct broker *broker, struct recovery *recovery)
{
    struct vault *vault = broker->journal.vault;
    size_t size = 0, next_size = 0;
    int r = 0;
    for (void *block = vault_next(vault, NULL, &size), *next; block && r == 0; block = next) {
        struct found found = {.block = block, .size = size};
        supervisor_turn(&broker->supervisor);
        next = vault_next(vault, block, &next_size);
        size = next_size;
        if (record_is_one(block, found.size, &found.owner)) {
            r = add_find(&recovery->records, found);
        } else if ((r = rates_restore(&broker->rates, block, found.size, broker->now)) != 0) {
            r = r < 0 ? r : 0;
        } else if (journal_is_chunk(block, found.size, &found.owner, &found.index)) {
            r = add_find(&recovery->chunks, found);
        } else {
            vault_give(vault, block);
            recovery->damaged++;
        }
    }
    if (recovery->records.n > 0)
        qsort(recovery->records.items, recovery->records.n, sizeof(struct found), by_owner);
    if (recovery->chunks.n > 0)
        qsort(recovery->chunks.items, recovery->chunks.n, sizeof(struct found), by_owner);
    return r;
}

/* Hangs the request's frames in; of those without a request nothing is left. False when some were damaged. */
static bool restore_log(struct broker *broker, struct recovery *recovery, struct journal_log *log)
{
    bool whole = true;
    for (; recovery->next_chunk < recovery->chunks.n; recovery->next_chunk++) {
        const struct found *chunk = &recovery->chunks.items[recovery->next_chunk];
        if (chunk->owner > log->owner)
            break;
        bool of_this = chunk->owner == log->owner;
        if (of_this && whole && chunk->index == log->n_chunks) {
            whole = journal_restore(&broker->journal, log, chunk->block, chunk->size);
            continue;
        }
        whole &= !of_this;
        vault_give(broker->journal.vault, chunk->block);
    }
    return whole;
}

/* The end of the request: 1, or 0 when its log has none. -ENOMEM. */
static int find_end(struct broker *broker, const struct request *request, struct ending *ret_ending)
{
    struct message message;
    struct bytes last = journal_last(&request->log);
    if (last.len == 0)
        return 0;
    int r = message_decode(broker->frame_decoder, last.data, last.len, &message, NULL);
    if (r < 0)
        return r;
    if (r > 0 || message.kind != MESSAGE_FRAME || !message.frame.has_end)
        return 0;
    *ret_ending = message.frame.end;
    return 1;
}

/* True when it is with a worker, which is taken to live. */
static bool give_to_holder(struct broker *broker, struct request *request, struct record_holder holder)
{
    if (holder.incarnation == 0 || holder.index >= broker->n_workers)
        return false;
    struct worker *worker = &broker->workers[holder.index];
    if (worker->incarnation != 0 && worker->incarnation != holder.incarnation)
        return false;
    if (worker->incarnation == 0)
        supervisor_expect(&broker->supervisor, holder.index, holder.incarnation);
    worker->incarnation = holder.incarnation;
    request->prefill = request->prompt_tokens;
    request->queued_kind = request_kind(request);
    routing_assigned(&broker->routing, request, worker);
    if (journal_made(&request->log) > 0)
        routing_prefilled(&broker->routing, request);
    return true;
}

static int queue_again(struct broker *broker, struct request *request)
{
    request->epoch.boot = broker->supervisor.boot;
    record_moved(request);
    lifecycle_stay(broker, request);
    int r = queue_push(&broker->queue, request);
    if (r < 0)
        return r;
    request->state = REQUEST_QUEUED;
    admission_queued(&broker->admission, request);
    return 0;
}

/* What it has had was counted. */
static void enter_rates_again(struct broker *broker, struct request *request, struct bytes tenant)
{
    const struct rate_key key = rate_key_of(tenant, request->keyed ? &request->client : NULL);
    request->rate = rates_enter_again(&broker->rates, &key);
}

/* A request that has not ended goes on. */
static int go_on(struct broker *broker, struct recovery *recovery, struct request *request,
                 const struct restored *restored)
{
    bool cancelled = request->state == REQUEST_CANCELLING;
    uint64_t grace = SESSION_GRACE_MS * CLOCK_NS_PER_MS;
    struct message asked;
    if (message_decode(broker->request_decoder, request->body.data, request->body.len, &asked, NULL) == 0) {
        request->embed = asked.generate.generation.embed;
        request->pair = asked.generate.generation.prompt.has_document;
        request->name = asked.generate.generation.request_id; /* in the body, which stays */
        if (rates_any(&asked.generate.generation.rates))
            enter_rates_again(broker, request, asked.generate.generation.tenant);
        request->tenancy = tenancy_of(asked.generate.generation.tenant, request_client(request),
                                      restored->stands_alone, broker->secret);
        char space[PROTO_MAX_SPACE_BYTES + 1];
        request_set_cache_space(request, broker->options.share_prefixes, space, &asked.generate.generation);
        routing_admit(&broker->routing, request, &asked.generate.generation);
        lifecycle_plan(broker, request, &asked.generate.generation);
    } else {
        growth_plan(request, restored->most, journal_token_bytes(0, false));
    }
    int r = admission_entered(&broker->admission, request);
    if (r == 0 && restored->credit > 0) {
        request->growth.most = restored->most; /* as it was: its worker goes by that */
        r = growth_restore(&broker->growth, request, restored->credit);
    }
    if (r < 0)
        return r;
    session_abandon(&broker->sessions, request,
                    broker->now + (request->keep_ns > grace ? request->keep_ns : grace));
    if (give_to_holder(broker, request, restored->holder)) {
        request->state = cancelled ? REQUEST_CANCELLING : REQUEST_RUNNING;
        request->cancelled_ns = broker->now;
        recovery->running++;
        return 0;
    }
    if (cancelled) {
        lifecycle_end_here(broker, request, &(struct ending){.reason = END_CANCELLED});
        return 0;
    }
    recovery->queued++;
    return queue_again(broker, request);
}

/* For whom it counts again: its key, if that was not taken away meanwhile; else its session. */
static void restore_client(const struct broker *broker, struct request *request,
                           const struct restored *restored)
{
    const struct client_key *key =
        restored->has_client_key ? client_keys_find(&broker->client_keys, restored->client_key) : NULL;
    if (!key)
        return;
    request->key = key->number;
}

static int restore(struct broker *broker, struct recovery *recovery, const struct found *record)
{
    struct request_key key = record_key(record->block);
    struct restored restored;
    supervisor_turn(&broker->supervisor);
    struct ending ending;
    const struct request *twin = ledger_find(&broker->ledger, &key);
    if (twin) { /* of one admission, caught on the move to a small block (record_ended) */
        vault_give(broker->journal.vault, record->block);
        recovery->damaged += twin->log.owner != record->owner;
        return 0;
    }
    struct request *request = ledger_add(&broker->ledger, key);
    if (!request) /* its record stays, for a broker that has the memory */
        return -ENOMEM;
    record_restore(request, record->block, &restored);
    restore_client(broker, request, &restored);
    bool flagged = request->state == REQUEST_ENDED;
    if (record->owner > broker->ledger.owners)
        broker->ledger.owners = record->owner;
    journal_reserve(&broker->journal, &request->log, flagged ? request_overhead() : restored.reserved);
    bool whole = restore_log(broker, recovery, &request->log);
    recovery->damaged += !whole;
    ledger_attach(&broker->ledger, request, restored.session);
    broker->counters.admitted++;
    broker->counters.moved += request->epoch.move;
    broker->counters.tokens += journal_made(&request->log);
    int r = find_end(broker, request, &ending);
    if (r < 0)
        return r;
    if (r > 0) {
        if (request->ended_ns == 0)
            request->ended_ns = broker->now;
        request->state = REQUEST_QUEUED; /* until it is in the list of the others */
        lifecycle_had_ended(broker, request, &ending, restored.taken);
        broker->counters.ended++;
        recovery->ended++;
        return 0;
    }
    if (flagged) { /* nothing could be said of its end any more */
        request->state = REQUEST_QUEUED;
        ledger_remove(&broker->ledger, &broker->journal, request);
        return 0;
    }
    if (!whole)
        restored.holder.incarnation = 0;
    return go_on(broker, recovery, request, &restored);
}

/* Where no option says so, the journal's limit follows from the workers (growth_follow), who have yet to
 * come: until then what the previous broker kept has all the room that there may be. */
static uint64_t limit_for_old(const struct broker *broker)
{
    const uint64_t room = journal_limit_in(vault_bytes(broker->journal.vault)), limit = broker->journal.limit;
    return broker->options.journal == 0 && room > limit ? room : limit;
}

int recover(struct broker *broker, struct error *err)
{
    struct recovery recovery = {0};
    if (vault_was_damaged(broker->journal.vault))
        log_error("the previous broker's state is damaged: its requests are lost");
    int r = take_stock(broker, &recovery);
    if (recovery.records.n > 0)
        broker->journal.limit = limit_for_old(broker);
    for (size_t i = 0; i < recovery.records.n && r == 0; i++)
        r = restore(broker, &recovery, &recovery.records.items[i]);
    for (size_t i = recovery.next_chunk; i < recovery.chunks.n && r == 0; i++)
        vault_give(broker->journal.vault, recovery.chunks.items[i].block);
    if (recovery.records.n > 0 || recovery.damaged > 0)
        log_info("took over the previous broker's requests: %zu running, %zu waiting, %zu ended",
                 recovery.running, recovery.queued, recovery.ended);
    if (recovery.damaged > 0)
        log_error("%s of its state %s damaged and dropped", amount_of(recovery.damaged, "part").text,
                  recovery.damaged == 1 ? "was" : "were");
    free(recovery.records.items);
    free(recovery.chunks.items);
    return r < 0 ? error_set(err, r, "the previous broker's state: out of memory") : 0;
}
