/* SPDX-License-Identifier: MIT */
/* Rotary positions. Angles are made in double: a float's 24 bits would be gone after a few thousand turns. */

#include "cpu/forward/rotary.h"

#include <math.h>

void rotary_angles(const struct rotary *rotary, const double *frequencies, uint32_t position,
                   float *ret_cos_sin)
{
    for (uint32_t i = 0; i < rotary->dims / 2; i++) {
        double angle = position * frequencies[i];
        ret_cos_sin[2 * i] = (float)(cos(angle) * (double)rotary->magnitude);
        ret_cos_sin[2 * i + 1] = (float)(sin(angle) * (double)rotary->magnitude);
    }
}

/* Pair i is dims i · step and i · step + apart. */
static void turn(float *head, uint32_t n_pairs, uint32_t step, uint32_t apart, const float *cos_sin)
{
    for (uint32_t i = 0; i < n_pairs; i++) {
        float *a = head + i * step, *b = a + apart;
        float x = *a, y = *b, c = cos_sin[2 * i], s = cos_sin[2 * i + 1];
        *a = x * c - y * s;
        *b = x * s + y * c;
    }
}

void rotary_turn(const struct rotary *rotary, float *heads, uint32_t n_heads, uint32_t dim,
                 const float *cos_sin)
{
    uint32_t n_pairs = rotary->dims / 2;
    for (uint32_t h = 0; h < n_heads; h++, heads += dim) {
        switch (rotary->kind) {
        case ROTARY_NONE:
            break;
        case ROTARY_PAIRS:
            turn(heads, n_pairs, 2, 1, cos_sin);
            break;
        case ROTARY_HALVES:
            turn(heads, n_pairs, 1, n_pairs, cos_sin);
            break;
        }
    }
}
