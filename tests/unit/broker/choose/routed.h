/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_BROKER_CHOOSE_ROUTED_H
#define TESTS_UNIT_BROKER_CHOOSE_ROUTED_H

/* A few workers and the book of their caches, for the tests of routing. */

#include "broker/choose/admission.h"
#include "broker/choose/routing.h"
#include "tests/unit/run.h"

#include <stdlib.h>
#include <string.h>

#define N 4 /* workers */

static struct worker workers[N];
static struct routing routing;

static void serve(uint32_t slots, bool shares)
{
    routing_deinit(&routing);
    memset(workers, 0, sizeof workers);
    for (uint32_t i = 0; i < N; i++)
        workers[i] = (struct worker){.index = i, .state = WORKER_READY, .slots = slots, .peer = {.len = 5}};
    ck_assert_int_eq(routing_init(&routing, workers, N, shares, 1), 0);
}

static void set_up(void)
{
    serve(64, false);
}

static void tear_down(void)
{
    routing_deinit(&routing);
}

#endif
