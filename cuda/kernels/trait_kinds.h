/* SPDX-License-Identifier: MIT */
#ifndef CUDA_KERNELS_TRAIT_KINDS_H
#define CUDA_KERNELS_TRAIT_KINDS_H

/* The kinds of model/kinds.h in kernels. */

#include "cuda/device/simt.h"
#include "model/description.h"

static __device__ inline float activation_silu(float x)
{
    return x / (1.0f + expf(-x));
}

/* By tanh: x / (1 + e^−2u), u = √(2/π) · (x + 0.044715 x³). */
static __device__ inline float activation_gelu(float x)
{
    return x / (1.0f + expf(-2 * 0.79788456f * fmaf(x * x * x, 0.044715f, x)));
}

static __device__ inline float activation_relu_squared(float x)
{
    x = x < 0 ? 0 : x;
    return x * x;
}

#define SWIGLU_LIMIT 7.0f

static __device__ inline float activation_swiglu_clamped(float x)
{
    x = x > SWIGLU_LIMIT ? SWIGLU_LIMIT : x;
    return x / (1.0f + expf(-1.702f * x));
}

/* The factor of a gate's activation. */
static __device__ inline float gated_factor(enum activation activation, float up)
{
    switch (activation) {
    case ACTIVATION_SILU:
    case ACTIVATION_GELU:
    case ACTIVATION_RELU_SQUARED:
        return up;
    case ACTIVATION_SWIGLU_CLAMPED:
        return (up > SWIGLU_LIMIT ? SWIGLU_LIMIT : up < -SWIGLU_LIMIT ? -SWIGLU_LIMIT : up) + 1;
    }
    return NAN; /* there is no other */
}

static __device__ inline float activated(enum activation activation, float x)
{
#define CASE(name, id, words)                                                                                \
    case ACTIVATION_##name:                                                                                  \
        return activation_##id(x);
    switch (activation) {
        ACTIVATIONS(CASE)
    }
#undef CASE
    return NAN; /* there is no other */
}

/* Whether rows are centered, and have a bias. */
static __device__ inline bool is_centered(enum norm_kind kind)
{
    switch (kind) {
    case NORM_RMS:
        return false;
    case NORM_LAYER:
        return true;
    }
    return false;
}

#endif
