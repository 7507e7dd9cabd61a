/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CHOOSE_HIT_ESTIMATE_H
#define BROKER_CHOOSE_HIT_ESTIMATE_H

/* Estimates how likely a cache still has the blocks it should have, from how often it had them before. */

#include <stdint.h>

/* Sums over finished prompts, in tokens. Zeroed: nothing is known yet, and every block is expected. */
struct hit_estimate {
    uint64_t believed; /* tokens expected in the cache */
    uint64_t came_true;
};

/* Of a prompt, `believed` tokens were expected in the cache, and `found` were there. */
void hit_estimate_learn(struct hit_estimate *estimate, uint64_t believed, uint64_t found);

/* How many of these tokens, which should be in the cache, are likely to be. */
uint64_t hit_estimate_expects(const struct hit_estimate *estimate, uint64_t tokens);

#endif
