/* SPDX-License-Identifier: MIT */
/* Two sums. What came true long ago counts less, so that a cache that has become too small is noticed. */

#include "broker/choose/belief.h"

/* Believed at first as if so many tokens had come true already. */
#define AT_FIRST 4096
#define MOST     (1u << 17)

void belief_learn(struct belief *belief, uint64_t believed, uint64_t found)
{
    belief->believed += believed;
    belief->came_true += found;
    if (belief->believed > MOST) {
        belief->believed /= 2;
        belief->came_true /= 2;
    }
}

uint64_t belief_expects(const struct belief *belief, uint64_t tokens)
{
    return tokens * (belief->came_true + AT_FIRST) / (belief->believed + AT_FIRST);
}
