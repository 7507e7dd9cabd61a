/* SPDX-License-Identifier: MIT */
/* A pool's book, copied by a gateway from what the pool's broker answers: here the broker's own code. */

#include "gateway/fleet/published.h"
#include "broker/choose/prefixes.h"
#include "common/clock.h"
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
    if (published_look(&published, told, 1) == PUBLISHED_BEGINS)
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
    ck_assert_uint_eq(published.pieces, 5);
}
END_TEST

/* Boots are counted in the run directory, which may be a new one. */
START_TEST(a_pool_that_starts_again_with_the_same_boot_is_forgotten)
{
    pool_adds(0, 50);
    ask_for_all();
    prefixes_deinit(&prefixes);
    ck_assert_int_eq(prefixes_init(&prefixes, 100), 0);
    ck_assert_int_eq(prefixes_publish(&prefixes), 0);
    pool_adds(30, 90); /* more than there were before */
    ask_for_all();
    check(90);
    ck_assert_uint_eq(published.pieces, 60);
}
END_TEST

/* Nor is one believed that has another boot and does not say that it begins. */
START_TEST(an_answer_of_another_boot_begins_in_any_case)
{
    pool_adds(0, 20);
    ask_for_all();
    const uint64_t hash = 5;
    const struct quern_prefixes told = {.boot = 3, .next = 9, .added = &hash, .n_added = 1};
    ck_assert_int_eq(published_look(&published, &told, 1), PUBLISHED_BEGINS);
    take(&told);
    struct prompt_pieces *piece = piece_of(3);
    uint32_t ours;
    book_find(&book, piece, &number, 1, &ours);
    ck_assert_uint_eq(ours, 0);
    free(piece);
}
END_TEST

/* ---- pools that tell too much ---- */

#define SECOND  CLOCK_NS_PER_S
#define MINUTES 4

struct sum {
    size_t answers, taken, added, dropped, logged;
    uint32_t numbers; /* that the pool has got */
};

/* Asks a pool for some minutes whenever it is due, with answers that come at once. */
static struct sum ask_for_minutes(void (*answer)(struct quern_prefixes *told))
{
    const struct pool pool = {.n_clients = 1};
    struct quern_prefixes told = {.boot = boot, .added = added, .dropped = dropped};
    struct sum sum = {0};
    const uint32_t before = number;
    for (uint64_t now = SECOND; now < SECOND + MINUTES * 60 * SECOND; now += SECOND / 1000) {
        if (now < published.due_ns) {
            now = published.due_ns - SECOND / 1000;
            continue;
        }
        published_asked(&published, &pool, true, now);
        answer(&told);
        sum.answers++;
        const enum published_news news = published_look(&published, &told, now);
        if (news == PUBLISHED_TOO_SOON) {
            sum.logged += published_wait(&published);
            continue;
        }
        number += news == PUBLISHED_BEGINS;
        sum.logged += published_take(&published, &told, &book, number, now);
        sum.taken++;
        sum.added += told.n_added;
        sum.dropped += told.n_dropped;
    }
    sum.numbers = number - before;
    return sum;
}

static void add_others(struct quern_prefixes *told)
{
    static uint64_t next;
    for (size_t i = 0; i < PUBLISHED_PART; i++)
        added[i] = ++next << 20;
    told->n_added = PUBLISHED_PART;
}

static void begin_anew(struct quern_prefixes *told)
{
    told->begins = true;
    told->at++;
    add_others(told);
}

static void start_anew(struct quern_prefixes *told)
{
    told->boot++;
    told->next++;
    add_others(told);
}

static void add_and_drop(struct quern_prefixes *told)
{
    memcpy(dropped, added, PUBLISHED_PART * sizeof *added);
    told->n_dropped = told->n_added;
    told->next += PUBLISHED_PART;
    add_others(told);
}

static void say_more_is_to_come(struct quern_prefixes *told)
{
    told->at = 9;
    told->next = 5;
}

static void say_it_is_elsewhere(struct quern_prefixes *told)
{
    told->at = told->at % 2 + 1;
}

static void lead_on(struct quern_prefixes *told)
{
    told->at++;
}

START_TEST(who_begins_with_each_answer_is_heard_twice_a_minute)
{
    void (*const ways[])(struct quern_prefixes *) = {begin_anew, start_anew};
    const struct sum sum = ask_for_minutes(ways[_i]);
    ck_assert_uint_le(sum.numbers, MINUTES * PUBLISHED_BEGINNINGS);
    ck_assert_uint_ge(sum.numbers, MINUTES);
    ck_assert_uint_eq(sum.taken, sum.numbers);
    ck_assert_uint_le(sum.answers, MINUTES * (PUBLISHED_BEGINNINGS + 1));
    ck_assert_uint_eq(sum.logged, 1);
}
END_TEST

