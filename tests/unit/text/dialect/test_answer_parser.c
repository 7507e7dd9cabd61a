/* SPDX-License-Identifier: MIT */
/* Answers in the dialects of our own templates: each is read whole, cut at every place, and byte by byte;
 * what is told is the same. Text is told as it is, thoughts in round brackets, calls as «name arguments». */

#include "text/dialect/answer_parser.h"

#include <string.h>

#include "tests/unit/run.h"
#include "tests/unit/text/dialect/templates.h"

static char told[8192];
static char part; /* of what the last piece was told: text, a thought */

static void add(char kind, const void *data, size_t len)
{
    const size_t at = strlen(told);
    ck_assert_uint_lt(at + len + 4, sizeof told);
    if (part == 't' && kind != 't')
        strcat(told, ")");
    if (part != 't' && kind == 't')
        strcat(told, "(");
    part = kind;
    strncat(told, data, len);
}

static void on_text(void *arg, struct bytes text)
{
    add('x', text.data, text.len);
}

static void on_thought(void *arg, struct bytes text)
{
    add('t', text.data, text.len);
}

static void on_call(void *arg, const char *name)
{
    add('c', "«", strlen("«"));
    add('c', name, strlen(name));
    add('c', " ", 1);
}

static void on_arguments(void *arg, struct bytes json)
{
    add('c', json.data, json.len);
}

static void on_end(void *arg)
{
    add('c', "»", strlen("»"));
}

static const struct answer_sink sink = {on_text, on_thought, on_call, on_arguments, on_end, NULL};

static const char *parse(const struct model_dialect *dialect, const char *answer, size_t cut, size_t size,
                         enum dialect_start start)
{
    struct answer_parser parser;
    const size_t len = strlen(answer);
    json_t *schema =
        json_loads("{\"properties\": {\"town\": {\"type\": \"string\"}, \"days\": {\"type\": \"integer\"}, "
                   "\"deep\": {\"anyOf\": [{\"type\": \"string\"}, {\"type\": \"null\"}]}}}",
                   0, NULL);
    const struct dialect_tool tools[] = {{"rain", schema}, {"time", NULL}};
    told[0] = part = 0;
    ck_assert_int_eq(answer_parser_init(&parser, dialect, tools, 2, true, true, start), 0);
    ck_assert_int_eq(answer_parser_push(&parser, (struct bytes){answer, cut}, &sink), 0);
    for (size_t at = cut; at < len; at += size)
        ck_assert_int_eq(answer_parser_push(
                             &parser, (struct bytes){answer + at, len - at < size ? len - at : size}, &sink),
                         0);
    ck_assert_int_eq(answer_parser_finish(&parser, &sink), 0);
    answer_parser_deinit(&parser);
    json_decref(schema);
    add('x', "", 0);
    return told;
}

static const struct {
    const char *dialect, *answer, *wanted;
} answers[] = {
    {"object", "Hello.", "Hello."},
    {"object", "<think>\nHm.\n</think>\n\nHello.", "(Hm.)Hello."},
    {"object", "<think>\nHm.", "(Hm.)"},
    {"object", "I wrote <think> once.", "I wrote <think> once."},
    {"object", "<tool_call>\n{\"name\": \"rain\", \"arguments\": {\"town\": \"Ulm\"}}\n</tool_call>",
     "«rain {\"town\": \"Ulm\"}»"},
    {"object",
     "So:\n<tool_call>{\"arguments\":{},\"name\":\"time\"}</tool_call><tool_call>{\"name\": "
     "\"rain\"}</tool_call>\n",
     "So:«time {}»«rain {}»"},
    {"object", "<tool_call> is a mark", "<tool_call> is a mark"},
    {"object", "<tool_call>\n{\"town\": 1}\n</tool_call>", "<tool_call>\n{\"town\": 1}\n</tool_call>"},
    {"object", "<tool_call>\n{\"name\": \"rain\", \"arguments\": {\"town\": \"U", "«rain {\"town\": \"U»"},
    {"object", "a <tool_call>\n{\"name\": \"rain\", \"arguments\": {]", "a«rain {]»"},
    {"list",
     "[TOOL_CALLS][{\"name\": \"rain\", \"arguments\": {\"days\": 2}, \"id\": \"abcdefghi\"}, {\"name\": "
     "\"time\", \"arguments\": {}}]",
     "«rain {\"days\": 2}»«time {}»"},
    {"list", "A list: [1, 2]", "A list: [1, 2]"},
    {"parameters", "<think>\nHm.\n</think>\n\nYes.", "(Hm.)Yes."},
    {"parameters",
     "No.\n<tool_call>\n<function=rain>\n<parameter=town>\nUlm \"<b>\" "
     "'x'\n</parameter>\n<parameter=days>\n2\n"
     "</parameter>\n<parameter=deep>\nNone\n</parameter>\n</function>\n</tool_call>",
     "No.«rain {\"town\": \"Ulm \\\"<b>\\\" 'x'\", \"days\": 2, \"deep\": null}»"},
    {"parameters", "<tool_call><function=time></function></tool_call>", "«time {}»"},
    {"parameters", "<tool_call>\n<function=rain>\n<parameter=town>\nU", "«rain {}»"},
    {"parameters", "<tool_call>\n<functio", "<tool_call>\n<functio"},
    {"typed",
     "<calls>\n<invoke name=\"rain\">\n<parameter name=\"town\" string=\"true\">2</parameter>\n<parameter "
     "name=\"days\" string=\"false\">[1, {\"a\": null}]</parameter>\n</invoke>\n<invoke "
     "name=\"time\">\n</invoke>\n"
     "</calls>",
     "«rain {\"town\": \"2\", \"days\": [1, {\"a\": null}]}»«time {}»"},
    {"python", "<|calls|>[rain(town='it's', days=2, deep=None), time()]<|end|>",
     "«rain {\"town\": \"it's\", \"days\": 2, \"deep\": null}»«time {}»"},
    {"python", "<|calls|>[rain(deep={'a': [True, (1, 2)]})]<|end|> done",
     "«rain {\"deep\": {\"a\": [true, [1, 2]]}}»done"},
    {"named", "x [CALL]rain[ARGS]{\"a\": \"}\"}[CALL]time[ARGS]{}", "x«rain {\"a\": \"}\"}»«time {}»"},
    {"named", "[CALL]rain and [ARGS]", "[CALL]rain and [ARGS]"},
    {"channels", "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Yes.",
     "(Hm.)Yes."},
    {"channels", " to=functions.rain<|channel|>commentary json<|message|>{\"town\": \"Ulm\"}",
     "«rain {\"town\": \"Ulm\"}»"},
    {"channels",
     "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary to=functions.rain "
     "<|constrain|>json<|message|>{\"town\": \"Ulm\"}",
     "(Hm.)«rain {\"town\": \"Ulm\"}»"},
    {"channels", "<|channel|>commentary<|message|>I look.", "I look."},
    {"bare", "{\"name\": \"rain\", \"parameters\": {\"town\": \"Ulm\"}}", "«rain {\"town\": \"Ulm\"}»"},
    {"bare", "{\"name\": \"other\", \"parameters\": {}}", "{\"name\": \"other\", \"parameters\": {}}"},
    {"bare", "It is {\"name\": \"rain\"}", "It is {\"name\": \"rain\"}"},
};

