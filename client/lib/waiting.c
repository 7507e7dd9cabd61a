/* SPDX-License-Identifier: MIT */
/* Calls that wait: status, tokenize, detokenize, an embedding, and a request from beginning to end; and the
 * same questions without waiting, which they are made of.
 *
 * They dispatch meanwhile, so other requests make progress; from inside a callback, which is inside a
 * dispatch, they are refused. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/lib/loop.h"
#include "client/lib/question.h"
#include "client/lib/requests/request_encode.h"

static int say_asked(int r, struct quern_error *ret_err, const struct error *err)
{
    return r < 0 ? state_say(ret_err, r, err) : 0;
}

int quern_ask_status(struct quern *client, int timeout_ms, quern_answer_fn *fn, void *arg,
                     struct quern_error *ret_err)
{
    struct message message = {.kind = MESSAGE_STATUS};
    struct error err = {0};
    return say_asked(question_ask(client, &message, timeout_ms, fn, arg, &err), ret_err, &err);
}

int quern_ask_prefixes(struct quern *client, const struct quern_prefixes_wish *wish, int timeout_ms,
                       quern_answer_fn *fn, void *arg, struct quern_error *ret_err)
{
    struct message message = {.kind = MESSAGE_PREFIXES};
    struct error err = {0};
    message.prefixes.boot = wish->boot;
    message.prefixes.next = wish->next;
    message.prefixes.at = wish->at;
    message.prefixes.secret = bytes_of_string(wish->secret);
    return say_asked(question_ask(client, &message, timeout_ms, fn, arg, &err), ret_err, &err);
}

bool quern_knows_tenants(const struct quern *client)
{
    return client->knows_tenants;
}

int quern_ask_tenants(struct quern *client, const struct quern_tenant *tenants, size_t n, int timeout_ms,
                      quern_answer_fn *fn, void *arg, struct quern_error *ret_err)
{
    struct message message = {.kind = MESSAGE_TENANTS};
    struct error err = {0};
    if (!client->knows_tenants)
        return say_asked(error_set(&err, -ENOTSUP, "the pool is too old for questions about tenants"),
                         ret_err, &err);
    struct tenant_use *uses = calloc(n + 1, sizeof *uses);
    if (!uses)
        return say_asked(error_set(&err, -ENOMEM, "out of memory"), ret_err, &err);
    for (size_t i = 0; i < n; i++) {
        uses[i] = (struct tenant_use){.requests = tenants[i].requests,
                                      .tokens = tenants[i].tokens,
                                      .rpm = tenants[i].used[QUERN_RPM],
                                      .tpm = tenants[i].used[QUERN_TPM],
                                      .rpd = tenants[i].used[QUERN_RPD],
                                      .tpd = tenants[i].used[QUERN_TPD]};
        memcpy(uses[i].id.bytes, tenants[i].id, sizeof uses[i].id);
    }
    message.tenants.tenants = (struct tenant_uses){uses, n};
    int r = question_ask(client, &message, timeout_ms, fn, arg, &err);
    free(uses);
    return say_asked(r, ret_err, &err);
}

int quern_ask_requests(struct quern *client, const char *request_id, uint32_t most, int timeout_ms,
                       quern_answer_fn *fn, void *arg, struct quern_error *ret_err)
{
    struct message message = {.kind = MESSAGE_STATUS};
    struct error err = {0};
    message.status.requests = most;
    message.status.request_id = bytes_of_string(request_id ? request_id : "");
    return say_asked(question_ask(client, &message, timeout_ms, fn, arg, &err), ret_err, &err);
}

int quern_ask_trace(struct quern *client, const char *worker, uint64_t from, int timeout_ms,
                    quern_answer_fn *fn, void *arg, struct quern_error *ret_err)
{
    struct message message = {.kind = MESSAGE_TRACE};
    struct error err = {0};
    message.trace.worker = bytes_of_string(worker);
    message.trace.from = from;
    return say_asked(question_ask(client, &message, timeout_ms, fn, arg, &err), ret_err, &err);
}

int quern_ask_profile(struct quern *client, const char *worker, uint64_t run, uint32_t steps, int timeout_ms,
                      quern_answer_fn *fn, void *arg, struct quern_error *ret_err)
{
    struct message message = {.kind = MESSAGE_PROFILE};
    struct error err = {0};
    message.profile.worker = bytes_of_string(worker);
    message.profile.run = run;
    message.profile.steps = steps;
    return say_asked(question_ask(client, &message, timeout_ms, fn, arg, &err), ret_err, &err);
}

int quern_ask_trim(struct quern *client, const char *worker, uint64_t run, bool prefixes, int timeout_ms,
                   quern_answer_fn *fn, void *arg, struct quern_error *ret_err)
{
    struct message message = {.kind = MESSAGE_TRIM};
    struct error err = {0};
    message.trim.worker = bytes_of_string(worker);
    message.trim.run = run;
    message.trim.prefixes = prefixes;
    return say_asked(question_ask(client, &message, timeout_ms, fn, arg, &err), ret_err, &err);
}

int quern_ask_tokenize(struct quern *client, const struct quern_text *text, int timeout_ms,
                       quern_answer_fn *fn, void *arg, struct quern_error *ret_err)
{
    struct message message = {.kind = MESSAGE_TOKENIZE};
    struct error err = {0};
    message.tokenize.model = bytes_of_string(text->model ? text->model : "");
    message.tokenize.text = (struct bytes){text->text, text->len};
    message.tokenize.has_text = true;
    message.tokenize.special = text->special;
    message.tokenize.bare = text->bare;
    message.tokenize.pieces = text->pieces;
    return say_asked(question_ask(client, &message, timeout_ms, fn, arg, &err), ret_err, &err);
}

int quern_ask_detokenize(struct quern *client, const struct quern_ids *ids, int timeout_ms,
                         quern_answer_fn *fn, void *arg, struct quern_error *ret_err)
{
    struct message message = {.kind = MESSAGE_DETOKENIZE};
    struct error err = {0};
    message.detokenize.model = bytes_of_string(ids->model ? ids->model : "");
    message.detokenize.ids = (struct id_list){ids->ids, ids->n};
    message.detokenize.special = ids->special;
    return say_asked(question_ask(client, &message, timeout_ms, fn, arg, &err), ret_err, &err);
}

int quern_ask_prompt(struct quern *client, const struct quern_request *request, int timeout_ms,
                     quern_answer_fn *fn, void *arg, struct quern_error *ret_err)
{
    struct message message = {.kind = MESSAGE_TOKENIZE};
    struct error err = {0};
    struct chat_message *messages = request_messages(request);
    int r = messages ? 0 : error_set(&err, -ENOMEM, "out of memory");
    if (r == 0 && request->n_messages == 0)
        r = error_set(&err, -EINVAL, "the request has no messages");
    message.tokenize.model = bytes_of_string(request->model ? request->model : "");
    message.tokenize.prompt.chat.items = messages;
    message.tokenize.prompt.chat.n = request->n_messages;
    message.tokenize.prompt.continue_turn = request->continue_turn;
    message.tokenize.prompt.template_kwargs =
        bytes_of_string(request->template_kwargs ? request->template_kwargs : "");
    message.tokenize.tools = bytes_of_string(request->tools ? request->tools : "");
    message.tokenize.pieces = request->pieces;
    message.tokenize.written = true;
    if (r == 0)
        r = question_ask(client, &message, timeout_ms, fn, arg, &err);
    free(messages);
    return say_asked(r, ret_err, &err);
}

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

static int await(struct quern *client, struct asked *asked, struct quern_error *ret_err)
{
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
    if (r == 0)
        r = await(client, &asked, err);
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
    if (r == 0)
        r = await(client, &asked, err);
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
    if (r == 0)
        r = await(client, &asked, err);
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
    if (r == 0)
        r = await(client, &asked, err);
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
    if (r == 0)
        r = await(client, &asked, err);
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
    if (r == 0)
        r = await(client, &asked, err);
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
    if (r == 0)
        r = await(client, &asked, err);
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
