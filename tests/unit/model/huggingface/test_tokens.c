/* SPDX-License-Identifier: MIT */
/* tokenizer.json and its neighbours as GGUF's metadata: the vocabulary, special tokens and the chat template.
 */

#include "tests/unit/model/huggingface/written_tokens.h"
#include "tests/unit/run.h"

#include <stdio.h>
#include <string.h>

#include "text/tokenizer/tokenizer.h"
#include "gguf/gguf_values.h"

static enum token_type type_at(const struct gguf *gguf, uint64_t i)
{
    return (enum token_type)gguf_array_int(gguf_find(gguf, "tokenizer.ggml.token_type"), i);
}

START_TEST(tokens_have_types_and_scores)
{
    struct gguf *gguf = accepted(&(struct tokens_files){
        .tokenizer = characters_json(REPLACE, "null",
                                     ",\"added_tokens\":[{\"id\":5,\"content\":\"<s>\",\"special\":true},"
                                     "{\"id\":7,\"content\":\"word\"}]")});
    const struct gguf_value *tokens = gguf_find(gguf, "tokenizer.ggml.tokens");
    const struct gguf_value *scores = gguf_find(gguf, "tokenizer.ggml.scores");
    static const char *const texts[] = {"a", "b", "ab", SPACE, "<0x4a>", "<s>", "[PAD6]", "word"};
    static const enum token_type types[] = {TOKEN_NORMAL, TOKEN_UNKNOWN, TOKEN_NORMAL, TOKEN_NORMAL,
                                            TOKEN_BYTE,   TOKEN_CONTROL, TOKEN_UNUSED, TOKEN_USER_DEFINED};
    size_t cursor = 0;
    ck_assert_uint_eq(tokens->array.n, 8);
    ck_assert_uint_eq(scores->array.n, 8);
    for (uint64_t i = 0; i < 8; i++) {
        ck_assert(bytes_equal(gguf_array_next_string(tokens, &cursor), bytes_of_string(texts[i])));
        ck_assert_int_eq(type_at(gguf, i), types[i]);
        ck_assert_double_eq(gguf_array_real(scores, i), i == 2 ? 0 : -1e9); /* the one that a merge makes */
    }
    gguf_free(gguf);
}
END_TEST

/* And where merges have no scores, words that look like bytes are words. */
START_TEST(the_earliest_merge_gives_the_score)
{
    struct gguf *gguf = accepted(&(struct tokens_files){
        .tokenizer =
            BYTES_LITERAL("{\"normalizer\":" REPLACE ",\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,"
                          "\"vocab\":{\"a\":0,\"aa\":1,\"aaa\":2},"
                          "\"merges\":[[\"a\",\"a\"],\"a aa\",[\"aa\",\"a\"]]}}")});
    const struct gguf_value *scores = gguf_find(gguf, "tokenizer.ggml.scores");
    ck_assert_double_eq(gguf_array_real(scores, 1), 0);
    ck_assert_double_eq(gguf_array_real(scores, 2), -1);
    ck_assert_int_eq(id(gguf, "tokenizer.ggml.unknown_token_id"), -1);
    gguf_free(gguf);
    gguf = accepted(&(struct tokens_files){
        .tokenizer = BYTES_LITERAL("{\"pre_tokenizer\":" BYTES_PRE ",\"model\":{\"type\":\"BPE\","
                                   "\"vocab\":{\"<0x4a>\":0,\"a\":1,\"aa\":2},\"merges\":[\"a a\"]}}")});
    ck_assert_int_eq(type_at(gguf, 0), TOKEN_NORMAL);
    const struct gguf_value *merges = gguf_find(gguf, "tokenizer.ggml.merges");
    size_t cursor = 0;
    ck_assert_uint_eq(merges->array.n, 1);
    ck_assert(bytes_equal(gguf_array_next_string(merges, &cursor), BYTES_LITERAL("a a")));
    gguf_free(gguf);
}
END_TEST

