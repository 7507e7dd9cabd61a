/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_CUDA_KERNELS_SAMPLE_RIG_H
#define TESTS_UNIT_CUDA_KERNELS_SAMPLE_RIG_H

/* The memory used at the end of a step, and steps over it that are compared with a plain run: the host's
 * sampler and the rules of engine/backend/backend.h over the same memory. The plain run determines the
 * expected contents. */

#include "cuda/kernels/kernels.h"
#include "tests/unit/cuda/device.h"
#include "engine/backend/backend.h"

#include <float.h>
#include <math.h>

#define N_SLOTS    24
#define MOST_VOCAB 9000
#define MAX_ROWS   64
#define N_HISTORY  640
#define N_LOGPROBS 6

static struct slots slots;
static struct step_memory memory;
static struct sample_step sample;
static struct mailbox mailboxes[MAILBOXES];
static float *logits;
static uint32_t *masks, *mask;
static uint32_t n_vocab, n_words, n_masks, n_logprobs, seed;

static inline void set_up(uint32_t vocab)
{
    open_device();
    n_vocab = vocab;
    n_words = (vocab + 31) / 32;
    seed = vocab;
    n_masks = n_logprobs = 0;
    slots = (struct slots){.n_slots = N_SLOTS, .n_vocab = vocab};
    slots.states = take(N_SLOTS, sizeof *slots.states);
    slots.stop_ids = take(N_SLOTS * STATE_MOST_STOP_IDS, sizeof *slots.stop_ids);
    slots.biases = take(N_SLOTS * STATE_MOST_BIASES, sizeof *slots.biases);
    slots.uses = take(N_SLOTS * vocab, sizeof *slots.uses);
    slots.history = take(N_SLOTS * N_HISTORY, sizeof *slots.history);
    slots.n_history = N_HISTORY;
    slots.sequences = take(N_SLOTS, sizeof *slots.sequences);
    slots.breakers = take(N_SLOTS * (size_t)n_words, sizeof *slots.breakers);
    slots.mask = mask = take(n_words, sizeof *mask);
    memset(mask, 0xff, n_words * sizeof *mask);
    memory = (struct step_memory){.max_rows = MAX_ROWS};
    memory.step = take(1, sizeof *memory.step);
    memory.sets = take(MAX_ROWS, sizeof *memory.sets);
    memory.ids = take(MAX_ROWS, sizeof *memory.ids);
    memory.blocks = take(1, sizeof *memory.blocks);
    memory.rows = take(MAX_ROWS, sizeof *memory.rows);
    memory.outputs = take(MAX_ROWS, sizeof *memory.outputs);
    struct mailbox *on_device = take(MAILBOXES, sizeof *on_device);
    for (uint32_t i = 0; i < MAILBOXES; i++) {
        on_device[i].number = take(1, sizeof(uint64_t));
        on_device[i].sets = take(MAX_ROWS, sizeof(struct set_result));
        on_device[i].ids = take(MAX_ROWS, sizeof(int32_t));
        on_device[i].logprobs = take(MAX_ROWS * N_LOGPROBS, sizeof(struct logprob));
        mailboxes[i] = on_device[i];
    }
    logits = take(MAX_ROWS * (size_t)(vocab + 3), sizeof *logits);
    masks = take(MAX_ROWS * (size_t)n_words, sizeof *masks);
    size_t bytes = kernels_sample_scratch(vocab, MAX_ROWS);
    sample =
        (struct sample_step){.logits = logits, .stride = vocab + 3, .masks = masks, .mailboxes = on_device};
    sample.scratch = take(1, bytes);
}

/* Opens a greedy slot with 10 ids that does not end soon. */
static inline struct slot_state *open_slot(uint32_t slot)
{
    slots.states[slot] = (struct slot_state){.position = 10,
                                             .last_id = 3,
                                             .end_position = 1000,
                                             .top_p = 1,
                                             .typical_p = 1,
                                             .repetition_penalty = 1,
                                             .dry_allowed = 1,
                                             .window = UINT32_MAX,
                                             .seed = slot};
    memset(slots.uses + (size_t)slot * n_vocab, 0, n_vocab * sizeof *slots.uses);
    return &slots.states[slot];
}

