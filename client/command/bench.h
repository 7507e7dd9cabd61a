/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_BENCH_H
#define CLIENT_COMMAND_BENCH_H

/* The benchmarks, and what they share: a spread of measurements, and what the machine's memory gives. */

#include <limits.h>
#include <stdint.h>

#include "client/command/verbs.h"
#include "common/error.h"

verb_main bench_batch, bench_decode, bench_gateway, bench_pool, bench_prefill, bench_prefix;

struct spread {
    double min, median, max;
};

/* For qsort: ascending. */
int bench_compare_doubles(const void *a, const void *b);

/* Sorts `values`. n ≥ 1. */
struct spread spread_of(double *values, uint32_t n);

/* Bytes per second that n_threads (0: all cores) read together from a buffer far larger than the caches, over
 * a few repetitions. -ENOMEM or -EAGAIN with a reason. */
int bench_read_bandwidth(uint32_t n_threads, struct spread *ret_bytes_per_second, struct error *err);

/* Writes a model of random weights into a temporary file, for who brings none: a shape of synth.h, in F32.
 * The caller unlinks it; on failure there is none, and the path is empty. -errno with a reason. */
int bench_make_model(const char *shape, char ret_path[PATH_MAX], struct error *err);

#endif