/* Gemma 4's merge by rank, not by score, and its marks of channels and tools are parsed in every text. */
START_TEST(characters_of_gemma_4_keep_their_merges)
{
    const struct tokens_files files = {
        .gemma4 = true,
        .tokenizer = characters_json(REPLACE, GEMMA,
                                     ",\"added_tokens\":[{\"id\":5,\"content\":\"<|turn>\",\"special\":true},"
                                     "{\"id\":6,\"content\":\"<|channel>\",\"special\":true}]")};
    struct gguf *gguf = accepted(&files);
    const struct gguf_value *merges = gguf_find(gguf, "tokenizer.ggml.merges");
    size_t cursor = 0;
    expect_text(gguf, "tokenizer.ggml.model", "gemma4");
    ck_assert(merges && merges->array.n == 1);
    ck_assert(bytes_equal(gguf_array_next_string(merges, &cursor), BYTES_LITERAL("a b")));
    ck_assert_ptr_null(gguf_find(gguf, "tokenizer.ggml.scores"));
    ck_assert_int_eq(type_at(gguf, 4), TOKEN_BYTE);
    ck_assert_int_eq(type_at(gguf, 5), TOKEN_CONTROL);
    ck_assert_int_eq(type_at(gguf, 6), TOKEN_USER_DEFINED);
    ck_assert_int_eq(id(gguf, "tokenizer.ggml.unknown_token_id"), 1);
    gguf_free(gguf);
    /* One that puts a space in front is of no such kind, and neither is one of bytes. */
    gguf = accepted(&(struct tokens_files){
        .gemma4 = true, .tokenizer = characters_json(NORMALIZERS(PREPEND "," REPLACE), "null", "")});
    expect_text(gguf, "tokenizer.ggml.model", "llama");
    gguf_free(gguf);
    gguf = accepted(&(struct tokens_files){.gemma4 = true, .tokenizer = bytes_json(BYTES_PRE, "", "")});
    expect_text(gguf, "tokenizer.ggml.model", "gpt2");
    gguf_free(gguf);
}
END_TEST

START_TEST(merges_that_cannot_be_are_named)
{
    static const struct {
        const char *merges, *says;
    } cases[] = {
        {"\"merges\":{}", "merges is missing"},
        {"\"merges\":[\"a a\",\" a\"]", "merges: entry 1 is not a pair of tokens"},
        {"\"merges\":[\"a \"]", "merges: entry 0 is not a pair of tokens"},
        {"\"merges\":[\"a a a\"]", "merges: entry 0 is not a pair of tokens"},
        {"\"merges\":[[\"a a\",\"a\"]]", "merges: entry 0 is not a pair of tokens"},
        {"\"merges\":[[\"a\",\"a\",\"a\"]]", "merges: entry 0 is not a pair of tokens"},
        {"\"merges\":[[\"\",\"a\"]]", "merges: entry 0 is not a pair of tokens"},
        {"\"merges\":[[\"a\",1]]", "merges: entry 0 is not a pair of tokens"},
        {"\"merges\":[\"a b\"]", "merges: entry 0 does not make a token of the vocabulary"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[512], says[160];
        snprintf(text, sizeof text,
                 "{\"normalizer\":" REPLACE ",\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,"
                 "\"vocab\":{\"a\":0,\"aa\":1},%s}}",
                 cases[i].merges);
        snprintf(says, sizeof says, "tokenizer.json: model: %s", cases[i].says);
        refused(&(struct tokens_files){.tokenizer = bytes_of_string(text)}, says);
    }
}
END_TEST

/* 65536 ids may have no token; words that are added tokens too do not make room for more of them. */
START_TEST(ids_without_a_token_are_filled)
{
    static const char *const more[] = {"", ",\"added_tokens\":[{\"id\":65536,\"content\":\"a\"}]",
                                       ",\"added_tokens\":[{\"id\":65537,\"content\":\"a\"},"
                                       "{\"id\":65537,\"content\":\"a\"}]"};
    for (int i = 0; i < 3; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "{\"pre_tokenizer\":" BYTES_PRE
                 ",\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":%d},\"merges\":[]}%s}",
                 i == 2 ? 65537 : 65536, more[i]);
        struct gguf *gguf = accepted(&(struct tokens_files){.tokenizer = bytes_of_string(text)});
        const struct gguf_value *tokens = gguf_find(gguf, "tokenizer.ggml.tokens");
        const uint64_t n = i == 2 ? 65538 : 65537;
        size_t cursor = 0;
        char pad[16];
        ck_assert_uint_eq(tokens->array.n, n);
        for (uint64_t at = 0; at < n - 1; at++) {
            snprintf(pad, sizeof pad, "[PAD%d]", (int)at);
            ck_assert(bytes_equal(gguf_array_next_string(tokens, &cursor), bytes_of_string(pad)));
        }
        ck_assert(bytes_equal(gguf_array_next_string(tokens, &cursor), BYTES_LITERAL("a")));
        ck_assert_int_eq(type_at(gguf, n - 2), TOKEN_UNUSED);
        gguf_free(gguf);
    }
    refused(
        &(struct tokens_files){.tokenizer = BYTES_LITERAL(
                                   "{\"pre_tokenizer\":" BYTES_PRE
                                   ",\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":65537},\"merges\":[]}}")},
        "tokenizer.json: model: vocab: the id of token a is not a number from 0 to 65536");
}
END_TEST