static inline void begin_step(void)
{
    uint64_t number = memory.step->number + 1;
    *memory.step = (struct step){.number = number, .mailbox = (uint32_t)number % MAILBOXES};
    n_masks = n_logprobs = 0;
}

static inline struct step_set *add_set(uint32_t slot, uint32_t n_rows, enum backend_output output)
{
    struct step *step = memory.step;
    struct step_set *set = &memory.sets[step->n_sets++];
    *set = (struct step_set){.slot = slot,
                             .first_row = step->n_rows,
                             .n_rows = n_rows,
                             .output = output,
                             .first_output = step->n_outputs,
                             .first_mask = UINT32_MAX,
                             .first_logprob = n_logprobs};
    bool all = output == BACKEND_SAMPLE_ALL || output == BACKEND_LOGITS_ALL;
    uint32_t n_outputs = output == BACKEND_OUTPUT_NONE ? 0 : all ? n_rows : 1;
    step->n_rows += n_rows;
    step->n_outputs += n_outputs;
    n_logprobs += n_outputs * slots.states[slot].n_logprobs;
    return set;
}

static inline float *logits_of(const struct step_set *set, uint32_t nth)
{
    return logits + (size_t)(set->first_output + nth) * sample.stride;
}

/* Adds grammar masks that allow everything; [n_rows][n_words]. */
static inline uint32_t *add_masks(struct step_set *set, uint32_t n)
{
    set->first_mask = n_masks;
    n_masks += n;
    return memset(masks + (size_t)set->first_mask * n_words, 0xff, (size_t)n * n_words * sizeof *masks);
}

/* ---- the plain run ---- */

struct expected {
    struct slot_state states[N_SLOTS];
    int32_t history[N_SLOTS * N_HISTORY];
    struct token_use *uses;
    struct set_result results[MAX_ROWS];
    int32_t ids[MAX_ROWS];
    struct logprob logprobs[MAX_ROWS * N_LOGPROBS];
    bool has_logprob[MAX_ROWS * N_LOGPROBS];
};

/* The bad words of a slot, or its breakers. */
static inline struct id_sequences sequences_of(uint32_t slot, bool bad_words)
{
    const struct slot_sequences *all = &slots.sequences[slot];
    const uint32_t first = bad_words ? 0 : all->n_bad_words, end = bad_words ? all->n_bad_words : all->n;
    if (first == end || (bad_words && !slots.states[slot].has_bad_words))
        return (struct id_sequences){0};
    const int32_t *items = all->items + all->starts[first];
    const uint32_t last = all->starts[end - 1];
    return (struct id_sequences){items, last + 1 + (uint32_t)all->items[last] - all->starts[first],
                                 end - first};
}

static inline struct sampling sampling_of(uint32_t slot, struct logit_bias *items)
{
    const struct slot_state *state = &slots.states[slot];
    for (uint32_t i = 0; i < state->n_biases; i++) {
        const struct slot_bias *bias = &slots.biases[(size_t)slot * STATE_MOST_BIASES + i];
        items[i] = (struct logit_bias){bias->id, bias->bias};
    }
    return (struct sampling){
        .temperature = state->dynatemp_range > 0 ? state->dynatemp_middle : (double)state->temperature,
        .top_k = (int32_t)state->top_k,
        .top_p = state->top_p,
        .min_p = state->min_p,
        .repetition_penalty = (double)state->repetition_penalty,
        .presence_penalty = (double)state->presence_penalty,
        .frequency_penalty = (double)state->frequency_penalty,
        .repeat_last_n = state->window == UINT32_MAX ? -1 : (int32_t)state->window,
        .top_n_sigma = state->top_n_sigma,
        .typical_p = state->typical_p,
        .xtc_probability = state->xtc_probability,
        .xtc_threshold = state->xtc_threshold,
        .dynatemp_range = state->dynatemp_range,
        .dynatemp_exponent = state->dynatemp_exponent,
        .dry_multiplier = state->dry_multiplier,
        .dry_base = state->dry_base,
        .dry_allowed_length = (int32_t)state->dry_allowed,
        .dry_penalty_last_n = state->dry_last == UINT32_MAX ? -1 : (int32_t)state->dry_last,
        .seed = state->seed,
        .bad_words = sequences_of(slot, true),
        .dry_breakers = {slots.breakers + (size_t)slot * n_words, n_words, sequences_of(slot, false)},
        .logit_bias = {items, state->n_biases}};
}

