/* SPDX-License-Identifier: MIT */
/* A prefix store into which anything may be written at any time, as by a worker that was taken over or killed
 * in the middle: whatever is found under a place has the bytes that belong there, nothing outside is touched,
 * and nobody waits.
 *
 * An input is steps: put or get a block, write bytes anywhere, or have another worker open the store. There
 * are eight places, two chains of four; what belongs to one follows from its number. For libFuzzer the
 * sources are engine and common. */

#include "tests/fuzz/driver.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/system/shm.h"
#include "engine/backend/backend.h"
#include "engine/cache/prefix_store.h"

enum { BLOCK = 64, PLACES = 8, CHAIN = 4, SETS = 2, SIZE = 4096 + SETS * 8 * (512 + BLOCK), OPENED = 2 };

static const struct prefix_store_kind kind = {.model = {1, 2, 3}, .layout = 7, .block_bytes = BLOCK};

static int fd;
static void *segment; /* [SIZE]: as a stranger sees it */
static struct prefix_store *stores[OPENED];
static uint64_t numbers[PLACES]; /* that the blocks were found under; 0: not yet */

static void content(unsigned place, uint8_t ret_bytes[BLOCK])
{
    for (unsigned i = 0; i < BLOCK; i++)
        ret_bytes[i] = (uint8_t)(place * 31 + i * 7 + 1);
}

/* False: the block before it is not known. */
static bool stands_at(unsigned place, int32_t ids[BACKEND_BLOCK_TOKENS], struct prefix_place *ret_place)
{
    unsigned depth = place % CHAIN;
    for (int i = 0; i < BACKEND_BLOCK_TOKENS; i++)
        ids[i] = (int32_t)(place * 1000) + i;
    *ret_place = (struct prefix_place){.ids = ids, .depth = depth, .use = 1};
    if (depth == 0)
        ret_place->salt = place == 0 ? BYTES_LITERAL("") : BYTES_LITERAL("salt");
    else
        ret_place->before = numbers[place - 1];
    return depth == 0 || ret_place->before != 0;
}

static void step(struct prefix_store *store, bool puts, unsigned place)
{
    int32_t ids[BACKEND_BLOCK_TOKENS];
    struct prefix_place where;
    uint8_t wanted[BLOCK], *got = malloc(BLOCK); /* for a sanitizer to watch */
    if (!got || !stands_at(place, ids, &where)) {
        free(got);
        return;
    }
    content(place, wanted);
    uint64_t number = puts ? prefix_store_put(store, &where, wanted) : prefix_store_get(store, &where, got);
    if (number != 0 && !puts && memcmp(got, wanted, BLOCK) != 0)
        abort();
    numbers[place] = number;
    free(got);
}

static void open_store(unsigned which)
{
    struct error err = {0};
    stores[which] = prefix_store_close(stores[which]);
    if (prefix_store_open(fd, &kind, &stores[which], &err) < 0 && (!err.text[0] || strchr(err.text, '\n')))
        abort();
}

static void begin(void)
{
    if (!segment && (shm_create("fuzz-prefixes", SIZE, &fd) < 0 || shm_map(fd, SIZE, &segment) < 0))
        abort();
    memset(segment, 0, SIZE);
    memset(numbers, 0, sizeof numbers);
    for (unsigned i = 0; i < OPENED; i++)
        open_store(i);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    begin();
    for (size_t at = 0; len - at >= 2 && at < 4096;) {
        unsigned what = data[at] & 3, which = data[at] >> 2 & 1, place = data[at + 1] % PLACES;
        at += 2;
        if (what < 2 && stores[which]) {
            step(stores[which], what == 0, place);
        } else if (what == 2 && len - at >= 3) {
            size_t to = (data[at] | (size_t)data[at + 1] << 8) % SIZE, n = data[at + 2] % 64;
            at += 3;
            n = n < len - at ? n : len - at;
            memcpy((uint8_t *)segment + to, data + at, n < SIZE - to ? n : SIZE - to);
            at += n;
        } else if (what == 3) {
            open_store(which);
        }
    }
    return 0;
}
