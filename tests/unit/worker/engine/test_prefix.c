/* SPDX-License-Identifier: MIT */
/* The prefix cache alone, and beside a model of it that is a list. */

#include "tests/unit/run.h"
#include "worker/engine/backend.h"
#include "worker/engine/prefix.h"

#include <stdlib.h>
#include <string.h>

#define T BACKEND_BLOCK_TOKENS

struct rig {
    struct blocks *blocks;
    struct prefix *prefix;
    uint64_t space;
};

static void set_up(struct rig *rig, uint32_t n_blocks, uint32_t most)
{
    ck_assert_int_eq(blocks_new(n_blocks, &rig->blocks), 0);
    ck_assert_int_eq(prefix_new(rig->blocks, most, &rig->prefix), 0);
    rig->space = prefix_enter(rig->prefix, BYTES_LITERAL(""));
    ck_assert_uint_ne(rig->space, 0);
}

static void tear_down(struct rig *rig)
{
    prefix_leave(rig->prefix, rig->space);
    prefix_free(rig->prefix);
    blocks_free(rig->blocks);
}

/* n blocks of ids, each block all of one id. */
static void ids_of(const char *pattern, int32_t *ids)
{
    for (size_t i = 0; pattern[i]; i++)
        for (int j = 0; j < T; j++)
            ids[i * T + (size_t)j] = pattern[i];
}

/* A sequence that computes `pattern` and goes away. */
static void run(struct rig *rig, const char *pattern)
{
    int32_t ids[64 * T];
    uint32_t table[64], n = (uint32_t)strlen(pattern);
    ids_of(pattern, ids);
    uint32_t found = prefix_find(rig->prefix, rig->space, ids, n, table);
    prefix_hold(rig->prefix, table, found);
    ck_assert(prefix_alloc(rig->prefix, n - found, table + found));
    for (uint32_t i = found; i < n; i++)
        prefix_insert(rig->prefix, rig->space, ids, table, i);
    prefix_release(rig->prefix, table, n);
}

static uint32_t found(struct rig *rig, const char *pattern)
{
    int32_t ids[64 * T];
    uint32_t table[64];
    ids_of(pattern, ids);
    return prefix_find(rig->prefix, rig->space, ids, (uint32_t)strlen(pattern), table);
}

START_TEST(what_was_computed_is_found_up_to_where_it_differs)
{
    struct rig rig;
    set_up(&rig, 10, UINT32_MAX);
    ck_assert_uint_eq(found(&rig, "abc"), 0);
    run(&rig, "abc");
    ck_assert_uint_eq(found(&rig, "abc"), 3);
    ck_assert_uint_eq(found(&rig, "abd"), 2);
    ck_assert_uint_eq(found(&rig, "bc"), 0); /* the same ids behind others are another place */
    run(&rig, "abde");
    ck_assert_uint_eq(found(&rig, "abde"), 4);
    ck_assert_uint_eq(prefix_counts(rig.prefix).cached, 5);
    ck_assert_uint_eq(prefix_available(rig.prefix), 10);
    tear_down(&rig);
}
END_TEST

START_TEST(one_id_makes_another_block)
{
    struct rig rig;
    int32_t ids[2 * T];
    uint32_t table[2];
    set_up(&rig, 10, UINT32_MAX);
    run(&rig, "aa");
    for (int i = 0; i < 2 * T; i++) {
        ids_of("aa", ids);
        ids[i]++;
        ck_assert_uint_eq(prefix_find(rig.prefix, rig.space, ids, 2, table), (uint32_t)(i / T));
    }
    tear_down(&rig);
}
END_TEST

START_TEST(the_longest_idle_goes_first_and_leaves_before_what_they_hang_on)
{
    struct rig rig;
    uint32_t taken[10];
    set_up(&rig, 6, UINT32_MAX);
    run(&rig, "abc");
    run(&rig, "xyz");
    run(&rig, "ab"); /* used again: later than x y z, and than c */
    ck_assert(prefix_alloc(rig.prefix, 1, taken));
    ck_assert_uint_eq(found(&rig, "abc"), 2);
    ck_assert_uint_eq(found(&rig, "xyz"), 3);
    ck_assert(prefix_alloc(rig.prefix, 1, taken + 1));
    ck_assert_uint_eq(found(&rig, "xyz"), 2);
    ck_assert(prefix_alloc(rig.prefix, 2, taken + 2));
    ck_assert_uint_eq(found(&rig, "xyz"), 0);
    ck_assert_uint_eq(found(&rig, "ab"), 2);
    ck_assert(!prefix_alloc(rig.prefix, 3, taken + 4));
    ck_assert_uint_eq(found(&rig, "ab"), 2); /* for nothing nothing goes */
    ck_assert(prefix_alloc(rig.prefix, 2, taken + 4));
    ck_assert_uint_eq(prefix_available(rig.prefix), 0);
    prefix_release(rig.prefix, taken, 6);
    ck_assert_uint_eq(prefix_available(rig.prefix), 6);
    tear_down(&rig);
}
END_TEST

