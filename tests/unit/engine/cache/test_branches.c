/* SPDX-License-Identifier: MIT */
/* The order of nodes beside a list that is searched from end to end. */

#include "tests/unit/run.h"
#include "engine/cache/branches.h"

#include <stdlib.h>
#include <string.h>

#define T     BACKEND_BLOCK_TOKENS
#define NODES 300

struct listed {
    uint64_t parent;
    uint32_t n_ids; /* 0: it is not in */
};

static int32_t ids[NODES][T];
static struct listed listed[NODES];

/* The longest beginning in common with the list. */
static uint32_t longest(uint64_t parent, const int32_t *wanted, uint32_t n)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < NODES; i++) {
        uint32_t same = 0;
        while (listed[i].parent == parent && same < listed[i].n_ids && same < n &&
               ids[i][same] == wanted[same])
            same++;
        most = same > most ? same : most;
    }
    return most;
}

static void draw(int32_t *to, int letters)
{
    for (uint32_t i = 0; i < T; i++)
        to[i] = (rand() % letters) * 0x01020304 - 7; /* negative ones too, and all bytes of an id */
}

/* Ids of few kinds, so that many begin alike, and as many equal ones as there may be. */
START_TEST(the_longest_beginning_is_found_whatever_comes_and_goes)
{
    static const int letters[] = {1, 2, 40};
    struct branches *branches;
    int32_t wanted[T];
    uint32_t common, long_ones = 0;
    srand(11);
    memset(listed, 0, sizeof listed);
    ck_assert_int_eq(branches_new(NODES, (const int32_t(*)[T])ids, &branches), 0);
    for (int turn = 0; turn < 100000; turn++) {
        const uint32_t node = (uint32_t)(rand() % NODES);
        ck_assert_uint_eq(branches_has(branches, node), listed[node].n_ids > 0);
        if (listed[node].n_ids > 0) {
            branches_remove(branches, node);
            listed[node].n_ids = 0;
        } else {
            draw(ids[node], letters[_i]);
            listed[node] = (struct listed){1 + (uint64_t)(rand() % 3), 1 + (uint32_t)(rand() % T)};
            branches_add(branches, node, listed[node].parent, listed[node].n_ids);
        }
        branches_remove(branches, (node + 1) % NODES);
        listed[(node + 1) % NODES].n_ids = 0;
        draw(wanted, letters[_i]);
        const uint64_t parent = 1 + (uint64_t)(rand() % 4);
        const uint32_t n = 1 + (uint32_t)(rand() % T);
        const uint32_t found = branches_find(branches, parent, wanted, n, &common);
        ck_assert_uint_eq(common, longest(parent, wanted, n));
        ck_assert_uint_eq(found == BRANCHES_NONE, common == 0);
        if (common > 0) {
            ck_assert_uint_eq(listed[found].parent, parent);
            ck_assert_uint_ge(listed[found].n_ids, common);
            ck_assert_mem_eq(ids[found], wanted, common * sizeof *wanted);
        }
        long_ones += common > 4;
    }
    ck_assert(_i == 2 || long_ones > 1000);
    branches_free(branches);
}
END_TEST

/* In any order of numbers and ids a search is short: it would take minutes if the tree were a list. */
START_TEST(no_order_of_ids_makes_it_deep)
{
    enum { MANY = 200000 };
    struct branches *branches;
    int32_t(*many)[T] = calloc(MANY, sizeof *many);
    uint32_t common;
    ck_assert_int_eq(branches_new(MANY, (const int32_t(*)[T])many, &branches), 0);
    for (uint32_t i = 0; i < MANY; i++) {
        for (uint32_t j = 0; j < T; j++) /* ascending in the order of bytes, or descending */
            many[i][j] = j < 24 ? 5 : (int32_t)__builtin_bswap32(_i ? MANY - i : i);
        branches_add(branches, i, 1, T);
    }
    for (uint32_t i = 0; i < MANY; i++) {
        ck_assert_uint_eq(branches_find(branches, 1, many[i], T, &common), i);
        ck_assert_uint_eq(common, T);
    }
    for (uint32_t i = 0; i < MANY; i++)
        branches_remove(branches, _i ? MANY - 1 - i : i);
    ck_assert_uint_eq(branches_find(branches, 1, many[0], T, &common), BRANCHES_NONE);
    branches_free(branches);
    free(many);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, the_longest_beginning_is_found_whatever_comes_and_goes, 0, 3);
    tcase_add_loop_test(tests, no_order_of_ids_makes_it_deep, 0, 2);
}

int main(void)
{
    return run_tests("branches", add);
}
