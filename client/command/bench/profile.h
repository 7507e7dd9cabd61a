/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_BENCH_PROFILE_H
#define CLIENT_COMMAND_BENCH_PROFILE_H

/* Prints a profiled backend's report on its kernels, for people and for programs. */

#include <jansson.h>

#include "engine/backend/backend.h"

/* Prints a table on stdout, the largest share first: of time, or of transactions if no time is measured.
 * Omits columns that were not measured. `bandwidth`: bytes per second that the device can read, the roof that
 * each kernel's share refers to; 0: unknown. */
void bench_print_kernels(const struct backend_kernel *kernels, uint32_t n, double bandwidth);

/* An array of objects with all measurements, and "roof", that share, 0 … 1. NULL: out of memory. */
json_t *bench_kernels_json(const struct backend_kernel *kernels, uint32_t n, double bandwidth);

#endif
