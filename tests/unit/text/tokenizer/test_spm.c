/* SPDX-License-Identifier: MIT */
#include "tests/unit/run.h"
#include "tests/unit/text/tokenizer/vocabularies.h"
#include "gguf/gguf_writer.h"

#include <errno.h>
#include <math.h>

enum { SPECIAL = TOKENIZER_ADD_SPECIAL | TOKENIZER_PARSE_SPECIAL, ONCE = SPECIAL | TOKENIZER_ADD_ONCE };

static const struct test_token basic[] = {
    {"<unk>", TOKEN_UNKNOWN, 0},
    {"<s>", TOKEN_CONTROL, 0},
    {"</s>", TOKEN_CONTROL, 0},
};

/* "▁" alone is the space; ab is better than bc; "▁ab" better still once "ab" is made. */
static const struct test_token pieces[] = {
    {"▁", TOKEN_NORMAL, -1},   {"a", TOKEN_NORMAL, -10}, {"b", TOKEN_NORMAL, -10},
    {"c", TOKEN_NORMAL, -10},  {"bc", TOKEN_NORMAL, -3}, {"ab", TOKEN_NORMAL, -2},
    {"▁ab", TOKEN_NORMAL, -4}, {"aa", TOKEN_NORMAL, -5}, {"aaaa", TOKEN_NORMAL, -6},
    {"s", TOKEN_NORMAL, -10},  {"<", TOKEN_NORMAL, -10}, {">", TOKEN_NORMAL, -10},
    {"<s", TOKEN_NORMAL, -7},  {"0", TOKEN_NORMAL, -10}, {"unused", TOKEN_UNUSED, 0},
};

static void begin(struct test_vocabulary *v)
{
    vocabulary_begin(v, "llama");
    vocabulary_add_all(v, basic, sizeof basic / sizeof basic[0]);
    vocabulary_add_bytes(v);
    vocabulary_add_all(v, pieces, sizeof pieces / sizeof pieces[0]);
}

static struct tokenizer *open_basic(void)
{
    struct test_vocabulary v;
    begin(&v);
    vocabulary_finish(&v);
    return vocabulary_must_open(&v);
}

/* Opens a vocabulary that must be refused with this text in the reason. */
static void expect_refusal(struct test_vocabulary *v, const char *says)
{
    struct tokenizer *t = NULL;
    struct error err = {0};
    ck_assert_int_eq(vocabulary_open(v, &t, &err), -EINVAL);
    ck_assert_msg(strstr(err.text, says), "\"%s\" expected: %s", says, err.text);
    ck_assert_ptr_null(t);
}

START_TEST(the_pair_with_the_best_score_is_joined_first)
{
    struct tokenizer *t = open_basic();
    ck_assert_str_eq(tokens_of(t, "abc", 0), "▁ab|c");
    ck_assert_str_eq(tokens_of(t, "bbc", 0), "▁|b|bc");
    ck_assert_str_eq(tokens_of(t, "cab", 0), "▁|c|ab");
    tokenizer_free(t);
}
END_TEST

START_TEST(equal_pairs_are_joined_from_the_left)
{
    struct tokenizer *t = open_basic();
    ck_assert_str_eq(tokens_of(t, "aaa", 0), "▁|aa|a");
    ck_assert_str_eq(tokens_of(t, "aaaaaaa", 0), "▁|aaaa|aa|a");
    tokenizer_free(t);
}
END_TEST

START_TEST(what_is_no_token_falls_back_to_its_bytes)
{
    struct tokenizer *t = open_basic();
    ck_assert_str_eq(tokens_of(t, "aé\n", 0), "▁|a|<0xC3>|<0xA9>|<0x0A>");
    tokenizer_free(t);
}
END_TEST

START_TEST(without_byte_tokens_a_character_becomes_the_unknown_token_once)
{
    struct test_vocabulary v;
    vocabulary_begin(&v, "llama");
    vocabulary_add_all(&v, basic, sizeof basic / sizeof basic[0]);
    vocabulary_add_all(&v, pieces, sizeof pieces / sizeof pieces[0]);
    vocabulary_finish(&v);
    struct tokenizer *t = vocabulary_must_open(&v);
    ck_assert_str_eq(tokens_of(t, "a🦙b", 0), "▁|a|<unk>|b");
    tokenizer_free(t);
}
END_TEST

