/* SPDX-License-Identifier: MIT */
/* From the JSON of a client to a request: what is taken, and what is refused, by which name. */

#include "gateway/forms/openai/chat.h"
#include "gateway/forms/openai/completions.h"
#include "gateway/forms/embeddings.h"
#include "gateway/forms/anthropic/messages.h"
#include "gateway/forms/ollama/ollama.h"
#include "gateway/core/parameters.h"
#include "proto/message.h"
#include "tests/unit/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct parameters parameters;
static struct refusal refusal;

static int take(const struct json_row *rows, const char *body, size_t len)
{
    parameters_deinit(&parameters);
    parameters_init(&parameters);
    refusal = (struct refusal){0};
    int r = parameters_read(&parameters, rows, (struct bytes){body, len}, &refusal);
    ck_assert(r == 0 ||
              (r == REFUSED && refusal.status >= 400 && refusal.text[0] && !strchr(refusal.text, '\n')));
    return r;
}

static int take_chat(const char *body)
{
    return take(chat_rows, body, strlen(body));
}

static int take_completion(const char *body)
{
    return take(completions_rows, body, strlen(body));
}

START_TEST(what_is_left_out_has_the_defaults_of_the_library)
{
    struct quern_request expected;
    quern_request_init(&expected);
    ck_assert_int_eq(take_completion("{\"prompt\": \"a\"}"), 0);
    ck_assert_double_nan(parameters.request.temperature); /* the pool's, or the model's */
    ck_assert_double_nan(expected.temperature);
    ck_assert_int_eq(parameters.request.top_k, QUERN_LEFT_COUNT);
    ck_assert_int_eq(expected.top_k, QUERN_LEFT_COUNT);
    ck_assert_double_nan(parameters.request.top_p);
    ck_assert(!parameters.request.has_seed);
    ck_assert(!parameters.stream);
    ck_assert(!parameters.has_max_tokens);
    ck_assert_uint_eq(parameters.n, 1);
    ck_assert_ptr_null(parameters.request.model);
    ck_assert_int_eq(
        take_completion("{\"prompt\": \"a\", \"temperature\": null, \"stop\": null, \"n\": null}"), 0);
    ck_assert_double_nan(parameters.request.temperature);
}
END_TEST

START_TEST(every_parameter_arrives)
{
    ck_assert_int_eq(
        take_chat(
            "{\"model\": \"m\", \"messages\": [{\"role\": \"developer\", \"content\": \"Be kind\"},"
            "{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"Gr\"},"
            "{\"type\": \"text\", \"text\": \"\\u00fc\\u00df\"}], \"name\": \"me\"},"
            "{\"role\": \"assistant\", \"content\": \"\"}],"
            "\"max_completion_tokens\": 7, \"temperature\": 0.25, \"top_p\": 1, \"top_k\": 3, \"min_p\": 0.5,"
            "\"presence_penalty\": -2, \"frequency_penalty\": 1.5, \"repetition_penalty\": 1.25, \"seed\": "
            "-2,"
            "\"stop\": [\"x\", \"yy\"], \"logit_bias\": {\"5\": -100, \"17\": 2.5}, \"n\": 3, \"stream\": "
            "true,"
            "\"stream_options\": {\"include_usage\": true}, \"user\": \"u\", \"tools\": [],"
            "\"tool_choice\": \"none\", \"response_format\": null}"),
        0);
    const struct quern_request *request = &parameters.request;
    ck_assert_str_eq(request->model, "m");
    ck_assert_uint_eq(request->n_messages, 3);
    ck_assert_str_eq(request->messages[0].role, "system");
    ck_assert_str_eq(request->messages[0].content, "Be kind");
    ck_assert_str_eq(request->messages[1].content, "Gr\xc3\xbc\xc3\x9f");
    ck_assert_str_eq(request->messages[2].content, "");
    ck_assert_uint_eq(request->max_tokens, 7);
    ck_assert(parameters.has_max_tokens);
    ck_assert_double_eq(request->temperature, 0.25);
    ck_assert_double_eq(request->top_p, 1);
    ck_assert_int_eq(request->top_k, 3);
    ck_assert_double_eq(request->min_p, 0.5);
    ck_assert_double_eq(request->presence_penalty, -2);
    ck_assert_double_eq(request->frequency_penalty, 1.5);
    ck_assert_double_eq(request->repetition_penalty, 1.25);
    ck_assert(request->has_seed);
    ck_assert_uint_eq(request->seed, UINT64_MAX - 1);
    ck_assert_uint_eq(request->n_stop, 2);
    ck_assert_str_eq(request->stop[1], "yy");
    ck_assert_uint_eq(request->n_logit_bias, 2);
    ck_assert_uint_eq(parameters.n, 3);
    ck_assert(parameters.stream);
    ck_assert(parameters.include_usage);
}
END_TEST

