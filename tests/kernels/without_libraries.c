/* SPDX-License-Identifier: MIT */
/* What the tests of the kernels reach of common/ that has a library behind it: texts of errors made fit to be
 * shown, and the hash that tells layouts apart. */

#include "common/hash.h"
#include "common/utf8.h"

/* ASCII is all that these tests' errors are made of. */
char *utf8_clean(char *text)
{
    for (char *c = text; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
    return text;
}

/* FNV-1a. */
uint64_t hash64(const void *data, size_t len, uint64_t seed)
{
    const uint8_t *bytes = data;
    uint64_t hash = 0xcbf29ce484222325u ^ seed;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return hash;
}
