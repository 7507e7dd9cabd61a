/* SPDX-License-Identifier: MIT */
/* The prefix cache alone, and beside a model of it that is a list. */

#include "tests/unit/run.h"
#include "engine/backend/backend.h"
#include "engine/cache/prefix.h"

#include <stdlib.h>
#include <string.h>

#define T BACKEND_BLOCK_TOKENS

struct rig {
    struct blocks *blocks[2];
    struct prefix *prefix;
    uint32_t n_groups;
    struct backend_group groups[2];
    uint64_t space, place; /* place: of the last node that was found or inserted */
};

/* Group 1, if it has blocks, has a window. */
static void set_up_groups(struct rig *rig, uint32_t n_blocks, uint32_t n_behind, uint32_t window,
                          uint32_t most)
{
    *rig = (struct rig){.n_groups = n_behind > 0 ? 2 : 1, .groups = {{0}, {.window = window}}};
    ck_assert_int_eq(blocks_new(n_blocks, &rig->blocks[0]), 0);
    ck_assert_int_eq(blocks_new(n_behind, &rig->blocks[1]), 0);
    ck_assert_int_eq(prefix_new(rig->groups, rig->n_groups, rig->blocks, most, &rig->prefix), 0);
    rig->space = rig->place = prefix_enter(rig->prefix, BYTES_LITERAL(""));
    ck_assert_uint_ne(rig->space, 0);
}

static void set_up(struct rig *rig, uint32_t n_blocks, uint32_t most)
{
    set_up_groups(rig, n_blocks, 0, 0, most);
}

static void tear_down(struct rig *rig)
{
    prefix_leave(rig->prefix, rig->space);
    prefix_free(rig->prefix);
    blocks_free(rig->blocks[0]);
    blocks_free(rig->blocks[1]);
}

/* n blocks of ids, each block all of one id. */
static void ids_of(const char *pattern, int32_t *ids)
{
    for (size_t i = 0; pattern[i]; i++)
        for (int j = 0; j < T; j++)
            ids[i * T + (size_t)j] = pattern[i];
}

static uint32_t find(struct rig *rig, const int32_t *ids, uint32_t n, uint32_t *table)
{
    return prefix_find(rig->prefix, rig->space, ids, n, &table, &rig->place);
}

/* Inserts table[n], behind rig->place. */
static bool insert(struct rig *rig, const int32_t *ids, const uint32_t *table, uint32_t n)
{
    return prefix_insert(rig->prefix, &rig->place, ids + (size_t)n * T, &table[n]);
}

/* A sequence that computes `pattern` and goes away. */
static void run(struct rig *rig, const char *pattern)
{
    int32_t ids[64 * T];
    uint32_t table[64], n = (uint32_t)strlen(pattern);
    ids_of(pattern, ids);
    uint32_t found = find(rig, ids, n, table);
    prefix_hold(rig->prefix, 0, table, found);
    ck_assert(prefix_alloc(rig->prefix, 0, n - found, table + found));
    for (uint32_t i = found; i < n; i++)
        insert(rig, ids, table, i);
    prefix_release(rig->prefix, 0, table, n);
}

