/* SPDX-License-Identifier: MIT */
/* The feed-forward block: gate, up, and their activation. Its last product is inspected like attention's. */

#include "cuda/check/inspect_parts.h"

#include <math.h>

#include "cuda/check/inspect_compare.h"
#include "cuda/check/reference.h"

int inspect_activated_row(struct inspection *look, const char *kernel, uint32_t layer, uint32_t i,
                          const float *gate, const float *up, const struct held *activated, uint32_t n)
{
    const struct layer_traits *traits = &look->model->layers[layer].traits;
    const size_t at = (size_t)i * activated->stride;
    const struct inspect_site site = {kernel, NULL, layer, look->picked[i], OFF_ROW};
    int r = 0;
    for (uint32_t k = 0; k < n && r == 0; k++) {
        const double x = (double)(traits->gated ? gate : up)[at + k];
        const double factor = traits->gated ? reference_factor(traits->activation, (double)up[at + k]) : 1;
        const double expected = reference_activation(traits->activation, x) * factor;
        const double found = (double)activated->values[at + k];
        look->expected[k] = found;
        if (!inspect_agree(found, expected, (fabs(x) + x * x) * fabs(factor), OFF_ROW))
            r = inspect_differ(look, &site, k, found, expected);
    }
    return r < 0 ? r : inspect_activations(look, kernel, layer, i, activated, look->expected, n);
}

static int check_activated(struct inspection *look, uint32_t layer, const char *kernel, uint32_t n)
{
    int r = inspect_bring_activations(look, &look->pass->workspace->activated, &look->activated);
    for (uint32_t i = 0; i < look->n_picked && r == 0; i++)
        r = inspect_activated_row(look, kernel, layer, i, look->gate, look->up, &look->activated, n);
    return r;
}

static int check_both(struct inspection *look, uint32_t layer, enum tensor_role gate, enum tensor_role up)
{
    const struct workspace *w = look->pass->workspace;
    const struct model_layer *from = &look->model->layers[layer];
    const bool fused =
        look->n_rows <= 4 && !look->pass->invariant && !pass_is_large(look->pass, look->n_rows);
    const char *kernel = fused ? "multiply_activate" : "multiply";
    int r =
        from->traits.gated ? inspect_bring_rows(look, w->gate, w->ff_stride * sizeof(float), look->gate) : 0;
    if (r == 0)
        r = inspect_bring_rows(look, w->up, w->ff_stride * sizeof(float), look->up);
    if (r == 0 && from->traits.gated)
        r = inspect_layer_product(look, kernel, layer, gate, &look->normed, look->gate, w->ff_stride);
    if (r == 0)
        r = inspect_layer_product(look, kernel, layer, up, &look->normed, look->up, w->ff_stride);
    return r < 0 ? r : check_activated(look, layer, fused ? kernel : "activate", from->tensors[up].rows);
}

int inspect_activate(struct inspection *look, uint32_t layer)
{
    return check_both(look, layer, TENSOR_GATE, TENSOR_UP);
}

int inspect_shared(struct inspection *look, uint32_t layer)
{
    return check_both(look, layer, TENSOR_SHARED_GATE, TENSOR_SHARED_UP);
}
