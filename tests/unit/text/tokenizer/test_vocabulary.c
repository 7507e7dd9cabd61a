/* SPDX-License-Identifier: MIT */
/* Lists of a vocabulary that are of another type or size than they should be, and ids at its ends. */

#include "tests/unit/run.h"
#include "tests/unit/text/tokenizer/vocabularies.h"
#include "gguf/gguf_writer.h"

#include <errno.h>

#define TOKENS "tokenizer.ggml.tokens"
#define TYPES  "tokenizer.ggml.token_type"
#define SCORES "tokenizer.ggml.scores"
#define MERGES "tokenizer.ggml.merges"

static const struct bytes texts[] = {BYTES_LITERAL("<unk>"), BYTES_LITERAL("a"), BYTES_LITERAL("b"),
                                     BYTES_LITERAL("ab")};
static const int32_t types[] = {TOKEN_UNKNOWN, TOKEN_NORMAL, TOKEN_NORMAL, TOKEN_NORMAL};
static const float scores[] = {0, -3, -2, -1};

/* Of the kind, with the four tokens, types and scores, but for what `leave_out` names. */
static struct test_vocabulary without(const char *kind, const char *leave_out)
{
    struct test_vocabulary v;
    vocabulary_begin(&v, kind);
    if (strcmp(leave_out, TOKENS) != 0)
        gguf_writer_strings(v.writer, TOKENS, texts, 4);
    if (strcmp(leave_out, TYPES) != 0)
        gguf_writer_i32s(v.writer, TYPES, types, 4);
    if (strcmp(leave_out, SCORES) != 0)
        gguf_writer_f32s(v.writer, SCORES, scores, 4);
    return v;
}

static void expect_refusal(struct test_vocabulary *v, const char *says)
{
    struct tokenizer *t = NULL;
    struct error err = {0};
    ck_assert_int_eq(vocabulary_open(v, &t, &err), -EINVAL);
    ck_assert_str_eq(err.text, says);
    ck_assert_ptr_null(t);
}

/* An array of numbers of one byte to eight. */
static void add_array(struct test_vocabulary *v, const char *key, enum gguf_type type, const void *items,
                      size_t n, size_t size)
{
    const struct gguf_pair pair = {
        .key = bytes_of_string(key),
        .value = {.type = GGUF_ARRAY, .array = {.type = type, .n = n, .raw = {items, n * size}}}};
    ck_assert_int_eq(gguf_writer_pair(v->writer, &pair), 0);
}

START_TEST(lists_of_other_types_are_refused)
{
    struct test_vocabulary v = without("llama", TOKENS);
    gguf_writer_string(v.writer, TOKENS, "a");
    expect_refusal(&v, TOKENS " is not an array of strings");
    v = without("llama", TOKENS);
    gguf_writer_i32s(v.writer, TOKENS, types, 4);
    expect_refusal(&v, TOKENS " is not an array of strings");
    v = without("llama", TOKENS);
    gguf_writer_strings(v.writer, TOKENS, texts, 0);
    expect_refusal(&v, "length of " TOKENS " 0 is out of range 1..16777216");
    v = without("llama", TYPES);
    gguf_writer_string(v.writer, TYPES, "a");
    expect_refusal(&v, TYPES " is not an array of integers");
    v = without("llama", TYPES);
    gguf_writer_strings(v.writer, TYPES, texts, 4);
    expect_refusal(&v, TYPES " is not an array of integers");
    v = without("llama", TYPES);
    gguf_writer_f32s(v.writer, TYPES, scores, 4);
    expect_refusal(&v, TYPES " is not an array of integers");
    v = without("llama", SCORES);
    gguf_writer_i32s(v.writer, SCORES, types, 4);
    expect_refusal(&v, SCORES " is not an array of reals");
    v = without("llama", SCORES);
    gguf_writer_f32(v.writer, SCORES, 1);
    expect_refusal(&v, SCORES " is not an array of reals");
    v = without("gpt2", SCORES);
    gguf_writer_string(v.writer, MERGES, "a b");
    expect_refusal(&v, MERGES " is not an array of strings");
    v = without("gpt2", SCORES);
    gguf_writer_i32s(v.writer, MERGES, types, 4);
    expect_refusal(&v, MERGES " is not an array of strings");
}
END_TEST

START_TEST(types_and_scores_are_of_any_width)
{
    static const int8_t narrow[] = {TOKEN_UNKNOWN, TOKEN_NORMAL, TOKEN_CONTROL, TOKEN_UNUSED};
    static const int64_t wide[] = {TOKEN_UNKNOWN, TOKEN_NORMAL, TOKEN_CONTROL, TOKEN_UNUSED};
    static const double real[] = {0, -3, -2, -1};
    for (int i = 0; i < 2; i++) {
        struct test_vocabulary v;
        vocabulary_begin(&v, "llama");
        gguf_writer_strings(v.writer, TOKENS, texts, 4);
        add_array(&v, TYPES, i ? GGUF_I64 : GGUF_I8, i ? (const void *)wide : narrow, 4, i ? 8 : 1);
        add_array(&v, SCORES, GGUF_F64, real, 4, 8);
        struct tokenizer *t = vocabulary_must_open(&v);
        for (int32_t id = 0; id < 4; id++)
            ck_assert_int_eq(tokenizer_type(t, id), narrow[id]);
        tokenizer_free(t);
    }
    static const int8_t wrong[] = {TOKEN_UNKNOWN, TOKEN_NORMAL, -1, TOKEN_NORMAL};
    struct test_vocabulary v = without("llama", TYPES);
    add_array(&v, TYPES, GGUF_I8, wrong, 4, 1);
    expect_refusal(&v, TYPES ": token 2 has the unknown type -1");
}
END_TEST

