/* SPDX-License-Identifier: MIT */
/* Admission: bounds, the estimate behind retry_after_ms, and what is fixed at the door.
 *
 * A client that leaves fields out gets the defaults that the decoder fills in, and the seed drawn here: from
 * now on the request is complete, and whichever worker runs it runs the same one. The rate of endings is a
 * moving average of whole seconds, halved by each newer one. */

#include "broker/choose/admission.h"

#include <errno.h>

#include "common/amount.h"
#include "common/clock.h"
#include "common/hash.h"

/* A deadline further away than this is none; it keeps the sum below from wrapping. */
#define DEADLINE_MAX_MS ((uint64_t)365 * 24 * 3600 * 1000)

#define RETRY_UNKNOWN_MS 1000
#define LEAST_SPAN_NS    (CLOCK_NS_PER_S / 10) /* from which a rate is reckoned */

#define BYTES_PER_TOKEN 4 /* of a text, roughly: only to compare the load of workers */

/* A token that is made weighs less than one that is read, because it is made in a step with those of others;
 * and few requests make as many as they may. */
#define DECODE_UNSAID      256 /* where they do not say */
#define DECODE_MOST_TOKENS 1024
#define DECODE_SHARE       8

/* ---- room ---- */

/* The share of anybody without requests. */
static const struct share nothing;

/* What a party has: its client, and its tenant. */
struct holdings {
    const struct share *client, *tenant;
};

static const struct share *share_of(const struct admission *admission, const struct id128 *id)
{
    const struct share *share = share_find(&admission->shares, id);
    return share ? share : &nothing;
}

static struct holdings holdings_of(const struct admission *admission, const struct party *party)
{
    const struct tenancy *tenancy = party->tenancy;
    return (struct holdings){.client = share_of(admission, party->client),
                             .tenant = tenancy->named ? share_of(admission, &tenancy->id) : &nothing};
}

/* A claim to something that is shared. */
struct claim {
    uint64_t client_had, tenant_had; /* what the client has, its tenants included; what the tenant has */
    uint64_t more, left, limit;
    bool may_be_long; /* who has nothing may have more than a share */
};

static bool allows(const struct claim *claim, uint64_t had)
{
    return claim->may_be_long ? share_allows_first(had, claim->more, claim->left, claim->limit)
                              : share_allows(had, claim->more, claim->left);
}

/* Whose share is too small for the claim, and in *ret_had what that one has. NULL: the claim is granted. */
static const char *whose_is_full(const struct party *party, const struct claim *claim, uint64_t *ret_had)
{
    const struct tenancy *tenancy = party->tenancy;
    uint64_t others = claim->limit / SHARE_OTHERS;
    *ret_had = claim->tenant_had;
    if (tenancy->alone && !allows(claim, claim->tenant_had))
        return "tenant";
    if (tenancy->named && !tenancy->alone && claim->client_had > 0) {
        uint64_t most = share_most(claim->client_had, claim->left);
        /* Small shares: a tenant that has nothing gets at least one request. */
        if (!share_allows_first(claim->tenant_had, claim->more, most, claim->client_had + most) &&
            allows(claim, claim->client_had))
            return "tenant";
    }
    *ret_had = claim->client_had;
    if (tenancy->alone)
        return claim->client_had + claim->more > claim->limit - others ? "session" : NULL;
    return allows(claim, claim->client_had) ? NULL : "session";
}

/* A returned request is queued whatever the bound is. */
static size_t left(size_t limit, size_t used)
{
    return used < limit ? limit - used : 0;
}

static enum proto_error check_client_requests(const struct admission *admission, const struct party *party,
                                              const struct holdings *holdings, struct error *reason)
{
    const size_t most = admission->max_client_requests;
    const struct share *share = party->tenancy->alone ? holdings->tenant : holdings->client;
    if (most == 0)
        return PROTO_OK;
    if (share->requests >= most)
        return error_set(
            reason, PROTO_OVERLOADED, "this %s has %s unfinished; at most %zu are allowed (client-requests)",
            party->tenancy->alone ? "tenant" : "client", amount_of(share->requests, "request").text, most);
    if (party->tenancy->named && !party->tenancy->alone &&
        !share_allows_first(holdings->tenant->requests, 1, most - share->requests, most))
        return error_set(
            reason, PROTO_OVERLOADED,
            "this tenant has %s unfinished, of its client's %zu; the client may have %zu (client-requests)",
            amount_of(holdings->tenant->requests, "request").text, share->requests, most);
    return PROTO_OK;
}

