/* SPDX-License-Identifier: MIT */
#ifndef CUDA_HOST_GRAPHS_H
#define CUDA_HOST_GRAPHS_H

/* Decoding as recorded graphs: one for each bucket of rows, recorded once and launched for every step of
 * single sampled rows. Positions, ids and tables are on the device, so one recording serves every position
 * and every request. Surplus rows of a bucket are dead (state.h). */

#include "cuda/host/pass.h"

#define GRAPHS_BUCKETS 9
#define GRAPHS_KINDS   2   /* of sampling: with all kernels, or only those for greedy rows */
#define GRAPHS_MOST    256 /* rows of the largest bucket */

struct graphs {
    /* [greedy][bucket]; NULL: not recorded, its work is queued kernel by kernel */
    struct device_graph *graphs[GRAPHS_KINDS][GRAPHS_BUCKETS];
    bool eager;         /* all work is queued kernel by kernel */
    uint32_t refused;   /* rows of the first bucket that the driver refuses to record; 0: none */
    uint32_t n_refused; /* buckets from that one on, which are not all recorded */
    char refusal[160];
};

/* Rows of the smallest bucket that holds n rows, 1 ≤ n ≤ GRAPHS_MOST. */
uint32_t graphs_bucket(uint32_t n);

/* Records the buckets that steps of up to n_slots sets use, unless the driver refuses; with `eager` none. If
 * work can be recorded, tries all other sizes of a step without running them. 0; a fault; the error of a pass
 * that cannot be queued. */
int graphs_init(struct graphs *graphs, const struct pass *pass, struct device_stream *queue, uint32_t n_slots,
                bool eager);
void graphs_deinit(struct graphs *graphs);

/* The recording that n rows use, 1 ≤ n ≤ GRAPHS_MOST; NULL: there is none. */
struct device_graph *graphs_of(const struct graphs *graphs, uint32_t n, bool greedy);

/* Queues a decode of n ≤ GRAPHS_MOST sets of one row, all of them sampled. `greedy`: all are greedy, without
 * log probabilities. 0 or a fault. */
int graphs_decode(const struct graphs *graphs, const struct pass *pass, struct device_stream *queue,
                  uint32_t n, bool greedy);

/* Queues the layers and logits of the same step, launched one by one. */
int graphs_decode_logits(const struct pass *pass, struct device_stream *queue, uint32_t n);

#endif
