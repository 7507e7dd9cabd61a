/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_HTTP_USE_H
#define GATEWAY_HTTP_USE_H

/* What the keys of a name have used of their limits a minute and a day, where several pools answer them. Each
 * pool counts what it is sent itself; here all is counted that this gateway has sent to any pool, and what
 * other gateways tell is added (gateway/sharing).
 *
 * What was used t ago counts exp(-t / T), where T is the minute or the day: an exponentially weighted sum.
 * Such sums of several gateways add up to that of all of them, whatever the limits and whenever each was
 * told. A limit of N is reached above 1 / (exp(1 / N) - 1), about N - 1/2: from then on one passes every T /
 * N, as from a bucket that fills evenly, and after a long silence N pass at once. */

#include <quern.h>
#include <stdbool.h>
#include <stdint.h>

#include "gateway/json/refusal.h"

struct use {                       /* zeroed: nothing was used */
    uint64_t limits[QUERN_RATES];  /* of the name; 0: none */
    double own[QUERN_RATES];       /* used through this gateway, as of at_ns */
    double elsewhere[QUERN_RATES]; /* through others, as of told_ns */
    uint64_t at_ns, told_ns;       /* clock_ns */
};

/* Whether another request may pass: 0, or REFUSED with 429 and the time to retry. */
int use_check(const struct use *use, uint64_t now, struct refusal *refusal);

/* Counts requests, which may be -1 for one that was refused after all, and tokens of prompts and answers. */
void use_count(struct use *use, double requests, double tokens, uint64_t now);

/* What was used through this gateway, as of now. */
void use_own(struct use *use, uint64_t now, double ret_used[QUERN_RATES]);

/* What was used through others, as of now. */
void use_hear(struct use *use, const double used[QUERN_RATES], uint64_t now);

/* Replaces what a pool tells of requests and tokens where less is left of a limit here. The time until all of
 * it is there again is told as if it filled evenly. */
void use_lower(const struct use *use, uint64_t now, struct quern_quota *requests, struct quern_quota *tokens);

#endif
