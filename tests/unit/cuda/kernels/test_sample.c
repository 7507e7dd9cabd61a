/* SPDX-License-Identifier: MIT */
/* The end of a step against the plain sampler and the rules of engine/backend/backend.h: ids, uses, slots,
 * results. Whatever a step has, a plain run over the same memory says what all of it must be afterwards. */

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

static void set_up(uint32_t vocab)
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

/* A slot that is greedy, has 10 ids, and goes on for long. */
static struct slot_state *open_slot(uint32_t slot)
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

static void begin_step(void)
{
    uint64_t number = memory.step->number + 1;
    *memory.step = (struct step){.number = number, .mailbox = (uint32_t)number % MAILBOXES};
    n_masks = n_logprobs = 0;
}

static struct step_set *add_set(uint32_t slot, uint32_t n_rows, enum backend_output output)
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

static float *logits_of(const struct step_set *set, uint32_t nth)
{
    return logits + (size_t)(set->first_output + nth) * sample.stride;
}

/* Masks of a grammar, everything allowed; [n_rows][n_words]. */
static uint32_t *add_masks(struct step_set *set, uint32_t n)
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
static struct id_sequences sequences_of(uint32_t slot, bool bad_words)
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

static struct sampling sampling_of(uint32_t slot, struct logit_bias *items)
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

