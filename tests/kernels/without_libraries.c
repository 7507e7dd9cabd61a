/* SPDX-License-Identifier: MIT */
/* What the tests of the kernels reach of common/ that has a library behind it: texts of errors made fit to be
 * shown, the hash that tells layouts apart, and how many threads there should be. */

#include <sched.h>

#include "common/hash.h"
#include "common/system/topology.h"
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

uint32_t topology_threads_here(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return n < 1 ? 1 : (uint32_t)n;
}
