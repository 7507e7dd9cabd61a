/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_CORE_PARAMETERS_H
#define GATEWAY_CORE_PARAMETERS_H

/* A client's request in any API: a request of libquern, and the form of the answer.
 *
 * Bounds and defaults of numbers are those of libquern. Texts and lists are copied into the arena, so that
 * the JSON tree, which can be many times as large, is freed early. */

#include <quern.h>

#include "common/arena.h"
#include "gateway/http/budget.h"
#include "gateway/json/json_in.h"

#define PARAMETERS_MAX_CHOICES 128
#define PARAMETERS_MAX_ECHO                                                                                  \
    ((size_t)128 << 10) /* bytes of prompts in all choices; a stream holds them in escaped form */

/* A boolean that clients may leave out. */
enum said { SAID_NOTHING, SAID_NO, SAID_YES };

enum tool_use { TOOLS_AUTO, TOOLS_NONE, TOOLS_REQUIRED };

struct offered_tool {
    const char *name;
    const char *schema; /* of its arguments, JSON; NULL: they are not an object */
    bool strict;        /* every call's arguments must match the schema */
    bool barred;        /* must not be called in this request */
};

/* One of several prompts: a text or ids. */
struct prompt_in {
    const char *text;
    size_t text_len;
    const int32_t *ids;
    size_t n_ids;
};

struct parameters {
    struct quern_request request;
    struct prompt_in *prompts; /* [n_prompts] the request has the first; NULL: it has the only one */
    size_t n_prompts;
    bool echo;             /* the answer begins with the prompt, which is a text */
    struct arena arena;    /* all texts and lists */
    struct budget *budget; /* in which they count; NULL: in none */
    size_t counted;        /* bytes counted there */
    uint32_t n;            /* choices of each prompt; 1 … PARAMETERS_MAX_CHOICES for all prompts */
    const char *system;    /* goes before the messages, or the prompt; NULL: none */
    bool chat;             /* a prompt is a user's message, unless it is raw */
    bool raw;
    bool stream;
    enum said continue_turn,
        new_turn; /* whether a last message of the assistant is continued, or a new turn is opened */
    bool infill;  /* the prompt is the text before and after a gap: */
    const char *before, *line; /* the text before the gap, and what follows that text; NULL: "" */
    size_t before_len, line_len;
    bool unload;                 /* a request without a prompt: the model is no longer needed */
    bool warm_up;                /* no token is wanted: the prompt is only to be cached */
    const char *samplers;        /* NULL: all; else names of those that take part, separated by spaces */
    const char *response_fields; /* names of the members that the answer has, as JSON; NULL: all */
    bool include_usage;          /* in a separate chunk at the end of the stream */
    bool has_max_tokens;
    struct offered_tool *tools; /* [n_tools] of request.tools */
    size_t n_tools;
    enum tool_use tool_use;     /* whether they may or must be called */
    bool one_call;              /* at most */
    const char *named_tool;     /* the one to be called; NULL: any */
    const char **allowed_tools; /* [n_allowed] those that may be called; NULL: all */
    size_t n_allowed;
    bool schema_is_object; /* the grammar is a schema for a JSON object */
    bool schema_is_closed; /* the schema is read as closed (grammar_close) */
    bool wants_logprobs;   /* of each id */
    /* Names of given parameters that are rejected later if they would have an effect; NULL: not given. They
     * request penalties over another part of the text, thinking, and no thinking. */
    const char *other_penalties, *with_thinking, *without_thinking;
    const char *effort;      /* of thinking: "low" …; NULL: not given */
    const char *budget_name; /* name of the parameter that set request.thinking_budget; NULL: none */
    bool unbounded_thought;  /* a budget of -1: no limit, whatever the gateway's default is */
    bool has_default_budget; /* the gateway has a default: */
    uint32_t default_budget; /* tokens; 0: no thinking */
    const char *kwargs;      /* variables of the chat template: JSON; NULL: none */
    bool raw_thoughts;       /* thoughts stay in the text */
    int start;               /* enum dialect_start: where the prompt leaves the model */
    uint32_t top_logprobs;
};

