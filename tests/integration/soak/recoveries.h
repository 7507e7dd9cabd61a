/* SPDX-License-Identifier: MIT */
#ifndef TESTS_INTEGRATION_SOAK_RECOVERIES_H
#define TESTS_INTEGRATION_SOAK_RECOVERIES_H

/* What a pool did about all that was done to it, as its log tells. */

#include "tests/integration/support/pool.h"

struct recoveries {
    long moved, handed_over; /* requests: of workers that died, of those that were told to end */
    long taken_over;         /* brokers that went on where another one was */
    long running, waiting;   /* requests that those found */
};

/* Reads the whole log, however long. */
struct recoveries recoveries_read(const struct pool *pool);

#endif