static inline void accept_plainly(struct expected *expected, const struct step_set *set, int32_t id,
                                  uint32_t length)
{
    struct slot_state *state = &expected->states[set->slot];
    struct token_use *uses = expected->uses + (size_t)set->slot * n_vocab;
    int32_t *history = expected->history + (size_t)set->slot * N_HISTORY;
    state->last_id = id;
    if (state->keeps_uses)
        uses[id].in_output++;
    if (state->keeps_history)
        history[length - 1] = id;
    if (state->window < length) { /* recounts the ids now in the window */
        memset(uses, 0, n_vocab * sizeof *uses);
        for (uint32_t i = length - state->window; i < length; i++) {
            uses[history[i]].in_prompt |= i < state->n_prompt;
            uses[history[i]].in_output += i >= state->n_prompt;
        }
    }
    if (length >= state->end_position)
        state->end = BACKEND_END_LENGTH;
    for (uint32_t i = 0; i < state->n_stop_ids; i++)
        if (slots.stop_ids[set->slot * STATE_MOST_STOP_IDS + i] == id)
            state->end = BACKEND_END_STOP;
}

static inline void sample_plainly(struct expected *expected, const struct step_set *set,
                                  struct sampler *sampler, struct set_result *result)
{
    static struct logit_bias items[STATE_MOST_BIASES];
    struct slot_state *state = &expected->states[set->slot];
    const struct sampling sampling = sampling_of(set->slot, items);
    const bool all = set->output == BACKEND_SAMPLE_ALL;
    for (uint32_t nth = 0; nth < (all ? set->n_rows : 1) && nth <= result->n_accepted; nth++) {
        uint32_t row = all ? nth : set->n_rows - 1;
        const struct sampler_row from = {
            .logits = logits_of(set, nth),
            .position = state->position + row + 1,
            .barred = slots.stop_ids + (size_t)set->slot * STATE_MOST_STOP_IDS,
            .n_barred = state->position + row + 1 < state->stops_from ? state->n_stop_ids : 0,
            .uses = state->keeps_uses ? expected->uses + (size_t)set->slot * n_vocab : NULL,
            .history = expected->history + (size_t)set->slot * N_HISTORY,
            .n_history = state->keeps_history ? state->position + row + 1 : 0,
            .n_prompt = state->n_prompt,
            .mask = mask,
            .allowed =
                set->first_mask == UINT32_MAX ? NULL : masks + (size_t)(set->first_mask + nth) * n_words};
        int32_t id = sampler_sample(sampler, &sampling, &from);
        if (id < 0) {
            state->end = BACKEND_END_FAULT;
            break;
        }
        uint32_t at = set->first_logprob + nth * state->n_logprobs;
        if (state->n_logprobs > 0)
            sampler_logprobs(sampler, from.logits, id, state->n_logprobs - 1, expected->logprobs + at);
        for (uint32_t i = 0; i < state->n_logprobs; i++)
            expected->has_logprob[at + i] = true;
        expected->ids[set->first_output + result->n_ids++] = id;
        accept_plainly(expected, set, id, state->position + row + 2);
        if (!all || nth + 1 == set->n_rows || memory.ids[set->first_row + nth + 1] != id ||
            state->end != BACKEND_RUNNING)
            break;
        result->n_accepted++;
    }
}

