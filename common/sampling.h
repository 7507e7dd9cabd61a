/* SPDX-License-Identifier: MIT */
#ifndef COMMON_SAMPLING_H
#define COMMON_SAMPLING_H

/* The parameters with which the next id is chosen, from the command line to the sampler.
 *
 * This list is the only source of their names, bounds and defaults. From it are generated the struct below,
 * the keys of the protocol, libquern's copy of its public struct (it does not compile unless quern.h has a
 * member of the same name), the options of the command line, their help and the table of PROTOCOL.md.
 * engine/sampling/sampling.h describes what they do to the logits, and in which order.
 *
 * A row: name, least, most, default, placeholder for the value in --help, help. The default, OpenAI's, is for
 * requests that leave the parameter out, if neither the pool nor the model has one (sampling_defaults.h).
 * Until it is set, the value is NaN or SAMPLING_LEFT_COUNT. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/* REAL rows are doubles, COUNT rows int32_t. */
/* clang-format off */
#define SAMPLING_PARAMETERS(REAL, COUNT)                                                                      \
    REAL(temperature, 0, 100, 1, "T", "divide the logits by this: above 1 varies more; 0 = greedy")         \
    COUNT(top_k, 0, INT32_MAX, 0, "K", "sample from the K most likely; 0 = off, 1 = greedy")                 \
    REAL(top_p, 0, 1, 1, "P", "sample from the likeliest tokens whose probabilities sum to P; 1 = off")    \
    REAL(min_p, 0, 1, 0, "P", "drop tokens less likely than P times the likeliest; 0 = off")               \
    REAL(repetition_penalty, 0.01, 100, 1, "R",                                                               \
         "make tokens of the prompt and the output less likely; 1 = off")                                     \
    REAL(presence_penalty, -2, 2, 0, "R", "subtract from the logits of tokens in the output; 0 = off")        \
    REAL(frequency_penalty, -2, 2, 0, "R",                                                                    \
         "subtract from a logit for each time its token is in the output; 0 = off")                            \
    COUNT(repeat_last_n, -1, INT32_MAX, -1, "N",                                                              \
          "penalties look at the last N tokens of prompt and output; -1 = all, 0 = off")                      \
    REAL(top_n_sigma, -1, 1000, 0, "N",                                                                       \
         "drop tokens whose logits are more than N standard deviations below the largest; 0 = off")            \
    REAL(typical_p, 0, 1, 1, "P",                                                                             \
         "sample from the tokens nearest to the expected surprise whose probabilities sum to P; 1 = off")      \
    REAL(xtc_probability, 0, 1, 0, "P", "the probability of excluding the likeliest tokens (XTC); 0 = off")   \
    REAL(xtc_threshold, 0, 1, 0.1, "P",                                                                       \
         "XTC: of the tokens at least this likely, all but the least likely are excluded")                     \
    REAL(dynatemp_range, 0, 100, 0, "R",                                                                      \
         "vary the temperature by up to this with the entropy; 0 = off")                                       \
    REAL(dynatemp_exponent, 0, 100, 1, "X", "the exponent of the entropy, for the dynamic temperature")        \
    REAL(dry_multiplier, 0, 100, 0, "M",                                                                      \
         "make tokens that would continue a repetition less likely (DRY); 0 = off")                            \
    REAL(dry_base, 0, 100, 1.75, "B",                                                                         \
         "DRY: the penalty grows by this with each token of the repeat; below 1 = off")                        \
    COUNT(dry_allowed_length, 1, INT32_MAX, 2, "N", "DRY: shorter repeats are allowed")                       \
    COUNT(dry_penalty_last_n, -1, INT32_MAX, -1, "N", "DRY: look at the last N tokens; -1 = all, 0 = off")
/* clang-format on */

/* A number added to the logit of an id: −SAMPLING_MAX_BIAS almost forbids it, SAMPLING_MAX_BIAS almost forces
 * it, and −∞ forbids it. */
struct logit_bias {
    int32_t id;
    float bias;
};

#define SAMPLING_MAX_BIAS   100
#define SAMPLING_MAX_BIASES 1024 /* entries of one request */

struct logit_bias_list { /* an id that occurs twice gets both biases */
    const struct logit_bias *items;
    size_t n;
};

/* Lists of ids, one after the other: each as its length, at least 1, and its ids. */
struct id_sequences {
    const int32_t *items; /* [len] */
    size_t len, n;        /* n: how many lists */
};

#define SAMPLING_MOST_SEQUENCES    512  /* of a request, bad words and breakers together */
#define SAMPLING_MOST_SEQUENCE_LEN 4096 /* of their items */
/* Where DRY's repetitions end: at an id whose bit is set, or where all ids of a sequence occur. */
struct dry_breakers {
    const uint32_t *mask; /* [n_words]: bit id % 32 of word id / 32 */
    size_t n_words;
    struct id_sequences sequences;
};

struct sampling {
#define SAMPLING_REAL(name, ...)  double name;
#define SAMPLING_COUNT(name, ...) int32_t name;
    SAMPLING_PARAMETERS(SAMPLING_REAL, SAMPLING_COUNT)
#undef SAMPLING_REAL
#undef SAMPLING_COUNT
    uint64_t seed;
    /* Borrowed, or owned after sampling_copy. */
    struct logit_bias_list logit_bias;
    struct id_sequences bad_words; /* the last id of one is never sampled after the others */
    struct dry_breakers dry_breakers;
};

#define SAMPLING_LEFT_COUNT INT32_MIN
#define SAMPLING_LEFT_REAL  ((double)__builtin_nanf(""))

static inline bool sampling_real_is_left(double value)
{
    return __builtin_isnan(value);
}

/* Marks every parameter of the list as left out. */
void sampling_leave(struct sampling *sampling);

/* Initializers for parameters whose value for "off" is not 0. */
#define SAMPLING_RARE_OFF                                                                                    \
    .repeat_last_n = -1, .typical_p = 1, .xtc_threshold = 0.1, .dynatemp_exponent = 1, .dry_base = 1.75,     \
    .dry_allowed_length = 2, .dry_penalty_last_n = -1
#define SAMPLING_OFF .top_p = 1, .repetition_penalty = 1, SAMPLING_RARE_OFF

/* Greedy, with everything else off. */
#define SAMPLING_GREEDY ((struct sampling){SAMPLING_OFF})

/* Checks the bounds above, and that every id of logit_bias is below n_vocab (0: not checked). 0; or -EINVAL
 * with a text that begins with the name. NaN is out of every range. */
int sampling_check(const struct sampling *sampling, uint32_t n_vocab, struct error *err);

/* A copy with its own lists, for sampling_deinit. 0 or -ENOMEM. */
int sampling_copy(const struct sampling *from, struct sampling *ret_sampling);
void sampling_deinit(struct sampling *sampling); /* frees the lists; takes a zeroed struct too */

#endif
