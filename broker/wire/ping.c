/* SPDX-License-Identifier: MIT */
/* A PING is a command whose name has four bytes, with a time in tenths of seconds behind it. What comes is
 * cut anywhere, so a few bytes of each command are counted down. */

#include "broker/wire/ping.h"

#include <stdbool.h>

#include "common/clock.h"

#define PING_NAME  4 /* bytes; no other command that a listener sends has a name of this length */
#define PING_BYTES 7 /* its length, the name, the time in tenths of seconds */
#define PING_FRAME (2 + PING_BYTES)

/* Of a heartbeat that is whole, how many bytes do not count: all, once a second. */
static size_t heartbeat_allowance(struct ping *ping)
{
    uint64_t now = clock_ns();
    if (now - ping->allowed_ns < CLOCK_NS_PER_S)
        return 0;
    ping->allowed_ns = now;
    return PING_FRAME;
}

/* Whether these first bytes of a command, or those that follow them, are a PING with a time, or one too short
 * to have any: libzmq takes what lies behind it for its time. */
static bool is_timed(struct ping *ping, const struct zmtp *zmtp, const uint8_t *bytes, size_t n,
                     size_t *free_bytes)
{
    for (size_t i = 0; i < n && ping->left > 0; i++) {
        size_t at = PING_BYTES - ping->left--;
        if (at == 0 && bytes[i] != PING_NAME)
            ping->left = 0;
        else if (at > PING_NAME && bytes[i] != 0)
            return true;
        else if (at == PING_BYTES - 1)
            *free_bytes += heartbeat_allowance(ping);
    }
    return ping->left > 0 && zmtp->left == 0;
}

enum ping_verdict ping_look(struct ping *ping, struct zmtp *zmtp, const uint8_t *bytes, size_t n,
                            size_t *ret_free)
{
    *ret_free = 0;
    enum zmtp_what what;
    for (size_t i = 0, step; i < n; i += step) {
        step = zmtp_take(zmtp, bytes + i, n - i, &what);
        if (what == ZMTP_HEADER)
            ping->left = zmtp->flags & ZMTP_COMMAND ? PING_BYTES : 0;
        if (what == ZMTP_BROKEN)
            return PING_NO_ZMTP;
        if (what == ZMTP_BODY && is_timed(ping, zmtp, bytes + i, step, ret_free))
            return PING_TIMED;
    }
    return PING_FINE;
}
