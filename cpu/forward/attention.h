/* SPDX-License-Identifier: MIT */
#ifndef CPU_FORWARD_ATTENTION_H
#define CPU_FORWARD_ATTENTION_H

/* Attention over the paged cache. */

#include "cpu/kernels/kernels.h"
#include "cpu/memory/kv.h"

/* Most rows of one attention task; they share each block's conversion to float. */
#define ATTENTION_TILE 32

/* Rows of one sequence at consecutive positions. */
struct attention_task {
    uint32_t *const *tables; /* its block tables, one per KV group */
    uint32_t position;       /* of the first row */
    uint32_t n_rows;         /* ≤ ATTENTION_TILE */
    const float *queries;    /* [rows][query_stride]: [n_heads][dim], already scaled */
    uint32_t query_stride;
    float *out; /* [rows][out_stride]: [n_heads][dim] */
    uint32_t out_stride;
};

/* Floats of scratch that a thread needs for a layer with `group` query heads per key/value head. */
size_t attention_scratch(const struct kv_layer *layer, uint32_t group);

/* The parameters of a layer's attention. */
struct attention {
    const struct kv *kv;
    const struct kernels *kernels;
    uint32_t layer;
    uint32_t group;     /* query heads that share a key/value head */
    uint32_t window;    /* positions that a row sees, including its own; 0: all */
    float cap;          /* of scores; 0: none */
    const float *sinks; /* [n_heads], for each head a score without a position; NULL: none */
};

/* Query heads first_head … first_head + n_heads − 1 of a task, all of one key/value head. The result of a
 * head does not depend on the others in the call. */
void attention_run(const struct attention *attention, const struct attention_task *task, uint32_t first_head,
                   uint32_t n_heads, float *scratch);

/* How many query heads to compute together so that `n_threads` finish soonest: the whole group of a key/value
 * head, which is then read and converted once, unless n (tasks times key/value heads) is too small to occupy
 * the threads. */
uint32_t attention_heads_together(uint32_t group, uint32_t n, uint32_t n_threads);

#endif
