/* SPDX-License-Identifier: MIT */
/* A process with a few pairs of sockets, one towards the client and one towards the broker. Towards clients
 * it spends a budget that grows with time, by at most a slice of a tenth of a second: whoever has something
 * gets a piece in turn. Its receive buffers towards the broker are small, set before the connection, as the
 * window is agreed on then. */

#include "tests/integration/support/slow_link.h"
#include "tests/unit/child.h"

#include <arpa/inet.h>
#include <check.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"

enum { MOST_PAIRS = 32, PIECE_BYTES = 1460, RECEIVE_BYTES = 8192, SLICES = 10 };

struct pair {
    int client, broker;
    int port; /* 0 or 1 */
};

static struct pair pairs[MOST_PAIRS];
static int n_pairs;

static struct sockaddr_in address_of(const char *host, int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    inet_pton(AF_INET, host, &address.sin_addr);
    return address;
}

static int listen_at(int port)
{
    struct sockaddr_in address = address_of(SLOW_LINK_HOST, port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(fd, 16), 0);
    return fd;
}

static void add_pair(int listener, int which, int port)
{
    struct sockaddr_in address = address_of("127.0.0.1", port);
    int little = RECEIVE_BYTES, client = accept(listener, NULL, NULL);
    int broker = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(broker, SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
    if (client < 0 || n_pairs == MOST_PAIRS ||
        connect(broker, (struct sockaddr *)&address, sizeof address) < 0) {
        close(client);
        close(broker);
        return;
    }
    pairs[n_pairs++] = (struct pair){client, broker, which};
}

/* Passes a piece on; what the other side does not take at once is waited for. The bytes, or -1: it ended. */
static ssize_t pass(int from, int to)
{
    char piece[PIECE_BYTES];
    ssize_t n = recv(from, piece, sizeof piece, MSG_DONTWAIT), at = 0;
    while (at < n) {
        ssize_t sent = send(to, piece + at, (size_t)(n - at), MSG_NOSIGNAL);
        if (sent < 0)
            return -1;
        at += sent;
    }
    return n == 0 ? -1 : n;
}

static void drop_pair(int i)
{
    close(pairs[i].client);
    close(pairs[i].broker);
    pairs[i] = pairs[--n_pairs];
}

/* A piece of each who has one, while the budget lasts. */
static void serve(struct slow_link_shared *shared, int64_t *budget)
{
    struct pollfd fds[2];
    for (int i = n_pairs - 1; i >= 0; i--) {
        fds[0] = (struct pollfd){.fd = pairs[i].client, .events = POLLIN};
        fds[1] = (struct pollfd){.fd = *budget > 0 ? pairs[i].broker : -1, .events = POLLIN};
        if (poll(fds, 2, 0) <= 0)
            continue;
        bool over = fds[0].revents && pass(pairs[i].client, pairs[i].broker) < 0;
        if (!over && fds[1].revents) {
            ssize_t n = pass(pairs[i].broker, pairs[i].client);
            over = n < 0;
            *budget -= n > 0 ? n : 0;
            __atomic_add_fetch(&shared->to_clients[pairs[i].port], n > 0 ? (uint64_t)n : 0, __ATOMIC_RELAXED);
        }
        if (over)
            drop_pair(i);
    }
}

static void be_link(struct slow_link_shared *shared, const int *listeners, int port)
{
    struct pollfd fds[2] = {{.fd = listeners[0], .events = POLLIN}, {.fd = listeners[1], .events = POLLIN}};
    uint64_t last_ns = clock_ns();
    int64_t budget = 0;
    for (;;) {
        if (poll(fds, 2, 1) > 0)
            for (int i = 0; i < 2; i++)
                if (fds[i].revents)
                    add_pair(listeners[i], i, port + i);
        uint64_t now = clock_ns();
        int64_t rate = __atomic_load_n(&shared->bytes_per_s, __ATOMIC_RELAXED);
        budget += rate * (int64_t)((now - last_ns) / 1000) / 1000000;
        budget = budget > rate / SLICES ? rate / SLICES : budget;
        last_ns = now;
        for (int64_t before = budget + 1; budget > 0 && budget < before;) {
            before = budget;
            serve(shared, &budget);
        }
        if (budget <= 0)
            serve(shared, &budget);
    }
}

void slow_link_start(struct slow_link *link, int port, uint32_t bytes_per_s)
{
    int listeners[2] = {listen_at(port), listen_at(port + 1)};
    link->shared =
        mmap(NULL, sizeof *link->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(link->shared, MAP_FAILED);
    link->shared->bytes_per_s = bytes_per_s;
    link->pid = fork_child();
    if (link->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        be_link(link->shared, listeners, port);
    }
    close(listeners[0]);
    close(listeners[1]);
}

void slow_link_stop(struct slow_link *link)
{
    if (link->pid > 0) {
        kill(link->pid, SIGKILL);
        waitpid(link->pid, NULL, 0);
        munmap(link->shared, sizeof *link->shared);
    }
    *link = (struct slow_link){0};
}