START_TEST(a_token_may_reach_from_one_word_into_the_next)
{
    struct test_vocabulary v;
    begin(&v);
    vocabulary_add(&v, (struct test_token){"c▁", TOKEN_NORMAL, -1});
    vocabulary_add(&v, (struct test_token){"c▁a", TOKEN_NORMAL, -1});
    vocabulary_finish(&v);
    struct tokenizer *t = vocabulary_must_open(&v), *apart = open_basic();
    ck_assert_str_eq(tokens_of(t, "bc a", 0), "▁|b|c▁a");
    ck_assert_str_eq(tokens_of(apart, "bc a", 0), "▁|bc|▁|a");
    ck_assert_str_eq(tokens_of(apart, "  ab  ab ", 0), "▁|▁|▁ab|▁|▁ab|▁");
    tokenizer_free(t);
    tokenizer_free(apart);
}
END_TEST

START_TEST(bos_and_the_space_prefix_are_the_default)
{
    struct tokenizer *t = open_basic();
    ck_assert(tokenizer_adds_bos(t));
    ck_assert_str_eq(tokens_of(t, "ab", SPECIAL), "<s>|▁ab");
    ck_assert_str_eq(tokens_of(t, "", SPECIAL), "<s>");
    ck_assert_str_eq(tokens_of(t, "", 0), "");
    tokenizer_free(t);
}
END_TEST

START_TEST(the_file_says_what_is_added)
{
    struct test_vocabulary v;
    begin(&v);
    gguf_writer_bool(v.writer, "tokenizer.ggml.add_bos_token", false);
    gguf_writer_bool(v.writer, "tokenizer.ggml.add_eos_token", true);
    gguf_writer_bool(v.writer, "tokenizer.ggml.add_space_prefix", false);
    vocabulary_finish(&v);
    struct tokenizer *t = vocabulary_must_open(&v);
    ck_assert(!tokenizer_adds_bos(t));
    ck_assert_str_eq(tokens_of(t, "ab", SPECIAL), "ab|</s>");
    ck_assert_int_eq(tokenizer_piece(t, 259, true).len, 1); /* its space is the text's own */
    tokenizer_free(t);
}
END_TEST

START_TEST(control_tokens_are_parsed_only_when_asked_for)
{
    struct tokenizer *t = open_basic();
    ck_assert_str_eq(tokens_of(t, "<s>ab", TOKENIZER_PARSE_SPECIAL), "<s>|▁ab");
    ck_assert_str_eq(tokens_of(t, "<s>ab", 0), "▁|<s|>|ab");
    tokenizer_free(t);
}
END_TEST

START_TEST(no_spelling_makes_a_control_byte_or_unused_token)
{
    struct tokenizer *t = open_basic();
    /* "<s" and ">" stand side by side, and "<s>" is a token with the best score of all. */
    ck_assert_str_eq(tokens_of(t, "<s>", 0), "▁|<s|>");
    ck_assert_ptr_null(strstr(tokens_of(t, "<0x0A>", 0), "<0x0A>"));
    ck_assert_ptr_null(strstr(tokens_of(t, "unused", 0), "unused"));
    tokenizer_free(t);
}
END_TEST

START_TEST(user_defined_tokens_are_whole_and_the_longest_wins)
{
    struct test_vocabulary v;
    begin(&v);
    vocabulary_add(&v, (struct test_token){"bca", TOKEN_USER_DEFINED, 0});
    vocabulary_add(&v, (struct test_token){"abcab", TOKEN_USER_DEFINED, 0});
    vocabulary_finish(&v);
    struct tokenizer *t = vocabulary_must_open(&v);
    ck_assert_str_eq(tokens_of(t, "abca", 0), "▁|a|bca");
    ck_assert_str_eq(tokens_of(t, "abcabca", 0), "abcab|▁|c|a");
    tokenizer_free(t);
}
END_TEST

