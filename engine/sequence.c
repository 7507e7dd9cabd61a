/* SPDX-License-Identifier: MIT */
/* A request's own state: made whole at once, so that nothing can fail for want of memory later but the growth
 * of its ids and text.
 *
 * While it decodes one sampled id is always on its way or not yet fed, so the sequence will have fed + 1 ids
 * when its flights are read; that it decodes at all while that is below end_position is what keeps it from
 * running beyond its length. */

#include "engine/sequence.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BIT(state) (1u << SEQUENCE_##state)

static const struct {
    const char *name;
    unsigned next; /* states that may follow */
} states[] = {
    [SEQUENCE_WAITING] = {"waiting", BIT(PREFILLING) | BIT(DUE) | BIT(ENDED)},
    [SEQUENCE_PREFILLING] = {"prefilling",
                             BIT(DECODING) | BIT(LEAVING) | BIT(SPOILED) | BIT(DUE) | BIT(ENDED)},
    [SEQUENCE_DECODING] = {"decoding", BIT(LEAVING) | BIT(SPOILED) | BIT(DUE) | BIT(ENDED)},
    [SEQUENCE_LEAVING] = {"leaving", BIT(WAITING) | BIT(SPOILED) | BIT(DUE) | BIT(ENDED)},
    [SEQUENCE_SPOILED] = {"spoiled", BIT(WAITING) | BIT(DUE) | BIT(ENDED)},
    [SEQUENCE_DUE] = {"due", BIT(ENDED)},
    [SEQUENCE_ENDED] = {"ended", 0},
};

const char *sequence_state_name(enum sequence_state state)
{
    return states[state].name;
}

void sequence_become(struct sequence *sequence, enum sequence_state state)
{
    if (!(states[sequence->state].next & 1u << state)) {
        fprintf(stderr, "invalid sequence state change from %s to %s\n", states[sequence->state].name,
                states[state].name);
        abort();
    }
    sequence->state = state;
}

/* ---- life ---- */

/* One piece of memory, cut into the tables of the groups. */
static int make_tables(struct sequence *sequence)
{
    const size_t n = backend_blocks_for(sequence->end_position);
    uint32_t *tables = calloc(n * sequence->n_groups, sizeof *tables);
    for (uint32_t g = 0; tables && g < sequence->n_groups; g++)
        sequence->tables[g] = tables + g * n;
    return tables ? 0 : -ENOMEM;
}

int sequence_new(const struct engine_request *request, struct ids_view end_ids, uint32_t n_groups,
                 uint64_t arrival, uint64_t now, struct sequence **ret_sequence)
{
    struct sequence *sequence = calloc(1, sizeof *sequence);
    if (!sequence)
        return -ENOMEM;
    sequence->tag = request->tag;
    sequence->n_logprobs = request->n_logprobs;
    for (; sequence->n_spelled < request->n_spelled; sequence->n_spelled++)
        sequence->spelled[sequence->n_spelled] = request->spelled[sequence->n_spelled];
    sequence->n_prompt = request->n_prompt;
    sequence->end_position = request->n_prompt + request->max_tokens;
    sequence->stops_from = request->min_tokens > 0 ? request->n_prompt + request->min_tokens : 0;
    sequence_set_credit(sequence, request->credit);
    sequence->priority = request->priority;
    sequence->deadline_ns = request->deadline_ns;
    sequence->arrival = arrival;
    sequence->uncached = request->uncached;
    sequence->watched = request->watched;
    sequence->embeds = request->embed;
    sequence->submitted_ns = now;
    sequence->slot = SEQUENCE_NO_SLOT;
    sequence->n_groups = n_groups;
    if (make_tables(sequence) < 0 || sampling_copy(&request->sampling, &sequence->sampling) < 0 ||
        text_init(&sequence->text, request->stop, request->n_stop) < 0 ||
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
        buffer_deinit(&sequence->unsent);
        sampling_deinit(&sequence->sampling);
        mask_free(sequence->mask);
        thought_free(sequence->thought);
        free(sequence->tables[0]);
    }
    free(sequence);
    return NULL;
}