static uint32_t found(struct rig *rig, const char *pattern)
{
    int32_t ids[64 * T];
    uint32_t tables[2][64], *table[] = {tables[0], tables[1]};
    ids_of(pattern, ids);
    return prefix_find(rig->prefix, rig->space, ids, (uint32_t)strlen(pattern), table, &rig->place);
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
    ck_assert_uint_eq(prefix_available(rig.prefix, 0), 10);
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
        ck_assert_uint_eq(find(&rig, ids, 2, table), (uint32_t)(i / T));
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
    ck_assert(prefix_alloc(rig.prefix, 0, 1, taken));
    ck_assert_uint_eq(found(&rig, "abc"), 2);
    ck_assert_uint_eq(found(&rig, "xyz"), 3);
    ck_assert(prefix_alloc(rig.prefix, 0, 1, taken + 1));
    ck_assert_uint_eq(found(&rig, "xyz"), 2);
    ck_assert(prefix_alloc(rig.prefix, 0, 2, taken + 2));
    ck_assert_uint_eq(found(&rig, "xyz"), 0);
    ck_assert_uint_eq(found(&rig, "ab"), 2);
    ck_assert(!prefix_alloc(rig.prefix, 0, 3, taken + 4));
    ck_assert_uint_eq(found(&rig, "ab"), 2); /* for nothing nothing goes */
    ck_assert(prefix_alloc(rig.prefix, 0, 2, taken + 4));
    ck_assert_uint_eq(prefix_available(rig.prefix, 0), 0);
    prefix_release(rig.prefix, 0, taken, 6);
    ck_assert_uint_eq(prefix_available(rig.prefix, 0), 6);
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
    ck_assert_uint_eq(find(&rig, ids, 2, table), 2);
    ck_assert_uint_eq(prefix_idle(rig.prefix, 0, table, 2), 2);
    prefix_hold(rig.prefix, 0, table, 2);
    ck_assert_uint_eq(prefix_idle(rig.prefix, 0, table, 2), 0);
    ck_assert_uint_eq(prefix_available(rig.prefix, 0), 2);
    ck_assert(!prefix_alloc(rig.prefix, 0, 3, rest));
    ck_assert(prefix_alloc(rig.prefix, 0, 2, rest));
    ck_assert_uint_eq(found(&rig, "ab"), 2);
    prefix_release(rig.prefix, 0, table, 2);
    prefix_release(rig.prefix, 0, rest, 2);
    ck_assert_uint_eq(prefix_available(rig.prefix, 0), 4);
    tear_down(&rig);
}
END_TEST

START_TEST(all_that_is_idle_can_be_dropped)
{
    struct rig rig;
    int32_t ids[4 * T];
    uint32_t held[4], table[4];
    set_up(&rig, 4, UINT32_MAX);
    ids_of("abcd", ids);
    ck_assert(prefix_alloc(rig.prefix, 0, 4, held));
    for (uint32_t i = 0; i < 4; i++)
        ck_assert(insert(&rig, ids, held, i));
    prefix_release(rig.prefix, 0, held + 2, 2);
    ck_assert_uint_eq(prefix_drop_idle(rig.prefix), 2);
    ck_assert_uint_eq(blocks_available(rig.blocks[0]), 2);
    ck_assert_uint_eq(find(&rig, ids, 4, table), 2);
    prefix_release(rig.prefix, 0, held, 2);
    ck_assert_uint_eq(prefix_drop_idle(rig.prefix), 2);
    ck_assert_uint_eq(prefix_drop_idle(rig.prefix), 0);
    ck_assert_uint_eq(find(&rig, ids, 4, table), 0);
    ck_assert_uint_eq(blocks_available(rig.blocks[0]), 4);
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
    rig = (struct rig){.n_groups = 1};
    ck_assert_int_eq(blocks_new(10, &rig.blocks[0]), 0);
    ck_assert_int_eq(prefix_new(rig.groups, 1, rig.blocks, 0, &rig.prefix), 0);
    rig.space = prefix_enter(rig.prefix, BYTES_LITERAL("salt"));
    ck_assert_uint_eq(rig.space, 0);
    run(&rig, "abc");
    ck_assert_uint_eq(found(&rig, "abc"), 0);
    ck_assert_uint_eq(prefix_available(rig.prefix, 0), 10);
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
    ck_assert(prefix_alloc(rig.prefix, 0, 4, all));
    ck_assert_uint_ne(prefix_enter(rig.prefix, BYTES_LITERAL("salt")), other);
    prefix_release(rig.prefix, 0, all, 4);
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
    ck_assert(prefix_alloc(rig.prefix, 0, 3, table));
    for (uint32_t i = 0; i < 3; i++)
        ck_assert(insert(&rig, ids, table, i));
    prefix_release(rig.prefix, 0, table, 1);
    ck_assert_uint_eq(found(&rig, "abc"), 3); /* it is there still */
    ck_assert(prefix_alloc(rig.prefix, 0, 2, taken));
    ck_assert_uint_eq(found(&rig, "abc"), 0);
    prefix_release(rig.prefix, 0, taken, 2);
    /* The number of "a" again, as another's first block. */
    ck_assert(prefix_alloc(rig.prefix, 0, 2, taken));
    taken[0] = taken[0] == table[0] ? taken[0] : taken[1];
    ck_assert_uint_eq(taken[0], table[0]);
    ids_of("x", ids);
    rig.place = rig.space;
    ck_assert(insert(&rig, ids, taken, 0));
    ck_assert_uint_eq(found(&rig, "xbc"), 1);
    ids_of("abcd", ids); /* the sequence goes on behind what it holds */
    prefix_release(rig.prefix, 0, table + 1, 2);
    ck_assert_uint_eq(prefix_available(rig.prefix, 0), 2);
    tear_down(&rig);
}
END_TEST

