/* SPDX-License-Identifier: MIT */
/* What stands in for recv(2), from where libzmq calls it. */

#include "tests/unit/run.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "broker/wire/connections.h"
#include "broker/wire/intake.h"
#include "broker/wire/zmtp.h"
#include "common/clock.h"

#define N (2 * INTAKE_ENDS_AT_ONCE + 5)

/* Connections to a listener of this kind, of which the other ends are closed. */
static int open_ended(enum intake_kind kind, int ret_fds[N])
{
    struct sockaddr_un anywhere = {.sun_family = AF_UNIX};
    int listener = socket(AF_UNIX, SOCK_STREAM, 0), pair[2];
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&anywhere, sizeof(sa_family_t)), 0);
    intake_listen_for(kind);
    ck_assert_int_eq(listen(listener, 1), 0);
    intake_listen_for(INTAKE_ANYTHING);
    for (int i = 0; i < N; i++) {
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
        intake_accepted(pair[0], listener);
        ck_assert_int_eq(close(pair[1]), 0);
        ret_fds[i] = pair[0];
    }
    return listener;
}

static void close_all_of(const int fds[], int n)
{
    for (int i = 0; i < n; i++)
        close(fds[i]);
}

static void close_all(int listener, const int fds[N])
{
    close_all_of(fds, N);
    close(listener);
}

/* How many of them are seen to be over. */
static int n_over(const int fds[N], int from)
{
    char byte;
    int n = 0;
    for (int i = from; i < N; i++) {
        ssize_t r = recv(fds[i], &byte, 1, 0);
        ck_assert(r == 0 || (r < 0 && errno == EAGAIN));
        n += r == 0;
    }
    return n;
}

START_TEST(listeners_that_leave_together_are_let_go_a_few_at_a_time)
{
    int fds[N];
    int listener = open_ended(INTAKE_SUBSCRIPTIONS, fds);
    connections_caught_up();
    ck_assert_int_eq(n_over(fds, 0), INTAKE_ENDS_AT_ONCE);
    ck_assert_int_eq(n_over(fds, INTAKE_ENDS_AT_ONCE), 0);
    connections_caught_up();
    ck_assert_int_eq(n_over(fds, INTAKE_ENDS_AT_ONCE), INTAKE_ENDS_AT_ONCE);
    connections_caught_up();
    ck_assert_int_eq(n_over(fds, 2 * INTAKE_ENDS_AT_ONCE), N - 2 * INTAKE_ENDS_AT_ONCE);
    close_all(listener, fds);
}
END_TEST

START_TEST(clients_and_others_leave_when_they_like)
{
    int fds[N];
    int listener = open_ended(INTAKE_MESSAGES, fds);
    connections_caught_up();
    ck_assert_int_eq(n_over(fds, 0), N);
    close_all(listener, fds);
    listener = open_ended(INTAKE_ANYTHING, fds);
    ck_assert_int_eq(n_over(fds, 0), N);
    close_all(listener, fds);
}
END_TEST

/* One connection of a listener; the caller has its other end. */
static int open_one(int *ret_other)
{
    int fds[N], pair[2];
    int listener = open_ended(INTAKE_SUBSCRIPTIONS, fds);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    intake_accepted(pair[0], listener);
    close_all(listener, fds);
    connections_caught_up();
    *ret_other = pair[1];
    return pair[0];
}

/* As libzmq calls it: where the compiler knows how long a buffer is, it may call another function. */
static ssize_t (*volatile receive)(int, void *, size_t, int) = recv;

/* Whether all of it is read, in pieces of so many bytes. */
static bool is_taken(const char *bytes, size_t n, size_t piece)
{
    static const char greeting[ZMTP_GREETING_BYTES] = {'\xff', [9] = 0x7f, 3};
    char into[64];
    int other, fd = open_one(&other);
    ck_assert_int_eq(write(other, greeting, sizeof greeting), sizeof greeting);
    ck_assert_int_eq(write(other, bytes, n), (ssize_t)n);
    for (size_t left = sizeof greeting + n; left > 0;) {
        ssize_t got = receive(fd, into, piece < left ? piece : left, 0);
        if (got <= 0) {
            ck_assert_int_eq(got, -1);
            ck_assert_int_eq(errno, ECONNRESET);
            close(fd);
            close(other);
            return false;
        }
        left -= (size_t)got;
    }
    close(fd);
    close(other);
    return true;
}