enum proto_error admission_check_queue(const struct admission *admission, const struct party *party,
                                       size_t bytes, struct error *reason)
{
    const struct holdings holdings = holdings_of(admission, party);
    size_t requests_left = left(admission->max_queued, admission->queued);
    size_t bytes_left = left(admission->max_queued_bytes, admission->queued_bytes);
    const struct claim requests = {.client_had = holdings.client->queued,
                                   .tenant_had = holdings.tenant->queued,
                                   .more = 1,
                                   .left = requests_left,
                                   .limit = admission->max_queued};
    const struct claim message = {.client_had = holdings.client->queued_bytes,
                                  .tenant_had = holdings.tenant->queued_bytes,
                                  .more = bytes,
                                  .left = bytes_left,
                                  .limit = admission->max_queued_bytes};
    const char *whose;
    uint64_t had;
    enum proto_error no = check_client_requests(admission, party, &holdings, reason);
    if (no != PROTO_OK)
        return no;
    if (requests_left == 0 || bytes_left < bytes)
        return error_set(
            reason, PROTO_OVERLOADED, "queue full: %s of %s waiting; at most %zu of %s are allowed",
            amount_of(admission->queued, "request").text, amount_of_bytes(admission->queued_bytes).text,
            admission->max_queued, amount_of_bytes(admission->max_queued_bytes).text);
    if ((whose = whose_is_full(party, &requests, &had)))
        return error_set(
            reason, PROTO_OVERLOADED,
            "this %s's share of the queue is full: %s waiting, of %zu in all, with room for %zu more", whose,
            amount_of((size_t)had, "request").text, admission->queued, requests_left);
    if ((whose = whose_is_full(party, &message, &had)))
        return error_set(reason, PROTO_OVERLOADED,
                         "this %s's share of the queue is full: %s of prompts waiting, and %s more exceed "
                         "its share of the %s left",
                         whose, amount_of_bytes(had).text, amount_of_bytes(bytes).text,
                         amount_of_bytes(bytes_left).text);
    return PROTO_OK;
}

enum proto_error admission_check_journal(const struct admission *admission, const struct party *party,
                                         uint64_t bytes, uint64_t most, const struct journal *journal,
                                         struct error *reason)
{
    const struct holdings holdings = holdings_of(admission, party);
    const uint64_t part = journal->limit / ADMISSION_JOURNAL_PART;
    const struct claim claim = {.client_had = holdings.client->waiting_bytes,
                                .tenant_had = holdings.tenant->waiting_bytes,
                                .more = bytes,
                                .left = admission->waiting_bytes < part ? part - admission->waiting_bytes : 0,
                                .limit = part,
                                .may_be_long = true};
    const char *whose;
    uint64_t had;
    if (most > journal_most_of_one(journal))
        return error_set(
            reason, PROTO_TOO_LONG,
            "max_tokens and logprobs could take %s of the journal; at most %s are allowed for a request",
            amount_of_bytes(most).text, amount_of_bytes(journal_most_of_one(journal)).text);
    if (bytes > claim.left || !journal_could_hold(journal, bytes))
        return error_set(reason, PROTO_OVERLOADED,
                         "journal full: waiting requests use %s of their %s; with running requests and "
                         "unread answers, %s of %s are in use",
                         amount_of_bytes(admission->waiting_bytes).text, amount_of_bytes(part).text,
                         amount_of_bytes(journal->limit - journal_free(journal)).text,
                         amount_of_bytes(journal->limit).text);
    if ((whose = whose_is_full(party, &claim, &had)))
        return error_set(reason, PROTO_OVERLOADED,
                         "this %s's share of the journal is full: its waiting requests have %s, and %s more "
                         "exceed its share of the rest, %s of %s",
                         whose, amount_of_bytes(had).text, amount_of_bytes(bytes).text,
                         amount_of_bytes(claim.left).text, amount_of_bytes(part).text);
    return PROTO_OK;
}

