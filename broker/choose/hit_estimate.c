/* SPDX-License-Identifier: MIT */
/* Two sums. What came true long ago counts less, so that a cache that has become too small is noticed. */

#include "broker/choose/hit_estimate.h"

/* Believed at first as if so many tokens had come true already. */
#define AT_FIRST 4096
#define MOST     (1u << 17)

void hit_estimate_learn(struct hit_estimate *estimate, uint64_t believed, uint64_t found)
{
    estimate->believed += believed;
    estimate->came_true += found;
    if (estimate->believed > MOST) {
        estimate->believed /= 2;
        estimate->came_true /= 2;
    }
}

uint64_t hit_estimate_expects(const struct hit_estimate *estimate, uint64_t tokens)
{
    return tokens * (estimate->came_true + AT_FIRST) / (estimate->believed + AT_FIRST);
}
