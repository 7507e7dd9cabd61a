/* SPDX-License-Identifier: MIT */
/* What clients send by default: accepted where it asks for what happens anyway, refused by name where it asks
 * for something else. Tables of values for each family. */

#include "gateway/forms/neutral.h"
#include "gateway/forms/openai/chat.h"
#include "gateway/forms/openai/completions.h"
#include "gateway/forms/embeddings.h"
#include "gateway/forms/anthropic/messages.h"
#include "gateway/forms/ollama/ollama.h"
#include "gateway/forms/thinking.h"
#include "tests/unit/run.h"

#include <stdio.h>
#include <string.h>

static struct embeddings_in in; /* begins with the parameters of all others */
static struct refusal refusal;

#define parameters in.parameters

/* The families, each with a body that has a place for one more member. */
static const struct form {
    const struct json_row *rows;
    const char *body, *missing;
} chat = {chat_rows, "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], %s}", "messages"},
  text = {completions_rows, "{\"prompt\": \"a\", %s}", "prompt"},
  message = {messages_rows, "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], %s}", "messages"},
  ollama = {ollama_chat_rows, "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], %s}", "messages"},
  option = {ollama_chat_rows, "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"options\": {%s}}",
            "messages"},
  vector = {embeddings_rows, "{\"input\": \"a\", %s}", NULL},
  ollama_vector = {ollama_embed_rows, "{\"input\": \"a\", %s}", NULL};

static int take_body(const struct form *form, const char *body)
{
    parameters_deinit(&parameters);
    in = (struct embeddings_in){0};
    parameters_init(&parameters);
    refusal = (struct refusal){0};
    int r = parameters_read(&parameters, form->rows, (struct bytes){body, strlen(body)}, &refusal);
    return r == 0 && form->missing ? parameters_finish(&parameters, form->missing, &refusal) : r;
}

static int take(const struct form *form, const char *member)
{
    char body[512];
    snprintf(body, sizeof body, form->body, member);
    return take_body(form, body);
}