START_TEST(an_answer_is_the_same_however_it_is_cut)
{
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        struct model_dialect dialect;
        const char *answer = answers[i].answer, *wanted = answers[i].wanted;
        const size_t len = strlen(answer);
        own_dialect(answers[i].dialect, &dialect);
        for (size_t cut = 0; cut <= len; cut++) {
            const char *got = parse(&dialect, answer, cut, 1000, DIALECT_START_TEXT);
            ck_assert_msg(strcmp(got, wanted) == 0, "%s, cut at %zu: %s\nbecame: %s", answers[i].dialect, cut,
                          answer, got);
        }
        const char *got = parse(&dialect, answer, 0, 1, DIALECT_START_TEXT);
        ck_assert_msg(strcmp(got, wanted) == 0, "%s: %s\nbecame: %s", answers[i].dialect, answer, got);
        dialect_deinit(&dialect);
    }
}
END_TEST

/* Where the prompt has opened the thought, its words come first. */
START_TEST(an_answer_may_begin_inside_a_thought)
{
    struct model_dialect dialect;
    own_dialect("parameters", &dialect);
    ck_assert_str_eq(parse(&dialect, "Hm.\n</think>\n\nYes.", 0, 1, DIALECT_START_THOUGHT), "(Hm.)Yes.");
    ck_assert_str_eq(parse(&dialect, "<think>\nHm.</think>Yes.", 0, 1, DIALECT_START_THOUGHT), "(Hm.)Yes.");
    ck_assert_str_eq(parse(&dialect, "It goes on", 0, 1, DIALECT_START_THOUGHT), "(It goes on)");
    ck_assert_str_eq(parse(&dialect, "</think>", 0, 1, DIALECT_START_THOUGHT), "");
    ck_assert_str_eq(parse(&dialect,
                           "Hm.\n</think>\n\n<tool_call>\n<function=time>\n</function>\n</tool_call>", 0, 1,
                           DIALECT_START_THOUGHT),
                     "(Hm.)«time {}»");
    dialect_deinit(&dialect);
}
END_TEST

/* A call whose parameters have no end is cut, a list without end is too; nothing takes time without bounds.
 */
START_TEST(calls_without_end_end_with_the_answer)
{
    struct model_dialect dialect;
    struct answer_parser parser;
    const struct dialect_tool tools[] = {{"rain", NULL}};
    own_dialect("object", &dialect);
    ck_assert_int_eq(answer_parser_init(&parser, &dialect, tools, 1, true, true, DIALECT_START_TEXT), 0);
    for (int i = 0; i < 3000; i++) {
        told[0] = 0;
        ck_assert_int_eq(answer_parser_push(&parser, BYTES_LITERAL("<tool_call>{\"a\": "), &sink), 0);
    }
    told[0] = 0;
    answer_parser_deinit(&parser);
    dialect_deinit(&dialect);
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_test(tests, an_answer_is_the_same_however_it_is_cut);
    tcase_add_test(tests, an_answer_may_begin_inside_a_thought);
    tcase_add_test(tests, calls_without_end_end_with_the_answer);
}

int main(void)
{
    return run_tests("dialect/answer_parser", add_tests);
}
