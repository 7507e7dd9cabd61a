/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_BENCH_PROFILE_H
#define CLIENT_COMMAND_BENCH_PROFILE_H

/* What a profiled backend says of its kernels, for people and for programs. */

#include <jansson.h>

#include "engine/backend/backend.h"

/* A table on stdout, the largest share first: of time, or of transactions where no time is measured. Omits
 * columns that were not measured. `bandwidth`: what the device can read, bytes a second, of which each kernel
 * has its share of the roof; 0: not known. */
void bench_print_kernels(const struct backend_kernel *kernels, uint32_t n, double bandwidth);

/* An array of objects with all that was measured, and "roof", that share, 0 … 1. NULL: no memory. */
json_t *bench_kernels_json(const struct backend_kernel *kernels, uint32_t n, double bandwidth);

#endif
