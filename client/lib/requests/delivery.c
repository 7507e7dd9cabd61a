/* SPDX-License-Identifier: MIT */
/* Callbacks, and the end of a request.
 *
 * A request knows how many ids (`next`) and how many bytes of text (`off`) were delivered; both only grow,
 * here, so the callback sees each id and each byte once. This is the one place where a request ends: `over`
 * is set before its last callback, so that nothing that the callback does can reach it any more, and then it
 * is freed.
 *
 * What a person is meant to read comes from the broker, or from whoever passes for it: it is made fit for a
 * terminal first. The output itself is handed on as it came. */

#include "client/lib/requests/delivery.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"

static void call(struct quern *client, struct request *request, struct quern_output *output)
{
    memcpy(output->id.bytes, request->id.bytes, 16);
    if (!output->text)
        output->text = "";
    client->delivered++;
    if (request->fn)
        request->fn(request->arg, output);
}

/* Without memory, an end has no text. */
static const char *keep_text(struct request *request, struct bytes text)
{
    free(request->end_text);
    request->end_text = text.len > 0 ? malloc(PROTO_MAX_TEXT_BYTES + 1) : NULL;
    return request->end_text ? utf8_printable(text, PROTO_MAX_TEXT_BYTES + 1, request->end_text) : "";
}

static const char *keep_stop(struct request *request, struct bytes stop)
{
    free(request->end_stop);
    request->end_stop = stop.len > 0 ? strndup(stop.data, stop.len) : NULL;
    return request->end_stop ? request->end_stop : "";
}

void delivery_set_end(struct request *request, const struct ending *ending)
{
    request->end = (struct quern_end){
        .reason = (enum quern_reason)ending->reason,
        .error = ending->error == PROTO_OK ? "" : proto_error_name(ending->error),
        .text = keep_text(request, ending->text),
        .stop = keep_stop(request, ending->stop),
        .limit = ending->limit == LIMIT_NONE ? "" : end_limit_name(ending->limit),
        .seed = request->seed,
        .prompt_tokens = ending->usage.prompt_tokens,
        .cached_tokens = ending->usage.cached_tokens,
        .output_tokens = ending->usage.output_tokens,
        .drafted_tokens = ending->usage.drafted_tokens,
        .accepted_tokens = ending->usage.accepted_tokens,
        .queue_ms = ending->timing.queue_ms,
        .prefill_ms = ending->timing.prefill_ms,
        .decode_ms = ending->timing.decode_ms,
        .prepare_ms = ending->timing.prepare_ms,
        .wait_ms = ending->timing.wait_ms,
        .lookup_ms = ending->timing.lookup_ms,
        .lost = ending->lost,
    };
}

/* It was computed, and did not come. */
static void fail_without_embedding(struct quern *client, struct request *request)
{
    delivery_fail(client, request, "worker_lost", BYTES_LITERAL("the pool no longer has the embedding"), 0);
}

void delivery_close(struct quern *client, struct request *request)
{
    if (request->embeds && request->end.reason == QUERN_STOP) {
        fail_without_embedding(client, request);
        return;
    }
    struct quern_output output = {.index = request->next, .end = &request->end};
    request->over = true;
    state_note_taken(client, request);
    call(client, request, &output);
    state_remove_request(client, request);
}

static void set_error(struct request *request, const char *error, struct bytes text, uint32_t retry_after_ms)
{
    request->end = (struct quern_end){.reason = QUERN_ERROR,
                                      .error = error,
                                      .text = keep_text(request, text),
                                      .stop = "",
                                      .limit = "",
                                      .retry_after_ms = retry_after_ms,
                                      .seed = request->seed,
                                      .output_tokens = (uint32_t)request->next};
}

void delivery_fail(struct quern *client, struct request *request, const char *error, struct bytes text,
                   uint32_t retry_after_ms)
{
    set_error(request, error, text, retry_after_ms);
    delivery_close(client, request);
}

static struct quern_quota quota_of(const struct quota *quota)
{
    return (struct quern_quota){quota->limit, quota->remaining, quota->reset_ms};
}

