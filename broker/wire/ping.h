/* SPDX-License-Identifier: MIT */
#ifndef BROKER_WIRE_PING_H
#define BROKER_WIRE_PING_H

/* Finds ZMTP heartbeats in the bytes that a subscriber sends unencrypted.
 *
 * libzmq closes a connection when the timeout in its PING has passed, any number of connections at once and
 * without a read; so a PING with a timeout is rejected. A PING without one is a heartbeat. */

#include <stddef.h>
#include <stdint.h>

#include "broker/wire/zmtp.h"

struct ping {            /* zeroed: no bytes yet */
    uint8_t left;        /* bytes of a command still to check, which may be a PING */
    uint64_t allowed_ns; /* when the last uncounted heartbeat came */
};

enum ping_verdict { PING_FINE, PING_NO_ZMTP, PING_TIMED };

/* Checks the next bytes of the connection, which `zmtp` follows. *ret_free: how many of these or earlier
 * bytes are not to be counted: one heartbeat a second is free. */
enum ping_verdict ping_look(struct ping *ping, struct zmtp *zmtp, const uint8_t *bytes, size_t n,
                            size_t *ret_free);

#endif
