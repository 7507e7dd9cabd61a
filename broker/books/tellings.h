/* SPDX-License-Identifier: MIT */
#ifndef BROKER_BOOKS_TELLINGS_H
#define BROKER_BOOKS_TELLINGS_H

/* What gateways report about their tenants, so that a tenant's limits apply across all gateways of a client.
 * A report replaces the session's previous one; it is dropped when the session ends or is silent. It is
 * shared only with other sessions of the same client. Nothing is kept for the next broker: gateways report
 * again. */

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "proto/message.h"

#define TELLINGS_SILENT_MS 2000       /* after this silence a report no longer counts */
#define TELLINGS_SESSIONS  64         /* per client */
#define TELLINGS_OF_CLIENT (1u << 16) /* tenants per client, counted once per session */
#define TELLINGS_TENANTS   (1u << 18) /* the same for all clients together */

struct telling;
struct tellings { /* zeroed: no reports */
    struct telling *list;
};

/* Stores the session's report, in ascending order of ids. `client`: the session's owner; zeros: a client in
 * the run directory. PROTO_OK; or PROTO_OVERLOADED or PROTO_INTERNAL with a reason, and the session then has
 * no report. */
enum proto_error tellings_take(struct tellings *tellings, const struct id128 *session,
                               const struct id128 *client, const struct tenant_uses *uses, uint64_t now,
                               struct error *reason);

/* Sums over the reports of the client's other sessions, in ascending order of ids, at most PROTO_MAX_TENANTS,
 * each with the number of sessions that report it. The caller frees *ret_items. 0 or -ENOMEM. */
int tellings_sum(const struct tellings *tellings, const struct id128 *session, const struct id128 *client,
                 uint64_t now, struct tenant_use **ret_items, size_t *ret_n);

/* The session has ended. */
void tellings_forget(struct tellings *tellings, const struct id128 *session);
void tellings_deinit(struct tellings *tellings);

#endif
