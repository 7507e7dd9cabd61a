/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_CPU_SMALL_SHAPES_H
#define TESTS_UNIT_CPU_SMALL_SHAPES_H

/* Shapes of small models. */

#include "model/convert/synth.h"

/* Wide enough for superblocks of 256; four query heads share two key heads. */
static const struct synth_shape small_shape = {.name = "small",
                                               .n_vocab = 405,
                                               .n_context = 1024,
                                               .n_embd = 256,
                                               .n_layers = 2,
                                               .n_heads = 4,
                                               .n_kv_heads = 2,
                                               .head_dim = 64,
                                               .n_ff = 512,
                                               .norm_epsilon = 1e-5f,
                                               .rope_base = 10000,
                                               .rope_factor = 4,
                                               .biases = true};

/* No size is a multiple of eight: for F32, F16 and BF16. */
static const struct synth_shape odd_shape = {.name = "odd",
                                             .n_vocab = 363,
                                             .n_context = 1024,
                                             .n_embd = 33,
                                             .n_layers = 2,
                                             .n_heads = 3,
                                             .n_kv_heads = 1,
                                             .head_dim = 10,
                                             .n_ff = 51,
                                             .norm_epsilon = 1e-5f,
                                             .rope_base = 10000,
                                             .tied = true};

/* Every second layer is recurrent; two query heads share two key heads. */
static const struct synth_shape hybrid_shape = {.name = "hybrid",
                                                .architecture = "qwen35",
                                                .n_vocab = 405,
                                                .n_context = 1024,
                                                .n_embd = 256,
                                                .n_layers = 4,
                                                .n_heads = 4,
                                                .n_kv_heads = 2,
                                                .head_dim = 64,
                                                .n_ff = 512,
                                                .norm_epsilon = 1e-6f,
                                                .rope_base = 10000,
                                                .rope_dims = 16,
                                                .delta = {2, 4, 32, 64, 4},
                                                .attention_interval = 2};

/* The same with no size a multiple of eight. */
static const struct synth_shape odd_hybrid_shape = {.name = "odd hybrid",
                                                    .architecture = "qwen3next",
                                                    .n_vocab = 363,
                                                    .n_context = 1024,
                                                    .n_embd = 33,
                                                    .n_layers = 2,
                                                    .n_heads = 3,
                                                    .n_kv_heads = 1,
                                                    .head_dim = 10,
                                                    .n_ff = 51,
                                                    .norm_epsilon = 1e-6f,
                                                    .rope_base = 10000,
                                                    .tied = true,
                                                    .n_experts = 7,
                                                    .n_experts_used = 3,
                                                    .n_expert_ff = 21,
                                                    .n_shared_ff = 19,
                                                    .delta = {3, 6, 11, 13, 3},
                                                    .attention_interval = 2};

/* Layers of two kinds; those with a window have smaller heads. */
static const struct synth_shape differing_shape = {.name = "differing",
                                                   .architecture = "gemma4",
                                                   .n_vocab = 405,
                                                   .n_context = 1024,
                                                   .n_embd = 256,
                                                   .n_layers = 2,
                                                   .n_heads = 4,
                                                   .n_kv_heads = 2,
                                                   .head_dim = 64,
                                                   .n_ff = 512,
                                                   .norm_epsilon = 1e-6f,
                                                   .rope_base = 1000000,
                                                   .tied = true,
                                                   .window = 50,
                                                   .logit_cap = 30,
                                                   .window_period = 2,
                                                   .window_head_dim = 32,
                                                   .full_kv_heads = 1,
                                                   .turning_share = 4};

/* The last layers borrow keys and values and are wider, and each layer has its own embedding of the token; no
 * size is a multiple of eight. */
static const struct synth_shape borrowing_shape = {.name = "borrowing",
                                                   .architecture = "gemma4",
                                                   .n_vocab = 363,
                                                   .n_context = 1024,
                                                   .n_embd = 33,
                                                   .n_layers = 4,
                                                   .n_heads = 3,
                                                   .n_kv_heads = 1,
                                                   .head_dim = 14,
                                                   .n_ff = 51,
                                                   .norm_epsilon = 1e-6f,
                                                   .rope_base = 1000000,
                                                   .tied = true,
                                                   .window = 40,
                                                   .window_period = 2,
                                                   .window_head_dim = 10,
                                                   .n_borrowing_layers = 2,
                                                   .n_layer_embd = 13,
                                                   .borrowing_ff = 70};

/* As little computation as possible, for tests that repeat it often. */
static const struct synth_shape thin_shape = {.name = "thin",
                                              .n_vocab = 360,
                                              .n_context = 256,
                                              .n_embd = 32,
                                              .n_layers = 2,
                                              .n_heads = 2,
                                              .n_kv_heads = 1,
                                              .head_dim = 16,
                                              .n_ff = 32,
                                              .norm_epsilon = 1e-5f,
                                              .rope_base = 10000,
                                              .biases = true};

#endif