void delivery_admitted(struct quern *client, struct request *request, const struct quotas *quotas)
{
    if (!request->tells_admitted)
        return;
    request->tells_admitted = false;
    const struct quern_admitted admitted = {
        .seed = request->seed, .requests = quota_of(&quotas->requests), .tokens = quota_of(&quotas->tokens)};
    struct quern_output output = {.index = request->next, .admitted = &admitted};
    call(client, request, &output);
}

void delivery_progress(struct quern *client, struct request *request, const struct message *message)
{
    const int order = epoch_compare(message->progress.epoch, request->epoch);
    if (state_request_has_begun(request) || order < 0 || request->state == REQUEST_ATTACHING)
        return;
    request->epoch = message->progress.epoch;
    const struct quern_progress progress = {message->progress.total, message->progress.cached,
                                            message->progress.read};
    struct quern_output output = {.progress = &progress};
    call(client, request, &output);
}

void delivery_refuse(struct quern *client, struct request *request, const struct message *message)
{
    set_error(request, proto_error_name(message->error.error), message->error.text,
              message->error.retry_after_ms);
    request->end.requests = quota_of(&message->error.quotas.requests);
    request->end.tokens = quota_of(&message->error.quotas.tokens);
    delivery_close(client, request);
}

/* The numbers of a frame, as this machine has them; they live in the client. False without the memory. */
static bool take_embedding(struct quern *client, const struct frame *frame, struct quern_output *output)
{
    const size_t n = frame->embedding.len / sizeof(float);
    client->embedding.len = 0;
    if (buffer_reserve(&client->embedding, frame->embedding.len) < 0)
        return false;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, (const uint8_t *)frame->embedding.data + i * sizeof bits, sizeof bits);
        bits = le32toh(bits);
        memcpy(client->embedding.data + i * sizeof bits, &bits, sizeof bits);
    }
    client->embedding.len = frame->embedding.len;
    output->embedding = (const float *)(const void *)client->embedding.data;
    output->n_embedding = n;
    return true;
}

bool delivery_frame(struct quern *client, struct request *request, const struct frame *frame)
{
    uint64_t skip = request->next - frame->seq;
    size_t known_ids = skip < frame->ids.n ? (size_t)skip : frame->ids.n;
    skip = request->off - frame->off;
    size_t known_text = skip < frame->text.len ? (size_t)skip : frame->text.len;
    struct quern_output output = {.index = request->next,
                                  .ids = frame->ids.n ? frame->ids.items + known_ids : NULL,
                                  .n_ids = frame->ids.n - known_ids,
                                  .text = frame->text.data ? (const char *)frame->text.data + known_text : "",
                                  .text_len = frame->text.len - known_text};
    if (output.n_ids == 0 && output.text_len == 0 && !frame->has_end)
        return false;
    if (frame->logprobs.width > 0) {
        _Static_assert(sizeof(struct quern_logprob) == sizeof(struct token_logprob), "one layout, two names");
        output.n_logprobs = frame->logprobs.width;
        output.logprobs = (const struct quern_logprob *)frame->logprobs.items + known_ids * output.n_logprobs;
    }
    if (frame->pieces.n > 0) {
        _Static_assert(sizeof(struct quern_piece) == sizeof(struct bytes), "one layout, two names");
        output.pieces = (const struct quern_piece *)frame->pieces.items + known_ids * output.n_logprobs;
    }
    if (frame->has_end && frame->embedding.len > 0 && !take_embedding(client, frame, &output)) {
        delivery_fail(client, request, "internal", BYTES_LITERAL("out of memory for the embedding"), 0);
        return true;
    }
    if (frame->has_end && request->embeds && frame->end.reason == END_STOP && !output.embedding) {
        fail_without_embedding(client, request);
        return true;
    }
    if (frame->prompt_digest.len > 0)
        output.prompt_digest = frame->prompt_digest.data;
    request->next += output.n_ids;
    request->off += output.text_len;
    request->fruitless = 0;
    state_drop_encoded(request);
    if (frame->has_end) {
        delivery_set_end(request, &frame->end);
        output.end = &request->end;
        request->over = true;
        state_note_taken(client, request);
    }
    call(client, request, &output);
    if (!request->over)
        return false;
    state_remove_request(client, request);
    return true;
}
