/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_BENCH_BENCH_H
#define CLIENT_COMMAND_BENCH_BENCH_H

/* The benchmarks and their common parts: the spread of measurements, and the memory bandwidth. */

#include <stdint.h>

#include "client/command/verbs.h"
#include "common/error.h"
#include "engine/backend/backends.h"
#include "engine/engine.h"

verb_main bench_batch, bench_decode, bench_draft, bench_gateway, bench_pool, bench_prefill, bench_prefix;

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

/* A model with its tokenizer, and the device for it; a note about the choice goes to stderr. 0, or -errno
 * with a reason. */
int bench_open_model(const char *path, const char *device, struct model **ret_model,
                     struct backend_choice *ret_choice, struct error *err);

/* An engine on the chosen device or, if that fails, on its alternative, which `choice` then names. Sets
 * `backend` and `loaded` of the config: progress is shown. 0, or -errno with a reason. */
int bench_open_engine(struct engine_config *config, struct backend_choice *choice, engine_sink *sink,
                      void *sink_arg, struct engine **ret_engine, struct error *err);

/* Measures with the model in a file, and prints the result. 0, or -errno with a reason. */
typedef int bench_measure(void *arg, const char *model, struct error *err);

/* Measures with the model; if NULL, with a temporary one of random weights: a shape of synth.h in F32.
 * Catches signals (interrupt.h). Returns the exit status, and prints the reason of a failure. */
int bench_with_model(const char *model, const char *shape, bench_measure *run, void *arg);

#endif
