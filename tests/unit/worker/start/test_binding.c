/* SPDX-License-Identifier: MIT */
/* What workers get of machines that hwloc is told to see. */

#include "worker/start/binding.h"
#include "tests/unit/run.h"

#include <string.h>

#define GB (1ull << 30)

/* CPU numbers as servers have them: sockets in turn, second threads behind all first ones. */
#define TWO_NODES                                                                                            \
    "node:2(memory=68719476736) l3:2(size=33554432) core:2 pu:2"                                             \
    "(indexes=0,8,2,10,4,12,6,14,1,9,3,11,5,13,7,15)"

static struct topology *machine(const char *synthetic)
{
    struct topology *topology = NULL;
    struct error err = {0};
    ck_assert_msg(topology_new(synthetic, &topology, &err) == 0, "%s", err.text);
    return topology;
}

/* "2: 0,2 on 1": threads, their CPUs, nodes. */
static const char *decided(const struct topology *t, uint32_t index, uint32_t n, uint32_t threads)
{
    static char text[4096];
    struct binding binding;
    binding_decide(t, index, n, threads, &binding);
    int used = snprintf(text, sizeof text, "%u:", binding.n_threads);
    for (uint32_t i = 0; i < binding.n_cpus; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%s%d", i ? "," : " ", binding.cpus[i]);
    snprintf(text + used, sizeof text - (size_t)used, " on %llx", (unsigned long long)binding.nodes);
    return text;
}

START_TEST(workers_share_the_cores_without_overlap)
{
    struct topology *t = machine("core:5 pu:1");
    ck_assert_str_eq(decided(t, 0, 1, 0), "5: 0,1,2,3,4 on 1");
    ck_assert_str_eq(decided(t, 0, 2, 0), "2: 0,1 on 1");
    ck_assert_str_eq(decided(t, 1, 2, 0), "2: 2,3 on 1");
    topology_free(t);
}
END_TEST

START_TEST(too_many_workers_get_one_thread_and_no_core_of_their_own)
{
    struct topology *t = machine("core:5 pu:1");
    ck_assert_str_eq(decided(t, 6, 7, 0), "1: on 1");
    topology_free(t);
    t = machine("node:2 core:2 pu:1");
    ck_assert_str_eq(decided(t, 0, 9, 0), "1: on 3");
    topology_free(t);
}
END_TEST

START_TEST(threads_asked_for_are_given_and_bound_only_if_they_fit)
{
    struct topology *t = machine("core:5 pu:1");
    ck_assert_str_eq(decided(t, 1, 2, 1), "1: 2,3 on 1");
    ck_assert_str_eq(decided(t, 1, 2, 3), "3: on 1");
    ck_assert_str_eq(decided(t, 0, 1, 1024), "1024: on 1");
    topology_free(t);
}
END_TEST

/* Another pool would take the same of them. */
START_TEST(fewer_threads_than_cores_choose_among_those_of_few_nodes)
{
    struct topology *t = machine("node:3 core:2 pu:2");
    ck_assert_str_eq(decided(t, 0, 1, 1), "1: 0,2 on 1");
    ck_assert_str_eq(decided(t, 0, 1, 3), "3: 0,2,4,6 on 3");
    ck_assert_str_eq(decided(t, 0, 1, 5), "5: 0,2,4,6,8,10 on 7");
    ck_assert_str_eq(decided(t, 1, 2, 1), "1: 4,6 on 2");
    ck_assert_str_eq(decided(t, 3, 4, 1), "1: 2 on 1");
    topology_free(t);
}
END_TEST

START_TEST(a_core_has_one_thread_unless_more_are_asked_for)
{
    struct topology *t = machine("core:2 pu:2(indexes=0,2,1,3)");
    ck_assert_str_eq(decided(t, 0, 1, 0), "2: 0,1 on 1");
    ck_assert_str_eq(decided(t, 0, 1, 3), "3: 0,1,2 on 1");
    ck_assert_str_eq(decided(t, 0, 1, 4), "4: 0,1,2,3 on 1");
    ck_assert_str_eq(decided(t, 0, 1, 5), "5: on 1");
    ck_assert_str_eq(decided(t, 1, 2, 0), "1: 1 on 1");
    ck_assert_str_eq(decided(t, 1, 2, 2), "2: 1,3 on 1");
    topology_free(t);
    t = machine("core:1030 pu:2");
    struct binding b;
    binding_decide(t, 0, 1, 0, &b);
    ck_assert(b.n_threads == BINDING_MOST_CPUS && (b.n_cpus == 0 || b.n_cpus == BINDING_MOST_CPUS));
    binding_decide_free(t, 0, &b);
    ck_assert(b.n_threads == BINDING_MOST_CPUS && b.n_cpus == 0);
    topology_free(t);
}
END_TEST

START_TEST(workers_are_dealt_to_nodes)
{
    struct topology *t = machine(TWO_NODES);
    ck_assert_str_eq(decided(t, 0, 1, 0), "8: 0,2,4,6,1,3,5,7 on 3");
    ck_assert_str_eq(decided(t, 0, 2, 0), "4: 0,2,4,6 on 1");
    ck_assert_str_eq(decided(t, 1, 2, 0), "4: 1,3,5,7 on 2");
    ck_assert_str_eq(decided(t, 0, 3, 0), "2: 0,2 on 1");
    ck_assert_str_eq(decided(t, 1, 3, 0), "4: 1,3,5,7 on 2");
    ck_assert_str_eq(decided(t, 2, 3, 0), "2: 4,6 on 1");
    ck_assert_str_eq(decided(t, 3, 4, 0), "2: 5,7 on 2");
    ck_assert_str_eq(decided(t, 0, 1, 3), "3: 0,2,4,6 on 1"); /* few threads are near each other */
    ck_assert_str_eq(decided(t, 1, 2, 8), "8: 1,3,5,7,9,11,13,15 on 2");
    ck_assert_str_eq(decided(t, 5, 2, 0), "4: 1,3,5,7 on 2"); /* a place is never beyond the workers */
    topology_free(t);
}
END_TEST

START_TEST(few_workers_have_several_nodes_each)
{
    struct topology *t = machine("node:4 core:2 pu:1");
    ck_assert_str_eq(decided(t, 0, 2, 0), "4: 0,1,2,3 on 3");
    ck_assert_str_eq(decided(t, 1, 2, 0), "4: 4,5,6,7 on c");
    ck_assert_str_eq(decided(t, 0, 3, 0), "2: 0,1 on 1");
    ck_assert_str_eq(decided(t, 2, 3, 0), "4: 4,5,6,7 on c");
    topology_free(t);
}
END_TEST

/* Affinity has left two cores of the first node and four of the second. */
START_TEST(nodes_with_few_cores_get_few_workers)
{
    struct topology *t = machine("node:2 core:4 pu:1");
    memmove(&t->cpus[2], &t->cpus[4], 4 * sizeof *t->cpus);
    t->n_cpus = t->n_cores = 6;
    t->nodes[0].n_cores = 2;
    ck_assert_str_eq(decided(t, 0, 2, 0), "4: 4,5,6,7 on 2");
    ck_assert_str_eq(decided(t, 1, 2, 0), "2: 0,1 on 1");
    ck_assert_str_eq(decided(t, 2, 3, 0), "2: 6,7 on 2");
    topology_free(t);
}
END_TEST

START_TEST(under_a_quota_fewer_threads_run_and_none_is_bound)
{
    struct topology *t = machine(TWO_NODES);
    t->quota.thousandths = 5500;
    ck_assert_str_eq(decided(t, 0, 1, 0), "5: on 3");
    ck_assert_str_eq(decided(t, 1, 2, 0), "2: on 3");
    ck_assert_str_eq(decided(t, 6, 7, 0), "1: on 3");
    ck_assert_str_eq(decided(t, 0, 1, 8), "8: on 3");
    t->quota.thousandths = 8000; /* of all that there is */
    ck_assert_str_eq(decided(t, 1, 2, 0), "4: 1,3,5,7 on 2");
    topology_free(t);
}
END_TEST

/* Whatever the machine and however many workers: nobody has a core of another's, nor one that is not there.
 */
START_TEST(no_hardware_thread_is_given_twice)
{
    static const char *const machines[] = {"core:1 pu:1",        "core:7 pu:2",
                                           "node:2 core:3 pu:2", "node:3 core:5 pu:1",
                                           "node:8 core:8 pu:4", "node:100 core:1 pu:1"};
    for (size_t m = 0; m < sizeof machines / sizeof *machines; m++) {
        struct topology *t = machine(machines[m]);
        for (uint32_t n = 1; n <= 20; n++)
            for (uint32_t threads = 0; threads < 10; threads++) {
                bool taken[1024] = {0};
                for (uint32_t i = 0; i < n; i++) {
                    struct binding b;
                    binding_decide(t, i, n, threads, &b);
                    ck_assert_uint_ge(b.n_threads, 1);
                    ck_assert(threads == 0 || b.n_threads == threads);
                    ck_assert(b.n_cpus == 0 || b.n_cpus >= b.n_threads);
                    ck_assert_uint_ne(b.nodes, 0);
                    for (uint32_t c = 0; c < b.n_cpus; c++) {
                        ck_assert(b.cpus[c] >= 0 && b.cpus[c] < (int)t->n_cpus && !taken[b.cpus[c]]);
                        taken[b.cpus[c]] = true;
                    }
                }
            }
        topology_free(t);
    }
}
END_TEST

START_TEST(who_is_told_nothing_is_not_bound)
{
    struct topology *t = machine(TWO_NODES);
    struct binding b;
    binding_decide_free(t, 0, &b);
    ck_assert(b.n_threads == 8 && b.n_cpus == 0 && b.nodes == 3);
    binding_decide_free(t, 3, &b);
    ck_assert(b.n_threads == 3 && b.n_cpus == 0);
    topology_free(t);
}
END_TEST

static struct binding_weights placed(const struct topology *t, uint32_t index, uint32_t n, uint32_t threads,
                                     uint64_t bytes, uint64_t total)
{
    struct binding binding;
    struct binding_weights weights;
    binding_decide(t, index, n, threads, &binding);
    binding_place_weights(t, &binding, n, threads, bytes, total, &weights);
    return weights;
}

static void check_placed(struct binding_weights weights, uint64_t nodes, uint32_t n_copies)
{
    ck_assert_uint_eq(weights.nodes, nodes);
    ck_assert_uint_eq(weights.n_copies, n_copies);
}

START_TEST(on_one_node_weights_lie_anywhere)
{
    struct topology *t = machine("core:8 pu:2");
    for (uint32_t n = 1; n < 4; n++)
        check_placed(placed(t, n - 1, n, 0, GB, 64 * GB), 0, 1);
    topology_free(t);
}
END_TEST

START_TEST(workers_of_different_nodes_have_a_copy_each_if_there_is_room)
{
    struct topology *t = machine(TWO_NODES); /* of 64 GiB each */
    check_placed(placed(t, 0, 2, 0, 10 * GB, 128 * GB), 1, 2);
    check_placed(placed(t, 1, 2, 0, 10 * GB, 128 * GB), 2, 2);
    check_placed(placed(t, 2, 3, 0, 10 * GB, 128 * GB), 1, 2); /* with worker 0 */
    check_placed(placed(t, 0, 2, 0, 32 * GB, 128 * GB), 1, 2);
    check_placed(placed(t, 0, 2, 0, 33 * GB, 1024 * GB), 3, 1); /* half a node is not enough */
    check_placed(placed(t, 1, 2, 0, 33 * GB, 1024 * GB), 3, 1);
    check_placed(placed(t, 0, 2, 0, 10 * GB, 39 * GB), 3, 1); /* a control group has less */
    topology_free(t);
}
END_TEST

START_TEST(a_worker_on_several_nodes_has_its_weights_on_all_of_them)
{
    struct topology *t = machine(TWO_NODES);
    check_placed(placed(t, 0, 1, 0, 10 * GB, 128 * GB), 3, 1);
    check_placed(placed(t, 0, 1, 0, 500 * GB, 128 * GB), 3, 1);
    check_placed(placed(t, 0, 1, 3, 10 * GB, 128 * GB), 1, 1); /* few threads, on one node */
    t->quota.thousandths = 2000;
    check_placed(placed(t, 1, 2, 0, 10 * GB, 128 * GB), 3, 1); /* not bound */
    topology_free(t);
    t = machine("node:4 core:2 pu:1");
    check_placed(placed(t, 1, 2, 0, GB / 2, 64 * GB), 12, 2);
    t->memory_is_bound = true;
    check_placed(placed(t, 1, 2, 0, GB / 2, 64 * GB), 0, 1);
    topology_free(t);
}
END_TEST

/* Or one would wait for a segment that the other never makes, and memory would be counted wrongly. */
START_TEST(all_workers_agree_on_the_number_of_copies)
{
    struct topology *t = machine("node:3(memory=17179869184) core:4 pu:2");
    for (uint32_t n = 1; n < 8; n++)
        for (uint64_t bytes = GB; bytes < 40 * GB; bytes += GB) {
            const struct binding_weights first = placed(t, 0, n, 0, bytes, 48 * GB);
            uint64_t seen[8];
            uint32_t n_seen = 0;
            for (uint32_t i = 0; i < n; i++) {
                const struct binding_weights own = placed(t, i, n, 0, bytes, 48 * GB);
                uint32_t s = 0;
                ck_assert_uint_eq(own.n_copies, first.n_copies);
                while (s < n_seen && seen[s] != own.nodes)
                    s++;
                if (s == n_seen)
                    seen[n_seen++] = own.nodes;
            }
            ck_assert_uint_eq(n_seen, first.n_copies);
        }
    topology_free(t);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, workers_share_the_cores_without_overlap);
    tcase_add_test(tests, too_many_workers_get_one_thread_and_no_core_of_their_own);
    tcase_add_test(tests, threads_asked_for_are_given_and_bound_only_if_they_fit);
    tcase_add_test(tests, fewer_threads_than_cores_choose_among_those_of_few_nodes);
    tcase_add_test(tests, a_core_has_one_thread_unless_more_are_asked_for);
    tcase_add_test(tests, workers_are_dealt_to_nodes);
    tcase_add_test(tests, few_workers_have_several_nodes_each);
    tcase_add_test(tests, nodes_with_few_cores_get_few_workers);
    tcase_add_test(tests, under_a_quota_fewer_threads_run_and_none_is_bound);
    tcase_add_test(tests, no_hardware_thread_is_given_twice);
    tcase_add_test(tests, who_is_told_nothing_is_not_bound);
    tcase_add_test(tests, on_one_node_weights_lie_anywhere);
    tcase_add_test(tests, workers_of_different_nodes_have_a_copy_each_if_there_is_room);
    tcase_add_test(tests, a_worker_on_several_nodes_has_its_weights_on_all_of_them);
    tcase_add_test(tests, all_workers_agree_on_the_number_of_copies);
}

int main(void)
{
    return run_tests("worker/binding", add);
}
