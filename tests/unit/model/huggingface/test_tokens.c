/* SPDX-License-Identifier: MIT */
/* tokenizer.json and its neighbours as GGUF's metadata: which kinds are known, what is written of them. */

#include "model/huggingface/tokens.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "text/tokenizer/tokenizer.h"
#include "gguf/gguf_assemble.h"
#include "gguf/gguf_values.h"
#include "gguf/gguf_writer.h"

#define BYTES_PRE "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":true}"
#define VOCAB     "\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]"
#define SPACE     "\xe2\x96\x81" /* U+2581 */
#define WORDS(digits)                                                                                        \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|" digits                           \
    "| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
#define SPLIT(digits, more)                                                                                  \
    "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" WORDS(digits) "\"},\"behavior\":\"Isolated\"" more "}"
#define PLAIN_BYTES    "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}"
#define PAIR(one, two) "{\"type\":\"Sequence\",\"pretokenizers\":[" one "," two "]}"

static struct gguf *written(const struct tokens_files *files, struct error *err)
{
    struct gguf_writer *writer;
    struct gguf *gguf = NULL;
    ck_assert_int_eq(gguf_writer_new(&writer), 0);
    if (tokens_write(files, writer, err) == 0) {
        ck_assert_int_eq(gguf_new(&gguf), 0);
        ck_assert_msg(gguf_assemble(gguf, writer, NULL, err) == 0, "%s", err->text);
    }
    gguf_writer_free(writer);
    return gguf;
}

static struct gguf *accepted(const struct tokens_files *files)
{
    struct error err = {0};
    struct gguf *gguf = written(files, &err);
    ck_assert_msg(gguf != NULL, "%s", err.text);
    return gguf;
}

static void refused(const struct tokens_files *files, const char *says)
{
    struct error err = {0};
    struct gguf *gguf = written(files, &err);
    ck_assert_msg(!gguf, "accepted, \"%s\" expected", says);
    ck_assert_str_eq(err.text, says);
}

/* Bytes' BPE of "a", "b" and "ab", with these parts; all of them are JSON. */
static struct bytes bytes_json(const char *pre, const char *more_of_model, const char *more)
{
    static char text[4096];
    snprintf(text, sizeof text, "{\"pre_tokenizer\":%s,\"model\":{\"type\":\"BPE\"%s," VOCAB "}%s}", pre,
             more_of_model, more);
    return bytes_of_string(text);
}

/* SentencePiece's, whose word 3 is U+2581. */
static struct bytes characters_json(const char *normalizer, const char *pre, const char *more)
{
    static char text[4096];
    snprintf(text, sizeof text,
             "{\"normalizer\":%s,\"pre_tokenizer\":%s,\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,"
             "\"unk_token\":\"b\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"" SPACE "\":3,\"<0x4a>\":4},"
             "\"merges\":[\"a b\"]}%s}",
             normalizer, pre, more);
    return bytes_of_string(text);
}

static void expect_text(const struct gguf *gguf, const char *key, const char *expected)
{
    struct bytes value = {0};
    ck_assert_msg(gguf_string(gguf, key, &value, NULL) == 0, "%s is missing", key);
    ck_assert_msg(bytes_equal(value, bytes_of_string(expected)), "%s: %.*s", key, (int)value.len,
                  (const char *)value.data);
}

/* -1: it is not there. */
static int64_t id(const struct gguf *gguf, const char *key)
{
    uint32_t value;
    return gguf_u32(gguf, key, &value, NULL) == 0 ? (int64_t)value : -1;
}

static bool flag(const struct gguf *gguf, const char *key)
{
    bool value = false;
    ck_assert_msg(gguf_bool(gguf, key, &value, NULL) == 0, "%s is missing", key);
    return value;
}

/* ---- kinds ---- */

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

#define REPLACE "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"" SPACE "\"}"
#define PREPEND "{\"type\":\"Prepend\",\"prepend\":\"" SPACE "\"}"
#define METASPACE(scheme, more)                                                                              \
    "{\"type\":\"Metaspace\",\"replacement\":\"" SPACE "\",\"prepend_scheme\":\"" scheme "\"" more "}"
#define GEMMA                                                                                                \
    "{\"type\":\"Split\",\"pattern\":{\"String\":\" "                                                        \
    "\"},\"behavior\":\"MergedWithPrevious\",\"invert\":false}"
#define NORMALIZERS(parts) "{\"type\":\"Sequence\",\"normalizers\":[" parts "]}"

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

/* ---- vocabulary ---- */

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
        {FRAME(TOKEN("<s>")), "", "tokenizer.json: post_processor: a frame without a text is not supported"},
        {FRAME(TEXT "," TEXT), "",
         "tokenizer.json: post_processor: this frame around a text is not supported"},
        {FRAME(TOKEN("a") "," TOKEN("<s>") "," TEXT), "",
         "tokenizer.json: post_processor: this frame around a text is not supported"},
        {FRAME(TEXT "," TOKEN("a") "," TOKEN("b")), "",
         "tokenizer.json: post_processor: this frame around a text is not supported"},
        {FRAME(TOKEN("<s>") "," TEXT), "{\"bos_token\":\"a\"}",
         "tokenizer.json: post_processor begins with another token than bos_token"},
        {FRAME(TEXT "," TOKEN("</s>")), "{\"eos_token\":\"a\"}",
         "tokenizer.json: post_processor ends with another token than eos_token"},
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
    tcase_add_test(tests, a_way_of_splitting_is_known_by_its_parts);
    tcase_add_test(tests, expressions_of_newer_families_are_known);
    tcase_add_test(tests, words_are_taken_whole_where_the_file_says_so);
    tcase_add_test(tests, another_way_of_splitting_is_refused);
    tcase_add_test(tests, models_and_normalizers_of_other_kinds_are_named);
    tcase_add_test(tests, spaces_of_characters_are_written_and_prepended);
    tcase_add_test(tests, another_way_with_spaces_is_refused);
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
