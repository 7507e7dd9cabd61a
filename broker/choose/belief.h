/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CHOOSE_BELIEF_H
#define BROKER_CHOOSE_BELIEF_H

/* How far it is believed that a cache has what it should have: as far as that came true. */

#include <stdint.h>

/* Of prompts that ended, in tokens. Zeroed: nothing is known, and all is believed. */
struct belief {
    uint64_t believed; /* to be there */
    uint64_t came_true;
};

/* Of a prompt so many tokens were believed to be there, and so many of them were. */
void belief_learn(struct belief *belief, uint64_t believed, uint64_t found);

/* How many of the tokens that should be there are likely to be. */
uint64_t belief_expects(const struct belief *belief, uint64_t tokens);

#endif
