/* SPDX-License-Identifier: MIT */
/* XXH3, header-only mode kept to this file. */

#include "common/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t hash64(const void *data, size_t len, uint64_t seed)
{
    return XXH3_64bits_withSeed(data, len, seed);
}

struct hash128 hash128(const void *data, size_t len, uint64_t seed)
{
    XXH128_hash_t h = XXH3_128bits_withSeed(data, len, seed);
    return (struct hash128){h.low64, h.high64};
}