#define CHAT(more) "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], " more "}"
#define TEXT(more) "{\"prompt\": \"a\", " more "}"

/* As `quern run --json` prints them. */
START_TEST(seeds_have_64_bits)
{
    static const struct {
        const char *body;
        uint64_t seed;
    } cases[] = {{TEXT("\"seed\": 18446744073709551615"), UINT64_MAX},
                 {TEXT("\"seed\" :\n 9223372036854775808, \"user\": \"\\\"seed\\\": 18446744073709551614\""),
                  (uint64_t)1 << 63},
                 {TEXT("\"seed\": 9223372036854775807"), INT64_MAX},
                 {TEXT("\"seed\": \"18446744073709551615\""), UINT64_MAX},
                 {TEXT("\"seed\": 7"), 7}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_msg(take_completion(cases[i].body) == 0, "%s: %s", cases[i].body, refusal.text);
        ck_assert(parameters.request.has_seed);
        ck_assert_uint_eq(parameters.request.seed, cases[i].seed);
    }
}
END_TEST

START_TEST(a_seed_of_minus_one_is_a_random_one)
{
    ck_assert_int_eq(take_completion(TEXT("\"seed\": -1")), 0);
    ck_assert(!parameters.request.has_seed);
}
END_TEST

START_TEST(prompts_are_texts_or_ids)
{
    ck_assert_int_eq(take_completion("{\"prompt\": \"Hi\", \"stop\": \"x\"}"), 0);
    ck_assert_uint_eq(parameters.request.text_len, 2);
    ck_assert_uint_eq(parameters.request.n_stop, 1);
    ck_assert_int_eq(take_completion("{\"prompt\": [\"Hi\"]}"), 0);
    ck_assert_str_eq(parameters.request.text, "Hi");
    ck_assert_int_eq(take_completion("{\"prompt\": [1, 2, 3]}"), 0);
    ck_assert_ptr_null(parameters.request.text);
    ck_assert_uint_eq(parameters.request.n_ids, 3);
    ck_assert_int_eq(parameters.request.ids[2], 3);
}
END_TEST

