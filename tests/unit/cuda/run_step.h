/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_CUDA_RUN_STEP_H
#define TESTS_UNIT_CUDA_RUN_STEP_H

/* Steps that are waited for. */

#include "cuda/backend.h"
#include "tests/unit/run.h"

#include <errno.h>

/* The results of a step that was submitted. */
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

/* The results of a step of these sets. */
static inline const struct backend_result *run_step(struct backend *backend,
                                                    const struct backend_row_set *sets, uint32_t n)
{
    const struct backend_step step = {sets, n};
    uint64_t ticket;
    ck_assert_int_eq(quern_backend.submit(backend, &step, &ticket), 0);
    return wait_for(backend, ticket);
}

#endif