static void accept_plainly(struct expected *expected, const struct step_set *set, int32_t id, uint32_t length)
{
    struct slot_state *state = &expected->states[set->slot];
    struct token_use *uses = expected->uses + (size_t)set->slot * n_vocab;
    int32_t *history = expected->history + (size_t)set->slot * N_HISTORY;
    state->last_id = id;
    if (state->keeps_uses)
        uses[id].in_output++;
    if (state->keeps_history)
        history[length - 1] = id;
    if (state->window < length) { /* what is in the window now, counted anew */
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

static void sample_plainly(struct expected *expected, const struct step_set *set, struct sampler *sampler,
                           struct set_result *result)
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

static void run_plainly(struct expected *expected)
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

static void assert_logprob(struct logprob found, struct logprob expected)
{
    bool same = found.logprob == expected.logprob ||
                fabsf(found.logprob - expected.logprob) <= 1e-5f * (1 + fabsf(expected.logprob));
    ck_assert_msg(found.id == expected.id && same, "id %d %g, not %d %g", found.id, (double)found.logprob,
                  expected.id, (double)expected.logprob);
}

/* Runs the step, padded to `n_outputs` of them, and compares everything with the plain run. */
static void run_step(uint32_t n_outputs)
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

/* ---- random steps ---- */

static uint32_t below(uint32_t n)
{
    return next_random(&seed) % n;
}

/* Smooth, with ties, peaked, or with what is no number; now and then nothing that may be sampled. */
static void fill_logits(float *row)
{
    uint32_t kind = below(8);
    for (uint32_t i = 0; i < n_vocab; i++) {
        float x = next_real(&seed);
        row[i] = kind == 0   ? 0.5f * (float)(int)(4 * x)
                 : kind == 1 ? 1000 * x
                 : kind == 2 ? 0.001f * x
                 : kind == 3 ? 3e38f * x
                             : 8 * x * x * x;
        if (kind == 4 && below(3) == 0)
            row[i] = below(3) == 0 ? NAN : below(2) ? INFINITY : -INFINITY;
        if (kind == 5 && below(60) != 0)
            row[i] = -INFINITY;
        if (kind == 6 && below(2) == 0)
            row[i] = -0.0f;
    }
}

static void randomize_penalties(uint32_t slot, struct slot_state *state)
{
    static const float penalties[] = {0.5f, 1.3f, 2, 100};
    state->keeps_uses = 1;
    state->repetition_penalty = below(3) ? penalties[below(4)] : 1;
    state->presence_penalty = below(2) ? next_real(&seed) * 2 : 0;
    state->frequency_penalty = below(2) ? next_real(&seed) * 2 : 0.25f;
    for (uint32_t i = 0; i < n_vocab; i++)
        if (below(3) == 0)
            slots.uses[(size_t)slot * n_vocab + i] =
                (struct token_use){.in_prompt = below(2), .in_output = below(4)};
}

static void add_sequence(struct slot_sequences *to, uint32_t *len, const int32_t *ids, uint32_t n)
{
    to->starts[to->n++] = *len;
    to->items[(*len)++] = (int32_t)n;
    memcpy(to->items + *len, ids, n * sizeof *ids);
    *len += n;
}

/* What looks at ids in their order: a history of few ids that repeats itself, and windows of all sizes. */
static void randomize_history(uint32_t slot, struct slot_state *state)
{
    static const uint32_t windows[] = {1, 3, 20, 64, 300, 100000, UINT32_MAX};
    int32_t *history = slots.history + (size_t)slot * N_HISTORY;
    struct slot_sequences *sequences = &slots.sequences[slot];
    struct token_use *uses = slots.uses + (size_t)slot * n_vocab;
    const uint32_t alphabet = n_vocab < 6 ? n_vocab : 2 + below(5);
    uint32_t len = 0;
    state->keeps_history = state->keeps_uses = 1;
    state->position = below(N_HISTORY - 10);
    state->end_position = state->position + 10;
    state->n_prompt = below(state->position + 1);
    state->window = windows[below(7)];
    state->dry_multiplier = below(4) ? 0.1 + below(30) / 10.0 : 0;
    state->dry_base = 1 + below(20) / 10.0;
    state->dry_allowed = 1 + below(3);
    state->dry_last = state->dry_multiplier > 0 ? windows[below(7)] : 0;
    for (uint32_t i = 0; i < N_HISTORY; i++)
        history[i] = below(8) ? (int32_t)(i % alphabet) : (int32_t)below(alphabet);
    memset(slots.breakers + (size_t)slot * n_words, 0, n_words * sizeof *slots.breakers);
    if (below(2))
        slots.breakers[(size_t)slot * n_words] = 1u << below(alphabet);
    *sequences = (struct slot_sequences){0};
    for (uint32_t i = below(5); i > 0; i--)
        add_sequence(sequences, &len, history + below(200), 1 + below(3));
    sequences->n_bad_words = sequences->n;
    state->has_bad_words = sequences->n > 0;
    for (uint32_t i = below(3); i > 0; i--)
        add_sequence(sequences, &len, history + below(200), 2 + below(2));
    memset(uses, 0, n_vocab * sizeof *uses);
}

/* Uses of a slot whose set has so many rows: those of its window. */
static void count_uses(uint32_t slot, uint32_t n_rows)
{
    const struct slot_state *state = &slots.states[slot];
    const int32_t *history = slots.history + (size_t)slot * N_HISTORY;
    struct token_use *uses = slots.uses + (size_t)slot * n_vocab;
    const uint32_t n = state->position + n_rows;
    for (uint32_t i = n > state->window ? n - state->window : 0; i < n; i++) {
        uses[history[i]].in_prompt |= i < state->n_prompt;
        uses[history[i]].in_output += i >= state->n_prompt;
    }
}

/* Filters that look at all candidates, and at the temperature. */
static void randomize_rare(struct slot_state *state)
{
    static const double shares[] = {0, 1e-6, 0.1, 0.5, 0.9, 0.95, 0.999};
    state->top_n_sigma = below(2) ? below(40) / 10.0 : 0;
    state->typical_p = below(2) ? shares[below(7)] : 1;
    state->xtc_probability = below(2) ? below(3) / 2.0 : 0;
    state->xtc_threshold = below(2) ? shares[below(7)] / 2 : 0.02;
    state->dynatemp_range = below(2) ? below(30) / 10.0 : 0;
    state->dynatemp_exponent = below(2) ? 1 : below(30) / 10.0;
    state->dynatemp_middle = (double)state->temperature;
}

static void randomize_slot(uint32_t slot)
{
    static const float temperatures[] = {0, 0.01f, 0.3f, 0.8f, 1, 1.7f, 100, 1e-30f};
    static const double shares[] = {0, 1e-6, 0.1, 0.5, 0.9, 0.95, 0.999};
    struct slot_state *state = open_slot(slot);
    state->temperature = temperatures[below(8)];
    state->top_k = below(3) == 0 ? 0 : below(2) ? 1 + below(60) : 1 + below(2 * n_vocab);
    state->top_p = below(3) ? shares[below(7)] : 1;
    state->min_p = below(3) == 0 ? shares[below(7)] : 0;
    state->seed = (uint64_t)next_random(&seed) << 32 | next_random(&seed);
    state->position = below(100000);
    state->end_position = state->position + 1 + below(20);
    state->n_logprobs = below(4) == 0 ? below(N_LOGPROBS + 1) : 0;
    state->n_stop_ids = below(2) ? below(40) : 0;
    for (uint32_t i = 0; i < state->n_stop_ids; i++)
        slots.stop_ids[slot * STATE_MOST_STOP_IDS + i] = (int32_t)below(n_vocab);
    if (below(3) == 0)
        randomize_penalties(slot, state);
    if (below(3) == 0)
        randomize_history(slot, state);
    if (below(3) == 0)
        randomize_rare(state);
    state->n_biases = below(3) == 0 ? 1 + below(n_vocab < 300 ? n_vocab : 300) : 0;
    uint32_t first = below(n_vocab);
    for (uint32_t i = 0; i < state->n_biases; i++) /* distinct ids */
        slots.biases[(size_t)slot * STATE_MOST_BIASES + i] =
            (struct slot_bias){(int32_t)((first + i) % n_vocab), next_real(&seed) * 100};
}

static void randomize_set(uint32_t slot)
{
    uint32_t n_rows = 1 + below(4);
    const bool by_history = slots.states[slot].keeps_history;
    bool all = n_rows > 1 && below(2) && !by_history;
    if (by_history)
        count_uses(slot, n_rows);
    struct step_set *set = add_set(slot, n_rows, all ? BACKEND_SAMPLE_ALL : BACKEND_SAMPLE_LAST);
    for (uint32_t i = 0; i < n_rows; i++)
        memory.ids[set->first_row + i] = (int32_t)below(n_vocab);
    for (uint32_t i = 0; i < (all ? n_rows : 1); i++)
        fill_logits(logits_of(set, i));
    if (below(4) == 0) {
        uint32_t n = all ? n_rows : 1;
        uint32_t *allowed = add_masks(set, n);
        for (uint32_t i = 0; i < n * n_words; i++)
            allowed[i] = next_random(&seed) & next_random(&seed);
    }
    /* Drafts are mostly right: what a greedy look at the row says, and the same id again and again. */
    for (uint32_t i = 0; all && i + 1 < n_rows; i++) {
        const float *row = logits_of(set, i);
        uint32_t best = 0;
        for (uint32_t id = 0; id < n_vocab; id++)
            best = row[id] > row[best] && row[id] < INFINITY ? id : best;
        memory.ids[set->first_row + i + 1] = (int32_t)best;
    }
}

/* Fewer in random orders of threads, which is also how ThreadSanitizer sees them, at a fiftieth of the speed.
 */
static void run_random_steps(uint32_t vocab, uint32_t n_steps)
{
    set_up(vocab);
    n_steps = getenv("QUERN_EMU_SHUFFLE") ? (n_steps + 5) / 6 : n_steps;
    for (uint32_t i = 0; i < n_words; i++)
        mask[i] = i % 5 == 2 ? 0x0ffffff0 : UINT32_MAX;
    for (uint32_t i = 0; i < n_steps; i++) {
        uint32_t n_sets = i % 3 == 1 ? 2 : 12; /* launches of few outputs leave room for many */
        begin_step();
        for (uint32_t slot = 0; slot < n_sets; slot++) {
            randomize_slot(slot);
            randomize_set(slot);
        }
        run_step(n_sets == 2 ? memory.step->n_outputs : MAX_ROWS);
    }
    close_device();
}

START_TEST(a_few_ids_are_sampled_as_the_plain_sampler_does)
{
    run_random_steps(1, 2);
    run_random_steps(37, 40);
}
END_TEST

START_TEST(hundreds_of_ids_are_sampled_as_the_plain_sampler_does)
{
    run_random_steps(500, 60);
}
END_TEST

START_TEST(thousands_of_ids_are_sampled_as_the_plain_sampler_does)
{
    run_random_steps(MOST_VOCAB, 6);
}
END_TEST

/* ---- single promises ---- */

static void fill_ramp(const struct step_set *set, uint32_t nth, uint32_t best)
{
    for (uint32_t i = 0; i < n_vocab; i++)
        logits_of(set, nth)[i] = i == best ? 5 : -0.01f * (float)i;
}

START_TEST(a_stop_id_or_the_length_ends_a_sequence_once)
{
    set_up(64);
    for (uint32_t slot = 0; slot < 3; slot++)
        open_slot(slot)->end_position = slot == 1 ? 12 : 13;
    slots.states[0].n_stop_ids = 100;
    slots.stop_ids[97] = 7;
    for (uint32_t i = 0; i < 3; i++) {
        begin_step();
        for (uint32_t slot = 0; slot < 3; slot++) {
            struct step_set *set = add_set(slot, 1, BACKEND_SAMPLE_LAST);
            set->from_slot = 1;
            fill_ramp(set, 0, 7);
        }
        run_step(3);
    }
    ck_assert_uint_eq(slots.states[0].end, BACKEND_END_STOP);
    ck_assert_uint_eq(slots.states[0].position, 11);
    ck_assert_uint_eq(slots.states[1].end, BACKEND_END_LENGTH);
    ck_assert_uint_eq(slots.states[1].position, 11);
    ck_assert_uint_eq(slots.states[2].end, BACKEND_END_LENGTH);
    ck_assert_uint_eq(slots.states[2].position, 12);
    close_device();
}
END_TEST

START_TEST(a_right_draft_is_accepted_up_to_the_first_wrong_id)
{
    set_up(64);
    open_slot(0);
    begin_step();
    struct step_set *set = add_set(0, 4, BACKEND_SAMPLE_ALL);
    for (uint32_t i = 0; i < 4; i++) {
        fill_ramp(set, i, 20 + i);
        memory.ids[i] = i == 3 ? 50 : 19 + (int32_t)i;
    }
    run_step(8);
    const struct set_result *result = &mailboxes[1].sets[0];
    ck_assert_uint_eq(result->n_ids, 3);
    ck_assert_uint_eq(result->n_accepted, 2);
    ck_assert_uint_eq(slots.states[0].position, 13);
    ck_assert_int_eq(slots.states[0].last_id, 22);
    close_device();
}
END_TEST

/* 5, 3, 1, then below id 0's 0: each time that the draft has it, id 20 is less likely. */
START_TEST(ids_of_a_draft_count_as_used)
{
    set_up(64);
    struct slot_state *state = open_slot(0);
    state->keeps_uses = 1;
    state->frequency_penalty = 2;
    begin_step();
    struct step_set *set = add_set(0, 6, BACKEND_SAMPLE_ALL);
    for (uint32_t i = 0; i < 6; i++) {
        fill_ramp(set, i, 20);
        memory.ids[i] = 20;
    }
    run_step(6);
    ck_assert_uint_eq(mailboxes[1].sets[0].n_accepted, 3);
    ck_assert_int_eq(mailboxes[1].ids[3], 0);
    ck_assert_uint_eq(slots.uses[20].in_output, 3);
    close_device();
}
END_TEST

START_TEST(a_row_without_a_finite_logit_is_a_fault_of_its_own)
{
    set_up(64);
    for (uint32_t slot = 0; slot < 3; slot++)
        open_slot(slot)->temperature = slot == 1 ? 0 : 1;
    begin_step();
    for (uint32_t slot = 0; slot < 3; slot++) {
        struct step_set *set = add_set(slot, 1, BACKEND_SAMPLE_LAST);
        fill_ramp(set, 0, 9);
        for (uint32_t i = 0; slot == 0 && i < n_vocab; i++)
            logits_of(set, 0)[i] = i % 2 ? NAN : INFINITY;
        if (slot == 1)
            memset(add_masks(set, 1), 0, n_words * sizeof(uint32_t));
    }
    run_step(3);
    ck_assert_uint_eq(slots.states[0].end, BACKEND_END_FAULT);
    ck_assert_uint_eq(slots.states[1].end, BACKEND_END_FAULT);
    ck_assert_uint_eq(slots.states[2].end, BACKEND_RUNNING);
    close_device();
}
END_TEST

START_TEST(sets_that_sample_nothing_move_and_forget_the_last_id)
{
    set_up(64);
    for (uint32_t slot = 0; slot < 4; slot++)
        open_slot(slot);
    begin_step();
    add_set(0, 5, BACKEND_OUTPUT_NONE);
    add_set(1, 3, BACKEND_LOGITS_ALL);
    fill_ramp(add_set(2, 2, BACKEND_SAMPLE_LAST), 0, 11);
    add_set(3, 1, BACKEND_LOGITS_LAST);
    run_step(16);
    ck_assert_uint_eq(slots.states[0].position, 15);
    ck_assert_int_eq(slots.states[1].last_id, -1);
    ck_assert_int_eq(slots.states[2].last_id, 11);
    begin_step();
    add_set(0, 5, BACKEND_OUTPUT_NONE); /* no output at all */
    run_step(0);
    ck_assert_uint_eq(slots.states[0].position, 20);
    close_device();
}
END_TEST

START_TEST(surplus_rows_leave_their_slot_as_it_is)
{
    set_up(64);
    open_slot(0)->end = BACKEND_END_STOP;
    open_slot(1);
    begin_step();
    for (uint32_t slot = 0; slot < 2; slot++) {
        struct step_set *set = add_set(slot, 1, BACKEND_SAMPLE_LAST);
        set->from_slot = 1;
        fill_ramp(set, 0, 30);
    }
    struct slot_state before = slots.states[0];
    run_step(8);
    ck_assert_mem_eq(&slots.states[0], &before, sizeof before);
    ck_assert_uint_eq(mailboxes[1].sets[0].n_ids, 0);
    ck_assert_uint_eq(mailboxes[1].sets[0].end, BACKEND_END_STOP);
    close_device();
}
END_TEST

START_TEST(results_go_into_the_steps_own_mailbox)
{
    set_up(64);
    open_slot(0);
    for (uint32_t i = 1; i <= 2 * MAILBOXES; i++) {
        begin_step();
        fill_ramp(add_set(0, 1, BACKEND_SAMPLE_LAST), 0, i);
        run_step(1);
        for (uint32_t j = 0; j < MAILBOXES; j++)
            if (j != i % MAILBOXES)
                ck_assert_uint_lt(*mailboxes[j].number, i);
    }
    ck_assert_int_eq(mailboxes[1].ids[0], MAILBOXES + 1);
    ck_assert_int_eq(mailboxes[2].ids[0], MAILBOXES + 2);
    close_device();
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_few_ids_are_sampled_as_the_plain_sampler_does);
    tcase_add_test(tests, hundreds_of_ids_are_sampled_as_the_plain_sampler_does);
    tcase_add_test(tests, thousands_of_ids_are_sampled_as_the_plain_sampler_does);
    tcase_add_test(tests, a_stop_id_or_the_length_ends_a_sequence_once);
    tcase_add_test(tests, a_right_draft_is_accepted_up_to_the_first_wrong_id);
    tcase_add_test(tests, ids_of_a_draft_count_as_used);
    tcase_add_test(tests, a_row_without_a_finite_logit_is_a_fault_of_its_own);
    tcase_add_test(tests, sets_that_sample_nothing_move_and_forget_the_last_id);
    tcase_add_test(tests, surplus_rows_leave_their_slot_as_it_is);
    tcase_add_test(tests, results_go_into_the_steps_own_mailbox);
}

int main(void)
{
    return run_tests("sample", add);
}
