/* SPDX-License-Identifier: MIT */
/* Which experts a row goes to, and how a pass's rows are grouped by them. */

#include "cpu/forward/experts.h"
#include "tests/unit/run.h"
#include "tests/unit/cpu/random_weights.h"

#include <math.h>

#define ROWS_MOST 40
#define MOST      16 /* experts */

START_TEST(the_best_are_chosen_and_their_weights_add_up_to_1)
{
    const struct experts experts = {.n = 6, .n_used = 3};
    float scores[] = {0.5f, 2, -1, 2, 1.5f, -30}, weights[3];
    uint32_t chosen[3];
    experts_choose(&experts, scores, chosen, weights);
    ck_assert(chosen[0] == 1 && chosen[1] == 3 && chosen[2] == 4); /* of equals the first */
    double sum = 2 + exp(-0.5);
    ck_assert_float_eq_tol(weights[0], (float)(1 / sum), 1e-6f);
    ck_assert_float_eq(weights[0], weights[1]);
    ck_assert_float_eq_tol(weights[2], (float)(exp(-0.5) / sum), 1e-6f);
}
END_TEST

START_TEST(large_scores_do_not_overflow)
{
    const struct experts experts = {.n = 3, .n_used = 3};
    float scores[] = {1e30f, -1e30f, 1e30f}, weights[3];
    uint32_t chosen[3];
    experts_choose(&experts, scores, chosen, weights);
    ck_assert(chosen[0] == 0 && chosen[1] == 2 && chosen[2] == 1);
    ck_assert(weights[0] == 0.5f && weights[1] == 0.5f && weights[2] == 0);
}
END_TEST

START_TEST(a_score_that_is_not_finite_stays_visible)
{
    static const float faults[] = {NAN, INFINITY, -INFINITY};
    const struct experts experts = {.n = 5, .n_used = 4};
    for (uint32_t f = 0; f < 3; f++)
        for (uint32_t n_faults = 1; n_faults <= 5; n_faults++) {
            float scores[] = {1, 2, 3, 4, 5}, weights[4];
            uint32_t chosen[4], seen = 0;
            for (uint32_t i = 0; i < n_faults; i++)
                scores[i] = faults[f];
            experts_choose(&experts, scores, chosen, weights);
            for (uint32_t k = 0; k < 4; k++) {
                ck_assert(isnan(weights[k]) && chosen[k] < 5);
                seen |= 1u << chosen[k];
            }
            ck_assert_int_eq(__builtin_popcount(seen), 4); /* four different ones */
        }
}
END_TEST

/* Groups random assignments and checks their places. */
static void check_groups(uint32_t n_rows, uint32_t n_experts, uint32_t n_used, bool gated)
{
    uint32_t experts[ROWS_MOST * MOST], places[ROWS_MOST * MOST], assignments[ROWS_MOST * MOST];
    uint32_t first_place[MOST + 1], counts[MOST] = {0}, n_assignments = n_rows * n_used;
    struct product inputs[2 * MOST], outputs[MOST];
    struct experts_workspace work = {.experts = experts,
                                     .places = places,
                                     .assignments = assignments,
                                     .first_place = first_place,
                                     .inputs = inputs,
                                     .outputs = outputs};
    const struct layer_traits traits = {.experts = {.n = n_experts, .n_used = n_used}, .gated = gated};
    static const struct weights_layer layer;
    for (uint32_t v = 0; v < n_assignments; v++)
        counts[experts[v] = random_u32() % n_experts]++;
    experts_group(&work, &traits, &layer, n_rows);
    bool taken[ROWS_MOST * MOST] = {false};
    for (uint32_t v = 0; v < n_assignments; v++) {
        ck_assert_uint_lt(places[v], n_assignments);
        ck_assert(!taken[places[v]] && assignments[places[v]] == v);
        taken[places[v]] = true;
    }
    uint32_t n_used_experts = 0, at = 0;
    for (uint32_t e = 0; e < n_experts; e++) {
        if (counts[e] == 0)
            continue; /* has no product: not read */
        const struct product *out = &outputs[n_used_experts], *in = &inputs[n_used_experts * (gated ? 2 : 1)];
        ck_assert(out->index == e && out->first == at && out->n == counts[e]);
        ck_assert(in->index == e && in->first == at && in->n == counts[e]);
        for (; at < out->first + out->n; at++) {
            ck_assert_uint_eq(experts[assignments[at]], e);
            ck_assert(at == out->first || assignments[at] > assignments[at - 1]); /* in the order of rows */
        }
        n_used_experts++;
    }
    ck_assert_uint_eq(work.n_outputs, n_used_experts);
    ck_assert_uint_eq(work.n_inputs, n_used_experts * (gated ? 2 : 1));
}

START_TEST(rows_of_an_expert_lie_together_and_unused_experts_are_not_read)
{
    for (uint32_t round = 0; round < 500; round++) {
        uint32_t n_experts = 1 + random_u32() % MOST;
        check_groups(1 + random_u32() % ROWS_MOST, n_experts, 1 + random_u32() % n_experts, round % 2);
    }
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, the_best_are_chosen_and_their_weights_add_up_to_1);
    tcase_add_test(tests, large_scores_do_not_overflow);
    tcase_add_test(tests, a_score_that_is_not_finite_stays_visible);
    tcase_add_test(tests, rows_of_an_expert_lie_together_and_unused_experts_are_not_read);
}

int main(void)
{
    return run_tests("experts", add);
}
