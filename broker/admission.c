/* SPDX-License-Identifier: MIT */
/* Admission: bounds, the estimate behind retry_after_ms, and what is fixed at the door.
 *
 * A client that leaves fields out gets the defaults that the decoder fills in, and the seed drawn here: from
 * now on the request is complete, and whichever worker runs it runs the same one. The rate of endings is a
 * moving average of whole seconds, halved by each newer one. */

#include "broker/admission.h"

#include <errno.h>

#include "common/clock.h"
#include "common/hash.h"

/* A deadline further away than this is none; it keeps the sum below from wrapping. */
#define DEADLINE_MAX_MS ((uint64_t)365 * 24 * 3600 * 1000)

#define RETRY_UNKNOWN_MS 1000
#define LEAST_SPAN_NS    (CLOCK_NS_PER_S / 10) /* from which a rate is reckoned */

#define BYTES_PER_TOKEN 4 /* of a text, roughly: only to compare the load of workers */

/* A token that is made weighs less than one that is read, because it is made in a step with those of others;
 * and few requests make as many as they may. */
#define DECODE_MOST_TOKENS 1024
#define DECODE_SHARE       8

/* ---- room ---- */

/* What a client without requests has. */
static const struct share nothing;

static const struct share *share_of(const struct admission *admission, const struct id128 *client)
{
    const struct share *share = share_find(&admission->shares, client);
    return share ? share : &nothing;
}

/* A returned request is queued whatever the bound is. */
static size_t left(size_t limit, size_t used)
{
    return used < limit ? limit - used : 0;
}

enum proto_error admission_check_queue(const struct admission *admission, const struct id128 *client,
                                       size_t bytes, struct error *reason)
{
    const struct share *share = share_of(admission, client);
    size_t requests_left = left(admission->max_queued, admission->queued);
    size_t bytes_left = left(admission->max_queued_bytes, admission->queued_bytes);
    if (admission->max_client_requests > 0 && share->requests >= admission->max_client_requests)
        return error_set(
            reason, PROTO_OVERLOADED,
            "this client has %zu requests that have not ended, and may have %zu (client-requests)",
            share->requests, admission->max_client_requests);
    if (requests_left == 0 || bytes_left < bytes)
        return error_set(reason, PROTO_OVERLOADED,
                         "the queue is full: %zu requests of %zu bytes wait, and %zu of %zu bytes may",
                         admission->queued, admission->queued_bytes, admission->max_queued,
                         admission->max_queued_bytes);
    if (!share_allows(share->queued, 1, requests_left))
        return error_set(reason, PROTO_OVERLOADED,
                         "this session's share of the queue is full: %zu requests of it wait, of %zu in all, "
                         "and there is room for %zu more",
                         share->queued, admission->queued, requests_left);
    if (!share_allows(share->queued_bytes, bytes, bytes_left))
        return error_set(reason, PROTO_OVERLOADED,
                         "this session's share of the queue is full: %zu bytes of prompts wait, and %zu more "
                         "are too many now that there is room for %zu",
                         share->queued_bytes, bytes, bytes_left);
    return PROTO_OK;
}

/* One long request may need more than a share, and would never find the journal empty enough; it gets what it
 * needs if its session has nothing else, and something is left for others. */
static bool journal_allows(uint64_t had, uint64_t more, uint64_t left, uint64_t limit)
{
    uint64_t others = limit / ADMISSION_OTHERS_OF_JOURNAL;
    return share_allows(had, more, left) || (had == 0 && left > others && more <= left - others);
}

enum proto_error admission_check_journal(const struct admission *admission, const struct id128 *client,
                                         uint64_t bytes, const struct journal *journal, struct error *reason)
{
    uint64_t had = share_of(admission, client)->journal_bytes;
    uint64_t left = journal_free(journal);
    if (!journal_allows(0, bytes, journal->limit, journal->limit))
        return error_set(
            reason, PROTO_TOO_LONG,
            "max_tokens and logprobs could take %llu bytes of the journal, a request has at most "
            "%llu",
            (unsigned long long)bytes,
            (unsigned long long)(journal->limit - journal->limit / ADMISSION_OTHERS_OF_JOURNAL));
    if (!journal_could_hold(journal, bytes))
        return error_set(
            reason, PROTO_OVERLOADED,
            "the journal is full of requests that run or wait, and of answers that their clients have not "
            "read: %llu bytes are wanted, and %llu of %llu left",
            (unsigned long long)bytes, (unsigned long long)left, (unsigned long long)journal->limit);
    if (!journal_allows(had, bytes, left, journal->limit))
        return error_set(reason, PROTO_OVERLOADED,
                         "this session's share of the journal is full: its requests could take %llu bytes, "
                         "and %llu more are too many now that %llu of %llu are left",
                         (unsigned long long)had, (unsigned long long)bytes, (unsigned long long)left,
                         (unsigned long long)journal->limit);
    return PROTO_OK;
}

int admission_entered(struct admission *admission, struct request *request)
{
    request->share = share_take(&admission->shares, request_client(request));
    if (!request->share)
        return -ENOMEM;
    request->share->journal_bytes += request->log.reserved;
    return 0;
}

void admission_withdrawn(struct admission *admission, struct request *request)
{
    request->share->journal_bytes -= request->log.reserved;
    share_release(&admission->shares, request->share);
    request->share = NULL;
}

void admission_queued(struct admission *admission, const struct request *request)
{
    admission->queued++;
    admission->queued_bytes += request->body.len;
    request->share->queued++;
    request->share->queued_bytes += request->body.len;
}

void admission_dequeued(struct admission *admission, const struct request *request)
{
    admission->queued--;
    admission->queued_bytes -= request->body.len;
    request->share->queued--;
    request->share->queued_bytes -= request->body.len;
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
        return prompt->text.len / BYTES_PER_TOKEN + 1;
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
    uint32_t most = admission_most_tokens(generation);
    request->decode = (most < DECODE_MOST_TOKENS ? most : DECODE_MOST_TOKENS) / DECODE_SHARE + 1;
    request->arrived_ns = now;
    if (generation->deadline_ms > 0 && generation->deadline_ms < DEADLINE_MAX_MS)
        request->deadline_ns = now + generation->deadline_ms * CLOCK_NS_PER_MS;
    request->on_disconnect = generation->on_disconnect;
    request->keep_ns = generation->keep_s * CLOCK_NS_PER_S;
}
