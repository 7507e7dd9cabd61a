/* SPDX-License-Identifier: MIT */
#ifndef WORKER_MODEL_TRAITS_H
#define WORKER_MODEL_TRAITS_H

/* What a model asks of a backend, as a set: a backend says which traits it executes, and a model that has
 * another is refused by that trait's name instead of being computed without it. */

#include "worker/model/model.h"

enum model_trait {
    TRAIT_NORM_RMS,
    TRAIT_NORM_LAYER,
    TRAIT_NORM_AFTER,
    TRAIT_NORM_OFFSET,
    TRAIT_PARALLEL,
    TRAIT_POSITIONS,
    TRAIT_ROTARY_PAIRS,
    TRAIT_ROTARY_HALVES,
    TRAIT_ROTARY_SCALING,
    TRAIT_ROTARY_YARN,
    TRAIT_ROTARY_LONG,
    TRAIT_BIASES,
    TRAIT_QK_NORM,
    TRAIT_WINDOW,
    TRAIT_ATTENTION_CAP,
    TRAIT_LOGIT_CAP,
    TRAIT_SCALES,
    TRAIT_SILU,
    TRAIT_GELU,
    TRAIT_RELU_SQUARED,
    TRAIT_UNGATED,
    TRAIT_SLICES,
    TRAIT_EXPERTS,
    TRAIT_SHARED_EXPERTS,
    MODEL_TRAITS
};

typedef uint32_t trait_set;
#define TRAIT_BIT(trait) ((trait_set)1 << (trait))

/* What this model has. */
trait_set model_traits(const struct model *model);

/* "mixtures of experts" */
const char *model_trait_name(enum model_trait trait);

/* 0, or -EINVAL: `device` cannot compute the first trait that the model has and `executed` lacks. */
int model_check_traits(const struct model *model, trait_set executed, const char *device, struct error *err);

#endif
