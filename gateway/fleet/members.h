/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FLEET_MEMBERS_H
#define GATEWAY_FLEET_MEMBERS_H

/* Reads a fleet's folder (folder.h) every half second on a thread of its own, because a network file system
 * may block for as long as its server is away. Meanwhile the members stay as they are. A change is known
 * after half a second to a second. */

#include "gateway/fleet/folder.h"

#define MEMBERS_EVERY_MS 500

struct members;

/* Starts the thread; `path` must outlive it. -errno with a reason: the folder cannot be read, or its group or
 * others can write it. */
int members_start(const char *path, struct members **ret_members, struct error *err);

/* Ends the thread, and returns NULL. A thread that is blocked in the file system is left to the end of the
 * process. Takes NULL. */
struct members *members_stop(struct members *members);

/* The current members, sorted by name, if they have changed since the last call: then true, and the caller
 * frees *ret_list. */
bool members_take(struct members *members, struct member **ret_list, size_t *ret_n);

#endif
