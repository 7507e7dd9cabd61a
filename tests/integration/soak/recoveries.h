/* SPDX-License-Identifier: MIT */
#ifndef TESTS_INTEGRATION_SOAK_RECOVERIES_H
#define TESTS_INTEGRATION_SOAK_RECOVERIES_H

/* What a pool did to recover, according to its log. */

#include "tests/integration/support/pool.h"

struct recoveries {
    long moved, handed_over; /* requests of workers that died; of workers that were told to end */
    long taken_over;         /* brokers that took over from another */
    long running, waiting;   /* requests that those brokers found */
};

/* Reads the whole log, however long it is. */
struct recoveries recoveries_read(const struct pool *pool);

#endif