bool admission_may_grow(const struct admission *admission, const struct request *request, uint64_t bytes,
                        uint64_t free)
{
    const struct party party = request_party(request);
    const struct holdings holdings = holdings_of(admission, &party);
    const struct claim claim = {.client_had = holdings.client->journal_bytes,
                                .tenant_had = holdings.tenant->journal_bytes,
                                .more = bytes,
                                .left = free,
                                .limit = free + holdings.client->journal_bytes};
    uint64_t had;
    return !whose_is_full(&party, &claim, &had);
}

void admission_grows(struct request *request, int64_t bytes)
{
    if (request->share)
        request->share->journal_bytes += (uint64_t)bytes;
    if (request->tenant_share)
        request->tenant_share->journal_bytes += (uint64_t)bytes;
}

int admission_entered(struct admission *admission, struct request *request)
{
    const struct party party = request_party(request);
    request->share = share_take(&admission->shares, party.client);
    if (!request->share)
        return -ENOMEM;
    if (party.tenancy->named &&
        !(request->tenant_share = share_take(&admission->shares, &party.tenancy->id))) {
        share_release(&admission->shares, request->share);
        request->share = NULL;
        return -ENOMEM;
    }
    request->share->journal_bytes += request->log.reserved;
    if (request->tenant_share)
        request->tenant_share->journal_bytes += request->log.reserved;
    return 0;
}

static void withdraw(struct admission *admission, const struct request *request, struct share **share)
{
    if (!*share)
        return;
    (*share)->journal_bytes -= request->log.reserved;
    share_release(&admission->shares, *share);
    *share = NULL;
}

void admission_withdrawn(struct admission *admission, struct request *request)
{
    withdraw(admission, request, &request->share);
    withdraw(admission, request, &request->tenant_share);
}

static void count_queued(struct share *share, const struct request *request)
{
    if (!share)
        return;
    share->queued++;
    share->waiting_bytes += request->waiting_bytes;
    share->queued_bytes += request->body.len;
}

static void count_dequeued(struct share *share, const struct request *request)
{
    if (!share)
        return;
    share->queued--;
    share->waiting_bytes -= request->waiting_bytes;
    share->queued_bytes -= request->body.len;
}

void admission_queued(struct admission *admission, struct request *request)
{
    request->waiting_bytes = request->growth.order == 0 ? request->log.reserved : 0;
    admission->waiting_bytes += request->waiting_bytes;
    admission->queued++;
    admission->queued_bytes += request->body.len;
    count_queued(request->share, request);
    count_queued(request->tenant_share, request);
}

void admission_dequeued(struct admission *admission, struct request *request)
{
    admission->waiting_bytes -= request->waiting_bytes;
    admission->queued--;
    admission->queued_bytes -= request->body.len;
    count_dequeued(request->share, request);
    count_dequeued(request->tenant_share, request);
    request->waiting_bytes = 0;
}

/* ---- what has not come whole ---- */

static void release_held(struct admission *admission, struct share **share, size_t bytes)
{
    if (!*share)
        return;
    (*share)->queued_bytes -= bytes;
    share_release(&admission->shares, *share);
    *share = NULL;
}

int admission_hold(struct admission *admission, const struct party *party, size_t bytes,
                   struct admission_hold *ret_hold)
{
    const struct tenancy *tenancy = party->tenancy;
    struct admission_hold hold = {.share = share_take(&admission->shares, party->client)};
    if (!hold.share)
        return -ENOMEM;
    if (tenancy->named && !(hold.tenant_share = share_take(&admission->shares, &tenancy->id))) {
        share_release(&admission->shares, hold.share);
        return -ENOMEM;
    }
    hold.bytes = bytes;
    hold.share->queued_bytes += bytes;
    if (hold.tenant_share)
        hold.tenant_share->queued_bytes += bytes;
    admission->queued_bytes += bytes;
    *ret_hold = hold;
    return 0;
}

