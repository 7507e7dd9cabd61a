/* SPDX-License-Identifier: MIT */
/* See use.h. */

#include "gateway/http/use.h"

#include <inttypes.h>
#include <math.h>

#include "common/clock.h"

static const struct {
    const char *name, *what;
    double ms;
    bool requests;
} traits[QUERN_RATES] = {
    [QUERN_RPM] = {"rpm", "requests a minute", 60e3, true},
    [QUERN_TPM] = {"tpm", "tokens a minute", 60e3, false},
    [QUERN_RPD] = {"rpd", "requests a day", 86400e3, true},
    [QUERN_TPD] = {"tpd", "tokens a day", 86400e3, false},
};

/* What is left of a sum after that time. */
static double decayed(double sum, int i, uint64_t from, uint64_t now)
{
    const double ms = now > from ? (double)(now - from) / CLOCK_NS_PER_MS : 0;
    return sum * exp(-ms / traits[i].ms);
}

static double used(const struct use *use, int i, uint64_t now)
{
    return decayed(use->own[i], i, use->at_ns, now) + decayed(use->elsewhere[i], i, use->told_ns, now);
}

/* The most that may have been used before another request passes. */
static double most(const struct use *use, int i)
{
    return 1 / expm1(1 / (double)use->limits[i]);
}

static double wait_ms(const struct use *use, int i, uint64_t now)
{
    const double n = used(use, i, now), may = most(use, i);
    return n > may ? traits[i].ms * log(n / may) : 0;
}

int use_check(const struct use *use, uint64_t now, struct refusal *refusal)
{
    int worst = -1;
    double longest = 0;
    for (int i = 0; i < QUERN_RATES; i++) {
        const double ms = use->limits[i] > 0 ? wait_ms(use, i, now) : 0;
        if (ms > longest) {
            longest = ms;
            worst = i;
        }
    }
    if (worst < 0)
        return 0;
    const double s = longest / 1000;
    const uint32_t retry_s = s < 1e9 ? (uint32_t)s + 1 : 1000000000;
    refuse(refusal, 429, "rate_limit_exceeded", NULL,
           "the limit of %" PRIu64 " %s is reached (%s): try again in %u s", use->limits[worst],
           traits[worst].what, traits[worst].name, retry_s);
    refusal->retry_after_s = retry_s;
    return REFUSED;
}

static void bring_to(struct use *use, uint64_t now)
{
    for (int i = 0; i < QUERN_RATES; i++)
        use->own[i] = decayed(use->own[i], i, use->at_ns, now);
    use->at_ns = now;
}

void use_count(struct use *use, double requests, double tokens, uint64_t now)
{
    bring_to(use, now);
    for (int i = 0; i < QUERN_RATES; i++) {
        use->own[i] += traits[i].requests ? requests : tokens;
        if (use->own[i] < 0)
            use->own[i] = 0;
    }
}

void use_own(struct use *use, uint64_t now, double ret_used[QUERN_RATES])
{
    bring_to(use, now);
    for (int i = 0; i < QUERN_RATES; i++)
        ret_used[i] = use->own[i];
}

void use_hear(struct use *use, const double told[QUERN_RATES], uint64_t now)
{
    for (int i = 0; i < QUERN_RATES; i++)
        use->elsewhere[i] = told[i];
    use->told_ns = now;
}

static void lower(const struct use *use, int i, uint64_t now, struct quern_quota *quota)
{
    const double limit = (double)use->limits[i], n = used(use, i, now);
    const uint64_t left = n < limit ? (uint64_t)(limit - n) : 0;
    if (use->limits[i] == 0 || (quota->limit > 0 && quota->remaining <= left))
        return;
    *quota = (struct quern_quota){
        .limit = use->limits[i], .remaining = left, .reset_ms = (uint64_t)(n / limit * traits[i].ms)};
}

void use_lower(const struct use *use, uint64_t now, struct quern_quota *requests, struct quern_quota *tokens)
{
    for (int i = 0; i < QUERN_RATES; i++)
        lower(use, i, now, traits[i].requests ? requests : tokens);
}
