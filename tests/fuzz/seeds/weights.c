/* SPDX-License-Identifier: MIT */
/* Seeds of fuzz_weights: what a store makes itself, of the entry's file, while it waits and when it is
 * sealed; as it is, twice, and cut short. */

#include "tests/fuzz/driver.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/backend/weight_store.h"

enum { SAID = 128, SIZE = 64, SEALED = 1, LOCKED = 2, TORN = 4 };

/* The beginning of this process's own segment. */
static void read_own(uint8_t ret_header[SAID])
{
    char target[64];
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        ssize_t n = readlinkat(dirfd(dir), entry->d_name, target, sizeof target - 1);
        if (n > 0 && strncmp(target, "/memfd:quern-weights ", 21) == 0 &&
            pread(atoi(entry->d_name), ret_header, SAID, 0) != SAID)
            abort();
    }
    closedir(dir);
}

static void add(uint8_t flags, const uint8_t header[SAID], uint8_t more, const uint8_t more_header[SAID])
{
    uint8_t input[2 * (3 + SAID)] = {flags, SIZE / 16, SAID};
    memcpy(input + 3, header, SAID);
    fuzz_add_seed(input, 3 + SAID);
    input[3 + SAID] = more;
    input[4 + SAID] = SIZE / 16;
    input[5 + SAID] = SAID;
    memcpy(input + 6 + SAID, more_header, SAID);
    fuzz_add_seed(input, sizeof input);
}

void fuzz_seeds(void)
{
    const struct weight_store_file file = {.key = "the key of files", .settled = true, .packing = 7};
    uint8_t waiting[SAID] = {0}, sealed[SAID] = {0};
    struct weight_store *store;
    struct error err;
    void *memory;
    if (weight_store_open(&file, &store, &err) < 0 || weight_store_wait(store, NULL, NULL, &err) < 0)
        abort();
    read_own(waiting);
    weight_store_know(store, (const uint8_t *)"the digest of it");
    if (weight_store_make(store, 3, SIZE, NULL, NULL, &memory) < 0 || weight_store_publish(store, &err) < 0)
        abort();
    read_own(sealed);
    weight_store_free(store);
    add(SEALED, sealed, SEALED, sealed);
    add(SEALED | LOCKED, sealed, LOCKED, waiting);
    add(LOCKED, waiting, 0, waiting);
    add(SEALED | TORN, sealed, SEALED, waiting);
    sealed[100] ^= 1; /* of the rest, which nobody reads */
    add(0, sealed, SEALED, sealed);
}
