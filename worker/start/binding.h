/* SPDX-License-Identifier: MIT */
#ifndef WORKER_START_BINDING_H
#define WORKER_START_BINDING_H

/* Decides which cores a worker uses, and which memory nodes hold its weights. The decision depends only on
 * the topology and the worker's number on this machine, so the decisions of all workers are consistent. It
 * binds nothing itself. */

#include <stdint.h>

#include "common/system/topology.h"

#define BINDING_MOST_CPUS 1024

struct binding {
    uint32_t n_threads;          /* ≥ 1; no more than BINDING_MOST_CPUS unless more are requested */
    uint32_t n_cpus;             /* n_threads: thread i is bound to cpus[i]; more: each to all; 0: unbound */
    int cpus[BINDING_MOST_CPUS]; /* the kernel's numbers */
    uint64_t nodes;              /* near these cores, or all: one bit per node of the topology */
};

/* For worker `index` of the `n` that share the machine; `threads` 0: as many as it has cores.
 *
 * If there is at least one node per worker, its cores are on those nodes; else the workers of a node divide
 * its cores. A core gets one thread, unless more threads are requested than the worker has cores. Threads are
 * bound if each can have a hardware thread to itself and no CPU quota is below the number of cores. With such
 * a quota the system chooses the cores, because pools in other control groups would choose the same ones. If
 * fewer threads are requested than the worker has cores, it chooses among those of as few nodes as have
 * enough, because other pools of this machine would choose the same ones, too. */
void binding_decide(const struct topology *topology, uint32_t index, uint32_t n, uint32_t threads,
                    struct binding *ret_binding);

/* For a worker that does not know how many share the machine: one thread per core, none bound. */
void binding_decide_free(const struct topology *topology, uint32_t threads, struct binding *ret_binding);

/* Where to place the pages of weights. */
struct binding_weights {
    uint64_t nodes;    /* spread evenly over these; 0: wherever the system chooses */
    uint32_t n_copies; /* of the weights on this machine, when all workers have loaded */
};

/* Places `bytes` of weights for a worker with this binding, one of `n` with the same `threads`. All threads
 * together read all weights in every step, claiming rows as they go; so with threads on several nodes no row
 * has a nearest node, and interleaved pages use all memory channels. Workers on their own nodes each have a
 * copy there, if all copies take at most half of each node and of the `total` bytes that the workers may use;
 * else one interleaved copy serves all. There is no choice on one node, or if memory is already bound. */
void binding_place_weights(const struct topology *topology, const struct binding *binding, uint32_t n,
                           uint32_t threads, uint64_t bytes, uint64_t total,
                           struct binding_weights *ret_weights);

#endif