START_TEST(a_control_token_that_touches_the_users_bytes_is_not_parsed)
{
    struct tokenizer *t = open_basic();
    const char text[] = "<s>a<s>b";
    const uint8_t from_user[] = {0, 0, 0, 1, 1, 1, 1, 0}, last_byte[] = {0, 0, 1, 0, 0, 0, 0, 0};
    struct ids ids = {0};
    ck_assert_int_eq(
        tokenizer_encode_mixed(t, BYTES_LITERAL("<s>a<s>b"), from_user, TOKENIZER_PARSE_SPECIAL, &ids), 0);
    ck_assert_int_eq(ids.data[0], 1);
    for (size_t i = 1; i < ids.len; i++)
        ck_assert_int_ne(ids.data[i], 1);
    ids.len = 0;
    ck_assert_int_eq(
        tokenizer_encode_mixed(t, bytes_of_string(text), last_byte, TOKENIZER_PARSE_SPECIAL, &ids), 0);
    int n = 0;
    for (size_t i = 0; i < ids.len; i++)
        n += ids.data[i] == 1;
    ck_assert_int_eq(n, 1); /* the second one only */
    ck_assert_int_ne(ids.data[0], 1);
    ids_deinit(&ids);
    tokenizer_free(t);
}
END_TEST

/* The vocabulary of a model of this name, with one token more. */
static struct tokenizer *open_named(const char *name, struct test_token token)
{
    struct test_vocabulary v;
    begin(&v);
    gguf_writer_string(v.writer, "general.name", name);
    vocabulary_add(&v, token);
    vocabulary_finish(&v);
    return vocabulary_must_open(&v);
}

START_TEST(phi_3s_tokens_take_the_white_space_after_them)
{
    struct tokenizer *t = open_named("My Phi-3 mini", (struct test_token){"<|user|>", TOKEN_CONTROL, 0});
    ck_assert_str_eq(tokens_of(t, "<|user|> \n ab", TOKENIZER_PARSE_SPECIAL), "<|user|>|▁ab");
    ck_assert_str_eq(tokens_of(t, "<s> ab", TOKENIZER_PARSE_SPECIAL), "<s>|▁|▁ab");
    ck_assert_str_eq(tokens_of(t, "<unk> ab", TOKENIZER_PARSE_SPECIAL), "<unk>|▁|▁ab");
    ck_assert_str_eq(tokens_of(t, "</s> ab", TOKENIZER_PARSE_SPECIAL), "</s>|▁ab");
    ck_assert_str_eq(tokens_of(t, "<|user|>  ", TOKENIZER_PARSE_SPECIAL), "<|user|>");
    ck_assert_str_eq(tokens_of(t, "<|user|> </s>\t\v\f\rab", TOKENIZER_PARSE_SPECIAL), "<|user|>|</s>|▁ab");
    ck_assert_str_eq(tokens_of(t, "a</s> b</s>", TOKENIZER_PARSE_SPECIAL), "▁|a|</s>|▁|b|</s>");
    ck_assert_str_eq(tokens_of(t, "</s>\x0e", TOKENIZER_PARSE_SPECIAL), "</s>|▁|<0x0E>");
    ck_assert_str_eq(tokens_of(t, "</s>\x08", TOKENIZER_PARSE_SPECIAL), "</s>|▁|<0x08>");
    tokenizer_free(t);
}
END_TEST

/* By their name alone, however it is written; and not from what a longer token has taken. */
START_TEST(phi_3s_are_known_by_their_name)
{
    static const struct {
        const char *name, *tokens;
    } cases[] = {{"PHI3", "</s>|▁ab|<|endoftext|>|▁|▁ab"},
                 {"a phi-3", "</s>|▁ab|<|endoftext|>|▁|▁ab"},
                 {"phi 3", "</s>|▁|▁ab|<|endoftext|>|▁|▁ab"},
                 {"phi-", "</s>|▁|▁ab|<|endoftext|>|▁|▁ab"}};
    const struct test_token end = {"<|endoftext|>", TOKEN_CONTROL, 0},
                            longer = {" [longer]", TOKEN_USER_DEFINED, 0};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tokenizer *t = open_named(cases[i].name, end);
        ck_assert_str_eq(tokens_of(t, "</s> ab<|endoftext|> ab", TOKENIZER_PARSE_SPECIAL), cases[i].tokens);
        tokenizer_free(t);
    }
    struct tokenizer *t = open_named("phi3", longer);
    ck_assert_str_eq(tokens_of(t, "</s>  [longer]", TOKENIZER_PARSE_SPECIAL), "</s>| [longer]");
    tokenizer_free(t);
    struct test_vocabulary v;
    begin(&v);
    gguf_writer_u32(v.writer, "general.name", 3);
    vocabulary_finish(&v);
    expect_refusal(&v, "metadata general.name has type");
}
END_TEST

