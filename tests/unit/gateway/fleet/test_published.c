/* SPDX-License-Identifier: MIT */
/* A pool's book, copied by a gateway from what the pool's broker answers: here the broker's own code. */

#include "gateway/fleet/published.h"
#include "broker/choose/prefixes.h"
#include "tests/unit/run.h"

#include <stdlib.h>
#include <string.h>

#define PART 16 /* pieces of an answer */

static struct prefixes prefixes;
static struct published published;
static struct book book;
static uint32_t number;
static uint64_t boot, added[PREFIXES_CHANGES], dropped[PREFIXES_CHANGES];

static void set_up(void)
{
    published = (struct published){0};
    book = (struct book){.most = 4096};
    boot = 7;
    number = 1;
    ck_assert_int_eq(prefixes_init(&prefixes, 100), 0);
    ck_assert_int_eq(prefixes_publish(&prefixes), 0);
}

static void tear_down(void)
{
    prefixes_deinit(&prefixes);
    book_deinit(&book);
}

/* One piece, of number i. */
static struct prompt_pieces *piece_of(uint64_t i)
{
    struct prompt_pieces *piece = malloc(sizeof *piece + sizeof *piece->hashes);
    ck_assert_ptr_nonnull(piece);
    piece->n = 1;
    piece->hashes[0] = i * 2654435761u;
    return piece;
}

static void pool_adds(uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i++) {
        struct prompt_pieces *piece = piece_of(i);
        prefixes_add(&prefixes, piece, 0);
        free(piece);
    }
}

static void pool_drops(uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i++) {
        struct prompt_pieces *piece = piece_of(i);
        prefixes_drop(&prefixes, piece, 0, 0);
        free(piece);
    }
}

/* What the broker answers (broker/core/publish.c). */
static struct quern_prefixes answer_to(const struct quern_prefixes_wish *wish)
{
    const bool knows = wish->boot == boot && prefixes_remembers(&prefixes, wish->next);
    struct quern_prefixes told = {
        .boot = boot, .next = wish->next, .pieces = prefixes.n_had, .added = added, .dropped = dropped};
    if (knows && wish->at == 0) {
        struct prefixes_delta delta = {.added = added, .dropped = dropped};
        told.next = prefixes_changes(&prefixes, wish->next, PART, &delta);
        told.n_added = delta.n_added;
        told.n_dropped = delta.n_dropped;
        return told;
    }
    const uint32_t at = knows ? wish->at : 0;
    told.begins = at == 0;
    told.next = at == 0 ? prefixes.next_change : wish->next;
    told.at = prefixes_scan(&prefixes, at, PART, added, &told.n_added);
    return told;
}

static void take(const struct quern_prefixes *told)
{
    if (published_look(&published, told) == PUBLISHED_BEGINS)
        number++;
    published_take(&published, told, &book, number, 1);
}

/* One question and its answer. */
static void ask(void)
{
    const struct quern_prefixes_wish wish = published_wish(&published, "s");
    const struct quern_prefixes told = answer_to(&wish);
    take(&told);
}

static void ask_for_all(void)
{
    do
        ask();
    while (published.at != 0 || published.next < prefixes.next_change);
}

/* The copy has just what the pool has, of the first n pieces. */
static void check(uint64_t n)
{
    size_t has = 0;
    for (uint64_t i = 0; i < n; i++) {
        struct prompt_pieces *piece = piece_of(i);
        uint32_t theirs, ours;
        prefixes_find(&prefixes, piece, 1, &theirs);
        book_find(&book, piece, &number, 1, &ours);
        ck_assert_msg(theirs == ours, "piece %u: %u, %u", (unsigned)i, theirs, ours);
        has += theirs;
        free(piece);
    }
    ck_assert_uint_eq(published.pieces, has);
    ck_assert_uint_eq(published.n, has);
}

START_TEST(who_comes_late_gets_all_and_then_what_changes)
{
    pool_adds(0, 50);
    ask_for_all();
    check(50);
    pool_drops(10, 20);
    pool_adds(50, 60);
    ask_for_all();
    check(60);
    ck_assert_uint_eq(number, 2);
}
END_TEST

