/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_ENGINE_BACKEND_WEIGHT_STORE_OPENING_H
#define TESTS_UNIT_ENGINE_BACKEND_WEIGHT_STORE_OPENING_H

/* A store of weights, opened as a worker does, for a file that only this run of the tests has. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/backend/weight_store.h"

#define LAYOUT 77

static const uint8_t digest[16] = "digest of file 1";

/* A file that no other run of the tests has. */
static inline struct weight_store_file file_of_test(bool settled)
{
    struct weight_store_file file = {.settled = settled, .packing = 3};
    const uint64_t who[] = {(uint64_t)getpid(), 0x7465737473};
    memcpy(file.key, who, sizeof file.key);
    return file;
}

/* For what runs in processes that are killed too: they share Check's pipe, so they must write nothing there.
 */
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
