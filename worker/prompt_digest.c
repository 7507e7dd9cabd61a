/* SPDX-License-Identifier: MIT */
/* A hash of the ids as little-endian 32-bit numbers, which is how every machine that we run on has them. */

#include "worker/prompt_digest.h"

#include <string.h>

#include "common/hash.h"
#include "common/hex.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the ids are hashed as they are in memory");
_Static_assert(sizeof(struct hash128) == PROMPT_DIGEST_BYTES, "the hash is the digest");

void prompt_digest(struct id_list ids, uint8_t ret_digest[PROMPT_DIGEST_BYTES])
{
    const struct hash128 hash = hash128(ids.items, ids.n * sizeof *ids.items, 0);
    memcpy(ret_digest, &hash, PROMPT_DIGEST_BYTES);
}

bool prompt_digest_is(const uint8_t digest[PROMPT_DIGEST_BYTES], struct bytes stated, size_t n,
                      struct error *err)
{
    char is[2 * PROMPT_DIGEST_BYTES + 1], wanted[2 * PROMPT_DIGEST_BYTES + 1];
    if (stated.len != PROMPT_DIGEST_BYTES || memcmp(digest, stated.data, PROMPT_DIGEST_BYTES) == 0)
        return true;
    hex_write(digest, PROMPT_DIGEST_BYTES, is);
    hex_write(stated.data, PROMPT_DIGEST_BYTES, wanted);
    error_set(err, 0,
              "prompt_digest: the prompt of %zu tokens has the digest %s, not %s: the output continues "
              "another prompt",
              n, is, wanted);
    return false;
}
