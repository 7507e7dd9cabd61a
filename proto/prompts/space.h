/* SPDX-License-Identifier: MIT */
#ifndef PROTO_PROMPTS_SPACE_H
#define PROTO_PROMPTS_SPACE_H

/* Which requests may share prefixes: those of one space with one salt. The pool decides the space; it tells
 * the gateways of a fleet, which hash prompts as the pools do, the base of their space.
 *
 * Requests with a key share only with the same key. Salts and tenants named by clients on TCP differ from
 * equal names in the run directory. A request with a tenant but no salt shares with its tenant's requests.
 * With --share-prefixes only salts separate requests. */

#include <stdbool.h>

#include "proto/bounds.h"

struct generation; /* proto/message.h */
struct id128;

#define PROMPT_SPACE_BYTES (PROTO_MAX_SPACE_BYTES + 1)

/* The base of the space of a client's requests. `key`: the client's; NULL: none. `near`: it connected through
 * a socket in the run directory. `shared`: the pool separates only salts. */
void prompt_space_base(bool shared, const struct id128 *key, bool near, char ret_base[PROMPT_SPACE_BYTES]);

/* Sets the generation's cache_space and cache_salt, which together differ for any two requests that must not
 * share prefixes. `text` holds the space and must live as long as the generation. */
void prompt_space_set(const char *base, char text[PROMPT_SPACE_BYTES], struct generation *generation);

#endif