START_TEST(a_text_that_begins_with_bos_gets_no_second_one)
{
    struct tokenizer *t = open_basic();
    const char *once = tokens_of(t, "<s>ab", ONCE);
    ck_assert_str_eq(once, "<s>|▁ab");
    ck_assert_int_eq(strncmp(tokens_of(t, "<s><s>ab", ONCE), "<s>|<s>|", 8), 0); /* as it is written */
    ck_assert_int_eq(strncmp(tokens_of(t, "a<s>", ONCE), "<s>|", 4), 0);
    ck_assert_int_ne(strncmp(tokens_of(t, "<s>ab", TOKENIZER_ADD_SPECIAL), "<s>|▁ab", 8), 0);
    tokenizer_free(t);
}
END_TEST

START_TEST(ids_come_back_as_their_text)
{
    static const char *const texts[] = {"", "a", " a", "  ab", "ab c"};
    struct tokenizer *t = open_basic();
    struct buffer text = {0};
    struct ids ids = {0};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        ids.len = text.len = 0;
        ck_assert_int_eq(tokenizer_encode(t, bytes_of_string(texts[i]), TOKENIZER_ADD_SPECIAL, &ids), 0);
        ck_assert_int_eq(tokenizer_decode(t, ids.data, ids.len, false, SIZE_MAX, &text), 0);
        ck_assert_msg(bytes_equal((struct bytes){text.data, text.len}, bytes_of_string(texts[i])), "\"%.*s\"",
                      (int)text.len, (const char *)text.data);
    }
    text.len = 0;
    ck_assert_int_eq(tokenizer_decode(t, ids.data, ids.len, true, SIZE_MAX, &text), 0);
    ck_assert(bytes_equal((struct bytes){text.data, text.len}, BYTES_LITERAL("<s> ab c")));
    text.len = 0;
    ck_assert_int_eq(tokenizer_decode(t, ids.data, ids.len, true, 2, &text), 0);
    ck_assert_uint_eq(text.len, strlen("<s>")); /* what was begun */
    ck_assert_int_eq(tokenizer_decode(t, ids.data, ids.len, true, 3, &text), 0);
    ck_assert_uint_eq(text.len, strlen("<s><s> ab")); /* the text before does not count */
    ids_deinit(&ids);
    buffer_deinit(&text);
    tokenizer_free(t);
}
END_TEST

START_TEST(pieces_are_bytes_without_control_tokens)
{
    struct tokenizer *t = open_basic();
    ck_assert_int_eq(tokenizer_piece(t, 1, false).len, 0);
    ck_assert_int_eq(tokenizer_piece(t, -1, false).len, 0);
    ck_assert_int_eq(tokenizer_piece(t, 1 << 30, false).len, 0);
    struct bytes byte = tokenizer_piece(t, 3 + 0xc3, false);
    ck_assert_int_eq(byte.len, 1);
    ck_assert_int_eq(*(const uint8_t *)byte.data, 0xc3);
    struct bytes piece = tokenizer_piece(t, 3 + 256 + 6, false);
    ck_assert(bytes_equal(piece, BYTES_LITERAL(" ab")));
    ck_assert(bytes_equal(tokenizer_piece(t, 3 + 256 + 6, true), BYTES_LITERAL("ab")));
    ck_assert(bytes_equal(tokenizer_name(t, 1), BYTES_LITERAL("<s>")));
    ck_assert_int_eq(tokenizer_type(t, 0), TOKEN_UNKNOWN);
    tokenizer_free(t);
}
END_TEST

START_TEST(every_text_comes_back_from_its_tokens)
{
    struct tokenizer *t = open_basic();
    expect_round_trips(t, 1);
    tokenizer_free(t);
}
END_TEST

START_TEST(long_texts_take_no_quadratic_time)
{
    struct tokenizer *t = open_basic();
    expect_linear(t, "a", "");
    expect_linear(t, " ", "x");
    expect_linear(t, "<s>", "");
    tokenizer_free(t);
}
END_TEST

START_TEST(a_text_that_is_not_utf8_is_refused_and_adds_nothing)
{
    static const char *const bad[] = {"\xff", "a\xc3", "\xed\xa0\x80", "\xc0\x80", "ok \xf5\x80\x80\x80"};
    struct tokenizer *t = open_basic();
    struct ids ids = {0};
    ids_push(&ids, 7);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_int_eq(tokenizer_encode(t, bytes_of_string(bad[i]), SPECIAL, &ids), -EILSEQ);
    ck_assert_uint_eq(ids.len, 1);
    ids_deinit(&ids);
    tokenizer_free(t);
}
END_TEST

