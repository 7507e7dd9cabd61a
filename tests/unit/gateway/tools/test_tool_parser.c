/* SPDX-License-Identifier: MIT */
/* Calls in answers: each answer is parsed whole and cut at every place, and byte by byte; what is told is the
 * same. */

#include "gateway/tools/tool_parser.h"
#include "tests/unit/run.h"

#include <stdio.h>
#include <string.h>

static const char *const names[] = {"rain", "time"};

/* What was told, written down: text as it is, calls as «name(arguments)». */
static char told[4096];

static void add(const void *data, size_t len)
{
    size_t at = strlen(told);
    ck_assert_uint_lt(at + len, sizeof told);
    memcpy(told + at, data, len);
    told[at + len] = 0;
}

static void on_text(void *arg, struct bytes text)
{
    add(text.data, text.len);
}

static void on_call(void *arg, const char *name)
{
    add("«", strlen("«"));
    add(name, strlen(name));
    add("(", 1);
}

static void on_arguments(void *arg, struct bytes json)
{
    add(json.data, json.len);
}

static void on_end(void *arg)
{
    add(")»", strlen(")»"));
}

static const struct tool_sink sink = {on_text, on_call, on_arguments, on_end, NULL};

/* The answer in pieces that end at `cut`, and are `size` bytes long behind it. */
static const char *parse(const char *form, const char *answer, size_t cut, size_t size)
{
    struct tool_parser parser;
    size_t len = strlen(answer);
    told[0] = 0;
    ck_assert_ptr_nonnull(tool_form_find(form));
    tool_parser_init(&parser, tool_form_find(form), names, 2);
    ck_assert_int_eq(tool_parser_push(&parser, (struct bytes){answer, cut}, &sink), 0);
    for (size_t at = cut; at < len; at += size)
        ck_assert_int_eq(
            tool_parser_push(&parser, (struct bytes){answer + at, len - at < size ? len - at : size}, &sink),
            0);
    ck_assert_int_eq(tool_parser_finish(&parser, &sink), 0);
    tool_parser_deinit(&parser);
    return told;
}

static void expect(const char *form, const char *answer, const char *expected)
{
    ck_assert_str_eq(parse(form, answer, 0, 1), expected);
    for (size_t cut = 0; cut <= strlen(answer); cut++)
        ck_assert_msg(strcmp(parse(form, answer, cut, sizeof told), expected) == 0,
                      "%s, cut at %zu: \"%s\", not \"%s\"", form, cut, told, expected);
}

START_TEST(calls_in_tags_are_taken_out)
{
    expect("hermes", "<tool_call>\n{\"name\": \"rain\", \"arguments\": {\"town\": \"Ulm\"}}\n</tool_call>",
           "«rain({\"town\": \"Ulm\"})»");
    expect(
        "hermes",
        "Let me look.\n<tool_call>\n{\"name\": \"rain\", \"arguments\": {\"a\": [1, {\"b\": \"}\\\"\"}]}}\n"
        "</tool_call>\n<tool_call>\n{\"arguments\": {}, \"name\": \"time\"}\n</tool_call>\n",
        "Let me look.«rain({\"a\": [1, {\"b\": \"}\\\"\"}]})»«time({})»");
    expect("hermes", "<tool_call>{\"name\": \"other\"}</tool_call> and more", "«other({})» and more");
    expect("hermes", "<tool_call>{\"name\": \"rain\", \"arguments\": \"{\\\"a\\\": 1}\"}</tool_call>",
           "«rain({\"a\": 1})»");
}
END_TEST

START_TEST(calls_in_a_list_are_taken_out)
{
    expect("mistral",
           "[TOOL_CALLS][{\"name\": \"rain\", \"arguments\": {\"a\": 1}}, {\"name\": \"time\", "
           "\"arguments\": {}, \"id\": \"abcdefghi\"}]",
           "«rain({\"a\": 1})»«time({})»");
    expect("command-r",
           "<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"rain\", \"parameters\": "
           "{\"a\": null}}\n]<|END_ACTION|>",
           "«rain({\"a\": null})»");
}
END_TEST

