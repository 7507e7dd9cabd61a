/* SPDX-License-Identifier: MIT */
/* One loop around poll. A connection is a peer; it is
 *
 *   away ──open──▶ sending ──last byte──▶ waiting ──end of the answer, or patience──▶ away
 *
 * Rates are kept by comparing what was sent or read with what the time since the opening allows. Who does not
 * read has a small receive buffer, so that the answer stays with the gateway. Who leaves does so with a FIN
 * or a RST in turn. */

#include "tests/integration/hostile/crowd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"

#ifndef IP_BIND_ADDRESS_NO_PORT
#define IP_BIND_ADDRESS_NO_PORT 24
#endif

enum {
    TICK_MS = 4,
    SEND_BYTES = 256 << 10, /* by one peer before it is another's turn */
    READ_BYTES = 64 << 10,
    LEAST_READ = 64, /* at a slow rate: the status is not to be cut */
    SMALL_BUFFER = 4096,
    OPEN_AT_ONCE = 200, /* new connections before those that are open get their turn */
    RETRY_MS = 20
};

struct peer {
    int fd; /* -1: away */
    const struct crowd_request *request;
    size_t turn; /* of the requests */
    size_t sent, received;
    bool whole, answered;
    uint64_t open_ns, whole_ns, again_ns;
};

struct gathering {
    const struct crowd *crowd;
    struct tally *tally;
    int port;
    struct peer *peers;
    struct pollfd *items;
    char *sink;
};

static void count(long *number)
{
    __atomic_add_fetch(number, 1, __ATOMIC_RELAXED);
}

/* Counts the status lines in what came. One that is cut by its end is missed, which matters to nobody. */
static void count_answers(const struct gathering *all, struct peer *peer, const char *bytes, size_t len)
{
    static const char version[] = "HTTP/1.1 ";
    const size_t skip = sizeof version - 1;
    const char *end = bytes + len;
    while (bytes < end && (bytes = memmem(bytes, (size_t)(end - bytes), version, skip))) {
        bytes += skip;
        if (end - bytes < 3 || bytes[0] < '1' || bytes[0] > '5')
            continue;
        peer->answered = true;
        bool busy = memcmp(bytes, "429", 3) == 0 || memcmp(bytes, "503", 3) == 0;
        count(busy ? &all->tally->busy : &all->tally->answers[bytes[0] - '0']);
    }
}

static void be_gone(const struct gathering *all, struct peer *peer, uint64_t now)
{
    close(peer->fd);
    peer->fd = -1;
    peer->again_ns = now + all->crowd->nap_ms * CLOCK_NS_PER_MS;
}

/* The gateway has ended the connection. Who does not read looks now what it said. */
static void ended(const struct gathering *all, struct peer *peer, uint64_t now)
{
    ssize_t n = peer->answered ? 0 : recv(peer->fd, all->sink, READ_BYTES, MSG_DONTWAIT);
    if (n > 0)
        count_answers(all, peer, all->sink, (size_t)n);
    if (!peer->answered)
        count(&all->tally->closed);
    be_gone(all, peer, now);
}

