/* SPDX-License-Identifier: MIT */
/* A pool of two workers, of which one has a call fail, at one place after the other: every answer comes whole
 * and is the one that it always is, whether that worker went on or died of it, and soon both are ready again.
 *
 * A few places of each kind, spread over all that are passed; with $QUERN_FAULTS_ALL each of them. */

#include "tests/integration/support/answer.h"
#include "tests/integration/support/pool.h"
#include "tests/processes/faults/fault.h"
#include "tests/unit/run.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"

#define PATIENCE_S 60
#define REQUESTS   8
#define TOKENS     (test_is_scaled() ? 6u : 20u)

static struct pool pool;
static char fired_file[RUNDIR_PATH_MAX + 16];
static struct ids expected[REQUESTS]; /* of a pool in which nothing fails */
static const char *store;             /* MiB of its prefix store; NULL: it has none */

static void ask_for_one(struct quern *client, int i, struct answer *answer, const char *what)
{
    static const char *const prompts[] = {
        "Once upon a time there was a pool of two, and one of them had bad luck, again and again and again.",
        "short", "Once upon a time there was a pool of two, and one of them had bad luck, but not for long.",
        "123 456"};
    struct quern_error err = {0};
    struct quern_request request = seeded(prompts[i % 4], TOKENS);
    request.grammar = i % 4 == 1 ? "root ::= [a-z ]+" : NULL;
    request.logprobs = i % 4 == 3 ? 2 : 0;
    request.seed = (uint64_t)i;
    ck_assert_msg(quern_generate(client, &request, answer_collect, answer, NULL, &err) == 0, "%s: %s", what,
                  err.text);
}

/* A refusal has a word; what is no refusal is the answer that it always is. */
static void check_answer(const struct answer *answer, int i, bool refusals, const char *what)
{
    if (answer->reason == QUERN_ERROR) {
        ck_assert_msg(answer->error[0] && answer->error_text[0], "%s: an error without a word", what);
        ck_assert_msg(refusals, "%s: request %d afterwards: %s: %s\n%s", what, i, answer->error,
                      answer->error_text, pool_log(&pool));
        return;
    }
    if (expected[i].len == 0)
        ids_append(&expected[i], answer->ids.data, answer->ids.len);
    ck_assert_msg(answer->ids.len == expected[i].len &&
                      memcmp(answer->ids.data, expected[i].data, answer->ids.len * sizeof(int32_t)) == 0,
                  "%s: request %d has another answer (%zu ids, not %zu):\n%s", what, i, answer->ids.len,
                  expected[i].len, pool_log(&pool));
}

static void ask_for_all(struct quern *client, bool refusals, const char *what)
{
    struct answer answers[REQUESTS] = {0};
    for (int i = 0; i < REQUESTS; i++)
        ask_for_one(client, i, &answers[i], what);
    await_answers(client, answers, REQUESTS, PATIENCE_S);
    for (int i = 0; i < REQUESTS; i++) {
        check_answer(&answers[i], i, refusals, what);
        answer_deinit(&answers[i]);
    }
}

static void ask_a_question(struct quern *client, bool refusals, const char *what)
{
    const int32_t *ids;
    size_t n;
    struct quern_error err = {0};
    int r = quern_tokenize(client, &(struct quern_text){.text = "a text", .len = 6}, PATIENCE_S * 1000, &ids,
                           &n, &err);
    ck_assert_msg(r == 0 || (refusals && err.text[0]), "%s: tokenize: %d %s", what, r, err.text);
}

/* Until both workers serve. */
static void await_workers(struct quern *client, const char *what)
{
    const struct quern_status *status;
    struct quern_error err = {0};
    size_t n_ready = 0;
    for (uint64_t until = clock_ns() + PATIENCE_S * CLOCK_NS_PER_S; n_ready < 2; usleep(10000)) {
        ck_assert_msg(clock_ns() < until, "%s: %zu of 2 workers are ready:\n%s", what, n_ready,
                      pool_log(&pool));
        ck_assert_msg(quern_status(client, PATIENCE_S * 1000, &status, &err) == 0, "%s: %s", what, err.text);
        n_ready = 0;
        for (size_t i = 0; i < status->n_workers; i++)
            n_ready += strcmp(status->workers[i].state, "ready") == 0;
    }
}

