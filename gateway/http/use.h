/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_HTTP_USE_H
#define GATEWAY_HTTP_USE_H

/* What the keys of a name have used of their limits per minute and per day, if several pools answer them.
 * Each pool counts only what it is sent; here everything is counted that this gateway has sent to any pool,
 * and what other gateways report is added (gateway/sharing).
 *
 * Use at a time t ago counts exp(-t / T), where T is the minute or the day: an exponentially weighted sum.
 * The sums of several gateways add up to the sum over all of them, whatever the limits and whenever each was
 * reported. A limit of N is reached above 1 / (exp(1 / N) - 1), about N - 1/2: from then on one request
 * passes every T / N, as from a bucket that fills evenly, and after a long silence N pass at once. */

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

/* Counts requests (-1 takes one back that was refused after all) and tokens of prompts and answers. */
void use_count(struct use *use, double requests, double tokens, uint64_t now);

/* Returns what was used through this gateway, as of now. */
void use_own(struct use *use, uint64_t now, double ret_used[QUERN_RATES]);

/* Sets what was used through other gateways, as of now. */
void use_hear(struct use *use, const double used[QUERN_RATES], uint64_t now);

/* Lowers the requests and tokens that a pool reports, if less is left of a limit here. The time until the
 * limit is full again is computed as if it filled evenly. */
void use_lower(const struct use *use, uint64_t now, struct quern_quota *requests, struct quern_quota *tokens);

#endif
