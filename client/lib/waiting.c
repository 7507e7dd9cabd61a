/* SPDX-License-Identifier: MIT */
/* Calls that wait: status, tokenize, and a request from beginning to end.
 *
 * They dispatch meanwhile, so other requests make progress; from inside a callback, which is inside a
 * dispatch, they are refused. A question is asked again after a second, two, four … until its answer comes:
 * so a broker that restarts in between is met in stride. */

#include <errno.h>

#include "client/lib/loop.h"
#include "client/lib/outgoing.h"

#define QUESTION_NS (1 * CLOCK_NS_PER_S) /* from asking to asking again, at first */

/* Sends the message, and again, until the answer to `ref` is there. */
static int ask(struct quern *client, const struct message *message, uint64_t ref, int timeout_ms,
               struct quern_error *ret_err)
{
    int r = loop_refuse_inside(client, ret_err);
    if (r < 0)
        return r;
    client->question = (struct question){.ref = ref};
    uint64_t start = clock_ns(), sent = 0, wait = 0;
    while (r >= 0 && !client->question.answered) {
        uint64_t now = clock_ns();
        struct error err = {0};
        if (now - start >= (uint64_t)timeout_ms * CLOCK_NS_PER_MS) {
            error_set(&err, 0, "the broker at %s did not answer within %d ms", client->endpoint, timeout_ms);
            r = state_say(ret_err, -ETIMEDOUT, &err);
            break;
        }
        if (client->state == SESSION_OPEN && now - sent >= wait) {
            r = outgoing_message(client, message, &err);
            sent = now;
            wait = wait > 0 ? 2 * wait : QUESTION_NS;
            if (r < 0 && r != -EAGAIN) {
                state_say(ret_err, r, &err);
                break;
            }
        }
        r = quern_dispatch(client, 20, ret_err);
    }
    if (client->question.answered)
        r = client->question.code < 0 ? state_say(ret_err, client->question.code, &client->question.err) : 0;
    client->question = (struct question){0};
    return r;
}

int quern_status(struct quern *client, int timeout_ms, const struct quern_status **ret_status,
                 struct quern_error *err)
{
    struct message message = {.kind = MESSAGE_STATUS};
    message.status.ref = ++client->last_ref;
    int r = ask(client, &message, message.status.ref, timeout_ms, err);
    if (r == 0)
        *ret_status = &client->status;
    return r;
}

int quern_tokenize(struct quern *client, const char *model, const char *text, size_t text_len, bool special,
                   int timeout_ms, const int32_t **ret_ids, size_t *ret_n, struct quern_error *err)
{
    struct message message = {.kind = MESSAGE_TOKENIZE};
    message.tokenize.ref = ++client->last_ref;
    message.tokenize.model = bytes_of_string(model ? model : "");
    message.tokenize.text = (struct bytes){text, text_len};
    message.tokenize.special = special;
    int r = ask(client, &message, message.tokenize.ref, timeout_ms, err);
    if (r == 0) {
        *ret_ids = client->tokens.data;
        *ret_n = client->tokens.len;
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
