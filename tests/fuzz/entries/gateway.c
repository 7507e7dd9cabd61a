/* SPDX-License-Identifier: MIT */
/* Any bytes as the body of a request to the gateway: either they are a request of libquern, whose lists and
 * texts can all be read, or there is a refusal with a status and one line. Calls of tools that are to be held
 * to something are a grammar, which the pool reads, or refuses by its schemas. */

#include "tests/fuzz/driver.h"

#include <stdlib.h>
#include <string.h>

#include "gateway/forms/openai/chat.h"
#include "gateway/forms/openai/completions.h"
#include "gateway/forms/anthropic/messages.h"
#include "gateway/forms/embeddings.h"
#include "gateway/forms/ranking.h"
#include "gateway/forms/ranking_in.h"
#include "gateway/forms/ollama/ollama.h"
#include "gateway/core/parameters.h"
#include "gateway/tools/tool_choice.h"
#include "gateway/forms/thinking.h"
#include "gateway/tools/tool_grammar.h"
#include "tests/unit/gateway/tools/forms.h"
#include "text/grammar/grammar.h"

#define REQUIRE(condition)                                                                                   \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            abort();                                                                                         \
    } while (0)

/* A parameter that the pool fills in. */
static bool is_left(double value)
{
    return memcmp(&value, &(double){QUERN_LEFT}, sizeof value) == 0;
}

static size_t read_all(const struct quern_request *request)
{
    size_t sum = request->text ? strlen(request->text) : 0;
    for (size_t i = 0; i < request->n_messages; i++)
        sum += strlen(request->messages[i].content);
    for (size_t i = 0; i < request->n_ids; i++)
        REQUIRE(request->ids[i] >= 0);
    for (size_t i = 0; i < request->n_stop; i++)
        REQUIRE(request->stop[i][0]);
    for (size_t i = 0; i < request->n_logit_bias; i++)
        REQUIRE(request->logit_bias[i].bias >= -100 && request->logit_bias[i].bias <= 100);
    return sum;
}

/* In which form the model calls, the length of the body says. */
static void hold_calls(struct parameters *parameters, size_t len)
{
    struct model_dialect dialect;
    struct refusal refusal = {0};
    struct error err = {0};
    struct grammar *grammar;
    dialect_init(&dialect);
    REQUIRE(dialect_read(bytes_of_string(dialect_forms[len % 4].json), &dialect, NULL) == 0);
    const bool refused = thinking_set(parameters, &dialect, &refusal) != 0 ||
                         tool_choice_finish(parameters, &refusal) != 0 ||
                         (parameters->request.tools && tool_grammar_set(parameters, &dialect, &refusal) != 0);
    dialect_deinit(&dialect);
    if (refused) {
        REQUIRE(refusal.status >= 400 && refusal.status < 600 && refusal.text[0] &&
                !strchr(refusal.text, '\n'));
        return;
    }
    const char *text = parameters->request.grammar;
    if (!parameters->request.tools || !text || !strstr(text, "calls ::="))
        return;
    int r = grammar_make(GRAMMAR_GBNF, bytes_of_string(text), &grammar, &err);
    REQUIRE(r == 0 || strstr(err.text, "schema: at #") || strstr(err.text, "too large") ||
            strstr(err.text, "too complex") || strstr(err.text, "at most"));
    if (r == 0)
        grammar_free(grammar);
}

static void try(const struct json_row *rows, struct bytes body)
{
    struct parameters parameters;
    struct refusal refusal = {0};
    parameters_init(&parameters);
    parameters.chat = rows == ollama_generate_rows;
    if (parameters_read(&parameters, rows, body, &refusal) == 0 &&
        parameters_finish(&parameters, "prompt", &refusal) == 0) {
        const struct quern_request *request = &parameters.request;
        REQUIRE(request->temperature >= 0 || is_left(request->temperature));
        REQUIRE((request->top_p >= 0 && request->top_p <= 1) || is_left(request->top_p));
        REQUIRE(parameters.n >= 1 && parameters.n <= PARAMETERS_MAX_CHOICES &&
                (request->max_tokens >= 1 || !parameters.has_max_tokens));
        REQUIRE((request->text != NULL) + (request->ids != NULL) + (request->messages != NULL) >= 1);
        REQUIRE(read_all(request) <= body.len);
        hold_calls(&parameters, body.len);
    } else {
        struct json_out out = {0};
        REQUIRE(refusal.status >= 400 && refusal.status < 600 && refusal.text[0] &&
                !strchr(refusal.text, '\n'));
        refusal_write(&refusal, FAMILY_OPENAI, &out);
        json_t *json = json_loadb((const char *)out.buffer.data, out.buffer.len, 0, NULL);
        REQUIRE(json);
        json_decref(json);
        json_out_deinit(&out);
    }
    parameters_deinit(&parameters);
}

static void try_ranking(const struct json_row *rows, int (*pair)(struct ranking_in *, struct refusal *),
                        struct bytes body)
{
    struct ranking_in in = {0};
    struct refusal refusal = {0};
    parameters_init(&in.in.parameters);
    int r = parameters_read(&in.in.parameters, rows, body, &refusal);
    if (r == 0)
        r = pair(&in, &refusal);
    REQUIRE(r == 0 ? in.in.n > 0 : refusal.status >= 400 && refusal.text[0]);
    for (size_t i = 0; i < in.in.n && r == 0; i++)
        REQUIRE(in.in.inputs[i].text.len > 0 && in.in.inputs[i].document[0]);
    REQUIRE(in.in.n <= RANKING_MOST_PAIRS);
    parameters_deinit(&in.in.parameters);
}

static void try_embeddings(const struct json_row *rows, struct bytes body)
{
    struct embeddings_in in = {0};
    struct refusal refusal = {0};
    size_t sum = 0;
    parameters_init(&in.parameters);
    int r = parameters_read(&in.parameters, rows, body, &refusal);
    REQUIRE(r == 0 || (refusal.status >= 400 && refusal.text[0]));
    for (size_t i = 0; i < in.n && r == 0; i++) {
        const struct embeddings_input *input = &in.inputs[i];
        REQUIRE((input->text.data != NULL) != (input->ids != NULL));
        sum += input->text.len + input->n_ids;
        for (size_t j = 0; j < input->n_ids; j++)
            REQUIRE(input->ids[j] >= 0);
    }
    REQUIRE(sum <= body.len && in.n <= EMBEDDINGS_MOST_INPUTS);
    parameters_deinit(&in.parameters);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    try(chat_rows, (struct bytes){data, len});
    try(completions_rows, (struct bytes){data, len});
    try(messages_rows, (struct bytes){data, len});
    try(ollama_chat_rows, (struct bytes){data, len});
    try(ollama_generate_rows, (struct bytes){data, len});
    try_embeddings(embeddings_rows, (struct bytes){data, len});
    try_embeddings(ollama_embed_rows, (struct bytes){data, len});
    try_ranking(ranking_rerank_rows, ranking_pair_all, (struct bytes){data, len});
    try_ranking(ranking_score_rows, ranking_pair_each, (struct bytes){data, len});
    return 0;
}