static enum backend_end judge(const struct sequence *sequence, int32_t id, uint32_t n_ids)
{
    for (size_t i = 0; i < sequence->stop_ids.len; i++)
        if (sequence->stop_ids.data[i] == id)
            return BACKEND_END_STOP;
    return n_ids >= sequence->end_position ? BACKEND_END_LENGTH : BACKEND_RUNNING;
}

int sequence_resume(struct sequence *sequence, const struct engine_request *request,
                    const struct tokenizer *tokenizer, struct error *err)
{
    enum engine_end end = ENGINE_RUNNING;
    uint32_t n = 0;
    for (; n < request->n_output && end == ENGINE_RUNNING; n++) {
        enum backend_end verdict = judge(sequence, request->output[n], sequence->n_prompt + n + 1);
        int r =
            sequence_accept(sequence, tokenizer, &request->output[n], 1, verdict, &sequence->unsent, &end);
        if (r < 0)
            return r;
    }
    if (n < request->n_output)
        return error_set(err, ENGINE_E_INVALID, "output[%u] is after the end of the answer", n);
    if (request->text_offset > sequence->unsent.len)
        return error_set(err, ENGINE_E_INVALID, "off is %llu; the text of %u ids has %zu bytes so far",
                         (unsigned long long)request->text_offset, n, sequence->unsent.len);
    if (request->text_offset < sequence->unsent.len &&
        (sequence->unsent.data[request->text_offset] & 0xc0) == 0x80)
        return error_set(err, ENGINE_E_INVALID, "off is %llu, inside a character of the output's text",
                         (unsigned long long)request->text_offset);
    buffer_consume(&sequence->unsent, request->text_offset);
    sequence->started = n > 0;
    if (end != ENGINE_RUNNING) {
        sequence->due = end;
        sequence_become(sequence, SEQUENCE_DUE);
    }
    return 0;
}

void sequence_set_credit(struct sequence *sequence, uint32_t credit)
{
    uint32_t left = sequence->end_position - sequence->n_prompt;
    uint32_t end = credit == 0 || credit > left ? sequence->end_position : sequence->n_prompt + credit;
    if (end > sequence->credit_end)
        sequence->credit_end = end;
}

/* ---- a slot ---- */

void sequence_set_offer(struct sequence *sequence)
{
    const uint32_t end = (sequence->n_offered + 1) * BACKEND_BLOCK_TOKENS;
    const bool prompt_ends_before = sequence->n_final < sequence->n_prefill && sequence->n_prefill < end;
    sequence->offer_at = prompt_ends_before ? sequence->n_prefill : end;
}

void sequence_start(struct sequence *sequence, uint32_t slot, uint32_t n_filled, uint32_t n_copied)
{
    assert(sequence->slot == SEQUENCE_NO_SLOT && sequence->n_blocks == 0);
    assert((size_t)n_filled * BACKEND_BLOCK_TOKENS + n_copied < sequence->ids.len);
    assert(n_copied < BACKEND_BLOCK_TOKENS);
    sequence_become(sequence, SEQUENCE_PREFILLING);
    sequence->slot = slot;
    sequence->n_prefill = (uint32_t)sequence->ids.len;
    sequence->n_offered = n_filled;
    sequence->n_blocks = n_filled + (n_copied > 0);
    sequence->fed = sequence->n_final = sequence->n_begun = n_filled * BACKEND_BLOCK_TOKENS + n_copied;
    sequence_set_offer(sequence);
    if (!sequence->started)
        sequence->n_cached = sequence->fed;
    sequence->started = true;
}

void sequence_leave(struct sequence *sequence)
{
    assert(sequence->in_flight == 0);
    sequence->slot = SEQUENCE_NO_SLOT;
    sequence->n_blocks = sequence->n_told = sequence->n_offered = 0;
    memset(sequence->n_slid, 0, sizeof sequence->n_slid);
    sequence->place = sequence->turn = 0;
    sequence->branch = 0;
    sequence->fed = sequence->n_final = sequence->n_again = 0;
    if (sequence->state == SEQUENCE_LEAVING || sequence->state == SEQUENCE_SPOILED)
        sequence_become(sequence, SEQUENCE_WAITING);
}

