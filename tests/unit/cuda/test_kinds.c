/* SPDX-License-Identifier: MIT */
/* Which layers stand for a model, and whose keys and values those that borrow attend to. */

#include "cuda/host/kinds.h"
#include "tests/unit/run.h"
#include "tests/unit/cpu/small_model.h"

#include <stdlib.h>

/* Layers of a model whose weights and pools nobody has made; a layer's group is its number. */
static const struct kinds *kinds_of(const struct model *model)
{
    static struct kinds kinds;
    static struct device_layer device_layers[32];
    static struct pools_layer pools_layers[32];
    static const struct device_states no_states;
    static struct device_weights weights = {.layers = device_layers};
    static struct pools pools = {.layers = pools_layers};
    static struct pass pass;
    for (uint32_t l = 0; l < 32; l++)
        pools_layers[l].group = l;
    pass = (struct pass){.model = model, .weights = &weights, .pools = &pools, .states = &no_states};
    kinds_init(&kinds, &pass);
    return &kinds;
}

/* Two kinds that keep keys and values, two that borrow them: the first lender of each kind is not the layer
 * that stands for it. */
START_TEST(borrowers_borrow_from_the_kind_of_their_lender)
{
    struct synth_shape shape = borrowing_shape;
    shape.n_layers = 8;
    struct model *model = make_model(&shape, "F32");
    const struct kinds *kinds = kinds_of(model);
    static const uint32_t layers[] = {0, 1, 6, 7}, groups[] = {0, 1, 0, 1};
    ck_assert_uint_eq(kinds->n, 4);
    for (uint32_t k = 0; k < 4; k++) {
        const struct layer_traits *traits = &kinds->model_layers[k].traits;
        ck_assert_uint_eq(kinds->layers[k], layers[k]);
        ck_assert_uint_eq(kinds->pools_layers[k].group, groups[k]);
        ck_assert(traits->borrows_kv == (k >= 2));
        if (traits->borrows_kv)
            ck_assert_uint_eq(traits->kv_layer, k - 2);
    }
    ck_assert_uint_eq(model->layers[6].traits.kv_layer, 4); /* as it was */
    ck_assert_uint_eq(model->layers[7].traits.kv_layer, 5);
    model_free(model);
}
END_TEST

/* A layer differs by each of these alone. */
START_TEST(what_layers_compute_makes_their_kind)
{
    struct synth_shape shape = small_shape;
    shape.n_experts = 4;
    shape.n_experts_used = 2;
    shape.n_expert_ff = 96;
    shape.architecture = "gemma4";
    shape.window = 40;
    shape.window_period = 8;
    shape.biases = false;
    shape.rope_factor = 0;
    shape.n_layers = 5;
    struct model *model = make_model(&shape, "F32");
    ck_assert_uint_eq(kinds_of(model)->n, 1);
    model->layers[1].traits.experts.router_norm = false;
    ck_assert_uint_eq(kinds_of(model)->n, 2);
    model->layers[2].traits.experts.scaled = false;
    ck_assert_uint_eq(kinds_of(model)->n, 3);
    model->layers[3].traits.experts.beside = false;
    ck_assert_uint_eq(kinds_of(model)->n, 4);
    model->layers[4].traits.n_layer_embd = 3;
    ck_assert_uint_eq(kinds_of(model)->n, 5);
    model_free(model);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, borrowers_borrow_from_the_kind_of_their_lender);
    tcase_add_test(tests, what_layers_compute_makes_their_kind);
}

int main(void)
{
    return run_tests("kinds", add);
}
