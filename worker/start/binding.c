/* SPDX-License-Identifier: MIT */
/* Shares of the machine.
 *
 *     workers < nodes     worker i has nodes i · nodes / workers … : all their cores
 *     workers ≥ nodes     nodes are given out one worker at a time, to the node with most cores for each that
 *                         it would then have; a node's workers divide its cores, in the topology's order
 *
 * so a worker's cores are neighbours, under as few caches of the last level as can be. What does not divide
 * evenly is left to the rest of the pool. */

#include "worker/start/binding.h"

#include <sched.h>
#include <stdbool.h>

/* What one worker has of the machine. */
struct share {
    uint32_t first_node, end_node;
    uint32_t n_sharers, rank; /* workers on these nodes, and which of them it is */
};

static uint64_t all_nodes(const struct topology *topology)
{
    return topology->n_nodes < 64 ? (1ull << topology->n_nodes) - 1 : UINT64_MAX;
}

/* The node that has most cores for each of its workers, one more than it has now. */
static uint32_t roomiest_node(const struct topology *topology, const uint32_t *n_workers)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < topology->n_nodes; i++)
        if ((uint64_t)topology->nodes[i].n_cores * (n_workers[best] + 1) >
            (uint64_t)topology->nodes[best].n_cores * (n_workers[i] + 1))
            best = i;
    return best;
}

static struct share share_of(const struct topology *topology, uint32_t index, uint32_t n)
{
    const uint32_t n_nodes = topology->n_nodes;
    if (n < n_nodes)
        return (struct share){.first_node = (uint32_t)((uint64_t)index * n_nodes / n),
                              .end_node = (uint32_t)((uint64_t)(index + 1) * n_nodes / n),
                              .n_sharers = 1};
    uint32_t n_workers[TOPOLOGY_MOST_NODES] = {0};
    struct share share = {0};
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t node = roomiest_node(topology, n_workers);
        if (i == index)
            share = (struct share){.first_node = node, .end_node = node + 1, .rank = n_workers[node]};
        n_workers[node]++;
    }
    share.n_sharers = n_workers[share.first_node];
    return share;
}

/* What is asked for, or else what there is, within what a team may have. */
static uint32_t threads_of(uint32_t threads, uint32_t n_cores)
{
    const uint32_t n = n_cores < BINDING_MOST_CPUS ? n_cores : BINDING_MOST_CPUS;
    return threads ? threads : n > 0 ? n : 1;
}

/* Takes up to `most` hardware threads, the `sibling`-th of each core from the first … to the end of those
 * that lie on the share's nodes. */
static void take_cpus(const struct topology *topology, const struct share *share, uint32_t first,
                      uint32_t end, uint32_t sibling, uint32_t most, struct binding *binding)
{
    uint32_t nth = 0; /* of the nodes' cores */
    for (uint32_t i = 0; i < topology->n_cpus; i++) {
        const struct topology_cpu *cpu = &topology->cpus[i];
        if (cpu->node < share->first_node || cpu->node >= share->end_node)
            continue;
        nth += cpu->sibling == 0;
        if (cpu->sibling != sibling || nth <= first || nth > end || binding->n_cpus >= most)
            continue;
        binding->cpus[binding->n_cpus++] = cpu->number;
        binding->nodes |= 1ull << cpu->node;
    }
}

static uint32_t most_siblings(const struct topology *topology)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < topology->n_cpus; i++)
        most = topology->cpus[i].sibling > most ? topology->cpus[i].sibling : most;
    return most + 1;
}

/* The cores that fewer threads than a worker's `most` cores choose among: those of its first nodes that have
 * enough together. */
static uint32_t cores_for(const struct topology *topology, const struct share *share, uint32_t threads,
                          uint32_t most)
{
    uint32_t n = 0;
    for (uint32_t i = share->first_node; i < share->end_node && n < threads; i++)
        n += topology->nodes[i].n_cores;
    return n < most ? n : most;
}