/* Who computed again what is there, for want of blocks of group 1, gives it those, and goes on behind it. */
START_TEST(a_node_gets_back_what_it_has_lost)
{
    struct rig rig;
    int32_t ids[4 * T];
    uint32_t tables[2][4], again[2][4], rest[4];
    set_up_groups(&rig, 10, 4, 40, UINT32_MAX);
    ids_of("abcd", ids);
    for (uint32_t g = 0; g < 2; g++)
        ck_assert(prefix_alloc(rig.prefix, g, 4, tables[g]));
    for (uint32_t i = 0; i < 4; i++)
        ck_assert(
            prefix_insert(rig.prefix, &rig.place, ids + i * T, (uint32_t[]){tables[0][i], tables[1][i]}));
    ck_assert_uint_eq(found(&rig, "abcd"), 4);
    const uint64_t end = rig.place;
    for (uint32_t g = 0; g < 2; g++)
        prefix_release(rig.prefix, g, tables[g], 4);
    /* A window of 40 reaches back on two blocks at most: "d" is the first to go. */
    ck_assert(prefix_alloc(rig.prefix, 1, 1, rest));
    ck_assert_uint_eq(found(&rig, "abcd"), 3);
    ck_assert_uint_eq(found(&rig, "abc"), 3);
    ck_assert(prefix_alloc(rig.prefix, 1, 1, rest + 1));
    ck_assert_uint_eq(found(&rig, "abcd"), 2);
    ck_assert_uint_eq(prefix_counts(rig.prefix).cached, 4); /* group 0 has them all */
    ck_assert_uint_eq(prefix_available(rig.prefix, 0), 10);
    prefix_release(rig.prefix, 1, rest, 2);
    for (uint32_t g = 0; g < 2; g++)
        ck_assert(prefix_alloc(rig.prefix, g, 2, again[g]));
    for (uint32_t i = 0; i < 2; i++)
        ck_assert(!prefix_insert(rig.prefix, &rig.place, ids + (2 + i) * T,
                                 (uint32_t[]){again[0][i], again[1][i]}));
    ck_assert_uint_eq(rig.place, end);
    ck_assert_uint_eq(prefix_counts(rig.prefix).completed, 2);
    ck_assert_uint_eq(found(&rig, "abcd"), 4);
    for (uint32_t g = 0; g < 2; g++)
        prefix_release(rig.prefix, g, again[g], 2);
    ck_assert_uint_eq(prefix_available(rig.prefix, 0), 10);
    ck_assert_uint_eq(prefix_available(rig.prefix, 1), 4);
    /* A node that goes takes its blocks of group 1 along. */
    uint32_t all[10];
    ck_assert(prefix_alloc(rig.prefix, 0, 10, all));
    ck_assert_uint_eq(blocks_available(rig.blocks[1]), 4);
    prefix_release(rig.prefix, 0, all, 10);
    tear_down(&rig);
}
END_TEST

/* ---- tails ---- */

