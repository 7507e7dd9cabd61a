/* SPDX-License-Identifier: MIT */
/* The kernels of one instruction set, put together. */

#include "cpu/kernels/build.h"

#define MULTIPLY(name, id, number, elements, bytes)      [FORMAT_##name] = LANES_NAMED(multiply_##id),
#define ACTIVATE(name, id, words)                        [ACTIVATION_##name] = LANES_NAMED(id),
#define MULTIPLY_PAIR(name, id, number, elements, bytes) [FORMAT_##name] = multiply_##id##_avx512_pair,
#define MULTIPLY_MANY(name, id, number, elements, bytes) /* of quantized formats */                          \
    [FORMAT_##name] = (elements) > 1 ? multiply_##id##_i8mm : NULL,

#if defined(LANES_AMX) /* AVX-512, and tiles for many rows */
extern const struct kernels kernels_amx;
const struct kernels kernels_amx = {
    .name = "amx",
    .multiply_many =
        {
            [FORMAT_Q8_0] = multiply_q8_0_amx,
            [FORMAT_Q4_0] = multiply_q4_0_amx,
            [FORMAT_Q5_0] = multiply_q5_0_amx,
            [FORMAT_Q4_K] = multiply_q4_k_amx,
            [FORMAT_Q5_K] = multiply_q5_k_amx,
            [FORMAT_Q6_K] = multiply_q6_k_amx,
        },
    .has_tiles = true,
    .many_groups = 2,
    .many_rows = 128,
    .quantize = quantize_amx,
#elif defined(LANES_I8MM) /* SDOT, and SMMLA for many rows */
extern const struct kernels kernels_i8mm;
const struct kernels kernels_i8mm = {
    .name = "i8mm",
    .multiply_many = {FORMATS(MULTIPLY_MANY)},
    .has_tiles = true,
    .many_groups = 1,
    .many_rows = KERNELS_MANY,
    .quantize = quantize_i8mm,
#else
const struct kernels LANES_NAMED(kernels) = {
    .name = LANES_NAME,
    .quantize = LANES_NAMED(quantize),
#endif
    .multiply = {FORMATS(MULTIPLY)},
#if defined(LANES_AVX512)
    .multiply_pair = {FORMATS(MULTIPLY_PAIR)},
#endif
    .rms_norm = LANES_NAMED(rms_norm),
    .layer_norm = LANES_NAMED(layer_norm),
    .activate = {ACTIVATIONS(ACTIVATE)},
    .sigmoid = LANES_NAMED(sigmoid),
    .unit = LANES_NAMED(unit),
    .convolve = LANES_NAMED(convolve),
    .soft_cap = LANES_NAMED(soft_cap),
    .add = LANES_NAMED(add),
    .floats_to_halves = LANES_NAMED(floats_to_halves),
    .scale_each = LANES_NAMED(scale_each),
    .scale_all = LANES_NAMED(scale_all),
    .attend_halves = LANES_ATTEND_HALVES,
#if defined(LANES_AVX512)
    .halves_to_floats = halves_to_floats_avx512_pair,
    .attend = attend_avx512_pair,
    .delta_rule = delta_rule_avx512_pair,
#else
    .halves_to_floats = LANES_NAMED(halves_to_floats),
    .attend = LANES_NAMED(attend),
    .delta_rule = LANES_NAMED(delta_rule),
#endif
};
