/* SPDX-License-Identifier: MIT */
/* How many connections a limit of open files leaves room for. */

#include "broker/wire/connections.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static uint32_t most_with(rlim_t soft, rlim_t hard)
{
    struct rlimit limit = {soft, hard};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    return connections_raise_limit();
}

/* Limits only go down here: what is lowered cannot be raised again by everyone. */
START_TEST(a_part_of_the_descriptors_stays_ours)
{
    struct rlimit limit;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_max >= 4096)
        ck_assert_uint_eq(most_with(4096, 4096), 4096 - 512);
    ck_assert_uint_eq(most_with(1000, 1000), 750); /* a quarter, where that is less */
    ck_assert_uint_eq(most_with(100, 100), 75);
}
END_TEST

START_TEST(the_limit_is_raised_as_far_as_it_may_be)
{
    struct rlimit limit;
    ck_assert_uint_eq(most_with(100, 1000), 750);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_uint_eq(limit.rlim_cur, 1000);
}
END_TEST

/* How many are accepted of those that wait, until there is no more or no more may be. */
static int accept_all(int listener, int ret_fds[])
{
    int n = 0;
    while ((ret_fds[n] = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0)
        n++;
    ck_assert_int_eq(errno, EAGAIN);
    return n;
}

START_TEST(many_that_come_at_once_are_accepted_as_the_loop_keeps_up)
{
    enum { AT_ONCE = 64, N = AT_ONCE + 10 };
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t len = sizeof address;
    int peers[N], taken[N + 1], n;
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, sizeof(sa_family_t)), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &len), 0);
    ck_assert_int_eq(listen(listener, N), 0);
    connections_raise_limit();
    connections_caught_up();
    for (int i = 0; i < N; i++) {
        peers[i] = socket(AF_UNIX, SOCK_STREAM, 0);
        ck_assert_int_eq(connect(peers[i], (struct sockaddr *)&address, len), 0);
    }
    ck_assert_int_eq(n = accept_all(listener, taken), AT_ONCE);
    ck_assert_int_eq(accept_all(listener, taken + n), 0);
    connections_caught_up();
    ck_assert_int_eq(n += accept_all(listener, taken + n), N);
    for (int i = 0; i < N; i++) {
        close(peers[i]);
        close(taken[i]);
    }
    close(listener);
}
END_TEST

/* A listener for whoever connects to *ret_address. */
static int listen_at(struct sockaddr_un *ret_address, socklen_t *ret_len)
{
    *ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
    *ret_len = sizeof *ret_address;
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)ret_address, sizeof(sa_family_t)), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)ret_address, ret_len), 0);
    ck_assert_int_eq(listen(listener, 8), 0);
    return listener;
}

START_TEST(beyond_the_bound_a_connection_is_closed_at_once)
{
    enum { FILES = 200, BOUND = 150 };
    struct sockaddr_un address;
    struct rlimit before;
    socklen_t len;
    int fds[FILES], peers[3], n = 0, last;
    char byte;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    int listener = listen_at(&address, &len);
    for (int i = 0; i < 3; i++) {
        peers[i] = socket(AF_UNIX, SOCK_STREAM, 0);
        ck_assert_int_eq(connect(peers[i], (struct sockaddr *)&address, len), 0);
    }
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &(struct rlimit){FILES, before.rlim_max}), 0);
    connections_caught_up();
    do
        ck_assert_int_ge(fds[n] = dup(listener), 0);
    while (fds[n++] < BOUND - 2);
    ck_assert_int_eq(last = accept4(listener, NULL, NULL, SOCK_NONBLOCK), BOUND - 1);
    ck_assert_int_eq(accept4(listener, NULL, NULL, SOCK_NONBLOCK), -1);
    ck_assert_int_eq(errno, ECONNABORTED);
    ck_assert_int_eq(read(peers[1], &byte, 1), 0);
    /* Without a descriptor for it, it is the same to libzmq. */
    while ((fds[n] = dup(listener)) >= 0)
        n++;
    ck_assert_int_eq(accept4(listener, NULL, NULL, SOCK_NONBLOCK), -1);
    ck_assert_int_eq(errno, ECONNABORTED);
    for (int i = 0; i < n; i++)
        close(fds[i]);
    for (int i = 0; i < 3; i++)
        close(peers[i]);
    close(last);
    close(listener);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, many_that_come_at_once_are_accepted_as_the_loop_keeps_up);
    tcase_add_test(tests, beyond_the_bound_a_connection_is_closed_at_once);
    tcase_add_test(tests, the_limit_is_raised_as_far_as_it_may_be);
    tcase_add_test(tests, a_part_of_the_descriptors_stays_ours); /* last: see above */
}

int main(void)
{
    return run_tests("broker/connections", add);
}