void admission_let_go(struct admission *admission, struct admission_hold *hold)
{
    release_held(admission, &hold->share, hold->bytes);
    release_held(admission, &hold->tenant_share, hold->bytes);
    admission->queued_bytes -= hold->bytes;
    hold->bytes = 0;
}

/* ---- the estimate ---- */

static void count_end(struct admission *admission, uint64_t now)
{
    if (admission->window_ns == 0)
        admission->window_ns = now;
    uint64_t seconds = (now - admission->window_ns) / CLOCK_NS_PER_S;
    if (seconds > 0) {
        admission->ended_per_s = (admission->ended_per_s + admission->window_ended) / 2;
        for (uint64_t i = 1; i < seconds && i < 64; i++)
            admission->ended_per_s /= 2;
        admission->window_ended = 0;
        admission->window_ns += seconds * CLOCK_NS_PER_S;
    }
    admission->window_ended++;
}

void admission_ended(struct admission *admission, struct request *request, uint64_t now)
{
    admission_withdrawn(admission, request);
    count_end(admission, now);
}

/* Ends a second as of now: what the average says, or the second being counted, if that has more. */
static double ending_rate(const struct admission *admission, uint64_t now)
{
    uint64_t elapsed = now > admission->window_ns ? now - admission->window_ns : 0;
    double rate = admission->ended_per_s, counted = admission->window_ended;
    if (elapsed < CLOCK_NS_PER_S) {
        counted *= (double)CLOCK_NS_PER_S / (double)(elapsed > LEAST_SPAN_NS ? elapsed : LEAST_SPAN_NS);
        return counted > rate ? counted : rate;
    }
    rate = (rate + counted) / 2;
    for (uint64_t i = 1; i < elapsed / CLOCK_NS_PER_S && i < 64; i++)
        rate /= 2;
    return rate;
}

uint32_t admission_retry_ms(const struct admission *admission, uint64_t now)
{
    if (admission->window_ns == 0) /* nothing has ended yet */
        return RETRY_UNKNOWN_MS;
    double ms = 1000.0 * ((double)admission->queued / 8 + 1) / ending_rate(admission, now);
    return ms < 100 ? 100 : ms < 10000 ? (uint32_t)ms : 10000;
}

/* ---- what is fixed ---- */

uint64_t admission_draw_seed(struct admission *admission)
{
    admission->draws++;
    return hash64(&admission->draws, sizeof admission->draws, admission->secret);
}

static uint64_t prompt_tokens(const struct prompt *prompt)
{
    uint64_t bytes = 0;
    switch (prompt->form) {
    case PROMPT_IDS:
        return prompt->ids.n;
    case PROMPT_TEXT:
        return (prompt->text.len + prompt->suffix.len + prompt->files.len + prompt->document.len) /
                   BYTES_PER_TOKEN +
               1;
    case PROMPT_CHAT:
        for (size_t i = 0; i < prompt->chat.n; i++)
            bytes += prompt->chat.items[i].content.len;
        return bytes / BYTES_PER_TOKEN + 1;
    }
    return 1;
}

void admission_fix(struct request *request, const struct generation *generation, uint64_t seed, uint64_t now)
{
    request->seed = generation->has_seed ? generation->sampling.seed : seed;
    request->priority = generation->priority;
    request->prompt_tokens = prompt_tokens(&generation->prompt);
    uint32_t unsaid = generation->embed ? 0 : DECODE_UNSAID;
    uint32_t most = generation->max_tokens ? generation->max_tokens : unsaid;
    request->decode = (most < DECODE_MOST_TOKENS ? most : DECODE_MOST_TOKENS) / DECODE_SHARE + 1;
    request->arrived_ns = now;
    if (generation->deadline_ms > 0 && generation->deadline_ms < DEADLINE_MAX_MS)
        request->deadline_ns = now + generation->deadline_ms * CLOCK_NS_PER_MS;
    request->on_disconnect = generation->on_disconnect;
    request->keep_ns = generation->keep_s * CLOCK_NS_PER_S;
}
