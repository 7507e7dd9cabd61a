/* SPDX-License-Identifier: MIT */
/* Any bytes as what a client sends, in pieces of any length: the broker's counting of them
 * (broker/wire/intake.h) changes none, and whether it closes the connection is what a reading of the whole
 * says. The first byte says how it is cut, and whether it comes to the frontend, to the stream, or to the
 * stream of clients with keys: there nobody reads what it is, but all connections of a key together have what
 * one key may have, however much comes before the loop says whose they are. */

#include "tests/fuzz/driver.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "broker/wire/connections.h"
#include "broker/wire/intake.h"
#include "common/clock.h"

#define MOST_PARTS 16
#define GREETING   64
#define KEYS       3

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

struct connection {
    int from, to;
    bool keyless; /* nobody asks whose it is */
    uint32_t key; /* else; known once that was said */
    bool known;
    bool refused; /* as it was told, for what came before */
    size_t total; /* bytes that were read */
};

/* The loop has taken the first subscription. */
static void tell_key(struct connection *connection)
{
    uint8_t byte;
    intake_owned(connection->to, connection->key);
    intake_subscribed(connection->to, true);
    connection->known = true;
    connection->refused = recv(connection->from, &byte, 1, MSG_DONTWAIT) == 0;
}

/* Sends a piece and reads what of it is let through. False when the connection is closed. */
static bool pass(struct connection *connection, const uint8_t *piece, size_t len)
{
    uint8_t got[4096];
    size_t received = 0;
    ssize_t sent = send(connection->from, piece, len, MSG_NOSIGNAL);
    if (sent < 0 && errno == EPIPE && connection->refused)
        return false;
    if (sent != (ssize_t)len)
        abort();
    while (received < len) {
        ssize_t n = recv(connection->to, got, sizeof got, MSG_DONTWAIT);
        if (n < 0 && errno == ECONNRESET)
            return false;
        if (n < 0 && errno == EAGAIN && !connection->keyless && !connection->known) {
            tell_key(connection);
            continue;
        }
        if (n <= 0 || (size_t)n > len - received || memcmp(got, piece + received, (size_t)n) != 0)
            abort();
        received += (size_t)n;
        connection->total += (size_t)n;
    }
    return true;
}

/* What the keys were let have beyond the shares of their connections is no more than their rates. */
static void check_keys(const struct connection *connection)
{
    static size_t beyond[1 + KEYS];
    static uint64_t begun_ns;
    const uint64_t now = clock_ns();
    begun_ns = begun_ns > 0 ? begun_ns : now;
    if (!connection->known && connection->total > 2 * INTAKE_SUBSCRIBER_CURVE_BYTES)
        abort();
    if (!connection->known)
        return;
    if (intake_subscriptions_of(connection->key) != 1)
        abort();
    if (connection->refused || connection->total <= INTAKE_SUBSCRIBER_CURVE_BYTES)
        return;
    beyond[connection->key] += connection->total - INTAKE_SUBSCRIBER_CURVE_BYTES;
    if (beyond[connection->key] >
        INTAKE_KEY_BURST + INTAKE_KEY_BYTES_A_S * ((now - begun_ns) / CLOCK_NS_PER_S + 2))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static const enum intake_kind kinds[] = {INTAKE_MESSAGES, INTAKE_SUBSCRIPTIONS,
                                             INTAKE_SUBSCRIPTIONS_KEYS};
    static int listeners[3];
    int pair[2];
    for (int i = 0; i < 3 && listeners[i] == 0; i++)
        listeners[i] = listener_for(kinds[i]);
    if (len == 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
        return 0;
    bool subscribes = data[0] & 1, keys = subscribes && data[0] & 2, stays = true;
    unsigned cut = data[0] >> 1;
    size_t at = 1;
    struct connection connection = {pair[1], pair[0], !keys, 1 + (data[0] >> 2) % KEYS, false, false, 0};
    intake_accepted(pair[0], listeners[subscribes + keys]);
    while (stays && at < len) {
        size_t most = 1 + (cut = (cut * 75 + 74) & 0xffff) % 2000;
        size_t piece = len - at < most ? len - at : most;
        stays = pass(&connection, data + at, piece);
        at += piece;
        if (keys && stays && !connection.known && connection.total >= 100 * (data[0] >> 4))
            tell_key(&connection);
    }
    bool refused = !keys && is_refused(data + 1, at - 1, subscribes);
    if (subscribes ? stays && refused : stays == refused)
        abort();
    if (subscribes && connection.total > INTAKE_MAX_SUBSCRIBER_BYTES)
        abort();
    if (keys)
        check_keys(&connection);
    close(pair[0]);
    close(pair[1]);
    if (keys && intake_subscriptions_of(connection.key) != 0)
        abort();
    intake_emptied();
    connections_caught_up();
    connections_caught_up(); /* from here on the descriptor may be used again */
    return 0;
}
