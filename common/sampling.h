/* SPDX-License-Identifier: MIT */
#ifndef COMMON_SAMPLING_H
#define COMMON_SAMPLING_H

/* How the next id is chosen: the parameters that a request carries from the command line to the sampler.
 *
 * This list is the one place that names them, their bounds and their defaults. The struct below, the keys of
 * the protocol, libquern's copy from its public struct (quern.h must have a member of the same name, or it
 * does not compile), the options of the command line, their help and the table of PROTOCOL.md all come from
 * it. What they do to the logits, and in which order, is in engine/sampling/sampling.h.
 *
 * A row: name, least, most, default, the letter that stands for a value in --help, what it does. The default,
 * OpenAI's, is for requests that do not say, where neither the pool nor the model has one
 * (sampling_defaults.h). Until it is known the parameter is left out: NaN, or SAMPLING_LEFT_COUNT. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/* REAL rows are doubles, COUNT rows uint32_t. */
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
         "subtract from a logit for each time its token is in the output; 0 = off")
/* clang-format on */

/* What is added to the logit of one id: −SAMPLING_MAX_BIAS all but forbids it, SAMPLING_MAX_BIAS all but
 * forces it. */
struct logit_bias {
    int32_t id;
    float bias;
};

#define SAMPLING_MAX_BIAS   100
#define SAMPLING_MAX_BIASES 1024 /* entries of one request */

struct logit_bias_list { /* an id that stands in it twice gets both */
    const struct logit_bias *items;
    size_t n;
};

struct sampling {
#define SAMPLING_REAL(name, ...)  double name;
#define SAMPLING_COUNT(name, ...) uint32_t name;
    SAMPLING_PARAMETERS(SAMPLING_REAL, SAMPLING_COUNT)
#undef SAMPLING_REAL
#undef SAMPLING_COUNT
    uint64_t seed;
    struct logit_bias_list logit_bias; /* borrowed, or the owner's own after sampling_copy */
};

#define SAMPLING_LEFT_COUNT UINT32_MAX
#define SAMPLING_LEFT_REAL  ((double)__builtin_nanf(""))

static inline bool sampling_real_is_left(double value)
{
    return __builtin_isnan(value);
}

/* Leaves every parameter of the list out. */
void sampling_leave(struct sampling *sampling);

/* Greedy, with everything else off. */
#define SAMPLING_GREEDY ((struct sampling){.top_p = 1, .repetition_penalty = 1})

/* The bounds above, and that every id of logit_bias is below n_vocab (0: not checked). 0; or -EINVAL with a
 * text that begins with the name. NaN is out of every range. */
int sampling_check(const struct sampling *sampling, uint32_t n_vocab, struct error *err);

/* A copy with lists of its own, until sampling_deinit. 0 or -ENOMEM. */
int sampling_copy(const struct sampling *from, struct sampling *ret_sampling);
void sampling_deinit(struct sampling *sampling); /* frees the lists; zeroed is fine */

#endif