/* How many of the n ids at the rig's space, or behind a node, can be copied; *ret_block: from where. */
static uint32_t find_common(const struct rig *rig, uint64_t place, const int32_t *ids, uint32_t n,
                            uint32_t *ret_block)
{
    uint32_t blocks[BACKEND_MOST_GROUPS];
    const uint32_t common = prefix_find_common(rig->prefix, place, ids, n, false, blocks);
    if (common > 0)
        *ret_block = blocks[0];
    return common;
}

START_TEST(a_tail_is_found_by_its_first_ids_and_becomes_whole)
{
    struct rig rig;
    int32_t ids[2 * T], others[2 * T];
    uint32_t block, other, at, table[2];
    set_up(&rig, 4, UINT32_MAX);
    ids_of("ab", ids);
    for (uint32_t i = 0; i < T; i++)
        ids[i] = (int32_t)i;
    ck_assert(prefix_alloc(rig.prefix, 0, 1, &block));
    prefix_insert_tail(rig.prefix, rig.space, ids, 10, false, &block);
    ck_assert_uint_eq(find(&rig, ids, 1, table), 0); /* it is no whole one */
    ck_assert_uint_eq(find_common(&rig, rig.space, ids, 31, &at), 10);
    ck_assert_uint_eq(at, block);
    ck_assert_uint_eq(find_common(&rig, rig.space, ids, 4, &at), 4);
    memcpy(others, ids, sizeof others);
    others[6]++;
    ck_assert_uint_eq(find_common(&rig, rig.space, others, 31, &at), 6);
    ck_assert_uint_eq(find_common(&rig, rig.space + 1, ids, 31, &at), 0);
    prefix_insert_tail(rig.prefix, rig.space, ids, 20, false, &block); /* it grows */
    ck_assert_uint_eq(find_common(&rig, rig.space, ids, 31, &at), 20);
    ck_assert_uint_eq(prefix_counts(rig.prefix).cached, 1);
    /* Another with the same beginning is not kept, and one that goes on is. */
    ck_assert(prefix_alloc(rig.prefix, 0, 1, &other));
    prefix_insert_tail(rig.prefix, rig.space, ids, 20, false, &other);
    ck_assert_uint_eq(prefix_counts(rig.prefix).cached, 1);
    prefix_insert_tail(rig.prefix, rig.space, ids, 22, false, &other);
    ck_assert_uint_eq(prefix_counts(rig.prefix).cached, 2);
    ck_assert_uint_eq(find_common(&rig, rig.space, ids, 31, &at), 22);
    ck_assert_uint_eq(at, other);
    /* The first one is full. Nodes are behind it now. */
    rig.place = rig.space;
    ck_assert(insert(&rig, ids, &block, 0));
    ck_assert_uint_eq(prefix_counts(rig.prefix).cached, 2);
    ck_assert_uint_eq(find(&rig, ids, 2, table), 1);
    ck_assert_uint_eq(table[0], block);
    ck_assert_uint_eq(find_common(&rig, rig.space, ids, 31, &at), 31);
    ck_assert_uint_eq(at, block);
    /* So is the other: there is such a node already, and it is one no more. */
    rig.place = rig.space;
    ck_assert(!insert(&rig, ids, &other, 0));
    ck_assert_uint_eq(find(&rig, ids, 2, table), 1);
    ck_assert_uint_eq(table[0], block);
    ck_assert_uint_eq(prefix_counts(rig.prefix).cached, 1);
    prefix_release(rig.prefix, 0, &other, 1);
    ck_assert_uint_eq(blocks_holders(rig.blocks[0], other), 0);
    prefix_release(rig.prefix, 0, &block, 1);
    ck_assert_uint_eq(prefix_available(rig.prefix, 0), 4);
    ck_assert_uint_eq(prefix_drop_idle(rig.prefix), 1);
    ck_assert_uint_eq(find_common(&rig, rig.space, ids, 31, &at), 0);
    tear_down(&rig);
}
END_TEST

