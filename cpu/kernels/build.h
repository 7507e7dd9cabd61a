/* SPDX-License-Identifier: MIT */
#ifndef CPU_KERNELS_BUILD_H
#define CPU_KERNELS_BUILD_H

/* Shared by the kernel sources of one instruction set. Names end in the set's name, so several builds link
 * into one program. build.c assembles each. */

#include "cpu/kernels/kernels.h"
#include "cpu/lanes/math.h"

#define MULTIPLY(name, id, number, elements, bytes) extern kernel_multiply LANES_NAMED(multiply_##id);
FORMATS(MULTIPLY)
#undef MULTIPLY
#if defined(LANES_AVX512)
#define MULTIPLY_PAIR(name, id, number, elements, bytes) extern kernel_multiply multiply_##id##_avx512_pair;
FORMATS(MULTIPLY_PAIR)
#undef MULTIPLY_PAIR
extern kernel_multiply multiply_q8_0_amx, multiply_q4_0_amx, multiply_q5_0_amx;
extern kernel_multiply multiply_q4_k_amx, multiply_q5_k_amx, multiply_q6_k_amx;
void quantize_avx512(const struct activations *x, uint32_t row);
void halves_to_floats_avx512_pair(const uint16_t *in, uint32_t n, float *out);
void attend_avx512_pair(const struct attended_block *block, const struct attending *queries, uint32_t n);
void quantize_amx(const struct activations *x, uint32_t row);
void delta_rule_avx512(const struct delta_rows *rows, float *state);
void delta_rule_avx512_pair(const struct delta_rows *rows, float *state);
#endif

#if defined(LANES_DOTPROD)
#define MULTIPLY_MANY(name, id, number, elements, bytes) extern kernel_multiply multiply_##id##_i8mm;
FORMATS(MULTIPLY_MANY)
#undef MULTIPLY_MANY
void quantize_dotprod(const struct activations *x, uint32_t row);
void quantize_i8mm(const struct activations *x, uint32_t row);
#endif

void LANES_NAMED(quantize)(const struct activations *x, uint32_t row);
void LANES_NAMED(rms_norm)(const float *x, const float *weight, uint32_t n, float epsilon, float *out);
void LANES_NAMED(layer_norm)(const float *x, const float *weight, const float *bias, uint32_t n,
                             float epsilon, float *out);
#define ACTIVATE(name, id, words)                                                                            \
    void LANES_NAMED(id)(const float *x, const float *factor, uint32_t n, float *out);
ACTIVATIONS(ACTIVATE)
#undef ACTIVATE
void LANES_NAMED(sigmoid)(const float *x, const float *factor, uint32_t n, float *out);
void LANES_NAMED(unit)(const float *x, uint32_t n, float epsilon, float scale, float *out);
void LANES_NAMED(convolve)(const float *const *rows, const float *taps, uint32_t n_taps, size_t tap_stride,
                           uint32_t n, float *out);
void LANES_NAMED(delta_rule)(const struct delta_rows *rows, float *state);
void LANES_NAMED(soft_cap)(float *x, uint32_t n, float cap);
void LANES_NAMED(add)(float *x, const float *y, uint32_t n);
void LANES_NAMED(halves_to_floats)(const uint16_t *in, uint32_t n, float *out);
void LANES_NAMED(floats_to_halves)(const float *in, uint32_t n, uint16_t *out);
void LANES_NAMED(scale_each)(const int8_t *quants, const float *scales, uint32_t n, float *out);
void LANES_NAMED(scale_all)(const int8_t *quants, float scale, uint32_t n, float *out);
void LANES_NAMED(attend)(const struct attended_block *block, const struct attending *queries, uint32_t n);

extern const struct kernels LANES_NAMED(kernels);

#endif
