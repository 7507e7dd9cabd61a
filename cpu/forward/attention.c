/* SPDX-License-Identifier: MIT */
/* The walk of a tile of rows over its sequence's blocks.
 *
 * Blocks are the outer loop: each is converted to float once, unless few are to meet it, and then met by
 * every row and query head of the tile. A query still sees its blocks in order, from the first that its
 * window reaches to its own, so what it sums and in which order hangs on its position alone, not on the rows
 * it shares a tile with, nor on the heads.
 *
 * Where there are more threads than tasks, the query heads of a key/value head are divided. That a sequence
 * were divided instead would change its sums, or else need all its scores kept. */

#include "cpu/forward/attention.h"

#include <math.h>
#include <string.h>

/* Of scratch: one block's keys and values as floats, then for every row and query head a running softmax and
 * the values that it has summed. */
struct layout {
    float *keys, *values;
    float *sums;                     /* [rows][group][value_dim] */
    struct running_softmax *softmax; /* [rows][group] */
};

#define READING 3 /* what it costs to read a block and convert it to float, in query heads */

#define SOFTMAX_FLOATS (sizeof(struct running_softmax) / sizeof(float))

_Static_assert(sizeof(struct running_softmax) % sizeof(float) == 0, "scratch is counted in floats");

size_t attention_scratch(const struct kv_layer *layer, uint32_t group)
{
    size_t queries = (size_t)ATTENTION_TILE * group;
    return queries * SOFTMAX_FLOATS + layer->head_keys + layer->head_values + queries * layer->value_dim;
}

/* Query heads of one key/value head. */
struct heads {
    uint32_t first, n;
};

/* The softmax states come first: scratch is aligned for them. */
static struct layout lay_out(const struct attention *attention, const struct heads *heads, uint32_t n_rows,
                             float *scratch)
{
    const uint32_t n_queries = n_rows * heads->n;
    const struct kv_layer *layer = &attention->kv->layers[attention->layer];
    struct layout layout = {.softmax = (void *)scratch};
    layout.keys = scratch + (size_t)n_queries * SOFTMAX_FLOATS;
    layout.values = layout.keys + layer->head_keys;
    layout.sums = layout.values + layer->head_values;
    memset(layout.sums, 0, (size_t)n_queries * layer->value_dim * sizeof *layout.sums);
    for (uint32_t i = 0; i < n_queries; i++) {
        layout.softmax[i] = (struct running_softmax){.largest = -INFINITY,
                                                     .values = layout.sums + (size_t)i * layer->value_dim};
        if (attention->sinks) { /* the first that is met: it has a weight and no value */
            layout.softmax[i].largest = attention->sinks[heads->first + i % heads->n];
            layout.softmax[i].sum = 1;
        }
    }
    return layout;
}

/* The first position that a row at `position` sees. */
static uint32_t first_seen(const struct attention *attention, uint32_t position)
{
    return attention->window > 0 && position >= attention->window ? position - attention->window + 1 : 0;
}

/* The tokens of the block at position `start` that a row sees; none: first ≥ end. */
static void show(const struct attention *attention, uint32_t position, uint32_t start,
                 struct attended_block *block)
{
    uint32_t first = first_seen(attention, position), seen = position + 1 - start;
    block->first = first > start ? first - start : 0;
    block->end = seen < KERNELS_TOKENS ? seen : KERNELS_TOKENS;
}

/* Every row of the task that sees some of the block at position `start`. Query heads of rows that see the
 * same of it meet it together. */
static void meet_block(const struct attention *attention, const struct attention_task *task,
                       const struct heads *heads, uint32_t start, const struct attended_block *whole,
                       const struct layout *layout)
{
    struct attended_block block = *whole;
    struct attending queries[KERNELS_QUERIES];
    uint32_t n = 0, r = start > task->position ? start - task->position : 0; /* rows before see none of it */
    for (; r < task->n_rows; r++) {
        struct attended_block shown = block;
        show(attention, task->position + r, start, &shown);
        if (shown.first >= shown.end)
            continue; /* the row's window begins later */
        if (n > 0 && (shown.first != block.first || shown.end != block.end)) {
            attention->kernels->attend(&block, queries, n);
            n = 0;
        }
        block = shown;
        const float *query =
            task->queries + (size_t)r * task->query_stride + (size_t)heads->first * whole->dim;
        for (uint32_t h = 0; h < heads->n; h++) {
            queries[n++] =
                (struct attending){query + (size_t)h * whole->dim, &layout->softmax[r * heads->n + h]};
            if (n == KERNELS_QUERIES) {
                attention->kernels->attend(&block, queries, n);
                n = 0;
            }
        }
    }
    if (n > 0)
        attention->kernels->attend(&block, queries, n);
}

void attention_run(const struct attention *attention, const struct attention_task *task, uint32_t first_head,
                   uint32_t n_heads, float *scratch)
{
    const struct kv *kv = attention->kv;
    const struct kernels *kernels = attention->kernels;
    const struct heads heads = {first_head, n_heads};
    const struct kv_layer *layer = &kv->layers[attention->layer];
    const uint32_t dim = layer->dim, kv_head = first_head / attention->group;
    const uint32_t *table = task->tables[layer->group];
    const bool in_place = kv->type == BACKEND_KV_F16 && task->n_rows * n_heads <= kernels->attend_halves;
    struct layout layout = lay_out(attention, &heads, task->n_rows, scratch);
    struct attended_block block = {.keys = in_place ? NULL : layout.keys,
                                   .values = in_place ? NULL : layout.values,
                                   .dim = dim,
                                   .value_dim = layer->value_dim,
                                   .cap = attention->cap};
    uint32_t end = task->position + task->n_rows; /* positions that the last row sees */
    uint32_t start = first_seen(attention, task->position) / KERNELS_TOKENS * KERNELS_TOKENS;
    for (; start < end; start += KERNELS_TOKENS) {
        const uint32_t id = table[start / KERNELS_TOKENS];
        const uint32_t next = end - start > KERNELS_TOKENS ? table[start / KERNELS_TOKENS + 1] : id;
        if (in_place) {
            kv_halves(kv, id, attention->layer, kv_head, &block.half_keys, &block.half_values);
            kv_halves(kv, next, attention->layer, kv_head, &block.next_keys, &block.next_values);
        } else if (kv->type == BACKEND_KV_F32)
            kv_floats(kv, id, attention->layer, kv_head, &block.keys, &block.values);
        else
            kv_load(kv, kernels, id, attention->layer, kv_head, layout.keys, layout.values);
        meet_block(attention, task, &heads, start, &block, &layout);
    }
    for (uint32_t i = 0; i < task->n_rows * n_heads; i++) {
        const struct running_softmax *softmax = &layout.softmax[i];
        float *out =
            task->out + (size_t)(i / n_heads) * task->out_stride + ((size_t)first_head + i % n_heads) * dim;
        for (uint32_t d = 0; d < dim; d++)
            out[d] = softmax->values[d] / softmax->sum;
    }
}

uint32_t attention_heads_together(uint32_t group, uint32_t n, uint32_t n_threads)
{
    uint32_t best = group;
    uint64_t least = UINT64_MAX;
    for (uint32_t together = group; together > 0; together--) {
        const uint32_t parts = (group + together - 1) / together;
        const uint64_t rounds = ((uint64_t)n * parts + n_threads - 1) / n_threads;
        const uint64_t cost = rounds * (READING + together);
        if (cost < least) {
            least = cost;
            best = together;
        }
    }
    return best;
}
