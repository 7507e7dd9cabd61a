/* SPDX-License-Identifier: MIT */
#include "tests/unit/run.h"
#include "tests/unit/text/tokenizer/vocabularies.h"
#include "gguf/gguf_writer.h"

#include <errno.h>

enum { SPECIAL = TOKENIZER_ADD_SPECIAL | TOKENIZER_PARSE_SPECIAL };

static const struct test_token basic[] = {
    {"<pad>", TOKEN_CONTROL, 0},
    {"<eos>", TOKEN_CONTROL, 0},
    {"<bos>", TOKEN_CONTROL, 0},
    {"<unk>", TOKEN_UNKNOWN, 0},
};

static const struct test_token pieces[] = {
    {"▁", TOKEN_NORMAL, 0},        {"a", TOKEN_NORMAL, 0},
    {"b", TOKEN_NORMAL, 0},        {"c", TOKEN_NORMAL, 0},
    {"\n", TOKEN_NORMAL, 0},       {"bc", TOKEN_NORMAL, 0},
    {"ab", TOKEN_NORMAL, 0},       {"▁ab", TOKEN_NORMAL, 0},
    {"a▁", TOKEN_NORMAL, 0},       {"\n\n\n", TOKEN_NORMAL, 0},
    {"\n\n", TOKEN_NORMAL, 0},     {"<|channel>", TOKEN_USER_DEFINED, 0},
    {"<turn|>", TOKEN_CONTROL, 0}, {"<|tool_response>", TOKEN_USER_DEFINED, 0},
};

static const char *const merges[] = {"b c", "a b", "▁ ab", "a ▁", "\n \n"};

static struct tokenizer *open_with(const char *const *list, size_t n, bool bytes, struct error *ret_err)
{
    struct test_vocabulary v;
    struct bytes items[16];
    struct tokenizer *t = NULL;
    vocabulary_begin(&v, "gemma4");
    vocabulary_add_all(&v, basic, sizeof basic / sizeof basic[0]);
    if (bytes)
        vocabulary_add_bytes(&v);
    vocabulary_add_all(&v, pieces, sizeof pieces / sizeof pieces[0]);
    vocabulary_finish(&v);
    for (size_t i = 0; i < n; i++)
        items[i] = bytes_of_string(list[i]);
    if (n > 0)
        ck_assert_int_eq(gguf_writer_strings(v.writer, "tokenizer.ggml.merges", items, n), 0);
    ck_assert_int_eq(gguf_writer_bool(v.writer, "tokenizer.ggml.add_bos_token", false), 0);
    const int r = vocabulary_open(&v, &t, ret_err);
    ck_assert_int_eq(r, t ? 0 : -EINVAL);
    return t;
}

static struct tokenizer *open_basic(void)
{
    struct error err = {0};
    struct tokenizer *t = open_with(merges, sizeof merges / sizeof *merges, true, &err);
    ck_assert_msg(t != NULL, "%s", err.text);
    return t;
}

START_TEST(characters_are_joined_in_the_order_of_the_merges)
{
    struct tokenizer *t = open_basic();
    ck_assert_str_eq(tokens_of(t, "abc", 0), "a|bc");
    ck_assert_str_eq(tokens_of(t, "cab ab", 0), "c|ab|▁ab");
    ck_assert_str_eq(tokens_of(t, "a a", 0), "a▁|a");
    ck_assert_str_eq(tokens_of(t, "", 0), "");
    tokenizer_free(t);
}
END_TEST

START_TEST(runs_of_line_feeds_are_apart_and_whole_where_they_are_tokens)
{
    struct tokenizer *t = open_basic();
    ck_assert_str_eq(tokens_of(t, "a\n\n\nb", 0), "a|\n\n\n|b");
    ck_assert_str_eq(tokens_of(t, "\n\n\n\n", 0), "\n\n|\n\n"); /* no token: by merges */
    ck_assert_str_eq(tokens_of(t, "\n ", 0), "\n|▁");
    tokenizer_free(t);
}
END_TEST

