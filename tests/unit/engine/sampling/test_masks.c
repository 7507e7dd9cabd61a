/* SPDX-License-Identifier: MIT */
/* Masks on their thread, over a real vocabulary. */

#include "tests/unit/run.h"
#include "tests/unit/text/grammar/accepts.h"

#include <stdlib.h>
#include <string.h>

#include "engine/sampling/masks.h"
#include "gguf/gguf.h"

static struct tokenizer *tokenizer;
static struct masks *masks;
static uint32_t n_vocab;
static const struct ids_view none;

static void set_up(void)
{
    struct gguf *gguf;
    struct error err = {0};
    ck_assert_msg(gguf_open(DEMO_MODEL, &gguf, &err) == 0, "%s", err.text);
    ck_assert_msg(tokenizer_new(gguf, &tokenizer, &err) == 0, "%s", err.text);
    gguf_free(gguf);
    n_vocab = (uint32_t)tokenizer_size(tokenizer);
    ck_assert_int_eq(masks_new(tokenizer, n_vocab, &masks), 0);
}

static void tear_down(void)
{
    masks = masks_free(masks);
    tokenizer_free(tokenizer);
}

static int32_t id_of(const char *text)
{
    for (uint32_t id = 0; id < n_vocab; id++)
        if (bytes_equal(tokenizer_piece(tokenizer, (int32_t)id, false), bytes_of_string(text)))
            return (int32_t)id;
    ck_abort_msg("no token is \"%s\"", text);
    return -1;
}

static struct mask *mask_of(struct grammar *grammar, const int32_t *ids, size_t n)
{
    struct mask *mask;
    ck_assert_int_eq(mask_new(masks, grammar, none, none, (struct ids_view){ids, n}, &mask), 0);
    return mask;
}

static void expect_same(const struct mask *a, const struct mask *b)
{
    ck_assert_mem_eq(mask_bits(a), mask_bits(b), (n_vocab + 31) / 32 * sizeof(uint32_t));
}

/* An answer that was begun by another worker is read again here; masks of others are made meanwhile. */
START_TEST(a_long_answer_that_is_resumed_holds_up_nobody)
{
    enum { ROUNDS = 1000000, N = 3 * ROUNDS + 2 };
    struct grammar *grammar = grammar_of(GRAMMAR_GBNF, "root ::= (\"a\" \"b\" \"c\")*");
    const int32_t abc[] = {id_of("a"), id_of("b"), id_of("c")};
    int32_t *ids = calloc(N, sizeof *ids);
    for (size_t i = 0; i < N; i++)
        ids[i] = abc[i % 3];
    struct mask *first = mask_of(grammar, ids, 2); /* the vocabulary is there from here on */
    mask_await(first);
    struct mask *resumed = mask_of(grammar, ids, N), *beside = mask_of(grammar, ids, 1);
    mask_await(beside);
    ck_assert(!mask_is_near(resumed));
    mask_await(resumed);
    expect_same(resumed, first);
    mask_take(beside, ids[1]);
    mask_await(beside);
    expect_same(beside, first);
    /* One that nobody wants any more is not read to its end. */
    mask_free(mask_of(grammar, ids, N));
    mask_free(first);
    mask_free(resumed);
    mask_free(beside);
    grammar_free(grammar);
    free(ids);
}
END_TEST

START_TEST(the_end_of_an_answer_is_allowed_where_the_grammar_may_end)
{
    struct grammar *grammar = grammar_of(GRAMMAR_GBNF, "root ::= \"q\" \"z\"?");
    const int32_t ids[] = {id_of("q"), id_of("z")}, end = id_of("b");
    struct error reason;
    struct mask *mask;
    ck_assert_int_eq(mask_new(masks, grammar, (struct ids_view){&end, 1}, none, none, &mask), 0);
    for (size_t n = 0; n <= 2; n++) {
        mask_await(mask);
        const uint32_t *bits = mask_bits(mask);
        for (int32_t id = 0; id < (int32_t)n_vocab; id++)
            ck_assert_int_eq(bits[id / 32] >> id % 32 & 1, (n < 2 && id == ids[n]) || (n > 0 && id == end));
        ck_assert_int_eq(mask_has_ended(mask, &reason), n > 0);
        if (n < 2)
            mask_take(mask, ids[n]);
    }
    mask_free(mask);
    grammar_free(grammar);
}
END_TEST

START_TEST(an_answer_that_is_none_of_the_grammar_allows_nothing_and_says_why)
{
    struct grammar *grammar = grammar_of(GRAMMAR_GBNF, "root ::= \"a\"*");
    const int32_t ids[] = {id_of("a"), id_of("b"), id_of("a")};
    struct error reason;
    struct mask *mask = mask_of(grammar, ids, 3);
    mask_await(mask);
    for (uint32_t word = 0; word < (n_vocab + 31) / 32; word++)
        ck_assert_uint_eq(mask_bits(mask)[word], 0);
    ck_assert(!mask_has_ended(mask, &reason));
    ck_assert_uint_gt(strlen(reason.text), 0);
    mask_free(mask);
    grammar_free(grammar);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_long_answer_that_is_resumed_holds_up_nobody);
    tcase_add_test(tests, the_end_of_an_answer_is_allowed_where_the_grammar_may_end);
    tcase_add_test(tests, an_answer_that_is_none_of_the_grammar_allows_nothing_and_says_why);
}

int main(void)
{
    return run_tests("engine/masks", add);
}
