/* SPDX-License-Identifier: MIT */
/* tokenizer.json and its neighbours as GGUF's metadata: ways of splitting, models and normalizers that are
 * known, and what is said of others. */

#include "tests/unit/model/huggingface/written_tokens.h"
#include "tests/unit/run.h"

#include <stdio.h>
#include <string.h>

#include "text/tokenizer/tokenizer.h"
#include "gguf/gguf_values.h"

#define WORDS(digits)                                                                                        \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|" digits                           \
    "| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
#define SPLIT(digits, more)                                                                                  \
    "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" WORDS(digits) "\"},\"behavior\":\"Isolated\"" more "}"
#define PLAIN_BYTES    "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}"
#define PAIR(one, two) "{\"type\":\"Sequence\",\"pretokenizers\":[" one "," two "]}"

START_TEST(a_way_of_splitting_is_known_by_its_parts)
{
    static const struct {
        const char *pre, *model, *expected;
    } cases[] = {
        {BYTES_PRE, "", "gpt-2"},
        {"{\"type\":\"Sequence\",\"pretokenizers\":[" BYTES_PRE "]}", "", "gpt-2"},
        {PAIR(SPLIT("\\\\p{N}{1,3}", ""), PLAIN_BYTES), "", "smaug-bpe"},
        {PAIR(SPLIT("\\\\p{N}{1,3}", ",\"invert\":false"), PLAIN_BYTES), ",\"ignore_merges\":true",
         "llama-bpe"},
        {PAIR(SPLIT("\\\\p{N}", ""), PLAIN_BYTES), ",\"ignore_merges\":false", "qwen2"},
        {PAIR("{\"type\":\"Digits\",\"individual_digits\":true}", BYTES_PRE), "", "smollm"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct gguf *gguf =
            accepted(&(struct tokens_files){.tokenizer = bytes_json(cases[i].pre, cases[i].model, "")});
        expect_text(gguf, "tokenizer.ggml.model", "gpt2");
        expect_text(gguf, "tokenizer.ggml.pre", cases[i].expected);
        ck_assert_ptr_null(gguf_find(gguf, "tokenizer.normalizer"));
        ck_assert_ptr_null(gguf_find(gguf, "tokenizer.ggml.scores"));
        gguf_free(gguf);
    }
}
END_TEST

#define CAPITALS "\\\\p{Lu}\\\\p{Lt}\\\\p{Lm}\\\\p{Lo}\\\\p{M}"
#define SMALLS   "\\\\p{Ll}\\\\p{Lm}\\\\p{Lo}\\\\p{M}"
#define CASED(contraction, digits)                                                                           \
    "[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?[" CAPITALS "]*[" SMALLS "]+" contraction                                 \
    "|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?[" CAPITALS "]+[" SMALLS "]*" contraction "|" digits                     \
    "| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n/]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
#define O200K  CASED("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "\\\\p{N}{1,3}")
#define TEKKEN CASED("", "\\\\p{N}")
#define QWEN35                                                                                               \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?[\\\\p{L}\\\\p{M}]+|\\\\p{N}"                \
    "| ?[^\\\\s\\\\p{L}\\\\p{M}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
#define SEED                                                                                                 \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}{1}"                       \
    "| ?[^\\\\s\\\\p{L}\\\\p{N}\\\\r\\\\n]+|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
#define ISOLATED(expression)                                                                                 \
    PAIR("{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" expression                                          \
         "\"},\"behavior\":\"Isolated\",\"invert\":false}",                                                  \
         PLAIN_BYTES)

/* Where a name of GGUF says otherwise whether words that are tokens are taken whole, a key does. */
START_TEST(expressions_of_newer_families_are_known)
{
    static const struct {
        const char *pre, *model, *expected;
        int whole; /* -1: not said */
    } cases[] = {
        {ISOLATED(O200K), "", "gpt-4o", -1},
        {ISOLATED(O200K), ",\"ignore_merges\":true", "gpt-4o", 1},
        {ISOLATED(TEKKEN), ",\"ignore_merges\":true", "tekken", -1},
        {ISOLATED(TEKKEN), "", "tekken", 0},
        {ISOLATED(QWEN35), "", "qwen35", -1},
        {ISOLATED(SEED), "", "seed-coder", -1},
        {PAIR(SPLIT("\\\\p{N}", ""), PLAIN_BYTES), ",\"ignore_merges\":true", "qwen2", 1},
        {BYTES_PRE, ",\"ignore_merges\":true", "gpt-2", 1},
        {PAIR("{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" O200K
              "\"},\"behavior\":\"Removed\",\"invert\":true}",
              PLAIN_BYTES),
         "", "gpt-4o", -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bool whole = false;
        struct gguf *gguf =
            accepted(&(struct tokens_files){.tokenizer = bytes_json(cases[i].pre, cases[i].model, "")});
        expect_text(gguf, "tokenizer.ggml.pre", cases[i].expected);
        const int said = gguf_bool(gguf, "tokenizer.whole_words", &whole, NULL) == 0 ? whole : -1;
        ck_assert_msg(said == cases[i].whole, "case %zu: %d", i, said);
        gguf_free(gguf);
    }
}
END_TEST

/* "xab" is a token that no merge makes. */
START_TEST(words_are_taken_whole_where_the_file_says_so)
{
    for (int whole = 0; whole < 2; whole++) {
        char text[512];
        struct tokenizer *tokenizer;
        struct ids ids = {0};
        struct error err = {0};
        snprintf(text, sizeof text,
                 "{\"pre_tokenizer\":" BYTES_PRE
                 ",\"model\":{\"type\":\"BPE\",\"ignore_merges\":%s,\"vocab\":"
                 "{\"a\":0,\"b\":1,\"ab\":2,\"x\":3,\"xab\":4},\"merges\":[\"a b\"]}}",
                 whole ? "true" : "false");
        struct gguf *gguf = accepted(&(struct tokens_files){.tokenizer = bytes_of_string(text)});
        ck_assert_msg(tokenizer_new(gguf, &tokenizer, &err) == 0, "%s", err.text);
        ck_assert_int_eq(tokenizer_encode(tokenizer, BYTES_LITERAL("xab"), 0, &ids), 0);
        ck_assert_uint_eq(ids.len, whole ? 1 : 2);
        ck_assert_int_eq(ids.data[0], whole ? 4 : 3);
        ids_deinit(&ids);
        tokenizer_free(tokenizer);
        gguf_free(gguf);
    }
}
END_TEST

START_TEST(another_way_of_splitting_is_refused)
{
    static const struct {
        const char *pre, *model;
    } cases[] = {
        {"null", ""},
        {"{\"type\":\"ByteLevel\",\"use_regex\":true}", ""}, /* a space in front is what is meant then */
        {PLAIN_BYTES, ""},
        {PAIR(BYTES_PRE, BYTES_PRE), ""},
        {PAIR(SPLIT("\\\\p{N}{1,2}", ""), PLAIN_BYTES), ""},
        {PAIR(SPLIT("\\\\p{N}", ",\"invert\":true"), PLAIN_BYTES), ""},
        {PAIR(SPLIT("\\\\p{N}", ""), BYTES_PRE), ""},
        {PAIR("{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" WORDS(
                  "\\\\p{N}") "\"},\"behavior\":\"Removed\"}",
              PLAIN_BYTES),
         ""},
        {PAIR("{\"type\":\"Digits\",\"individual_digits\":false}", BYTES_PRE), ""},
        {PAIR("{\"type\":\"Digits\"}", BYTES_PRE), ""},
        {PAIR("{\"type\":\"Digits\",\"individual_digits\":true}", PLAIN_BYTES), ""},
        {"{\"type\":\"Sequence\",\"pretokenizers\":[" SPLIT("\\\\p{N}", "") "," PLAIN_BYTES "," PLAIN_BYTES
                                                                            "]}",
         ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        refused(&(struct tokens_files){.tokenizer = bytes_json(cases[i].pre, cases[i].model, "")},
                "tokenizer.json: pre_tokenizer: this way of splitting texts is not supported");
}
END_TEST

START_TEST(models_and_normalizers_of_other_kinds_are_named)
{
    static const struct {
        const char *model, *more, *says;
    } cases[] = {
        {",\"dropout\":0.1", "", "tokenizer.json: model: dropout is not supported"},
        {",\"continuing_subword_prefix\":\"##\"", "",
         "tokenizer.json: model: continuing_subword_prefix is not supported"},
        {"", ",\"normalizer\":{\"type\":\"NFKC\"}", "tokenizer.json: normalizer: NFKC is not supported"},
        {"", ",\"normalizer\":{}", "tokenizer.json: normalizer: what has no type is not supported"},
        {"", ",\"normalizer\":3", "tokenizer.json: normalizer: null is not supported"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        refused(&(struct tokens_files){.tokenizer = bytes_json(BYTES_PRE, cases[i].model, cases[i].more)},
                cases[i].says);
    struct gguf *gguf = accepted(&(struct tokens_files){
        .tokenizer = bytes_json(
            BYTES_PRE, ",\"dropout\":0,\"end_of_word_suffix\":\"\",\"continuing_subword_prefix\":null",
            ",\"normalizer\":{\"type\":\"NFC\"}")});
    expect_text(gguf, "tokenizer.normalizer", "NFC");
    gguf_free(gguf);
    refused(&(struct tokens_files){.tokenizer = BYTES_LITERAL("{}")},
            "tokenizer.json: model: null is not supported");
    refused(&(struct tokens_files){0}, "tokenizer.json is empty");
    refused(&(struct tokens_files){.tokenizer = BYTES_LITERAL("[]")},
            "tokenizer.json: the JSON is not an object");
    refused(&(struct tokens_files){.tokenizer = bytes_json(BYTES_PRE, "", ""), .config = BYTES_LITERAL("x")},
            "tokenizer_config.json: line 1: invalid JSON: '[' or '{' expected near 'x'");
}
END_TEST

#define METASPACE(scheme, more)                                                                              \
    "{\"type\":\"Metaspace\",\"replacement\":\"" SPACE "\",\"prepend_scheme\":\"" scheme "\"" more "}"

START_TEST(spaces_of_characters_are_written_and_prepended)
{
    static const struct {
        const char *normalizer, *pre;
        bool prepends;
    } cases[] = {
        {REPLACE, "null", false},
        {NORMALIZERS(PREPEND "," REPLACE), "null", true},
        {"null", METASPACE("always", ",\"split\":false"), true},
        {"null", METASPACE("never", ",\"split\":false"), false},
        {PREPEND, METASPACE("never", ",\"split\":false"), true},
        {REPLACE, GEMMA, false}, /* which finds no space any more */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct gguf *gguf = accepted(
            &(struct tokens_files){.tokenizer = characters_json(cases[i].normalizer, cases[i].pre, "")});
        expect_text(gguf, "tokenizer.ggml.model", "llama");
        ck_assert_ptr_null(gguf_find(gguf, "tokenizer.ggml.pre"));
        ck_assert_ptr_null(gguf_find(gguf, "tokenizer.ggml.merges"));
        ck_assert_msg(flag(gguf, "tokenizer.ggml.add_space_prefix") == cases[i].prepends, "case %zu", i);
        ck_assert_int_eq(id(gguf, "tokenizer.ggml.unknown_token_id"), 1);
        gguf_free(gguf);
    }
}
END_TEST

START_TEST(another_way_with_spaces_is_refused)
{
    static const struct {
        const char *normalizer, *pre, *says;
    } cases[] = {
        {NORMALIZERS(REPLACE "," PREPEND), "null", "normalizer: Prepend"}, /* two marks before a space */
        {"{\"type\":\"Prepend\",\"prepend\":\"_\"}", "null", "normalizer: Prepend"},
        {"{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"_\"}", "null",
         "normalizer: Replace"},
        {"{\"type\":\"Replace\",\"pattern\":{\"String\":\"  \"},\"content\":\"" SPACE "\"}", "null",
         "normalizer: Replace"},
        {"null", "null", "pre_tokenizer: this way of splitting texts"},
        {"null", GEMMA, "pre_tokenizer: this way of splitting texts"},
        {PREPEND, "null", "pre_tokenizer: this way of splitting texts"},
        {"null", METASPACE("first", ",\"split\":false"), "pre_tokenizer: this way of splitting texts"},
        {"null", METASPACE("always", ""), "pre_tokenizer: this way of splitting texts"},
        {"null",
         "{\"type\":\"Metaspace\",\"replacement\":\"_\",\"prepend_scheme\":\"never\",\"split\":false}",
         "pre_tokenizer: this way of splitting texts"},
        {REPLACE, BYTES_PRE, "pre_tokenizer: this way of splitting texts"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char says[160];
        snprintf(says, sizeof says, "tokenizer.json: %s is not supported", cases[i].says);
        refused(&(struct tokens_files){.tokenizer = characters_json(cases[i].normalizer, cases[i].pre, "")},
                says);
    }
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_way_of_splitting_is_known_by_its_parts);
    tcase_add_test(tests, expressions_of_newer_families_are_known);
    tcase_add_test(tests, words_are_taken_whole_where_the_file_says_so);
    tcase_add_test(tests, another_way_of_splitting_is_refused);
    tcase_add_test(tests, models_and_normalizers_of_other_kinds_are_named);
    tcase_add_test(tests, spaces_of_characters_are_written_and_prepended);
    tcase_add_test(tests, another_way_with_spaces_is_refused);
}

int main(void)
{
    return run_tests("token kinds", add);
}
