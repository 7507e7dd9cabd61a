/* SPDX-License-Identifier: MIT */
/* Machines that hwloc is told to see, and this one. */

#include "common/system/topology.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct topology *read_topology(const char *synthetic)
{
    struct topology *topology = NULL;
    struct error err = {0};
    ck_assert_msg(topology_new(synthetic, &topology, &err) == 0, "%s", err.text);
    return topology;
}

static const char *describe(const struct topology *topology)
{
    static char text[512];
    return topology_describe(topology, text, sizeof text);
}

START_TEST(a_machine_with_two_nodes_is_seen_as_it_is)
{
    struct topology *t =
        read_topology("node:2(memory=68719476736) l3:2(size=33554432) l2:4(size=1048576) core:1 pu:2");
    ck_assert_uint_eq(t->n_cores, 16);
    ck_assert_uint_eq(t->n_cpus, 32);
    ck_assert_uint_eq(t->n_nodes, 2);
    for (uint32_t i = 0; i < 2; i++) {
        ck_assert_uint_eq(t->nodes[i].number, i);
        ck_assert_uint_eq(t->nodes[i].n_cores, 8);
        ck_assert_uint_eq(t->nodes[i].bytes, 64ull << 30);
    }
    for (uint32_t i = 0; i < 32; i++) {
        ck_assert_int_eq(t->cpus[i].number, (int)i);
        ck_assert_uint_eq(t->cpus[i].core, i / 2);
        ck_assert_uint_eq(t->cpus[i].sibling, i % 2);
        ck_assert_uint_eq(t->cpus[i].node, i / 16);
    }
    ck_assert_uint_eq(t->l3.n, 4);
    ck_assert_uint_eq(t->l3.bytes, 32u << 20);
    ck_assert_uint_eq(t->l2.n, 16);
    ck_assert_uint_eq(topology_threads(t), 16);
    ck_assert(!t->is_real);
    ck_assert_str_eq(describe(t), "16 cores (32 threads), 2 nodes (128 GiB), L2 16 x 1 MiB, L3 4 x 32 MiB; "
                                  "as configured for hwloc");
    topology_free(t);
}
END_TEST

/* As servers number them: the first thread of every core, then the second, and sockets in turn. */
START_TEST(neighbours_stand_beside_each_other_whatever_their_numbers)
{
    struct topology *t = read_topology("node:2 core:2 pu:2(indexes=0,4,2,6,1,5,3,7)");
    static const int numbers[] = {0, 4, 2, 6, 1, 5, 3, 7};
    ck_assert_uint_eq(t->n_cores, 4);
    for (uint32_t i = 0; i < 8; i++) {
        ck_assert_int_eq(t->cpus[i].number, numbers[i]);
        ck_assert_uint_eq(t->cpus[i].core, i / 2);
        ck_assert_uint_eq(t->cpus[i].node, i / 4);
    }
    topology_free(t);
}
END_TEST

START_TEST(a_machine_without_caches_has_none)
{
    struct topology *t = read_topology("core:3 pu:1");
    ck_assert_uint_eq(t->l3.n + t->l2.n, 0);
    ck_assert_uint_eq(t->l3.bytes + t->l2.bytes, 0);
    ck_assert_uint_eq(t->n_nodes, 1);
    ck_assert_ptr_null(strstr(describe(t), "L3"));
    ck_assert_ptr_nonnull(strstr(describe(t), "3 cores, 1 node"));
    topology_free(t);
    t = read_topology("pu:5"); /* nor cores: each CPU is one */
    ck_assert_uint_eq(t->n_cores, 5);
    ck_assert_uint_eq(t->cpus[4].core, 4);
    topology_free(t);
}
END_TEST

START_TEST(more_nodes_than_there_may_be_share_the_last)
{
    struct topology *t = read_topology("node:100 core:2 pu:1");
    ck_assert_uint_eq(t->n_nodes, TOPOLOGY_MOST_NODES);
    ck_assert_uint_eq(t->n_cores, 200);
    ck_assert_uint_eq(t->nodes[TOPOLOGY_MOST_NODES - 1].n_cores, 2 * (100 - TOPOLOGY_MOST_NODES + 1));
    ck_assert_uint_eq(t->cpus[199].node, TOPOLOGY_MOST_NODES - 1);
    topology_free(t);
}
END_TEST

START_TEST(nonsense_is_refused_and_in_the_environment_passed_over)
{
    struct topology *t = NULL;
    struct error err = {0};
    ck_assert_int_eq(topology_new("core:x garbage", &t, &err), -EINVAL);
    ck_assert_str_eq(err.text, "hwloc rejects the topology \"core:x garbage\"");
    ck_assert_ptr_null(t);
    setenv("HWLOC_SYNTHETIC", ":::", 1);
    t = read_topology(NULL);
    ck_assert(t->is_real);
    topology_free(t);
    setenv("HWLOC_SYNTHETIC", "core:7 pu:1", 1);
    ck_assert_uint_eq(topology_threads_here(), 7);
    unsetenv("HWLOC_SYNTHETIC");
    setenv("HWLOC_XMLFILE", "/etc/passwd", 1);
    t = read_topology(NULL);
    ck_assert(t->is_real);
    topology_free(t);
    unsetenv("HWLOC_XMLFILE");
}
END_TEST

