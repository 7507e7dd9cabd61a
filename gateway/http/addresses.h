/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_HTTP_ADDRESSES_H
#define GATEWAY_HTTP_ADDRESSES_H

/* How many connections each client's address has. An address is one of IPv4, or a /64 of IPv6, which is what
 * one customer gets; of link-local ones, which all share one, the whole. Loopback is not counted: its clients
 * are users of this machine, or a proxy with everyone's connections. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct address;

struct addresses { /* zeroed except for `seed` and `most`: no connections */
    struct address *table;
    uint64_t seed; /* of the hash: clients choose their addresses */
    unsigned most; /* connections of one; 0: no limit */
};

/* Whether one more may come from there. */
bool addresses_have_room(const struct addresses *addresses, const struct sockaddr *from);

/* Counts one. NULL: it is not counted, as it comes from loopback, or out of memory. */
struct address *addresses_take(struct addresses *addresses, const struct sockaddr *from);

/* Takes NULL. */
void addresses_release(struct addresses *addresses, struct address *address);

#endif