START_TEST(blocks_in_use_stay)
{
    struct rig rig;
    int32_t ids[2 * T];
    uint32_t table[2], rest[10];
    set_up(&rig, 4, UINT32_MAX);
    run(&rig, "ab");
    ids_of("ab", ids);
    ck_assert_uint_eq(prefix_find(rig.prefix, rig.space, ids, 2, table), 2);
    ck_assert_uint_eq(prefix_idle(rig.prefix, table, 2), 2);
    prefix_hold(rig.prefix, table, 2);
    ck_assert_uint_eq(prefix_idle(rig.prefix, table, 2), 0);
    ck_assert_uint_eq(prefix_available(rig.prefix), 2);
    ck_assert(!prefix_alloc(rig.prefix, 3, rest));
    ck_assert(prefix_alloc(rig.prefix, 2, rest));
    ck_assert_uint_eq(found(&rig, "ab"), 2);
    prefix_release(rig.prefix, table, 2);
    prefix_release(rig.prefix, rest, 2);
    ck_assert_uint_eq(prefix_available(rig.prefix), 4);
    tear_down(&rig);
}
END_TEST

START_TEST(no_more_are_kept_than_allowed)
{
    struct rig rig;
    set_up(&rig, 10, 2);
    run(&rig, "abc");
    ck_assert_uint_eq(found(&rig, "abc"), 2); /* c found no place: a and b were in use */
    run(&rig, "xy");
    ck_assert_uint_eq(found(&rig, "xy"), 2);
    ck_assert_uint_eq(found(&rig, "ab"), 0);
    ck_assert_uint_eq(prefix_counts(rig.prefix).cached, 2);
    tear_down(&rig);
    ck_assert_int_eq(blocks_new(10, &rig.blocks), 0);
    ck_assert_int_eq(prefix_new(rig.blocks, 0, &rig.prefix), 0);
    rig.space = prefix_enter(rig.prefix, BYTES_LITERAL("salt"));
    ck_assert_uint_eq(rig.space, 0);
    run(&rig, "abc");
    ck_assert_uint_eq(found(&rig, "abc"), 0);
    ck_assert_uint_eq(prefix_available(rig.prefix), 10);
    tear_down(&rig);
}
END_TEST

START_TEST(a_space_lives_as_long_as_somebody_or_a_block_is_in_it)
{
    struct rig rig;
    uint32_t all[4];
    set_up(&rig, 4, UINT32_MAX);
    uint64_t other = prefix_enter(rig.prefix, BYTES_LITERAL("salt")), none = rig.space;
    ck_assert_uint_ne(other, none);
    rig.space = other;
    run(&rig, "a");
    prefix_leave(rig.prefix, other);
    ck_assert_uint_eq(prefix_enter(rig.prefix, BYTES_LITERAL("salt")), other); /* its block is there */
    prefix_leave(rig.prefix, other);
    ck_assert(prefix_alloc(rig.prefix, 4, all));
    ck_assert_uint_ne(prefix_enter(rig.prefix, BYTES_LITERAL("salt")), other);
    prefix_release(rig.prefix, all, 4);
    rig.space = none;
    tear_down(&rig);
}
END_TEST

/* A sequence whose window slides gives back its first blocks; who comes upon what is behind them must find
 * nothing, and so too when another block has the number of the one before. */
START_TEST(what_is_behind_a_block_that_slid_out_and_went_is_not_found)
{
    struct rig rig;
    int32_t ids[4 * T];
    uint32_t table[4], taken[4];
    set_up(&rig, 4, UINT32_MAX);
    ids_of("abc", ids);
    ck_assert(prefix_alloc(rig.prefix, 3, table));
    for (uint32_t i = 0; i < 3; i++)
        ck_assert(prefix_insert(rig.prefix, rig.space, ids, table, i));
    prefix_release(rig.prefix, table, 1);
    ck_assert_uint_eq(found(&rig, "abc"), 3); /* it is there still */
    ck_assert(prefix_alloc(rig.prefix, 2, taken));
    ck_assert_uint_eq(found(&rig, "abc"), 0);
    prefix_release(rig.prefix, taken, 2);
    /* The number of "a" again, as another's first block. */
    ck_assert(prefix_alloc(rig.prefix, 2, taken));
    taken[0] = taken[0] == table[0] ? taken[0] : taken[1];
    ck_assert_uint_eq(taken[0], table[0]);
    ids_of("x", ids);
    ck_assert(prefix_insert(rig.prefix, rig.space, ids, taken, 0));
    ck_assert_uint_eq(found(&rig, "xbc"), 1);
    ids_of("abcd", ids); /* the sequence goes on behind what it holds */
    prefix_release(rig.prefix, table + 1, 2);
    ck_assert_uint_eq(prefix_available(rig.prefix), 2);
    tear_down(&rig);
}
END_TEST

