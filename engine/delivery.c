/* SPDX-License-Identifier: MIT */
/* Every event leaves through `send`, and one with an end takes the sequence out of the table first: its tag
 * is free when the owner hears of it. A sequence that has ended is never delivered to again. */

#include "engine/delivery.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "engine/embedding.h"

void delivery_deinit(struct delivery *delivery)
{
    HASH_CLEAR(hh, delivery->alive);
    buffer_deinit(&delivery->text);
    ranking_deinit(&delivery->ranking);
    free(delivery->embedding);
    delivery->embedding = NULL;
}

int delivery_embeds(struct delivery *delivery, const struct model *model, uint32_t n_embedding)
{
    int r = ranking_init(&delivery->ranking, model);
    if (r < 0)
        return r;
    if (delivery->ranking.n_labels > 0 && n_embedding > 0)
        n_embedding = delivery->ranking.n_labels;
    delivery->embedding = calloc(n_embedding + 1, sizeof *delivery->embedding);
    delivery->n_embedding = n_embedding;
    return delivery->embedding ? 0 : -ENOMEM;
}

int delivery_add(struct delivery *delivery, struct sequence *sequence)
{
    HASH_ADD(hh, delivery->alive, tag, sizeof sequence->tag, sequence);
    return sequence->hh.tbl ? 0 : -ENOMEM;
}

struct sequence *delivery_find(const struct delivery *delivery, uint64_t tag)
{
    struct sequence *sequence;
    HASH_FIND(hh, delivery->alive, &tag, sizeof tag, sequence);
    return sequence;
}

static void send(struct delivery *delivery, struct sequence *sequence, struct engine_event *event)
{
    event->tag = sequence->tag;
    delivery->sink(delivery->sink_arg, event);
}

static void send_last(struct delivery *delivery, struct sequence *sequence, struct engine_event *event)
{
    struct engine_totals totals = {.n_prompt = sequence->n_prompt,
                                   .n_output = (uint32_t)sequence->ids.len - sequence->n_prompt,
                                   .n_cached = sequence->n_cached,
                                   .n_drafted = sequence->drafts.drafted,
                                   .n_accepted = sequence->drafts.accepted};
    if (sequence->first_ns) {
        totals.prefill_ns = sequence->first_ns - sequence->submitted_ns;
        totals.decode_ns = sequence->last_ns - sequence->first_ns;
    }
    if (sequence->turn_ns)
        totals.wait_ns = sequence->turn_ns - sequence->submitted_ns;
    if (sequence->started_ns)
        totals.lookup_ns = sequence->started_ns - sequence->turn_ns;
    event->totals = &totals;
    event->stop = sequence->text.stop;
    HASH_DELETE(hh, delivery->alive, sequence);
    sequence_become(sequence, SEQUENCE_ENDED);
    send(delivery, sequence, event);
}

/* Begins an event's text with what waited for it. 0 or -ENOMEM. */
static int begin_text(struct delivery *delivery, struct sequence *sequence)
{
    delivery->text.len = 0;
    if (sequence->unsent.len == 0)
        return 0;
    int r = buffer_append(&delivery->text, sequence->unsent.data, sequence->unsent.len);
    if (r == 0)
        buffer_deinit(&sequence->unsent);
    return r;
}

void delivery_end(struct delivery *delivery, struct sequence *sequence, enum engine_end end,
                  const char *fault)
{
    assert(sequence->state != SEQUENCE_ENDED);
    struct engine_event event = {.end = end, .fault = fault};
    if (begin_text(delivery, sequence) == 0) { /* else what is held back would come behind a gap */
        const size_t whole = delivery->text.len;
        if (text_finish(&sequence->text, &delivery->text) < 0)
            delivery->text.len = whole;
    }
    event.text = (struct bytes){delivery->text.data, delivery->text.len};
    send_last(delivery, sequence, &event);
}

void delivery_reading(struct delivery *delivery, struct sequence *sequence)
{
    if (!sequence->watched || sequence->ids.len > sequence->n_prompt)
        return;
    const struct engine_reading reading = {
        .n_prompt = sequence->n_prompt,
        .n_cached = sequence->n_cached,
        .n_read = sequence->n_final < sequence->n_prompt ? sequence->n_final : sequence->n_prompt};
    struct engine_event event = {.reading = &reading};
    send(delivery, sequence, &event);
}

void delivery_embedding(struct delivery *delivery, struct sequence *sequence, const double *sums,
                        uint64_t now)
{
    const bool ranks = delivery->ranking.n_labels > 0;
    if (ranks ? !ranking_of_state(&delivery->ranking, sums, delivery->embedding)
              : !embedding_of_sums(sums, delivery->n_embedding, delivery->embedding)) {
        delivery_end(delivery, sequence, ENGINE_END_FAULT,
                     ranks ? "a score is not finite"
                           : "the mean of the model's final states is zero or not finite");
        return;
    }
    struct engine_event event = {
        .embedding = delivery->embedding, .n_embedding = delivery->n_embedding, .end = ENGINE_END_STOP};
    sequence->first_ns = sequence->last_ns = now;
    send_last(delivery, sequence, &event);
}

/* Takes ids into the event, with the text that they make; how many, or -ENOMEM. */
static int accept(struct delivery *delivery, struct sequence *sequence, const struct backend_result *result,
                  uint32_t n, struct engine_event *event)
{
    if (n == 1 && result->end == BACKEND_RUNNING &&
        sequence_accept_plain(sequence, delivery->tokenizer, result->ids[0], &event->text))
        return 1;
    int taken = begin_text(delivery, sequence);
    if (taken == 0)
        taken = sequence_accept(sequence, delivery->tokenizer, result->ids, n, result->end, &delivery->text,
                                &event->end);
    event->text = (struct bytes){delivery->text.data, delivery->text.len};
    return taken;
}

void delivery_ids(struct delivery *delivery, struct sequence *sequence, const struct backend_result *result,
                  uint32_t n, uint64_t now)
{
    struct engine_event event = {.ids = result->ids,
                                 .logprobs = result->logprobs,
                                 .n_logprobs = result->logprobs ? sequence->n_logprobs : 0};
    int taken = accept(delivery, sequence, result, n, &event);
    if (taken < 0) {
        delivery_end(delivery, sequence, ENGINE_END_FAULT, "out of memory");
        return;
    }
    event.n_ids = (uint32_t)taken;
    sequence->drafts.accepted += result->n_accepted < event.n_ids ? result->n_accepted : event.n_ids;
    if (sequence->first_ns == 0) {
        sequence->first_ns = now;
        measures_first(delivery->measures, now - sequence->submitted_ns);
    } else if (taken > 0) {
        measures_ids(delivery->measures, event.n_ids, now - sequence->last_ns);
    }
    sequence->last_ns = now;
    delivery->tokens += event.n_ids;
    if (event.end == ENGINE_RUNNING)
        send(delivery, sequence, &event);
    else
        send_last(delivery, sequence, &event);
}
