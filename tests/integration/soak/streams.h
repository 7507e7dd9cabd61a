/* SPDX-License-Identifier: MIT */
#ifndef TESTS_INTEGRATION_SOAK_STREAMS_H
#define TESTS_INTEGRATION_SOAK_STREAMS_H

/* Many answers that are read at once while the processes behind them are killed: how long is each silent? */

#include <stdbool.h>

#define SOAK_MOST_STREAMS 256

/* Starts a pool, reads `streams` answers at once, and kills its broker `kills` times, then a worker as often.
 * Prints the middle and the 99th percentile, over all streams and kills, of the longest time between two ids
 * from a kill on. False when an answer failed, a stream did not go on at all, or one of the two was longer
 * than its goal: 300 ms and 1 s behind a broker, 1 s and 1 s behind a worker, whose requests are read again.
 * With $QUERN_TEST_SCALE, under a sanitizer, no time is judged. */
bool soak_streams(int streams, int workers, int kills);

#endif
