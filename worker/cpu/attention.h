/* SPDX-License-Identifier: MIT */
#ifndef WORKER_CPU_ATTENTION_H
#define WORKER_CPU_ATTENTION_H

/* Rotary positions, and attention over the paged cache. */

#include "worker/cpu/kernels.h"
#include "worker/cpu/kv.h"
#include "worker/model/model.h"

/* Most rows that one attention task covers: they share each block's conversion to float. */
#define ATTENTION_TILE 32

/* Frequencies of the rotary pairs, [rope_dims / 2]: base, linear scaling and the file's own factors. */
void rope_frequencies(const struct model_params *params, const float *factors, double *ret_frequencies);

/* Cosine and sine of each pair at a position, [n_pairs][2]. */
void rope_angles(const double *frequencies, uint32_t n_pairs, uint32_t position, float *ret_cos_sin);

/* Turns neighbouring pairs of each head [n_heads][dim], the first n_pairs of a head. */
void rope_turn(float *heads, uint32_t n_heads, uint32_t dim, const float *cos_sin, uint32_t n_pairs);

/* Rows of one sequence at consecutive positions. */
struct attention_task {
    const uint32_t *table; /* its block table */
    uint32_t position;     /* of the first row */
    uint32_t n_rows;       /* ≤ ATTENTION_TILE */
    const float *queries;  /* [rows][query_stride]: [n_heads][dim], scaled by 1 / √dim */
    uint32_t query_stride;
    float *out; /* [rows][out_stride]: [n_heads][dim] */
    uint32_t out_stride;
};

/* Floats of scratch that one thread needs. */
size_t attention_scratch(const struct kv *kv, uint32_t group);

/* One key/value head of a task, for the `group` query heads that share it. */
void attention_run(const struct kv *kv, const struct kernels *kernels, const struct attention_task *task,
                   uint32_t layer, uint32_t kv_head, uint32_t group, float *scratch);

#endif
