/* SPDX-License-Identifier: MIT */
/* What a gateway believes of the prompts that pools have. */

#include "gateway/fleet/book.h"
#include "tests/unit/run.h"

#include <stdlib.h>
#include <string.h>

static struct book book;
static const uint32_t numbers[] = {1, 2, 3, 4, 5, 6};
static uint32_t has[6];

/* A prompt of n pieces, of which the first `shared` are those of every prompt. */
static struct prompt_pieces *prompt_of(uint64_t own, uint32_t n, uint32_t shared)
{
    struct prompt_pieces *prompt = malloc(sizeof *prompt + n * sizeof *prompt->hashes);
    ck_assert_ptr_nonnull(prompt);
    prompt->n = n;
    for (uint32_t i = 0; i < n; i++)
        prompt->hashes[i] = (i < shared ? 1 : own) << 32 | (i + 1);
    return prompt;
}

static void find(const struct prompt_pieces *prompt)
{
    book_find(&book, prompt, numbers, 6, has);
}

static void set_up(void)
{
    book = (struct book){0};
}

static void tear_down(void)
{
    book_deinit(&book);
}

START_TEST(the_deepest_piece_that_names_a_pool_counts)
{
    struct prompt_pieces *first = prompt_of(7, 10, 4), *second = prompt_of(8, 10, 4);
    find(first);
    ck_assert_uint_eq(has[0], 0);
    book_add(&book, first, 1);
    book_add(&book, second, 2);
    find(first);
    ck_assert_uint_eq(has[0], 10);
    ck_assert_uint_eq(has[1], 4);
    ck_assert_uint_eq(has[2], 0);
    free(first);
    free(second);
}
END_TEST

/* Four pools later it is not named for the shared pieces any more, but for its own, and that is enough. */
START_TEST(a_pool_that_is_forgotten_for_the_beginning_has_it_all_the_same)
{
    struct prompt_pieces *prompts[6];
    for (uint32_t i = 0; i < 6; i++) {
        prompts[i] = prompt_of(10 + i, 8, 5);
        book_add(&book, prompts[i], numbers[i]);
    }
    find(prompts[0]);
    const uint32_t expected[] = {8, 0, 5, 5, 5, 5};
    ck_assert_mem_eq(has, expected, sizeof has);
    for (uint32_t i = 0; i < 6; i++)
        free(prompts[i]);
}
END_TEST

START_TEST(what_was_not_read_is_taken_back)
{
    struct prompt_pieces *prompt = prompt_of(7, 10, 0);
    book_add(&book, prompt, 1);
    book_add(&book, prompt, 2);
    book_drop(&book, prompt, 6, 1);
    find(prompt);
    ck_assert_uint_eq(has[0], 6);
    ck_assert_uint_eq(has[1], 10);
    free(prompt);
}
END_TEST

START_TEST(what_is_published_counts_once)
{
    struct prompt_pieces *prompt = prompt_of(7, 10, 0);
    book_note(&book, prompt->hashes, 8, 1);
    book_note(&book, prompt->hashes + 4, 6, 1);
    book_add(&book, prompt, 2);
    find(prompt);
    ck_assert_uint_eq(has[0], 10);
    ck_assert_uint_eq(has[1], 10);
    ck_assert_uint_eq(book.n, 10);
    book_strike(&book, prompt->hashes + 5, 5, 1);
    book_strike(&book, prompt->hashes + 5, 5, 1);
    book_strike(&book, prompt->hashes, 2, 3);
    find(prompt);
    ck_assert_uint_eq(has[0], 5);
    ck_assert_uint_eq(has[1], 10);
    free(prompt);
}
END_TEST

START_TEST(the_book_is_bounded_and_forgets_what_was_not_used)
{
    struct prompt_pieces *kept = prompt_of(1000000, 8, 0), *old = prompt_of(1000001, 8, 0);
    book.most = 1024;
    book_add(&book, kept, 1);
    book_add(&book, old, 1);
    for (uint64_t i = 0; i < 64; i++) {
        struct prompt_pieces *other = prompt_of(2 + i, 64, 0);
        book_add(&book, other, 2);
        book_add(&book, kept, 1);
        find(other);
        ck_assert_uint_eq(has[1], 64);
        free(other);
    }
    ck_assert_uint_eq(book.n, 1024);
    find(kept);
    ck_assert_uint_eq(has[0], 8);
    find(old);
    ck_assert_uint_eq(has[0], 0);
    free(kept);
    free(old);
}
END_TEST

START_TEST(the_place_of_a_piece_that_nobody_has_is_used_next)
{
    struct prompt_pieces *kept = prompt_of(7, 10, 0), *shared = prompt_of(8, 4, 0);
    book.most = 64;
    book_add(&book, kept, 1);
    book_add(&book, shared, 1);
    book_add(&book, shared, 2);
    for (uint64_t i = 0; i < 100; i++) {
        struct prompt_pieces *other = prompt_of(100 + i, 20, 0);
        book_add(&book, other, 3);
        book_drop(&book, other, i % 20, 3);
        book_drop(&book, other, 0, 3);
        book_drop(&book, other, 0, 3);
        find(other);
        ck_assert_uint_eq(has[2], 0);
        free(other);
    }
    book_drop(&book, shared, 0, 1);
    ck_assert_uint_eq(book.n, 34);
    find(kept);
    ck_assert_uint_eq(has[0], 10);
    find(shared);
    ck_assert_uint_eq(has[0], 0);
    ck_assert_uint_eq(has[1], 4);
    free(kept);
    free(shared);
}
END_TEST

/* More pools than are found: the deepest pieces' are, and nothing is written beyond. */
START_TEST(a_prompt_that_everybody_has_in_part_finds_those_that_have_most)
{
    struct prompt_pieces *prompt = prompt_of(7, 40, 0);
    for (uint32_t i = 0; i < 40 * BOOK_HOLDERS; i++) {
        const uint32_t number = 1000 - i;
        book_note(&book, &prompt->hashes[i / BOOK_HOLDERS], 1, number);
    }
    const uint32_t all[] = {1000 - 159, 1000 - 96, 1000 - 95, 1000, 5};
    book_find(&book, prompt, all, 5, has);
    const uint32_t expected[] = {40, 25, 0, 0, 0};
    ck_assert_mem_eq(has, expected, sizeof expected);
    free(prompt);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, the_deepest_piece_that_names_a_pool_counts);
    tcase_add_test(tests, a_pool_that_is_forgotten_for_the_beginning_has_it_all_the_same);
    tcase_add_test(tests, what_was_not_read_is_taken_back);
    tcase_add_test(tests, what_is_published_counts_once);
    tcase_add_test(tests, a_prompt_that_everybody_has_in_part_finds_those_that_have_most);
    tcase_add_test(tests, the_place_of_a_piece_that_nobody_has_is_used_next);
    tcase_add_test(tests, the_book_is_bounded_and_forgets_what_was_not_used);
}

int main(void)
{
    return run_tests("gateway/fleet/book", add);
}
