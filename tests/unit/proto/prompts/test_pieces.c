/* SPDX-License-Identifier: MIT */
/* Pieces of prompts: what two prompts share, and what keeps them apart. */

#include "proto/prompts/pieces.h"
#include "common/hash.h"
#include "proto/message.h"
#include "tests/unit/run.h"

#include <stdlib.h>
#include <string.h>

#define SECRET 77
#define N      20 /* pieces */

static int32_t ids[N * PROMPT_PIECE_TOKENS];

static struct generation prompt_of_ids(size_t n)
{
    struct generation generation = {.prompt = {.form = PROMPT_IDS, .ids = {ids, n}}, .cache_prompt = true};
    return generation;
}

static struct generation prompt_of_text(const char *text, size_t len)
{
    struct generation generation = {.prompt = {.form = PROMPT_TEXT, .text = {text, len}},
                                    .cache_prompt = true};
    return generation;
}

static struct generation prompt_of_chat(const struct chat_message *messages, size_t n)
{
    struct generation generation = {.prompt = {.form = PROMPT_CHAT}, .cache_prompt = true};
    generation.prompt.chat.items = messages;
    generation.prompt.chat.n = n;
    return generation;
}

static struct prompt_pieces *cut(struct generation generation)
{
    return prompt_pieces_cut(&generation, SECRET);
}

/* How many pieces two prompts share, and frees them. */
static uint32_t shared(struct prompt_pieces *a, struct prompt_pieces *b)
{
    uint32_t n = 0;
    ck_assert(a && b);
    while (n < a->n && n < b->n && a->hashes[n] == b->hashes[n])
        n++;
    for (uint32_t i = n; i < a->n && i < b->n; i++)
        ck_assert_uint_ne(a->hashes[i], b->hashes[i]); /* nothing meets again behind a difference */
    free(a);
    free(b);
    return n;
}

static void set_up(void)
{
    for (int32_t i = 0; i < N * PROMPT_PIECE_TOKENS; i++)
        ids[i] = i;
}

START_TEST(only_whole_pieces_count)
{
    ck_assert_ptr_null(cut(prompt_of_ids(0)));
    ck_assert_ptr_null(cut(prompt_of_ids(PROMPT_PIECE_TOKENS - 1)));
    for (size_t n = PROMPT_PIECE_TOKENS; n < 5 * PROMPT_PIECE_TOKENS; n += 37) {
        struct prompt_pieces *pieces = cut(prompt_of_ids(n));
        ck_assert_uint_eq(pieces->n, n / PROMPT_PIECE_TOKENS);
        free(pieces);
    }
}
END_TEST

START_TEST(prompts_share_what_they_begin_with)
{
    ck_assert_uint_eq(shared(cut(prompt_of_ids(1000)), cut(prompt_of_ids(700))), 700 / PROMPT_PIECE_TOKENS);
    struct prompt_pieces *before = cut(prompt_of_ids(1000));
    ids[500]++;
    ck_assert_uint_eq(shared(before, cut(prompt_of_ids(1000))), 500 / PROMPT_PIECE_TOKENS);
    before = cut(prompt_of_ids(1000));
    ids[0]++;
    ck_assert_uint_eq(shared(before, cut(prompt_of_ids(1000))), 0);
}
END_TEST

START_TEST(a_chat_that_grows_shares_all_that_was_said)
{
    char said[3][400];
    struct chat_message messages[3];
    for (int i = 0; i < 3; i++) {
        memset(said[i], 'a' + i, sizeof said[i]);
        messages[i] =
            (struct chat_message){.role = BYTES_LITERAL("user"), .content = {said[i], sizeof said[i]}};
    }
    const size_t each = 8 + 4 + sizeof said[0]; /* the lengths, the role, the content */
    ck_assert_uint_eq(shared(cut(prompt_of_chat(messages, 2)), cut(prompt_of_chat(messages, 3))),
                      2 * each / PROMPT_PIECE_BYTES);
    /* The same letters otherwise divided are another chat. */
    struct chat_message one = {.role = BYTES_LITERAL("user"), .content = {said[0], 300}};
    ck_assert_uint_eq(shared(cut(prompt_of_chat(&one, 1)), cut(prompt_of_chat(messages, 1))), 0);
}
END_TEST

/* Who sees hashes, but does not know what keys them, cannot test what comes behind one. */
START_TEST(a_hash_does_not_lead_to_the_next_one)
{
    char text[512];
    memset(text, 'x', sizeof text);
    struct prompt_pieces *pieces = cut(prompt_of_text(text, sizeof text));
    ck_assert_uint_eq(pieces->n, 2);
    ck_assert_uint_ne(pieces->hashes[1],
                      hash64(text + PROMPT_PIECE_BYTES, PROMPT_PIECE_BYTES, pieces->hashes[0]));
    free(pieces);
}
END_TEST

