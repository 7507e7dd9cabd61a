/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_WORKER_CPU_ACTIVATIONS_H
#define TESTS_UNIT_WORKER_CPU_ACTIVATIONS_H

/* Activations by the textbook. */

#include <math.h>

#include "worker/model/description.h"

static inline double activated(enum activation activation, double x)
{
    switch (activation) {
    case ACTIVATION_SILU:
        return x / (1 + exp(-x));
    case ACTIVATION_GELU:
        return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    default:
        return x > 0 ? x * x : 0;
    }
}

#endif
