/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_SAMPLING_CANDIDATES_H
#define ENGINE_SAMPLING_CANDIDATES_H

/* Ids that may be sampled, in the order that sampling.h specifies.
 *
 * A candidate is one 64-bit key: the logit's bits, made monotonic, above the complement of the id. So in
 * descending order of keys, likely ids come first, the lower id first among equals; no two keys are equal.
 * Top-k, top-p and typical-p ask the same question, "how far down an order until the amounts reach a target",
 * with amounts of 1 or probabilities. Probabilities are summed as fixed-point integers, so the order of
 * summation does not matter and a parallel implementation gets the same bits. */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "engine/sampling/units.h"

#define CANDIDATES_DIGIT_BITS 11 /* the first round decides by sign, exponent and two bits of mantissa */
#define CANDIDATES_DIGITS     (1u << CANDIDATES_DIGIT_BITS)

struct candidate {
    uint64_t key;
    uint64_t mass; /* softmax numerator relative to the most likely, in units of 1 / MASS_ONE */
};

struct candidates {
    struct candidate *items; /* [capacity] */
    uint64_t *keys;          /* [capacity] set aside */
    uint32_t *open;          /* [capacity] indices of the descent */
    uint64_t sums[CANDIDATES_DIGITS];
};

int candidates_init(struct candidates *all, uint32_t capacity); /* 0 or -ENOMEM; call deinit in either case */
void candidates_deinit(struct candidates *all);

/* The smallest key that is kept if the first n candidates are taken by descending key until their amounts
 * (mass, or 1 each) reach `target`; 0 keeps all. */
uint64_t candidates_threshold(struct candidates *all, uint32_t n, bool by_mass, uint64_t target);

/* Drop candidates whose key, or mass, is below the bound; return how many are left. */
uint32_t candidates_keep(struct candidates *all, uint32_t n, uint64_t threshold);
uint32_t candidates_keep_mass(struct candidates *all, uint32_t n, uint64_t least);

static inline uint64_t key_of(float logit, uint32_t id)
{
    uint32_t bits;
    logit += 0.0f; /* −0 and 0 are a tie */
    memcpy(&bits, &logit, sizeof bits);
    bits = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return (uint64_t)bits << 32 | (uint32_t)~id;
}

static inline float key_logit(uint64_t key)
{
    uint32_t bits = (uint32_t)(key >> 32);
    float logit;
    bits = bits & 0x80000000u ? bits & 0x7fffffffu : ~bits;
    memcpy(&logit, &bits, sizeof logit);
    return logit;
}

static inline uint32_t key_id(uint64_t key)
{
    return ~(uint32_t)key;
}

#endif
