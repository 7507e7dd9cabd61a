/* SPDX-License-Identifier: MIT */
/* greeting:  signature (ff, 8 bytes, 7f), major version, 53 bytes more
 * frames:    flags, length of 1 byte, or of 8 in network order when LARGE, body */

#include "broker/wire/zmtp.h"

#define AT_END   9 /* of the signature: odd, or the peer speaks ZMTP 1, whatever follows */
#define AT_MAJOR 10

static enum zmtp_what take_greeting(struct zmtp *zmtp, uint8_t byte)
{
    size_t at = zmtp->greeting++;
    if ((at == 0 && byte != 0xff) || (at == AT_END && byte % 2 == 0) || (at == AT_MAJOR && byte < 3))
        return ZMTP_BROKEN;
    return ZMTP_NOTHING;
}

static enum zmtp_what take_header(struct zmtp *zmtp, uint8_t byte)
{
    const uint8_t *header = zmtp->header;
    zmtp->header[zmtp->n_header++] = byte;
    if (zmtp->n_header < (header[0] & ZMTP_LARGE ? 9 : 2))
        return ZMTP_NOTHING;
    zmtp->flags = header[0];
    for (int i = 1; i < zmtp->n_header; i++)
        zmtp->left = zmtp->left << 8 | header[i];
    zmtp->n_header = 0;
    return ZMTP_HEADER;
}

size_t zmtp_take(struct zmtp *zmtp, const uint8_t *bytes, size_t n, enum zmtp_what *ret_what)
{
    if (zmtp->left > 0) {
        size_t step = zmtp->left < n ? (size_t)zmtp->left : n;
        zmtp->left -= step;
        *ret_what = ZMTP_BODY;
        return step;
    }
    *ret_what =
        zmtp->greeting < ZMTP_GREETING_BYTES ? take_greeting(zmtp, *bytes) : take_header(zmtp, *bytes);
    return 1;
}
