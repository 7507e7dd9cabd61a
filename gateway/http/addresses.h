/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_HTTP_ADDRESSES_H
#define GATEWAY_HTTP_ADDRESSES_H

/* The number of connections per client address: an IPv4 address, or an IPv6 /64, which providers assign to
 * one customer; for link-local addresses, which share one /64, the whole address. Loopback is not counted:
 * its clients are users of this machine, or a proxy with many clients' connections. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct address;

struct addresses { /* zeroed except for `seed` and `most`: no connections */
    struct address *table;
    uint64_t seed; /* of the hash: clients choose their addresses */
    unsigned most; /* connections of one address; 0: no limit */
};

/* Whether this address may have one more connection. */
bool addresses_have_room(const struct addresses *addresses, const struct sockaddr *from);

/* Counts a connection. NULL: not counted, because it comes from loopback or memory ran out. */
struct address *addresses_take(struct addresses *addresses, const struct sockaddr *from);

/* Takes NULL. */
void addresses_release(struct addresses *addresses, struct address *address);

#endif
