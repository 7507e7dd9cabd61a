/* SPDX-License-Identifier: MIT */
/* Answers in the dialects of our own templates: each is read whole, cut at every place, and byte by byte;
 * what is told is the same. Text is told as it is, thoughts in round brackets, calls as «name arguments». */

#include "text/dialect/answer_parser.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

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

static size_t n_dropped; /* bytes of text, thoughts and arguments */

static void drop(void *arg, struct bytes text)
{
    n_dropped += text.len;
}

static void drop_name(void *arg, const char *name)
{
}

static void drop_end(void *arg)
{
}

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
    {"python", "<|calls|>[rain(deep={'a': \"]}, \\\"'\", 'b': 'c'}, days=3)]<|end|>",
     "«rain {\"deep\": {\"a\": \"]}, \\\"'\", \"b\": \"c\"}, \"days\": 3}»"},
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
    {"channels",
     "<|channel|>commentary to=functions.rain<|message|>So to=functions.time<|channel|>commentary "
     "json<|message|>{}",
     "So«time {}»"},
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

/* What follows `begin` again and again, `n` times, and then `end`; and the processor's seconds that it took.
 */
static double parse_many(const char *name, const char *begin, const char *again, int n, const char *end,
                         size_t size)
{
    struct model_dialect dialect;
    struct answer_parser parser;
    struct buffer answer = {0};
    const struct answer_sink deaf = {drop, drop, drop_name, drop, drop_end, NULL};
    const struct dialect_tool tools[] = {{"rain", NULL}};
    own_dialect(name, &dialect);
    ck_assert_int_eq(buffer_append(&answer, begin, strlen(begin)), 0);
    for (int i = 0; i < n; i++)
        ck_assert_int_eq(buffer_append(&answer, again, strlen(again)), 0);
    ck_assert_int_eq(buffer_append(&answer, end, strlen(end)), 0);
    n_dropped = 0;
    const clock_t before = clock();
    ck_assert_int_eq(answer_parser_init(&parser, &dialect, tools, 1, true, true, DIALECT_START_TEXT), 0);
    for (size_t at = 0; at < answer.len; at += size)
        ck_assert_int_eq(answer_parser_push(&parser,
                                            (struct bytes){answer.data + at,
                                                           answer.len - at < size ? answer.len - at : size},
                                            &deaf),
                         0);
    ck_assert_int_eq(answer_parser_finish(&parser, &deaf), 0);
    const double seconds = (double)(clock() - before) / CLOCKS_PER_SEC;
    answer_parser_deinit(&parser);
    dialect_deinit(&dialect);
    buffer_deinit(&answer);
    return seconds;
}

/* Four times as much may take four times as long, and what chance adds: not sixteen times. */
static void takes_time_by_length(const char *name, const char *begin, const char *again, int n,
                                 const char *end, size_t size)
{
    double small = 1e9, large = 1e9;
    for (int i = 0; i < 3; i++) {
        const double a = parse_many(name, begin, again, n, end, size);
        const double b = parse_many(name, begin, again, 4 * n, end, size);
        small = a < small ? a : small;
        large = b < large ? b : large;
    }
    ck_assert_msg(large < 9 * small + 0.02, "%s: %.3f s, and %.3f s for four times as much", name, small,
                  large);
}

/* An answer of marks behind which nothing is a call: only so much of it is looked at again. */
START_TEST(marks_without_calls_take_time_by_their_length)
{
    takes_time_by_length("object", "", "<tool_call>{\"a\":1", 900, ",,", 1000);
    ck_assert_uint_eq(n_dropped, 4 * 900 * strlen("<tool_call>{\"a\":1") + 2);
    takes_time_by_length("named", "", "[CALL]rain ", 1000, "", 7);
}
END_TEST

/* Long values that come in small pieces are looked at once. */
START_TEST(long_values_take_time_by_their_length)
{
    takes_time_by_length("python", "<|calls|>[rain(deep={'a': \"", "x y ", 20000, "\"})]<|end|>", 4);
    takes_time_by_length("parameters", "<tool_call>\n<function=rain>\n<parameter=town>\n", "Ulm ", 20000,
                         "\n</parameter>\n</function>\n</tool_call>", 4);
    takes_time_by_length("object", "<tool_call>{\"name\": \"rain\", \"arguments\": {\"town\": \"", "Ulm ",
                         20000, "\"}}</tool_call>", 4);
}
END_TEST

