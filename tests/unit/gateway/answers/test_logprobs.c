/* SPDX-License-Identifier: MIT */
/* Log probabilities as OpenAI's clients read them: the JSON that is written is parsed again. */

#include "gateway/answers/logprobs.h"
#include "tests/unit/run.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

static struct logprobs logprobs;

/* Two tokens of "é!": the first byte of é and the rest, each with one alternative. */
static void add_two(enum logprobs_form form, uint32_t width)
{
    logprobs.form = form;
    static const struct quern_logprob entries[] = {{7, -0.5f}, {9, -1.5f}, {8, -0.25f}, {8, -0.25f}};
    static const struct quern_piece pieces[] = {{"\xc3", 1}, {"a", 1}, {"\xa9!", 2}, {"\xa9!", 2}};
    static const int32_t ids[] = {7, 8};
    struct quern_output output = {.ids = ids, .n_ids = 2, .n_logprobs = width};
    struct quern_logprob narrow[] = {entries[0], entries[2]};
    struct quern_piece narrow_pieces[] = {pieces[0], pieces[2]};
    output.logprobs = width == 2 ? entries : narrow;
    output.pieces = width == 2 ? pieces : narrow_pieces;
    ck_assert_int_eq(logprobs_add(&logprobs, &output), 0);
}

static json_t *written(void)
{
    struct json_out out = {0};
    logprobs_write(&logprobs, &out);
    ck_assert(!out.failed);
    json_t *json = json_loadb((const char *)out.buffer.data, out.buffer.len, JSON_DECODE_ANY, NULL);
    ck_assert_msg(json != NULL, "%.*s", (int)out.buffer.len, (const char *)out.buffer.data);
    json_out_deinit(&out);
    return json;
}

START_TEST(chat_has_an_object_for_each_token)
{
    add_two(LOGPROBS_CHAT, 2);
    json_t *json = written(), *content = json_object_get(json, "content");
    ck_assert_uint_eq(json_array_size(content), 2);
    json_t *first = json_array_get(content, 0), *likely = json_object_get(first, "top_logprobs");
    ck_assert_str_eq(json_string_value(json_object_get(first, "token")), "\xef\xbf\xbd");
    ck_assert_int_eq(json_integer_value(json_array_get(json_object_get(first, "bytes"), 0)), 0xc3);
    ck_assert_double_eq_tol(json_number_value(json_object_get(first, "logprob")), -0.5, 1e-9);
    ck_assert_uint_eq(json_array_size(likely), 1);
    ck_assert_str_eq(json_string_value(json_object_get(json_array_get(likely, 0), "token")), "a");
    json_decref(json);
    ck_assert(!logprobs_any(&logprobs)); /* told, and not held any more */
    json = written();
    ck_assert(json_is_null(json));
    json_decref(json);
}
END_TEST

/* Four bytes that begin characters, all of which would be U+FFFD; two ids that are spelled alike. */
START_TEST(parts_of_characters_have_keys_of_their_own)
{
    static const struct quern_logprob entries[] = {{1, -2},    {2, -0.5f}, {3, -1},
                                                   {4, -1.5f}, {5, -3},    {6, -4}};
    static const struct quern_piece pieces[] = {{"\xf0", 1},     {"\xe2", 1}, {"\xc3", 1},
                                                {"\xf0\x9f", 2}, {"a", 1},    {"a", 1}};
    static const int32_t ids[] = {1};
    const struct quern_output output = {
        .ids = ids, .n_ids = 1, .n_logprobs = 6, .logprobs = entries, .pieces = pieces};
    logprobs.form = LOGPROBS_COMPLETION;
    ck_assert_int_eq(logprobs_add(&logprobs, &output), 0);
    json_t *json = written(), *likely = json_array_get(json_object_get(json, "top_logprobs"), 0);
    ck_assert_uint_eq(json_object_size(likely), 5);
    ck_assert_double_eq_tol(json_number_value(json_object_get(likely, "bytes:\\xf0")), -2, 1e-9);
    ck_assert_double_eq_tol(json_number_value(json_object_get(likely, "bytes:\\xf0\\x9f")), -1.5, 1e-9);
    ck_assert_double_eq_tol(json_number_value(json_object_get(likely, "a")), -3, 1e-9);
    json_decref(json);
}
END_TEST

