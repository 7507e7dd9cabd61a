/* SPDX-License-Identifier: MIT */
/* Rotary positions, and the walk of a tile of rows over its sequence's blocks.
 *
 * Blocks are the outer loop: each is converted to float once and then met by every row and query head of the
 * tile. A query still sees its blocks in order, from the first to its own, so what it sums and in which order
 * hangs on its position alone, not on the rows it shares a tile with. */

#include "worker/cpu/attention.h"

#include <math.h>
#include <string.h>

void rope_frequencies(const struct model_params *params, const float *factors, double *ret_frequencies)
{
    for (uint32_t i = 0; i < params->rope_dims / 2; i++) {
        double frequency = pow(params->rope_base, -2.0 * i / params->rope_dims) / params->rope_scale;
        ret_frequencies[i] = factors ? frequency / factors[i] : frequency;
    }
}

void rope_angles(const double *frequencies, uint32_t n_pairs, uint32_t position, float *ret_cos_sin)
{
    for (uint32_t i = 0; i < n_pairs; i++) {
        double angle = position * frequencies[i];
        ret_cos_sin[2 * i] = (float)cos(angle);
        ret_cos_sin[2 * i + 1] = (float)sin(angle);
    }
}

void rope_turn(float *heads, uint32_t n_heads, uint32_t dim, const float *cos_sin, uint32_t n_pairs)
{
    for (uint32_t h = 0; h < n_heads; h++, heads += dim) {
        for (uint32_t i = 0; i < n_pairs; i++) {
            float x = heads[2 * i], y = heads[2 * i + 1];
            float c = cos_sin[2 * i], s = cos_sin[2 * i + 1];
            heads[2 * i] = x * c - y * s;
            heads[2 * i + 1] = x * s + y * c;
        }
    }
}

size_t attention_scratch(const struct kv *kv, uint32_t group)
{
    size_t block = kv->head_keys + kv->head_values;
    return block + (size_t)ATTENTION_TILE * group * (kv->value_dim + 2);
}

void attention_run(const struct kv *kv, const struct kernels *kernels, const struct attention_task *task,
                   uint32_t layer, uint32_t kv_head, uint32_t group, float *scratch)
{
    const uint32_t dim = kv->dim, value_dim = kv->value_dim;
    float *keys = scratch, *values = keys + kv->head_keys;
    float *acc = values + kv->head_values;                         /* [rows][group][value_dim] */
    float *state = acc + (size_t)task->n_rows * group * value_dim; /* [rows][group][2] */
    memset(acc, 0, (size_t)task->n_rows * group * value_dim * sizeof *acc);
    for (uint32_t i = 0; i < task->n_rows * group; i++) {
        state[2 * i] = -INFINITY;
        state[2 * i + 1] = 0;
    }
    uint32_t end = task->position + task->n_rows; /* positions that the last row sees */
    for (uint32_t start = 0; start < end; start += KERNELS_TOKENS) {
        uint32_t block = task->table[start / KERNELS_TOKENS];
        kernels->halves_to_floats(kv_keys(kv, block, layer, kv_head), (uint32_t)kv->head_keys, keys);
        kernels->halves_to_floats(kv_values(kv, block, layer, kv_head), (uint32_t)kv->head_values, values);
        uint32_t r = start > task->position ? start - task->position : 0; /* rows before see none of it */
        for (; r < task->n_rows; r++) {
            uint32_t seen = task->position + r + 1 - start;
            uint32_t n_tokens = seen < KERNELS_TOKENS ? seen : KERNELS_TOKENS;
            const float *query =
                task->queries + (size_t)r * task->query_stride + (size_t)kv_head * group * dim;
            for (uint32_t g = 0; g < group; g++) {
                uint32_t i = r * group + g;
                kernels->attend(query + (size_t)g * dim, keys, dim, values, value_dim, n_tokens,
                                state + 2 * i, acc + (size_t)i * value_dim);
            }
        }
    }
    for (uint32_t r = 0; r < task->n_rows; r++) {
        for (uint32_t g = 0; g < group; g++) {
            uint32_t i = r * group + g;
            float *out = task->out + (size_t)r * task->out_stride + ((size_t)kv_head * group + g) * dim;
            for (uint32_t d = 0; d < dim; d++)
                out[d] = acc[(size_t)i * value_dim + d] / state[2 * i + 1];
        }
    }
}
