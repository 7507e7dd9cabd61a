/* SPDX-License-Identifier: MIT */
/* Philox4x32-10: a counter-based generator (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as
 * 1, 2, 3", 2011).
 *
 * No state: the same counter and key give the same 128 bits on every machine, so a token's noise depends on
 * its seed, position and id alone, and can be drawn in any order by any thread. */

#include "engine/sampling/sampling.h"

#define PHILOX_ROUNDS 10

void philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t ret_random[4])
{
    uint32_t a = counter[0], b = counter[1], c = counter[2], d = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        uint64_t p = 0xD2511F53ull * a, q = 0xCD9E8D57ull * c;
        a = (uint32_t)(q >> 32) ^ b ^ k0;
        c = (uint32_t)(p >> 32) ^ d ^ k1;
        b = (uint32_t)q;
        d = (uint32_t)p;
        k0 += 0x9E3779B9u; /* the golden ratio, and the square root of 3 less 1: the authors' Weyl steps */
        k1 += 0xBB67AE85u;
    }
    ret_random[0] = a;
    ret_random[1] = b;
    ret_random[2] = c;
    ret_random[3] = d;
}
