/* SPDX-License-Identifier: MIT */
#ifndef MODEL_TRAITS_H
#define MODEL_TRAITS_H

/* What a model requires of a backend, as a set. A backend lists the traits that it does not execute; a model
 * that has one of these is rejected with that trait's name instead of being computed without it. */

#include "model/model.h"

/* Traits without kinds: ROW takes NAME and the words for errors. */
#define PLAIN_TRAITS(ROW)                                                                                    \
    ROW(NORM_AFTER, "norms of what a layer's halves give")                                                   \
    ROW(NORM_OFFSET, "offsets of norms' weights")                                                            \
    ROW(PARALLEL, "attention and feed-forward side by side")                                                 \
    ROW(POSITIONS, "learned positions")                                                                      \
    ROW(BIASES, "biases")                                                                                    \
    ROW(QK_NORM, "norms of queries and keys")                                                                \
    ROW(QK_NORM_ALL, "norms over all heads of queries and keys")                                             \
    ROW(QUERY_GROWTH, "queries that grow with their position")                                               \
    ROW(SINKS, "attention sinks")                                                                            \
    ROW(WINDOW, "attention within a window")                                                                 \
    ROW(ATTENTION_CAP, "soft caps of attention scores")                                                      \
    ROW(LOGIT_CAP, "soft caps of logits")                                                                    \
    ROW(SCALES, "scales of embeddings, residuals or logits")                                                 \
    ROW(UNGATED, "feed-forward without a gate")                                                              \
    ROW(SLICES, "tensors that several roles share")                                                          \
    ROW(EXPERTS, "mixtures of experts")                                                                      \
    ROW(EXPERT_BIASES, "biases of experts")                                                                  \
    ROW(SHARED_EXPERTS, "experts that every token goes to")                                                  \
    ROW(SHARED_GATE, "gates of shared experts")                                                              \
    ROW(OUTPUT_GATE, "gates of attention's output")                                                          \
    ROW(HEADS_DIFFER, "layers whose heads differ")                                                           \
    ROW(VALUES_ARE_KEYS, "keys that are values as well")                                                     \
    ROW(VALUE_NORM, "norms of values")                                                                       \
    ROW(STREAM_SCALE, "layers that scale the residual stream")                                               \
    ROW(EXPERTS_BESIDE, "experts beside a plain feed-forward half")                                          \
    ROW(ROUTER_NORM, "routers with a norm of their own")                                                     \
    ROW(EXPERT_SCALES, "scales of experts")                                                                  \
    ROW(BORROWED_KV, "layers that attend to the keys and values of others")                                  \
    ROW(RANKS, "heads that rank pairs of texts")                                                             \
    ROW(LAYER_EMBEDDINGS, "embeddings of each layer")                                                        \
    ROW(INTERLEAVED, "tensors whose rows several roles have in turn")

#define PLAIN(name, words)           TRAIT_##name,
#define NORM_KIND(name, id, words)   TRAIT_NORM_##name,
#define ROTARY_KIND(name, id, words) TRAIT_ROTARY_##name,
#define ACTIVATION(name, id, words)  TRAIT_##name,
#define MIXER(name, id, words)       TRAIT_MIXER_##name,
enum model_trait {
    MIXERS(MIXER) NORM_KINDS(NORM_KIND) ROTARY_KINDS(ROTARY_KIND) ROTARY_SCALINGS(ROTARY_KIND)
        ACTIVATIONS(ACTIVATION) PLAIN_TRAITS(PLAIN) MODEL_TRAITS
};
#undef PLAIN
#undef NORM_KIND
#undef ROTARY_KIND
#undef ACTIVATION
#undef MIXER

typedef uint64_t trait_set;
#define TRAIT_BIT(trait) ((trait_set)1 << (trait))

/* The traits of this model. */
trait_set model_traits(const struct model *model);

/* "mixtures of experts" */
const char *model_trait_name(enum model_trait trait);

/* 0, or -EINVAL: `device` cannot compute the first trait that the model has and that is among `missing`. */
int model_check_traits(const struct model *model, trait_set missing, const char *device, struct error *err);

/* Written once in each backend, beside its list of missing traits, with the number of MIXERS and
 * PLAIN_TRAITS: a new one does not compile until the backend executes it, or lists it as missing. (For norms,
 * rotations and activations, switches make the compiler check.) */
#define TRAITS_ARE_KNOWN(n)                                                                                  \
    _Static_assert(KINDS_OF(MIXERS) + KINDS_OF(PLAIN_TRAITS) == (n),                                         \
                   "a new trait: execute it, or name it as missing")

#endif
