/* SPDX-License-Identifier: MIT */
/* The book of prefixes: who has how much of a prompt, and that it never grows. */

#include "broker/choose/prefixes.h"
#include "proto/message.h"
#include "tests/unit/run.h"

#include <stdlib.h>
#include <string.h>

#define SECRET 77
#define N      20 /* pieces */

static int32_t ids[N * PROMPT_PIECE_TOKENS];
static struct prefixes book;
static uint32_t has[3];

static struct generation prompt_of_ids(size_t n)
{
    struct generation generation = {.prompt = {.form = PROMPT_IDS, .ids = {ids, n}}, .cache_prompt = true};
    return generation;
}

static struct prompt_pieces *cut(struct generation generation)
{
    return prompt_pieces_cut(&generation, SECRET);
}

static void set_up(void)
{
    for (int32_t i = 0; i < N * PROMPT_PIECE_TOKENS; i++)
        ids[i] = i;
    ck_assert_int_eq(prefixes_init(&book, 1000), 0);
}

static void tear_down(void)
{
    prefixes_deinit(&book);
}

START_TEST(each_worker_is_known_for_what_it_has)
{
    struct prompt_pieces *whole = cut(prompt_of_ids(N * PROMPT_PIECE_TOKENS));
    struct prompt_pieces *part = cut(prompt_of_ids(8 * PROMPT_PIECE_TOKENS));
    prefixes_find(&book, whole, 3, has);
    for (int i = 0; i < 3; i++)
        ck_assert_uint_eq(has[i], 0);
    prefixes_add(&book, whole, 1);
    prefixes_add(&book, part, 2);
    prefixes_find(&book, whole, 3, has);
    ck_assert_uint_eq(has[0], 0);
    ck_assert_uint_eq(has[1], N);
    ck_assert_uint_eq(has[2], 8);
    prefixes_drop(&book, part, 5, 1); /* what is behind is of no use without it */
    prefixes_find(&book, whole, 3, has);
    ck_assert_uint_eq(has[1], 5);
    ck_assert_uint_eq(has[2], 8);
    prefixes_forget(&book, 2);
    prefixes_find(&book, whole, 3, has);
    ck_assert_uint_eq(has[1], 5);
    ck_assert_uint_eq(has[2], 0);
    free(whole);
    free(part);
}
END_TEST

START_TEST(what_the_store_has_is_known_without_a_worker)
{
    struct prompt_pieces *whole = cut(prompt_of_ids(N * PROMPT_PIECE_TOKENS));
    struct prompt_pieces *part = cut(prompt_of_ids(8 * PROMPT_PIECE_TOKENS));
    prefixes_store(&book, whole); /* nobody has read it */
    ck_assert_uint_eq(prefixes_stored(&book, whole), 0);
    prefixes_add(&book, whole, 1);
    ck_assert_uint_eq(prefixes_stored(&book, whole), 0);
    prefixes_store(&book, part);
    ck_assert_uint_eq(prefixes_stored(&book, whole), 8);
    ck_assert_uint_eq(prefixes_stored(&book, part), 8);
    prefixes_drop(&book, part, 5, 1);
    prefixes_forget(&book, 1);
    prefixes_find(&book, whole, 3, has);
    ck_assert_uint_eq(has[1], 0);
    ck_assert_uint_eq(prefixes_stored(&book, whole), 8);
    free(whole);
    free(part);
}
END_TEST

START_TEST(every_worker_has_a_bit_of_its_own)
{
    uint32_t all[PREFIXES_MOST_WORKERS];
    struct prompt_pieces *prompt = cut(prompt_of_ids(PROMPT_PIECE_TOKENS));
    for (uint32_t i = 0; i < PREFIXES_MOST_WORKERS; i += 3)
        prefixes_add(&book, prompt, i);
    prefixes_find(&book, prompt, PREFIXES_MOST_WORKERS, all);
    for (uint32_t i = 0; i < PREFIXES_MOST_WORKERS; i++)
        ck_assert_uint_eq(all[i], i % 3 == 0);
    free(prompt);
}
END_TEST

/* A prompt that is asked for again and again stays whole among a hundred times more than there is room for.
 */
START_TEST(what_nobody_asks_for_is_forgotten_first)
{
    struct prompt_pieces *kept = cut(prompt_of_ids(N * PROMPT_PIECE_TOKENS)), *first = NULL;
    for (int32_t i = 0; i < 5000; i++) {
        prefixes_add(&book, kept, 0);
        ids[0] = -i - 1;
        struct prompt_pieces *other = cut(prompt_of_ids(N * PROMPT_PIECE_TOKENS));
        prefixes_add(&book, other, 1);
        prefixes_find(&book, other, 2, has);
        ck_assert_uint_eq(has[1], N);
        if (first)
            free(other);
        else
            first = other;
    }
    ck_assert_uint_eq(book.n, 1000);
    prefixes_find(&book, kept, 2, has);
    ck_assert_uint_eq(has[0], N);
    prefixes_find(&book, first, 2, has);
    ck_assert_uint_eq(has[1], 0);
    free(kept);
    free(first);
}
END_TEST

START_TEST(of_a_prompt_its_end_is_forgotten_first)
{
    struct prefixes small;
    ck_assert_int_eq(prefixes_init(&small, N), 0);
    struct prompt_pieces *whole = cut(prompt_of_ids(N * PROMPT_PIECE_TOKENS));
    prefixes_add(&small, whole, 0);
    ids[0] = -1;
    struct prompt_pieces *other = cut(prompt_of_ids(5 * PROMPT_PIECE_TOKENS));
    prefixes_add(&small, other, 1);
    prefixes_find(&small, whole, 2, has);
    ck_assert_uint_eq(has[0], N - 5);
    free(other);
    other = cut(prompt_of_ids(N * PROMPT_PIECE_TOKENS));
    prefixes_deinit(&small);
    /* Less room than one prompt takes: its beginning is what stays. */
    ck_assert_int_eq(prefixes_init(&small, 3), 0);
    prefixes_add(&small, other, 0);
    prefixes_find(&small, other, 1, has);
    ck_assert_uint_eq(has[0], 3);
    free(whole);
    free(other);
    prefixes_deinit(&small);
}
END_TEST

START_TEST(a_book_of_zeroes_learns_nothing)
{
    struct prefixes none = {0};
    struct prompt_pieces *prompt = cut(prompt_of_ids(N * PROMPT_PIECE_TOKENS));
    prefixes_add(&none, prompt, 0);
    prefixes_drop(&none, prompt, 0, 0);
    prefixes_forget(&none, 0);
    prefixes_find(&none, prompt, 1, has);
    ck_assert_uint_eq(has[0], 0);
    free(prompt);
    prefixes_deinit(&none);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, each_worker_is_known_for_what_it_has);
    tcase_add_test(tests, what_the_store_has_is_known_without_a_worker);
    tcase_add_test(tests, every_worker_has_a_bit_of_its_own);
    tcase_add_test(tests, what_nobody_asks_for_is_forgotten_first);
    tcase_add_test(tests, of_a_prompt_its_end_is_forgotten_first);
    tcase_add_test(tests, a_book_of_zeroes_learns_nothing);
}

int main(void)
{
    return run_tests("broker/prefixes", add);
}
