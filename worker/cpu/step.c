/* SPDX-License-Identifier: MIT */
/* A step: row sets are checked and laid out as rows, the pass runs, and its logits become ids or go to the
 * host.
 *
 * Nothing changes before the whole step has been checked; then block tables grow, and shrink again if the
 * pass is abandoned. Sampling runs on the pass's threads, one sampler each; a row set's rows come to one
 * thread and in order, so a slot needs no lock. When every row of a draft is sampled, row i is sampled as if
 * ids 1 … i had been accepted, and what the slot keeps is what the draft and the samples agree on. */

#include "worker/cpu/step.h"

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

static int check_set(const struct stepper *stepper, const struct backend_row_set *set)
{
    if (set->slot >= stepper->n_slots || !stepper->slots[set->slot].open || set->n_ids == 0)
        return -EINVAL;
    const struct slot *slot = &stepper->slots[set->slot];
    if (set->n_blocks > slot->table_size - slot->n_blocks)
        return -EINVAL;
    uint64_t capacity = (uint64_t)(slot->n_blocks + set->n_blocks) * BACKEND_BLOCK_TOKENS;
    if ((uint64_t)set->position + set->n_ids > capacity)
        return -EINVAL;
    for (uint32_t i = 0; i < set->n_blocks; i++)
        if (set->blocks[i] >= stepper->n_blocks)
            return -EINVAL;
    if (!set->ids)
        return set->n_ids == 1 && slot->last_id >= 0 ? 0 : -EINVAL;
    for (uint32_t i = 0; i < set->n_ids; i++)
        if (set->ids[i] < 0 || (uint32_t)set->ids[i] >= stepper->model->params.n_vocab)
            return -EINVAL;
    return 0;
}

static int check_step(const struct stepper *stepper, const struct backend_step *step)
{
    uint64_t rows = 0;
    for (uint32_t i = 0; i < step->n_sets; i++) {
        int r = check_set(stepper, &step->sets[i]);
        if (r < 0)
            return r;
        rows += step->sets[i].n_ids;
    }
    return rows > stepper->max_rows ? -EINVAL : 0;
}

/* ---- what becomes of logits ---- */

static void sample_row(struct step_set *s, uint32_t row, const float *logits, uint32_t thread)
{
    struct slot *slot = s->slot;
    const struct model *model = s->stepper->model;
    struct sampler *sampler = s->stepper->samplers[thread];
    if (s->result->end == BACKEND_END_FAULT)
        return;
    if (s->set->output == BACKEND_SAMPLE_ALL && row > 0)
        slot_count(slot, model->params.n_vocab, s->set->ids[row], 1);
    int32_t id = sampler_sample(sampler, logits, &slot->params.sampling, slot->counts, model->sample_mask,
                                s->set->allowed, (uint64_t)s->set->position + row + 1);
    if (id < 0) {
        s->result->end = BACKEND_END_FAULT;
        s->result->n_ids = 0;
        return;
    }
    uint32_t n = s->result->n_ids++;
    s->ids[n] = id;
    if (slot->params.n_logprobs)
        sampler_logprobs(sampler, logits, id, slot->params.n_logprobs - 1,
                         s->logprobs + (size_t)n * slot->params.n_logprobs);
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

/* After the pass: what the slot accepts of what was sampled. */
static void accept(struct step_set *s)
{
    uint32_t n_vocab = s->stepper->model->params.n_vocab;
    const struct backend_row_set *set = s->set;
    uint32_t first = wants_all(set) ? 0 : set->n_ids - 1;
    if (set->output == BACKEND_SAMPLE_ALL)
        for (uint32_t row = 1; row < set->n_ids; row++)
            slot_count(s->slot, n_vocab, set->ids[row], -1);
    for (uint32_t i = 0; i < s->result->n_ids; i++) {
        uint32_t length = set->position + first + i + 2;
        s->result->end = slot_accept(s->slot, n_vocab, s->ids[i], length);
        bool agreed = i + 1 < s->result->n_ids && set->ids[i + 1] == s->ids[i];
        if (s->result->end != BACKEND_RUNNING || !agreed)
            break;
    }
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
    if (set->output == BACKEND_OUTPUT_NONE)
        return 0;
    uint32_t n = 0, end = s->first_row + set->n_ids;
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
        *s = (struct step_set){.stepper = stepper, .slot = slot, .set = set, .first_row = pass->n_rows};
        s->blocks_before = slot->n_blocks;
        s->result = &results->results[i];
        s->ids = results->ids + pass->n_rows;
        s->logprobs = logprobs;
        logprobs += samples(set) ? (size_t)set->n_ids * slot->params.n_logprobs : 0;
        *s->result = (struct backend_result){.ids = s->ids, .end = BACKEND_RUNNING};
        if (samples(set) && slot->params.n_logprobs)
            s->result->logprobs = s->logprobs;
        if (set->n_blocks)
            memcpy(slot->table + slot->n_blocks, set->blocks, set->n_blocks * sizeof *slot->table);
        slot->n_blocks += set->n_blocks;
        for (uint32_t j = 0; j < set->n_ids; j++)
            stepper->rows[pass->n_rows + j] =
                (struct forward_row){set->ids ? set->ids[j] : slot->last_id, set->position + j, slot->table};
        pass->n_segments += cut_segments(s, stepper->segments + pass->n_segments);
        pass->n_rows += set->n_ids;
    }
}

