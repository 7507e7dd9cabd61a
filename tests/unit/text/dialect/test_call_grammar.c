/* SPDX-License-Identifier: MIT */
/* What grammars of calls accept and refuse, in the dialects of our own templates. */

#include "text/dialect/call_grammar.h"

#include <string.h>

#include "tests/unit/run.h"
#include "tests/unit/text/dialect/templates.h"
#include "text/grammar/grammar.h"

#define SCHEMA                                                                                               \
    "{\"type\": \"object\", \"properties\": {\"town\": {\"type\": \"string\", \"maxLength\": 5}, \"days\": " \
    "{\"type\": \"integer\"}, \"sky\": {\"enum\": [\"clear\", \"grey\"]}}, \"required\": [\"town\"], "       \
    "\"additionalProperties\": false}"

enum { FORCED = 1, ONE = 2, INSIDE = 4 };

/* Whether the whole text is an answer. */
static bool accepts(const char *name, int how, const char *text)
{
    struct model_dialect dialect;
    struct buffer gbnf = {0};
    struct error err = {0};
    struct grammar *grammar;
    struct grammar_answer *answer;
    json_t *schema = json_loads(SCHEMA, 0, NULL);
    const struct grammar_tool tools[] = {{"rain", schema, true, false}, {"time", schema, true, true}};
    own_dialect(name, &dialect);
    const struct call_grammar wanted = {.dialect = &dialect,
                                        .tools = tools,
                                        .n = 2,
                                        .forced = how & FORCED,
                                        .one_call = how & ONE,
                                        .thoughts = true,
                                        .inside_thought = how & INSIDE};
    ck_assert_msg(call_grammar_write(&wanted, &gbnf, &err) == 0, "%s", err.text);
    ck_assert_msg(grammar_make(GRAMMAR_GBNF, (struct bytes){gbnf.data, gbnf.len}, &grammar, &err) == 0,
                  "%s\n%.*s", err.text, (int)gbnf.len, (const char *)gbnf.data);
    ck_assert_int_eq(grammar_answer_new(grammar, &answer, &err), 0);
    const bool good =
        grammar_answer_take(answer, bytes_of_string(text), &err) == 0 && grammar_answer_may_end(answer);
    grammar_answer_free(answer);
    grammar_free(grammar);
    buffer_deinit(&gbnf);
    json_decref(schema);
    dialect_deinit(&dialect);
    return good;
}

static const struct {
    const char *dialect;
    int how;
    const char *text;
    bool good;
} cases[] = {
    {"object", FORCED, "<tool_call>\n{\"name\": \"rain\", \"arguments\": {\"town\": \"Ulm\"}}\n</tool_call>",
     true},
    {"object", FORCED,
     "<think>a<b</think>\n<tool_call>\n{\"name\": \"rain\", \"arguments\": {\"town\": "
     "\"Ulm\"}}\n</tool_call>",
     true},
    {"object", FORCED, "<tool_call>\n{\"name\": \"time\", \"arguments\": {\"town\": \"Ulm\"}}\n</tool_call>",
     false},
    {"object", FORCED, "<tool_call>\n{\"name\": \"rain\", \"arguments\": {}}\n</tool_call>", false},
    {"object", FORCED, "Hello", false},
    {"object", 0, "Hello", true},
    {"object", 0, "Hello <<tool_cal", true},
    {"object", 0, "Hello <tool_call> you", false},
    {"object", 0, "Hello <tool_call>\n{\"name\": \"rain\", \"arguments\": {\"town\": \"Ulm\"}}\n</tool_call>",
     true},
    {"object", FORCED | INSIDE,
     "hm </think>\n\n<tool_call>\n{\"name\": \"rain\", \"arguments\": {\"town\": \"Ulm\"}}\n</tool_call>",
     true},
    {"parameters", FORCED,
     "<tool_call>\n<function=rain>\n<parameter=town>\nUlm\n</parameter>\n</function>\n</tool_call>", true},
    {"parameters", FORCED,
     "<tool_call>\n<function=rain>\n<parameter=town>\nUlm\n</parameter>\n<parameter=days>\n2\n</parameter>\n"
     "<parameter=sky>\ngrey\n</parameter>\n</function>\n</tool_call>",
     true},
    {"parameters", FORCED,
     "<tool_call>\n<function=rain>\n<parameter=town>\nStuttgart\n</parameter>\n</function>\n</tool_call>",
     false},
    {"parameters", FORCED,
     "<tool_call>\n<function=rain>\n<parameter=days>\n2\n</parameter>\n</function>\n</tool_call>", false},
    {"parameters", FORCED,
     "<tool_call>\n<function=rain>\n<parameter=town>\nUlm\n</parameter>\n<parameter=sky>\nblue\n</"
     "parameter>\n"
     "</function>\n</tool_call>",
     false},
    {"python", FORCED, "<|calls|>[rain(town='Ulm', days=2)]<|end|>", true},
    {"python", FORCED, "<|calls|>[rain(town='Ulm'), rain(town='Bad', sky='grey')]<|end|>", true},
    {"python", FORCED | ONE, "<|calls|>[rain(town='Ulm'), rain(town='Bad')]<|end|>", false},
    {"python", FORCED, "<|calls|>[rain(days=2)]<|end|>", false},
    {"named", FORCED, "[CALL]rain[ARGS]{\"town\": \"Ulm\"}[CALL]rain[ARGS]{\"town\": \"Bad\"}", true},
    {"channels", FORCED, " to=functions.rain<|channel|>commentary json<|message|>{\"town\": \"Ulm\"}", true},
    {"channels", 0, "<|channel|>final<|message|>Hello", true},
    {"bare", 0, "Hello", true},
    {"bare", 0, "{\"name\": \"rain\", \"parameters\": {\"town\": \"Ulm\"}}", true},
    {"bare", 0, "{\"name\": \"sun\", \"parameters\": {}}", false},
};

START_TEST(a_grammar_is_of_calls_in_the_dialect)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_msg(accepts(cases[i].dialect, cases[i].how, cases[i].text) == cases[i].good, "%s, %d: %s",
                      cases[i].dialect, cases[i].how, cases[i].text);
}
END_TEST

/* A text in a tag cannot be held to everything that a string in JSON can be. */
START_TEST(what_cannot_be_held_to_is_refused_by_name)
{
    struct model_dialect dialect;
    struct buffer gbnf = {0};
    struct error err = {0};
    json_t *schema = json_loads(
        "{\"type\": \"object\", \"properties\": {\"when\": {\"type\": \"string\", \"pattern\": \"^a\"}}}", 0,
        NULL);
    const struct grammar_tool tools[] = {{"rain", schema, true, false}};
    own_dialect("parameters", &dialect);
    const struct call_grammar wanted = {.dialect = &dialect, .tools = tools, .n = 1, .forced = true};
    ck_assert_int_lt(call_grammar_write(&wanted, &gbnf, &err), 0);
    ck_assert_msg(strstr(err.text, "\"when\" of \"rain\": \"pattern\""), "%s", err.text);
    buffer_deinit(&gbnf);
    json_decref(schema);
    dialect_deinit(&dialect);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_grammar_is_of_calls_in_the_dialect);
    tcase_add_test(tests, what_cannot_be_held_to_is_refused_by_name);
}

int main(void)
{
    return run_tests("dialect/call_grammar", add);
}
