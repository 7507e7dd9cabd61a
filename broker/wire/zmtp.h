/* SPDX-License-Identifier: MIT */
#ifndef BROKER_WIRE_ZMTP_H
#define BROKER_WIRE_ZMTP_H

/* Follows the frames of a peer, ZMTP 3.0 and 3.1 (rfc.zeromq.org, 23 and 37), outside libzmq and in pieces of
 * any length: where frames begin and end, not their contents. So it works with CURVE too, which encrypts
 * contents. */

#include <stddef.h>
#include <stdint.h>

#define ZMTP_GREETING_BYTES 64

enum { ZMTP_MORE = 1, ZMTP_LARGE = 2, ZMTP_COMMAND = 4 }; /* flags of a frame */

enum zmtp_what {
    ZMTP_NOTHING, /* part of the greeting, or of a header */
    ZMTP_HEADER,  /* the last byte of a header: `flags` and `left` are those of its frame */
    ZMTP_BODY,    /* part of the body: `left` bytes are still to come */
    ZMTP_BROKEN,  /* not ZMTP 3 */
};

/* Zeroed: no bytes yet. */
struct zmtp {
    uint8_t greeting;  /* bytes received of it */
    uint8_t header[9]; /* of a frame */
    uint8_t n_header;  /* bytes received of it */
    uint8_t flags;     /* of the current frame */
    uint64_t left;     /* bytes of its body still to come */
};

/* Takes the longest run of these n ≥ 1 bytes that is of one kind, at least one byte, and returns its length
 * and kind. */
size_t zmtp_take(struct zmtp *zmtp, const uint8_t *bytes, size_t n, enum zmtp_what *ret_what);

#endif
