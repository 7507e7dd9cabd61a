/* SPDX-License-Identifier: MIT */
/* hwloc's tree, made a list.
 *
 * hwloc is not asked for devices, which it leaves out by itself, nor for anything for which it would move
 * this thread from core to core. What stands between cores and nodes (sockets, dies, groups) is not used, but
 * kept: nodes are found by where they hang. Its logical order follows the machine: threads of a core, cores
 * of a cache, caches of a socket stand beside each other, whatever numbers the kernel gives them. It knows
 * what the control group allows; what this thread's affinity allows is asked for besides.
 *
 * Debian's hwloc looks for plugins, which bring libraries of graphics and XML into the process where they are
 * installed. They are about devices and formats that we do not ask for, so it looks for them where
 * none are. Without them its reader of XML is one that breaks on a file that is not whole (2.9), so no
 * machine is read from a file. */

#include "common/system/topology.h"

#include <errno.h>
#include <hwloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define NO_PLUGINS "/nonexistent"

#define FLAGS                                                                                                \
    (HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING | HWLOC_TOPOLOGY_FLAG_NO_DISTANCES |                            \
     HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS | HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS)

static int load(const char *synthetic, hwloc_topology_t *ret_hwloc, struct error *err)
{
    hwloc_topology_t hwloc = NULL;
    setenv("HWLOC_PLUGINS_PATH", NO_PLUGINS, false);
    unsetenv("HWLOC_XMLFILE");
    if (hwloc_topology_init(&hwloc) < 0)
        return error_set(err, -ENOMEM, "not enough memory for the topology of the machine");
    hwloc_topology_set_flags(hwloc, FLAGS);
    int r = 0;
    if (synthetic && hwloc_topology_set_synthetic(hwloc, synthetic) < 0)
        r = error_set(err, -EINVAL, "hwloc rejects the topology \"%s\"", synthetic);
    if (r == 0 && hwloc_topology_load(hwloc) < 0)
        r = error_set(err, -ENOMEM, "hwloc cannot read the machine's topology");
    if (r < 0)
        hwloc_topology_destroy(hwloc);
    else
        *ret_hwloc = hwloc;
    return r;
}

/* The CPUs that the control group and this thread's affinity allow. */
static hwloc_bitmap_t allowed_cpus(hwloc_topology_t hwloc)
{
    hwloc_const_bitmap_t by_group = hwloc_topology_get_allowed_cpuset(hwloc);
    hwloc_bitmap_t allowed = hwloc_bitmap_alloc();
    if (!allowed)
        return NULL;
    if (hwloc_get_cpubind(hwloc, allowed, HWLOC_CPUBIND_THREAD) < 0)
        hwloc_bitmap_copy(allowed, by_group);
    if (hwloc_bitmap_intersects(allowed, by_group))
        hwloc_bitmap_and(allowed, allowed, by_group);
    return allowed;
}

static uint64_t bytes_of(hwloc_obj_t node)
{
    return node->attr->numanode.local_memory;
}

/* Of the nodes that are near a CPU the largest: memory of another kind may be beside it. Near none that we
 * may use: any. NULL when the machine has none. */
static hwloc_obj_t nearest_node(hwloc_topology_t hwloc, hwloc_obj_t cpu)
{
    hwloc_obj_t best = NULL;
    for (hwloc_obj_t node = NULL; (node = hwloc_get_next_obj_by_type(hwloc, HWLOC_OBJ_NUMANODE, node));)
        if (hwloc_bitmap_isset(cpu->nodeset, node->os_index) && (!best || bytes_of(node) > bytes_of(best)))
            best = node;
    return best ? best : hwloc_get_obj_by_type(hwloc, HWLOC_OBJ_NUMANODE, 0);
}

