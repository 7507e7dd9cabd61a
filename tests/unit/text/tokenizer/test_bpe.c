/* SPDX-License-Identifier: MIT */
#include "tests/unit/run.h"
#include "tests/unit/text/tokenizer/vocabularies.h"
#include "gguf/gguf_writer.h"

#include <errno.h>
#include <pthread.h>

enum { SPECIAL = TOKENIZER_ADD_SPECIAL | TOKENIZER_PARSE_SPECIAL };

/* Ids 0 … 255: the bytes, in the spelling of byte-level vocabularies. */
static void add_bytes(struct test_vocabulary *v)
{
    static char spelled[256][4];
    int beyond = 0;
    for (int b = 0; b < 256; b++) {
        bool visible = (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
        int character = visible ? b : 0x100 + beyond++;
        if (character < 0x80) {
            spelled[b][0] = (char)character;
        } else {
            spelled[b][0] = (char)(0xc0 | character >> 6);
            spelled[b][1] = (char)(0x80 | (character & 0x3f));
        }
        vocabulary_add(v, (struct test_token){spelled[b], TOKEN_NORMAL, 0});
    }
}

static const char *const merges[] = {"Ġ a", "a b", "b c", "ab c", "Ġa b", "1 2", "12 3", "Ġ Ġ", "a a"};
static const char *const wholes[] = {"Ġa", "ab", "bc", "abc", "Ġab", "12", "123", "ĠĠ", "aa"};

/* The end token, id 256 + 9, is both BOS and EOS. */
static int32_t begin(struct test_vocabulary *v, const char *pre)
{
    struct bytes lines[sizeof merges / sizeof merges[0]];
    size_t n = sizeof merges / sizeof merges[0];
    vocabulary_begin(v, "gpt2");
    add_bytes(v);
    for (size_t i = 0; i < n; i++) {
        vocabulary_add(v, (struct test_token){wholes[i], TOKEN_NORMAL, 0});
        lines[i] = bytes_of_string(merges[i]);
    }
    int32_t end = vocabulary_add(v, (struct test_token){"<|endoftext|>", TOKEN_CONTROL, 0});
    gguf_writer_strings(v->writer, "tokenizer.ggml.merges", lines, n);
    gguf_writer_u32(v->writer, "tokenizer.ggml.bos_token_id", (uint32_t)end);
    gguf_writer_u32(v->writer, "tokenizer.ggml.eos_token_id", (uint32_t)end);
    if (pre)
        gguf_writer_string(v->writer, "tokenizer.ggml.pre", pre);
    return end;
}

static struct tokenizer *open_with(const char *pre)
{
    struct test_vocabulary v;
    begin(&v, pre);
    vocabulary_finish(&v);
    return vocabulary_must_open(&v);
}

START_TEST(merges_are_taken_in_the_order_of_the_list)
{
    struct tokenizer *t = open_with("gpt-2");
    ck_assert_str_eq(tokens_of(t, "abc", 0), "abc");
    ck_assert_str_eq(tokens_of(t, " abc", 0), "Ġa|bc"); /* "Ġ a" comes first, so "a b" never happens */
    ck_assert_str_eq(tokens_of(t, " ab", 0), "Ġab");
    ck_assert_str_eq(tokens_of(t, "aaa", 0), "aa|a");
    tokenizer_free(t);
}
END_TEST

START_TEST(words_end_where_the_pre_tokenizer_says)
{
    struct tokenizer *gpt2 = open_with("gpt-2"), *llama = open_with("llama-bpe"), *qwen = open_with("qwen2");
    ck_assert_str_eq(tokens_of(gpt2, "123123", 0), "123|123");
    ck_assert_str_eq(tokens_of(gpt2, "1231", 0), "123|1");
    ck_assert_str_eq(tokens_of(qwen, "123", 0), "1|2|3");
    ck_assert_str_eq(tokens_of(llama, "12312", 0), "123|12");
    ck_assert_str_eq(tokens_of(gpt2, "a  b", 0), "a|Ġ|Ġ|b");
    ck_assert_str_eq(tokens_of(gpt2, "a  ", 0), "a|ĠĠ");
    tokenizer_free(gpt2);
    tokenizer_free(llama);
    tokenizer_free(qwen);
}
END_TEST

START_TEST(without_a_name_the_pre_tokenizer_is_gpt_2s)
{
    struct tokenizer *none = open_with(NULL), *word = open_with("default");
    ck_assert_str_eq(tokens_of(none, "a 123", 0), "a|Ġ|123");
    ck_assert_str_eq(tokens_of(word, "a 123", 0), "a|Ġ|123");
    tokenizer_free(none);
    tokenizer_free(word);
}
END_TEST

START_TEST(llama_3_takes_words_that_are_tokens_whole_and_adds_bos)
{
    struct test_vocabulary v;
    begin(&v, "llama-bpe");
    vocabulary_add(&v, (struct test_token){"cab", TOKEN_NORMAL, 0}); /* no merge makes it */
    vocabulary_add(&v, (struct test_token){"bac", TOKEN_CONTROL, 0});
    vocabulary_finish(&v);
    struct tokenizer *t = vocabulary_must_open(&v);
    ck_assert_str_eq(tokens_of(t, "cab", 0), "cab");
    ck_assert_str_eq(tokens_of(t, "bac", 0), "b|a|c"); /* no text makes a control token */
    ck_assert_str_eq(tokens_of(t, "ab", SPECIAL), "<|endoftext|>|ab");
    tokenizer_free(t);
    t = open_with("gpt-2");
    ck_assert(!tokenizer_adds_bos(t));
    ck_assert_str_eq(tokens_of(t, "ab", SPECIAL), "ab");
    tokenizer_free(t);
}
END_TEST

START_TEST(control_tokens_are_parsed_only_when_asked_for)
{
    struct tokenizer *t = open_with("gpt-2");
    ck_assert_str_eq(tokens_of(t, "ab<|endoftext|>ab", TOKENIZER_PARSE_SPECIAL), "ab|<|endoftext|>|ab");
    ck_assert_ptr_null(strstr(tokens_of(t, "ab<|endoftext|>ab", 0), "<|endoftext|>"));
    tokenizer_free(t);
}
END_TEST

/* The name of such an ordinary token, cut as text is, would never come out of text. */
START_TEST(the_end_of_a_sentence_is_a_control_token_though_the_file_does_not_say_so)
{
    struct test_vocabulary v;
    begin(&v, "gpt-2");
    const int32_t ordinary = vocabulary_add(&v, (struct test_token){"</s>", TOKEN_NORMAL, 0});
    vocabulary_finish(&v);
    struct tokenizer *t = vocabulary_must_open(&v);
    ck_assert_str_eq(tokens_of(t, "a</s>b", TOKENIZER_PARSE_SPECIAL), "a|</s>|b");
    ck_assert_str_eq(tokens_of(t, "a</s>b", 0), "a|<|/|s|>|b");
    ck_assert_int_eq(tokenizer_type(t, ordinary), TOKEN_CONTROL);
    const struct ids_view ends = tokenizer_end_ids(t);
    for (size_t i = 0; i < ends.n; i++)
        ck_assert_int_ne(ends.items[i], ordinary); /* it ends no answer */
    tokenizer_free(t);
}
END_TEST

START_TEST(pieces_are_the_bytes_that_a_spelling_stands_for)
{
    struct tokenizer *t = open_with("gpt-2");
    ck_assert(bytes_equal(tokenizer_piece(t, 256, false), BYTES_LITERAL(" a")));
    ck_assert(
        bytes_equal(tokenizer_piece(t, 256, true), BYTES_LITERAL(" a"))); /* its space is the text's own */
    for (int b = 0; b < 256; b++) {
        struct bytes piece = tokenizer_piece(t, b, false);
        ck_assert_uint_eq(piece.len, 1);
        ck_assert_int_eq(*(const uint8_t *)piece.data, b);
    }
    ck_assert_uint_eq(tokenizer_piece(t, 265, false).len, 0);
    tokenizer_free(t);
}
END_TEST

static const char *const known[] = {"default",   "gpt-2",  "phi-2",       "mpt",   "olmo",
                                    "llama-bpe", "llama3", "llama-v3",    "qwen2", "deepseek-r1-qwen",
                                    "starcoder", "falcon", "deepseek-llm"};

START_TEST(every_text_comes_back_from_its_tokens)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct tokenizer *t = open_with(known[i]);
        expect_round_trips(t, (unsigned)i);
        tokenizer_free(t);
    }
}
END_TEST