static void check_log(const char *what)
{
    static const char *const never[] = {"(Segmentation fault)", "(Bus error)", "(Aborted)",
                                        "status 255",           "Sanitizer",   "runtime error"};
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        ck_assert_msg(!strstr(pool_log(&pool), never[i]), "%s:\n%s", what, pool_log(&pool));
}

/* True when the n-th call of the kind was made. */
static bool run_with(enum fault_kind kind, unsigned n)
{
    char what[64], text[256];
    snprintf(what, sizeof what, "worker, %s %u", fault_kind_name(kind), n);
    ck_assert_int_eq(rundir_temporary(pool.rundir, NULL), 0);
    snprintf(fired_file, sizeof fired_file, "%s.fired", pool.rundir);
    snprintf(text, sizeof text, "worker:%s:%u:%s", fault_kind_name(kind), n, fired_file);
    setenv("QUERN_FAULT", text, 1);
    pool.programs = "tests/integration/faults";
    pool_start(&pool, tiny_model(), "--workers", "2", "--no-sandbox", "--ctx", "512", "--slots", "3",
               store ? "--prefix-store" : NULL, store, NULL);
    unsetenv("QUERN_FAULT");
    struct quern *client = connect_to(pool.frontend);
    ask_for_all(client, kind != FAULT_NONE, what);
    ask_a_question(client, kind != FAULT_NONE, what);
    await_workers(client, what);
    bool to_come = kind != FAULT_NONE && access(fired_file, F_OK) != 0; /* by what is asked next, perhaps */
    ask_for_all(client, to_come, what);
    ask_a_question(client, to_come, what);
    quern_free(client);
    ck_assert_int_eq(pool_stop(&pool, SIGTERM, PATIENCE_S), 0);
    bool fired = access(fired_file, F_OK) == 0;
    check_log(what);
    if (getenv("QUERN_FAULTS_TOLD"))
        fprintf(stderr, "%s: %s\n%s", what, fired ? "fired" : "none", pool_log(&pool));
    unlink(fired_file);
    pool_forget(&pool);
    return fired;
}

static void run_kind(enum fault_kind kind, unsigned few, unsigned factor)
{
    unsigned step = 1, n = 0;
    bool all = getenv("QUERN_FAULTS_ALL") != NULL;
    factor += test_is_scaled();
    for (unsigned k = 1; run_with(kind, k); k += step, n++)
        if (!all && n > 0 && (test_is_scaled() || n % few == 0))
            step *= factor;
    ck_assert_uint_gt(n, 0);
}

static void know_answers(void)
{
    run_with(FAULT_NONE, 1);
}

static void forget(void)
{
    store = NULL;
    pool_forget(&pool);
    unlink(fired_file);
    for (int i = 0; i < REQUESTS; i++)
        ids_deinit(&expected[i]);
}

START_TEST(a_worker_lacks_memory)
{
    know_answers();
    run_kind(FAULT_MEMORY, 1, 2);
}
END_TEST

START_TEST(a_worker_lacks_descriptors_mappings_and_threads)
{
    know_answers();
    run_kind(FAULT_DESCRIPTORS, 1, 2);
    run_kind(FAULT_MAPPING, 1, 2);
    run_kind(FAULT_THREADS, 1, 2);
    run_kind(FAULT_SPACE, 1, 2);
}
END_TEST

START_TEST(a_workers_sockets_fail)
{
    know_answers();
    run_kind(FAULT_SOCKETS, 1, 2);
    run_kind(FAULT_SENDING, 1, 3);
    run_kind(FAULT_RECEIVING, 1, 8);
}
END_TEST

/* What it put there, and the other reads, and what it finds there itself. */
START_TEST(a_worker_with_a_prefix_store_lacks_whatever_it_asks_for)
{
    know_answers();
    store = "16";
    ck_assert(!run_with(FAULT_NONE, 1)); /* the same answers */
    run_kind(FAULT_MEMORY, 1, 4);
    run_kind(FAULT_MAPPING, 1, 2);
    run_kind(FAULT_DESCRIPTORS, 1, 4);
    run_kind(FAULT_SPACE, 1, 4);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 600);
    tcase_add_checked_fixture(tests, NULL, forget);
    tcase_add_test(tests, a_worker_lacks_memory);
    tcase_add_test(tests, a_worker_lacks_descriptors_mappings_and_threads);
    tcase_add_test(tests, a_workers_sockets_fail);
    tcase_add_test(tests, a_worker_with_a_prefix_store_lacks_whatever_it_asks_for);
}

int main(void)
{
    return run_tests("worker faults", add);
}