static const struct {
    bool chat;
    const char *body, *param, *text;
} refused[] = {
    {true, "", "", "the body is empty"},
    {true, "null", "", "the body is not JSON"},
    {true, "[]", "", "the body is an array"},
    {true, "{", "", "the body is not JSON"},
    {true, "{} {}", "", "the body is not JSON"},
    {true, "{\"n\": 1, \"n\": 2}", "", "duplicate"},
    {true, CHAT("\"temperature\": NaN"), "", "not JSON"},
    {true, CHAT("\"temperature\": 1e999"), "", "overflow"},
    {true, CHAT("\"seed\": 99999999999999999999"), "seed", "99999999999999999999"},
    {true, CHAT("\"seed\": \"12x\""), "seed", "12x"},
    {true, CHAT("\"n\": 99999999999999999999"), "", "too big"},
    {true, CHAT("\"n\": 99999999999999999999"), "", "column"},
    {true, CHAT("\"max_tokens\": 3, \"max_completion_tokens\": 4"), "max_completion_tokens",
     "max_tokens and max_completion_tokens are the same parameter but have different values"},
    {true, CHAT("\"max_completion_tokens\": 3, \"n_predict\": 5"), "n_predict", "differ"},
    {true, CHAT("\"repeat_penalty\": 1.5, \"repetition_penalty\": 1.1"), "repeat_penalty", "differ"},
    {true, CHAT("\"n\": 2, \"n_cmpl\": 1"), "n_cmpl", "differ"},
    {true,
     CHAT("\"n\": 1, \"user\": \"\\\"seed\\\": 18446744073709551615\", \"top_k\": 99999999999999999999"), "",
     "too big"},
    {true, CHAT("\"user\": \"\xff\""), "", "decode byte"},
    {true, CHAT("\"user\": \"\\ud800\""), "", "not JSON"},
    {true, CHAT("\"stop\": \"a\\u0000b\""), "", "NUL"},
    {true, CHAT("\"temperature\": \"hot\""), "temperature", "is a string, not a number"},
    {true, CHAT("\"temperature\": -0.5"), "temperature", "out of range 0..100"},
    {true, CHAT("\"top_p\": 1.5"), "top_p", "out of range 0..1"},
    {true, CHAT("\"top_k\": 1.5"), "top_k", "\"1.5\""},
    {true, CHAT("\"max_tokens\": 0"), "max_tokens", "is out of range 1.."},
    {true, CHAT("\"max_tokens\": -3"), "max_tokens", "is out of range 1.."},
    {true, CHAT("\"max_tokens\": true"), "max_tokens", "is a boolean, not an integer"},
    {true, CHAT("\"max_completion_tokens\": 3000000000"), "max_completion_tokens", "3000000000"},
    {true, CHAT("\"n\": 0"), "n", "is out of range 1..128"},
    {true, CHAT("\"n\": 1000000"), "n", "is out of range 1..128"},
    {true, CHAT("\"stream\": 1"), "stream", "not a boolean"},
    {true, CHAT("\"stream_options\": {\"include_usage\": \"yes\"}"), "stream_options.include_usage",
     "a string"},
    {true, CHAT("\"stream_options\": {\"odd\": 1}"), "stream_options.odd", "unknown parameter"},
    {true, CHAT("\"stream_options\": 1"), "stream_options", "not an object"},
    {true, CHAT("\"odd\": 1"), "odd", "unknown parameter: odd"},
    {true, CHAT("\"prompt\": \"a\""), "prompt", "unknown parameter"},
    {true, CHAT("\"stop\": \"\""), "stop", "empty"},
    {true, CHAT("\"stop\": [\"a\", \"\"]"), "stop[1]", "empty"},
    {true, CHAT("\"stop\": [1]"), "stop[0]", "not a string"},
    {true, CHAT("\"stop\": [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]"), "stop", "at most 16"},
    {true, CHAT("\"logit_bias\": {\"\": 1}"), "logit_bias", "a text of 0 bytes"},
    {true, CHAT("\"logit_bias\": [5]"), "logit_bias[0]", "expected a pair"},
    {true, CHAT("\"logit_bias\": [[5, 1], [-5, 1]]"), "logit_bias[1]", "expected a pair"},
    {true, CHAT("\"logit_bias\": [[5, true]]"), "logit_bias[0]", "from -100 to 100, or false"},
    {true, CHAT("\"bad_words\": [5]"), "bad_words", "not a text"},
    {true, CHAT("\"bad_words\": \"\""), "bad_words", "a text of 0 bytes"},
    {true, CHAT("\"dry_sequence_breakers\": [\"\"]"), "dry_sequence_breakers", "a text of 0 bytes"},
    {true, CHAT("\"typical_p\": 1.5"), "typical_p", "out of range 0..1"},
    {true, CHAT("\"repeat_last_n\": -2"), "repeat_last_n", "out of range -1.."},
    {true, CHAT("\"xtc_probability\": -0.1"), "xtc_probability", "out of range 0..1"},
    {true, CHAT("\"dynatemp_range\": -1"), "dynatemp_range", "out of range 0..100"},
    {true, CHAT("\"dry_allowed_length\": 0"), "dry_allowed_length", "out of range 1.."},
    {true, CHAT("\"logit_bias\": {\"-1\": 1}"), "logit_bias", "not a token id"},
    {true, CHAT("\"logit_bias\": {\"99999999999\": 1}"), "logit_bias", "not a token id"},
    {true, CHAT("\"logit_bias\": {\"1\": 101}"), "logit_bias", "101 is out of range -100..100"},
    {true, CHAT("\"logit_bias\": {\"1\": \"1\"}"), "logit_bias", "from -100 to 100"},
    {true, CHAT("\"logit_bias\": 5"), "logit_bias", "not an object or an array"},
    {true, CHAT("\"response_format\": {\"type\": \"json_schema\", \"json_schema\": null}"), "response_format",
     "has no json_schema"},
    {true, CHAT("\"response_format\": {\"type\": \"json_schema\", \"json_schema\": {\"schema\": null}}"),
     "response_format.json_schema", "has no schema"},
    {true, CHAT("\"regex\": \"a+\", \"response_format\": {\"type\": \"json_object\", \"schema\": null}"),
     "response_format", "grammar"},
    {true, CHAT("\"tools\": {}"), "tools", "not an array"},
    {true, CHAT("\"tools\": [{}]"), "tools[0]", "has no function"},
    {true, CHAT("\"tools\": [{\"type\": \"web_search\"}]"), "tools[0]", "web_search"},
    {true, CHAT("\"tools\": [{\"function\": {\"name\": \"a b\"}}]"), "tools[0].name", "not a name"},
    {true, CHAT("\"tools\": [{\"function\": {\"name\": \"a\", \"parameters\": 1}}]"), "tools[0]",
     "parameters is a number"},
    {true, CHAT("\"tools\": [{\"function\": {\"name\": \"a\", \"strict\": 1}}]"), "tools[0]",
     "strict is a number"},
    {true, CHAT("\"tool_choice\": \"any\""), "tool_choice",
     "must be none, auto, required (any) or one tool by its name"},
    {true, CHAT("\"tool_choice\": 1"), "tool_choice",
     "must be none, auto, required (any) or one tool by its name"},
    {true, CHAT("\"tool_choice\": {\"type\": \"custom\", \"custom\": {\"name\": \"a\"}}"), "tool_choice",
     "must be none, auto, required (any) or one tool by its name"},
    {true, CHAT("\"tool_choice\": {\"type\": \"function\"}"), "tool_choice", "has no name"},
    {true, CHAT("\"tool_choice\": {\"type\": \"allowed_tools\", \"allowed_tools\": {\"mode\": \"auto\"}}"),
     "tool_choice.allowed_tools", "and a mode"},
    {true,
     CHAT("\"tool_choice\": {\"type\": \"allowed_tools\", \"allowed_tools\": {\"mode\": \"auto\", \"tools\": "
          "[{\"type\": \"mcp\"}]}}"),
     "tool_choice.allowed_tools", "tools[0] does not name a function"},
    {true, CHAT("\"parallel_tool_calls\": 0"), "parallel_tool_calls", "not true or false"},
    {true, "{\"messages\": [{\"role\": \"assistant\", \"tool_calls\": [{}]}]}",
     "messages[0].tool_calls[0].function", "has no name"},
    {true, "{\"messages\": [{\"role\": \"tool\", \"content\": \"a\", \"tool_call_id\": 1}]}",
     "messages[0].tool_call_id", "not a string"},
    {true, CHAT("\"model\": 1"), "model", "not a string"},
    {true, "{\"messages\": []}", "messages", "empty"},
    {true, "{\"messages\": \"a\"}", "messages", "not an array"},
    {true, "{\"messages\": [\"a\"]}", "messages[0]", "not an object"},
    {true, "{\"messages\": [{\"content\": \"a\"}]}", "messages[0]", "no role"},
    {true, "{\"messages\": [{\"role\": \"boss\"}]}", "messages[0].role", "not one of"},
    {true, "{\"messages\": [{\"role\": 1}]}", "messages[0].role", "not one of"},
    {true, "{\"messages\": [{\"role\": \"user\", \"content\": 1}]}", "messages[0].content", "a number"},
    {true, "{\"messages\": [{\"role\": \"user\", \"content\": [1]}]}", "messages[0].content[0]", "type"},
    {true, "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"image_url\"}]}]}",
     "messages[0].content[0]", "image_url"},
    {true, "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"text\"}]}]}",
     "messages[0].content[0]", "text is not a string"},
    {true, "{\"messages\": [{\"role\": \"user\", \"content\": \"a\", \"odd\": 1}]}", "messages[0].odd",
     "unknown"},
    {false, "{\"prompt\": \"\"}", "prompt", "empty"},
    {false, "{\"prompt\": []}", "prompt", "empty"},
    {false, "{\"prompt\": 1}", "prompt", "a number"},
    {false, "{\"prompt\": [1, -1]}", "prompt[1]", "is out of range 0.."},
    {false, "{\"prompt\": [1, 2.5]}", "prompt[1]", "not an integer"},
    {false, "{\"prompt\": [\"a\", [\"b\", \"c\"]]}", "prompt[1]", "2 texts; only one is allowed"},
    {false, TEXT("\"suffix\": 1"), "suffix", "a number, not a string"},
    {true, CHAT("\"continue_final_message\": \"yes\""), "continue_final_message", "a string, not a boolean"},
};

