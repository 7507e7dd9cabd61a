/* SPDX-License-Identifier: MIT */
#ifndef TESTS_INTEGRATION_HOSTILE_TRIAL_H
#define TESTS_INTEGRATION_HOSTILE_TRIAL_H

/* One attack by HTTP: what was seen of gateway, good clients and attackers, and what should have been. */

#include <stdbool.h>
#include <stddef.h>

#include "tests/integration/hostile/cases.h"
#include "tests/integration/hostile/gateway.h"
#include "tests/integration/hostile/good.h"
#include "tests/integration/hostile/http.h"

enum {
    LEFT_MIB = 64,                    /* more than before the attack that may be held after it */
    BACK_S = JUDGES_MEMORY ? 10 : 120 /* until then, if not told otherwise; sanitizers take their time */
};

struct hostile_case {
    const char *name, *what;
    http_attack *attack;
    bool single; /* a part of another case: not among all */
};

struct trial_options {
    double seconds;
    long gap_ms, wait_ms, memory_mib, back_s; /* bounds */
    bool judges_time;
    struct chosen_cases chosen; /* none: all but the single ones */
};

struct trial {
    const struct hostile_case *c;
    struct gateway_process gateway;
    struct good *good;
    struct tally *tally;
    pid_t good_pids[GOOD_CLIENTS];
    long before_kib, peak_kib, after_kib; /* resident memory of the gateway */
    double back_s;                        /* until memory and pool were as before; the bound: they were not */
    bool served;                          /* the good clients, in calm */
    bool pool_rests;                      /* it has nothing of the attackers any more */
    bool lost_pool;                       /* the gateway its session, at any time before it was told to end */
    bool died;                            /* the gateway, before it was told to end */
    bool pool_died;                       /* its broker or its worker was another one afterwards */
    int status;                           /* of the gateway, as gateway_end has it */
};

/* A line of what was seen, and the line above all of them. */
void trial_print(const struct trial *t);
void trial_print_columns(void);

/* True when every promise was kept; else says on stderr which were not. */
bool trial_judge(const struct trial *t, const struct trial_options *options);

#endif
