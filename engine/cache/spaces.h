/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_CACHE_SPACES_H
#define ENGINE_CACHE_SPACES_H

/* Numbers for the salts in use. A space lives as long as it has users: sequences that are in it, and nodes of
 * the prefix cache that begin it. A number is never used twice. */

#include <stdint.h>

#include "common/bytes.h"

#define SPACES_BIT (1ull << 63) /* every number has it */

struct space;

struct spaces {
    struct space *by_salt, *by_number; /* uthash */
    uint64_t n;                        /* ever */
};

void spaces_deinit(struct spaces *spaces);

/* The space of a salt, with a user more; 0: out of memory. */
uint64_t spaces_enter(struct spaces *spaces, struct bytes salt);

/* One user more, or less, of a space that there is. */
void spaces_use(struct spaces *spaces, uint64_t number);
void spaces_leave(struct spaces *spaces, uint64_t number);

/* Borrowed as long as the space is in use. */
struct bytes spaces_salt(const struct spaces *spaces, uint64_t number);

#endif
