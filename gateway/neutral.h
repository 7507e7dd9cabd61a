/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_NEUTRAL_H
#define GATEWAY_NEUTRAL_H

/* Parameters of other servers that clients send with the value they have anyway. What asks for what happens
 * in any case is accepted, and anything else is refused by name. */

#include "gateway/parameters.h"

/* Accepted where it is one of the values in row->name, which stand there with spaces between them: "1",
 * "auto default", "true". Numbers are compared as such; of an array all members must be among the values. */
json_row_take neutral_only;

/* A boolean, and both of them come to the same. */
json_row_take neutral_bool;

/* What of the text penalties look at. Values in row->name, as above, are what happens; others are accepted as
 * long as there are no penalties, which parameters_finish sees. */
json_row_take neutral_penalties;

/* A number of which less than 1 means "off", as 0 does here: top_k. */
json_row_take neutral_top_k;

/* ---- tables of rows ---- */

/* Of OpenAI's forms, as vLLM, SGLang, llama.cpp's server and others have extended them. What belongs to a
 * method that is off has no effect, whatever it is. */
/* clang-format off */
#define NEUTRAL_OPENAI_ROWS                                                                                  \
    {"use_beam_search", neutral_only, "false", 0},                                                           \
    {"length_penalty", neutral_only, "1", 0},                                                                \
    {"early_stopping", neutral_only, "false", 0},                                                            \
    {"min_tokens", neutral_only, "0", 0},                                                                    \
    {"ignore_eos", neutral_only, "false", 0},                                                                \
    {"skip_special_tokens", neutral_only, "true", 0},                                                        \
    {"spaces_between_special_tokens", neutral_bool, NULL, 0},                                                \
    {"include_stop_str_in_output", neutral_only, "false", 0},                                                \
    {"stop_token_ids", neutral_only, "", 0},                                                                 \
    {"bad_words", neutral_only, "", 0},                                                                      \
    {"truncate_prompt_tokens", neutral_only, "", 0},                                                         \
    {"prompt_logprobs", neutral_only, "", 0},                                                                \
    {"return_token_ids", neutral_only, "false", 0},                                                          \
    {"return_tokens_as_token_ids", neutral_only, "false", 0},                                                \
    {"priority", neutral_only, "0", 0},                                                                      \
    {"request_id", json_in_ignore, NULL, 0},                                                                 \
    {"typical_p", neutral_only, "1", 0},                                                                     \
    {"tfs_z", neutral_only, "1", 0},                                                                         \
    {"top_a", neutral_only, "0", 0},                                                                         \
    {"top_n_sigma", neutral_only, "-1 0", 0},                                                                \
    {"mirostat", neutral_only, "0", 0},                                                                      \
    {"mirostat_tau", json_in_ignore, NULL, 0},                                                               \
    {"mirostat_eta", json_in_ignore, NULL, 0},                                                               \
    {"dynatemp_range", neutral_only, "0", 0},                                                                \
    {"dynatemp_exponent", json_in_ignore, NULL, 0},                                                          \
    {"xtc_probability", neutral_only, "0", 0},                                                               \
    {"xtc_threshold", json_in_ignore, NULL, 0},                                                              \
    {"dry_multiplier", neutral_only, "0", 0},                                                                \
    {"dry_base", json_in_ignore, NULL, 0},                                                                   \
    {"dry_allowed_length", json_in_ignore, NULL, 0},                                                         \
    {"dry_penalty_last_n", json_in_ignore, NULL, 0},                                                         \
    {"dry_sequence_breakers", json_in_ignore, NULL, 0},                                                      \
    {"repeat_last_n", neutral_penalties, "-1 64", 0},                                                        \
    {"penalize_nl", neutral_penalties, "true", 0},                                                           \
    {"id_slot", neutral_only, "-1", 0}

#define NEUTRAL_CHAT_ROWS                                                                                    \
    {"modalities", neutral_only, "text", 0},                                                                 \
    {"verbosity", neutral_only, "medium", 0},                                                                \
    {"prompt_cache_retention", json_in_ignore, NULL, 0},                                                     \
    {"best_of", neutral_only, "1", 0},                                                                       \
    {"echo", neutral_only, "false", 0},                                                                      \
    {"add_generation_prompt", neutral_only, "true", 0},                                                      \
    {"continue_final_message", neutral_only, "false", 0},                                                    \
    {"add_special_tokens", neutral_only, "false", 0},                                                        \
    {"chat_template", neutral_only, "", 0},                                                                  \
    {"chat_template_kwargs", json_in_unsupported, NULL, 0},                                                  \
    {"documents", neutral_only, "", 0}

/* Ollama's options. */
#define NEUTRAL_OLLAMA_OPTIONS                                                                               \
    {"typical_p", neutral_only, "1", 0},                                                                     \
    {"tfs_z", neutral_only, "1", 0},                                                                         \
    {"mirostat", neutral_only, "0", 0},                                                                      \
    {"mirostat_tau", json_in_ignore, NULL, 0},                                                               \
    {"mirostat_eta", json_in_ignore, NULL, 0},                                                               \
    {"repeat_last_n", neutral_penalties, "-1 64", 0},                                                        \
    {"penalize_newline", neutral_penalties, "true", 0},                                                      \
    {"vocab_only", neutral_only, "false", 0}
/* clang-format on */

#endif
