/* SPDX-License-Identifier: MIT */
#ifndef MODEL_KINDS_H
#define MODEL_KINDS_H

/* The kinds of each trait in which models differ: one list per trait. ROW takes NAME, id and the words for
 * errors. Enums, traits (traits.h), tables of kernels and the tests are made from these lists, and switches
 * over them have no default (-Wswitch-enum), so a kind that is added here does not build until every user
 * computes it:
 *
 * MIXERS: the parts of a layer that mix positions; each backend has a pass for it, or lists it as missing
 * (traits.h).
 *
 * ACTIVATIONS: the CPU's kernels of that id (cpu/kernels/rows.c); on a GPU activation_ID and gated_factor
 * (cuda/kernels/trait_kinds.h) and their references (cuda/check/reference.c); the tests.
 *
 * NORM_KINDS, ROTARY_KINDS: switches in both backends.
 *
 * ROTARY_SCALINGS: model/frequencies.c; the id is its name in files. */

#define MIXERS(ROW)                                                                                          \
    ROW(ATTENTION, attention, "attention")                                                                   \
    ROW(DELTA, delta, "gated delta nets")

/* Clamped SwiGLU: min(x, 7) · σ(1.702 · min(x, 7)), times the gated value clipped to ±7, plus 1. */
#define ACTIVATIONS(ROW)                                                                                     \
    ROW(SILU, silu, "SiLU")                                                                                  \
    ROW(GELU, gelu, "GELU") /* its tanh approximation */                                                     \
    ROW(RELU_SQUARED, relu_squared, "squared ReLU")                                                          \
    ROW(SWIGLU_CLAMPED, swiglu_clamped, "clamped SwiGLU")

#define NORM_KINDS(ROW)                                                                                      \
    ROW(RMS, rms, "RMS norms")     /* x / √(mean x² + epsilon) · weight */                               \
    ROW(LAYER, layer, "LayerNorm") /* the same of x − mean x, plus a bias */

#define ROTARY_KINDS(ROW)                                                                                    \
    ROW(NONE, none, "no rotary positions")                                                                   \
    ROW(PAIRS, pairs, "rotary positions by pairs")    /* dims 2i and 2i + 1 of a head turn together */       \
    ROW(HALVES, halves, "rotary positions by halves") /* dims i and i + dims / 2 */

/* LONG: each frequency is divided by its own factor: one list for sequences up to the length of training, one
 * for longer ones. */
#define ROTARY_SCALINGS(ROW)                                                                                 \
    ROW(UNSCALED, none, "unscaled rotary positions")                                                         \
    ROW(LINEAR, linear, "linear rotary scaling")                                                             \
    ROW(YARN, yarn, "YaRN rotary scaling")                                                                   \
    ROW(LONG, longrope, "long-rope factors")

/* The length of a list. */
#define KINDS_ONE(...) +1
#define KINDS_OF(LIST) (0 LIST(KINDS_ONE))

#endif
