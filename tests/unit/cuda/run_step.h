/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_CUDA_RUN_STEP_H
#define TESTS_UNIT_CUDA_RUN_STEP_H

/* Runs steps and waits for their results. */

#include "cuda/backend.h"
#include "tests/unit/run.h"

#include <errno.h>

/* Waits for a submitted step; returns its results. */
static inline const struct backend_result *wait_for(struct backend *backend, uint64_t ticket)
{
    const struct backend_result *results = NULL;
    int r;
    do
        r = quern_backend.poll(backend, ticket, 1000, &results, NULL);
    while (r == -EAGAIN);
    ck_assert_int_eq(r, 0);
    return results;
}

/* Runs a step of these sets; returns its results. */
static inline const struct backend_result *run_step(struct backend *backend,
                                                    const struct backend_row_set *sets, uint32_t n)
{
    const struct backend_step step = {sets, n};
    uint64_t ticket;
    ck_assert_int_eq(quern_backend.submit(backend, &step, &ticket), 0);
    return wait_for(backend, ticket);
}

#endif
