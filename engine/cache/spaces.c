/* SPDX-License-Identifier: MIT */
/* Two tables: of salts, and of numbers. A space is in both, or in none. */

#include "engine/cache/spaces.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1 /* what was not added has no table */
#include <uthash.h>

struct space {
    uint64_t number;
    uint32_t users;
    UT_hash_handle of_salt, of_number;
    uint32_t salt_len;
    uint8_t salt[];
};

void spaces_deinit(struct spaces *spaces)
{
    struct space *space, *next;
    HASH_CLEAR(of_number, spaces->by_number);
    HASH_ITER(of_salt, spaces->by_salt, space, next)
    {
        HASH_DELETE(of_salt, spaces->by_salt, space);
        free(space);
    }
}

/* False when out of memory. */
static bool add(struct spaces *spaces, struct space *space)
{
    HASH_ADD(of_salt, spaces->by_salt, salt, space->salt_len, space);
    if (!space->of_salt.tbl)
        return false;
    HASH_ADD(of_number, spaces->by_number, number, sizeof space->number, space);
    if (space->of_number.tbl)
        return true;
    HASH_DELETE(of_salt, spaces->by_salt, space);
    return false;
}

uint64_t spaces_enter(struct spaces *spaces, struct bytes salt)
{
    const void *key = salt.len > 0 ? salt.data : ""; /* no pointer may be null, not even to no bytes */
    struct space *space;
    HASH_FIND(of_salt, spaces->by_salt, key, (unsigned)salt.len, space);
    if (!space) {
        space = calloc(1, sizeof *space + salt.len);
        if (!space)
            return 0;
        space->number = SPACES_BIT | ++spaces->n;
        space->salt_len = (uint32_t)salt.len;
        memcpy(space->salt, key, salt.len);
        if (!add(spaces, space)) {
            free(space);
            return 0;
        }
    }
    space->users++;
    return space->number;
}

static struct space *find(const struct spaces *spaces, uint64_t number)
{
    struct space *space;
    HASH_FIND(of_number, spaces->by_number, &number, sizeof number, space);
    return space;
}

void spaces_use(struct spaces *spaces, uint64_t number)
{
    find(spaces, number)->users++;
}

void spaces_leave(struct spaces *spaces, uint64_t number)
{
    struct space *space = find(spaces, number);
    if (--space->users > 0)
        return;
    HASH_DELETE(of_salt, spaces->by_salt, space);
    HASH_DELETE(of_number, spaces->by_number, space);
    free(space);
}

struct bytes spaces_salt(const struct spaces *spaces, uint64_t number)
{
    const struct space *space = find(spaces, number);
    return (struct bytes){space->salt, space->salt_len};
}
