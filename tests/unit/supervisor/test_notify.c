/* SPDX-License-Identifier: MIT */
/* What a service manager hears on a socket of the test's own, at times of the test's own. */

#include "supervisor/notify.h"
#include "common/clock.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MS CLOCK_NS_PER_MS

/* An abstract socket; `ret_name` is what $NOTIFY_SOCKET says. */
static int manager_open(char ret_name[64])
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(ret_name, 64, "@quern-test-notify-%d", getpid());
    memcpy(address.sun_path, ret_name, strlen(ret_name));
    address.sun_path[0] = 0;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(ret_name))),
                     0);
    return fd;
}

/* The next datagram, which is there or never comes: "" when none is. */
static const char *heard(int manager)
{
    static char text[512];
    ssize_t n = recv(manager, text, sizeof text - 1, MSG_DONTWAIT);
    text[n > 0 ? n : 0] = 0;
    return text;
}

static void surroundings(const char *name, const char *usec, const char *pid)
{
    const char *const names[] = {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"};
    const char *const values[] = {name, usec, pid};
    for (int i = 0; i < 3; i++)
        if (values[i])
            setenv(names[i], values[i], 1);
        else
            unsetenv(names[i]);
}

START_TEST(the_manager_hears_each_state_once)
{
    char name[64];
    struct notify notify;
    struct notify_state state = {.workers = 2};
    int manager = manager_open(name);
    surroundings(name, NULL, NULL);
    ck_assert_int_eq(notify_init(&notify, NULL), 0);
    notify_turn(&notify, &state, 1);
    ck_assert_str_eq(heard(manager), "STATUS=0 of 2 workers ready\n");
    notify_turn(&notify, &state, 2);
    ck_assert_str_eq(heard(manager), "");
    ck_assert_uint_eq(notify_due(&notify, 2), UINT64_MAX);
    state.ready = true;
    state.workers_ready = 1;
    notify_turn(&notify, &state, 3);
    ck_assert_str_eq(heard(manager), "READY=1\nSTATUS=1 of 2 workers ready\n");
    state.stopping = true;
    notify_turn(&notify, &state, 4);
    ck_assert_str_eq(heard(manager),
                     "READY=1\nSTOPPING=1\nSTATUS=Ends what was asked; 1 of 2 workers ready\n");
    notify_turn(&notify, &state, 5);
    ck_assert_str_eq(heard(manager), "");
    notify_deinit(&notify);
    close(manager);
}
END_TEST

START_TEST(signs_of_life_come_at_half_of_what_the_watchdog_allows)
{
    char name[64], pid[16];
    struct notify notify;
    struct notify_state state = {.workers = 1};
    int manager = manager_open(name);
    snprintf(pid, sizeof pid, "%d", getpid());
    surroundings(name, "3000000", pid);
    ck_assert_int_eq(notify_init(&notify, NULL), 0);
    notify_turn(&notify, &state, 1000 * MS);
    ck_assert_str_eq(heard(manager), "STATUS=0 of 1 worker ready\n");
    ck_assert_str_eq(heard(manager), "WATCHDOG=1\n");
    ck_assert_uint_eq(notify_due(&notify, 1000 * MS), 2500 * MS);
    notify_turn(&notify, &state, 2499 * MS);
    ck_assert_str_eq(heard(manager), "");
    notify_turn(&notify, &state, 2500 * MS);
    ck_assert_str_eq(heard(manager), "WATCHDOG=1\n");
    ck_assert_uint_eq(notify_due(&notify, 2500 * MS), 4000 * MS);
    notify_deinit(&notify);
    close(manager);
}
END_TEST

START_TEST(a_watchdog_of_another_process_gets_no_signs_of_life)
{
    char name[64];
    struct notify notify;
    struct notify_state state = {.workers = 1};
    int manager = manager_open(name);
    surroundings(name, "3000000", "1");
    ck_assert_int_eq(notify_init(&notify, NULL), 0);
    notify_turn(&notify, &state, 1000 * MS);
    ck_assert_str_eq(heard(manager), "STATUS=0 of 1 worker ready\n");
    ck_assert_str_eq(heard(manager), "");
    notify_deinit(&notify);
    close(manager);
}
END_TEST

START_TEST(what_a_full_socket_did_not_take_is_told_later_as_it_is_by_then)
{
    char name[64];
    struct notify notify;
    struct notify_state state = {.workers = 1000};
    int manager = manager_open(name);
    surroundings(name, "2000000", NULL);
    ck_assert_int_eq(notify_init(&notify, NULL), 0);
    uint64_t now = 1;
    while (!notify.behind || state.workers_ready == 0) { /* until it is full */
        state.workers_ready++;
        ck_assert_uint_lt(state.workers_ready, 1000000);
        notify_turn(&notify, &state, ++now);
    }
    state.ready = true;
    notify_turn(&notify, &state, ++now);
    ck_assert(notify.behind);
    ck_assert_uint_le(notify_due(&notify, now), now + 100 * MS);
    while (heard(manager)[0])
        ;
    now += 2000 * MS;
    notify_turn(&notify, &state, now);
    char last[128];
    snprintf(last, sizeof last, "READY=1\nSTATUS=%u of 1000 workers ready\n", state.workers_ready);
    ck_assert_str_eq(heard(manager), last);
    ck_assert_str_eq(heard(manager), "WATCHDOG=1\n");
    ck_assert_uint_eq(notify_due(&notify, now), now + 1000 * MS);
    notify_deinit(&notify);
    close(manager);
}
END_TEST

START_TEST(without_a_manager_nothing_is_told_and_nothing_due)
{
    static const char *const none[] = {NULL, ""};
    for (int i = 0; i < 2; i++) {
        struct notify notify;
        struct notify_state state = {.ready = true};
        surroundings(none[i], "3000000", NULL);
        ck_assert_int_eq(notify_init(&notify, NULL), 0);
        ck_assert_int_lt(notify.fd, 0);
        notify_turn(&notify, &state, 1);
        ck_assert_uint_eq(notify_due(&notify, 1), UINT64_MAX);
        notify_deinit(&notify);
    }
}
END_TEST

START_TEST(a_manager_that_has_gone_is_no_reason_to_wait_or_end)
{
    char name[64];
    struct notify notify;
    struct notify_state state = {.ready = true};
    close(manager_open(name));
    surroundings(name, NULL, NULL);
    ck_assert_int_eq(notify_init(&notify, NULL), 0);
    notify_turn(&notify, &state, 1);
    ck_assert(notify.behind);
    int manager = manager_open(name); /* one that was started anew */
    notify_turn(&notify, &state, 2);
    ck_assert_str_eq(heard(manager), "READY=1\nSTATUS=0 of 0 workers ready\n");
    notify_deinit(&notify);
    close(manager);
}
END_TEST

START_TEST(children_inherit_nothing_of_it)
{
    char name[64];
    struct notify notify;
    int manager = manager_open(name);
    surroundings(name, "3000000", "1");
    ck_assert_int_eq(notify_init(&notify, NULL), 0);
    ck_assert_ptr_null(getenv("NOTIFY_SOCKET"));
    ck_assert_ptr_null(getenv("WATCHDOG_USEC"));
    ck_assert_ptr_null(getenv("WATCHDOG_PID"));
    notify_deinit(&notify);
    close(manager);
}
END_TEST

START_TEST(what_cannot_be_understood_is_named)
{
    char long_path[200] = "/";
    memset(long_path + 1, 'a', sizeof long_path - 2);
    const struct {
        const char *name, *usec, *pid, *says;
        int r;
    } wrong[] = {
        {"vsock:2:1234", NULL, NULL, "NOTIFY_SOCKET: \"vsock:2:1234\"", -EAFNOSUPPORT},
        {long_path, NULL, NULL, "NOTIFY_SOCKET: length 199 is out of range 2..", -EINVAL},
        {"@", NULL, NULL, "NOTIFY_SOCKET: length 1 is out of range 2..", -EINVAL},
        {"@a", "soon", NULL, "WATCHDOG_USEC: \"soon\"", -EINVAL},
        {"@a", "0", NULL, "WATCHDOG_USEC: 0 is out of range", -EINVAL},
        {"@a", "18446744073709551615", NULL, "WATCHDOG_USEC: 18446744073709551615 is out of range", -EINVAL},
        {"@a", "1000", "me", "WATCHDOG_PID: \"me\"", -EINVAL},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct notify notify;
        struct error err = {{0}};
        surroundings(wrong[i].name, wrong[i].usec, wrong[i].pid);
        ck_assert_int_eq(notify_init(&notify, &err), wrong[i].r);
        ck_assert_msg(strstr(err.text, wrong[i].says) == err.text, "%s", err.text);
        ck_assert_int_lt(notify.fd, 0);
    }
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, the_manager_hears_each_state_once);
    tcase_add_test(tests, signs_of_life_come_at_half_of_what_the_watchdog_allows);
    tcase_add_test(tests, a_watchdog_of_another_process_gets_no_signs_of_life);
    tcase_add_test(tests, what_a_full_socket_did_not_take_is_told_later_as_it_is_by_then);
    tcase_add_test(tests, without_a_manager_nothing_is_told_and_nothing_due);
    tcase_add_test(tests, a_manager_that_has_gone_is_no_reason_to_wait_or_end);
    tcase_add_test(tests, children_inherit_nothing_of_it);
    tcase_add_test(tests, what_cannot_be_understood_is_named);
}

int main(void)
{
    return run_tests("supervisor/notify", add);
}
