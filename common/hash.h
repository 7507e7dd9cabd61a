/* SPDX-License-Identifier: MIT */
#ifndef COMMON_HASH_H
#define COMMON_HASH_H

/* XXH3 under two names. Not cryptographic: if an attacker may choose the bytes, compare them too. */

#include <stddef.h>
#include <stdint.h>

struct hash128 {
    uint64_t low, high;
};

uint64_t hash64(const void *data, size_t len, uint64_t seed);
struct hash128 hash128(const void *data, size_t len, uint64_t seed);

#endif
