/* SPDX-License-Identifier: MIT */
/* Random steps against the plain sampler: all parameters, masks, drafts and histories mixed. */

#include "tests/unit/cuda/kernels/sample_rig.h"

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
    state->n_stop_ids = below(2) ? below(n_vocab < 40 ? n_vocab : 40) : 0;
    const uint32_t some = below(n_vocab);
    for (uint32_t i = 0; i < state->n_stop_ids; i++)
        slots.stop_ids[slot * STATE_MOST_STOP_IDS + i] = (int32_t)((some + i) % n_vocab); /* distinct */
    state->stops_from = below(2) ? state->position + below(20) : 0;
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

/* Fewer for ThreadSanitizer, which sees them at a fiftieth of the speed. */
static void run_random_steps(uint32_t vocab, uint32_t n_steps)
{
    set_up(vocab);
    n_steps = test_is_for_races() ? (n_steps + 5) / 6 : n_steps;
    n_steps = test_is_scaled() ? (n_steps + 2) / 3 : n_steps;
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

static void add(TCase *tests)
{
    tcase_add_test(tests, a_few_ids_are_sampled_as_the_plain_sampler_does);
    tcase_add_test(tests, hundreds_of_ids_are_sampled_as_the_plain_sampler_does);
    tcase_add_test(tests, thousands_of_ids_are_sampled_as_the_plain_sampler_does);
}

int main(void)
{
    return run_tests("random samples", add);
}
