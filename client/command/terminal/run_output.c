/* SPDX-License-Identifier: MIT */
/* Text, ids or JSON of one answer. */

#include "client/command/terminal/run_output.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/command/terminal/interrupt.h"
#include "client/command/terminal/io.h"

void run_output_init(struct run_output *output, enum run_shape shape)
{
    *output = (struct run_output){.shape = shape};
    if (shape == RUN_JSON) {
        output->ids = json_array();
        output->logprobs = json_array();
    }
}

void run_output_deinit(struct run_output *output)
{
    json_decref(output->ids);
    json_decref(output->logprobs);
    buffer_deinit(&output->text);
}

static int write_text(struct run_output *output, const struct quern_output *piece)
{
    int r = interrupt_signal() ? 0 : io_write_text(piece->text, piece->text_len);
    if (piece->text_len > 0)
        output->last = piece->text[piece->text_len - 1];
    /* A refusal has no text, and no line of its own. */
    bool open = piece->end && output->last != '\n' && (output->last || piece->end->reason != QUERN_ERROR);
    return r == 0 && open ? io_write("\n", 1) : r;
}

static int write_ids(struct run_output *output, const struct quern_output *piece)
{
    int r = 0;
    for (size_t i = 0; i < piece->n_ids && r == 0 && !interrupt_signal(); i++) {
        char text[16];
        int n = snprintf(text, sizeof text, "%s%" PRId32, output->wrote_id ? " " : "", piece->ids[i]);
        r = io_write(text, (size_t)n);
        output->wrote_id = true;
    }
    return r == 0 && piece->end ? io_write("\n", 1) : r;
}

static json_t *logprob_json(const struct quern_logprob *logprob)
{
    /* JSON has no infinity. */
    return json_pack("{s:i, s:f}", "id", (int)logprob->id, "logprob",
                     isfinite(logprob->logprob) ? (double)logprob->logprob : -1e30);
}

static int gather(struct run_output *output, const struct quern_output *piece)
{
    for (size_t i = 0; i < piece->n_ids; i++)
        json_array_append_new(output->ids, json_integer(piece->ids[i]));
    for (size_t i = 0; piece->logprobs && i < piece->n_ids; i++) {
        json_t *row = json_array();
        for (size_t j = 0; j < piece->n_logprobs; j++)
            json_array_append_new(row, logprob_json(&piece->logprobs[i * piece->n_logprobs + j]));
        json_array_append_new(output->logprobs, row);
    }
    return buffer_append(&output->text, piece->text, piece->text_len);
}

static json_t *usage_json(const struct quern_end *end)
{
    json_t *json = json_pack("{s:i, s:i, s:i}", "prompt_tokens", (int)end->prompt_tokens, "cached_tokens",
                             (int)end->cached_tokens, "output_tokens", (int)end->output_tokens);
    if (end->drafted_tokens > 0)
        json_object_update_new(json, json_pack("{s:i, s:i}", "drafted_tokens", (int)end->drafted_tokens,
                                               "accepted_tokens", (int)end->accepted_tokens));
    return json;
}

static json_t *report(const struct run_output *output, const struct quern_end *end)
{
    json_t *json = json_object();
    const char *text = output->text.len > 0 ? (const char *)output->text.data : "";
    json_object_set_new(json, "text", json_stringn(text, output->text.len));
    json_object_set(json, "ids", output->ids);
    if (json_array_size(output->logprobs) > 0)
        json_object_set(json, "logprobs", output->logprobs);
    json_object_set_new(json, "reason", json_string(quern_reason_name(end->reason)));
    if (end->limit[0])
        json_object_set_new(json, "limit", json_string(end->limit));
    if (end->reason == QUERN_ERROR)
        json_object_set_new(json, "error", json_pack("{s:s, s:s}", "name", end->error, "text", end->text));
    /* As text: a seed has 64 bits, and most readers of JSON keep 53. */
    char seed[24];
    snprintf(seed, sizeof seed, "%" PRIu64, end->seed);
    json_object_set_new(json, "seed", json_string(seed));
    json_object_set_new(json, "usage", usage_json(end));
    json_object_set_new(json, "timing",
                        json_pack("{s:f, s:f, s:f, s:f, s:f, s:f}", "queue_ms", end->queue_ms, "prefill_ms",
                                  end->prefill_ms, "prepare_ms", end->prepare_ms, "wait_ms", end->wait_ms,
                                  "lookup_ms", end->lookup_ms, "decode_ms", end->decode_ms));
    return json;
}

int run_output_take(void *arg, const struct quern_output *piece)
{
    struct run_output *output = arg;
    switch (output->shape) {
    case RUN_TEXT:
        return write_text(output, piece);
    case RUN_IDS:
        return write_ids(output, piece);
    case RUN_JSON:
        break;
    }
    int r = gather(output, piece);
    return r == 0 && piece->end ? io_write_json(report(output, piece->end)) : r;
}
