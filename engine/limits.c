/* SPDX-License-Identifier: MIT */
/* Every check of a request, one after the other, each with the value that is wrong. */

#include "engine/limits.h"

#include <math.h>

#include "model/model.h"

static int check_ids(const char *what, const int32_t *ids, uint32_t n, uint32_t n_vocab, struct error *err)
{
    for (uint32_t i = 0; i < n; i++)
        if (ids[i] < 0 || (uint32_t)ids[i] >= n_vocab)
            return error_set(err, ENGINE_E_INVALID, "%s[%u]: id %d is outside the vocabulary of %u", what, i,
                             ids[i], n_vocab);
    return 0;
}

static int check_stops(const struct engine_request *request, const struct model *model,
                       const struct backend_info *info, struct error *err)
{
    size_t n_end = tokenizer_end_ids(model->tokenizer).n;
    if (request->n_stop_ids + n_end > info->most_stop_ids)
        return error_set(err, ENGINE_E_INVALID,
                         "stop_ids: %u plus the model's own %zu exceed the device's limit of %u",
                         request->n_stop_ids, n_end, info->most_stop_ids);
    for (uint32_t i = 0; i < request->n_stop; i++)
        if (request->stop[i].len == 0)
            return error_set(err, ENGINE_E_INVALID, "stop[%u] is empty", i);
    return check_ids("stop_ids", request->stop_ids, request->n_stop_ids, model->params.n_vocab, err);
}

/* Whether nothing is asked for besides the embedding. */
static bool is_plain(const struct engine_request *request)
{
    return request->max_tokens == 0 && request->min_tokens == 0 && request->n_output == 0 &&
           request->text_offset == 0 && request->n_stop == 0 && request->n_stop_ids == 0 &&
           request->n_logprobs == 0 && !request->grammar && !request->thinking && request->uncached;
}

/* Whether the id could never be sampled, though it is forced. */
static bool is_banned(const struct engine_request *request, int32_t id, const char **ret_by)
{
    const struct sampling *sampling = &request->sampling;
    const struct id_sequences *words = &sampling->bad_words;
    for (size_t i = 0; i < sampling->logit_bias.n; i++)
        if (sampling->logit_bias.items[i].id == id && isinf(sampling->logit_bias.items[i].bias)) {
            *ret_by = "logit_bias or ignore_eos";
            return true;
        }
    for (size_t at = 0; at < words->len; at += 1 + (size_t)words->items[at])
        if (words->items[at + (size_t)words->items[at]] == id) {
            *ret_by = "bad_words";
            return true;
        }
    for (uint32_t i = 0; i < request->n_stop_ids && request->min_tokens > 0; i++)
        if (request->stop_ids[i] == id) {
            *ret_by = "stop_ids with min_tokens";
            return true;
        }
    return false;
}

static int check_thought_end(const struct engine_request *request, const int32_t *ids, uint32_t n,
                             const struct model *model, struct error *err)
{
    const struct ids_view ends = tokenizer_end_ids(model->tokenizer);
    const char *by = NULL;
    if (n == 0 || n > ENGINE_MOST_THOUGHT_END)
        return error_out_of_range(err, ENGINE_E_INVALID, "thinking_budget: ids of a thought's end", n, 1,
                                  ENGINE_MOST_THOUGHT_END);
    int r = check_ids("thinking_budget: the end of a thought", ids, n, model->params.n_vocab, err);
    for (uint32_t i = 0; i < n && r == 0; i++) {
        for (size_t j = 0; j < ends.n; j++)
            if (ends.items[j] == ids[i])
                return error_set(err, ENGINE_E_INVALID,
                                 "thinking_budget: id %d, which ends a thought, is also an end id of the "
                                 "model, so no answer could follow",
                                 ids[i]);
        if (is_banned(request, ids[i], &by))
            return error_set(err, ENGINE_E_INVALID,
                             "thinking_budget: id %d, which ends a thought, is excluded by %s", ids[i], by);
    }
    return r;
}

static int check_thinking(const struct engine_request *request, const struct model *model, struct error *err)
{
    const struct engine_thinking *thinking = request->thinking;
    if (!thinking)
        return 0;
    int r = check_thought_end(request, thinking->end, thinking->n_end, model, err);
    return r == 0 ? check_thought_end(request, thinking->again, thinking->n_again, model, err) : r;
}

