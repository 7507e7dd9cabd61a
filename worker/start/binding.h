/* SPDX-License-Identifier: MIT */
#ifndef WORKER_START_BINDING_H
#define WORKER_START_BINDING_H

/* Which cores a worker computes on, and on which nodes of memory its weights lie. Decided from a topology and
 * from the worker's place among those of this machine alone, so all of them come to decisions that go
 * together. Nothing is bound here. */

#include <stdint.h>

#include "common/system/topology.h"

#define BINDING_MOST_CPUS 1024

struct binding {
    uint32_t n_threads;          /* ≥ 1; no more than BINDING_MOST_CPUS unless more are asked for */
    uint32_t n_cpus;             /* n_threads: thread i is bound to cpus[i]; 0: none is bound */
    int cpus[BINDING_MOST_CPUS]; /* the kernel's numbers */
    uint64_t nodes;              /* near these cores, or all: a bit for each of the topology's nodes */
};

/* For worker `index` of the `n` that share the machine; `threads` 0: as many as it has cores.
 *
 * Where there is a node or several for each worker, its cores are all on them; else each node has the workers
 * that its cores are enough for, which divide them. A core has one thread, unless more threads are asked for
 * than the worker has cores. Threads are bound as long as each has a hardware thread to itself. They are not
 * under a quota below the number of cores: which cores, is then for the system to say, since pools in other
 * control groups would come to the same ones. */
void binding_decide(const struct topology *topology, uint32_t index, uint32_t n, uint32_t threads,
                    struct binding *ret_binding);

/* For a worker that is not told with how many it shares the machine: one thread a core, none bound. */
void binding_decide_free(const struct topology *topology, uint32_t threads, struct binding *ret_binding);

/* Where the pages of weights are to lie. */
struct binding_weights {
    uint64_t nodes;    /* spread evenly over these; 0: wherever the system likes */
    uint32_t n_copies; /* of the weights on this machine, when all workers have theirs */
};

/* Of `bytes` of weights, for a worker with this binding, one of `n` with the same `threads`. Every thread
 * reads all weights at every step, and takes the next rows that nobody has taken; so with threads on several
 * nodes no row has a nearest one, and pages in turn from each make use of all memory channels. Workers on
 * nodes of their own have each a copy there, as long as all copies take at most half of each node, and of the
 * `total` bytes that the workers may use; else one copy on all nodes serves all. On one node there is no
 * choice, and none where memory is bound already. */
void binding_place_weights(const struct topology *topology, const struct binding *binding, uint32_t n,
                           uint32_t threads, uint64_t bytes, uint64_t total,
                           struct binding_weights *ret_weights);

#endif