START_TEST(what_cannot_be_done_is_refused_by_its_name)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        int r = refused[i].chat ? take_chat(refused[i].body) : take_completion(refused[i].body);
        ck_assert_msg(r == REFUSED, "%s was taken", refused[i].body);
        ck_assert_uint_eq(refusal.status, 400);
        ck_assert_msg(strcmp(refusal.param, refused[i].param) == 0, "%s: %s", refused[i].body, refusal.param);
        ck_assert_msg(strstr(refusal.text, refused[i].text) != NULL, "%s: %s", refused[i].body, refusal.text);
    }
}
END_TEST

/* {"NAME": [[-1, 0, 0 …]]} with n ids; `nested` puts them into an array of inputs. */
static char *many_ids(const char *name, size_t n, bool nested)
{
    char *body = malloc(2 * n + 64), *at = body;
    at += sprintf(at, "{\"%s\": %s[-1", name, nested ? "[" : "");
    for (size_t i = 1; i < n; i++) {
        *at++ = ',';
        *at++ = '0';
    }
    strcpy(at, nested ? "]]}" : "]}");
    return body;
}

START_TEST(too_many_ids_are_refused_before_they_are_read)
{
    struct embeddings_in in = {0};
    char *body = many_ids("prompt", PROTO_MAX_PROMPT_IDS + 1, false);
    ck_assert_int_eq(take_completion(body), REFUSED);
    ck_assert_str_eq(refusal.param, "prompt");
    ck_assert_ptr_nonnull(strstr(refusal.text, "4194305 token ids"));
    free(body);
    body = many_ids("input", PROTO_MAX_PROMPT_IDS + 1, true);
    parameters_init(&in.parameters);
    ck_assert_int_eq(
        parameters_read(&in.parameters, embeddings_rows, (struct bytes){body, strlen(body)}, &refusal),
        REFUSED);
    ck_assert_str_eq(refusal.param, "input[0]");
    parameters_deinit(&in.parameters);
    free(body);
    body = many_ids("prompt", PROTO_MAX_PROMPT_IDS, false);
    ck_assert_int_eq(take_completion(body), REFUSED);
    ck_assert_str_eq(refusal.param, "prompt[0]");
    free(body);
}
END_TEST