START_TEST(without_marks_only_a_known_name_at_the_start_is_a_call)
{
    expect("llama3", "{\"name\": \"rain\", \"parameters\": {\"a\": 1}}", "«rain({\"a\": 1})»");
    expect("llama3", "<|python_tag|>{\"type\": \"function\", \"name\": \"rain\", \"parameters\": {}}",
           "«rain({})»");
    expect("llama3", "{\"name\": \"rain\", \"parameters\": {}}; {\"name\": \"time\", \"parameters\": {}}",
           "«rain({})»«time({})»");
    expect("llama3", "{\"name\": \"Ulm\", \"parameters\": {\"a\": 1}} is JSON",
           "{\"name\": \"Ulm\", \"parameters\": {\"a\": 1}} is JSON");
    expect("llama3", "I say {\"name\": \"rain\", \"parameters\": {}}",
           "I say {\"name\": \"rain\", \"parameters\": {}}");
    expect("llama3", "{\"town\": \"Ulm\"}", "{\"town\": \"Ulm\"}");
}
END_TEST

START_TEST(what_is_no_call_is_text)
{
    static const char *const forms[] = {"hermes", "mistral", "command-r", "llama3"};
    static const char *const texts[] = {"",          " ", "Plain.", "  Two\n\n lines \n", "a < b, [TOOL",
                                        "<tool_cal", "{", "{ x"};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        for (size_t j = 0; j < sizeof texts / sizeof *texts; j++)
            expect(forms[i], texts[j], texts[j]);
    expect("hermes", "<tool_call>\nrain\n</tool_call>", "<tool_call>\nrain\n</tool_call>");
    expect("hermes", "a <tool_call>{\"name\": 5}</tool_call>", "a <tool_call>{\"name\": 5}</tool_call>");
    expect("hermes", "<tool_call>{\"name\": \"rain\", \"arguments\": [1]}",
           "<tool_call>{\"name\": \"rain\", \"arguments\": [1]}");
    expect("mistral", "[TOOL_CALLS] nothing", "[TOOL_CALLS] nothing");
    expect("mistral", "[TOOL_CALLS][]", "[TOOL_CALLS][]");
    expect("mistral", "[TOOL_CALLS][{\"name\": \"rain\", \"arguments\": {}}] [TOOL_CALLS][] more",
           "«rain({})» [TOOL_CALLS][] more");
}
END_TEST

START_TEST(a_call_that_is_cut_ends_where_it_is_cut)
{
    expect("hermes", "<tool_call>{\"name\": \"rain\", \"arguments\": {\"town\": \"Ul",
           "«rain({\"town\": \"Ul)»");
    expect("hermes", "<tool_call>{\"name\": \"ra", "<tool_call>{\"name\": \"ra");
    expect("mistral", "[TOOL_CALLS][{\"name\": \"rain\", \"arguments\": {}}", "«rain({})»");
}
END_TEST

START_TEST(nesting_and_names_are_bounded)
{
    static char deep[2048], long_name[2048];
    strcpy(deep, "<tool_call>{\"name\": \"rain\", \"arguments\": {\"a\":");
    memset(deep + strlen(deep), '[', 1000);
    parse("hermes", deep, 0, sizeof deep);
    ck_assert_ptr_nonnull(strstr(told, "[[)»")); /* it was ended, and the rest is text */
    expect("hermes", "<tool_call>{\"name\": \"rain\", \"arguments\": {}, \"name\": \"time\", oh}",
           "«rain({})»oh}");
    strcpy(long_name, "<tool_call>{\"name\": \"");
    memset(long_name + strlen(long_name), 'n', 1000);
    strcat(long_name, "\"}");
    expect("hermes", long_name, long_name);
}
END_TEST

START_TEST(a_form_that_is_not_known_is_none)
{
    ck_assert_ptr_null(tool_form_find("other"));
    ck_assert_ptr_null(tool_form_find(""));
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_test(tests, calls_in_tags_are_taken_out);
    tcase_add_test(tests, calls_in_a_list_are_taken_out);
    tcase_add_test(tests, without_marks_only_a_known_name_at_the_start_is_a_call);
    tcase_add_test(tests, what_is_no_call_is_text);
    tcase_add_test(tests, a_call_that_is_cut_ends_where_it_is_cut);
    tcase_add_test(tests, nesting_and_names_are_bounded);
    tcase_add_test(tests, a_form_that_is_not_known_is_none);
}

int main(void)
{
    return run_tests("gateway/tool_parser", add_tests);
}
