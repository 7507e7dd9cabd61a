/* SPDX-License-Identifier: MIT */
#ifndef BROKER_WIRE_HANDSHAKE_H
#define BROKER_WIRE_HANDSHAKE_H

/* Finds out from the bytes that libzmq sends whether it accepted a CURVE client: a greeting, WELCOME, and
 * then READY or ERROR (rfc.zeromq.org, 26). Until then the client may send only its part of the handshake. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The most bytes that a client may send before READY, not counting its greeting: HELLO has 200 bytes, and
 * INITIATE with its metadata, as ZeroMQ's libraries write it, 300. */
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
