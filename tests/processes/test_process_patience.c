/* SPDX-License-Identifier: MIT */
/* The broker as a process, beside connections that are of no use: for how long it bears them. They are borne
 * together, since the longest takes a minute. */

#include "tests/processes/client.h"
#include "tests/unit/run.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "broker/wire/intake.h"
#include "common/clock.h"
#include "tests/integration/support/zmtp.h"

enum { MUTE = 4, SLOW = 2, STRANGERS = 2, MUTE_LEAST_S = 5, STRANGERS_LEAST_S = INTAKE_UNUSED_S - 10 };

static uint64_t begun;

static unsigned seconds(void)
{
    return (unsigned)((clock_ns() - begun) / CLOCK_NS_PER_S);
}

/* How many of them are open; those that are closed become -1. */
static int count_open(int fds[], int n)
{
    int open = 0;
    for (int i = 0; i < n; i++) {
        if (fds[i] >= 0 && zmtp_closes(fds[i], 0)) {
            close(fds[i]);
            fds[i] = -1;
        }
        open += fds[i] >= 0;
    }
    return open;
}

/* Says something, and waits until one of these is closed, or it is time to say something again. */
static void stay_there(const int fds[], int n)
{
    struct pollfd looked[MUTE + SLOW + STRANGERS];
    struct message ping = {.kind = MESSAGE_PING};
    client_send(&client_a, &ping);
    client_expect(&client_a, MESSAGE_PONG);
    for (int i = 0; i < n; i++)
        looked[i] = (struct pollfd){.fd = fds[i], .events = POLLRDHUP};
    poll(looked, (nfds_t)n, 500);
}

START_TEST(who_does_not_say_who_it_is_or_has_no_session_is_closed_in_time_and_who_has_one_is_not)
{
    static const char greeting[64] = {'\xff', 0, 0, 0, 0, 0, 0, 0, 0, 0x7f, 3, 0, 'N', 'U', 'L', 'L'};
    int mute[MUTE + SLOW];
    uint64_t count;
    open_pool(NULL);
    begun = clock_ns();
    for (int i = 0; i < MUTE + SLOW; i++)
        mute[i] = zmtp_connect(the_pool.rundir, i % 2 ? "frontend" : "stream");
    int strangers[STRANGERS] = {zmtp_open(the_pool.rundir, "frontend", "DEALER"),
                                zmtp_open(the_pool.rundir, "stream", "SUB")};
    for (size_t sent = 0; count_open(mute, MUTE + SLOW) > 0; sent++) {
        for (int i = MUTE; i < MUTE + SLOW && sent < sizeof greeting; i++) /* so slowly that it is the same */
            (void)!send(mute[i], greeting + sent, 1, MSG_NOSIGNAL);
        stay_there(mute, MUTE + SLOW);
        ck_assert_uint_lt(seconds(), PATIENCE_S);
    }
    ck_assert_uint_ge(seconds(), MUTE_LEAST_S); /* and not for another reason */
    while (count_open(strangers, STRANGERS) > 0) {
        stay_there(strangers, STRANGERS);
        /* Where it stood still, as on a machine that is busy, the broker begins to count again. */
        ck_assert_msg(seconds() < INTAKE_UNUSED_S + PATIENCE_S || strstr(pool_log(&the_pool), "stalled"),
                      "%s", pool_log(&the_pool));
    }
    ck_assert_uint_ge(seconds(), STRANGERS_LEAST_S);
    /* In one line or in two, if the broker looked between them. */
    ck_assert(pool_says(&the_pool, "for violations (2 in all)", PATIENCE_S));
    client_generate(&client_a, 'r', "count 10", NULL);
    ck_assert_int_eq(client_read(&client_a, 'r', &count, NULL), END_LENGTH);
    close_pool();
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 230);
    tcase_add_test(tests,
                   who_does_not_say_who_it_is_or_has_no_session_is_closed_in_time_and_who_has_one_is_not);
}

int main(void)
{
    return run_tests("broker process: patience", add);
}
