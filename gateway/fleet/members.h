/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FLEET_MEMBERS_H
#define GATEWAY_FLEET_MEMBERS_H

/* Reads a fleet's folder (folder.h) every half second, or asks for its name (dns.h) every two, on a thread of
 * its own, because a network file system or a resolver may block for as long as its server is away. Meanwhile
 * the members stay as they are. A change is known after one or two of those times. */

#include "gateway/fleet/folder.h"

#define MEMBERS_EVERY_MS 500

struct members;

/* Starts the thread; `place`, a folder or "dns:NAME:PORT", must outlive it. `server_key`: as of dns_init, for
 * a name only. -errno with a reason: the folder cannot be read, or its group or others can write it; or
 * dns_init's. */
int members_start(const char *place, const char *server_key, struct members **ret_members, struct error *err);

/* Ends the thread, and returns NULL. A thread that is blocked in the file system is left to the end of the
 * process. Takes NULL. */
struct members *members_stop(struct members *members);

/* The current members, sorted by name, if they have changed since the last call: then true, and the caller
 * frees *ret_list. */
bool members_take(struct members *members, struct member **ret_list, size_t *ret_n);

#endif
