/* SPDX-License-Identifier: MIT */
/* What stands in for recv(2), from where libzmq calls it. */

#include "tests/unit/run.h"

#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "broker/connections.h"
#include "broker/intake.h"

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

static int polled; /* an epoll of nothing */

static void *look(void *counted)
{
    char byte;
    struct epoll_event event;
    if (counted)
        recv(*(int *)counted, &byte, 1, 0);
    ck_assert_int_eq(epoll_wait(polled, &event, 1, 0), 0);
    return NULL;
}

/* In a thread of its own, which has read from that connection; NULL: from none. */
static void look_in_thread(int *counted)
{
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, look, counted), 0);
    pthread_join(thread, NULL);
}

START_TEST(the_loop_knows_whether_all_connections_were_looked_at)
{
    int fds[N];
    int listener = open_ended(INTAKE_MESSAGES, fds);
    ck_assert_int_ge(polled = epoll_create1(EPOLL_CLOEXEC), 0);
    uint32_t stamp = intake_stamp();
    ck_assert(!intake_looked_since(stamp));
    look_in_thread(NULL); /* not the one that reads */
    ck_assert(!intake_looked_since(stamp));
    look_in_thread(&fds[0]);
    ck_assert(intake_looked_since(stamp));
    ck_assert(!intake_looked_since(intake_stamp()));
    close(polled);
    close_all(listener, fds);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, the_loop_knows_whether_all_connections_were_looked_at);
    tcase_add_test(tests, subscribers_are_spread_over_the_shards);
    tcase_add_test(tests, listeners_that_leave_together_are_let_go_a_few_at_a_time);
    tcase_add_test(tests, clients_and_others_leave_when_they_like);
}

int main(void)
{
    return run_tests("broker/intake", add);
}