/* Its index, entered if it is new. Beyond the most there may be, others share the last. */
static uint32_t enter_node(struct topology *topology, hwloc_obj_t node)
{
    const uint32_t number = node ? node->os_index : 0;
    for (uint32_t i = 0; i < topology->n_nodes; i++)
        if (topology->nodes[i].number == number)
            return i;
    if (topology->n_nodes == TOPOLOGY_MOST_NODES)
        return TOPOLOGY_MOST_NODES - 1;
    topology->nodes[topology->n_nodes] =
        (struct topology_node){.number = number, .bytes = node ? bytes_of(node) : 0};
    return topology->n_nodes++;
}

/* Cores are told by hwloc's object; where there are none each CPU is one. */
static void enter_cpus(struct topology *topology, hwloc_topology_t hwloc, hwloc_const_bitmap_t allowed)
{
    hwloc_obj_t last = NULL;
    for (hwloc_obj_t cpu = NULL; (cpu = hwloc_get_next_obj_by_type(hwloc, HWLOC_OBJ_PU, cpu));) {
        if (!hwloc_bitmap_isset(allowed, cpu->os_index))
            continue;
        hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(hwloc, HWLOC_OBJ_CORE, cpu);
        const bool first = !core || core != last;
        struct topology_cpu *entry = &topology->cpus[topology->n_cpus++];
        entry->number = (int)cpu->os_index;
        entry->node = enter_node(topology, nearest_node(hwloc, cpu));
        entry->sibling = first ? 0 : entry[-1].sibling + 1;
        topology->n_cores += first;
        entry->core = topology->n_cores - 1;
        topology->nodes[entry->node].n_cores += first;
        last = core;
    }
}

/* By a policy that this thread has inherited. */
static bool memory_is_bound(hwloc_topology_t hwloc)
{
    hwloc_membind_policy_t policy = HWLOC_MEMBIND_DEFAULT;
    hwloc_bitmap_t nodes = hwloc_bitmap_alloc();
    bool known = nodes && hwloc_get_membind(hwloc, nodes, &policy,
                                            HWLOC_MEMBIND_THREAD | HWLOC_MEMBIND_BYNODESET) == 0;
    hwloc_bitmap_free(nodes);
    return known && policy != HWLOC_MEMBIND_DEFAULT && policy != HWLOC_MEMBIND_FIRSTTOUCH;
}

static struct topology_cache count_caches(hwloc_topology_t hwloc, hwloc_obj_type_t type,
                                          hwloc_const_bitmap_t allowed)
{
    struct topology_cache caches = {0};
    for (hwloc_obj_t cache = NULL; (cache = hwloc_get_next_obj_by_type(hwloc, type, cache));)
        if (hwloc_bitmap_intersects(cache->cpuset, allowed)) {
            const uint64_t bytes = cache->attr->cache.size;
            caches.bytes = caches.n == 0 || bytes < caches.bytes ? bytes : caches.bytes;
            caches.n++;
        }
    return caches;
}

static int fill(struct topology *topology, hwloc_topology_t hwloc)
{
    const int most = hwloc_get_nbobjs_by_type(hwloc, HWLOC_OBJ_PU);
    hwloc_bitmap_t allowed = allowed_cpus(hwloc);
    topology->cpus = calloc(most > 0 ? (size_t)most : 1, sizeof *topology->cpus);
    if (!allowed || !topology->cpus) {
        hwloc_bitmap_free(allowed);
        return -ENOMEM;
    }
    enter_cpus(topology, hwloc, allowed);
    topology->l2 = count_caches(hwloc, HWLOC_OBJ_L2CACHE, allowed);
    topology->l3 = count_caches(hwloc, HWLOC_OBJ_L3CACHE, allowed);
    topology->is_real = hwloc_topology_is_thissystem(hwloc);
    topology->memory_is_bound = topology->is_real && memory_is_bound(hwloc);
    hwloc_bitmap_free(allowed);
    return topology->n_cpus > 0 ? 0 : -ENOMEM; /* hwloc's promise: there is one */
}