START_TEST(an_added_token_that_cannot_be_is_named)
{
    static const struct {
        const char *token, *says;
    } cases[] = {
        {"{\"id\":3}", "entry 0 has no content"},
        {"{\"id\":3,\"content\":\"\"}", "entry 0 has no content"},
        {"{\"content\":\"x\"}", "the id of token x is not a number from 0 to 65539"},
        {"{\"id\":65540,\"content\":\"x\"}", "the id of token x is not a number from 0 to 65539"},
        {"{\"id\":2,\"content\":\"x\"}", "id 2 has two tokens, one of them x"},
        {"{\"id\":3,\"content\":\"x\",\"lstrip\":true}", "lstrip of x is not supported"},
        {"{\"id\":3,\"content\":\"x\",\"single_word\":true}", "single_word of x is not supported"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char more[200], says[160];
        snprintf(more, sizeof more, ",\"added_tokens\":[%s]", cases[i].token);
        snprintf(says, sizeof says, "tokenizer.json: added_tokens: %s", cases[i].says);
        refused(&(struct tokens_files){.tokenizer = bytes_json(BYTES_PRE, "", more)}, says);
    }
}
END_TEST

/* ---- special tokens ---- */

#define ADDED                                                                                                \
    ",\"added_tokens\":[{\"id\":3,\"content\":\"<s>\",\"special\":true},{\"id\":4,\"content\":\"</s>\"}]"
#define FRAME(pieces)                                                                                        \
    ADDED ",\"post_processor\":{\"type\":\"Sequence\",\"processors\":[{\"type\":\"ByteLevel\"},"             \
          "{\"type\":\"TemplateProcessing\",\"single\":[" pieces "]}]}"
#define TOKEN(text) "{\"SpecialToken\":{\"id\":\"" text "\",\"type_id\":0}}"
#define TEXT        "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}"

START_TEST(a_frame_says_what_is_added)
{
    static const struct {
        const char *more, *config;
        int64_t bos, eos;
        bool adds_bos, adds_eos;
    } cases[] = {
        {ADDED, "", -1, -1, false, false},
        {ADDED, "{\"bos_token\":\"<s>\",\"eos_token\":{\"content\":\"</s>\"}}", 3, 4, false, false},
        {ADDED, "{\"bos_token\":\"<s>\",\"eos_token\":\"b\",\"add_bos_token\":true,\"add_eos_token\":true}",
         3, 1, true, true},
        {ADDED, "{\"add_bos_token\":true,\"add_eos_token\":true}", -1, -1, false, false}, /* there is none */
        {FRAME(TEXT), "{\"bos_token\":\"<s>\"}", 3, -1, false, false},
        {FRAME(TOKEN("<s>") "," TEXT), "", 3, -1, true, false},
        {FRAME(TOKEN("<s>") "," TEXT "," TOKEN("</s>")), "", 3, 4, true, true},
        {FRAME(TOKEN("<s>") "," TEXT "," TOKEN("</s>")),
         "{\"bos_token\":\"<s>\",\"eos_token\":\"</s>\",\"add_eos_token\":false}", 3, 4, true, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct gguf *gguf =
            accepted(&(struct tokens_files){.tokenizer = bytes_json(BYTES_PRE, "", cases[i].more),
                                            .config = bytes_of_string(cases[i].config)});
        ck_assert_int_eq(id(gguf, "tokenizer.ggml.bos_token_id"), cases[i].bos);
        ck_assert_int_eq(id(gguf, "tokenizer.ggml.eos_token_id"), cases[i].eos);
        ck_assert_msg(flag(gguf, "tokenizer.ggml.add_bos_token") == cases[i].adds_bos, "case %zu", i);
        ck_assert_msg(flag(gguf, "tokenizer.ggml.add_eos_token") == cases[i].adds_eos, "case %zu", i);
        gguf_free(gguf);
    }
}
END_TEST

START_TEST(a_frame_that_cannot_be_is_refused)
{
    static const struct {
        const char *more, *config, *says;
    } cases[] = {
        {FRAME(TOKEN("<s>")), "",
         "tokenizer.json: post_processor: a template without a text is not supported"},
        {FRAME(TEXT "," TEXT), "",
         "tokenizer.json: post_processor: this template around a text is not supported"},
        {FRAME(TOKEN("a") "," TOKEN("<s>") "," TEXT), "",
         "tokenizer.json: post_processor: this template around a text is not supported"},
        {FRAME(TEXT "," TOKEN("a") "," TOKEN("b")), "",
         "tokenizer.json: post_processor: this template around a text is not supported"},
        {FRAME(TOKEN("<s>") "," TEXT), "{\"bos_token\":\"a\"}",
         "tokenizer.json: post_processor begins with a token other than bos_token"},
        {FRAME(TEXT "," TOKEN("</s>")), "{\"eos_token\":\"a\"}",
         "tokenizer.json: post_processor ends with a token other than eos_token"},
        {ADDED, "{\"add_bos_token\":1}", "tokenizer_config.json: add_bos_token is neither true nor false"},
        {ADDED, "{\"add_eos_token\":1}", "tokenizer_config.json: add_eos_token is neither true nor false"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        refused(&(struct tokens_files){.tokenizer = bytes_json(BYTES_PRE, "", cases[i].more),
                                       .config = bytes_of_string(cases[i].config)},
                cases[i].says);
}
END_TEST

START_TEST(several_ids_end_an_answer)
{
    static const struct {
        const char *said;
        int64_t ids[3];
    } cases[] = {
        {"{}", {4, -1, -1}},
        {"{\"eos_token_id\":null}", {4, -1, -1}},
        {"{\"eos_token_id\":4}", {4, -1, -1}},
        {"{\"eos_token_id\":0}", {4, 0, -1}},
        {"{\"eos_token_id\":[2,4,2,0]}", {4, 2, 0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct gguf *gguf =
            accepted(&(struct tokens_files){.tokenizer = bytes_json(BYTES_PRE, "", ADDED),
                                            .config = BYTES_LITERAL("{\"eos_token\":\"</s>\"}"),
                                            .generation = bytes_of_string(cases[i].said)});
        ck_assert_int_eq(id(gguf, "tokenizer.ggml.eos_token_id"), cases[i].ids[0]);
        ck_assert_int_eq(id(gguf, "tokenizer.ggml.eot_token_id"), cases[i].ids[1]);
        ck_assert_int_eq(id(gguf, "tokenizer.ggml.eom_token_id"), cases[i].ids[2]);
        gguf_free(gguf);
    }
    static const char *const wrong[] = {"{\"eos_token_id\":5}", "{\"eos_token_id\":-1}",
                                        "{\"eos_token_id\":[0,\"b\"]}"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        refused(&(struct tokens_files){.tokenizer = bytes_json(BYTES_PRE, "", ADDED),
                                       .generation = bytes_of_string(wrong[i])},
                "generation_config.json: eos_token_id is not an id of the 5 tokens");
}
END_TEST

/* ---- template ---- */

START_TEST(a_template_is_found_where_it_stands)
{
    static const struct {
        const char *config, *chat, *expected;
    } cases[] = {
        {"{}", "", NULL},
        {"{\"chat_template\":null}", "", NULL},
        {"{\"chat_template\":\"\"}", "", NULL},
        {"{\"chat_template\":\"one\"}", "", "one"},
        {"{\"chat_template\":\"one\"}", "own", "own"},
        {"{\"chat_template\":3}", "own", "own"},
        {"{\"chat_template\":[{\"name\":\"default\",\"template\":\"d\"},{\"name\":\"rag\",\"template\":\"r\"}"
         "]}",
         "", "d"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct gguf *gguf = accepted(&(struct tokens_files){.tokenizer = bytes_json(BYTES_PRE, "", ""),
                                                            .config = bytes_of_string(cases[i].config),
                                                            .chat = bytes_of_string(cases[i].chat)});
        if (cases[i].expected)
            expect_text(gguf, "tokenizer.chat_template", cases[i].expected);
        else
            ck_assert_ptr_null(gguf_find(gguf, "tokenizer.chat_template"));
        gguf_free(gguf);
    }
    static const char *const wrong[] = {"{\"chat_template\":3}", "{\"chat_template\":[]}",
                                        "{\"chat_template\":[{\"name\":\"rag\",\"template\":\"r\"}]}"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        refused(&(struct tokens_files){.tokenizer = bytes_json(BYTES_PRE, "", ""),
                                       .config = bytes_of_string(wrong[i])},
                "tokenizer_config.json: chat_template is neither a string nor a list with one named default");
    static char longest[(1 << 20) + 1];
    memset(longest, 'x', sizeof longest);
    struct tokens_files files = {.tokenizer = bytes_json(BYTES_PRE, "", ""), .chat = {longest, 1 << 20}};
    gguf_free(accepted(&files));
    files.chat.len++;
    refused(&files, "the chat template has 1048577 bytes; at most 1048576 are read");
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, tokens_have_types_and_scores);
    tcase_add_test(tests, the_earliest_merge_gives_the_score);
    tcase_add_test(tests, characters_of_gemma_4_keep_their_merges);
    tcase_add_test(tests, merges_that_cannot_be_are_named);
    tcase_add_test(tests, ids_without_a_token_are_filled);
    tcase_add_test(tests, an_added_token_that_cannot_be_is_named);
    tcase_add_test(tests, a_frame_says_what_is_added);
    tcase_add_test(tests, a_frame_that_cannot_be_is_refused);
    tcase_add_test(tests, several_ids_end_an_answer);
    tcase_add_test(tests, a_template_is_found_where_it_stands);
}

int main(void)
{
    return run_tests("tokens", add);
}