START_TEST(ids_end_with_the_vocabulary)
{
    struct test_vocabulary v = without("llama", "");
    gguf_writer_u32(v.writer, "tokenizer.ggml.eot_token_id", 3);
    struct tokenizer *t = vocabulary_must_open(&v);
    ck_assert_uint_eq(tokenizer_size(t), 4);
    ck_assert_int_eq(tokenizer_type(t, 3), TOKEN_NORMAL);
    ck_assert_int_eq(tokenizer_type(t, 4), TOKEN_UNUSED);
    ck_assert_int_eq(tokenizer_type(t, -1), TOKEN_UNUSED);
    ck_assert_uint_eq(tokenizer_name(t, 3).len, 2);
    ck_assert_uint_eq(tokenizer_name(t, 4).len, 0);
    ck_assert_uint_eq(tokenizer_name(t, -1).len, 0);
    ck_assert_uint_eq(tokenizer_piece(t, 4, false).len, 0);
    ck_assert_uint_eq(tokenizer_piece(t, -1, false).len, 0);
    ck_assert_uint_eq(tokenizer_end_ids(t).n, 1);
    ck_assert_int_eq(tokenizer_end_ids(t).items[0], 3);
    struct ids ids = {0}; /* one byte more than the most: refused by its length alone */
    ck_assert_int_eq(tokenizer_encode(t, (struct bytes){"", TOKENIZER_MAX_TEXT + 1}, 0, &ids), -EMSGSIZE);
    tokenizer_free(t);
    static const char *const keys[] = {"tokenizer.ggml.unknown_token_id", "tokenizer.ggml.bos_token_id",
                                       "tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                       "tokenizer.ggml.eom_token_id"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        char says[96];
        v = without("llama", "");
        gguf_writer_u32(v.writer, keys[i], 4);
        snprintf(says, sizeof says, "%s is 4, but the vocabulary has 4 tokens", keys[i]);
        expect_refusal(&v, says);
        v = without("llama", "");
        gguf_writer_string(v.writer, keys[i], "a");
        snprintf(says, sizeof says, "metadata %s has type string, expected an integer", keys[i]);
        expect_refusal(&v, says);
    }
}
END_TEST

/* Only where they are tokens of control, and only in SentencePiece's vocabularies. */
START_TEST(ids_that_are_not_named_are_the_usual_ones)
{
    static const int32_t usual[] = {TOKEN_UNKNOWN, TOKEN_CONTROL, TOKEN_CONTROL, TOKEN_NORMAL};
    struct test_vocabulary v = without("llama", TYPES);
    gguf_writer_i32s(v.writer, TYPES, usual, 4);
    struct tokenizer *t = vocabulary_must_open(&v);
    ck_assert(tokenizer_bos(t) == 1 && tokenizer_eos(t) == 2 && tokenizer_adds_bos(t));
    tokenizer_free(t);
    v = without("llama", "");
    t = vocabulary_must_open(&v);
    ck_assert(tokenizer_bos(t) == TOKENIZER_NONE && tokenizer_eos(t) == TOKENIZER_NONE);
    ck_assert(!tokenizer_adds_bos(t));
    tokenizer_free(t);
    v = without("gpt2", TYPES);
    gguf_writer_i32s(v.writer, TYPES, usual, 4);
    gguf_writer_strings(v.writer, MERGES, texts, 0);
    t = vocabulary_must_open(&v);
    ck_assert(tokenizer_bos(t) == TOKENIZER_NONE && tokenizer_eos(t) == TOKENIZER_NONE);
    tokenizer_free(t);
}
END_TEST

/* U+0144 is the first character that spells no byte; U+00AD has a spelling of its own. */
START_TEST(characters_that_spell_no_byte_stand_for_themselves)
{
    struct test_vocabulary v;
    static const struct bytes spelled[] = {BYTES_LITERAL("\u0143"), BYTES_LITERAL("\u0144"),
                                           BYTES_LITERAL("\u00ad"), BYTES_LITERAL("\u00ac")};
    static const char *const pieces[] = {"\xad", "\u0144", "\u00ad", "\xac"};
    vocabulary_begin(&v, "gpt2");
    gguf_writer_strings(v.writer, TOKENS, spelled, 4);
    gguf_writer_strings(v.writer, MERGES, spelled, 0);
    struct tokenizer *t = vocabulary_must_open(&v);
    for (int32_t id = 0; id < 4; id++)
        ck_assert(bytes_equal(tokenizer_piece(t, id, false), bytes_of_string(pieces[id])));
    tokenizer_free(t);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, lists_of_other_types_are_refused);
    tcase_add_test(tests, types_and_scores_are_of_any_width);
    tcase_add_test(tests, ids_end_with_the_vocabulary);
    tcase_add_test(tests, ids_that_are_not_named_are_the_usual_ones);
    tcase_add_test(tests, characters_that_spell_no_byte_stand_for_themselves);
}

int main(void)
{
    return run_tests("vocabulary", add);
}