int topology_new(const char *synthetic, struct topology **ret_topology, struct error *err)
{
    hwloc_topology_t hwloc = NULL;
    int r = load(synthetic, &hwloc, err);
    if (r < 0)
        return r;
    struct topology *topology = calloc(1, sizeof *topology);
    if (topology)
        topology->hwloc = hwloc;
    else
        hwloc_topology_destroy(hwloc);
    if (!topology || fill(topology, hwloc) < 0) {
        topology_free(topology);
        return error_set(err, -ENOMEM, "not enough memory for the topology of the machine");
    }
    if (!synthetic)
        cpu_quota_read("", &topology->quota);
    *ret_topology = topology;
    return 0;
}

struct topology *topology_free(struct topology *topology)
{
    if (!topology)
        return NULL;
    hwloc_topology_destroy(topology->hwloc);
    free(topology->cpus);
    free(topology);
    return NULL;
}

uint32_t topology_threads(const struct topology *topology)
{
    const uint32_t limit = topology->quota.thousandths / 1000;
    if (topology->quota.thousandths == 0 || limit >= topology->n_cores)
        return topology->n_cores;
    return limit > 0 ? limit : 1;
}

uint32_t topology_threads_here(void)
{
    struct topology *topology;
    if (topology_new(NULL, &topology, NULL) < 0)
        return 1;
    uint32_t n = topology_threads(topology);
    topology_free(topology);
    return n;
}

void topology_prefer_node(const struct topology *topology, uint32_t node)
{
    const int by_node = HWLOC_MEMBIND_THREAD | HWLOC_MEMBIND_BYNODESET;
    hwloc_topology_t hwloc = topology->hwloc;
    if (node == TOPOLOGY_ANY_NODE) {
        hwloc_set_membind(hwloc, hwloc_topology_get_topology_nodeset(hwloc), HWLOC_MEMBIND_DEFAULT, by_node);
        return;
    }
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    if (set && hwloc_bitmap_only(set, topology->nodes[node].number) == 0)
        hwloc_set_membind(hwloc, set, HWLOC_MEMBIND_BIND, by_node);
    hwloc_bitmap_free(set);
}

/* ---- what it says ---- */

static void append(char *text, size_t size, size_t *used, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void append(char *text, size_t size, size_t *used, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text + *used, size - *used, format, args);
    va_end(args);
    if (n > 0)
        *used = *used + (size_t)n < size ? *used + (size_t)n : size - 1;
}

static void append_cache(char *text, size_t size, size_t *used, const char *name,
                         const struct topology_cache *cache)
{
    if (cache->bytes == 0)
        return;
    append(text, size, used, ", %s ", name);
    if (cache->n > 1)
        append(text, size, used, "%u x ", cache->n);
    append(text, size, used, "%.4g MiB", (double)cache->bytes / (1 << 20));
}

/* Bytes of all nodes; 0 when one of them does not tell. */
static uint64_t memory_bytes(const struct topology *topology)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < topology->n_nodes; i++) {
        if (topology->nodes[i].bytes == 0)
            return 0;
        bytes += topology->nodes[i].bytes;
    }
    return bytes;
}

const char *topology_describe(const struct topology *topology, char *text, size_t size)
{
    const uint64_t bytes = memory_bytes(topology);
    size_t used = 0;
    append(text, size, &used, "%u core%s", topology->n_cores, topology->n_cores == 1 ? "" : "s");
    if (topology->n_cpus > topology->n_cores)
        append(text, size, &used, " (%u threads)", topology->n_cpus);
    append(text, size, &used, ", %u node%s", topology->n_nodes, topology->n_nodes == 1 ? "" : "s");
    if (bytes > 0)
        append(text, size, &used, " (%.4g GiB)", (double)bytes / (1 << 30));
    append_cache(text, size, &used, "L2", &topology->l2);
    append_cache(text, size, &used, "L3", &topology->l3);
    if (topology->quota.thousandths > 0)
        append(text, size, &used, "; %s allows %.4g", topology->quota.by, topology->quota.thousandths / 1e3);
    if (!topology->is_real)
        append(text, size, &used, "; as configured for hwloc");
    return text;
}