START_TEST(ids_that_end_an_answer_are_known_by_key_and_by_name)
{
    struct test_vocabulary v;
    begin(&v);
    int32_t turn = vocabulary_add(&v, (struct test_token){"<end_of_turn>", TOKEN_CONTROL, 0});
    int32_t odd =
        vocabulary_add(&v, (struct test_token){"<|im_end|>", TOKEN_NORMAL, 0}); /* a file's mistake */
    int32_t eot = vocabulary_add(&v, (struct test_token){"[end]", TOKEN_CONTROL, 0});
    gguf_writer_u32(v.writer, "tokenizer.ggml.eot_token_id", (uint32_t)eot);
    vocabulary_finish(&v);
    struct tokenizer *t = vocabulary_must_open(&v);
    struct ids_view ends = tokenizer_end_ids(t);
    const int32_t expected[] = {2, turn, odd, eot};
    ck_assert_uint_eq(ends.n, 4);
    for (size_t i = 0; i < 4; i++) {
        bool found = false;
        for (size_t k = 0; k < ends.n; k++)
            found |= ends.items[k] == expected[i];
        ck_assert_msg(found, "id %d does not end an answer", expected[i]);
    }
    ck_assert_int_eq(tokenizer_type(t, odd), TOKEN_CONTROL);
    ck_assert_int_eq(tokenizer_bos(t), 1);
    ck_assert_int_eq(tokenizer_eos(t), 2);
    tokenizer_free(t);
}
END_TEST

START_TEST(where_messages_have_an_end_only_the_last_ends_the_answer)
{
    for (int complete = 0; complete < 2; complete++) {
        struct test_vocabulary v;
        begin(&v);
        const int32_t message = vocabulary_add(&v, (struct test_token){"<|end|>", TOKEN_CONTROL, 0});
        const int32_t last = vocabulary_add(&v, (struct test_token){"<|return|>", TOKEN_CONTROL, 0});
        const int32_t call =
            vocabulary_add(&v, (struct test_token){complete ? "<|call|>" : "<|other|>", TOKEN_NORMAL, 0});
        gguf_writer_u32(v.writer, "tokenizer.ggml.eot_token_id", (uint32_t)message);
        vocabulary_finish(&v);
        struct tokenizer *t = vocabulary_must_open(&v);
        const struct ids_view ends = tokenizer_end_ids(t);
        bool ended[3] = {false};
        for (size_t i = 0; i < ends.n; i++)
            for (int32_t id = message; id <= call; id++)
                ended[id - message] |= ends.items[i] == id;
        ck_assert(ended[0] == !complete && ended[1] == complete && ended[2] == complete);
        ck_assert_int_eq(last, message + 1);
        ck_assert_int_eq(tokenizer_type(t, call), complete ? TOKEN_CONTROL : TOKEN_NORMAL);
        tokenizer_free(t);
    }
}
END_TEST

/* All that models end their turns with, and one after another all of them at once. */
START_TEST(every_familys_end_of_a_turn_is_known)
{
    static const char *const names[] = {
        "<|eot_id|>",         "<|im_end|>",           "<end_of_turn>",         "<|end|>",
        "<|endoftext|>",      "<|eom_id|>",           "<|END_OF_TURN_TOKEN|>", "<|end_of_text|>",
        "<end_of_utterance>", "<｜end▁of▁sentence｜>"};
    const size_t n = sizeof names / sizeof names[0];
    struct test_vocabulary v;
    begin(&v);
    const int32_t first = (int32_t)v.n;
    for (size_t i = 0; i < n; i++)
        vocabulary_add(&v, (struct test_token){names[i], TOKEN_NORMAL, 0});
    gguf_writer_u32(v.writer, "tokenizer.ggml.eos_token_id", 3);
    gguf_writer_u32(v.writer, "tokenizer.ggml.eot_token_id", 4);
    gguf_writer_u32(v.writer, "tokenizer.ggml.eom_token_id", 5);
    vocabulary_finish(&v);
    struct tokenizer *t = vocabulary_must_open(&v);
    struct ids_view ends = tokenizer_end_ids(t);
    ck_assert_uint_eq(ends.n, n + 3);
    for (size_t i = 0; i < ends.n; i++)
        ck_assert_int_eq(ends.items[i], i < 3 ? 3 + (int32_t)i : first + (int32_t)i - 3);
    for (size_t i = 0; i < n; i++)
        ck_assert_int_eq(tokenizer_type(t, first + (int32_t)i), TOKEN_CONTROL);
    ck_assert_int_eq(tokenizer_type(t, 3), TOKEN_BYTE); /* by its id alone */
    tokenizer_free(t);
}
END_TEST