int stepper_run(struct stepper *stepper, const struct backend_step *step, uint64_t *ret_ticket)
{
    int r = check_step(stepper, step);
    if (r < 0)
        return r;
    struct step_results *results = &stepper->results[(stepper->tickets + 1) % 2];
    size_t n_logprobs = 0;
    for (uint32_t i = 0; i < step->n_sets; i++)
        if (samples(&step->sets[i]))
            n_logprobs += (size_t)step->sets[i].n_ids * stepper->slots[step->sets[i].slot].params.n_logprobs;
    r = reserve_logprobs(results, n_logprobs);
    if (r < 0)
        return r;

    struct forward_pass pass = {.rows = stepper->rows,
                                .segments = stepper->segments,
                                .take_logits = take_logits,
                                .progress = stepper->progress,
                                .progress_arg = stepper->progress_arg};
    lay_out(stepper, step, results, &pass);
    results->status = pass.n_rows ? forward_run(stepper->forward, &pass) : 0;
    for (uint32_t i = 0; i < step->n_sets; i++) {
        struct step_set *s = &stepper->sets[i];
        if (results->status < 0)
            s->slot->n_blocks = s->blocks_before;
        else if (samples(s->set))
            accept(s);
    }
    results->ticket = *ret_ticket = ++stepper->tickets;
    return 0;
}

const struct step_results *stepper_results(const struct stepper *stepper, uint64_t ticket)
{
    const struct step_results *results = &stepper->results[ticket % 2];
    return ticket > 0 && results->ticket == ticket ? results : NULL;
}

int stepper_init(struct stepper *stepper)
{
    uint32_t n_threads = threads_count(stepper->forward->threads), rows = stepper->max_rows;
    stepper->sets = calloc(rows, sizeof *stepper->sets);
    stepper->rows = calloc(rows, sizeof *stepper->rows);
    stepper->segments = calloc(rows, sizeof *stepper->segments);
    stepper->samplers = calloc(n_threads, sizeof *stepper->samplers);
    bool complete = stepper->sets && stepper->rows && stepper->segments && stepper->samplers;
    for (int i = 0; i < 2; i++) {
        struct step_results *results = &stepper->results[i];
        results->results = calloc(rows, sizeof *results->results);
        results->ids = calloc(rows, sizeof *results->ids);
        complete = complete && results->results && results->ids;
    }
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
    for (int i = 0; i < 2; i++) {
        free(stepper->results[i].results);
        free(stepper->results[i].ids);
        free(stepper->results[i].logprobs);
        stepper->results[i] = (struct step_results){0};
    }
    stepper->samplers = NULL;
    stepper->sets = NULL;
    stepper->rows = NULL;
    stepper->segments = NULL;
}
