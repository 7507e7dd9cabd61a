/* SPDX-License-Identifier: MIT */
/* What answers are held to, by the pool's own reader of grammars: for each form what is an answer and what is
 * not, and that what is a call to the grammar is one to the parser too. */

#include "gateway/forms/openai/chat.h"
#include "gateway/tools/tool_choice.h"
#include "gateway/tools/tool_grammar.h"
#include "tests/unit/gateway/tools/forms.h"
#include "tests/unit/run.h"
#include "tests/unit/text/grammar/accepts.h"
#include "text/dialect/answer_parser.h"

#include <string.h>

static struct parameters parameters;
static struct refusal refusal;

#define TOOLS                                                                                                \
    "\"tools\": [{\"function\": {\"name\": \"rain\", \"strict\": true, \"parameters\": {\"properties\":"     \
    "{\"town\": {\"enum\": [\"Ulm\"]}}, \"required\": [\"town\"]}}}, {\"function\": {\"name\": \"time\"}}]"

/* The dialect of a form. */
static const struct model_dialect *dialect_of(const char *form)
{
    static struct model_dialect dialect;
    struct error err = {0};
    dialect_deinit(&dialect);
    dialect_init(&dialect);
    ck_assert_msg(dialect_read(bytes_of_string(dialect_form(form)), &dialect, &err) == 0, "%s", err.text);
    return &dialect;
}

/* The grammar of a request that asks for these besides; NULL: none. */
static struct grammar *grammar_for(const char *form, const char *fields)
{
    char body[1024];
    int len = snprintf(body, sizeof body,
                       "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], " TOOLS "%s}", fields);
    parameters_deinit(&parameters);
    parameters_init(&parameters);
    ck_assert_int_eq(parameters_read(&parameters, chat_rows, (struct bytes){body, (size_t)len}, &refusal), 0);
    ck_assert_int_eq(parameters_finish(&parameters, "messages", &refusal), 0);
    ck_assert_int_eq(tool_choice_finish(&parameters, &refusal), 0);
    int r = tool_grammar_set(&parameters, dialect_of(form), &refusal);
    ck_assert_msg(r == 0, "%s", refusal.text);
    return parameters.request.grammar ? grammar_of(GRAMMAR_GBNF, parameters.request.grammar) : NULL;
}

static int n_calls;

static void on_call(void *arg, const char *name)
{
    n_calls++;
}

static void on_bytes(void *arg, struct bytes bytes)
{
}

static void on_end(void *arg)
{
}

/* The calls that the parser finds in an answer. */
static int calls_in(const char *form, const char *answer)
{
    static const struct dialect_tool tools[] = {{"rain", NULL}, {"time", NULL}};
    const struct answer_sink sink = {on_bytes, on_bytes, on_call, on_bytes, on_end, NULL};
    struct answer_parser parser;
    n_calls = 0;
    ck_assert_int_eq(answer_parser_init(&parser, dialect_of(form), tools, 2, true, true, DIALECT_START_TEXT),
                     0);
    ck_assert_int_eq(answer_parser_push(&parser, bytes_of_string(answer), &sink), 0);
    ck_assert_int_eq(answer_parser_finish(&parser, &sink), 0);
    answer_parser_deinit(&parser);
    return n_calls;
}

/* For each form: one call, two (NULL: not possible), a wrong one; texts that a call may follow; those it may
 * not. */
static const struct form_cases {
    const char *form, *one, *two, *wrong;
    const char *texts[12];
    const char *no_texts[8];
} forms[] = {
    {"hermes",
     "<tool_call>\n{\"name\": \"rain\", \"arguments\": {\"town\": \"Ulm\"}}\n</tool_call>",
     "<tool_call>\n{\"name\": \"rain\", \"arguments\": {\"town\": \"Ulm\"}}\n</tool_call>\n"
     "<tool_call>\n{\"name\": \"time\", \"arguments\": {}}\n</tool_call>",
     "<tool_call>\n{\"name\": \"rain\", \"arguments\": {\"town\": \"Bonn\"}}\n</tool_call>",
     {"", "I look.\n", "a < b", "<", "<<", "<tool", "<tool_call", "<tool_call<", "<tool_cal l>",
      "</tool_call>", "<tool<tool_cé"},
     {"<tool_call>", "a <tool_call> b", "<<tool_call>", "<tool<tool_call>"}},
    {"mistral",
     "[TOOL_CALLS][{\"name\": \"rain\", \"arguments\": {\"town\": \"Ulm\"}}]",
     "[TOOL_CALLS][{\"name\": \"rain\", \"arguments\": {\"town\": \"Ulm\"}}, {\"name\": \"time\", "
     "\"arguments\": {}}]",
     "[TOOL_CALLS][{\"name\": \"snow\", \"arguments\": {\"town\": \"Ulm\"}}]",
     {"", "a[1]", "[TOOL", "[[", "[TOOL_CALLS", "[TOOL_CALLS[", "[TOOL_CALLZ]"},
     {"[TOOL_CALLS]", "[[TOOL_CALLS]", "[TOOL_CALLS][]"}},
    {"command-r",
     "<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"rain\", \"parameters\": {\"town\": "
     "\"Ulm\"}}\n"
     "]<|END_ACTION|>",
     "<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"rain\", \"parameters\": {\"town\": "
     "\"Ulm\"}},\n    "
     "{\"tool_call_id\": \"1\", \"tool_name\": \"time\", \"parameters\": {}}\n]<|END_ACTION|>",
     "<|START_ACTION|>[{\"tool_name\": \"rain\", \"parameters\": {}}]<|END_ACTION|>",
     {"", "a <|b|>", "<|START_ACTION|", "<|<|"},
     {"<|START_ACTION|>", "<<|START_ACTION|>a"}},
    {"llama3",
     "{\"name\": \"rain\", \"parameters\": {\"town\": \"Ulm\"}}",
     NULL,
     "{\"name\": \"rain\", \"parameters\": {\"town\": 5}}",
     {NULL},
     {"{", " {\"a\": 1}", "\n{"}},
};