/* libzmq ends such a connection without reading from it, and any number of them in one moment. */
START_TEST(a_ping_with_a_time_ends_a_listener)
{
    static const char ready[] = "\4\6\5READY", heartbeat[] = "\4\11\4PING\0\0ab", timed[] = "\4\7\4PING\0\36",
                      long_time[] = "\4\7\4PING\1\0", large[] = "\6\0\0\0\0\0\0\0\7\4PING\0\1",
                      text[] = "\0\7\4PING\0\36", brief[] = "\4\6\4PING\0", both[] = "\0\1\1\4\7\4PING\0\36";
    for (size_t piece = 1; piece <= 64; piece += piece < 8 ? 1 : 28) {
        ck_assert(is_taken(ready, sizeof ready - 1, piece));
        ck_assert(is_taken(heartbeat, sizeof heartbeat - 1, piece));
        ck_assert(is_taken(text, sizeof text - 1, piece));
        ck_assert(!is_taken(timed, sizeof timed - 1, piece));
        ck_assert(!is_taken(long_time, sizeof long_time - 1, piece));
        ck_assert(!is_taken(large, sizeof large - 1, piece));
        ck_assert(!is_taken(brief, sizeof brief - 1, piece));
        ck_assert(!is_taken(both, sizeof both - 1, piece));
    }
}
END_TEST

/* Else its bytes would be used up after half an hour. */
START_TEST(a_heartbeat_a_second_counts_for_nothing)
{
    static const char greeting[ZMTP_GREETING_BYTES] = {'\xff', [9] = 0x7f, 3}, heartbeat[] = "\4\7\4PING\0";
    char into[sizeof heartbeat];
    int other, fd = open_one(&other);
    size_t n = 0;
    ck_assert_int_eq(write(other, greeting, sizeof greeting), sizeof greeting);
    for (size_t i = 0; i < sizeof greeting; i += 8)
        ck_assert_int_eq(receive(fd, into, 8, 0), 8);
    /* One is free, and as many more come as there are bytes for. */
    for (ssize_t got = 1; got > 0; n++) {
        ck_assert_int_eq(write(other, heartbeat, sizeof heartbeat), sizeof heartbeat);
        for (size_t left = sizeof heartbeat; left > 0 && (got = receive(fd, into, left, 0)) > 0;)
            left -= (size_t)got;
    }
    ck_assert_int_eq(errno, ECONNRESET);
    /* And one for each second that this takes. */
    const size_t counted = (INTAKE_MAX_SUBSCRIBER_BYTES - sizeof greeting) / sizeof heartbeat;
    ck_assert_uint_gt(n - 1, counted);
    ck_assert_uint_lt(n - 1, counted + 60);
    close(fd);
    close(other);
}
END_TEST

/* Whatever libzmq ends them for counts, and who subscribed is not read meanwhile: a frame that is none would
 * end him too. */
START_TEST(listeners_that_are_ended_for_any_reason_are_counted)
{
    int fds[N], other, fd = open_one(&other);
    char byte = '\xff'; /* as a greeting begins */
    int listener = open_ended(INTAKE_SUBSCRIPTIONS, fds);
    ck_assert(intake_stands(fd));
    connections_caught_up();
    for (int i = 0; i < INTAKE_ENDS_AT_ONCE; i++)
        close(fds[i]);
    ck_assert_int_eq(write(other, &byte, 1), 1);
    ck_assert_int_eq(recv(fd, &byte, 1, 0), -1);
    ck_assert_int_eq(errno, EAGAIN);
    connections_caught_up();
    ck_assert_int_eq(recv(fd, &byte, 1, 0), 1);
    close(fd);
    close(other);
    close_all_of(fds + INTAKE_ENDS_AT_ONCE, N - INTAKE_ENDS_AT_ONCE);
    close(listener);
}
END_TEST

