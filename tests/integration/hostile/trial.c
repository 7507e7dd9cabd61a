/* SPDX-License-Identifier: MIT */
/* The verdict. Each promise is judged by itself and has its sentence, so that one that is broken hides no
 * other. */

#include "tests/integration/hostile/trial.h"

#include <math.h>
#include <stdio.h>

#define MOST_NOISE 3 /* times the worst gap in calm: what a machine that is busy itself may make of it */

void trial_print_columns(void)
{
    printf("%-14s %6s %6s %6s %8s %7s %8s %5s %5s %6s %6s %6s %5s %8s %7s %7s %7s %7s\n", "", "calm", "worst",
           "attack", "worst", "pool", "wait", "told", "fails", "MiB", "peak", "after", "back", "connects",
           "2xx", "4xx", "busy", "closed");
}

void trial_print(const struct trial *t)
{
    const struct tally *tally = t->tally;
    struct good *good = t->good;
    const struct good_times *calm = &good->gaps[GOOD_CALM], *attacked = &good->gaps[GOOD_ATTACKED];
    printf(
        "%-14s %6.1f %6.1f %6.1f %8.1f %7.1f %8.1f %5ld %5ld %6ld %6ld %6ld %5.1f %8ld %7ld %7ld %7ld %7ld\n",
        t->c->name, good_median_ms(&good->gaps[GOOD_CALM]), calm->worst_us / 1e3,
        good_median_ms(&good->gaps[GOOD_ATTACKED]), attacked->worst_us / 1e3,
        good->pool_gaps[GOOD_ATTACKED].worst_us / 1e3, good->waits[GOOD_ATTACKED].worst_us / 1e3,
        good->told_to_wait[GOOD_ATTACKED], good->failed, t->before_kib >> 10, t->peak_kib >> 10,
        t->after_kib >> 10, t->back_s, tally->connections, tally->answers[2], tally->answers[4],
        tally->busy + tally->answers[5], tally->closed);
    fflush(stdout);
}

static bool judge_times(const struct trial *t, const struct trial_options *options)
{
    const struct good *good = t->good;
    const double calm = good->gaps[GOOD_CALM].worst_us / 1e3, gap = good->gaps[GOOD_ATTACKED].worst_us / 1e3,
                 pool = good->pool_gaps[GOOD_ATTACKED].worst_us / 1e3,
                 wait = good->waits[GOOD_ATTACKED].worst_us / 1e3,
                 most = pool + fmax((double)options->gap_ms, MOST_NOISE * calm);
    if (!options->judges_time)
        return true;
    bool well = case_expect(
        t->c->name, gap <= most,
        "the good client's stream was silent for %.0f ms, more than %.0f (%.0f of a client of the "
        "pool itself, and %ld, or %d times the %.1f in calm)",
        gap, most, pool, options->gap_ms, MOST_NOISE, calm);
    return case_expect(t->c->name, wait <= pool + (double)options->wait_ms,
                       "the good client waited %.0f ms to be served, more than %.0f", wait,
                       pool + (double)options->wait_ms) &&
           well;
}

static bool judge_memory(const struct trial *t, const struct trial_options *options)
{
    const long more = (t->after_kib - t->before_kib) >> 10;
    if (!JUDGES_MEMORY)
        return true;
    bool well =
        case_expect(t->c->name, t->peak_kib >> 10 <= options->memory_mib,
                    "the gateway held %ld MiB, more than %ld", t->peak_kib >> 10, options->memory_mib);
    return case_expect(t->c->name, more <= LEFT_MIB,
                       "the gateway held %ld MiB more than before, %ld s after the attack", more,
                       options->back_s) &&
           well;
}

bool trial_judge(const struct trial *t, const struct trial_options *options)
{
    bool well = case_expect(t->c->name, t->served, "the good clients were not served before the attack: %s",
                            t->good->failure);
    well &= case_expect(t->c->name, t->good->failed == 0, "a good client failed: %s", t->good->failure);
    well &= case_expect(t->c->name, t->good->gaps[GOOD_ATTACKED].n > 0, "no stream was served under attack");
    well &= case_expect(t->c->name, t->tally->connections > 0, "no attacker could connect");
    well &= case_expect(t->c->name, !t->died, "the gateway ended under attack");
    well &= case_expect(t->c->name, !t->pool_died, "the broker or the worker ended under attack");
    well &= case_expect(t->c->name, t->status == 0, "the gateway ended with %d", t->status);
    well &= case_expect(t->c->name, !t->lost_pool, "the gateway lost its session with the pool");
    well &= case_expect(t->c->name, well, "the gateway's log ends with\n%s", gateway_log(&t->gateway));
    well &= case_expect(t->c->name, t->pool_rests, "the pool still had requests of the attackers after %ld s",
                        options->back_s);
    well &= judge_times(t, options);
    return judge_memory(t, options) && well;
}