START_TEST(log_probabilities_are_asked_for_in_two_forms)
{
    const struct quern_request *request = &parameters.request;
    ck_assert_int_eq(take_chat(CHAT("\"logprobs\": true, \"top_logprobs\": 20")), 0);
    ck_assert_int_eq(parameters_finish(&parameters, "messages", &refusal), 0);
    ck_assert(request->logprobs == 21 && request->pieces);
    ck_assert_int_eq(take_completion(TEXT("\"logprobs\": 0")), 0);
    ck_assert_int_eq(parameters_finish(&parameters, "prompt", &refusal), 0);
    ck_assert(request->logprobs == 1 && request->pieces);
    ck_assert_int_eq(take_completion(TEXT("\"logprobs\": false")), 0);
    ck_assert_int_eq(parameters_finish(&parameters, "prompt", &refusal), 0);
    ck_assert(request->logprobs == 0 && !request->pieces);
    ck_assert_int_eq(take_chat(CHAT("\"top_logprobs\": 2")), 0);
    ck_assert_int_eq(parameters_finish(&parameters, "messages", &refusal), REFUSED);
    ck_assert_str_eq(refusal.param, "top_logprobs");
    ck_assert_int_eq(take_chat(CHAT("\"logprobs\": true, \"top_logprobs\": 21")), REFUSED);
    ck_assert_int_eq(take_chat(CHAT("\"logprobs\": 3")), REFUSED);
}
END_TEST

