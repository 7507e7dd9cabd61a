/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FORMS_OPENAI_OPENAI_H
#define GATEWAY_FORMS_OPENAI_OPENAI_H

/* The common parts of answers of /v1/chat/completions and /v1/completions; /infill uses events and errors
 * too.
 */

#include "common/sampling.h"
#include "gateway/core/samplers.h"
#include "gateway/forms/generation.h"
#include "gateway/forms/neutral.h"

#define OPENAI_PING ": ping\n\n" /* a comment */

/* Writes "data: {…}\n\n", in two halves. */
void openai_event_open(struct json_out *out);
void openai_event_close(struct json_out *out);

/* Writes `{"id":"PREFIX…","object":OBJECT,"created":…,"model":…`: the start of every object. */
void openai_head(const struct generation *generation, const char *prefix, const char *object,
                 struct json_out *out);

/* Writes `,"usage":{…},"timings":{…}`. */
void openai_usage(const struct generation *generation, struct json_out *out);

/* "stop", "length" or "tool_calls". */
const char *openai_finish_reason(const struct choice *choice);

/* Writes `,"finish_reason":…` (NULL: null) and, with "length", which limit it was. */
void openai_finish(const struct choice *choice, const char *finish_reason, struct json_out *out);

/* Writes `,"prompt_progress":{…}`, as in llama-server's API. */
void openai_progress(const struct generation *generation, const struct quern_progress *progress,
                     struct json_out *out);

/* Writes the chunk with the usage, if requested, and [DONE]. */
void openai_stream_end(struct generation *generation, const char *prefix, const char *object,
                       struct json_out *out);

/* Writes an event with the error, which ends the stream. */
void openai_fail(struct generation *generation, const struct refusal *refusal, struct json_out *out);

/* A sampling parameter under its own name. */
#define OPENAI_NUMBER(name, ...) {#name, parameters_number, #name, 0},

/* Rows of both. The row of top_k comes before the list's, which does not accept -1. */
/* clang-format off */
#define OPENAI_ROWS                                                                                          \
    {"model", parameters_model, NULL, 0},                                                                    \
    {"max_tokens", parameters_max_tokens, "-1: as many as there is room for", 0},                          \
    {"top_k", neutral_top_k, NULL, 0},                                                                       \
    SAMPLING_PARAMETERS(OPENAI_NUMBER, OPENAI_NUMBER)                                                        \
    {"repeat_penalty", parameters_number, "repetition_penalty", 0},                                          \
    {"seed", parameters_seed, NULL, 0},                                                                      \
    {"stop", parameters_stop, NULL, 0},                                                                      \
    {"stop_token_ids", parameters_stop_ids, NULL, 0},                                                        \
    {"ignore_eos", json_in_bool, NULL, offsetof(struct parameters, request.ignore_eos)},                     \
    {"min_tokens", parameters_number, "min_tokens", 0},                                                      \
    {"logit_bias", parameters_logit_bias, NULL, 0},                                                          \
    {"bad_words", parameters_bad_words, NULL, 0},                                                            \
    {"dry_sequence_breakers", parameters_dry_breakers, NULL, 0},                                             \
    {"n", parameters_n, NULL, 0},                                                                            \
    {"n_cmpl", parameters_n, NULL, 0},                                                                       \
    {"n_predict", parameters_n_predict, "-1: as many as there is room for", 0},                            \
    {"samplers", samplers_take, NULL, 0},                                                                    \
    {"response_fields", json_in_ignore, NULL, 0}, /* supported in llama-server's formats */                   \
    {"stream", json_in_bool, NULL, offsetof(struct parameters, stream)},                                     \
    {"stream_options", parameters_stream_options, NULL, 0},                                                  \
    PARAMETERS_PROGRESS_ROW,                                                                                 \
    {"user", json_in_ignore, NULL, 0},                                                                       \
    {"metadata", json_in_ignore, NULL, 0},                                                                   \
    PARAMETERS_CACHE_ROWS,                                                                                   \
    NEUTRAL_OPENAI_ROWS
/* clang-format on */

#endif
