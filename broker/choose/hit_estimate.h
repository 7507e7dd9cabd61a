/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CHOOSE_HIT_ESTIMATE_H
#define BROKER_CHOOSE_HIT_ESTIMATE_H

/* How likely a cache still has what it should have, learned from how often it did. */

#include <stdint.h>

/* Of prompts that ended, in tokens. Zeroed: nothing is known, and all is believed. */
struct hit_estimate {
    uint64_t believed; /* to be there */
    uint64_t came_true;
};

/* Of a prompt so many tokens were expected there, and so many were found. */
void hit_estimate_learn(struct hit_estimate *estimate, uint64_t believed, uint64_t found);

/* How many of the tokens that should be there are likely to be. */
uint64_t hit_estimate_expects(const struct hit_estimate *estimate, uint64_t tokens);

#endif