START_TEST(what_is_no_token_falls_back_to_its_bytes)
{
    struct tokenizer *t = open_basic();
    ck_assert_str_eq(tokens_of(t, "aé\tb", 0), "a|<0xC3>|<0xA9>|<0x09>|b");
    expect_round_trips(t, 3);
    tokenizer_free(t);
}
END_TEST

START_TEST(without_byte_tokens_a_character_becomes_the_unknown_token_once)
{
    struct error err = {0};
    struct tokenizer *t = open_with(merges, 5, false, &err);
    ck_assert_msg(t != NULL, "%s", err.text);
    ck_assert_str_eq(tokens_of(t, "aé", 0), "a|<unk>");
    tokenizer_free(t);
}
END_TEST

START_TEST(bos_goes_before_whatever_the_file_says)
{
    struct tokenizer *t = open_basic();
    ck_assert_str_eq(tokens_of(t, "a", SPECIAL), "<bos>|a");
    ck_assert_int_eq(tokenizer_bos(t), 2);
    ck_assert_int_eq(tokenizer_eos(t), 1);
    ck_assert(tokenizer_adds_bos(t));
    tokenizer_free(t);
}
END_TEST

/* Markers of channels are text for the parser of answers; those that end a turn are ends. */
START_TEST(markers_are_whole_and_ends_of_turns_are_known)
{
    struct tokenizer *t = open_basic();
    ck_assert_str_eq(tokens_of(t, "a<|channel>b", 0), "a|<|channel>|b");
    ck_assert_str_eq(tokens_of(t, "a<turn|>", SPECIAL), "<bos>|a|<turn|>");
    const struct ids_view ends = tokenizer_end_ids(t);
    ck_assert_uint_eq(ends.n, 3);
    const int32_t response = ends.items[2];
    ck_assert_int_eq(ends.items[0], 1);
    ck_assert_int_eq(tokenizer_type(t, response), TOKEN_USER_DEFINED);
    ck_assert(bytes_equal(tokenizer_name(t, response), BYTES_LITERAL("<|tool_response>")));
    tokenizer_free(t);
}
END_TEST

START_TEST(merges_that_are_missing_or_make_no_token_are_refused)
{
    static const char *const odd[] = {"a c"};
    struct error err = {0};
    ck_assert_ptr_null(open_with(NULL, 0, true, &err));
    ck_assert_msg(strstr(err.text, "tokenizer.ggml.merges is missing; a \"gemma4\" vocabulary needs it"),
                  "%s", err.text);
    ck_assert_ptr_null(open_with(odd, 1, true, &err));
    ck_assert_msg(strstr(err.text, "entry 0 \"a c\": the whole is not in the vocabulary"), "%s", err.text);
}
END_TEST

START_TEST(long_texts_take_no_longer_than_they_should)
{
    struct tokenizer *t = open_basic();
    expect_linear(t, "ab", "");
    expect_linear(t, "\n", "a");
    expect_linear(t, "é", "");
    tokenizer_free(t);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, characters_are_joined_in_the_order_of_the_merges);
    tcase_add_test(tests, runs_of_line_feeds_are_apart_and_whole_where_they_are_tokens);
    tcase_add_test(tests, what_is_no_token_falls_back_to_its_bytes);
    tcase_add_test(tests, without_byte_tokens_a_character_becomes_the_unknown_token_once);
    tcase_add_test(tests, bos_goes_before_whatever_the_file_says);
    tcase_add_test(tests, markers_are_whole_and_ends_of_turns_are_known);
    tcase_add_test(tests, merges_that_are_missing_or_make_no_token_are_refused);
    tcase_add_test(tests, long_texts_take_no_longer_than_they_should);
}

int main(void)
{
    return run_tests("characters", add);
}
