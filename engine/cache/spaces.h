/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_CACHE_SPACES_H
#define ENGINE_CACHE_SPACES_H

/* Numbers for the salts in use. A space lives as long as it has users: sequences in it, and first nodes of it
 * in the prefix cache. Numbers are never reused. */

#include <stdint.h>

#include "common/bytes.h"

#define SPACES_BIT (1ull << 63) /* every number has it */

struct space;

struct spaces {
    struct space *by_salt, *by_number; /* uthash */
    uint64_t n;                        /* spaces so far */
};

void spaces_deinit(struct spaces *spaces);

/* The space of a salt, with one more user; 0: out of memory. */
uint64_t spaces_enter(struct spaces *spaces, struct bytes salt);

/* Adds or removes one user of an existing space. */
void spaces_use(struct spaces *spaces, uint64_t number);
void spaces_leave(struct spaces *spaces, uint64_t number);

/* Borrowed as long as the space is in use. */
struct bytes spaces_salt(const struct spaces *spaces, uint64_t number);

#endif