/* A whole node is found by its first ids if it was shared; a node without a block of a group is no source. */
START_TEST(what_is_whole_is_copied_from_where_it_is_shared)
{
    struct rig rig;
    int32_t ids[T];
    uint32_t blocks[2], found_blocks[BACKEND_MOST_GROUPS], taken[4];
    set_up_groups(&rig, 4, 4, 40, UINT32_MAX);
    ids_of("a", ids);
    for (uint32_t g = 0; g < 2; g++)
        ck_assert(prefix_alloc(rig.prefix, g, 1, &blocks[g]));
    rig.place = rig.space;
    ck_assert(prefix_insert(rig.prefix, &rig.place, ids, blocks));
    ck_assert_uint_eq(prefix_find_common(rig.prefix, rig.space, ids, 31, false, found_blocks), 0);
    prefix_share(rig.prefix, rig.place, false);
    prefix_share(rig.prefix, rig.place, false);
    ck_assert_uint_eq(prefix_find_common(rig.prefix, rig.space, ids, 31, false, found_blocks), 31);
    ck_assert_mem_eq(found_blocks, blocks, sizeof blocks);
    for (uint32_t g = 0; g < 2; g++)
        prefix_release(rig.prefix, g, &blocks[g], 1);
    ck_assert(prefix_alloc(rig.prefix, 1, 4, taken));
    ck_assert_uint_eq(prefix_find_common(rig.prefix, rig.space, ids, 31, false, found_blocks), 0);
    prefix_release(rig.prefix, 1, taken, 4);
    /* Nothing is shared, or kept behind it, once it is gone. */
    ck_assert(prefix_alloc(rig.prefix, 0, 4, taken));
    prefix_share(rig.prefix, rig.place, false);
    prefix_insert_tail(rig.prefix, rig.place, ids, 9, false, (uint32_t[]){taken[0], 0});
    ck_assert_uint_eq(prefix_counts(rig.prefix).cached, 0);
    prefix_release(rig.prefix, 0, taken, 4);
    tear_down(&rig);
}
END_TEST

/* Where strangers share a space: what begins alike is found only as far as something ended there. */
START_TEST(only_what_ended_is_found_where_that_is_asked)
{
    struct rig rig;
    int32_t ids[2 * T], other[T];
    uint32_t blocks[3], from[BACKEND_MOST_GROUPS];
    set_up(&rig, 4, UINT32_MAX);
    for (int32_t i = 0; i < 2 * T; i++)
        ids[i] = i;
    ck_assert(prefix_alloc(rig.prefix, 0, 3, blocks));
    prefix_insert_tail(rig.prefix, rig.space, ids, 16, true, &blocks[0]); /* a prompt, */
    prefix_insert_tail(rig.prefix, rig.space, ids, 21, true, &blocks[0]); /* and its answer */
    for (uint32_t n = 1; n < T; n++) {
        const uint32_t ended = n >= 21 ? 21 : n >= 16 ? 16 : 0;
        ck_assert_uint_eq(prefix_find_common(rig.prefix, rig.space, ids, n, true, from),
                          n == 15 || n == 20 ? n : ended);
        ck_assert_uint_eq(prefix_find_common(rig.prefix, rig.space, ids, n, false, from), n < 21 ? n : 21);
    }
    /* A guess that is wrong at any id looks the same wherever that is. */
    for (uint32_t wrong = 0; wrong < 16; wrong++) {
        memcpy(other, ids, sizeof other);
        other[wrong] += 1000;
        ck_assert_uint_eq(prefix_find_common(rig.prefix, rig.space, other, 31, true, from), 0);
    }
    /* What ended there too is not kept again; what ended before is, as if nothing had begun like it. */
    prefix_insert_tail(rig.prefix, rig.space, ids, 16, true, &blocks[1]);
    ck_assert_uint_eq(prefix_counts(rig.prefix).cached, 1);
    prefix_insert_tail(rig.prefix, rig.space, ids, 12, true, &blocks[1]);
    ck_assert_uint_eq(prefix_counts(rig.prefix).cached, 2);
    prefix_insert_tail(rig.prefix, rig.space, ids, 13, false, &blocks[2]);
    ck_assert_uint_eq(prefix_counts(rig.prefix).cached, 2);
    /* A prompt that fills its block. */
    rig.place = rig.space;
    ck_assert(insert(&rig, ids, blocks, 0));
    ck_assert_uint_eq(prefix_find_common(rig.prefix, rig.space, ids, 31, true, from), 21);
    prefix_share(rig.prefix, rig.place, true);
    ck_assert_uint_eq(prefix_find_common(rig.prefix, rig.space, ids, 31, true, from), 31);
    ck_assert_uint_eq(prefix_find_common(rig.prefix, rig.space, ids, 30, true, from), 21);
    prefix_release(rig.prefix, 0, blocks, 3);
    tear_down(&rig);
}
END_TEST

