/* SPDX-License-Identifier: MIT */
/* A pool in which one call fails, at one place after the other: its client gets every answer whole, or a
 * verdict by name, and nothing crashes. A broker may abort where a hash table cannot grow: the next one takes
 * over.
 *
 * A few places of each kind, spread over all that the scenario passes; with $QUERN_FAULTS_ALL each of them.
 */

#include "tests/integration/answer.h"
#include "tests/integration/pool.h"
#include "tests/unit/faults/fault.h"
#include "tests/unit/run.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"

#define PATIENCE_S 60
#define REQUESTS   4
#define TOKENS     30

static struct pool pool;
static char fired_file[RUNDIR_PATH_MAX + 16];
static int last_status; /* with which the last pool ended */

static bool has_fired(void)
{
    return access(fired_file, F_OK) == 0;
}

static void arm(const char *role, enum fault_kind kind, unsigned n)
{
    char text[256];
    ck_assert_int_eq(rundir_temporary(pool.rundir, NULL), 0);
    snprintf(fired_file, sizeof fired_file, "%s.fired", pool.rundir);
    snprintf(text, sizeof text, "%s:%s:%u:%s", role, fault_kind_name(kind), n, fired_file);
    setenv("QUERN_FAULT", text, 1);
    pool.programs = "tests/unit/faults";
}

