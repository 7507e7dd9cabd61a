/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FORMS_CHOICE_H
#define GATEWAY_FORMS_CHOICE_H

/* An answer in progress, its choices, and the functions with which an API writes them. See generation.h for
 * its lifetime. */

#include "gateway/http/exchange.h"
#include "gateway/answers/logprobs.h"
#include "gateway/core/parameters.h"
#include "gateway/core/pulses.h"
#include "gateway/fleet/carry.h"
#include "text/dialect/answer_parser.h"

struct generation;

/* A tool call in an answer. */
struct tool_call {
    char id[10]; /* nine letters and digits: some templates accept no other form */
    char *name;
    struct buffer arguments; /* JSON */
};

struct choice {
    struct generation *generation;
    uint32_t index;
    uint32_t prompt;   /* its number */
    struct bytes echo; /* the prompt's text, with which the answer begins; in a stream: still to come */
    uint32_t prompt_tokens, cached_tokens, output_tokens;
    uint32_t drafted_tokens, accepted_tokens;
    double prefill_ms, decode_ms;
    struct carried carried;
    bool running;
    enum quern_reason reason;
    const char *limit;            /* of QUERN_LENGTH: the limit's name; "": unknown */
    char *stop;                   /* the stop string that ended it; NULL: none did */
    struct buffer text;           /* all of it, if the answer is one body */
    struct buffer thought;        /* the same for the thoughts before it */
    struct answer_parser *parser; /* NULL: all is text */
    struct tool_call *calls;      /* [n_calls] the last one may be incomplete */
    size_t n_calls;
    uint32_t n_blocks; /* for the dialect: blocks begun in the stream, and whether the last one is open */
    bool open;
    bool open_thought;        /* the open block holds thoughts */
    struct logprobs logprobs; /* not yet written to the answer */
};

/* How an API writes answers. Each function appends to `out`; those for calls may be NULL if the API has no
 * tools. */
struct dialect {
    const char *name;
    const char *stream_type; /* content type of a stream */
    /* A stream: what comes first; a piece of a choice's text (perhaps its last; empty if there are only log
     * probabilities to write); the end of a choice; what comes last; an error that ends it. */
    void (*begin)(struct generation *generation, struct json_out *out);
    void (*piece)(struct choice *choice, struct bytes text, struct json_out *out);
    void (*end)(struct choice *choice, struct json_out *out);
    void (*thought)(struct choice *choice, struct bytes text, struct json_out *out); /* NULL: not written */
    /* Also in a stream: the choice's last call begins; more of its arguments; it is complete. */
    void (*call)(struct choice *choice, struct json_out *out);
    void (*arguments)(struct choice *choice, struct bytes json, struct json_out *out);
    void (*called)(struct choice *choice, struct json_out *out);
    void (*finish)(struct generation *generation, struct json_out *out);
    void (*fail)(struct generation *generation, const struct refusal *refusal, struct json_out *out);
    /* The same: how much of the choice's prompt has been processed. NULL: not reported. */
    void (*progress)(struct choice *choice, const struct quern_progress *progress, struct json_out *out);
    const char *ping; /* what a silent stream sends; NULL: nothing */
    /* One body. */
    void (*whole)(struct generation *generation, struct json_out *out);
    /* The body that answers a request without a prompt; NULL: a prompt is required. */
    void (*idle)(const struct gateway *gateway, const struct parameters *parameters, struct json_out *out);
    enum logprobs_form logprobs;
};

struct generation {
    struct exchange *exchange; /* NULL: the client has left */
    struct gateway *gateway;
    const struct dialect *dialect;
    bool stream, begun, include_usage;
    struct pulse pulse; /* of the stream */
    bool untold;        /* its text is not wanted: the request only brings the prompt into the cache */
    const char *response_fields; /* for the dialect: names of the wanted members, as JSON; NULL: all */
    char id[33];                 /* hexadecimal */
    int64_t created;             /* seconds since 1970 */
    char *model;                 /* its name */
    uint64_t begun_ns, first_ns; /* the first id; 0: not yet */
    uint32_t prompt_tokens, cached_tokens, output_tokens; /* each prompt counts once, output of all choices */
    uint32_t drafted_tokens, accepted_tokens;             /* of all choices; drafted 0: no drafts were made */
    double queue_ms, prefill_ms, decode_ms;               /* the longest of any choice */
    double prepare_ms, wait_ms, lookup_ms;                /* parts of that prefill_ms */
    struct json_out out;                                  /* of one callback; reused */
    struct key *key;                                      /* the key that it counts for */
    bool admitted;                                        /* a pool has accepted one of its requests */
    bool asked_limit;                                     /* max_tokens came from the client */
    uint64_t asked_tokens;                                /* the most that all choices may generate */
    struct arena arena;                                   /* data with the same lifetime */
    struct model_dialect model_dialect;                   /* of the model that answers */
    const struct dialect_tool *tools;                     /* [n_tools] tools that may be called */
    size_t n_tools;
    json_t *schemas;                  /* of those tools */
    bool finds_calls, finds_thoughts; /* whether the answer's text is searched for them */
    enum dialect_start start;         /* where the prompt leaves the model */
    uint32_t thought_tokens;          /* part of the output */
    /* [n_prompts] requests, each for all choices of a prompt; NULL once sent. */
    struct quern_encoded **encoded;
    struct fleet_wish *wishes;      /* [n_prompts] for choosing their pools; each owns its pieces */
    struct budget *bodies;          /* in which their bytes count until they are freed */
    uint32_t n_prompts, per_prompt; /* prompts, and choices of each */
    size_t most_at_once;            /* of its requests in progress; 0: one */
    bool has_seed;                  /* `seed` is the first choice's; the others use the numbers after it */
    uint64_t seed;
    uint32_t sent, running, n; /* choices: sent; not ended, unsent ones included; in all */
    struct choice choices[];
};

/* The last of the choice's calls. */
static inline const struct tool_call *choice_call(const struct choice *choice)
{
    return &choice->calls[choice->n_calls - 1];
}

/* Whether the answer ended in tool calls. */
static inline bool choice_calls(const struct choice *choice)
{
    return choice->n_calls > 0 && choice->reason == QUERN_STOP;
}

/* Writes `,"limit":…` for a choice that was cut: `max_tokens`, `context` or `pool`. */
static inline void choice_write_limit(const struct choice *choice, struct json_out *out)
{
    if (choice->reason != QUERN_LENGTH || !choice->limit || !choice->limit[0])
        return;
    json_out_text(out, ",\"limit\":");
    json_out_name(out, choice->limit);
}

/* Writes `,"draft_n":…,"draft_n_accepted":…` of the timings, under llama-server's names, if drafts were
 * verified. */
static inline void choice_write_drafts(uint32_t drafted, uint32_t accepted, struct json_out *out)
{
    if (drafted == 0)
        return;
    json_out_text(out, ",\"draft_n\":");
    json_out_number(out, drafted);
    json_out_text(out, ",\"draft_n_accepted\":");
    json_out_number(out, accepted);
}

#endif
