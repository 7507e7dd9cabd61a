/* SPDX-License-Identifier: MIT */
#ifndef BROKER_BOOKS_TELLINGS_H
#define BROKER_BOOKS_TELLINGS_H

/* What gateways tell of their tenants, so that bounds of a tenant hold over all gateways of a client. What a
 * session tells replaces what it told before, and ends with the session or when it is silent. It is shared
 * with other sessions of the same client only. Nothing is kept for the next broker: gateways tell it again.
 */

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "proto/message.h"

#define TELLINGS_SILENT_MS 2000       /* then it counts no more */
#define TELLINGS_SESSIONS  64         /* of a client */
#define TELLINGS_OF_CLIENT (1u << 16) /* tenants, those of each session counted */
#define TELLINGS_TENANTS   (1u << 18) /* the same, of all clients */

struct telling;
struct tellings { /* zeroed: nothing is told */
    struct telling *list;
};

/* The session tells this, in ascending order of ids. `client`: whose session it is; zeros: in the run
 * directory. PROTO_OK; or PROTO_OVERLOADED or PROTO_INTERNAL with a reason, and the session has told nothing.
 */
enum proto_error tellings_take(struct tellings *tellings, const struct id128 *session,
                               const struct id128 *client, const struct tenant_uses *uses, uint64_t now,
                               struct error *reason);

/* The sums of what other sessions of the client tell, in ascending order of ids, at most PROTO_MAX_TENANTS,
 * with how many sessions tell of each. To be freed. 0 or -ENOMEM. */
int tellings_sum(const struct tellings *tellings, const struct id128 *session, const struct id128 *client,
                 uint64_t now, struct tenant_use **ret_items, size_t *ret_n);

/* The session has ended. */
void tellings_forget(struct tellings *tellings, const struct id128 *session);
void tellings_deinit(struct tellings *tellings);

#endif