START_TEST(tails_are_evicted_as_nodes_are_and_take_no_room_beyond_what_is_allowed)
{
    struct rig rig;
    int32_t ids[T];
    uint32_t blocks[3], rest[4], at;
    set_up(&rig, 4, 2);
    ck_assert(prefix_alloc(rig.prefix, 0, 3, blocks));
    for (int32_t i = 0; i < 3; i++) {
        for (int j = 0; j < T; j++)
            ids[j] = i;
        prefix_insert_tail(rig.prefix, rig.space, ids, 12, false, &blocks[i]);
    }
    ck_assert_uint_eq(prefix_counts(rig.prefix).cached, 2); /* both in use: there was no room */
    ck_assert_uint_eq(find_common(&rig, rig.space, ids, 12, &at), 0);
    prefix_release(rig.prefix, 0, &blocks[1], 1);
    prefix_release(rig.prefix, 0, &blocks[0], 1);
    prefix_insert_tail(rig.prefix, rig.space, ids, 12, false, &blocks[2]); /* the longest idle goes */
    ck_assert_uint_eq(find_common(&rig, rig.space, ids, 12, &at), 12);
    prefix_release(rig.prefix, 0, &blocks[2], 1);
    for (int j = 0; j < T; j++)
        ids[j] = 1;
    ck_assert_uint_eq(find_common(&rig, rig.space, ids, 12, &at), 0);
    ck_assert_uint_eq(prefix_available(rig.prefix, 0), 4);
    ck_assert(prefix_alloc(rig.prefix, 0, 4, rest));
    ck_assert_uint_eq(prefix_counts(rig.prefix).cached, 0);
    prefix_release(rig.prefix, 0, rest, 4);
    tear_down(&rig);
}
END_TEST

/* Sequences of random patterns over three letters hold, insert and release in any order: the first time with
 * one group that sees everything, then with one that slides, then with both. Whatever is found must be what
 * was written into the block last, in each group. */
