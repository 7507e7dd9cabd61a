/* SPDX-License-Identifier: MIT */
/* Any bytes as what a client sends, in pieces of any length: the broker's counting of them (broker/intake.h)
 * changes none, and whether it closes the connection is what a reading of the whole says. The first byte says
 * how it is cut, and whether it comes to the frontend or to the stream. */

#include "tests/fuzz/driver.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "broker/connections.h"
#include "broker/intake.h"

#define MOST_PARTS 16
#define GREETING   64

static int listener_for(enum intake_kind kind)
{
    struct sockaddr_un anywhere = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    intake_listen_for(kind);
    if (fd < 0 || bind(fd, (struct sockaddr *)&anywhere, sizeof(sa_family_t)) < 0 || listen(fd, 1) < 0)
        abort();
    intake_listen_for(INTAKE_ANYTHING);
    return fd;
}

/* Whether so much of a command is a PING with a time or without the bytes of one, which listeners must not
 * send. */
static bool is_timed_ping(const uint8_t *body, size_t len, bool whole)
{
    return len > 0 && body[0] == 4 &&
           ((len > 5 && body[5] != 0) || (len > 6 && body[6] != 0) || (whole && len < 7));
}

/* Whether a client that has sent these bytes to the frontend, or to the stream, is to be closed. */
static bool is_refused(const uint8_t *data, size_t len, bool subscribes)
{
    unsigned parts = 0;
    if ((len > 0 && data[0] != 0xff) || (len > 9 && data[9] % 2 == 0) || (len > 10 && data[10] < 3))
        return true;
    for (size_t at = GREETING; at < len;) {
        size_t header = data[at] & 2 ? 9 : 2;
        uint64_t body = 0;
        if (len - at < header)
            return false;
        bool command = data[at] & 4;
        parts = data[at] & 1 ? parts + 1 : 0;
        if (parts >= MOST_PARTS && !subscribes)
            return true;
        for (size_t i = 1; i < header; i++)
            body = body << 8 | data[at + i];
        at += header;
        size_t there = body < len - at ? (size_t)body : len - at;
        if (subscribes && command && is_timed_ping(data + at, there, there == body))
            return true;
        if (body >= len - at)
            return false;
        at += (size_t)body;
    }
    return false;
}

/* Sends a piece and reads what of it is let through. False when the connection is closed. */
static bool pass(int from, int to, const uint8_t *piece, size_t len, size_t *ret_received)
{
    uint8_t got[4096];
    *ret_received = 0;
    if (send(from, piece, len, MSG_NOSIGNAL) != (ssize_t)len)
        abort();
    while (*ret_received < len) {
        ssize_t n = recv(to, got, sizeof got, MSG_DONTWAIT);
        if (n < 0 && errno == ECONNRESET)
            return false;
        if (n <= 0 || (size_t)n > len - *ret_received || memcmp(got, piece + *ret_received, (size_t)n) != 0)
            abort();
        *ret_received += (size_t)n;
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static int listeners[2];
    int pair[2];
    if (listeners[0] == 0) {
        listeners[0] = listener_for(INTAKE_MESSAGES);
        listeners[1] = listener_for(INTAKE_SUBSCRIPTIONS);
    }
    if (len == 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
        return 0;
    bool subscribes = data[0] & 1, stays = true;
    unsigned cut = data[0] >> 1;
    size_t at = 1, received, total = 0;
    intake_accepted(pair[0], listeners[subscribes]);
    while (stays && at < len) {
        size_t most = 1 + (cut = (cut * 75 + 74) & 0xffff) % 2000;
        size_t piece = len - at < most ? len - at : most;
        stays = pass(pair[1], pair[0], data + at, piece, &received);
        total += received;
        at += piece;
    }
    bool refused = is_refused(data + 1, at - 1, subscribes);
    if (subscribes ? stays && refused : stays == refused)
        abort();
    if (subscribes && total > INTAKE_MAX_SUBSCRIBER_BYTES)
        abort();
    close(pair[0]);
    close(pair[1]);
    intake_emptied();
    connections_caught_up();
    connections_caught_up(); /* from here on the descriptor may be used again */
    return 0;
}
