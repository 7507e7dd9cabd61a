/* SPDX-License-Identifier: MIT */
/* What stands in for recv(2), from where libzmq calls it. */

#include "tests/unit/run.h"

#include <errno.h>
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

static void close_all(int listener, const int fds[N])
{
    for (int i = 0; i < N; i++)
        close(fds[i]);
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

static void add(TCase *tests)
{
    tcase_add_test(tests, listeners_that_leave_together_are_let_go_a_few_at_a_time);
    tcase_add_test(tests, clients_and_others_leave_when_they_like);
}

int main(void)
{
    return run_tests("broker/intake", add);
}