START_TEST(what_is_not_read_alike_is_not_the_same)
{
    char text[1024];
    memset(text, 'x', sizeof text);
    struct generation plain = prompt_of_text(text, sizeof text), salted = plain, special = plain,
                      other = plain;
    salted.cache_salt = BYTES_LITERAL("tenant");
    special.prompt.special = true;
    other.prompt =
        (struct prompt){.form = PROMPT_IDS, .ids = {(const int32_t *)(const void *)text, sizeof text / 4}};
    ck_assert_uint_eq(shared(cut(plain), cut(plain)), 4);
    ck_assert_uint_eq(shared(cut(plain), cut(salted)), 0);
    struct generation other_space = salted;
    other_space.cache_space = BYTES_LITERAL("c");
    ck_assert_uint_eq(shared(cut(salted), cut(other_space)), 0);
    other_space.cache_salt = (struct bytes){"", 0};
    ck_assert_uint_eq(shared(cut(plain), cut(other_space)), 0);
    ck_assert_uint_eq(shared(cut(plain), cut(special)), 0);
    ck_assert_uint_eq(shared(cut(plain), cut(other)), 0);
    ck_assert_uint_eq(shared(cut(special), cut(other)), 0);
    ck_assert_uint_eq(shared(cut(plain), prompt_pieces_cut(&plain, SECRET + 100)), 0);
}
END_TEST

START_TEST(a_prompt_that_is_not_to_be_cached_is_not_looked_at)
{
    struct generation generation = prompt_of_ids(1000);
    generation.cache_prompt = false;
    ck_assert_ptr_null(cut(generation));
}
END_TEST

START_TEST(no_prompt_is_looked_at_beyond_a_bound)
{
    size_t len = (size_t)(PROMPT_PIECES_MOST + 3) * PROMPT_PIECE_BYTES;
    char *text = calloc(1, len);
    struct prompt_pieces *pieces = cut(prompt_of_text(text, len));
    ck_assert_uint_eq(pieces->n, PROMPT_PIECES_MOST);
    free(pieces);
    free(text);
}
END_TEST

START_TEST(every_part_of_a_message_tells_prompts_apart)
{
    static char rest[4 * PROMPT_PIECE_BYTES];
    const struct bytes ann = BYTES_LITERAL("ann"), bob = BYTES_LITERAL("bob");
    const struct chat_message all = {
        .role = ann, .content = ann, .name = ann, .tool_calls = ann, .tool_call_id = ann, .thought = ann};
    memset(rest, 'a', sizeof rest);
    for (int part = -1; part < 6; part++) {
        struct chat_message first[2] = {all, {.content = {rest, sizeof rest}}},
                            second[2] = {first[0], first[1]};
        struct bytes *parts[] = {&second[0].role,       &second[0].content,      &second[0].name,
                                 &second[0].tool_calls, &second[0].tool_call_id, &second[0].thought};
        if (part >= 0)
            *parts[part] = bob;
        ck_assert_uint_eq(shared(cut(prompt_of_chat(first, 2)), cut(prompt_of_chat(second, 2))),
                          part < 0 ? 4 : 0);
    }
}
END_TEST

START_TEST(a_chat_has_as_many_pieces_as_its_parts_have_bytes)
{
    static char text[4 * PROMPT_PIECE_BYTES];
    const size_t lengths = 6 * sizeof(uint32_t), parts = 2 + 3 + 4 + 5 + 6;
    struct chat_message message = {.role = BYTES_LITERAL("ro"),
                                   .name = BYTES_LITERAL("nam"),
                                   .tool_calls = BYTES_LITERAL("call"),
                                   .tool_call_id = BYTES_LITERAL("callN"),
                                   .thought = BYTES_LITERAL("think!"),
                                   .content = {text, sizeof text - lengths - parts}};
    struct prompt_pieces *whole = cut(prompt_of_chat(&message, 1));
    message.content.len--;
    struct prompt_pieces *less = cut(prompt_of_chat(&message, 1));
    ck_assert_uint_eq(whole->n, 4);
    ck_assert_uint_eq(less->n, 3);
    free(whole);
    free(less);
}
END_TEST

START_TEST(a_salt_of_one_byte_is_a_salt)
{
    struct generation a = prompt_of_ids(4 * PROMPT_PIECE_TOKENS), b = a, none = a;
    a.cache_salt = BYTES_LITERAL("a");
    b.cache_salt = BYTES_LITERAL("b");
    ck_assert_uint_eq(shared(cut(a), cut(b)), 0);
    ck_assert_uint_eq(shared(cut(a), cut(none)), 0);
    ck_assert_uint_eq(shared(cut(a), cut(a)), 4);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, NULL);
    tcase_add_test(tests, only_whole_pieces_count);
    tcase_add_test(tests, prompts_share_what_they_begin_with);
    tcase_add_test(tests, a_chat_that_grows_shares_all_that_was_said);
    tcase_add_test(tests, a_hash_does_not_lead_to_the_next_one);
    tcase_add_test(tests, what_is_not_read_alike_is_not_the_same);
    tcase_add_test(tests, a_prompt_that_is_not_to_be_cached_is_not_looked_at);
    tcase_add_test(tests, no_prompt_is_looked_at_beyond_a_bound);
    tcase_add_test(tests, every_part_of_a_message_tells_prompts_apart);
    tcase_add_test(tests, a_chat_has_as_many_pieces_as_its_parts_have_bytes);
    tcase_add_test(tests, a_salt_of_one_byte_is_a_salt);
}

int main(void)
{
    return run_tests("proto/prompts/pieces", add);
}
