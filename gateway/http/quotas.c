/* SPDX-License-Identifier: MIT */
/* See quotas.h. */

#include "gateway/http/quotas.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "common/clock.h"

struct key_quotas quotas_of(const struct key *key, struct quern_quota requests, struct quern_quota tokens)
{
    struct key_quotas quotas = {requests, tokens};
    if (key && key->use)
        use_lower(key->use, clock_ns(), &quotas.requests, &quotas.tokens);
    return quotas;
}

const char *quotas_duration(uint64_t ms, char text[32])
{
    const uint64_t s = (ms + 999) / 1000; /* at that time it is there, so never too early */
    if (ms > 0 && ms < 1000)
        snprintf(text, 32, "%" PRIu64 "ms", ms);
    else if (ms < 60000 && ms % 1000 != 0)
        snprintf(text, 32, "%" PRIu64 ".%03" PRIu64 "s", ms / 1000, ms % 1000);
    else if (s < 60)
        snprintf(text, 32, "%" PRIu64 "s", s);
    else if (s < 3600)
        snprintf(text, 32, "%" PRIu64 "m%" PRIu64 "s", s / 60, s % 60);
    else
        snprintf(text, 32, "%" PRIu64 "h%" PRIu64 "m%" PRIu64 "s", s / 3600, s / 60 % 60, s % 60);
    return text;
}

/* When it will be so many milliseconds later. */
static const char *time_after(uint64_t ms, char text[32])
{
    struct timespec now;
    struct tm parts;
    clock_gettime(CLOCK_REALTIME, &now);
    const time_t then = now.tv_sec + (time_t)((ms + 999) / 1000);
    gmtime_r(&then, &parts);
    strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return text;
}

static void add_number(struct MHD_Response *response, const char *format, const char *what, uint64_t value)
{
    char name[64], text[32];
    snprintf(name, sizeof name, format, what);
    snprintf(text, sizeof text, "%" PRIu64, value);
    MHD_add_response_header(response, name, text);
}

static void add_text(struct MHD_Response *response, const char *format, const char *what, const char *text)
{
    char name[64];
    snprintf(name, sizeof name, format, what);
    MHD_add_response_header(response, name, text);
}

static void add_openai(const struct quern_quota *quota, const char *what, struct MHD_Response *response)
{
    char text[32];
    if (quota->limit == 0)
        return;
    add_number(response, "x-ratelimit-limit-%s", what, quota->limit);
    add_number(response, "x-ratelimit-remaining-%s", what, quota->remaining);
    add_text(response, "x-ratelimit-reset-%s", what, quotas_duration(quota->reset_ms, text));
}

static void add_anthropic(const struct quern_quota *quota, const char *what, struct MHD_Response *response)
{
    char text[32];
    if (quota->limit == 0)
        return;
    add_number(response, "anthropic-ratelimit-%s-limit", what, quota->limit);
    add_number(response, "anthropic-ratelimit-%s-remaining", what, quota->remaining);
    add_text(response, "anthropic-ratelimit-%s-reset", what, time_after(quota->reset_ms, text));
}

void quotas_add_openai(const struct key_quotas *quotas, struct MHD_Response *response)
{
    add_openai(&quotas->requests, "requests", response);
    add_openai(&quotas->tokens, "tokens", response);
}

void quotas_add_anthropic(const struct key_quotas *quotas, struct MHD_Response *response)
{
    add_anthropic(&quotas->requests, "requests", response);
    add_anthropic(&quotas->tokens, "tokens", response);
}