static void leave(const struct gathering *all, struct peer *peer, uint64_t now)
{
    const struct linger at_once = {.l_onoff = 1};
    if (peer->turn % 2)
        setsockopt(peer->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    count(&all->tally->left);
    be_gone(all, peer, now);
}

/* ---- opening ---- */

static int open_from(uint32_t from, const struct gathering *all)
{
    const int on = 1, small = SMALL_BUFFER;
    struct sockaddr_in source = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(from)};
    struct sockaddr_in target = {.sin_family = AF_INET,
                                 .sin_port = htons((uint16_t)all->port),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    if (all->crowd->read_rate != CROWD_ALL)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    if (bind(fd, (struct sockaddr *)&source, sizeof source) == 0 &&
        (connect(fd, (struct sockaddr *)&target, sizeof target) == 0 || errno == EINPROGRESS))
        return fd;
    close(fd);
    return -1;
}

static void come(const struct gathering *all, size_t i, uint64_t now)
{
    const struct crowd *crowd = all->crowd;
    struct peer *peer = &all->peers[i];
    const unsigned addresses = crowd->addresses ? crowd->addresses : 1;
    const size_t turn = peer->turn + 1;
    *peer = (struct peer){.fd = open_from(INADDR_LOOPBACK + 1 + (uint32_t)(i % addresses), all),
                          .request = &crowd->requests[turn % crowd->n_requests],
                          .turn = turn,
                          .open_ns = now,
                          .again_ns = now + RETRY_MS * CLOCK_NS_PER_MS};
    count(peer->fd < 0 ? &all->tally->failed : &all->tally->connections);
}

/* ---- sending and reading ---- */

/* Bytes that may be sent or read now at this rate, most `most`. */
static size_t allowed(long rate, size_t done, uint64_t since_ns, uint64_t now, size_t most)
{
    if (rate == CROWD_ALL)
        return most;
    size_t due = (size_t)((double)rate * (double)(now - since_ns) / CLOCK_NS_PER_S);
    size_t left = due > done ? due - done : 0;
    return left < most ? left : most;
}

/* What comes next, at most `most` bytes. */
static size_t next_bytes(const struct peer *peer, size_t most, const char **ret_bytes)
{
    const struct crowd_request *request = peer->request;
    size_t at = peer->sent, left;
    if (at < request->head_len) {
        *ret_bytes = request->head + at;
        left = request->head_len - at;
    } else {
        at -= request->head_len;
        if (request->endless)
            at %= request->body_len;
        *ret_bytes = request->body + at;
        left = request->body_len - at;
    }
    return left < most ? left : most;
}

static size_t may_send(const struct gathering *all, const struct peer *peer, uint64_t now)
{
    const size_t at_once = peer->request->body_len > 0 ? peer->request->head_len : 0;
    if (peer->sent < at_once)
        return at_once - peer->sent;
    return allowed(all->crowd->send_rate, peer->sent - at_once, peer->open_ns, now, SEND_BYTES);
}

static void send_some(const struct gathering *all, struct peer *peer, uint64_t now)
{
    size_t may = may_send(all, peer, now);
    while (may > 0 && !peer->whole) {
        const char *bytes;
        size_t len = next_bytes(peer, may, &bytes);
        ssize_t n = len > 0 ? send(peer->fd, bytes, len, MSG_NOSIGNAL) : 0;
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return ended(all, peer, now);
        if (n < 0)
            return;
        peer->sent += (size_t)n;
        may -= (size_t)n;
        peer->whole =
            !peer->request->endless && peer->sent == peer->request->head_len + peer->request->body_len;
    }
    if (peer->whole && peer->whole_ns == 0) {
        peer->whole_ns = now;
        if (peer->sent > 0)
            count(&all->tally->requests);
    }
}

static void read_some(const struct gathering *all, struct peer *peer, uint64_t now)
{
    size_t may = allowed(all->crowd->read_rate, peer->received, peer->open_ns, now, READ_BYTES);
    ssize_t n = recv(peer->fd, all->sink, may, 0);
    if (n > 0) {
        peer->received += (size_t)n;
        count_answers(all, peer, all->sink, (size_t)n);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        ended(all, peer, now);
    }
}

/* ---- the loop ---- */

static short wanted(const struct gathering *all, const struct peer *peer, uint64_t now)
{
    const struct crowd *crowd = all->crowd;
    short events = crowd->read_rate == CROWD_ALL ? 0 : POLLRDHUP;
    if (!peer->whole && may_send(all, peer, now) > 0)
        events |= POLLOUT;
    if (allowed(crowd->read_rate, peer->received, peer->open_ns, now, LEAST_READ) == LEAST_READ)
        events |= POLLIN;
    return events;
}

static void prepare(const struct gathering *all, uint64_t now)
{
    unsigned opened = 0;
    for (unsigned i = 0; i < all->crowd->n; i++) {
        struct peer *peer = &all->peers[i];
        const unsigned leave_ms = all->crowd->leave_ms;
        if (peer->fd >= 0 && peer->whole && leave_ms > 0 &&
            now - peer->whole_ns >= leave_ms * CLOCK_NS_PER_MS)
            leave(all, peer, now);
        if (peer->fd < 0 && now >= peer->again_ns && opened < OPEN_AT_ONCE) {
            come(all, i, now);
            opened++;
        }
        all->items[i] = (struct pollfd){.fd = peer->fd, .events = peer->fd < 0 ? 0 : wanted(all, peer, now)};
    }
}

static void serve(const struct gathering *all, struct peer *peer, short events, uint64_t now)
{
    if (events & POLLIN)
        read_some(all, peer, now);
    else if (events & (POLLERR | POLLHUP | POLLRDHUP))
        ended(all, peer, now);
    if (peer->fd >= 0 && events & POLLOUT)
        send_some(all, peer, now);
}

void crowd_run(const struct crowd *crowd, int port, struct tally *tally)
{
    struct gathering all = {.crowd = crowd,
                            .tally = tally,
                            .port = port,
                            .peers = calloc(crowd->n, sizeof *all.peers),
                            .items = calloc(crowd->n, sizeof *all.items),
                            .sink = malloc(READ_BYTES)};
    if (!all.peers || !all.items || !all.sink)
        abort();
    for (unsigned i = 0; i < crowd->n; i++)
        all.peers[i] = (struct peer){.fd = -1, .turn = i};
    while (!__atomic_load_n(&tally->over, __ATOMIC_RELAXED)) {
        prepare(&all, clock_ns());
        poll(all.items, crowd->n, TICK_MS);
        for (unsigned i = 0; i < crowd->n; i++)
            if (all.peers[i].fd >= 0 && all.items[i].revents)
                serve(&all, &all.peers[i], all.items[i].revents, clock_ns());
    }
    for (unsigned i = 0; i < crowd->n; i++)
        close(all.peers[i].fd);
    free(all.peers);
    free(all.items);
    free(all.sink);
}