/* Whether logit_bias leaves no id to sample, which takes a small vocabulary. */
static bool bans_all(const struct logit_bias_list *list, uint32_t n_vocab)
{
    bool banned[SAMPLING_MAX_BIASES] = {false};
    uint32_t n = 0;
    if (n_vocab > SAMPLING_MAX_BIASES || list->n < n_vocab)
        return false;
    for (size_t i = 0; i < list->n; i++) {
        const struct logit_bias *item = &list->items[i];
        n += isinf(item->bias) && item->bias < 0 && !banned[item->id];
        banned[item->id] |= isinf(item->bias) && item->bias < 0;
    }
    return n == n_vocab;
}

int engine_check_request(const struct engine_request *request, const struct model *model,
                         const struct backend_info *info, uint32_t n_context, uint32_t n_cache,
                         struct error *err)
{
    if (request->n_prompt == 0)
        return error_set(err, ENGINE_E_INVALID, "the prompt is empty");
    if (request->embed && info->n_embedding == 0)
        return error_set(err, ENGINE_E_INVALID, "embed: this device cannot compute embeddings");
    if (!request->embed && model->params.pooling == POOLING_RANK)
        return error_set(err, ENGINE_E_INVALID,
                         "the model ranks pairs of texts (pooling_type rank) and generates no text");
    if (request->embed && !is_plain(request))
        return error_set(
            err, ENGINE_E_INVALID,
            "embed excludes tokens, stops, log probabilities, grammar, thinking_budget and cache");
    if (request->max_tokens == 0 && !request->embed)
        return error_set(err, ENGINE_E_INVALID, "max_tokens is 0");
    uint64_t total = (uint64_t)request->n_prompt + request->max_tokens;
    if (request->embed && (total > n_context || total > n_cache))
        return error_set(err, ENGINE_E_TOO_LONG, "prompt has %u tokens; the %s holds %u", request->n_prompt,
                         total > n_context ? "context" : "KV cache", total > n_context ? n_context : n_cache);
    /* Nothing more is to be made of an output that has as many ids as it may. */
    const char *rest = request->n_output == request->max_tokens ? "output" : "max_tokens";
    if (total > n_context)
        return error_set(err, ENGINE_E_TOO_LONG, "prompt (%u) + %s (%u) = %llu tokens; the context holds %u",
                         request->n_prompt, rest, request->max_tokens, (unsigned long long)total, n_context);
    if (total > n_cache)
        return error_set(err, ENGINE_E_TOO_LONG, "prompt (%u) + %s (%u) = %llu tokens; the KV cache holds %u",
                         request->n_prompt, rest, request->max_tokens, (unsigned long long)total, n_cache);
    if (request->min_tokens > 0 && request->grammar)
        return error_set(err, ENGINE_E_INVALID, "min_tokens: not supported together with a grammar");
    if (sampling_check(&request->sampling, model->params.n_vocab, err) < 0)
        return ENGINE_E_INVALID;
    if (bans_all(&request->sampling.logit_bias, model->params.n_vocab))
        return error_set(err, ENGINE_E_INVALID, "logit_bias bans every token");
    int r = check_ids("prompt", request->prompt, request->n_prompt, model->params.n_vocab, err);
    if (r == 0)
        r = check_ids("output", request->output, request->n_output, model->params.n_vocab, err);
    if (r == 0)
        r = check_stops(request, model, info, err);
    if (r == 0)
        r = check_thinking(request, model, err);
    if (r != 0)
        return r;
    if (request->n_spelled > ENGINE_MOST_SPELLED)
        return error_set(err, ENGINE_E_INVALID,
                         "%u control tokens to write out as text; at most %d are allowed", request->n_spelled,
                         ENGINE_MOST_SPELLED);
    if (request->n_output > request->max_tokens)
        return error_set(err, ENGINE_E_INVALID, "output has %u ids, more than max_tokens (%u)",
                         request->n_output, request->max_tokens);
    if (request->priority > ENGINE_MOST_PRIORITY || request->priority < -ENGINE_MOST_PRIORITY)
        return error_out_of_range(err, ENGINE_E_INVALID, "priority", request->priority, -ENGINE_MOST_PRIORITY,
                                  ENGINE_MOST_PRIORITY);
    if (request->n_logprobs > ENGINE_MOST_LOGPROBS || request->n_logprobs > model->params.n_vocab)
        return error_out_of_range(err, ENGINE_E_INVALID, "logprobs", request->n_logprobs, 0,
                                  ENGINE_MOST_LOGPROBS < model->params.n_vocab ? ENGINE_MOST_LOGPROBS
                                                                               : model->params.n_vocab);
    return 0;
}
