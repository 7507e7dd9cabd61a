/* SPDX-License-Identifier: MIT */
#ifndef TESTS_FUZZ_DRIVER_H
#define TESTS_FUZZ_DRIVER_H

/* A fuzz entry is one file with LLVMFuzzerTestOneInput: for libFuzzer, which scripts/fuzz runs for hours if
 * clang is installed, and for any compiler, linked with driver.c and a seeds_X.c: a main that runs the seeds,
 * then 50,000 mutations of them, or as many as run in 5 s; with $QUERN_FUZZ_SECONDS, as many as run in that
 * time. It prints how many inputs it ran. Arguments are files to run first, for example a crash saved by
 * libFuzzer. When the driver dies, it names the file that holds the last input. With $QUERN_FUZZ_SEEDS_TO it
 * only writes its seeds to files in that folder. */

#include <stddef.h>
#include <stdint.h>

/* The entry: returns 0, or aborts if a promise is broken. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Adds a copy of an input to start from. */
void fuzz_add_seed(const void *data, size_t len);

/* Adds the seeds of this entry; defined in seeds_X.c. */
void fuzz_seeds(void);

#endif