/* The fewest cores of a loop of threads that would stand still for want of time are one. */
START_TEST(a_quota_is_rounded_down_and_leaves_one)
{
    static const uint32_t thousandths[] = {0, 1, 500, 1000, 1999, 2000, 3500, 4000, 64000};
    static const uint32_t threads[] = {4, 1, 1, 1, 1, 2, 3, 4, 4};
    struct topology *t = read_topology("core:4 pu:2");
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        t->quota = (struct cpu_quota){.thousandths = thousandths[i], .by = "control group /p"};
        ck_assert_uint_eq(topology_threads(t), threads[i]);
    }
    t->quota.thousandths = 1500;
    ck_assert_str_eq(describe(t), "4 cores (8 threads), 1 node (1 GiB); control group /p allows 1.5; as "
                                  "configured for hwloc");
    char little[8];
    ck_assert_str_eq(topology_describe(t, little, sizeof little), "4 cores");
    topology_free(t);
}
END_TEST

START_TEST(on_this_machine_affinity_is_respected)
{
    cpu_set_t before, one;
    ck_assert_int_eq(sched_getaffinity(0, sizeof before, &before), 0);
    struct topology *t = read_topology(NULL);
    ck_assert(t->is_real);
    ck_assert_int_eq((int)t->n_cpus, CPU_COUNT(&before));
    for (uint32_t i = 0; i < t->n_cpus; i++)
        ck_assert(CPU_ISSET((size_t)t->cpus[i].number, &before));
    const int last = t->cpus[t->n_cpus - 1].number;
    topology_free(t);

    CPU_ZERO(&one);
    CPU_SET((size_t)last, &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
    t = read_topology(NULL);
    ck_assert_uint_eq(t->n_cpus, 1);
    ck_assert_uint_eq(t->n_cores, 1);
    ck_assert_uint_eq(t->n_nodes, 1);
    ck_assert_int_eq(t->cpus[0].number, last);
    ck_assert_uint_eq(t->cpus[0].sibling, 0);
    ck_assert_uint_eq(topology_threads(t), 1);
    topology_free(t);
    ck_assert_int_eq(sched_setaffinity(0, sizeof before, &before), 0);
}
END_TEST

/* The policy of this thread (get_mempolicy(2)), and the nodes in it; -errno where it cannot be asked. */
static int memory_policy(unsigned long ret_nodes[16])
{
    int mode = -1;
    memset(ret_nodes, 0, 16 * sizeof *ret_nodes);
    long r = syscall(SYS_get_mempolicy, &mode, ret_nodes, 16 * 8 * sizeof *ret_nodes, NULL, 0);
    return r < 0 ? -errno : mode;
}

START_TEST(memory_is_preferred_from_a_node_until_it_is_not)
{
    unsigned long nodes[16];
    struct topology *t = read_topology(NULL);
    if (memory_policy(nodes) == 0 && !t->memory_is_bound) {
        const uint32_t number = t->nodes[0].number;
        topology_prefer_node(t, 0);
        ck_assert_int_gt(memory_policy(nodes), 0);
        ck_assert_uint_ne(nodes[number / (8 * sizeof *nodes)] >> number % (8 * sizeof *nodes) & 1, 0);
        struct topology *bound = read_topology(NULL);
        ck_assert(bound->memory_is_bound);
        topology_free(bound);
        topology_prefer_node(t, TOPOLOGY_ANY_NODE);
        ck_assert_int_eq(memory_policy(nodes), 0);
    }
    topology_free(t);
    t = read_topology("node:2 core:1 pu:1"); /* of which nothing here can come */
    topology_prefer_node(t, 1);
    ck_assert_int_le(memory_policy(nodes), 0);
    topology_free(t);
    ck_assert_ptr_null(topology_free(NULL));
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_machine_with_two_nodes_is_seen_as_it_is);
    tcase_add_test(tests, neighbours_stand_beside_each_other_whatever_their_numbers);
    tcase_add_test(tests, a_machine_without_caches_has_none);
    tcase_add_test(tests, more_nodes_than_there_may_be_share_the_last);
    tcase_add_test(tests, nonsense_is_refused_and_in_the_environment_passed_over);
    tcase_add_test(tests, a_quota_is_rounded_down_and_leaves_one);
    tcase_add_test(tests, on_this_machine_affinity_is_respected);
    tcase_add_test(tests, memory_is_preferred_from_a_node_until_it_is_not);
}

int main(void)
{
    return run_tests("common/topology", add);
}
