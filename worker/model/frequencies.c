/* SPDX-License-Identifier: MIT */
/* Frequencies of rotary positions, in double: what multiplies them by a position needs the bits. */

#include "worker/model/frequencies.h"

#include <math.h>

void rotary_frequencies(const struct rotary *rotary, const float *factors, double *ret_frequencies)
{
    for (uint32_t i = 0; i < rotary->dims / 2; i++) {
        double frequency = pow(rotary->base, -2.0 * i / rotary->dims);
        if (rotary->scaling == ROTARY_LINEAR)
            frequency /= rotary->factor;
        ret_frequencies[i] = factors ? frequency / factors[i] : frequency;
    }
}

bool rotary_is_alike(const struct rotary *a, const struct rotary *b)
{
    return a->kind == b->kind && a->dims == b->dims && a->base == b->base && a->scaling == b->scaling &&
           a->factor == b->factor;
}