START_TEST(tools_become_complete_and_calls_go_along)
{
    const struct quern_request *request = &parameters.request;
    ck_assert_int_eq(
        take_chat(
            "{\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"rain\"}}], \"messages\": ["
            "{\"role\": \"user\", \"content\": \"Rain?\"},"
            "{\"role\": \"assistant\", \"content\": null, \"tool_calls\": [{\"id\": \"x\", \"type\":"
            "\"function\", \"function\": {\"name\": \"rain\", \"arguments\": \"{}\"}}]},"
            "{\"role\": \"tool\", \"tool_call_id\": \"x\", \"content\": \"no\"}]}"),
        0);
    ck_assert_int_eq(parameters_finish(&parameters, "messages", &refusal), 0);
    ck_assert_str_eq(request->tools,
                     "[{\"type\":\"function\",\"function\":{\"name\":\"rain\",\"description\":\"\","
                     "\"parameters\":{\"type\":\"object\",\"properties\":{}}}}]");
    ck_assert_uint_eq(parameters.n_tools, 1);
    ck_assert_str_eq(parameters.tools[0].name, "rain");
    ck_assert_ptr_nonnull(strstr(request->messages[1].tool_calls, "\"name\":\"rain\""));
    ck_assert_str_eq(request->messages[2].role, "tool");
    ck_assert_str_eq(request->messages[2].tool_call_id, "x");
    ck_assert_int_eq(
        take_chat(CHAT("\"tool_choice\": \"none\", \"tools\": [{\"function\": {\"name\": \"a\"}}]")), 0);
    ck_assert_int_eq(parameters_finish(&parameters, "messages", &refusal), 0);
    ck_assert_ptr_null(request->tools);
}
END_TEST

