/* SPDX-License-Identifier: MIT */
/* What the clients have in common: times and failures, in memory that they share with the judge, and the one
 * that comes by libquern. Each is a process, so that no reader waits for another. */

#include "tests/integration/hostile/good.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <quern.h>
#include "common/clock.h"
#include "tests/integration/hostile/children.h"
#include "tests/integration/hostile/talk.h"

bool good_is_over(const struct good *good)
{
    return __atomic_load_n(&good->over, __ATOMIC_RELAXED);
}

void good_count(long *number)
{
    __atomic_add_fetch(number, 1, __ATOMIC_RELAXED);
}

void good_fail(struct good *good, const char *format, ...)
{
    va_list args;
    if (__atomic_fetch_add(&good->failed, 1, __ATOMIC_RELAXED) > 0)
        return;
    va_start(args, format);
    vsnprintf(good->failure, sizeof good->failure, format, args);
    va_end(args);
}

void good_note(const struct good *good, struct good_times times[GOOD_PHASES], uint64_t since_ns)
{
    struct good_times *phase = &times[__atomic_load_n(&good->phase, __ATOMIC_RELAXED)];
    uint32_t us = (uint32_t)((clock_ns() - since_ns) / 1000);
    uint32_t worst = __atomic_load_n(&phase->worst_us, __ATOMIC_RELAXED);
    long i = __atomic_fetch_add(&phase->n, 1, __ATOMIC_RELAXED);
    if (i < GOOD_TIMES)
        phase->us[i] = us;
    while (us > worst && !__atomic_compare_exchange_n(&phase->worst_us, &worst, us, false, __ATOMIC_RELAXED,
                                                      __ATOMIC_RELAXED))
        ;
}

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

double good_median_ms(struct good_times *times)
{
    size_t n = (size_t)(times->n < GOOD_TIMES ? times->n : GOOD_TIMES);
    if (n == 0)
        return 0;
    qsort(times->us, n, sizeof *times->us, compare);
    return times->us[n / 2] / 1e3;
}

/* ---- libquern ---- */

struct flow {
    struct good *good;
    char *text; /* NULL: only times count */
    uint64_t last_ns, again_ns;
    bool ended;
};

static void on_output(void *arg, const struct quern_output *output)
{
    struct flow *flow = arg;
    if (flow->text && output->text_len < GOOD_TEXT - strlen(flow->text))
        strncat(flow->text, output->text_len ? output->text : "", output->text_len);
    if (flow->good && output->n_ids > 0 && flow->last_ns)
        good_note(flow->good, flow->good->pool_gaps, flow->last_ns);
    if (output->n_ids > 0)
        flow->last_ns = clock_ns();
    if (!output->end)
        return;
    flow->ended = true;
    flow->last_ns = 0;
    if (output->end->reason != QUERN_ERROR)
        return;
    if (strcmp(output->end->error, "overloaded") == 0)
        flow->again_ns = clock_ns() + (output->end->retry_after_ms + 1) * CLOCK_NS_PER_MS;
    else if (flow->good)
        good_fail(flow->good, "by libquern: %s: %s", output->end->error, output->end->text);
}

static void make_request(struct quern_request *ret_request)
{
    quern_request_init(ret_request);
    ret_request->text = GOOD_PROMPT;
    ret_request->text_len = strlen(GOOD_PROMPT);
    ret_request->max_tokens = GOOD_TOKENS;
    ret_request->seed = GOOD_SEED;
    ret_request->has_seed = true;
}

int good_learn(struct good_target *target)
{
    struct quern *client = NULL;
    struct quern_request request;
    struct quern_error err = {.text = ""};
    struct flow flow = {.text = target->expected};
    target->expected[0] = 0;
    make_request(&request);
    int r = quern_connect(target->endpoint, GOOD_PATIENCE_S * 1000, &client, &err);
    if (r == 0)
        r = quern_generate_wait(client, &request, on_output, &flow, &err);
    quern_free(client);
    if (r == 0 && !target->expected[0])
        r = -EPROTO;
    if (r != 0)
        fprintf(stderr, "the pool, undisturbed: %s\n", err.text[0] ? err.text : "no answer");
    return r;
}

static void be_neighbour(struct good *good, const struct good_target *target)
{
    struct quern *client = NULL;
    struct quern_request request;
    struct quern_error err = {.text = ""};
    struct flow flow = {.good = good, .ended = true};
    make_request(&request);
    if (quern_connect(target->endpoint, GOOD_PATIENCE_S * 1000, &client, &err) != 0)
        return good_fail(good, "by libquern: %s", err.text);
    while (!good_is_over(good) && good->failed == 0) {
        if (flow.ended && clock_ns() >= flow.again_ns) {
            flow.ended = false;
            if (quern_generate(client, &request, on_output, &flow, NULL, &err) != 0)
                return good_fail(good, "by libquern: %s", err.text);
        }
        if (quern_dispatch(client, GOOD_LOOK_MS, &err) < 0)
            return good_fail(good, "by libquern: %s", err.text);
    }
    if (flow.last_ns)
        good_note(good, good->pool_gaps, flow.last_ns);
    quern_free(client);
}

/* ---- all three ---- */

static void be_client(struct good *good, const struct good_target *target, int which)
{
    if (which < 2)
        talk_be_client(good, target, which == 0);
    else
        be_neighbour(good, target);
}

static bool all_served(const struct good *good)
{
    return __atomic_load_n(&good->gaps[GOOD_CALM].n, __ATOMIC_RELAXED) > 0 &&
           __atomic_load_n(&good->answers, __ATOMIC_RELAXED) > 0 &&
           __atomic_load_n(&good->pool_gaps[GOOD_CALM].n, __ATOMIC_RELAXED) > 0;
}

bool good_start(struct good *good, const struct good_target *target, pid_t ret_pids[GOOD_CLIENTS])
{
    for (int i = 0; i < GOOD_CLIENTS; i++) {
        ret_pids[i] = fork_child();
        if (ret_pids[i] == 0) {
            be_client(good, target, i);
            _exit(0);
        }
    }
    uint64_t until = clock_ns() + GOOD_PATIENCE_S * CLOCK_NS_PER_S;
    while (!all_served(good) && good->failed == 0 && clock_ns() < until)
        usleep(2000);
    return all_served(good) && good->failed == 0;
}