/* Whether there is one for each thread, and threads can be bound to them. */
static bool is_complete(const struct binding *binding)
{
    for (uint32_t i = 0; i < binding->n_cpus; i++)
        if (binding->cpus[i] >= CPU_SETSIZE)
            return false;
    return binding->n_cpus >= binding->n_threads;
}

static void unbind(const struct topology *topology, struct binding *binding)
{
    binding->n_cpus = 0;
    binding->nodes = all_nodes(topology);
}

void binding_decide(const struct topology *topology, uint32_t index, uint32_t n, uint32_t threads,
                    struct binding *ret_binding)
{
    struct binding *binding = ret_binding;
    const uint32_t usable = topology_threads(topology);
    *binding = (struct binding){0};
    if (usable < topology->n_cores) {
        binding->n_threads = threads_of(threads, usable / n);
        unbind(topology, binding);
        return;
    }
    const struct share share = share_of(topology, index % n, n);
    uint32_t n_cores = 0;
    for (uint32_t i = share.first_node; i < share.end_node; i++)
        n_cores += topology->nodes[i].n_cores;
    const uint32_t each = n_cores / share.n_sharers, first = share.rank * each;
    binding->n_threads = threads_of(threads, each);
    const uint32_t wanted = binding->n_threads < each ? cores_for(topology, &share, binding->n_threads, each)
                                                      : binding->n_threads;
    const uint32_t most = wanted < BINDING_MOST_CPUS ? wanted : BINDING_MOST_CPUS;
    for (uint32_t sibling = 0; sibling < most_siblings(topology); sibling++)
        take_cpus(topology, &share, first, first + each, sibling, most, binding);
    if (!is_complete(binding))
        unbind(topology, binding);
}

void binding_decide_free(const struct topology *topology, uint32_t threads, struct binding *ret_binding)
{
    *ret_binding = (struct binding){.n_threads = threads_of(threads, topology_threads(topology))};
    unbind(topology, ret_binding);
}

/* ---- weights ---- */

/* Adds a copy of the weights on these nodes. False: too much would be on one of them. */
static bool add_copy(const struct topology *topology, uint64_t nodes, uint64_t bytes, uint64_t *on_node)
{
    const uint64_t part = bytes / (uint64_t)__builtin_popcountll(nodes);
    bool fits = true;
    for (uint32_t i = 0; i < topology->n_nodes; i++)
        if (nodes >> i & 1) {
            on_node[i] += part;
            fits &= topology->nodes[i].bytes == 0 || on_node[i] <= topology->nodes[i].bytes / 2;
        }
    return fits;
}

void binding_place_weights(const struct topology *topology, const struct binding *binding, uint32_t n,
                           uint32_t threads, uint64_t bytes, uint64_t total,
                           struct binding_weights *ret_weights)
{
    uint64_t places[TOPOLOGY_MOST_NODES + 1] = {binding->nodes}, on_node[TOPOLOGY_MOST_NODES] = {0};
    uint32_t n_places = 1;
    *ret_weights = (struct binding_weights){.n_copies = 1};
    if (topology->n_nodes < 2 || topology->memory_is_bound)
        return;
    bool fits = add_copy(topology, binding->nodes, bytes, on_node);
    for (uint32_t i = 0; i < n && fits; i++) {
        struct binding other;
        uint32_t p = 0;
        binding_decide(topology, i, n, threads, &other);
        while (p < n_places && places[p] != other.nodes)
            p++;
        if (p < n_places)
            continue;
        fits = n_places <= TOPOLOGY_MOST_NODES && add_copy(topology, other.nodes, bytes, on_node);
        if (fits)
            places[n_places++] = other.nodes;
    }
    fits = fits && bytes <= total / 2 / n_places;
    ret_weights->nodes = fits ? binding->nodes : all_nodes(topology);
    ret_weights->n_copies = fits ? n_places : 1;
}