struct job {
    const struct tokenizer *tokenizer;
    struct ids ids;
};

static void *encode_often(void *arg)
{
    struct job *job = arg;
    struct buffer text = {0};
    unsigned seed = 7; /* all the same texts */
    for (int round = 0; round < 200; round++) {
        random_text(&seed, 50, &text);
        if (tokenizer_encode(job->tokenizer, (struct bytes){text.data, text.len}, SPECIAL, &job->ids) != 0)
            return NULL;
    }
    buffer_deinit(&text);
    return job;
}

START_TEST(threads_share_a_tokenizer)
{
    struct tokenizer *t = open_with("llama-bpe");
    struct job jobs[4] = {{t, {0}}, {t, {0}}, {t, {0}}, {t, {0}}};
    pthread_t threads[4];
    void *done;
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, encode_often, &jobs[i]), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], &done);
        ck_assert_ptr_nonnull(done);
        ck_assert_uint_eq(jobs[i].ids.len, jobs[0].ids.len);
        ck_assert_mem_eq(jobs[i].ids.data, jobs[0].ids.data, jobs[0].ids.len * sizeof(int32_t));
    }
    for (int i = 0; i < 4; i++)
        ids_deinit(&jobs[i].ids);
    tokenizer_free(t);
}
END_TEST

START_TEST(long_texts_take_no_quadratic_time)
{
    for (size_t i = 1; i < sizeof known / sizeof known[0]; i += 4) { /* one of each kind */
        struct tokenizer *t = open_with(known[i]);
        expect_linear(t, "a", "");
        expect_linear(t, " ", "中");
        expect_linear(t, " \n", "");
        expect_linear(t, "1", "!");
        tokenizer_free(t);
    }
    struct tokenizer *t = open_with("deepseek-llm");
    expect_linear(t, " ", "中");
    tokenizer_free(t);
}
END_TEST