/* A long text that began like a call is text, with all that stands in it. */
START_TEST(what_was_long_no_call_is_not_looked_through_again)
{
    static const char call[] = "<tool_call>{\"name\": \"rain\", \"arguments\": {}}</tool_call>";
    struct model_dialect dialect;
    char answer[8000], wanted[8000];
    own_dialect("object", &dialect);
    for (int i = 0; i < 2; i++) {
        const int n = i == 0 ? 100 : 5000;
        snprintf(answer, sizeof answer, "<tool_call>{\"%*s %s]", n, "x", call);
        snprintf(wanted, sizeof wanted, "<tool_call>{\"%*s%s]", n, "x",
                 i == 0 ? "«rain {}»" : " <tool_call>{\"name\": \"rain\", \"arguments\": {}}</tool_call>");
        ck_assert_str_eq(parse(&dialect, answer, strlen(answer), 1, DIALECT_START_TEXT), wanted);
    }
    dialect_deinit(&dialect);
}
END_TEST

/* What is read is what parsers rely on, whoever wrote it. */
START_TEST(a_dialect_that_no_template_makes_is_refused)
{
    static const struct {
        const char *json, *reason;
    } bad[] = {
        {"{\"calls\": {\"name_key\": \"name\", \"arguments_key\": \"a\", \"head\": \"<call>\"}}",
         "dialect: the head of a call that is a JSON object has no \"{\""},
        {"{\"calls\": {\"name_key\": \"name\", \"head\": \"<call>{\"}}",
         "dialect: name_key and arguments_key must be given together"},
        {"{\"calls\": {\"arguments_key\": \"name\", \"head\": \"<call>{\"}}",
         "dialect: name_key and arguments_key must be given together"},
        {"{\"thoughts\": {\"open\": \"<think>\"}}", "dialect: the end of thoughts (close) is empty"},
        {"{\"thoughts\": {\"open\": \"<think>\", \"close\": \"</think>\", \"end\": \"</thinks>\"}}",
         "dialect: the end of a thought (end) does not contain its close"},
        {"{\"calls\": {\"head\": \"\\u0001a\\u0002b\\u0003c\\u0001d\\u0001e\", \"tail\": "
         "\"\\u0001a\\u0002b\\u0003c\\u0001d\"}}",
         "dialect: a call has 9 placeholders for names, ids and numbers; at most 8 are allowed"},
        {"{\"calls\": {\"head\": 1}}", "dialect: head is not a string"},
        {"[]", "dialect: not an object"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct model_dialect dialect;
        struct error err = {0};
        dialect_init(&dialect);
        ck_assert_int_eq(dialect_read(bytes_of_string(bad[i].json), &dialect, &err), -EINVAL);
        ck_assert_str_eq(err.text, bad[i].reason);
        dialect_deinit(&dialect);
    }
}
END_TEST

/* As many places as are allowed have room in the parser; more are refused, not passed over. */
START_TEST(a_call_of_many_steps_has_room_or_is_refused)
{
    struct model_dialect dialect;
    struct answer_parser parser;
    const struct dialect_tool tools[] = {{"rain", NULL}};
    dialect_init(&dialect);
    ck_assert_int_eq(
        dialect_read(bytes_of_string("{\"calls\": {\"open\": \"<o>\\u0003<p>\\u0003<q>\", \"head\": "
                                     "\"<a>\\u0003<b>\\u0003<c>\", \"middle\": \"<d>\\u0003<e>\\u0003<f>\", "
                                     "\"tail\": \"<g>\\u0003<h>\\u0003<i>\"}}"),
                     &dialect, NULL),
        0);
    ck_assert_str_eq(parse(&dialect, "<o>1<p>2<q><a>1<b>2<c>rain<d>1<e>2<f>{\"town\": 1}<g>1<h>2<i>.", 0, 1,
                           DIALECT_START_TEXT),
                     "«rain {\"town\": 1}».");
    dialect.calls.tail = "<g>\3<h>\3<i>\3<j>\3<k>\3<l>\3<m>";
    ck_assert_int_eq(answer_parser_init(&parser, &dialect, tools, 1, true, true, DIALECT_START_TEXT),
                     -EINVAL);
    answer_parser_deinit(&parser);
    dialect_deinit(&dialect);
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_test(tests, an_answer_is_the_same_however_it_is_cut);
    tcase_add_test(tests, an_answer_may_begin_inside_a_thought);
    tcase_add_test(tests, marks_without_calls_take_time_by_their_length);
    tcase_add_test(tests, long_values_take_time_by_their_length);
    tcase_add_test(tests, what_was_long_no_call_is_not_looked_through_again);
    tcase_add_test(tests, a_dialect_that_no_template_makes_is_refused);
    tcase_add_test(tests, a_call_of_many_steps_has_room_or_is_refused);
}

int main(void)
{
    return run_tests("dialect/answer_parser", add_tests);
}
