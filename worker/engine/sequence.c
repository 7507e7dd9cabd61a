/* SPDX-License-Identifier: MIT */
/* A request's own state: made whole at once, so that nothing can fail for want of memory later but the growth
 * of its ids and text. */

#include "worker/engine/sequence.h"

#include <errno.h>
#include <stdlib.h>

int sequence_new(const struct engine_request *request, struct ids_view end_ids, uint64_t arrival,
                 uint64_t now, struct sequence **ret_sequence)
{
    struct sequence *sequence = calloc(1, sizeof *sequence);
    if (!sequence)
        return -ENOMEM;
    sequence->tag = request->tag;
    sequence->sampling = request->sampling;
    sequence->n_logprobs = request->n_logprobs;
    sequence->n_prompt = request->n_prompt;
    sequence->end_position = request->n_prompt + request->max_tokens;
    sequence->priority = request->priority;
    sequence->deadline_ns = request->deadline_ns;
    sequence->arrival = arrival;
    sequence->submitted_ns = now;
    sequence->blocks = calloc(backend_blocks_for(sequence->end_position), sizeof *sequence->blocks);
    if (!sequence->blocks || text_init(&sequence->text, request->stop, request->n_stop) < 0 ||
        ids_append(&sequence->stop_ids, end_ids.items, end_ids.n) < 0 ||
        ids_append(&sequence->stop_ids, request->stop_ids, request->n_stop_ids) < 0 ||
        ids_append(&sequence->ids, request->prompt, request->n_prompt) < 0) {
        sequence_free(sequence);
        return -ENOMEM;
    }
    *ret_sequence = sequence;
    return 0;
}

struct sequence *sequence_free(struct sequence *sequence)
{
    if (sequence) {
        ids_deinit(&sequence->ids);
        ids_deinit(&sequence->stop_ids);
        text_deinit(&sequence->text);
        free(sequence->blocks);
    }
    free(sequence);
    return NULL;
}

bool sequence_goes_before(const struct sequence *a, const struct sequence *b)
{
    if (a->priority != b->priority)
        return a->priority > b->priority;
    if (a->deadline_ns != b->deadline_ns) /* none (0) is the latest of all */
        return a->deadline_ns - 1 < b->deadline_ns - 1;
    return a->arrival < b->arrival;
}

bool sequence_is_senior(const struct sequence *a, const struct sequence *b)
{
    return a->priority != b->priority ? a->priority > b->priority : a->arrival < b->arrival;
}

int sequence_accept(struct sequence *sequence, const struct tokenizer *tokenizer, int32_t id,
                    enum backend_end verdict, struct buffer *out, enum engine_end *ret_end)
{
    int r = ids_push(&sequence->ids, id);
    if (r < 0)
        return r;
    if (verdict != BACKEND_END_STOP) { /* the text of a stop id is not part of the answer */
        r = text_push(&sequence->text, tokenizer_piece(tokenizer, id, false), out);
        if (r < 0)
            return r;
        if (r == TEXT_STOPPED) {
            *ret_end = ENGINE_END_STOP;
            return 0;
        }
    }
    if (verdict != BACKEND_RUNNING) {
        r = text_finish(&sequence->text, out);
        if (r < 0)
            return r;
    }
    *ret_end = verdict == BACKEND_END_STOP     ? ENGINE_END_STOP
               : verdict == BACKEND_END_LENGTH ? ENGINE_END_LENGTH
                                               : ENGINE_RUNNING;
    return 0;
}
