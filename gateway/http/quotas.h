/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_HTTP_QUOTAS_H
#define GATEWAY_HTTP_QUOTAS_H

/* Headers that report what remains of a key's requests and tokens: OpenAI's `x-ratelimit-limit-requests`,
 * `-remaining-requests`, `-reset-requests` ("1m30s", "250ms") and the same for tokens, and for Anthropic's
 * clients `anthropic-ratelimit-requests-limit`, `-remaining`, `-reset` (an RFC 3339 time). */

#include <microhttpd.h>
#include <quern.h>

#include "gateway/http/keys.h"

struct key_quotas {
    struct quern_quota requests, tokens; /* limit 0: there is none, and no header */
};

/* What a pool reports, or less if the key's name has less left over all pools together. */
struct key_quotas quotas_of(const struct key *key, struct quern_quota requests, struct quern_quota tokens);

void quotas_add_openai(const struct key_quotas *quotas, struct MHD_Response *response);
void quotas_add_anthropic(const struct key_quotas *quotas, struct MHD_Response *response);

/* "0s", "250ms", "1.5s", "6m0s", "23h59m59s". */
const char *quotas_duration(uint64_t ms, char text[32]);

#endif