/* Sets the defaults. */
void parameters_init(struct parameters *parameters);
void parameters_deinit(struct parameters *parameters);

/* Counts the memory in the budget from now on. False: there is no room. */
bool parameters_count(struct parameters *parameters);

/* Parses the body and reads it with the API's rows. 0 or REFUSED; call parameters_deinit either way. Uses
 * only *parameters and *refusal, so any thread may call it. */
int parameters_read(struct parameters *parameters, const struct json_row *rows, struct bytes body,
                    struct refusal *refusal);

/* Adds system message and prompt to the messages, if they belong there, and sets what depends on several
 * parameters. 0 or REFUSED. */
int parameters_finish(struct parameters *parameters, const char *missing, struct refusal *refusal);

/* ---- takers, whose `into` is a struct parameters ---- */

/* A number of the request; row->name is its name there. */
json_row_take parameters_number;
/* Accept -1, 0 and other values that clients send for "off". */
json_row_take parameters_max_tokens, parameters_seed; /* the seed: a number, or a string of digits */
/* The same; 0: the prompt is only to be cached. */
json_row_take parameters_n_predict;
/* vLLM's priority, where lower goes first. The request gets the pool's, where higher goes first; see
 * key_check_priority. */
json_row_take parameters_priority;
json_row_take parameters_model;
json_row_take parameters_stop;     /* a text or an array of texts */
json_row_take parameters_stop_ids; /* token ids */
/* {"15043": -100, "Hello": 1.5}, or an array of such pairs; the value false: never. */
json_row_take parameters_logit_bias;
json_row_take parameters_bad_words, parameters_dry_breakers; /* texts */
json_row_take parameters_n;
json_row_take parameters_top_logprobs; /* how many of the most likely ids are listed with each id, 0 … 20 */
json_row_take parameters_stream_options;
json_row_take parameters_cache_salt;
json_row_take parameters_prompt;  /* a text, or an array of token ids */
json_row_take parameters_prompts; /* the same, or an array of them */
json_row_take parameters_said;    /* an enum said at the offset */
json_row_take parameters_suffix;  /* the text after the gap to fill in; "": there is none */

/* Rows of every family: how a request may use the prefix cache. */
#define PARAMETERS_CACHE_ROWS                                                                                \
    {"cache_salt", parameters_cache_salt, NULL, 0},                                                          \
    {                                                                                                        \
        "cache_prompt", json_in_bool, NULL, offsetof(struct parameters, request.cache_prompt)                \
    }

/* In a stream: how much of the prompt has been processed. */
#define PARAMETERS_PROGRESS_ROW                                                                              \
    {                                                                                                        \
        "return_progress", json_in_bool, NULL, offsetof(struct parameters, request.progress)                 \
    }

/* ---- for takers elsewhere ---- */

/* Zeroed memory that lives as long as the parameters, [n] of `size`; NULL: out of memory. */
void *parameters_memory(struct parameters *parameters, size_t n, size_t size);

/* A JSON string, or any JSON as compact text, in such memory; NULL: out of memory. */
const char *parameters_keep(struct parameters *parameters, const json_t *string);
const char *parameters_keep_json(struct parameters *parameters, const json_t *json);

/* Token ids of an array, in such memory: [*ret_n]. `path` names the array. 0 or REFUSED. */
int parameters_ids(struct parameters *parameters, const char *path, const json_t *value,
                   const int32_t **ret_ids, size_t *ret_n, struct refusal *refusal);

/* The number of choices of all prompts. */
static inline uint32_t parameters_choices(const struct parameters *parameters)
{
    return parameters->n * (uint32_t)(parameters->prompts ? parameters->n_prompts : 1);
}

/* Sets a 500 and returns REFUSED. */
int parameters_out_of_memory(struct refusal *refusal);

#endif