START_TEST(a_byte_without_a_token_is_left_out)
{
    struct test_vocabulary v;
    begin(&v, "gpt-2");
    v.texts[3] = BYTES_LITERAL("[gone]");
    vocabulary_finish(&v);
    struct tokenizer *t = vocabulary_must_open(&v);
    ck_assert_str_eq(tokens_of(t, "ab\x03", 0), "ab");
    ck_assert_str_eq(tokens_of(t, "\x03", 0), "");
    tokenizer_free(t);
}
END_TEST

static void expect_refusal(struct test_vocabulary *v, const char *says)
{
    struct tokenizer *t = NULL;
    struct error err = {0};
    vocabulary_finish(v);
    ck_assert_int_eq(vocabulary_open(v, &t, &err), -EINVAL);
    ck_assert_msg(strstr(err.text, says), "\"%s\" expected: %s", says, err.text);
}

/* As if the text had been written with one character for a letter and its mark. */
START_TEST(a_normalizer_of_the_file_is_kept)
{
    struct test_vocabulary v;
    begin(&v, "gpt-2");
    gguf_writer_string(v.writer, "tokenizer.normalizer", "NFC");
    vocabulary_finish(&v);
    struct tokenizer *t = vocabulary_must_open(&v), *plain = open_with("gpt-2");
    ck_assert_str_eq(tokens_of(t, "e\u0301", 0), "Ã|©");
    ck_assert_str_eq(tokens_of(t, "\u00e9", 0), "Ã|©");
    ck_assert_str_eq(tokens_of(plain, "e\u0301", 0), "e|Ì|ģ");
    /* Special tokens are cut out before, and what stands beside one does not cross it. */
    ck_assert_str_eq(tokens_of(t, "ae\u0301<|endoftext|>\u0301", TOKENIZER_PARSE_SPECIAL),
                     "a|Ã|©|<|endoftext|>|Ì|ģ");
    expect_linear(t, "\u0301\u0323", "");
    tokenizer_free(t);
    tokenizer_free(plain);
    begin(&v, "gpt-2");
    gguf_writer_string(v.writer, "tokenizer.normalizer", "NFKC");
    expect_refusal(&v, "tokenizer.normalizer: \"NFKC\" is not supported");
}
END_TEST

START_TEST(a_pre_tokenizer_that_is_not_known_is_refused_by_name)
{
    static const char *const unknown[] = {"tiny_aya", "gpt", "gpt-2 ", "gpt-2 phi-2", " "};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        struct test_vocabulary v;
        char says[64];
        begin(&v, unknown[i]);
        snprintf(says, sizeof says, "unknown pre-tokenizer \"%s\"", unknown[i]);
        expect_refusal(&v, says);
    }
}
END_TEST

START_TEST(merges_that_make_no_sense_are_refused)
{
    static const struct {
        const char *line, *says;
    } bad[] = {
        {"ab", "is not two parts"},    {" ab", "is not two parts"},
        {"a ", "is not two parts"},    {"", "is not two parts"},
        {"a b c", "is not two parts"}, {"zz a", "its left part is not in the vocabulary"},
        {"a zz", "its right part"},    {"c c", "the whole is not in the vocabulary"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct test_vocabulary v;
        struct bytes line = bytes_of_string(bad[i].line);
        vocabulary_begin(&v, "gpt2");
        add_bytes(&v);
        gguf_writer_strings(v.writer, "tokenizer.ggml.merges", &line, 1);
        expect_refusal(&v, bad[i].says);
    }
    struct test_vocabulary v;
    vocabulary_begin(&v, "gpt2");
    add_bytes(&v);
    expect_refusal(&v, "tokenizer.ggml.merges is missing");
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, merges_are_taken_in_the_order_of_the_list);
    tcase_add_test(tests, words_end_where_the_pre_tokenizer_says);
    tcase_add_test(tests, without_a_name_the_pre_tokenizer_is_gpt_2s);
    tcase_add_test(tests, llama_3_takes_words_that_are_tokens_whole_and_adds_bos);
    tcase_add_test(tests, control_tokens_are_parsed_only_when_asked_for);
    tcase_add_test(tests, the_end_of_a_sentence_is_a_control_token_though_the_file_does_not_say_so);
    tcase_add_test(tests, pieces_are_the_bytes_that_a_spelling_stands_for);
    tcase_add_test(tests, every_text_comes_back_from_its_tokens);
    tcase_add_test(tests, threads_share_a_tokenizer);
    tcase_add_test(tests, long_texts_take_no_quadratic_time);
    tcase_add_test(tests, a_byte_without_a_token_is_left_out);
    tcase_add_test(tests, a_pre_tokenizer_that_is_not_known_is_refused_by_name);
    tcase_add_test(tests, a_normalizer_of_the_file_is_kept);
    tcase_add_test(tests, merges_that_make_no_sense_are_refused);
}

int main(void)
{
    return run_tests("tokenizer_bpe", add);
}
