/* SPDX-License-Identifier: MIT */
#ifndef CPU_FORWARD_ROTARY_H
#define CPU_FORWARD_ROTARY_H

/* Rotary positions (Su et al. 2021, arXiv:2104.09864): pairs of dims are rotated by an angle proportional to
 * the position. */

#include "model/description.h"

/* Cosine and sine of each pair at a position, [n_pairs][2]. */
void rotary_angles(const struct rotary *rotary, const double *frequencies, uint32_t position,
                   float *ret_cos_sin);

/* Rotates the leading dims of each head [n_heads][dim]. */
void rotary_turn(const struct rotary *rotary, float *heads, uint32_t n_heads, uint32_t dim,
                 const float *cos_sin);

#endif
