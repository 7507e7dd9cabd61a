/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_CPU_ACTIVATIONS_H
#define TESTS_UNIT_CPU_ACTIVATIONS_H

/* Activation functions by their textbook formulas. */

#include <math.h>
#include <stdbool.h>

#include "model/description.h"

static inline double activated(enum activation activation, double x)
{
    switch (activation) {
    case ACTIVATION_SILU:
        return x / (1 + exp(-x));
    case ACTIVATION_GELU:
        return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case ACTIVATION_RELU_SQUARED:
        return x > 0 ? x * x : 0;
    case ACTIVATION_SWIGLU_CLAMPED:
        return fmin(x, 7) / (1 + exp(-1.702 * fmin(x, 7)));
    }
    return NAN;
}

static inline double gated(enum activation activation, double gate, double up)
{
    const bool clamped = activation == ACTIVATION_SWIGLU_CLAMPED;
    return activated(activation, gate) * (clamped ? 1 + fmin(7, fmax(-7, up)) : up);
}

static const enum activation every_activation[] = {
#define EACH(name, id, words) ACTIVATION_##name,
    ACTIVATIONS(EACH)
#undef EACH
};

#endif
