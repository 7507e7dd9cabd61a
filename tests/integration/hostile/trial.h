/* SPDX-License-Identifier: MIT */
#ifndef TESTS_INTEGRATION_HOSTILE_TRIAL_H
#define TESTS_INTEGRATION_HOSTILE_TRIAL_H

/* One HTTP attack: the results seen at gateway, good clients and attackers, and their bounds. */

#include <stdbool.h>
#include <stddef.h>

#include "tests/integration/hostile/cases.h"
#include "tests/integration/hostile/gateway.h"
#include "tests/integration/hostile/good.h"
#include "tests/integration/hostile/http.h"

enum {
    LEFT_MIB = 64,                    /* that may be held after the attack beyond the amount before it */
    BACK_S = JUDGES_MEMORY ? 10 : 120 /* time until then, by default; sanitizers are slow */
};

struct hostile_case {
    const char *name, *what;
    http_attack *attack;
    bool single; /* part of another case: not run with "all" */
};

struct trial_options {
    double seconds;
    long gap_ms, wait_ms, memory_mib, back_s; /* bounds */
    bool judges_time;
    struct chosen_cases chosen; /* none: all except the single ones */
};

struct trial {
    const struct hostile_case *c;
    struct gateway_process gateway;
    struct good *good;
    struct tally *tally;
    pid_t good_pids[GOOD_CLIENTS];
    long before_kib, peak_kib, after_kib; /* resident memory of the gateway */
    double back_s;   /* until memory and pool were as before; if equal to the bound: they were not */
    bool served;     /* the good clients were served before the attack */
    bool pool_rests; /* the pool holds nothing of the attackers any more */
    bool lost_pool;  /* the gateway lost its session before it was told to end */
    bool died;       /* the gateway died before it was told to end */
    bool pool_died;  /* the pool had a different broker or worker afterwards */
    int status;      /* of the gateway, from gateway_end */
};

/* Prints a line of results; prints the heading of these lines. */
void trial_print(const struct trial *t);
void trial_print_columns(void);

/* True if every promise was kept; else prints on stderr which were not. */
bool trial_judge(const struct trial *t, const struct trial_options *options);

#endif
