/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FORMS_NEUTRAL_H
#define GATEWAY_FORMS_NEUTRAL_H

/* Parameters that clients of other servers send with their defaults. A value that changes nothing is
 * accepted; any other is rejected with an error that names the parameter. */

#include "gateway/core/parameters.h"

/* Accepts the values listed in row->name, separated by spaces ("1", "none auto", "true"), and "no value": ""
 * and []. Numbers are compared by value. An array is accepted if all its members are listed. */
json_row_take neutral_only;

/* A boolean that changes nothing either way. */
json_row_take neutral_bool;

/* The part of the text that penalties apply to. Values in row->name are accepted, as above; any other value
 * is accepted only if the request sets no penalty, which parameters_finish checks. */
json_row_take neutral_penalties;

/* Where to compute: an integer, which has no effect. */
json_row_take neutral_place;

/* top_k, which both -1 and 0 turn off. */
json_row_take neutral_top_k;

/* ---- tables of rows ---- */

/* OpenAI's forms, as extended by vLLM, SGLang, llama.cpp's server and others. Settings of a method that is
 * off (mirostat_tau) have no effect and are ignored. */
/* clang-format off */
#define NEUTRAL_OPENAI_ROWS                                                                                  \
    {"use_beam_search", neutral_only, "false", 0},                                                           \
    {"length_penalty", neutral_only, "1", 0},                                                                \
    {"early_stopping", neutral_only, "false", 0},                                                            \
    {"skip_special_tokens", neutral_only, "true", 0},                                                        \
    {"spaces_between_special_tokens", neutral_bool, NULL, 0},                                                \
    {"include_stop_str_in_output", neutral_only, "false", 0},                                                \
    {"truncate_prompt_tokens", neutral_only, "", 0},                                                         \
    {"prompt_logprobs", neutral_only, "", 0},                                                                \
    {"return_token_ids", neutral_only, "false", 0},                                                          \
    {"return_tokens_as_token_ids", neutral_only, "false", 0},                                                \
    {"priority", parameters_priority, NULL, 0},                                                              \
    {"request_id", json_in_ignore, NULL, 0},                                                                 \
    {"tfs_z", neutral_only, "1", 0},                                                                         \
    {"top_a", neutral_only, "0", 0},                                                                         \
    {"mirostat", neutral_only, "0", 0},                                                                      \
    {"mirostat_tau", json_in_ignore, NULL, 0},                                                               \
    {"mirostat_eta", json_in_ignore, NULL, 0},                                                               \
    {"penalize_nl", neutral_penalties, "true", 0},                                                           \
    {"id_slot", neutral_place, NULL, 0}

#define NEUTRAL_CHAT_ROWS                                                                                    \
    {"modalities", neutral_only, "text", 0},                                                                 \
    {"verbosity", neutral_only, "medium", 0},                                                                \
    {"prompt_cache_retention", json_in_ignore, NULL, 0},                                                     \
    {"best_of", neutral_only, "1", 0},                                                                       \
    {"echo", neutral_only, "false", 0},                                                                      \
    {"add_special_tokens", neutral_only, "false", 0},                                                        \
    {"chat_template", neutral_only, "", 0},                                                                  \
    {"documents", neutral_only, "", 0}

/* Ollama's options. */
#define NEUTRAL_OLLAMA_OPTIONS                                                                               \
    {"tfs_z", neutral_only, "1", 0},                                                                         \
    {"mirostat", neutral_only, "0", 0},                                                                      \
    {"mirostat_tau", json_in_ignore, NULL, 0},                                                               \
    {"mirostat_eta", json_in_ignore, NULL, 0},                                                               \
    {"penalize_newline", neutral_penalties, "true", 0},                                                      \
    {"vocab_only", neutral_only, "false", 0}
/* clang-format on */

#endif
