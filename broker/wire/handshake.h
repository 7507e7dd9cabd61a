/* SPDX-License-Identifier: MIT */
#ifndef BROKER_WIRE_HANDSHAKE_H
#define BROKER_WIRE_HANDSHAKE_H

/* Finds out whether libzmq accepted a CURVE client from the bytes that it sends: a greeting, WELCOME, and
 * then READY or ERROR (rfc.zeromq.org, 26). Until then the client may send only its part of the handshake. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Most bytes that a client may send before READY, its greeting aside: HELLO has 200 bytes, and INITIATE with
 * its metadata 300 as ZeroMQ's libraries write it. */
#define HANDSHAKE_MAX_BYTES 4096

/* Zeroed: nothing was sent yet. */
struct handshake {
    uint8_t sent; /* bytes, counted until the verdict is known */
    bool refused; /* the command was not READY */
    bool let_in;
};

/* These bytes were sent to the client. */
void handshake_sent(struct handshake *handshake, const uint8_t *bytes, size_t n);

#endif