/* Sequences of random patterns over three letters hold, insert and release in any order, the second time with
 * windows that slide; whatever is found must be what was written into the block last. */
START_TEST(what_is_found_is_always_what_is_in_the_blocks)
{
    enum { BLOCKS = 24, SEQUENCES = 5, MOST = 8 };
    struct running {
        int32_t ids[MOST * T];
        uint32_t table[MOST], n, done, slid;
    } running[SEQUENCES] = {0};
    int32_t contents[BLOCKS][MOST * T]; /* the ids up to the end of the block, when it was filled */
    uint32_t depth[BLOCKS];
    struct rig rig;
    srand(7);
    set_up(&rig, BLOCKS, BLOCKS / 2 + BLOCKS / 4);
    for (int turn = 0; turn < 200000; turn++) {
        struct running *r = &running[rand() % SEQUENCES];
        if (r->n == 0) {
            char pattern[MOST + 1] = {0};
            uint32_t n = 1 + (uint32_t)(rand() % MOST);
            for (uint32_t i = 0; i < n; i++)
                pattern[i] = "abc"[rand() % 3 * (rand() % 2)];
            ids_of(pattern, r->ids);
            uint32_t hits = prefix_find(rig.prefix, rig.space, r->ids, n, r->table);
            for (uint32_t i = 0; i < hits; i++) {
                ck_assert_uint_eq(depth[r->table[i]], i + 1);
                ck_assert_mem_eq(contents[r->table[i]], r->ids, (i + 1) * T * sizeof(int32_t));
            }
            prefix_hold(rig.prefix, r->table, hits);
            if (!prefix_alloc(rig.prefix, n - hits, r->table + hits)) {
                prefix_release(rig.prefix, r->table, hits);
                continue;
            }
            for (uint32_t i = hits; i < n; i++)
                depth[r->table[i]] = 0; /* overwritten */
            r->n = n;
            r->done = hits;
            r->slid = 0;
        } else if (r->done < r->n && rand() % 4) {
            uint32_t block = r->table[r->done];
            memcpy(contents[block], r->ids, (r->done + 1) * T * sizeof(int32_t));
            depth[block] = r->done + 1;
            prefix_insert(rig.prefix, rig.space, r->ids, r->table, r->done++);
        } else if (_i && r->slid + 1 < r->done && rand() % 2) {
            prefix_release(rig.prefix, r->table + r->slid++, 1);
        } else {
            prefix_release(rig.prefix, r->table + r->slid, r->n - r->slid);
            r->n = 0;
        }
    }
    struct prefix_counts counts = prefix_counts(rig.prefix);
    ck_assert_uint_gt(counts.evicted, 1000);
    ck_assert_uint_eq(counts.inserted - counts.evicted, counts.cached);
    for (int i = 0; i < SEQUENCES; i++)
        if (running[i].n > 0)
            prefix_release(rig.prefix, running[i].table + running[i].slid, running[i].n - running[i].slid);
    ck_assert_uint_eq(prefix_available(rig.prefix), BLOCKS);
    tear_down(&rig);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, what_was_computed_is_found_up_to_where_it_differs);
    tcase_add_test(tests, one_id_makes_another_block);
    tcase_add_test(tests, the_longest_idle_goes_first_and_leaves_before_what_they_hang_on);
    tcase_add_test(tests, blocks_in_use_stay);
    tcase_add_test(tests, no_more_are_kept_than_allowed);
    tcase_add_test(tests, a_space_lives_as_long_as_somebody_or_a_block_is_in_it);
    tcase_add_test(tests, what_is_behind_a_block_that_slid_out_and_went_is_not_found);
    tcase_add_loop_test(tests, what_is_found_is_always_what_is_in_the_blocks, 0, 2);
}

int main(void)
{
    return run_tests("prefix", add);
}
