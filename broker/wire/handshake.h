/* SPDX-License-Identifier: MIT */
#ifndef BROKER_WIRE_HANDSHAKE_H
#define BROKER_WIRE_HANDSHAKE_H

/* Tells from what libzmq sends whether it let a CURVE client in: a greeting, WELCOME, and then READY or ERROR
 * (rfc.zeromq.org, 26). Until then the client may send only its part of the handshake. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All that a client says before READY: a greeting apart, HELLO of 200 bytes, and INITIATE with its metadata,
 * of 300 where ZeroMQ's libraries write it. */
#define HANDSHAKE_MAX_BYTES 4096

/* Zeroed: nothing was sent yet. */
struct handshake {
    uint8_t sent; /* bytes, up to where the verdict is known */
    bool refused; /* what stands there is no READY */
    bool let_in;
};

/* These bytes were sent to the client. */
void handshake_sent(struct handshake *handshake, const uint8_t *bytes, size_t n);

#endif
