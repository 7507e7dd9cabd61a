/* SPDX-License-Identifier: MIT */
/* A step: row sets are checked and laid out as rows, the pass runs, and its logits become ids or go to the
 * host.
 *
 * Nothing changes before the whole step has been checked. Sets of slots that have ended bring no rows.
 * Sampling runs on the pass's threads, one sampler each; a row set's rows come to one thread and in order,
 * so a slot needs no lock, and each sample is accepted at once: the next row of a draft is sampled only if it
 * agreed. A pass is abandoned before its first logits, or not at all; its slots are then spoiled. */

#include "cpu/step.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool samples(const struct backend_row_set *set)
{
    return set->output == BACKEND_SAMPLE_LAST || set->output == BACKEND_SAMPLE_ALL;
}

static bool wants_all(const struct backend_row_set *set)
{
    return set->output == BACKEND_SAMPLE_ALL || set->output == BACKEND_LOGITS_ALL;
}

/* Rows that a set brings: none once its slot has ended. */
static uint32_t rows_of(const struct slot *slot, const struct backend_row_set *set)
{
    return slot->end == BACKEND_RUNNING ? set->n_ids : 0;
}

static int check_blocks(const struct stepper *stepper, const struct slot *slot,
                        const struct backend_row_set *set)
{
    const struct kv *kv = stepper->forward->kv;
    const uint32_t n = set->blocks[0].n;
    if (n > slot->table_size - slot->n_blocks)
        return -EINVAL;
    for (uint32_t g = 0; g < kv->n_groups; g++) {
        const struct backend_blocks *blocks = &set->blocks[g];
        if (blocks->told != slot->n_blocks || blocks->n != n)
            return -EINVAL;
        for (uint32_t i = 0; i < n; i++)
            if (blocks->ids[i] >= kv->groups[g].n_blocks)
                return -EINVAL;
    }
    uint64_t capacity = (uint64_t)(slot->n_blocks + n) * BACKEND_BLOCK_TOKENS;
    return (uint64_t)set->position + set->n_ids > capacity ? -EINVAL : 0;
}

static bool may_snapshot(const struct stepper *stepper, const struct slot *slot,
                         const struct backend_row_set *set)
{
    return slot->state && set->snapshot_rows <= set->n_ids &&
           set->snapshot < stepper->forward->states->n_snapshots;
}

static int check_set(const struct stepper *stepper, const struct backend_row_set *set)
{
    if (set->slot >= stepper->n_slots || set->n_ids == 0)
        return -EINVAL;
    struct slot *slot = &stepper->slots[set->slot];
    if (!slot->open || slot->spoiled || slot->astray || slot->checked == stepper->checks)
        return -EINVAL;
    slot->checked = stepper->checks;
    int r = check_blocks(stepper, slot, set);
    if (r < 0)
        return r;
    const bool sums = set->output == BACKEND_SUM_LAST, none = set->output == BACKEND_OUTPUT_NONE;
    if (set->snapshot_rows > 0 && !may_snapshot(stepper, slot, set))
        return -EINVAL;
    if (slot->sums ? !set->ids || !(sums || none) : sums)
        return -EINVAL;
    if (!samples(set) && !none && !sums && !set->logits)
        return -EINVAL;
    if (set->output == BACKEND_SAMPLE_ALL && set->n_ids > 1 &&
        sampling_needs_history(&slot->sampling.params.sampling))
        return -EINVAL;
    if (!set->ids)
        return set->n_ids == 1 && set->position >= slot->position &&
                       (slot->last_id >= 0 || slot->end != BACKEND_RUNNING)
                   ? 0
                   : -EINVAL;
    if (set->position != slot->position)
        return -EINVAL;
    for (uint32_t i = 0; i < set->n_ids; i++)
        if (set->ids[i] < 0 || (uint32_t)set->ids[i] >= stepper->model->params.n_vocab)
            return -EINVAL;
    return 0;
}

static int check_step(struct stepper *stepper, const struct backend_step *step)
{
    uint64_t rows = 0;
    stepper->checks++;
    for (uint32_t i = 0; i < step->n_sets; i++) {
        int r = check_set(stepper, &step->sets[i]);
        if (r < 0)
            return r;
        rows += step->sets[i].n_ids;
    }
    return rows == 0 || rows > stepper->max_rows ? -EINVAL : 0;
}

/* ---- what becomes of logits ---- */