/* 100 places: what comes new takes the places of what is old, while the parts are asked for. */
START_TEST(what_changes_between_the_parts_is_not_lost)
{
    pool_adds(0, 100);
    for (uint64_t i = 0; i < 40; i++) {
        ask();
        pool_adds(100 + 3 * i, 103 + 3 * i);
        pool_drops(60 + 2 * i, 61 + 2 * i);
    }
    ask_for_all();
    check(300);
    ck_assert_uint_eq(number, 2);
}
END_TEST

START_TEST(an_answer_that_is_lost_or_comes_twice_changes_nothing)
{
    pool_adds(0, 50);
    ask_for_all();
    pool_adds(50, 60);
    pool_drops(0, 5);
    struct quern_prefixes_wish wish = published_wish(&published, "s");
    answer_to(&wish); /* lost */
    pool_adds(0, 3);
    wish = published_wish(&published, "s");
    const struct quern_prefixes told = answer_to(&wish);
    take(&told);
    take(&told);
    ask_for_all();
    check(60);
    ck_assert_uint_eq(number, 2);
}
END_TEST

START_TEST(changes_that_are_not_remembered_any_more_begin_anew)
{
    pool_adds(0, 50);
    ask_for_all();
    for (uint64_t i = 0; i < PREFIXES_CHANGES / 2 + 1; i++) {
        pool_adds(1000, 1001);
        pool_drops(1000, 1001);
    }
    pool_drops(0, 10);
    ask();
    ck_assert_uint_eq(number, 3);
    ask_for_all();
    check(50);
}
END_TEST

START_TEST(a_restarted_pool_is_forgotten)
{
    pool_adds(0, 50);
    ask_for_all();
    prefixes_deinit(&prefixes);
    ck_assert_int_eq(prefixes_init(&prefixes, 100), 0);
    ck_assert_int_eq(prefixes_publish(&prefixes), 0);
    boot++;
    pool_adds(40, 45);
    ask_for_all();
    check(50);
    ck_assert_uint_eq(published.n, 5);
}
END_TEST

/* Nor is one believed that has another boot and does not say that it begins. */
START_TEST(an_answer_of_another_boot_begins_in_any_case)
{
    pool_adds(0, 20);
    ask_for_all();
    const uint64_t hash = 5;
    const struct quern_prefixes told = {.boot = 3, .next = 9, .added = &hash, .n_added = 1};
    ck_assert_int_eq(published_look(&published, &told), PUBLISHED_BEGINS);
    take(&told);
    ck_assert_uint_eq(published.n, 1);
}
END_TEST

START_TEST(a_pool_that_has_a_million_pieces_is_not_believed)
{
    struct quern_prefixes told = {
        .boot = 3, .next = 1, .at = 1, .begins = true, .added = added, .n_added = 8192};
    book.most = 1 << 19;
    uint64_t next = 1;
    size_t answers = 0;
    for (; answers < 1000000 / 8192; answers++) {
        for (size_t i = 0; i < told.n_added; i++)
            added[i] = ++next << 20;
        if (published_look(&published, &told) == PUBLISHED_OVERFLOWS)
            break;
        take(&told);
        told.begins = false;
        told.at++;
    }
    ck_assert_uint_eq(answers, PUBLISHED_MOST / 8192);
    ck_assert(published_fail(&published, 1));
    ck_assert(!published_fail(&published, 2));
    ck_assert_uint_eq(published.n, 0);
    ck_assert_uint_eq(published_wish(&published, "s").next, 0);
    /* Nor one that adds a few at a time. */
    published.boot = 3;
    published.n = PUBLISHED_MOST - 1;
    told = (struct quern_prefixes){.boot = 3, .next = 2, .added = added, .n_added = 2};
    ck_assert_int_eq(published_look(&published, &told), PUBLISHED_OVERFLOWS);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, who_comes_late_gets_all_and_then_what_changes);
    tcase_add_test(tests, what_changes_between_the_parts_is_not_lost);
    tcase_add_test(tests, an_answer_that_is_lost_or_comes_twice_changes_nothing);
    tcase_add_test(tests, changes_that_are_not_remembered_any_more_begin_anew);
    tcase_add_test(tests, a_restarted_pool_is_forgotten);
    tcase_add_test(tests, an_answer_of_another_boot_begins_in_any_case);
    tcase_add_test(tests, a_pool_that_has_a_million_pieces_is_not_believed);
}

int main(void)
{
    return run_tests("gateway/fleet/published", add);
}
