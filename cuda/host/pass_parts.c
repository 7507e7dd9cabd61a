/* SPDX-License-Identifier: MIT */
/* Products of layers, and who is told of them. */

#include "cuda/host/pass_parts.h"

#include "cuda/kernels/layout.h"

int pass_seen(const struct pass *pass, int r, enum pass_part part, uint32_t layer)
{
    return r < 0 || !pass->watch ? r : pass->watch->see(pass->watch->arg, part, layer);
}

void pass_expect_weights(struct device_stream *queue, const struct device_matrix *const *matrices, uint32_t n,
                         uint32_t n_experts)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct layout *layout = layout_of(matrices[i]->format);
        bytes += layout ? layout_bytes(layout, matrices[i]->n_rows, matrices[i]->n_columns) : 0;
    }
    device_expect(queue, bytes * n_experts);
}

struct multiply_step pass_products(const struct pass *pass, uint32_t n_rows)
{
    return (struct multiply_step){n_rows, pass->invariant, &pass->workspace->multiply};
}

int pass_multiply(const struct pass *pass, struct device_stream *queue, const struct device_product *products,
                  uint32_t n, const struct device_activations *x, uint32_t n_rows)
{
    const struct multiply_step step = pass_products(pass, n_rows);
    return pass_is_large(pass, n_rows) ? library_products_multiply(pass->large, queue, products, n, x, &step)
                                       : kernels_multiply(queue, products, n, x, &step);
}
