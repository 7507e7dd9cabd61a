/* SPDX-License-Identifier: MIT */
/* Calls that wait: for the answer to a question (ask.c), for an embedding, and for a request from beginning
 * to end.
 *
 * They dispatch meanwhile, so other requests make progress; from inside a callback, which is inside a
 * dispatch, they are refused. */

#include <errno.h>
#include <stdio.h>

#include "client/lib/loop.h"
#include "client/lib/question.h"

/* A question that is waited for. What it is answered with lives in the client. */
struct asked {
    bool over;
    struct quern_answer answer;
    struct quern_error err;
};

static void on_answer(void *arg, const struct quern_answer *answer)
{
    struct asked *asked = arg;
    asked->over = true;
    asked->answer = *answer;
    snprintf(asked->err.text, sizeof asked->err.text, "%s", answer->text);
}

/* Waits for what was asked, where `r`, which asking it returned, is 0. */
static int await(struct quern *client, int r, struct asked *asked, struct quern_error *ret_err)
{
    if (r < 0)
        return r;
    /* A broken session answers its questions too. */
    while (!asked->over)
        quern_dispatch(client, 20, NULL);
    if (asked->answer.code < 0 && ret_err)
        *ret_err = asked->err;
    return asked->answer.code;
}

int quern_status(struct quern *client, int timeout_ms, const struct quern_status **ret_status,
                 struct quern_error *err)
{
    struct asked asked = {0};
    int r = loop_refuse_inside(client, err);
    if (r == 0)
        r = quern_ask_status(client, timeout_ms, on_answer, &asked, err);
    r = await(client, r, &asked, err);
    if (r == 0)
        *ret_status = asked.answer.status;
    return r;
}

int quern_requests(struct quern *client, const char *request_id, uint32_t most, int timeout_ms,
                   const struct quern_status **ret_status, struct quern_error *err)
{
    struct asked asked = {0};
    int r = loop_refuse_inside(client, err);
    if (r == 0)
        r = quern_ask_requests(client, request_id, most, timeout_ms, on_answer, &asked, err);
    r = await(client, r, &asked, err);
    if (r == 0)
        *ret_status = asked.answer.status;
    return r;
}

int quern_trace(struct quern *client, const char *worker, uint64_t from, int timeout_ms,
                const struct quern_trace **ret_trace, struct quern_error *err)
{
    struct asked asked = {0};
    int r = loop_refuse_inside(client, err);
    if (r == 0)
        r = quern_ask_trace(client, worker, from, timeout_ms, on_answer, &asked, err);
    r = await(client, r, &asked, err);
    if (r == 0)
        *ret_trace = asked.answer.trace;
    return r;
}

int quern_profile(struct quern *client, const char *worker, uint64_t run, uint32_t steps, int timeout_ms,
                  const struct quern_profile **ret_profile, struct quern_error *err)
{
    struct asked asked = {0};
    int r = loop_refuse_inside(client, err);
    if (r == 0)
        r = quern_ask_profile(client, worker, run, steps, timeout_ms, on_answer, &asked, err);
    r = await(client, r, &asked, err);
    if (r == 0)
        *ret_profile = asked.answer.profile;
    return r;
}

int quern_trim(struct quern *client, const char *worker, uint64_t run, bool prefixes, int timeout_ms,
               const struct quern_trim **ret_trim, struct quern_error *err)
{
    struct asked asked = {0};
    int r = loop_refuse_inside(client, err);
    if (r == 0)
        r = quern_ask_trim(client, worker, run, prefixes, timeout_ms, on_answer, &asked, err);
    r = await(client, r, &asked, err);
    if (r == 0)
        *ret_trim = asked.answer.trim;
    return r;
}

int quern_tokenize(struct quern *client, const struct quern_text *text, int timeout_ms,
                   const int32_t **ret_ids, size_t *ret_n, struct quern_error *err)
{
    struct asked asked = {0};
    int r = loop_refuse_inside(client, err);
    if (r == 0)
        r = quern_ask_tokenize(client, text, timeout_ms, on_answer, &asked, err);
    r = await(client, r, &asked, err);
    if (r == 0) {
        *ret_ids = asked.answer.ids;
        *ret_n = asked.answer.n_ids;
    }
    return r;
}

int quern_detokenize(struct quern *client, const struct quern_ids *ids, int timeout_ms, const char **ret_text,
                     size_t *ret_len, struct quern_error *err)
{
    struct asked asked = {0};
    int r = loop_refuse_inside(client, err);
    if (r == 0)
        r = quern_ask_detokenize(client, ids, timeout_ms, on_answer, &asked, err);
    r = await(client, r, &asked, err);
    if (r == 0) {
        *ret_text = asked.answer.content;
        *ret_len = asked.answer.content_len;
    }
    return r;
}

struct waiting {
    quern_output_fn *fn;
    void *arg;
    bool over;
};

static void on_waited_output(void *arg, const struct quern_output *output)
{
    struct waiting *waiting = arg;
    waiting->over = output->end != NULL;
    if (waiting->fn)
        waiting->fn(waiting->arg, output);
}

int quern_generate_wait(struct quern *client, const struct quern_request *request, quern_output_fn *fn,
                        void *arg, struct quern_error *err)
{
    struct waiting waiting = {fn, arg, false};
    int r = loop_refuse_inside(client, err);
    if (r == 0)
        r = quern_generate(client, request, on_waited_output, &waiting, NULL, err);
    /* A broken session ends its requests too: the callback has heard, before the code comes back. */
    while (r >= 0 && !waiting.over)
        r = quern_dispatch(client, -1, err);
    return waiting.over || r > 0 ? 0 : r;
}

/* What became of a request for an embedding. */
struct embedding {
    struct quern *client;
    size_t n; /* numbers in `awaited`; 0: none came */
    struct quern_end end;
    struct quern_error err;
};

static void on_embedding(void *arg, const struct quern_output *output)
{
    struct embedding *embedding = arg;
    if (!output->end)
        return;
    if (output->embedding) { /* what is told in the same dispatch must not take its place */
        const struct buffer other = embedding->client->awaited;
        embedding->client->awaited = embedding->client->embedding;
        embedding->client->embedding = other;
        embedding->n = output->n_embedding;
    }
    embedding->end = *output->end;
    if (output->end->reason == QUERN_ERROR)
        snprintf(embedding->err.text, sizeof embedding->err.text, "%s: %.400s", output->end->error,
                 output->end->text);
    else
        snprintf(embedding->err.text, sizeof embedding->err.text, "it ended with \"%s\" and no embedding",
                 quern_reason_name(output->end->reason));
    embedding->end.error = embedding->end.text = "";
}

int quern_embed_wait(struct quern *client, const struct quern_request *request, const float **ret_embedding,
                     size_t *ret_n, struct quern_end *ret_end, struct quern_error *err)
{
    struct quern_request wanted = *request;
    struct embedding embedding = {.client = client};
    wanted.embed = true;
    int r = quern_generate_wait(client, &wanted, on_embedding, &embedding, err);
    if (r < 0)
        return r;
    if (embedding.n == 0) {
        if (err)
            *err = embedding.err;
        return -EREMOTEIO;
    }
    *ret_embedding = (const float *)(const void *)client->awaited.data;
    *ret_n = embedding.n;
    if (ret_end)
        *ret_end = embedding.end;
    return 0;
}