START_TEST(what_happens_anyway_may_be_asked_for)
{
    static const struct {
        const struct form *form;
        const char *const members[40];
    } accepted[] = {
        {&chat,
         {"\"top_k\": -1",
          "\"modalities\": [\"text\"]",
          "\"modalities\": null",
          "\"use_beam_search\": false",
          "\"best_of\": 1",
          "\"best_of\": null",
          "\"n\": 1",
          "\"length_penalty\": 1.0",
          "\"length_penalty\": 1",
          "\"early_stopping\": false",
          "\"max_tokens\": -1",
          "\"max_completion_tokens\": -1",
          "\"service_tier\": \"auto\"",
          "\"store\": false",
          "\"metadata\": {}",
          "\"parallel_tool_calls\": true",
          "\"verbosity\": \"medium\"",
          "\"function_call\": \"auto\"",
          "\"function_call\": \"none\"",
          "\"functions\": []",
          "\"min_tokens\": 0",
          "\"ignore_eos\": false",
          "\"skip_special_tokens\": true",
          "\"spaces_between_special_tokens\": false",
          "\"stop_token_ids\": []",
          "\"stop_token_ids\": null",
          "\"bad_words\": []",
          "\"add_generation_prompt\": true",
          "\"continue_final_message\": false",
          "\"chat_template_kwargs\": {}",
          "\"documents\": []",
          "\"chat_template\": null",
          "\"priority\": 0",
          "\"echo\": false",
          "\"prompt_cache_retention\": \"24h\"",
          "\"request_id\": \"x\"",
          "\"repeat_last_n\": 64",
          "\"web_search_options\": {}",
          "\"tool_choice\": \"auto\""}},
        {&text,
         {"\"top_k\": -1",
          "\"best_of\": 1",
          "\"suffix\": null",
          "\"suffix\": \"\"",
          "\"echo\": false",
          "\"use_beam_search\": false",
          "\"max_tokens\": -1",
          "\"typical_p\": 1",
          "\"typical_p\": 1.0",
          "\"tfs_z\": 1.0",
          "\"top_a\": 0",
          "\"top_n_sigma\": -1.0",
          "\"mirostat\": 0",
          "\"mirostat\": 0, \"mirostat_tau\": 5.0, \"mirostat_eta\": 0.1",
          "\"dynatemp_range\": 0.0",
          "\"xtc_probability\": 0, \"xtc_threshold\": 0.1",
          "\"dry_multiplier\": 0.0, \"dry_base\": 1.75, \"dry_sequence_breakers\": [\"\\n\"]",
          "\"repeat_last_n\": -1, \"repeat_penalty\": 1.1",
          "\"repeat_last_n\": 256, \"repeat_penalty\": 1.0",
          "\"repeat_last_n\": 0",
          "\"repeat_last_n\": 256, \"repeat_penalty\": 1.1",
          "\"typical_p\": 0.5, \"top_n_sigma\": 1, \"xtc_probability\": 0.5, \"dry_multiplier\": 0.8",
          "\"penalize_nl\": false",
          "\"penalize_nl\": true, \"presence_penalty\": 1",
          "\"id_slot\": -1",
          "\"id_slot\": 3",
          "\"samplers\": [\"min_p\", \"temperature\"], \"n_cmpl\": 1",
          "\"n_predict\": 0, \"samplers\": [], \"response_fields\": [\"\"]",
          "\"prompt_logprobs\": null",
          "\"include_stop_str_in_output\": false",
          "\"add_special_tokens\": true",
          "\"return_token_ids\": false",
          "\"truncate_prompt_tokens\": null"}},
        {&message,
         {"\"service_tier\": \"auto\"", "\"metadata\": {}", "\"mcp_servers\": []", "\"container\": null",
          "\"context_management\": {}", "\"cache_control\": {\"type\": \"ephemeral\"}",
          "\"stop_sequences\": []", "\"tools\": []", "\"system\": []"}},
        {&ollama,
         {"\"keep_alive\": \"5m\"", "\"keep_alive\": -1", "\"truncate\": true", "\"truncate\": false",
          "\"shift\": true", "\"logprobs\": false", "\"top_logprobs\": 0", "\"format\": null",
          "\"tools\": []", "\"think\": null", "\"options\": null"}},
        {&option,
         {"\"top_k\": -1", "\"tfs_z\": 1", "\"tfs_z\": 1.0", "\"typical_p\": 1.0", "\"mirostat\": 0",
          "\"mirostat_tau\": 5.0", "\"mirostat_eta\": 0.1", "\"repeat_last_n\": 64, \"repeat_penalty\": 1.1",
          "\"repeat_last_n\": 33", "\"penalize_newline\": true", "\"penalize_newline\": false",
          "\"num_ctx\": 4096", "\"num_gpu\": 99", "\"f16_kv\": true", "\"vocab_only\": false",
          "\"num_predict\": -1", "\"num_predict\": -2", "\"seed\": -1", "\"low_vram\": false"}},
        {&vector,
         {"\"encoding_format\": \"float\"", "\"dimensions\": null", "\"user\": \"u\"",
          "\"add_special_tokens\": true", "\"normalize\": true", "\"embd_normalize\": 2",
          "\"truncate_prompt_tokens\": null", "\"priority\": 0"}},
        {&ollama_vector,
         {"\"truncate\": true", "\"truncate\": false", "\"keep_alive\": 0",
          "\"options\": {\"tfs_z\": 1, \"num_ctx\": 8192, \"top_k\": -1}"}},
    };
    for (size_t f = 0; f < sizeof accepted / sizeof *accepted; f++)
        for (size_t i = 0; accepted[f].members[i]; i++)
            ck_assert_msg(take(accepted[f].form, accepted[f].members[i]) == 0, "%s: %s",
                          accepted[f].members[i], refusal.text);
}
END_TEST

