/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FLEET_MEMBERS_H
#define GATEWAY_FLEET_MEMBERS_H

/* Reads a fleet's folder (folder.h) every half second, or resolves its name (dns.h) every two seconds, on a
 * separate thread, because a network file system or a resolver may block for as long as its server is away.
 * Meanwhile the members stay as they are. A change is known after one or two of these intervals. */

#include "gateway/fleet/folder.h"

#define MEMBERS_EVERY_MS 500

struct members;

/* Starts the thread; `place`, a folder or "dns:NAME:PORT", must outlive it. `server_key`: as for dns_init,
 * only for a name. -errno with a reason: the folder cannot be read, or its group or others can write to it;
 * or as dns_init. */
int members_start(const char *place, const char *server_key, struct members **ret_members, struct error *err);

/* Ends the thread, and returns NULL. A thread that is blocked in the file system is left running until the
 * process ends. Takes NULL. */
struct members *members_stop(struct members *members);

/* If the members have changed since the last call: true, with the current members sorted by name in
 * *ret_list, which the caller frees. */
bool members_take(struct members *members, struct member **ret_list, size_t *ret_n);

#endif
