/* SPDX-License-Identifier: MIT */
/* Frequencies of rotary positions, in double: what multiplies them by a position needs the bits.
 *
 * YaRN (https://arxiv.org/abs/2309.00071) leaves pairs that turn fast alone, divides the frequencies of slow
 * ones by the whole factor, and those between by a part of it that grows evenly from pair to pair. As its
 * authors' code does, and the engines after it, the ends of that ramp are whole pairs, unless a model was
 * trained otherwise (gpt-oss). */

#include "model/frequencies.h"

#include <math.h>

/* The pair, as a real number, that turns so often within the length of training. */
static double pair_that_turns(const struct rotary *rotary, double turns)
{
    return rotary->dims * log(rotary->trained_context / (turns * 2 * M_PI)) / (2 * log((double)rotary->base));
}

/* 0 where a pair keeps its frequency, 1 where it is divided by the whole factor. */
static double slowed(double first, double last, uint32_t pair)
{
    return fmin(1, fmax(0, (pair - first) / fmax(0.001, last - first)));
}

/* The share of a pair that the scaling slows by the factor. */
static double share_slowed(const struct rotary *rotary, double first, double last, uint32_t pair)
{
    switch (rotary->scaling) {
    case ROTARY_UNSCALED:
    case ROTARY_LONG: /* its factors say all */
        return 0;
    case ROTARY_LINEAR:
        return 1;
    case ROTARY_YARN:
        return slowed(first, last, pair);
    }
    return 0;
}

void rotary_frequencies(const struct rotary *rotary, const float *factors, double *ret_frequencies)
{
    double first = 0, last = 0;
    if (rotary->scaling == ROTARY_YARN) {
        first = pair_that_turns(rotary, (double)rotary->fast_turns);
        last = pair_that_turns(rotary, (double)rotary->slow_turns);
        first = fmax(0, rotary->exact_ramp ? first : floor(first));
        last = fmin(rotary->dims - 1, rotary->exact_ramp ? last : ceil(last));
    }
    for (uint32_t i = 0; i < rotary->dims / 2; i++) {
        double frequency = pow(rotary->base, -2.0 * i / rotary->dims);
        if (factors && !rotary->unfactored)
            frequency /= factors[i];
        double share = share_slowed(rotary, first, last, i);
        if (share > 0)
            frequency = frequency * (1 - share) + frequency / (double)rotary->factor * share;
        ret_frequencies[i] = frequency;
    }
}

const float *rotary_factors(const struct model *model, uint32_t n_context)
{
    enum tensor_role role = model_is_stretched(model, n_context)         ? TENSOR_ROTARY_LONG
                            : model->tensors[TENSOR_ROTARY_SHORT].weight ? TENSOR_ROTARY_SHORT
                                                                         : TENSOR_ROTARY_FACTORS;
    return model->tensors[role].weight ? model->tensors[role].weight->data : NULL;
}

bool rotary_is_alike(const struct rotary *a, const struct rotary *b)
{
    return a->kind == b->kind && a->dims == b->dims && a->base == b->base && a->scaling == b->scaling &&
           a->factor == b->factor && a->trained_context == b->trained_context &&
           a->fast_turns == b->fast_turns && a->slow_turns == b->slow_turns &&
           a->exact_ramp == b->exact_ramp && a->magnitude == b->magnitude && a->unfactored == b->unfactored;
}