/* Words are tokenized one by one where no token reaches across their beginning. One that does, but that no
 * text has, makes a word of the whole text: nothing else changes. */
START_TEST(words_apart_are_tokenized_as_they_are_together)
{
    static const char *const some[] = {" ",  "  ", "a", "b", "c", "ab",     "bc",
                                       "aa", "s",  "<", "0", "é", "\u2581", "\n"};
    struct test_vocabulary v;
    begin(&v);
    vocabulary_add(&v, (struct test_token){"\u4e2d\u2581", TOKEN_NORMAL, 0});
    vocabulary_finish(&v);
    struct tokenizer *together = vocabulary_must_open(&v), *apart = open_basic();
    unsigned seed = 9;
    for (int round = 0; round < 2000; round++) {
        char text[200] = "", expected[4096];
        for (int i = rand_r(&seed) % 20; i > 0; i--)
            strcat(text, some[(size_t)rand_r(&seed) % (sizeof some / sizeof some[0])]);
        strcpy(expected, tokens_of(together, text, 0));
        ck_assert_msg(strcmp(tokens_of(apart, text, 0), expected) == 0, "\"%s\" gives %s, not %s", text,
                      tokens_of(apart, text, 0), expected);
    }
    tokenizer_free(together);
    tokenizer_free(apart);
}
END_TEST