static const char *fake_model(void)
{
    static char path[RUNDIR_PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/model", pool.rundir);
    FILE *file = fopen(path, "w");
    fputs("ok", file);
    fclose(file);
    return path;
}

/* The line that says so may be what could not be written. */
static bool serves_or_ended(int *ret_status)
{
    const char *frontend = pool.frontend + strlen("ipc://");
    for (uint64_t until = clock_ns() + PATIENCE_S * CLOCK_NS_PER_S; clock_ns() < until; usleep(2000)) {
        if (pool_ended(&pool, ret_status))
            return false;
        if (access(frontend, F_OK) == 0)
            return true;
    }
    ck_abort_msg("it neither serves nor ended:\n%s", pool_log(&pool));
}

/* Answers of the fake worker: ids 0, 1, 2 … */
static void expect_whole_or_told(const struct answer *answer, const char *what)
{
    if (answer->reason == QUERN_ERROR) {
        ck_assert_msg(answer->error[0] && answer->error_text[0], "%s: an error without a word", what);
        return;
    }
    ck_assert_msg(answer->reason == QUERN_LENGTH && answer->ids.len == TOKENS,
                  "%s: %zu ids, ended by %d:\n%s", what, answer->ids.len, answer->reason, pool_log(&pool));
    for (int i = 0; i < TOKENS; i++)
        ck_assert_int_eq(answer->ids.data[i], i);
}

/* How many were answered. */
static uint64_t ask_for_all(struct quern *client, const char *what)
{
    struct quern_error err = {0};
    struct answer answers[REQUESTS] = {0};
    uint64_t whole = 0;
    for (int i = 0; i < REQUESTS; i++) {
        struct quern_request request = endless("count 30", TOKENS);
        ck_assert_int_eq(quern_generate(client, &request, answer_collect, &answers[i], NULL, &err), 0);
    }
    await_answers(client, answers, REQUESTS, PATIENCE_S);
    for (int i = 0; i < REQUESTS; i++) {
        expect_whole_or_told(&answers[i], what);
        whole += answers[i].reason != QUERN_ERROR;
        answer_deinit(&answers[i]);
    }
    return whole;
}

/* Another broker takes over, and what has ended is still known to whoever comes last. */
static void take_over(struct quern *client, uint64_t ended, const char *what)
{
    const struct quern_status *status;
    struct quern_error err = {0};
    char next[sizeof fired_file + 8];
    snprintf(next, sizeof next, "%s.next", fired_file);
    fclose(fopen(next, "w"));
    ck_assert_int_eq(kill(pool_broker_pid(&pool), SIGKILL), 0);
    ended += ask_for_all(client, what);
    if (quern_status(client, PATIENCE_S * 1000, &status, &err) != 0) {
        ck_assert_msg(strstr(err.text, "lacks memory"), "%s: %s\n%s", what, err.text, pool_log(&pool));
        unlink(next);
        return;
    }
    ck_assert_msg(status->ended >= ended, "%s: %llu of %llu are known:\n%s", what,
                  (unsigned long long)status->ended, (unsigned long long)ended, pool_log(&pool));
    unlink(next);
}

static void use_pool(const char *role, const char *what)
{
    struct quern *client = NULL;
    struct quern_error err = {0};
    if (quern_connect(pool.frontend, PATIENCE_S * 1000, &client, &err) != 0) {
        ck_assert_msg(err.text[0], "%s: no connection, and no word", what);
        return;
    }
    uint64_t ended = ask_for_all(client, what);
    if (strcmp(role, "next") == 0)
        take_over(client, ended, what);
    quern_free(client);
}

/* True when the n-th call of the kind was made. */
static bool run_with(const char *role, enum fault_kind kind, unsigned n)
{
    int status = 0;
    char what[64];
    snprintf(what, sizeof what, "%s, %s %u", role, fault_kind_name(kind), n);
    arm(role, kind, n);
    pool_spawn(&pool, fake_model(), "--workers", "2", NULL);
    unsetenv("QUERN_FAULT");
    if (serves_or_ended(&status)) {
        use_pool(role, what);
        status = pool_stop(&pool, SIGTERM, PATIENCE_S);
    }
    const char *log = pool_log(&pool);
    ck_assert_msg(status == 0 || status == 1, "%s, %s %u: exit status %d:\n%s", role, fault_kind_name(kind),
                  n, status, log);
    ck_assert_msg(status == 0 || log[0], "%s: it ended without a word", what);
    ck_assert_msg(!strstr(log, "(Segmentation fault)") && !strstr(log, "(Bus error)"), "%s:\n%s", what, log);
    bool fired = has_fired();
    last_status = status;
    unlink(fired_file);
    pool_forget(&pool);
    return fired;
}

static void run_kind(const char *role, enum fault_kind kind, unsigned few)
{
    unsigned step = 1, n = 0;
    bool all = getenv("QUERN_FAULTS_ALL") != NULL;
    for (unsigned k = 1; run_with(role, kind, k); k += step, n++)
        if (!all && n > 0 && n % few == 0)
            step *= 3;
    ck_assert_uint_gt(n, 0);
}

static void forget(void)
{
    pool_forget(&pool);
    unlink(fired_file);
}

START_TEST(the_broker_lacks_memory)
{
    run_kind("broker", FAULT_MEMORY, 2);
}
END_TEST

START_TEST(a_broker_that_takes_over_lacks_memory)
{
    run_kind("next", FAULT_MEMORY, 5);
}
END_TEST

START_TEST(the_broker_lacks_descriptors_and_mappings)
{
    run_kind("broker", FAULT_DESCRIPTORS, 2);
    run_kind("broker", FAULT_MAPPING, 2);
}
END_TEST

START_TEST(the_broker_lacks_space)
{
    run_kind("broker", FAULT_SPACE, 2);
    run_kind("broker", FAULT_SHORT, 2);
}
END_TEST

/* Bounds and rights rest on what they are told when they are made: a context, three sockets with five options
 * and more each, three endpoints. */
START_TEST(a_broker_whose_sockets_are_not_as_they_should_be_does_not_serve)
{
    for (unsigned n = 1; n <= 21; n += 2) {
        ck_assert(run_with("broker", FAULT_SOCKETS, n));
        ck_assert_msg(last_status == 1, "it serves without its %uth call", n);
    }
}
END_TEST

START_TEST(the_brokers_sockets_fail)
{
    run_kind("broker", FAULT_SOCKETS, 2);
    run_kind("broker", FAULT_SENDING, 2);
    run_kind("broker", FAULT_RECEIVING, 1);
}
END_TEST

START_TEST(the_supervisor_lacks_whatever_it_asks_for)
{
    run_kind("supervisor", FAULT_MEMORY, 2);
    run_kind("supervisor", FAULT_DESCRIPTORS, 2);
    run_kind("supervisor", FAULT_SPACE, 2);
    run_kind("supervisor", FAULT_MAPPING, 2);
    run_kind("supervisor", FAULT_SHORT, 2);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 600);
    tcase_add_checked_fixture(tests, NULL, forget);
    tcase_add_test(tests, the_broker_lacks_memory);
    tcase_add_test(tests, a_broker_that_takes_over_lacks_memory);
    tcase_add_test(tests, the_broker_lacks_descriptors_and_mappings);
    tcase_add_test(tests, the_broker_lacks_space);
    tcase_add_test(tests, the_brokers_sockets_fail);
    tcase_add_test(tests, a_broker_whose_sockets_are_not_as_they_should_be_does_not_serve);
    tcase_add_test(tests, the_supervisor_lacks_whatever_it_asks_for);
}

int main(void)
{
    return run_tests("faults", add);
}