#define N_FORMS (sizeof forms / sizeof *forms)

static void check(struct grammar *grammar, const char *text, bool is)
{
    ck_assert_msg(accepts(grammar, text) == is, "%s\n%s be an answer of\n%s", text,
                  is ? "should" : "should not", parameters.request.grammar);
}

START_TEST(forced_answers_are_calls_and_nothing_else)
{
    for (const struct form_cases *c = forms; c < forms + N_FORMS; c++) {
        struct grammar *grammar = grammar_for(c->form, ", \"tool_choice\": \"required\"");
        char text[512];
        check(grammar, c->one, true);
        ck_assert_int_eq(calls_in(c->form, c->one), 1);
        if (c->two) {
            check(grammar, c->two, true);
            ck_assert_int_eq(calls_in(c->form, c->two), 2);
        }
        check(grammar, c->wrong, false);
        check(grammar, "", false);
        check(grammar, "text", false);
        snprintf(text, sizeof text, "a %s", c->one);
        check(grammar, text, false);
        snprintf(text, sizeof text, "%s.", c->one);
        check(grammar, text, false);
        snprintf(text, sizeof text, "%s%s", c->one, c->one);
        check(grammar, text, false);
        grammar_free(grammar);
    }
}
END_TEST

START_TEST(one_call_is_one_call)
{
    for (const struct form_cases *c = forms; c < forms + N_FORMS; c++) {
        for (int named = 0; named < 2; named++) {
            struct grammar *grammar = grammar_for(
                c->form,
                named ? ", \"tool_choice\": {\"type\": \"function\", \"function\": {\"name\": \"rain\"}}"
                      : ", \"tool_choice\": \"required\", \"parallel_tool_calls\": false");
            check(grammar, c->one, true);
            if (c->two)
                check(grammar, c->two, false);
            grammar_free(grammar);
        }
        struct grammar *if_it_wants = grammar_for(c->form, ", \"parallel_tool_calls\": false");
        check(if_it_wants, "text", true);
        check(if_it_wants, c->one, true);
        if (c->two)
            check(if_it_wants, c->two, false);
        grammar_free(if_it_wants);
        struct grammar *other = grammar_for(
            c->form, ", \"tool_choice\": {\"type\": \"function\", \"function\": {\"name\": \"time\"}}");
        check(other, c->one, false);
        grammar_free(other);
    }
}
END_TEST

START_TEST(a_strict_tool_is_held_to_its_schema_and_any_text_is_possible)
{
    for (const struct form_cases *c = forms; c < forms + N_FORMS; c++) {
        struct grammar *grammar = grammar_for(c->form, "");
        char text[512];
        for (const char *const *before = c->texts; *before; before++) {
            check(grammar, *before, true);
            ck_assert_int_eq(calls_in(c->form, *before), 0);
            snprintf(text, sizeof text, "%s%s", *before, c->two ? c->two : c->one);
            check(grammar, text, true);
            ck_assert_int_eq(calls_in(c->form, text), 2);
            snprintf(text, sizeof text, "%s%s", *before, c->wrong);
            check(grammar, text, false);
        }
        for (const char *const *no = c->no_texts; *no; no++)
            check(grammar, *no, false);
        check(grammar, c->wrong, false);
        grammar_free(grammar);
    }
    static const char *const plain[] = {"", "a {", " \n", "\n<", "<|", "<a>{}", "é"};
    struct grammar *grammar = grammar_for("llama3", "");
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        check(grammar, plain[i], true);
        ck_assert_int_eq(calls_in("llama3", plain[i]), 0);
    }
    check(grammar, forms[3].one, true);
    check(grammar, "{\"name\": \"time\", \"parameters\": {\"x\": []}}", true); /* is not strict */
    grammar_free(grammar);
}
END_TEST

