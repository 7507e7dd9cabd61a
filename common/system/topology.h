/* SPDX-License-Identifier: MIT */
#ifndef COMMON_SYSTEM_TOPOLOGY_H
#define COMMON_SYSTEM_TOPOLOGY_H

/* What of this machine a process may use: cores, their hardware threads, caches, and nodes of memory (NUMA),
 * as hwloc finds them, within the process's affinity and its control groups.
 *
 * hwloc can be told to see another machine, as its manual describes (HWLOC_SYNTHETIC). Threads cannot be
 * bound to the cores of such a topology, so it is marked. Reading takes about a millisecond; a process that
 * sandboxes itself reads it first. */

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
    uint32_t sibling; /* which of its core, from 0 */
    uint32_t node;    /* index of the node whose memory is nearest */
};

struct topology_node {
    uint32_t number; /* the kernel's */
    uint64_t bytes;  /* of its memory; 0: not known */
    uint32_t n_cores;
};

struct topology_cache {
    uint64_t bytes; /* of the smallest; 0: there is none, or it is not known */
    uint32_t n;     /* how many our cores have between them */
};

struct topology {
    struct topology_cpu *cpus; /* [n_cpus] of core after core, neighbours beside each other */
    uint32_t n_cpus, n_cores;  /* that we may use, ≥ 1 */
    struct topology_node nodes[TOPOLOGY_MOST_NODES]; /* [n_nodes ≥ 1] those near our cores */
    uint32_t n_nodes;
    struct topology_cache l2, l3;
    struct cpu_quota quota;
    bool is_real;         /* this machine, and not one that hwloc was told to see */
    bool memory_is_bound; /* the parent has set the nodes that memory comes from (numactl) */
    void *hwloc;          /* what topology_prefer_node needs */
};

/* Reads the machine, or the one that `synthetic` describes, which then has no quota; NULL: this one, or what
 * the environment says. What cannot be found out is left out: without /sys each CPU is a core, and there is
 * one node. A description that hwloc does not take is -EINVAL; else it is 0 or -ENOMEM. */
int topology_new(const char *synthetic, struct topology **ret_topology, struct error *err);
struct topology *topology_free(struct topology *topology);

/* As many threads as can compute at once without one waiting for the other: one for each core, within the
 * quota, rounded down. At least 1. */
uint32_t topology_threads(const struct topology *topology);

/* The same for this machine, for callers that need nothing else. */
uint32_t topology_threads_here(void);

/* Memory that the calling thread gets from now on comes from this node (index), as long as it has some;
 * TOPOLOGY_ANY_NODE: as the system likes. A hint: it is ignored where it cannot be followed. */
void topology_prefer_node(const struct topology *topology, uint32_t node);

/* "16 cores (32 threads), 2 nodes (128 GiB), L2 16 x 1 MiB, L3 4 x 32 MiB; control group /pool allows 1.5",
 * at most `size` − 1 bytes of it, size > 0. Returns text. */
const char *topology_describe(const struct topology *topology, char *text, size_t size);

#endif
