/* SPDX-License-Identifier: MIT */
/* Questions to a pool, without waiting: what each of them sends. Answers come to the callback (question.h).
 */

#include <errno.h>
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
        return say_asked(error_set(&err, -ENOTSUP, "the pool is too old to answer questions about tenants"),
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
