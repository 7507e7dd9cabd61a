/* SPDX-License-Identifier: MIT */
#ifndef COMMON_SYSTEM_TOPOLOGY_H
#define COMMON_SYSTEM_TOPOLOGY_H

/* The parts of this machine that a process may use: cores, their hardware threads, caches, and memory nodes
 * (NUMA), as found by hwloc, within the process's affinity and its control groups.
 *
 * hwloc can be made to see another machine (HWLOC_SYNTHETIC, see its manual). Threads cannot be bound to the
 * cores of such a topology, so it is marked. Reading takes about a millisecond; a process that sandboxes
 * itself must read it before. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/system/cpu_quota.h"
#include "common/error.h"

#define TOPOLOGY_MOST_NODES 64
#define TOPOLOGY_ANY_NODE   UINT32_MAX

/* A hardware thread, which the kernel calls a CPU. */
struct topology_cpu {
    int number;       /* the kernel's */
    uint32_t core;    /* 0 … n_cores − 1 */
    uint32_t sibling; /* index within its core, from 0 */
    uint32_t node;    /* index of the node whose memory is nearest */
};

struct topology_node {
    uint32_t number; /* the kernel's */
    uint64_t bytes;  /* of memory; 0: not known */
    uint32_t n_cores;
};

struct topology_cache {
    uint64_t bytes; /* of the smallest; 0: none, or not known */
    uint32_t n;     /* number of these caches for our cores */
};

struct topology {
    struct topology_cpu *cpus;                       /* [n_cpus], core by core, neighbouring cores together */
    uint32_t n_cpus, n_cores;                        /* that this process may use, ≥ 1 */
    struct topology_node nodes[TOPOLOGY_MOST_NODES]; /* [n_nodes ≥ 1] those near its cores */
    uint32_t n_nodes;
    struct topology_cache l2, l3;
    struct cpu_quota quota;
    bool is_real;         /* this machine, not a synthetic one */
    bool memory_is_bound; /* the parent has set the nodes that memory comes from (numactl) */
    void *hwloc;          /* for topology_prefer_node */
};

/* Reads the machine that `synthetic` describes, which has no quota; NULL: this machine, or the one in the
 * environment. Unknown facts are left out: without /sys each CPU is a core, and there is one node. 0,
 * -ENOMEM, or -EINVAL if hwloc rejects the description. */
int topology_new(const char *synthetic, struct topology **ret_topology, struct error *err);
struct topology *topology_free(struct topology *topology);

/* The number of threads that can compute at once without waiting for one another: one per core, within the
 * quota, rounded down. At least 1. */
uint32_t topology_threads(const struct topology *topology);

/* The same for this machine, for callers that need nothing else. */
uint32_t topology_threads_here(void);

/* From now on, memory that the calling thread allocates comes from this node (index), as long as it has some;
 * TOPOLOGY_ANY_NODE: the system chooses. A hint: it is ignored if it cannot be followed. */
void topology_prefer_node(const struct topology *topology, uint32_t node);

/* "16 cores (32 threads), 2 nodes (128 GiB), L2 16 x 1 MiB, L3 4 x 32 MiB; control group /pool allows 1.5",
 * truncated to `size` − 1 bytes, size > 0. Returns `text`. */
const char *topology_describe(const struct topology *topology, char *text, size_t size);

#endif