START_TEST(completions_have_lists_with_offsets_in_characters)
{
    add_two(LOGPROBS_COMPLETION, 2);
    json_t *json = written();
    json_t *likely = json_object_get(json, "top_logprobs");
    ck_assert_uint_eq(json_array_size(json_object_get(json, "tokens")), 2);
    ck_assert_uint_eq(json_object_size(json_array_get(likely, 0)), 2); /* its own is none of the likely */
    ck_assert_uint_eq(json_object_size(json_array_get(likely, 1)), 1); /* it is there already */
    ck_assert_ptr_nonnull(json_object_get(json_array_get(likely, 0), "bytes:\\xc3"));
    ck_assert_ptr_nonnull(json_object_get(json_array_get(likely, 1), "bytes:\\xa9\\x21"));
    ck_assert_str_eq(json_string_value(json_array_get(json_object_get(json, "tokens"), 0)), "bytes:\\xc3");
    json_decref(json);
    add_two(LOGPROBS_COMPLETION, 2);
    json = written();
    json_t *offsets = json_object_get(json, "text_offset");
    ck_assert_int_eq(json_integer_value(json_array_get(offsets, 0)), 2); /* é! came before */
    ck_assert_int_eq(json_integer_value(json_array_get(offsets, 1)), 3);
    json_decref(json);
}
END_TEST

START_TEST(without_alternatives_there_are_only_the_tokens)
{
    add_two(LOGPROBS_COMPLETION, 1);
    json_t *json = written();
    ck_assert(json_is_null(json_object_get(json, "top_logprobs")));
    ck_assert_uint_eq(json_array_size(json_object_get(json, "token_logprobs")), 2);
    json_decref(json);
    struct quern_output none = {.text = "x", .text_len = 1};
    ck_assert_int_eq(logprobs_add(&logprobs, &none), 0);
    ck_assert(!logprobs_any(&logprobs));
}
END_TEST

START_TEST(many_outputs_are_one_answer)
{
    size_t held = 0;
    for (int i = 0; i < 300; i++) {
        add_two(LOGPROBS_COMPLETION, 2);
        ck_assert_uint_gt(logprobs_bytes(&logprobs), held);
        held = logprobs_bytes(&logprobs);
    }
    json_t *json = written();
    ck_assert_uint_eq(json_array_size(json_object_get(json, "tokens")), 600);
    ck_assert_uint_eq(json_array_size(json_object_get(json, "token_logprobs")), 600);
    ck_assert_uint_eq(json_array_size(json_object_get(json, "top_logprobs")), 600);
    json_t *offsets = json_object_get(json, "text_offset");
    ck_assert_int_eq(json_integer_value(json_array_get(offsets, 599)), 599);
    ck_assert_uint_eq(logprobs_bytes(&logprobs), 0);
    json_decref(json);
}
END_TEST

START_TEST(what_cannot_be_has_the_fields_number)
{
    const struct quern_logprob never = {3, -INFINITY};
    const int32_t id = 3;
    struct quern_output output = {.ids = &id, .n_ids = 1, .logprobs = &never, .n_logprobs = 1};
    ck_assert_int_eq(logprobs_add(&logprobs, &output), 0);
    json_t *json = written();
    json_t *token = json_array_get(json_object_get(json, "content"), 0);
    ck_assert_double_eq_tol(json_number_value(json_object_get(token, "logprob")), -9999, 1e-9);
    json_decref(json);
}
END_TEST

static void reset(void)
{
    logprobs_deinit(&logprobs);
    logprobs = (struct logprobs){0};
}

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, reset, reset);
    tcase_add_test(tests, chat_has_an_object_for_each_token);
    tcase_add_test(tests, parts_of_characters_have_keys_of_their_own);
    tcase_add_test(tests, completions_have_lists_with_offsets_in_characters);
    tcase_add_test(tests, without_alternatives_there_are_only_the_tokens);
    tcase_add_test(tests, many_outputs_are_one_answer);
    tcase_add_test(tests, what_cannot_be_has_the_fields_number);
}

int main(void)
{
    return run_tests("gateway/logprobs", add);
}