static inline void run_plainly(struct expected *expected)
{
    struct sampler *sampler;
    ck_assert_int_eq(sampler_new(n_vocab, &sampler), 0);
    for (uint32_t s = 0; s < memory.step->n_sets; s++) {
        const struct step_set *set = &memory.sets[s];
        struct slot_state *state = &expected->states[set->slot];
        struct set_result *result = &expected->results[s];
        *result = (struct set_result){.first_id = set->first_output};
        if (state->end == BACKEND_RUNNING) {
            bool samples = set->output == BACKEND_SAMPLE_LAST || set->output == BACKEND_SAMPLE_ALL;
            if (samples)
                sample_plainly(expected, set, sampler, result);
            else
                state->last_id = -1;
            state->position += set->output == BACKEND_SAMPLE_ALL ? result->n_accepted + 1 : set->n_rows;
        }
        result->end = state->end;
    }
    sampler_free(sampler);
}

static inline void assert_logprob(struct logprob found, struct logprob expected)
{
    bool same = found.logprob == expected.logprob ||
                fabsf(found.logprob - expected.logprob) <= 1e-5f * (1 + fabsf(expected.logprob));
    ck_assert_msg(found.id == expected.id && same, "id %d %g, not %d %g", found.id, (double)found.logprob,
                  expected.id, (double)expected.logprob);
}

/* Runs the step, padded to `n_outputs` of them, and compares everything with the plain run. */
static inline void run_step(uint32_t n_outputs)
{
    static struct expected expected;
    const struct step *step = memory.step;
    const struct mailbox *mailbox = &mailboxes[step->mailbox];
    memset(&expected, 0, sizeof expected);
    size_t uses_bytes = N_SLOTS * (size_t)n_vocab * sizeof *slots.uses;
    expected.uses = malloc(uses_bytes);
    memcpy(expected.uses, slots.uses, uses_bytes);
    memcpy(expected.states, slots.states, sizeof expected.states);
    memcpy(expected.history, slots.history, sizeof expected.history);
    for (size_t i = 0; i < N_SLOTS * (size_t)n_vocab; i++)
        expected.uses[i].repeat = 0;
    run_plainly(&expected);
    ck_assert_int_eq(kernels_repeats(stream, &slots, &memory, step->n_sets), 0);

    ck_assert_int_eq(kernels_resolve(stream, &slots, &memory, MAX_ROWS), 0);
    ck_assert_int_eq(kernels_sample(stream, &slots, &memory, &sample, n_outputs), 0);
    run_queue();
    ck_assert_uint_eq(*mailbox->number, step->number);
    for (uint32_t s = 0; s < step->n_sets; s++) {
        const struct set_result *found = &mailbox->sets[s], *result = &expected.results[s];
        for (uint32_t i = 0; i < result->n_ids && i < found->n_ids; i++)
            ck_assert_msg(mailbox->ids[found->first_id + i] == expected.ids[result->first_id + i],
                          "step %u, set %u, id %u: %d, not %d", (uint32_t)step->number, s, i,
                          mailbox->ids[found->first_id + i], expected.ids[result->first_id + i]);
        ck_assert_mem_eq(found, result, sizeof *result);
    }
    ck_assert_mem_eq(slots.states, expected.states, sizeof expected.states);
    ck_assert_mem_eq(slots.history, expected.history, sizeof expected.history);
    for (size_t i = 0; i < N_SLOTS * (size_t)n_vocab; i++) {
        ck_assert_uint_eq(slots.uses[i].in_prompt, expected.uses[i].in_prompt);
        ck_assert_uint_eq(slots.uses[i].in_output, expected.uses[i].in_output);
    }
    for (uint32_t i = 0; i < n_logprobs; i++)
        if (expected.has_logprob[i])
            assert_logprob(mailbox->logprobs[i], expected.logprobs[i]);
    free(expected.uses);
}

#endif
