/* SPDX-License-Identifier: MIT */
/* Every check of a request, one after the other, each with the value that is wrong. Comparisons are written
 * so that NaN fails them. */

#include "worker/engine/limits.h"

#include <math.h>

#include "worker/model/model.h"

static int check_sampling(const struct sampling *s, struct error *err)
{
    if (!(s->temperature >= 0) || !isfinite(s->temperature))
        return error_set(err, ENGINE_E_INVALID, "temperature is %g, not a number from 0",
                         (double)s->temperature);
    if (!(s->top_p > 0 && s->top_p <= 1))
        return error_set(err, ENGINE_E_INVALID, "top_p is %g, not above 0 and at most 1", (double)s->top_p);
    if (!(s->min_p >= 0 && s->min_p <= 1))
        return error_set(err, ENGINE_E_INVALID, "min_p is %g, not between 0 and 1", (double)s->min_p);
    if (!(s->repetition_penalty > 0) || !isfinite(s->repetition_penalty))
        return error_set(err, ENGINE_E_INVALID, "repetition_penalty is %g, not above 0",
                         (double)s->repetition_penalty);
    return 0;
}

static int check_ids(const char *what, const int32_t *ids, uint32_t n, uint32_t n_vocab, struct error *err)
{
    for (uint32_t i = 0; i < n; i++)
        if (ids[i] < 0 || (uint32_t)ids[i] >= n_vocab)
            return error_set(err, ENGINE_E_INVALID, "%s[%u] is %d; the model has ids 0 to %u", what, i,
                             ids[i], n_vocab - 1);
    return 0;
}

int engine_check_request(const struct engine_request *request, const struct model *model, uint32_t n_context,
                         uint32_t n_cache, struct error *err)
{
    if (request->n_prompt == 0)
        return error_set(err, ENGINE_E_INVALID, "the prompt is empty");
    if (request->max_tokens == 0)
        return error_set(err, ENGINE_E_INVALID, "max_tokens is 0");
    uint64_t total = (uint64_t)request->n_prompt + request->max_tokens;
    if (total > n_context)
        return error_set(err, ENGINE_E_TOO_LONG,
                         "prompt (%u) + max_tokens (%u) = %llu tokens; the context holds %u",
                         request->n_prompt, request->max_tokens, (unsigned long long)total, n_context);
    if (total > n_cache)
        return error_set(err, ENGINE_E_TOO_LONG,
                         "prompt (%u) + max_tokens (%u) = %llu tokens; the KV cache holds %u",
                         request->n_prompt, request->max_tokens, (unsigned long long)total, n_cache);
    int r = check_sampling(&request->sampling, err);
    if (r == 0)
        r = check_ids("prompt", request->prompt, request->n_prompt, model->params.n_vocab, err);
    if (r == 0)
        r = check_ids("stop_ids", request->stop_ids, request->n_stop_ids, model->params.n_vocab, err);
    if (r != 0)
        return r;
    for (uint32_t i = 0; i < request->n_stop; i++)
        if (request->stop[i].len == 0)
            return error_set(err, ENGINE_E_INVALID, "stop[%u] is empty", i);
    if (request->n_logprobs > ENGINE_MOST_LOGPROBS || request->n_logprobs > model->params.n_vocab)
        return error_set(err, ENGINE_E_INVALID, "logprobs is %u; at most %u are told", request->n_logprobs,
                         ENGINE_MOST_LOGPROBS);
    return 0;
}