START_TEST(anthropics_blocks_become_messages)
{
    const struct quern_request *request = &parameters.request;
    const char *body =
        "{\"max_tokens\": 9, \"tool_choice\": {\"type\": \"auto\"}, \"tools\": [{\"name\": \"rain\","
        "\"input_schema\": {\"type\": \"object\"}}], \"messages\": ["
        "{\"role\": \"user\", \"content\": \"Rain?\"},"
        "{\"role\": \"assistant\", \"content\": [{\"type\": \"text\", \"text\": \"I look.\"}, {\"type\":"
        "\"tool_use\", \"id\": \"x\", \"name\": \"rain\", \"input\": {\"town\": \"Ulm\"}}]},"
        "{\"role\": \"user\", \"content\": [{\"type\": \"tool_result\", \"tool_use_id\": \"x\", \"content\":"
        "[{\"type\": \"text\", \"text\": \"no\"}]}, {\"type\": \"text\", \"text\": \"And?\"}]}]}";
    ck_assert_int_eq(take(messages_rows, body, strlen(body)), 0);
    ck_assert_ptr_nonnull(strstr(request->tools, "\"parameters\":{\"type\":\"object\"}"));
    ck_assert_uint_eq(request->n_messages, 4);
    ck_assert_str_eq(request->messages[1].content, "I look.");
    ck_assert_ptr_nonnull(strstr(request->messages[1].tool_calls, "\"arguments\":{\"town\":\"Ulm\"}"));
    ck_assert_str_eq(request->messages[2].role, "tool");
    ck_assert_str_eq(request->messages[2].content, "no");
    ck_assert_str_eq(request->messages[2].tool_call_id, "x");
    ck_assert_str_eq(request->messages[3].content, "And?");
    static const char *const wrong[] = {
        "{\"messages\": [{\"role\": \"tool\", \"content\": \"a\"}]}",
        "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"tool_use\"}]}]}",
        "{\"messages\": [{\"role\": \"assistant\", \"content\": [{\"type\": \"tool_use\"}]}]}",
        "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"tool_result\"}]}]}",
        "{\"messages\": [{\"role\": \"user\", \"content\": \"a\", \"odd\": 1}]}",
        "{\"messages\": [1]}",
        "{\"tool_choice\": {\"type\": \"required\"}}",
        "{\"tool_choice\": {\"type\": \"any\", \"name\": \"a\"}}",
        "{\"tool_choice\": {\"type\": \"tool\"}}",
        "{\"tool_choice\": {\"type\": \"any\", \"disable_parallel_tool_use\": 1}}",
        "{\"tool_choice\": \"any\"}"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_msg(take(messages_rows, wrong[i], strlen(wrong[i])) == REFUSED, "%s was taken", wrong[i]);
}
END_TEST

START_TEST(what_asks_for_nothing_is_taken)
{
    ck_assert_int_eq(
        take_completion(TEXT("\"echo\": false, \"best_of\": 1, \"suffix\": \"\", \"logit_bias\": {}")), 0);
    ck_assert_int_eq(take_chat(CHAT("\"tools\": [], \"audio\": null, \"logprobs\": false, \"stop\": []")), 0);
    ck_assert_int_eq(take_chat(CHAT("\"response_format\": {\"type\": \"text\"}")), 0);
    ck_assert_uint_eq(parameters.request.n_stop, 0);
}
END_TEST

START_TEST(other_families_are_translated)
{
    const struct quern_request *request = &parameters.request;
    const char *message =
        "{\"model\": \"m\", \"max_tokens\": 9, \"system\": [{\"type\": \"text\", \"text\": \"Be \"},"
        "{\"type\": \"text\", \"text\": \"kind\"}], \"messages\": [{\"role\": \"user\", \"content\":"
        "\"Hi\"}], \"stop_sequences\": [\"x\"], \"temperature\": 0.25, \"top_p\": 0.75, \"top_k\": 3, "
        "\"metadata\": {\"user_id\": \"u\"}}";
    ck_assert_int_eq(take(messages_rows, message, strlen(message)), 0);
    ck_assert_int_eq(parameters_finish(&parameters, "messages", &refusal), 0);
    ck_assert_uint_eq(request->n_messages, 2);
    ck_assert_str_eq(request->messages[0].role, "system");
    ck_assert_str_eq(request->messages[0].content, "Be kind");
    ck_assert_str_eq(request->messages[1].content, "Hi");
    ck_assert_uint_eq(request->n_stop, 1);
    ck_assert_double_eq(request->temperature, 0.25);
    ck_assert_double_eq(request->top_p, 0.75);
    ck_assert_int_eq(request->top_k, 3);
    const char *chat =
        "{\"model\": \"m:latest\", \"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}], \"options\":"
        "{\"num_predict\": -1, \"seed\": -1, \"temperature\": 0.25, \"top_k\": 3, \"top_p\": 0.75, "
        "\"min_p\": 0.5,"
        "\"repeat_penalty\": 1.5, \"presence_penalty\": -2, \"frequency_penalty\": 1.25, \"stop\": [\"x\"],"
        "\"num_ctx\": 4096}}";
    ck_assert_int_eq(take(ollama_chat_rows, chat, strlen(chat)), 0);
    ck_assert_str_eq(request->model, "m");
    ck_assert_double_eq(request->temperature, 0.25);
    ck_assert_int_eq(request->top_k, 3);
    ck_assert_double_eq(request->top_p, 0.75);
    ck_assert_double_eq(request->min_p, 0.5);
    ck_assert_double_eq(request->repetition_penalty, 1.5);
    ck_assert_double_eq(request->presence_penalty, -2);
    ck_assert_double_eq(request->frequency_penalty, 1.25);
    ck_assert_uint_eq(request->n_stop, 1);
    ck_assert(!parameters.has_max_tokens);
    ck_assert(!request->has_seed);
    const char *odd = "{\"options\": {\"mirostat\": 2}}";
    ck_assert_int_eq(take(ollama_chat_rows, odd, strlen(odd)), REFUSED);
    ck_assert_str_eq(refusal.param, "options.mirostat");
}
END_TEST

START_TEST(a_prompt_is_what_a_user_says_unless_it_is_raw)
{
    const struct quern_request *request = &parameters.request;
    static const struct {
        const char *body;
        int result;
        size_t messages;
    } expected[] = {
        {"{\"prompt\": \"Hi\"}", 0, 1},
        {"{\"prompt\": \"Hi\", \"system\": \"Be kind\"}", 0, 2},
        {"{\"prompt\": \"Hi\", \"raw\": true}", 0, 0},
        {"{\"prompt\": \"Hi\", \"raw\": true, \"system\": \"Be kind\"}", REFUSED, 0},
        {"{\"system\": \"Be kind\"}", REFUSED, 0},
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        ck_assert_int_eq(take(ollama_generate_rows, expected[i].body, strlen(expected[i].body)), 0);
        parameters.chat = true;
        ck_assert_int_eq(parameters_finish(&parameters, "prompt", &refusal), expected[i].result);
        ck_assert(expected[i].result != 0 || request->n_messages == expected[i].messages);
        ck_assert(expected[i].result != 0 || (request->text != NULL) == (expected[i].messages == 0));
    }
    ck_assert_str_eq(refusal.param, "prompt");
}
END_TEST

START_TEST(depth_and_length_are_survived)
{
    size_t len = 1 << 20;
    char *body = malloc(len);
    memset(body, '[', len);
    memcpy(body, "{\"user\":", 8);
    ck_assert_int_eq(take(chat_rows, body, len), REFUSED);
    ck_assert_ptr_nonnull(strstr(refusal.text, "depth"));
    memset(body, 'k', len); /* a key that is a megabyte long */
    memcpy(body, "{\"", 2);
    memcpy(body + len - 5, "\": 1}", 5);
    ck_assert_int_eq(take(chat_rows, body, len), REFUSED);
    ck_assert_uint_lt(strlen(refusal.param), sizeof refusal.param);
    free(body);
    parameters_deinit(&parameters);
}
END_TEST

START_TEST(biases_may_be_of_texts_and_words_may_be_barred)
{
    ck_assert_int_eq(
        take_completion(TEXT("\"logit_bias\": [[5, false], [\"Hi\", 2.5], [7, 1], [\"no\", false]], "
                             "\"bad_words\": [\"never\", \" ever\"], \"dry_sequence_breakers\": []")),
        0);
    const struct quern_request *request = &parameters.request;
    ck_assert_uint_eq(request->n_logit_bias, 2);
    ck_assert(request->logit_bias[0].id == 5 && isinf(request->logit_bias[0].bias));
    ck_assert(request->logit_bias[1].id == 7 && request->logit_bias[1].bias == 1);
    ck_assert_uint_eq(request->n_logit_bias_text, 1);
    ck_assert_str_eq(request->logit_bias_text[0].text, "Hi");
    ck_assert_double_eq((double)request->logit_bias_text[0].bias, 2.5);
    ck_assert_uint_eq(request->n_bad_words, 3);
    ck_assert_str_eq(request->bad_words[0], "no");
    ck_assert_str_eq(request->bad_words[2], " ever");
    ck_assert(request->dry_sequence_breakers != NULL);
    ck_assert_uint_eq(request->n_dry_sequence_breakers, 0);
    ck_assert_int_eq(take_completion(TEXT("\"logit_bias\": {\"5\": 1, \"five\": 2}")), 0);
    ck_assert_str_eq(parameters.request.logit_bias_text[0].text, "five");
    ck_assert_ptr_null(parameters.request.dry_sequence_breakers);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, biases_may_be_of_texts_and_words_may_be_barred);
    tcase_add_test(tests, what_is_left_out_has_the_defaults_of_the_library);
    tcase_add_test(tests, every_parameter_arrives);
    tcase_add_test(tests, seeds_have_64_bits);
    tcase_add_test(tests, a_seed_of_minus_one_is_a_random_one);
    tcase_add_test(tests, prompts_are_texts_or_ids);
    tcase_add_test(tests, what_cannot_be_done_is_refused_by_its_name);
    tcase_add_test(tests, too_many_ids_are_refused_before_they_are_read);
    tcase_add_test(tests, log_probabilities_are_asked_for_in_two_forms);
    tcase_add_test(tests, tools_become_complete_and_calls_go_along);
    tcase_add_test(tests, anthropics_blocks_become_messages);
    tcase_add_test(tests, what_asks_for_nothing_is_taken);
    tcase_add_test(tests, other_families_are_translated);
    tcase_add_test(tests, a_prompt_is_what_a_user_says_unless_it_is_raw);
    tcase_add_test(tests, depth_and_length_are_survived);
}

int main(void)
{
    return run_tests("gateway parameters", add);
}