START_TEST(what_would_change_something_is_refused_by_name)
{
    static const struct {
        const struct form *form;
        const char *member, *param, *says;
    } refused[] = {
        {&chat, "\"top_k\": -2", "top_k", "out of range 0.."},
        {&chat, "\"top_k\": -1.0", "top_k", "-1"},
        {&chat, "\"modalities\": [\"text\", \"audio\"]", "modalities", "only text is supported"},
        {&chat, "\"modalities\": {}", "modalities", "only text"},
        {&chat, "\"use_beam_search\": true", "use_beam_search", "only false is supported"},
        {&chat, "\"best_of\": 2", "best_of", "only 1 is supported"},
        {&chat, "\"length_penalty\": 0.9", "length_penalty", "only 1"},
        {&chat, "\"length_penalty\": \"1.5\"", "length_penalty", "only 1"},
        {&chat, "\"max_tokens\": -3", "max_tokens", "out of range 1.."},
        {&chat, "\"verbosity\": \"low\"", "verbosity", "only medium"},
        {&chat, "\"function_call\": {\"name\": \"f\"}", "function_call", "only none or auto"},
        {&chat, "\"min_tokens\": -5", "min_tokens", "out of range 0.."},
        {&chat, "\"ignore_eos\": 1", "ignore_eos", "not a boolean"},
        {&chat, "\"skip_special_tokens\": false", "skip_special_tokens", "only true"},
        {&chat, "\"spaces_between_special_tokens\": 1", "spaces_between_special_tokens", "not a boolean"},
        {&chat, "\"stop_token_ids\": 2", "stop_token_ids", "is a number, not an array of token ids"},
        {&chat, "\"stop_token_ids\": [-2]", "stop_token_ids[0]", "out of range"},
        {&chat, "\"chat_template_kwargs\": [1]", "chat_template_kwargs", "not an object"},
        {&chat, "\"reasoning_format\": \"all\"", "reasoning_format", "not one of none"},
        {&chat, "\"thinking_budget\": -2", "thinking_budget", "not a positive number"},
        {&message, "\"thinking\": {\"type\": \"enabled\", \"budget_tokens\": \"many\"}",
         "thinking.budget_tokens", "not a positive number"},
        {&chat, "\"chat_template\": \"{{ x }}\"", "chat_template", "is not supported"},
        {&chat, "\"documents\": [{}]", "documents", "is not supported"},
        {&text, "\"echo\": 1", "echo", "not a boolean"},
        {&text, "\"best_of\": 3", "best_of", "only 1"},
        {&text, "\"mirostat\": 2", "mirostat", "only 0"},
        {&text, "\"tfs_z\": 0.95", "tfs_z", "only 1"},
        {&text, "\"id_slot\": \"a\"", "id_slot", "not an integer"},
        {&chat, "\"samplers\": [\"best\"]", "samplers", "unknown sampler \"best\""},
        {&text, "\"truncate_prompt_tokens\": 5", "truncate_prompt_tokens", "is not supported"},
        {&text, "\"presence_penalty\": -0.5, \"penalize_nl\": false", "penalize_nl", "with penalties"},
        {&text, "\"repeat_last_n\": \"all\"", "repeat_last_n", "not a number"},
        {&message, "\"context_management\": {\"edits\": [1]}", "context_management", "not supported"},
        {&ollama, "\"logprobs\": true", "logprobs", "only false"},
        {&ollama, "\"truncate\": \"yes\"", "truncate", "not a boolean"},
        {&option, "\"top_k\": -5", "options.top_k", "out of range 0.."},
        {&option, "\"tfs_z\": 0.5", "options.tfs_z", "only 1"},
        {&option, "\"mirostat\": 1", "options.mirostat", "only 0"},
        {&option, "\"vocab_only\": true", "options.vocab_only", "only false"},
        {&option, "\"num_predict\": -7", "options.num_predict", "out of range 1.."},
        {&vector, "\"normalize\": false", "normalize", "only true"},
        {&vector, "\"embd_normalize\": -1", "embd_normalize", "only 2"},
        {&chat, "\"priority\": 9", "priority", "out of range -8..8"},
        {&text, "\"priority\": -9", "priority", "out of range -8..8"},
        {&vector, "\"priority\": 1.5", "priority", "not an integer"},
        {&ollama_vector, "\"truncate\": 1", "truncate", "not a boolean"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        ck_assert_msg(take(refused[i].form, refused[i].member) == REFUSED, "%s was taken", refused[i].member);
        ck_assert_uint_eq(refusal.status, 400);
        ck_assert_msg(strcmp(refusal.param, refused[i].param) == 0, "%s: %s", refused[i].member,
                      refusal.param);
        ck_assert_msg(strstr(refusal.text, refused[i].says), "%s: %s", refused[i].member, refusal.text);
    }
}
END_TEST

START_TEST(minus_one_means_off_and_no_limit)
{
    ck_assert_int_eq(take(&chat, "\"top_k\": -1, \"max_tokens\": -1"), 0);
    ck_assert_int_eq(parameters.request.top_k, 0);
    ck_assert(!parameters.has_max_tokens);
    ck_assert_int_eq(take(&chat, "\"top_k\": 7, \"max_tokens\": 5"), 0);
    ck_assert_int_eq(parameters.request.top_k, 7);
    ck_assert(parameters.has_max_tokens);
    ck_assert_int_eq(take(&option, "\"top_k\": -1"), 0);
    ck_assert_int_eq(parameters.request.top_k, 0);
}
END_TEST

START_TEST(a_lower_priority_goes_first_as_with_vllm)
{
    ck_assert_int_eq(take(&chat, "\"priority\": -3"), 0);
    ck_assert_int_eq(parameters.request.priority, 3);
    ck_assert_int_eq(take(&text, "\"priority\": 8"), 0);
    ck_assert_int_eq(parameters.request.priority, -8);
    ck_assert_int_eq(take(&vector, "\"priority\": 2"), 0);
    ck_assert_int_eq(parameters.request.priority, -2);
}
END_TEST

/* Models: one that never thinks; one that always does; one that does unless it is told not to; one that does
 * if it is told to, with degrees. */
static const char *const thinkers[] = {
    "{\"thoughts\": {\"unknown\": \"no\"}}",
    "{\"thoughts\": {\"open\": \"<t>\", \"close\": \"</t>\", \"usual\": \"thought\", \"on\": \"thought\", "
    "\"off\": "
    "\"thought\"}}",
    "{\"thoughts\": {\"open\": \"<t>\", \"close\": \"</t>\", \"usual\": \"thought\", \"on\": \"thought\", "
    "\"off\": "
    "\"text\", \"switch_off\": {\"enable_thinking\": false}}}",
    "{\"thoughts\": {\"open\": \"<t>\", \"close\": \"</t>\", \"usual\": \"text\", \"on\": \"thought\", "
    "\"off\": \"text\", "
    "\"switch_on\": {\"reasoning_effort\": \"high\"}, \"effort_key\": \"reasoning_effort\", \"efforts\": "
    "\"low high\", "
    "\"budget_key\": \"thinking_budget\"}}",
};

/* What a request about thinking comes to, for each of them: the template's variables, whether the prompt ends
 * in a thought, and a budget; NULL: refused. */
START_TEST(thinking_is_switched_as_the_template_has_it)
{
    static const struct {
        const struct form *form;
        const char *member, *param;
        const char *comes_to[4];
    } cases[] = {
        {&ollama,
         "\"think\": false",
         "think",
         {"", "!=0", "{\"enable_thinking\":false}", "{\"thinking_budget\":0}=0"}},
        {&ollama, "\"think\": true", "think", {NULL, "!", "!", "{\"reasoning_effort\":\"high\"}!"}},
        {&ollama, "\"think\": \"low\"", "think", {NULL, "!", "!", "{\"reasoning_effort\":\"low\"}!"}},
        {&ollama, "\"think\": 0", "think", {NULL, NULL, NULL, NULL}},
        {&ollama, "\"think\": null", NULL, {"", "!", "!", ""}},
        {&chat,
         "\"reasoning_effort\": \"none\"",
         "reasoning_effort",
         {"", "!=0", "{\"enable_thinking\":false}", "{\"thinking_budget\":0}=0"}},
        {&chat, "\"reasoning_effort\": \"medium\"", "reasoning_effort", {"", "!", "!", ""}},
        {&chat,
         "\"reasoning_effort\": \"minimal\"",
         "reasoning_effort",
         {NULL, "!", "!", "{\"reasoning_effort\":\"low\"}!"}},
        {&chat,
         "\"reasoning_effort\": \"xhigh\"",
         "reasoning_effort",
         {NULL, "!", "!", "{\"reasoning_effort\":\"high\"}!"}},
        {&chat, "\"reasoning_effort\": \"much\"", "reasoning_effort", {NULL, NULL, NULL, NULL}},
        {&chat, "\"reasoning_effort\": null", NULL, {"", "!", "!", ""}},
        {&chat,
         "\"chat_template_kwargs\": {\"enable_thinking\": false}",
         NULL,
         {"{\"enable_thinking\":false}", "{\"enable_thinking\":false}!", "{\"enable_thinking\":false}",
          "{\"enable_thinking\":false}"}},
        {&chat,
         "\"thinking_budget\": 100",
         "thinking_budget",
         {NULL, "!=100", "!=100", "{\"thinking_budget\":100}=100"}},
        {&chat,
         "\"reasoning_budget_tokens\": 0",
         NULL,
         {"", "!=0", "{\"enable_thinking\":false}", "{\"thinking_budget\":0}=0"}},
        {&chat, "\"thinking_budget_tokens\": -1", NULL, {"", "!", "!", ""}},
        {&chat,
         "\"thinking_token_budget\": 7, \"chat_template_kwargs\": {\"thinking_budget\": 9}",
         "thinking_token_budget",
         {NULL, "{\"thinking_budget\":9}!=7", "{\"thinking_budget\":9}!=7", "{\"thinking_budget\":9}=7"}},
        {&ollama,
         "\"options\": {\"thinking_budget\": 5}",
         "thinking_budget",
         {NULL, "!=5", "!=5", "{\"thinking_budget\":5}=5"}},
        {&chat, "\"reasoning_budget\": \"5\"", "reasoning_budget", {NULL, NULL, NULL, NULL}},
        {&chat, "\"reasoning_budget\": 2147483648", "reasoning_budget", {NULL, NULL, NULL, NULL}},
        {&message,
         "\"thinking\": {\"type\": \"disabled\"}",
         "thinking",
         {"", "!=0", "{\"enable_thinking\":false}", "{\"thinking_budget\":0}=0"}},
        {&message,
         "\"thinking\": {\"type\": \"enabled\", \"budget_tokens\": 1024}",
         "thinking",
         {NULL, "!=1024", "!=1024", "{\"reasoning_effort\":\"high\",\"thinking_budget\":1024}!=1024"}},
        {&message, "\"thinking\": {}", "thinking", {NULL, NULL, NULL, NULL}},
        {&message, "\"thinking\": true", "thinking", {NULL, NULL, NULL, NULL}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t model = 0; model < 4; model++) {
            struct model_dialect dialect;
            char got[200];
            int r = take(cases[i].form, cases[i].member);
            dialect_init(&dialect);
            ck_assert_int_eq(dialect_read(bytes_of_string(thinkers[model]), &dialect, NULL), 0);
            if (r == 0)
                r = thinking_set(&parameters, &dialect, &refusal);
            const char *wanted = cases[i].comes_to[model], *variables = parameters.request.template_kwargs;
            const int n = snprintf(got, sizeof got, "%s%s", variables ? variables : "",
                                   parameters.start == DIALECT_START_THOUGHT ? "!" : "");
            if (parameters.request.has_thinking_budget)
                snprintf(got + n, sizeof got - (size_t)n, "=%u", parameters.request.thinking_budget);
            ck_assert_msg((r == 0) == (wanted != NULL), "%s, %zu: %s", cases[i].member, model, refusal.text);
            ck_assert_msg(r != 0 || strcmp(got, wanted) == 0, "%s, %zu: %s", cases[i].member, model, got);
            ck_assert_msg(r == 0 || (refusal.status == 400 && strcmp(refusal.param, cases[i].param) == 0),
                          "%s: %s", cases[i].member, refusal.param);
            dialect_deinit(&dialect);
        }
}
END_TEST

/* What a request comes to where the gateway has a default: "" no budget, "=5", or with the variables that the
 * template gets. */
static void check_default(const char *member, uint32_t budget, size_t model, const char *wanted)
{
    struct model_dialect dialect;
    char got[200];
    ck_assert_int_eq(take(&chat, member), 0);
    dialect_init(&dialect);
    ck_assert_int_eq(dialect_read(bytes_of_string(thinkers[model]), &dialect, NULL), 0);
    parameters.has_default_budget = true;
    parameters.default_budget = budget;
    ck_assert_int_eq(thinking_set(&parameters, &dialect, &refusal), 0);
    const char *variables = parameters.request.template_kwargs;
    const int n = snprintf(got, sizeof got, "%s", variables ? variables : "");
    if (parameters.request.has_thinking_budget)
        snprintf(got + n, sizeof got - (size_t)n, "=%u", parameters.request.thinking_budget);
    ck_assert_msg(strcmp(got, wanted) == 0, "%s, %u, %zu: %s", member, budget, model, got);
    dialect_deinit(&dialect);
}

START_TEST(a_default_budget_holds_where_a_request_says_none)
{
    check_default("\"seed\": 1", 5, 0, ""); /* a model that does not think */
    check_default("\"seed\": 1", 5, 1, "=5");
    check_default("\"seed\": 1", 5, 3, "{\"thinking_budget\":5}=5");
    check_default("\"seed\": 1", 0, 0, "");
    check_default("\"seed\": 1", 0, 1, "=0");
    check_default("\"seed\": 1", 0, 2, "{\"enable_thinking\":false}");
    check_default("\"thinking_budget\": 7", 5, 1, "=7");
    check_default("\"thinking_budget\": 7", 0, 1, "=7");
    check_default("\"thinking_budget\": -1", 5, 1, "");
    check_default("\"thinking_budget\": -1", 0, 2, "");
    check_default("\"thinking_budget\": 0", 5, 1, "=0");
    check_default("\"reasoning_effort\": \"none\"", 5, 2, "{\"enable_thinking\":false}");
    check_default("\"chat_template_kwargs\": {\"enable_thinking\": false}", 5, 2,
                  "{\"enable_thinking\":false}");
    check_default("\"reasoning_effort\": \"high\"", 5, 1, "=5");
    check_default("\"reasoning_effort\": \"high\"", 0, 1, ""); /* a thought is asked for */
    check_default("\"chat_template_kwargs\": {\"reasoning_effort\": \"high\"}", 0, 3,
                  "{\"reasoning_effort\":\"high\"}");
}
END_TEST

START_TEST(a_message_needs_content_unless_it_calls_tools)
{
#define CALLS "\"tool_calls\": [{\"id\": \"x\", \"function\": {\"name\": \"f\", \"arguments\": \"{}\"}}]"
    static const struct {
        const char *message;
        bool openai, anthropic; /* accepted; Ollama's form is OpenAI's */
    } cases[] = {
        {"\"role\": \"user\", \"content\": \"a\"", true, true},
        {"\"role\": \"user\", \"content\": \"\"", true, true},
        {"\"role\": \"user\"", false, false},
        {"\"role\": \"user\", \"content\": null", false, false},
        {"\"role\": \"user\", \"content\": []", false, false},
        {"\"role\": \"assistant\"", false, false},
        {"\"role\": \"assistant\", \"content\": null", false, false},
        {"\"role\": \"system\", \"content\": null", false, false},
        {"\"role\": \"tool\", \"tool_call_id\": \"x\"", false, false},
        {"\"role\": \"assistant\", \"tool_calls\": []", false, false},
        {"\"role\": \"assistant\", " CALLS, true, false},
        {"\"role\": \"assistant\", \"content\": null, " CALLS, true, false},
        {"\"role\": \"assistant\", \"content\": [], " CALLS, true, false},
        {"\"role\": \"user\", " CALLS, false, false},
    };
    static const struct form *const forms[] = {&chat, &ollama, &message};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t f = 0; f < 3; f++) {
            char body[512];
            const bool expected = f < 2 ? cases[i].openai : cases[i].anthropic;
            snprintf(body, sizeof body, "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {%s}]}",
                     cases[i].message);
            int r = take_body(forms[f], body);
            ck_assert_msg((r == 0) == expected, "%s, %zu: %s", cases[i].message, f, refusal.text);
            ck_assert_msg(r == 0 || refusal.status == 400, "%s", cases[i].message);
            if (r != 0 && !strstr(cases[i].message, "tool") && !strstr(cases[i].message, "system"))
                ck_assert_str_eq(refusal.param, "messages[1].content");
            if (r == 0)
                ck_assert_ptr_nonnull(parameters.request.messages[1].content);
        }
    ck_assert_int_eq(take_body(&message, "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": "
                                         "\"tool_result\", \"tool_use_id\": \"x\", \"content\": null}]}]}"),
                     0);
}
END_TEST

/* What a worker calls a prompt is an input of the client's. */
START_TEST(errors_of_embeddings_name_the_input)
{
    static const struct {
        size_t n, index;
        const char *text, *expected, *param;
    } cases[] = {
        {1, 0, "prompt[3]: id 9 is outside the vocabulary of 8",
         "input[3]: id 9 is outside the vocabulary of 8", "input[3]"},
        {9, 4, "prompt[3] is 9", "input[4][3] is 9", "input[4][3]"},
        {9, 4, "prompt has 70 tokens", "input[4] has 70 tokens", "input[4]"},
        {1, 0, "the prompt is empty", "input is empty", "input"},
        {9, 4, "the queue is full", "the queue is full", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct embeddings_in some = {.n = cases[i].n};
        refuse(&refusal, 400, NULL, NULL, "%s", cases[i].text);
        embeddings_name_input(&some, cases[i].index, &refusal);
        ck_assert_str_eq(refusal.text, cases[i].expected);
        ck_assert_str_eq(refusal.param, cases[i].param);
    }
    const struct embeddings_in some = {.n = 9};
    char longest[600];
    memset(longest, 'x', sizeof longest);
    memcpy(longest, "prompt[", 7);
    longest[sizeof longest - 1] = 0;
    refuse(&refusal, 400, NULL, NULL, "%s", longest);
    embeddings_name_input(&some, 2000, &refusal);
    ck_assert_uint_lt(strlen(refusal.text), sizeof refusal.text);
    ck_assert_str_eq(refusal.param, "input[2000]");
    refuse(&refusal, 503, NULL, NULL, "prompt");
    embeddings_name_input(&some, 0, &refusal);
    ck_assert_str_eq(refusal.text, "prompt");
}
END_TEST

static void tear_down(void)
{
    parameters_deinit(&parameters);
}

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, NULL, tear_down);
    tcase_add_test(tests, what_happens_anyway_may_be_asked_for);
    tcase_add_test(tests, what_would_change_something_is_refused_by_name);
    tcase_add_test(tests, minus_one_means_off_and_no_limit);
    tcase_add_test(tests, a_lower_priority_goes_first_as_with_vllm);
    tcase_add_test(tests, thinking_is_switched_as_the_template_has_it);
    tcase_add_test(tests, a_default_budget_holds_where_a_request_says_none);
    tcase_add_test(tests, a_message_needs_content_unless_it_calls_tools);
    tcase_add_test(tests, errors_of_embeddings_name_the_input);
}

int main(void)
{
    return run_tests("gateway neutral", add);
}
