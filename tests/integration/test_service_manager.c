/* SPDX-License-Identifier: MIT */
/* What a service manager hears of a real pool, on a socket of the test's own. */

#include "tests/integration/support/pool.h"
#include "tests/unit/run.h"

#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/clock.h"

#define WATCHDOG_US 200000

static struct pool pool;
static int manager = -1;
static char last[512]; /* what was heard last */

static void open_manager(void)
{
    char name[64], watchdog[16];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(name, sizeof name, "@quern-test-manager-%d", getpid());
    memcpy(address.sun_path, name, strlen(name));
    address.sun_path[0] = 0;
    manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(manager, (struct sockaddr *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))),
                     0);
    setenv("NOTIFY_SOCKET", name, 1);
    snprintf(watchdog, sizeof watchdog, "%d", WATCHDOG_US);
    setenv("WATCHDOG_USEC", watchdog, 1);
}

static void forget(void)
{
    pool_forget(&pool);
    close(manager);
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
}

static bool hear(int flags)
{
    ssize_t n = recv(manager, last, sizeof last - 1, flags);
    last[n > 0 ? n : 0] = 0;
    return n > 0;
}

/* Listens until it is told so, or for a minute. */
static bool hears(const char *text)
{
    uint64_t until = clock_ns() + 60 * CLOCK_NS_PER_S;
    while (clock_ns() < until) {
        if (!hear(MSG_DONTWAIT))
            usleep(5000);
        else if (strstr(last, text))
            return true;
    }
    return false;
}

START_TEST(the_manager_hears_of_readiness_and_of_the_end)
{
    pool_spawn(&pool, tiny_model(), "--workers", "2", NULL);
    ck_assert_msg(hears("STATUS=0 of 2 workers ready\n"), "%s", pool_log(&pool));
    ck_assert_ptr_null(strstr(last, "READY=1"));
    /* One is enough. On a busy machine the supervisor may hear of both in one turn. */
    ck_assert(hears("STATUS="));
    ck_assert_msg(strncmp(last, "READY=1\nSTATUS=", 15) == 0, "%s", last);
    ck_assert(strstr(last, "STATUS=2 of 2") || hears("READY=1\nSTATUS=2 of 2 workers ready\n"));
    ck_assert_int_eq(kill(pool.broker, SIGTERM), 0);
    ck_assert(hears("STOPPING=1\n"));
    ck_assert_int_eq(pool_wait(&pool, 60), 0);
}
END_TEST

/* Until the signal has reached it, which may take a while on a busy machine. */
static void await_stopped(pid_t pid)
{
    char path[64], state;
    uint64_t until = clock_ns() + 60 * CLOCK_NS_PER_S;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    do {
        FILE *file = fopen(path, "r");
        ck_assert_ptr_nonnull(file);
        ck_assert_int_eq(fscanf(file, "%*d (%*[^)]) %c", &state), 1);
        fclose(file);
        usleep(10000);
    } while (state != 'T' && clock_ns() < until);
    ck_assert_int_eq(state, 'T');
}

START_TEST(a_supervisor_that_stands_still_gives_no_sign_of_life)
{
    pool_start(&pool, tiny_model(), NULL);
    ck_assert(hears("WATCHDOG=1\n"));
    ck_assert(hears("WATCHDOG=1\n"));
    ck_assert_int_eq(kill(pool.broker, SIGSTOP), 0);
    await_stopped(pool.broker);
    while (hear(MSG_DONTWAIT)) /* what was said before it stood still */
        ;
    usleep(3 * WATCHDOG_US / 2); /* three signs would have come */
    ck_assert_msg(!hear(MSG_DONTWAIT), "%s", last);
    ck_assert_int_eq(kill(pool.broker, SIGCONT), 0);
    ck_assert(hears("WATCHDOG=1\n"));
    ck_assert_int_eq(pool_stop(&pool, SIGTERM, 60), 0);
}
END_TEST

START_TEST(workers_that_die_make_a_pool_no_less_ready)
{
    pid_t pid;
    pool_start(&pool, tiny_model(), NULL);
    ck_assert(hears("READY=1\nSTATUS=1 of 1 worker ready\n"));
    ck_assert_int_eq(pool_worker_pids(&pool, &pid, 1), 1);
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert(hears("READY=1\nSTATUS=0 of 1 worker ready\n"));
    ck_assert(hears("READY=1\nSTATUS=1 of 1 worker ready\n"));
    ck_assert_int_eq(pool_stop(&pool, SIGTERM, 60), 0);
}
END_TEST

START_TEST(a_manager_that_cannot_be_told_is_an_error_by_name)
{
    setenv("NOTIFY_SOCKET", "vsock:2:99", 1);
    ck_assert_int_eq(pool_fails(&pool, 60, tiny_model(), NULL), 1);
    ck_assert(pool_says(&pool, "NOTIFY_SOCKET: \"vsock:2:99\" is neither", 0));
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_checked_fixture(tests, open_manager, forget);
    tcase_add_test(tests, the_manager_hears_of_readiness_and_of_the_end);
    tcase_add_test(tests, a_supervisor_that_stands_still_gives_no_sign_of_life);
    tcase_add_test(tests, workers_that_die_make_a_pool_no_less_ready);
    tcase_add_test(tests, a_manager_that_cannot_be_told_is_an_error_by_name);
}

int main(void)
{
    return run_tests("service_manager", add);
}