START_TEST(what_is_found_is_always_what_is_in_the_blocks)
{
    enum { BLOCKS = 24, BEHIND = 14, SEQUENCES = 5, MOST = 8 };
    struct running {
        int32_t ids[MOST * T];
        uint32_t tables[2][MOST], n, done, slid[2];
        uint64_t place;
    } running[SEQUENCES] = {0};
    static int32_t contents[2][BLOCKS][MOST * T]; /* the ids up to the end of the block, when it was filled */
    uint32_t depth[2][BLOCKS] = {0}, long_hits = 0;
    struct rig rig;
    srand(7);
    set_up_groups(&rig, BLOCKS, _i == 2 ? BEHIND : 0, 2 * T, BLOCKS / 2 + BLOCKS / 4);
    for (int turn = 0; turn < 200000; turn++) {
        struct running *r = &running[rand() % SEQUENCES];
        uint32_t *tables[] = {r->tables[0], r->tables[1]};
        if (r->n == 0) {
            char pattern[MOST + 1] = {0};
            uint32_t n = 1 + (uint32_t)(rand() % MOST), g;
            for (uint32_t i = 0; i < n; i++)
                pattern[i] = "abc"[rand() % 3 * (rand() % 2)];
            ids_of(pattern, r->ids);
            uint32_t hits = prefix_find(rig.prefix, rig.space, r->ids, n, tables, &r->place);
            long_hits += hits > 2;
            for (g = 0; g < rig.n_groups; g++) {
                r->slid[g] = backend_first_block(&rig.groups[g], hits * T);
                for (uint32_t i = r->slid[g]; i < hits; i++) {
                    ck_assert_uint_eq(depth[g][tables[g][i]], i + 1);
                    ck_assert_mem_eq(contents[g][tables[g][i]], r->ids, (i + 1) * T * sizeof(int32_t));
                }
                prefix_hold(rig.prefix, g, tables[g] + r->slid[g], hits - r->slid[g]);
            }
            for (g = 0; g < rig.n_groups && prefix_alloc(rig.prefix, g, n - hits, tables[g] + hits); g++)
                for (uint32_t i = hits; i < n; i++)
                    depth[g][tables[g][i]] = 0; /* overwritten */
            r->n = n;
            r->done = hits;
            for (uint32_t h = 0; g < rig.n_groups && h < rig.n_groups; h++)
                prefix_release(rig.prefix, h, tables[h] + r->slid[h], (h < g ? n : hits) - r->slid[h]);
            if (g < rig.n_groups)
                r->n = 0;
        } else if (r->done < r->n && rand() % 4) {
            uint32_t blocks[2];
            for (uint32_t g = 0; g < rig.n_groups; g++) {
                blocks[g] = tables[g][r->done];
                memcpy(contents[g][blocks[g]], r->ids, (r->done + 1) * T * sizeof(int32_t));
                depth[g][blocks[g]] = r->done + 1;
            }
            prefix_insert(rig.prefix, &r->place, r->ids + r->done++ * T, blocks);
        } else if (_i && r->slid[_i - 1] + 1 < r->done && rand() % 2) {
            prefix_release(rig.prefix, (uint32_t)_i - 1, tables[_i - 1] + r->slid[_i - 1]++, 1);
        } else {
            for (uint32_t g = rig.n_groups; g-- > 0;)
                prefix_release(rig.prefix, g, tables[g] + r->slid[g], r->n - r->slid[g]);
            r->n = 0;
        }
    }
    struct prefix_counts counts = prefix_counts(rig.prefix);
    ck_assert_uint_gt(long_hits, 1000);
    ck_assert_uint_gt(counts.evicted, 1000);
    ck_assert(_i < 2 || counts.completed > 1000);
    ck_assert_uint_eq(counts.inserted - counts.evicted, counts.cached);
    for (int i = 0; i < SEQUENCES; i++)
        for (uint32_t g = 0; g < rig.n_groups && running[i].n > 0; g++)
            prefix_release(rig.prefix, g, running[i].tables[g] + running[i].slid[g],
                           running[i].n - running[i].slid[g]);
    ck_assert_uint_eq(prefix_available(rig.prefix, 0), BLOCKS);
    ck_assert(_i < 2 || prefix_available(rig.prefix, 1) == BEHIND);
    tear_down(&rig);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, what_was_computed_is_found_up_to_where_it_differs);
    tcase_add_test(tests, one_id_makes_another_block);
    tcase_add_test(tests, the_longest_idle_goes_first_and_leaves_before_what_they_hang_on);
    tcase_add_test(tests, blocks_in_use_stay);
    tcase_add_test(tests, all_that_is_idle_can_be_dropped);
    tcase_add_test(tests, no_more_are_kept_than_allowed);
    tcase_add_test(tests, a_space_lives_as_long_as_somebody_or_a_block_is_in_it);
    tcase_add_test(tests, what_is_behind_a_block_that_slid_out_and_went_is_not_found);
    tcase_add_loop_test(tests, what_is_found_is_always_what_is_in_the_blocks, 0, 3);
    tcase_add_test(tests, a_node_gets_back_what_it_has_lost);
    tcase_add_test(tests, a_tail_is_found_by_its_first_ids_and_becomes_whole);
    tcase_add_test(tests, what_is_whole_is_copied_from_where_it_is_shared);
    tcase_add_test(tests, only_what_ended_is_found_where_that_is_asked);
    tcase_add_test(tests, tails_are_evicted_as_nodes_are_and_take_no_room_beyond_what_is_allowed);
}

int main(void)
{
    return run_tests("prefix", add);
}