START_TEST(scores_of_either_sign_have_an_order)
{
    static const struct {
        float ab, bc;
        const char *tokens; /* of "abc" */
    } cases[] = {{2, 1, "\u2581|ab|c"},
                 {1, 2, "\u2581|a|bc"},
                 {-1, 2, "\u2581|a|bc"},
                 {2, -1, "\u2581|ab|c"},
                 {-1, -2, "\u2581|ab|c"},
                 {-2, -1, "\u2581|a|bc"},
                 {0, -1, "\u2581|ab|c"},
                 {-1, 0, "\u2581|a|bc"},
                 {0, 1, "\u2581|a|bc"},
                 {-0.0f, 0, "\u2581|ab|c"},
                 {0, -0.0f, "\u2581|ab|c"},
                 {1e-30f, 0, "\u2581|ab|c"},
                 {-INFINITY, -1e30f, "\u2581|a|bc"},
                 {1, INFINITY, "\u2581|a|bc"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct test_token tokens[] = {
            {"\u2581", TOKEN_NORMAL, -50},     {"a", TOKEN_NORMAL, -50},
            {"b", TOKEN_NORMAL, -50},          {"c", TOKEN_NORMAL, -50},
            {"ab", TOKEN_NORMAL, cases[i].ab}, {"bc", TOKEN_NORMAL, cases[i].bc}};
        struct test_vocabulary v;
        vocabulary_begin(&v, "llama");
        vocabulary_add_all(&v, basic, sizeof basic / sizeof basic[0]);
        vocabulary_add_all(&v, tokens, sizeof tokens / sizeof tokens[0]);
        vocabulary_finish(&v);
        struct tokenizer *t = vocabulary_must_open(&v);
        ck_assert_msg(strcmp(tokens_of(t, "abc", 0), cases[i].tokens) == 0, "case %zu: %s", i,
                      tokens_of(t, "abc", 0));
        tokenizer_free(t);
    }
}
END_TEST

START_TEST(a_kind_that_is_not_known_is_refused_by_name)
{
    struct test_vocabulary v;
    vocabulary_begin(&v, "rwkv");
    vocabulary_add_all(&v, basic, 3);
    vocabulary_finish(&v);
    expect_refusal(&v, "\"rwkv\"");
    vocabulary_begin(&v, NULL);
    vocabulary_add_all(&v, basic, 3);
    vocabulary_finish(&v);
    expect_refusal(&v, "tokenizer.ggml.model is missing");
}
END_TEST

START_TEST(a_vocabulary_that_does_not_fit_together_is_refused)
{
    struct test_vocabulary v;
    vocabulary_begin(&v, "llama");
    expect_refusal(&v, "tokenizer.ggml.tokens is missing");

    begin(&v);
    gguf_writer_u32(v.writer, "tokenizer.ggml.bos_token_id", 100000);
    vocabulary_finish(&v);
    expect_refusal(&v, "tokenizer.ggml.bos_token_id is 100000");

    begin(&v);
    v.types[5] = 9;
    vocabulary_finish(&v);
    expect_refusal(&v, "token 5 has the unknown type 9");

    begin(&v);
    v.scores[260] = NAN;
    vocabulary_finish(&v);
    expect_refusal(&v, "the score of token 260");

    begin(&v);
    v.texts[10] = BYTES_LITERAL("<0xZZ>");
    vocabulary_finish(&v);
    expect_refusal(&v, "token 10 has type byte");

    begin(&v);
    gguf_writer_strings(v.writer, "tokenizer.ggml.tokens", v.texts, v.n);
    gguf_writer_i32s(v.writer, "tokenizer.ggml.token_type", v.types, v.n);
    expect_refusal(&v, "tokenizer.ggml.scores is missing");

    begin(&v);
    gguf_writer_strings(v.writer, "tokenizer.ggml.tokens", v.texts, v.n);
    gguf_writer_i32s(v.writer, "tokenizer.ggml.token_type", v.types, v.n - 1);
    expect_refusal(&v, "tokenizer.ggml.token_type has 273 entries for 274 tokens");

    begin(&v);
    gguf_writer_strings(v.writer, "tokenizer.ggml.tokens", v.texts, v.n);
    gguf_writer_f32s(v.writer, "tokenizer.ggml.scores", v.scores, 3);
    expect_refusal(&v, "tokenizer.ggml.scores has 3 entries");

    vocabulary_begin(&v, "llama"); /* no unknown token, no byte tokens */
    vocabulary_add_all(&v, pieces, sizeof pieces / sizeof pieces[0]);
    vocabulary_finish(&v);
    expect_refusal(&v, "neither a token for byte <0x00> nor an unknown token");
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, the_pair_with_the_best_score_is_joined_first);
    tcase_add_test(tests, equal_pairs_are_joined_from_the_left);
    tcase_add_test(tests, what_is_no_token_falls_back_to_its_bytes);
    tcase_add_test(tests, without_byte_tokens_a_character_becomes_the_unknown_token_once);
    tcase_add_test(tests, a_token_may_reach_from_one_word_into_the_next);
    tcase_add_test(tests, bos_and_the_space_prefix_are_the_default);
    tcase_add_test(tests, the_file_says_what_is_added);
    tcase_add_test(tests, control_tokens_are_parsed_only_when_asked_for);
    tcase_add_test(tests, no_spelling_makes_a_control_byte_or_unused_token);
    tcase_add_test(tests, user_defined_tokens_are_whole_and_the_longest_wins);
    tcase_add_test(tests, a_control_token_that_touches_the_users_bytes_is_not_parsed);
    tcase_add_test(tests, phi_3s_tokens_take_the_white_space_after_them);
    tcase_add_test(tests, phi_3s_are_known_by_their_name);
    tcase_add_test(tests, ids_come_back_as_their_text);
    tcase_add_test(tests, where_messages_have_an_end_only_the_last_ends_the_answer);
    tcase_add_test(tests, every_familys_end_of_a_turn_is_known);
    tcase_add_test(tests, words_apart_are_tokenized_as_they_are_together);
    tcase_add_test(tests, scores_of_either_sign_have_an_order);
    tcase_add_test(tests, pieces_are_bytes_without_control_tokens);
    tcase_add_test(tests, every_text_comes_back_from_its_tokens);
    tcase_add_test(tests, long_texts_take_no_quadratic_time);
    tcase_add_test(tests, a_text_that_is_not_utf8_is_refused_and_adds_nothing);
    tcase_add_test(tests, a_text_that_begins_with_bos_gets_no_second_one);
    tcase_add_test(tests, ids_that_end_an_answer_are_known_by_key_and_by_name);
    tcase_add_test(tests, a_kind_that_is_not_known_is_refused_by_name);
    tcase_add_test(tests, a_vocabulary_that_does_not_fit_together_is_refused);
}

int main(void)
{
    return run_tests("tokenizer_spm", add);
}