/* ---- progress ---- */

void sequence_plan(struct sequence *sequence, uint32_t rows, int32_t *draft, uint32_t n_draft,
                   struct backend_row_set *ret_set)
{
    /* In place, and only the groups that there are: this runs once a token, and a set is 160 bytes. */
    struct backend_row_set *set = ret_set;
    set->slot = sequence->slot;
    set->n_ids = rows;
    set->ids = NULL;
    set->position = sequence->fed;
    for (uint32_t g = 0; g < sequence->n_groups; g++)
        set->blocks[g] = (struct backend_blocks){sequence->tables[g] + sequence->n_told,
                                                 sequence->n_blocks - sequence->n_told, sequence->n_told};
    set->output = BACKEND_SAMPLE_LAST;
    set->logits = NULL;
    set->allowed = NULL;
    set->await = NULL;
    set->snapshot_rows = 0;
    if (sequence->state == SEQUENCE_PREFILLING) {
        set->ids = sequence->ids.data + sequence->fed;
        if (sequence->fed + rows == sequence->n_prefill)
            sequence_become(sequence, SEQUENCE_DECODING);
        else
            set->output = BACKEND_OUTPUT_NONE;
    } else if (sequence->n_again > 0) {
        assert(sequence->in_flight == 0 && n_draft == 0);
        set->ids = sequence->ids.data + sequence->fed;
        sequence->n_again -= rows;
        if (sequence->n_again > 0)
            set->output = BACKEND_OUTPUT_NONE;
    } else if (n_draft > 0) {
        assert(sequence->in_flight == 0);
        draft[0] = sequence->ids.data[sequence->ids.len - 1];
        set->ids = draft;
        set->n_ids = n_draft + 1;
        set->output = BACKEND_SAMPLE_ALL;
    }
    if (sequence->mask && set->output == BACKEND_SAMPLE_LAST) {
        assert(sequence->in_flight == 0);
        set->allowed = mask_bits(sequence->mask);
        set->await = mask_await;
        set->await_arg = sequence->mask;
    }
    if (sequence->thought && set->output == BACKEND_SAMPLE_LAST &&
        thought_forced(sequence->thought) != TOKENIZER_NONE) {
        assert(sequence->in_flight == 0);
        set->allowed = thought_mask(sequence->thought, sequence->mask ? mask_bits(sequence->mask) : NULL);
        set->await = NULL;
    }
    if (sequence->embeds && set->output == BACKEND_SAMPLE_LAST)
        set->output = BACKEND_SUM_LAST;
    sequence->n_told = sequence->n_blocks;
    sequence->fed += set->n_ids;
    sequence->in_flight++;
}

/* Positions that a set which was read has added, and behind a wrong draft what is to be fed again. */
static uint32_t settled_rows(struct sequence *sequence, const struct backend_row_set *set,
                             const struct backend_result *result)
{
    const bool drafted = set->output == BACKEND_SAMPLE_ALL;
    const uint32_t right = drafted ? result->n_accepted + 1 : set->n_ids;
    if (drafted)
        sequence->drafts.drafted += set->n_ids - 1;
    if (right == set->n_ids || !sequence->drafts.has_spare)
        return right;
    sequence->n_again = right;
    return 1;
}

uint32_t sequence_settle(struct sequence *sequence, const struct backend_row_set *set,
                         const struct backend_result *result)
{
    uint32_t rows;
    sequence->in_flight--;
    switch (sequence->state) {
    case SEQUENCE_PREFILLING:
    case SEQUENCE_DECODING:
    case SEQUENCE_LEAVING:
        if (!result) {
            sequence_become(sequence, SEQUENCE_SPOILED);
            return 0;
        }
        rows = settled_rows(sequence, set, result);
        sequence->fed -= set->n_ids - rows;
        sequence->n_final += rows;
        return result->n_ids;
    case SEQUENCE_WAITING:
    case SEQUENCE_SPOILED:
    case SEQUENCE_DUE:
    case SEQUENCE_ENDED:
        break;
    }
    return 0;
}