/* The honest pool's pieces are older than all that come, and stay. */
START_TEST(who_adds_and_drops_takes_no_place_from_others)
{
    book.most = 1 << 16;
    pool_adds(0, 100);
    ask_for_all();
    const uint32_t honest = number;
    const struct published of_honest = published;
    published = (struct published){0};
    number = 1000;
    const struct sum sum = ask_for_minutes(add_and_drop);
    ck_assert_uint_le(sum.added, MINUTES * (size_t)(PUBLISHED_MOST + PUBLISHED_PART));
    ck_assert_uint_ge(sum.added, MINUTES * (size_t)(PUBLISHED_MOST / 2));
    ck_assert_uint_eq(sum.logged, 1);
    ck_assert_uint_le(book.n, 100 + 2 * PUBLISHED_PART);
    number = honest;
    published = of_honest;
    check(100);
}
END_TEST

START_TEST(who_leads_nowhere_is_asked_once_a_second)
{
    void (*const ways[])(struct quern_prefixes *) = {say_more_is_to_come, say_it_is_elsewhere};
    const struct sum sum = ask_for_minutes(ways[_i]);
    ck_assert_uint_le(sum.answers, _i == 0 ? MINUTES * 60 + 1 : MINUTES * 60 * 2 + 1);
    ck_assert_uint_ge(sum.answers, MINUTES * 60 - 2);
    ck_assert_uint_eq(sum.logged, 0);
}
END_TEST

START_TEST(who_leads_on_without_end_gets_a_bounded_number_of_questions)
{
    const struct sum sum = ask_for_minutes(lead_on);
    ck_assert_uint_le(sum.answers, MINUTES * (PUBLISHED_MOST / PUBLISHED_LEAST));
    ck_assert_uint_eq(sum.logged, 1);
}
END_TEST

/* What a broker can have is read at once, twice a minute. */
START_TEST(a_whole_book_is_read_without_a_pause)
{
    struct quern_prefixes told = {
        .boot = boot, .next = 1, .begins = true, .added = added, .dropped = dropped};
    const struct pool pool = {.n_clients = 1};
    book.most = 1 << 19;
    for (int round = 0; round < PUBLISHED_BEGINNINGS; round++) {
        told.begins = true;
        for (uint32_t part = 1; part <= PUBLISHED_MOST / PUBLISHED_BEGINNINGS / PUBLISHED_PART; part++) {
            const bool last = part == PUBLISHED_MOST / PUBLISHED_BEGINNINGS / PUBLISHED_PART;
            published_asked(&published, &pool, true, SECOND);
            told.at = last ? 0 : part;
            add_others(&told);
            ck_assert_int_eq(published_look(&published, &told, SECOND),
                             told.begins ? PUBLISHED_BEGINS : PUBLISHED_NOTHING);
            published_take(&published, &told, &book, number, SECOND);
            ck_assert(last || published.due_ns == SECOND);
            told.begins = false;
        }
    }
    ck_assert_int_eq(published_look(&published, &told, SECOND), PUBLISHED_NOTHING);
}
END_TEST

START_TEST(an_answer_that_does_not_come_is_asked_for_from_the_same_place)
{
    pool_adds(0, 50);
    ask();
    const struct quern_prefixes_wish before = published_wish(&published, "s");
    ck_assert_uint_ne(before.at, 0);
    published_miss(&published, SECOND);
    const struct quern_prefixes_wish after = published_wish(&published, "s");
    ck_assert_uint_eq(before.boot, after.boot);
    ck_assert_uint_eq(before.next, after.next);
    ck_assert_uint_eq(before.at, after.at);
    ck_assert_str_eq(before.secret, after.secret);
    ck_assert(!published.asked && !published.failed);
    ck_assert_uint_gt(published.due_ns, SECOND);
    ask_for_all();
    check(50);
    ck_assert(published_fail(&published, 1));
    ck_assert(!published_fail(&published, 2));
    ck_assert_uint_eq(published_wish(&published, "s").next, 0);
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
    tcase_add_test(tests, a_pool_that_starts_again_with_the_same_boot_is_forgotten);
    tcase_add_test(tests, an_answer_of_another_boot_begins_in_any_case);
    tcase_add_loop_test(tests, who_begins_with_each_answer_is_heard_twice_a_minute, 0, 2);
    tcase_add_test(tests, who_adds_and_drops_takes_no_place_from_others);
    tcase_add_loop_test(tests, who_leads_nowhere_is_asked_once_a_second, 0, 2);
    tcase_add_test(tests, who_leads_on_without_end_gets_a_bounded_number_of_questions);
    tcase_add_test(tests, a_whole_book_is_read_without_a_pause);
    tcase_add_test(tests, an_answer_that_does_not_come_is_asked_for_from_the_same_place);
}

int main(void)
{
    return run_tests("gateway/fleet/published", add);
}
