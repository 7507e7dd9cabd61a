/* SPDX-License-Identifier: MIT */
/* What a request needs of a pool: the pieces of its prompt, and how much work it is. */

#include "gateway/fleet/wish.h"

#include <quern.h>
#include <stdlib.h>
#include <string.h>

#include "proto/prompts/pieces.h"
#include "tests/unit/run.h"

#define SECRET 7

static char text[3 * PROMPT_PIECE_BYTES + 10];

static struct quern_request with_text(void)
{
    struct quern_request request;
    quern_request_init(&request);
    memset(text, 'a', sizeof text - 1);
    request.text = text;
    return request;
}

/* The number of pieces, and in *ret_last the hash of the last one: it stands for all before it. */
static uint32_t pieces_of(const struct quern_request *request, uint64_t secret, uint64_t *ret_last)
{
    struct prompt_pieces *pieces = wish_pieces(request, secret, "");
    const uint32_t n = pieces ? pieces->n : 0;
    *ret_last = n > 0 ? pieces->hashes[n - 1] : 0;
    free(pieces);
    return n;
}

START_TEST(equal_prompts_have_equal_pieces_under_one_secret)
{
    struct quern_request request = with_text();
    uint64_t one, again, other;
    ck_assert_uint_eq(pieces_of(&request, SECRET, &one), 3);
    pieces_of(&request, SECRET, &again);
    pieces_of(&request, SECRET + 1, &other);
    ck_assert_uint_eq(one, again);
    ck_assert_uint_ne(one, other);
}
END_TEST

START_TEST(whoever_shares_no_cache_shares_no_pieces)
{
    struct quern_request request = with_text();
    uint64_t plain, salted, of_tenant, with_tools;
    pieces_of(&request, SECRET, &plain);
    request.cache_salt = "salt";
    pieces_of(&request, SECRET, &salted);
    request.cache_salt = NULL;
    request.tenant = "ada";
    pieces_of(&request, SECRET, &of_tenant);
    request.tenant = NULL;
    request.tools = "[]";
    pieces_of(&request, SECRET, &with_tools);
    ck_assert(plain != salted && plain != of_tenant && plain != with_tools && salted != of_tenant);
}
END_TEST

START_TEST(what_is_not_cached_has_no_pieces)
{
    struct quern_request request = with_text();
    uint64_t last;
    request.cache_prompt = false;
    ck_assert_uint_eq(pieces_of(&request, SECRET, &last), 0);
    request = with_text();
    request.embed = true;
    ck_assert_uint_eq(pieces_of(&request, SECRET, &last), 0);
    request = with_text();
    request.text = "short";
    ck_assert_uint_eq(pieces_of(&request, SECRET, &last), 0);
    request.text = NULL;
    ck_assert_uint_eq(pieces_of(&request, SECRET, &last), 0);
}
END_TEST

START_TEST(messages_ids_and_text_are_counted_in_tokens)
{
    static const int32_t ids[100];
    const struct quern_message messages[] = {{.role = "system", .content = "0123456789ab"},
                                             {.role = "assistant", .tool_calls = "[]"},
                                             {.role = "user", .content = "01234567"}};
    struct quern_request request;
    quern_request_init(&request);
    ck_assert_double_eq(wish_prompt_tokens(&request), 0);
    request.text = "01234567";
    ck_assert_double_eq(wish_prompt_tokens(&request), 2);
    request.text_len = 4;
    ck_assert_double_eq(wish_prompt_tokens(&request), 1);
    quern_request_init(&request);
    request.ids = ids;
    request.n_ids = 100;
    ck_assert_double_eq(wish_prompt_tokens(&request), 100);
    quern_request_init(&request);
    request.messages = messages;
    request.n_messages = 3;
    request.tools = "0123";
    ck_assert_double_eq(wish_prompt_tokens(&request), 6);
}
END_TEST

START_TEST(an_answer_counts_as_its_limit_up_to_what_is_usual)
{
    struct quern_request request;
    quern_request_init(&request);
    const double usual = wish_decode_tokens(&request);
    request.max_tokens = 10;
    ck_assert_double_eq(wish_decode_tokens(&request), 10);
    request.max_tokens = 1000000;
    ck_assert_double_eq(wish_decode_tokens(&request), usual);
    request.embed = true;
    ck_assert_double_eq(wish_decode_tokens(&request), 0);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, equal_prompts_have_equal_pieces_under_one_secret);
    tcase_add_test(tests, whoever_shares_no_cache_shares_no_pieces);
    tcase_add_test(tests, what_is_not_cached_has_no_pieces);
    tcase_add_test(tests, messages_ids_and_text_are_counted_in_tokens);
    tcase_add_test(tests, an_answer_counts_as_its_limit_up_to_what_is_usual);
}

int main(void)
{
    return run_tests("gateway/fleet/wish", add);
}
