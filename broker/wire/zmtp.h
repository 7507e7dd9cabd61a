/* SPDX-License-Identifier: MIT */
#ifndef BROKER_WIRE_ZMTP_H
#define BROKER_WIRE_ZMTP_H

/* Follows the frames that a peer sends, ZMTP 3.0 and 3.1 (rfc.zeromq.org, 23 and 37), from outside libzmq and
 * in pieces of any length: where frames begin and end, not what they contain. It works over CURVE too, where
 * contents are encrypted. */

#include <stddef.h>
#include <stdint.h>

#define ZMTP_GREETING_BYTES 64

enum { ZMTP_MORE = 1, ZMTP_LARGE = 2, ZMTP_COMMAND = 4 }; /* flags of a frame */

enum zmtp_what {
    ZMTP_NOTHING, /* of the greeting, or of a header */
    ZMTP_HEADER,  /* the last byte of one: `flags` and `left` are those of its frame */
    ZMTP_BODY,    /* of the frame: `left` is what is still to come */
    ZMTP_BROKEN,  /* not ZMTP 3 */
};

/* Zeroed: nothing came yet. */
struct zmtp {
    uint8_t greeting;  /* bytes of it that came */
    uint8_t header[9]; /* of a frame */
    uint8_t n_header;  /* what came of it */
    uint8_t flags;     /* of the frame under way */
    uint64_t left;     /* bytes of its body that did not come yet */
};

/* Takes as many of these n ≥ 1 bytes as are of one kind, at least one, and says of which. */
size_t zmtp_take(struct zmtp *zmtp, const uint8_t *bytes, size_t n, enum zmtp_what *ret_what);

#endif
