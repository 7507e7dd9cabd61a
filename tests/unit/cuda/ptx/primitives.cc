/* SPDX-License-Identifier: MIT */
/* primitives.cu for the emulator, with launches by name, and the tile of products. */

#include "tests/unit/cuda/ptx/primitives.h"

#include <errno.h>

#include "cuda/kernels/products/tile.h"
#include "tests/unit/cuda/ptx/primitives.cu"

#define SHARED_BYTES 1024

struct primitive {
    const char *name;
    void (*kernel)(const uint32_t *in, uint32_t *out);
};

#define OF(name)                                                                                             \
    {                                                                                                        \
#name, name                                                                                          \
    }
static const struct primitive primitives[] = {
    OF(product_s8),   OF(product_f16), OF(registers_s8), OF(registers_f16),
    OF(dp4a),         OF(permute),     OF(halves),       OF(nearest),
    OF(from_half),    OF(from_bf16),   OF(to_half),      OF(to_bf16),
    OF(multiply_add), OF(shuffle),     OF(shuffle_xor),  OF(ballot),
    OF(sums),         OF(largest),     OF(parted),       OF(atomics),
    OF(loads),        OF(barriers),    OF(fences),       OF(atomics_of_other_types),
};

int launch_primitive(struct device_stream *stream, const char *name, uint32_t n_threads, const void *in,
                     void *out)
{
    for (const struct primitive &primitive : primitives)
        if (!strcmp(primitive.name, name))
            return simt_launch(stream, primitive.name, primitive.kernel, {1, 1, 1}, {n_threads, 1, 1},
                               SHARED_BYTES, (const uint32_t *)in, (uint32_t *)out);
    return -ENOENT;
}

int launch_thin(struct device_stream *stream, const struct device_product *product,
                const struct device_activations *x, uint32_t n_rows, struct kept_launch *ret_launch)
{
    struct products products = {};
    if (n_rows > 8 || !products_collect(&products, product, 1, x))
        return -EINVAL;
    *ret_launch = {
        {blocks_of(&products, THIN_ROWS), 1}, PARTS * SIMT_LANES, sizeof(union thin_shared<1>), 0, {}};
    keep(ret_launch, products);
    keep(ret_launch, *x);
    keep(ret_launch, n_rows);
    const struct multiply_step step = {n_rows, false, NULL, PRODUCT_BY_RULE};
    return multiply_tiles(stream, &products, x, &step);
}