START_TEST(json_that_is_asked_for_may_be_the_answer_instead_of_a_call)
{
    struct grammar *grammar = grammar_for("hermes", ", \"response_format\": {\"type\": \"json_object\"}");
    check(grammar, "{\"dry\": true}", true);
    check(grammar, forms[0].two, true);
    check(grammar, "text", false);
    check(grammar, forms[0].wrong, false);
    grammar_free(grammar);
    grammar = grammar_for("hermes", ", \"json_schema\": {\"const\": 5}, \"tool_choice\": \"required\"");
    check(grammar, "5", false);
    check(grammar, forms[0].one, true);
    grammar_free(grammar);
}
END_TEST

START_TEST(names_of_any_kind_make_rules)
{
    char body[600];
    const char *longest = "a.234567890123456789012345678901234567890123456789012345678901_-";
    snprintf(body, sizeof body,
             ", \"tool_choice\": {\"type\": \"allowed_tools\", \"allowed_tools\": {\"mode\": \"required\", "
             "\"tools\":"
             "[{\"type\": \"function\", \"function\": {\"name\": \"time\"}}]}}, \"user\": \"%s\"",
             longest);
    struct grammar *grammar = grammar_for("mistral", body);
    check(grammar, "[TOOL_CALLS][{\"name\": \"time\", \"arguments\": {}}]", true);
    check(grammar, forms[1].one, false);
    grammar_free(grammar);
    const char *const names[] = {longest, "root", "calls", "0"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char answer[200];
        snprintf(body, sizeof body,
                 "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"tool_choice\": \"required\", "
                 "\"tools\":"
                 "[{\"function\": {\"name\": \"%s\"}}, {\"function\": {\"name\": \"%s\"}}]}",
                 names[i], names[i]);
        parameters_deinit(&parameters);
        parameters_init(&parameters);
        ck_assert_int_eq(parameters_read(&parameters, chat_rows, bytes_of_string(body), &refusal), 0);
        ck_assert_int_eq(tool_grammar_set(&parameters, dialect_of("llama3"), &refusal), 0);
        grammar = grammar_of(GRAMMAR_GBNF, parameters.request.grammar);
        snprintf(answer, sizeof answer, "{\"name\": \"%s\", \"parameters\": {}}", names[i]);
        check(grammar, answer, true);
        grammar_free(grammar);
    }
}
END_TEST

/* Where the prompt leaves the model inside a thought, its end comes first. */
START_TEST(a_call_may_come_behind_a_thought)
{
    static const char json[] =
        "{\"calls\": {\"arguments\": \"json\", \"head\": \"[CALL]\", \"middle\": \"[ARGS]\"}, "
        "\"thoughts\": {\"open\": \"<think>\", \"close\": \"</think>\"}}";
    struct model_dialect dialect;
    for (int inside = 0; inside < 2; inside++) {
        grammar_free(grammar_for("hermes", ", \"tool_choice\": \"required\""));
        dialect_init(&dialect);
        ck_assert_int_eq(dialect_read(bytes_of_string(json), &dialect, NULL), 0);
        parameters.start = inside ? DIALECT_START_THOUGHT : DIALECT_START_TEXT;
        parameters.request.grammar = NULL;
        ck_assert_int_eq(tool_grammar_set(&parameters, &dialect, &refusal), 0);
        struct grammar *grammar = grammar_of(GRAMMAR_GBNF, parameters.request.grammar);
        check(grammar, "[CALL]rain[ARGS]{\"town\": \"Ulm\"}", !inside);
        check(grammar, "<think>Hm.</think>\n[CALL]rain[ARGS]{\"town\": \"Ulm\"}", true);
        check(grammar, "Hm.</think>\n[CALL]rain[ARGS]{\"town\": \"Ulm\"}", inside);
        grammar_free(grammar);
        dialect_deinit(&dialect);
    }
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, forced_answers_are_calls_and_nothing_else);
    tcase_add_test(tests, one_call_is_one_call);
    tcase_add_test(tests, a_strict_tool_is_held_to_its_schema_and_any_text_is_possible);
    tcase_add_test(tests, json_that_is_asked_for_may_be_the_answer_instead_of_a_call);
    tcase_add_test(tests, names_of_any_kind_make_rules);
    tcase_add_test(tests, a_call_may_come_behind_a_thought);
}

int main(void)
{
    return run_tests("tool_grammar", add);
}