static void sample_row(struct step_set *s, uint32_t row, const float *logits, uint32_t thread)
{
    struct slot *slot = s->slot;
    struct backend_result *result = s->result;
    const struct model *model = s->stepper->model;
    const struct backend_row_set *set = s->set;
    struct sampler *sampler = s->stepper->samplers[thread];
    uint32_t nth = set->output == BACKEND_SAMPLE_ALL ? row : 0; /* of the rows sampled */
    if (nth > result->n_accepted)
        return; /* a row before it did not agree, or ended the sequence */
    if (set->allowed && set->await)
        set->await(set->await_arg);
    const uint32_t *allowed =
        set->allowed ? set->allowed + (size_t)nth * ((model->params.n_vocab + 31) / 32) : NULL;
    const uint64_t position = (uint64_t)s->position + row + 1;
    const int32_t id =
        slot_sampling_sample(&slot->sampling, sampler, logits, position, model->sample_mask, allowed);
    if (id < 0) {
        slot->end = BACKEND_END_FAULT;
        return;
    }
    if (slot->sampling.params.n_logprobs)
        sampler_logprobs(sampler, logits, id, slot->sampling.params.n_logprobs - 1,
                         s->logprobs + (size_t)nth * slot->sampling.params.n_logprobs);
    s->ids[result->n_ids++] = id;
    slot_accept(slot, id, s->position + row + 2);
    if (set->output == BACKEND_SAMPLE_ALL && row + 1 < set->n_ids && set->ids[row + 1] == id &&
        slot->end == BACKEND_RUNNING)
        result->n_accepted++;
}

/* Called by the pass for a few neighbouring rows of a set. */
static void take_logits(const struct forward_segment *segment, const float *logits, size_t stride,
                        uint32_t thread)
{
    struct step_set *s = segment->arg;
    uint32_t n_vocab = s->stepper->model->params.n_vocab;
    for (uint32_t i = 0; i < segment->n_rows; i++) {
        uint32_t row = segment->first_row - s->first_row + i;
        if (samples(s->set))
            sample_row(s, row, logits + i * stride, thread);
        else
            memcpy(s->set->logits + (wants_all(s->set) ? (size_t)row * n_vocab : 0), logits + i * stride,
                   n_vocab * sizeof(float));
    }
}

static uint32_t counted_rows(const struct step_set *s)
{
    return s->set->output == BACKEND_SAMPLE_ALL ? s->result->n_accepted + 1 : s->set->n_ids;
}

/* After the pass: where the slot stands. */
static void advance(struct step_set *s, int status)
{
    if (status < 0) {
        s->slot->spoiled = true;
        return;
    }
    if (s->n_rows > 0 && !samples(s->set))
        s->slot->last_id = -1; /* it was fed, or others took its place */
    if (s->n_rows > 0)
        s->slot->position += counted_rows(s);
    s->slot->astray = s->slot->state && s->n_rows > 0 && counted_rows(s) < s->n_rows;
    s->result->end = s->slot->end;
}

/* ---- laying out ---- */

static int reserve_logprobs(struct step_results *results, size_t n)
{
    if (n <= results->logprobs_size)
        return 0;
    struct logprob *logprobs = realloc(results->logprobs, n * sizeof *logprobs);
    if (!logprobs)
        return -ENOMEM;
    results->logprobs = logprobs;
    results->logprobs_size = n;
    return 0;
}

static uint32_t cut_segments(struct step_set *s, struct forward_segment *segments)
{
    const struct backend_row_set *set = s->set;
    if (set->output == BACKEND_OUTPUT_NONE || set->output == BACKEND_SUM_LAST || s->n_rows == 0)
        return 0;
    uint32_t n = 0, end = s->first_row + s->n_rows;
    for (uint32_t row = wants_all(set) ? s->first_row : end - 1; row < end; row += FORWARD_LOGITS)
        segments[n++] =
            (struct forward_segment){row, end - row < FORWARD_LOGITS ? end - row : FORWARD_LOGITS, s};
    return n;
}