static bool is_open(int other)
{
    char byte;
    return recv(other, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

START_TEST(connections_that_nobody_uses_are_closed_in_time)
{
    enum { USED, UNUSED, CASES };
    uint64_t now = clock_ns(), later = now + (INTAKE_UNUSED_S + 1) * CLOCK_NS_PER_S, closed[INTAKE_REASONS];
    int fds[N], pair[CASES][2], other[CASES];
    int listener = open_ended(INTAKE_MESSAGES, fds);
    for (int i = 0; i < CASES; i++) {
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair[i]), 0);
        intake_accepted(pair[i][0], listener);
    }
    close_all(listener, fds);
    int subscriber = open_one(&other[USED]), mute = open_one(&other[UNUSED]);
    ck_assert(intake_stands(subscriber)); /* the loop has taken what it subscribed to */
    intake_close_unused(now + (INTAKE_UNUSED_S - 1) * CLOCK_NS_PER_S);
    intake_stood_still(now + 2 * CLOCK_NS_PER_S); /* and could not have heard */
    intake_close_unused(later);
    ck_assert(is_open(pair[UNUSED][1]) && is_open(other[UNUSED]));
    later += 30 * CLOCK_NS_PER_S; /* and as long as it took to make them */
    intake_used(pair[USED][0], later - CLOCK_NS_PER_S);
    intake_close_unused(later);
    ck_assert(is_open(pair[USED][1]) && is_open(other[USED]));
    ck_assert(!is_open(pair[UNUSED][1]) && !is_open(other[UNUSED]));
    intake_closed(closed);
    ck_assert_uint_eq(closed[INTAKE_UNUSED], 2);
    for (int i = 0; i < CASES; i++) {
        close(pair[i][0]);
        close(pair[i][1]);
        close(other[i]);
    }
    close(subscriber);
    close(mute);
}
END_TEST

/* The shard whose listener takes the connection that waits, which is closed by the caller. */
static int take_next(const int listeners[], int n, int *ret_fd)
{
    int taker = -1;
    connections_caught_up();
    for (int i = 0; i < n; i++) {
        int fd = accept4(listeners[i], NULL, NULL, SOCK_NONBLOCK);
        if (fd < 0) {
            ck_assert_int_eq(errno, EAGAIN);
            continue;
        }
        ck_assert_int_eq(taker, -1);
        taker = i;
        *ret_fd = fd;
    }
    return taker;
}

START_TEST(subscribers_are_spread_over_the_shards)
{
    enum { SHARDS = 3, PEERS = 12 };
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t len = sizeof address;
    int listeners[SHARDS], peers[PEERS], taken[PEERS], takers[PEERS], n[SHARDS] = {0};
    listeners[0] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    ck_assert_int_eq(bind(listeners[0], (struct sockaddr *)&address, sizeof(sa_family_t)), 0);
    ck_assert_int_eq(getsockname(listeners[0], (struct sockaddr *)&address, &len), 0);
    intake_listen_for(INTAKE_SUBSCRIPTIONS);
    ck_assert_int_eq(listen(listeners[0], PEERS), 0);
    for (unsigned i = 1; i < SHARDS; i++)
        ck_assert_int_ge(listeners[i] = intake_share_listener(i), 0);
    for (int i = 0; i < PEERS; i++) {
        peers[i] = socket(AF_UNIX, SOCK_STREAM, 0);
        ck_assert_int_eq(connect(peers[i], (struct sockaddr *)&address, len), 0);
        takers[i] = take_next(listeners, SHARDS, &taken[i]);
        ck_assert_int_ge(takers[i], 0);
        n[takers[i]]++;
    }
    for (int i = 0; i < SHARDS; i++)
        ck_assert_int_eq(n[i], PEERS / SHARDS);
    /* The one that lost some gets the next. */
    int lost = takers[0];
    for (int i = 0; i < PEERS; i++)
        if (takers[i] == lost)
            close(taken[i]);
    for (int i = 0; i < PEERS; i++) {
        close(peers[i]);
        if (takers[i] != lost)
            continue;
        taken[i] = -1;
        peers[i] = socket(AF_UNIX, SOCK_STREAM, 0);
        ck_assert_int_eq(connect(peers[i], (struct sockaddr *)&address, len), 0);
        ck_assert_int_eq(take_next(listeners, SHARDS, &taken[i]), lost);
        close(peers[i]);
    }
    close_all_of(taken, PEERS);
    close_all_of(listeners, SHARDS);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, subscribers_are_spread_over_the_shards);
    tcase_add_test(tests, listeners_that_leave_together_are_let_go_a_few_at_a_time);
    tcase_add_test(tests, a_ping_with_a_time_ends_a_listener);
    tcase_add_test(tests, a_heartbeat_a_second_counts_for_nothing);
    tcase_add_test(tests, connections_that_nobody_uses_are_closed_in_time);
    tcase_add_test(tests, listeners_that_are_ended_for_any_reason_are_counted);
    tcase_add_test(tests, clients_and_others_leave_when_they_like);
}

int main(void)
{
    return run_tests("broker/intake", add);
}
