/* SPDX-License-Identifier: MIT */
/* A kind is a row: a prompt, what is set beside it, by name, and a grammar if it has one. The last ones are
 * made of answers to others, since what a random model writes is known only when it did. */

#include "tests/integration/soak/requests.h"

#include <stdlib.h>
#include <string.h>

#include "tests/integration/soak/promise.h"

enum { STOP_LEAST = 3, STOP_BYTES = 12, STOPS_AS = 5 /* kind */ };

struct kind {
    const char *prompt;
    const char *numbers[8][2]; /* as quern_request_set takes them */
    const char *grammar;
    enum quern_grammar grammar_kind;
    const char *salt;   /* of its prefix */
    const char *tenant; /* with a rate */
    bool is_long;       /* to the end of the context */
    bool is_uncached;
};

static const char counted[] = "root ::= pair{3,60}\npair ::= [a-c] \"=\" [0-9] \";\"\n";
static const char schema[] =
    "{\"type\": \"array\", \"minItems\": 3, \"maxItems\": 9, \"items\": {\"type\": \"object\", "
    "\"properties\": {\"n\": {\"type\": \"integer\"}, \"b\": {\"type\": \"boolean\"}}, "
    "\"required\": [\"n\", \"b\"], \"additionalProperties\": false}}";
static const char regex[] = "((yes|no|perhaps), ){5,40}";

static const char chapter[] =
    "the mill stands by the river, and the miller has three sons and a cat; the eldest "
    "gets the mill, the second the donkey, and the youngest gets the cat";

static const struct kind kinds[SOAK_KINDS - SOAK_STOPPING] = {
    {.prompt = "once upon a time", .numbers = {{"temperature", "0"}}},
    {.prompt = "the mill stands", .numbers = {{"temperature", "1"}}},
    {.prompt = "a", .numbers = {{"temperature", "0"}}},
    {.prompt = "once upon a time", .numbers = {{"temperature", "1"}}},
    {.prompt = "the mill stands", .numbers = {{"temperature", "0"}}},
    {.prompt = "a", .numbers = {{"temperature", "1"}}},
    {.prompt = "a", .numbers = {{"temperature", "1"}, {"logprobs", "5"}, {"pieces", "1"}}},
    {.prompt = "the mill", .numbers = {{"temperature", "0"}, {"logprobs", "2"}}},
    {.prompt = "over and over",
     .numbers = {{"temperature", "0"},
                 {"repetition_penalty", "1.3"},
                 {"presence_penalty", "0.5"},
                 {"frequency_penalty", "0.2"},
                 {"logprobs", "1"}}},
    {.prompt = "over and over",
     .numbers = {{"temperature", "1.2"},
                 {"frequency_penalty", "0.7"},
                 {"top_k", "0"},
                 {"top_p", "1"},
                 {"min_p", "0"}}},
    {.prompt = "pairs",
     .numbers = {{"temperature", "1"}, {"logprobs", "3"}},
     .grammar = counted,
     .grammar_kind = QUERN_GBNF},
    {.prompt = "a document",
     .numbers = {{"temperature", "1"}},
     .grammar = schema,
     .grammar_kind = QUERN_SCHEMA},
    {.prompt = "well",
     .numbers = {{"temperature", "1"}, {"repetition_penalty", "1.1"}},
     .grammar = regex,
     .grammar_kind = QUERN_REGEX},
    {.prompt = "who are you?", .numbers = {{"temperature", "1"}, {"top_k", "100"}}},
    {.prompt = "a long tale", .numbers = {{"temperature", "1"}}, .is_long = true},
    {.prompt = chapter, .numbers = {{"temperature", "1"}}, .salt = "hers"},
    {.prompt = chapter, .numbers = {{"temperature", "0"}}, .salt = "his"},
    {.prompt = chapter, .numbers = {{"temperature", "1"}}, .is_uncached = true},
    {.prompt = "a turn", .numbers = {{"temperature", "1"}}, .tenant = "rated"},
};

enum { CHAT_KIND = 13 };

/* The first three letters or more in the second half of the text: what stands for bytes that are no text
 * would match nothing. The length, or 0. */
static size_t letters_of(const struct expected *expected, char ret_text[STOP_BYTES + 1])
{
    uint32_t n = 0;
    for (uint32_t at = expected->n_text / 2; at < expected->n_text && n < STOP_BYTES; at++) {
        bool is_plain = expected->text[at] > ' ' && expected->text[at] < 0x7f;
        if (!is_plain && n >= STOP_LEAST)
            break;
        n = is_plain ? n + 1 : 0;
        if (is_plain)
            ret_text[n - 1] = expected->text[at];
    }
    ret_text[n] = 0;
    return n >= STOP_LEAST ? n : 0;
}

/* By a string, which may stand across several ids, or by an id. */
static void set_stop(struct quern_request *request, bool by_id, const struct expected *expected)
{
    static char text[STOP_BYTES + 1];
    static const char *stops[1] = {text};
    static int32_t id;
    if (by_id) {
        id = expected->ids[expected->n_ids / 2];
        request->stop_ids = &id;
        request->n_stop_ids = 1;
    } else if (letters_of(expected, text) > 0) {
        request->stop = stops;
        request->n_stop = 1;
    } else {
        promise_broken("an answer without text to stop at");
    }
}

struct quern_request soak_request(int kind, uint32_t tokens, bool chat, const struct expected *expected)
{
    static struct quern_message message = {.role = "user"};
    bool stops = kind >= SOAK_KINDS - SOAK_STOPPING;
    const struct kind *from = &kinds[stops ? STOPS_AS : kind];
    struct quern_request request;
    struct quern_error err = {{0}};
    quern_request_init(&request);
    request.text = from->prompt;
    request.max_tokens = tokens;
    request.has_seed = true;
    request.seed = (uint64_t)(stops ? STOPS_AS : kind) + 1;
    request.grammar = from->grammar;
    request.grammar_kind = from->grammar_kind;
    request.cache_salt = from->salt;
    request.cache_prompt = !from->is_uncached;
    request.tenant = from->tenant;
    request.rpm = from->tenant ? SOAK_RPM : 0;
    if (from->is_long)
        request.max_tokens = getenv("QUERN_TEST_SCALE") ? 4 * tokens : 0;
    for (int i = 0; i < 8 && from->numbers[i][0]; i++)
        if (quern_request_set(&request, from->numbers[i][0], from->numbers[i][1], &err) != 0)
            promise_broken("%s: %s", from->numbers[i][0], err.text);
    if (kind == CHAT_KIND && chat) {
        message.content = from->prompt;
        request.text = NULL;
        request.messages = &message;
        request.n_messages = 1;
    }
    if (stops)
        set_stop(&request, kind == SOAK_KINDS - 1, &expected[STOPS_AS]);
    return request;
}

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t len)
{
    const uint8_t *bytes = data;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3;
    return hash;
}

uint64_t soak_hash_logprobs(uint64_t hash, const struct quern_output *output)
{
    size_t n = output->logprobs ? output->n_ids * output->n_logprobs : 0;
    for (size_t i = 0; i < n; i++) {
        hash = hash_bytes(hash + 1, &output->logprobs[i].id, sizeof output->logprobs[i].id);
        hash = hash_bytes(hash, &output->logprobs[i].logprob, sizeof output->logprobs[i].logprob);
        if (output->pieces)
            hash = hash_bytes(hash, output->pieces[i].bytes, output->pieces[i].len);
    }
    return hash;
}
