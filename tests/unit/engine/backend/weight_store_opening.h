/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_ENGINE_BACKEND_WEIGHT_STORE_OPENING_H
#define TESTS_UNIT_ENGINE_BACKEND_WEIGHT_STORE_OPENING_H

/* Opens a weight store as a worker does, for a file that only this run of the tests uses. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/backend/weight_store.h"

#define LAYOUT 77

static const uint8_t digest[16] = "digest of file 1";

/* A file that no other run of the tests uses. */
static inline struct weight_store_file file_of_test(bool settled)
{
    struct weight_store_file file = {.settled = settled, .packing = 3};
    const uint64_t who[] = {(uint64_t)getpid(), 0x7465737473};
    memcpy(file.key, who, sizeof file.key);
    return file;
}

/* An assertion that also works in processes that are killed: they share Check's pipe, so they must not write
 * to it. */
static inline void must(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

static inline struct weight_store *open_store(const struct weight_store_file *file)
{
    struct weight_store *store;
    struct error err = {0};
    must(weight_store_open(file, &store, &err) == 0, err.text);
    must(weight_store_wait(store, NULL, NULL, &err) == 0, err.text);
    return store;
}

#endif
