/* SPDX-License-Identifier: MIT */
/* Admission: bounds, the estimate behind retry_after_ms, and what is fixed at the door.
 *
 * A client that leaves fields out gets the defaults that the decoder fills in, and the seed drawn here: from
 * now on the request is complete, and whichever worker runs it runs the same one. The rate of endings is a
 * moving average of whole seconds, halved by each newer one. */

#include "broker/admission.h"

#include "common/clock.h"
#include "common/hash.h"

/* A deadline further away than this is none; it keeps the sum below from wrapping. */
#define DEADLINE_MAX_MS ((uint64_t)365 * 24 * 3600 * 1000)

#define BYTES_PER_TOKEN 4 /* of a text, roughly: only to compare the load of workers */

bool admission_has_room(const struct admission *admission, size_t bytes)
{
    return admission->queued < admission->max_queued && bytes <= admission->max_queued_bytes &&
           admission->queued_bytes <= admission->max_queued_bytes - bytes;
}

void admission_queued(struct admission *admission, size_t bytes)
{
    admission->queued++;
    admission->queued_bytes += bytes;
}

void admission_dequeued(struct admission *admission, size_t bytes)
{
    admission->queued--;
    admission->queued_bytes -= bytes;
}

void admission_ended(struct admission *admission, uint64_t now)
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

uint32_t admission_retry_ms(const struct admission *admission)
{
    double rate = admission->ended_per_s > 0 ? admission->ended_per_s : 1;
    double ms = 1000.0 * ((double)admission->queued / 8 + 1) / rate;
    return ms < 100 ? 100 : ms > 10000 ? 10000 : (uint32_t)ms;
}

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
    request->cost = prompt_tokens(&generation->prompt) + generation->max_tokens;
    request->arrived_ns = now;
    if (generation->deadline_ms > 0 && generation->deadline_ms < DEADLINE_MAX_MS)
        request->deadline_ns = now + generation->deadline_ms * CLOCK_NS_PER_MS;
    request->on_disconnect = generation->on_disconnect;
    request->keep_ns = generation->keep_s * CLOCK_NS_PER_S;
}