/* The text that an id adds. */
static struct bytes piece_of(const struct sequence *sequence, const struct tokenizer *tokenizer, int32_t id)
{
    struct bytes piece = tokenizer_piece(tokenizer, id, false);
    for (uint32_t i = 0; piece.len == 0 && i < sequence->n_spelled; i++)
        if (sequence->spelled[i] == id)
            return tokenizer_name(tokenizer, id);
    return piece;
}

/* Takes one id; 0 or -ENOMEM. */
static int accept_one(struct sequence *sequence, const struct tokenizer *tokenizer, int32_t id,
                      enum backend_end verdict, struct buffer *out, enum engine_end *ret_end)
{
    int r = ids_push(&sequence->ids, id);
    if (r == 0 && sequence->thought)
        r = thought_take(sequence->thought, tokenizer, id);
    sequence->text.passes = sequence->ids.len <= sequence->stops_from;
    if (r == 0 && verdict != BACKEND_END_STOP) /* the text of a stop id is not part of the answer */
        r = text_push(&sequence->text, piece_of(sequence, tokenizer, id), out);
    if (r == TEXT_STOPPED) {
        *ret_end = ENGINE_END_STOP;
        return 0;
    }
    if (r == 0 && (verdict == BACKEND_END_STOP || verdict == BACKEND_END_LENGTH)) {
        r = text_finish(&sequence->text, out);
        *ret_end = verdict == BACKEND_END_STOP ? ENGINE_END_STOP : ENGINE_END_LENGTH;
    }
    return r;
}

int sequence_accept(struct sequence *sequence, const struct tokenizer *tokenizer, const int32_t *ids,
                    uint32_t n, enum backend_end verdict, struct buffer *out, enum engine_end *ret_end)
{
    uint32_t taken = 0;
    *ret_end = ENGINE_RUNNING;
    while (taken < n && *ret_end == ENGINE_RUNNING) {
        bool last = taken + 1 == n;
        int r = accept_one(sequence, tokenizer, ids[taken++], last ? verdict : BACKEND_RUNNING, out, ret_end);
        if (r < 0)
            return r;
    }
    return (int)taken;
}

bool sequence_accept_plain(struct sequence *sequence, const struct tokenizer *tokenizer, int32_t id,
                           struct bytes *ret_text)
{
    struct bytes piece = piece_of(sequence, tokenizer, id);
    if (sequence->unsent.len > 0 || (sequence->thought && thought_free_ids(sequence->thought) < UINT32_MAX) ||
        !text_is_plain(&sequence->text, piece) || ids_push(&sequence->ids, id) < 0)
        return false;
    *ret_text = piece;
    return true;
}

/* ---- order ---- */

/* A moment that is `ns` for its own priority class: each class higher is worth so much waiting. */
static int64_t moment(const struct sequence *sequence, uint64_t ns)
{
    return (int64_t)ns - (int64_t)sequence->priority * SEQUENCE_CLASS_NS;
}

/* When it is to start: soon after it came, at its deadline if that is sooner, at once if it ran before. So
 * every moment is passed by what comes later, and nobody is kept out for ever. */
static int64_t due_moment(const struct sequence *sequence)
{
    uint64_t ns = sequence->submitted_ns + (sequence->started ? 0 : SEQUENCE_PRESSING_NS);
    if (!sequence->started && sequence->deadline_ns != 0 && sequence->deadline_ns < ns)
        ns = sequence->deadline_ns;
    return moment(sequence, ns);
}

bool sequence_goes_before(const struct sequence *a, const struct sequence *b)
{
    int64_t x = due_moment(a), y = due_moment(b);
    return x != y ? x < y : a->arrival < b->arrival;
}

bool sequence_is_senior(const struct sequence *a, const struct sequence *b)
{
    int64_t x = moment(a, a->submitted_ns), y = moment(b, b->submitted_ns);
    return x != y ? x < y : a->arrival < b->arrival;
}
