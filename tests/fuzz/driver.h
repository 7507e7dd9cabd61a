/* SPDX-License-Identifier: MIT */
#ifndef TESTS_FUZZ_DRIVER_H
#define TESTS_FUZZ_DRIVER_H

/* A fuzz entry is one file with LLVMFuzzerTestOneInput: for libFuzzer, which scripts/fuzz runs for hours
 * where there is clang, and for any compiler linked with driver.c and a seeds_X.c: a main that runs the
 * seeds, then 50,000 mutations of them, or as many as run in 5 s; with $QUERN_FUZZ_SECONDS, as many as run in
 * that time. It prints how many inputs it ran. Arguments are files to run first: a crash that libFuzzer wrote
 * down, for example. The last input that ran is in the file that the driver names when it dies. With
 * $QUERN_FUZZ_SEEDS_TO it only writes its seeds to files of that folder. */

#include <stddef.h>
#include <stdint.h>

/* The entry: never fails, aborts when a promise is broken. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Adds an input to start from; copies it. */
void fuzz_add_seed(const void *data, size_t len);

/* Adds the seeds of this entry. In seeds_X.c. */
void fuzz_seeds(void);

#endif
