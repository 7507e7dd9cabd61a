/* SPDX-License-Identifier: MIT */
#ifndef TESTS_INTEGRATION_SOAK_STREAMS_H
#define TESTS_INTEGRATION_SOAK_STREAMS_H

/* Measures how long streams are silent when many answers are read at once and the processes behind them are
 * killed. */

#include <stdbool.h>

#define SOAK_MOST_STREAMS 256

/* Starts a pool, reads `streams` answers at once, and kills its broker `kills` times, then a worker as often.
 * Prints the median and the 99th percentile, over all streams and kills, of the longest time between two ids
 * after a kill. False if an answer failed, a stream did not continue, or one of the two exceeds its goal: 300
 * ms and 1 s after a broker's death, 1 s and 1 s after a worker's, whose requests are processed again. With
 * $QUERN_TEST_SCALE, under a sanitizer, times are not judged. */
bool soak_streams(int streams, int workers, int kills);

#endif