static void lay_out(struct stepper *stepper, const struct backend_step *step, struct step_results *results,
                    struct forward_pass *pass)
{
    struct logprob *logprobs = results->logprobs;
    for (uint32_t i = 0; i < step->n_sets; i++) {
        const struct backend_row_set *set = &step->sets[i];
        struct step_set *s = &stepper->sets[i];
        struct slot *slot = &stepper->slots[set->slot];
        *s = (struct step_set){.stepper = stepper,
                               .slot = slot,
                               .set = set,
                               .first_row = pass->n_rows,
                               .n_rows = rows_of(slot, set),
                               .position = slot->position,
                               .result = &results->results[i],
                               .ids = results->ids + pass->n_rows,
                               .logprobs = logprobs};
        logprobs += samples(set) ? (size_t)s->n_rows * slot->sampling.params.n_logprobs : 0;
        *s->result = (struct backend_result){.ids = s->ids};
        if (samples(set) && slot->sampling.params.n_logprobs)
            s->result->logprobs = s->logprobs;
        slot_tell(slot, set->blocks);
        for (uint32_t j = 0; j < s->n_rows; j++)
            stepper->rows[pass->n_rows + j] = (struct forward_row){
                set->ids ? set->ids[j] : slot->last_id, s->position + j, slot->tables, slot->state, NULL};
        if (set->snapshot_rows > 0 && set->snapshot_rows <= s->n_rows)
            stepper->rows[pass->n_rows + set->snapshot_rows - 1].snapshot =
                states_snapshot(stepper->forward->states, set->snapshot);
        pass->n_segments += cut_segments(s, stepper->segments + pass->n_segments);
        uint32_t first = 0, n = 0;
        if (slot->sums && s->n_rows > 0)
            n = backend_pooled_rows(stepper->model->params.pooling, set, &first);
        if (n > 0)
            stepper->sums[pass->n_sums++] = (struct forward_sum){s->first_row + first, n, slot->sums};
        if (set->output == BACKEND_SUM_LAST)
            s->result->sums = slot->sums;
        pass->n_rows += s->n_rows;
    }
}

int stepper_run(struct stepper *stepper, const struct backend_step *step, uint64_t *ret_ticket)
{
    int r = check_step(stepper, step);
    if (r < 0)
        return r;
    struct step_results *results = &stepper->results;
    size_t n_logprobs = 0;
    for (uint32_t i = 0; i < step->n_sets; i++)
        if (samples(&step->sets[i]))
            n_logprobs +=
                (size_t)step->sets[i].n_ids * stepper->slots[step->sets[i].slot].sampling.params.n_logprobs;
    r = reserve_logprobs(results, n_logprobs);
    if (r < 0)
        return r;

    struct forward_pass pass = {.rows = stepper->rows,
                                .segments = stepper->segments,
                                .sums = stepper->sums,
                                .take_logits = take_logits,
                                .progress = stepper->progress,
                                .progress_arg = stepper->progress_arg};
    lay_out(stepper, step, results, &pass);
    results->status = pass.n_rows ? forward_run(stepper->forward, &pass) : 0;
    for (uint32_t i = 0; i < step->n_sets; i++)
        advance(&stepper->sets[i], results->status);
    *ret_ticket = results->ticket = ++stepper->tickets;
    return 0;
}

const struct step_results *stepper_take(struct stepper *stepper, uint64_t ticket)
{
    if (ticket == 0 || stepper->results.ticket != ticket)
        return NULL;
    stepper->results.ticket = 0;
    return &stepper->results;
}

int stepper_init(struct stepper *stepper)
{
    uint32_t n_threads = threads_count(stepper->forward->threads), rows = stepper->max_rows;
    stepper->sets = calloc(rows, sizeof *stepper->sets);
    stepper->rows = calloc(rows, sizeof *stepper->rows);
    stepper->segments = calloc(rows, sizeof *stepper->segments);
    stepper->samplers = calloc(n_threads, sizeof *stepper->samplers);
    stepper->sums = calloc(rows, sizeof *stepper->sums);
    bool complete = stepper->sets && stepper->rows && stepper->segments && stepper->samplers && stepper->sums;
    stepper->results.results = calloc(rows, sizeof *stepper->results.results);
    stepper->results.ids = calloc(rows, sizeof *stepper->results.ids);
    complete = complete && stepper->results.results && stepper->results.ids;
    int r = complete ? 0 : -ENOMEM;
    for (uint32_t i = 0; i < n_threads && r == 0; i++)
        r = sampler_new(stepper->model->params.n_vocab, &stepper->samplers[i]);
    if (r < 0)
        stepper_deinit(stepper);
    return r;
}

void stepper_deinit(struct stepper *stepper)
{
    for (uint32_t i = 0; stepper->samplers && i < threads_count(stepper->forward->threads); i++)
        sampler_free(stepper->samplers[i]);
    free(stepper->samplers);
    free(stepper->sets);
    free(stepper->rows);
    free(stepper->segments);
    free(stepper->sums);
    free(stepper->results.results);
    free(stepper->results.ids);
    free(stepper->results.logprobs);
    stepper->results = (struct step_results){0};
    stepper->samplers = NULL;
    stepper->sets = NULL;
    stepper->rows = NULL;
    stepper->segments = NULL;
    stepper->sums = NULL;
}
