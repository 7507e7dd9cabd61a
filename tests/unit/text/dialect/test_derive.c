/* SPDX-License-Identifier: MIT */
/* Dialects out of templates of our own, and what becomes of templates that show none. */

#include <stdlib.h>
#include <string.h>

#include "tests/unit/run.h"
#include "tests/unit/text/dialect/templates.h"

/* What each template shows: parts of the dialect as JSON. */
static const struct {
    const char *name, *calls, *thoughts;
} shown[] = {
    {"object",
     "{\"head\": \"<tool_call>\\n{\\\"name\\\": \\\"\", \"tail\": \"}\\n</tool_call>\", \"name_key\": "
     "\"name\", "
     "\"arguments_key\": \"arguments\", \"between\": \"\\n\", \"arguments\": \"json\"}",
     "{\"open\": \"<think>\", \"close\": \"</think>\", \"end\": \"\\n</think>\\n\\n\", "
     "\"key\": \"reasoning_content\", \"usual\": \"text\", "
     "\"off\": \"text\", \"switch_off\": {\"enable_thinking\": false}}"},
    {"list",
     "{\"open\": \"[TOOL_CALLS][\", \"close\": \"]\", \"between\": \", \", "
     "\"tail\": \", \\\"id\\\": \\\"\\u0002\\\"}\"}",
     "{\"unknown\": \"the template does not write thoughts\"}"},
    {"parameters",
     "{\"head\": \"<tool_call>\\n<function=\", \"before_key\": \"\\n<parameter=\", \"to_text\": \">\\n\", "
     "\"behind_text\": \"\\n</parameter>\", \"arguments\": \"members\", \"python\": true}",
     "{\"open\": \"<think>\", \"close\": \"</think>\", \"usual\": \"thought\"}"},
    {"typed",
     "{\"open\": \"<calls>\", \"to_text\": \"\\\" string=\\\"true\\\">\", "
     "\"to_other\": \"\\\" string=\\\"false\\\">\", \"quoted\": true, \"close\": \"\\n</calls>\"}",
     "{}"},
    {"python", "{\"to_text\": \"='\", \"behind_text\": \"'\", \"to_other\": \"=\", \"separator\": \", \"}",
     "{}"},
    {"named", "{\"head\": \"[CALL]\", \"middle\": \"[ARGS]\", \"between\": \"\"}", "{}"},
    {"spoken", "{\"head\": \"[CALL]\", \"middle\": \"[ARGS]\", \"between\": \"\"}", "{}"},
    {"channels", "{\"head\": \" to=functions.\", \"middle\": \"<|channel|>commentary json<|message|>\"}",
     "{\"open\": \"<|channel|>analysis<|message|>\", \"close\": \"<|end|><|start|>assistant\", "
     "\"end\": \"<|end|><|start|>assistant<|channel|>final<|message|>\", \"key\": \"thinking\"}"},
    {"bare", "{\"head\": \"{\\\"name\\\": \\\"\", \"tail\": \"}\", \"arguments_key\": \"parameters\"}", "{}"},
};

static void check_part(const char *name, const json_t *dialect, const char *part, const char *wanted)
{
    json_t *members = json_loads(wanted, 0, NULL), *value;
    const char *key;
    ck_assert_ptr_nonnull(members);
    json_object_foreach(members, key, value)
    {
        const json_t *got = json_object_get(json_object_get(dialect, part), key);
        char *text = got ? json_dumps(got, JSON_ENCODE_ANY) : strdup("nothing");
        ck_assert_msg(json_equal(got, value), "%s: %s.%s is %s", name, part, key, text);
        free(text);
    }
    json_decref(members);
}

START_TEST(a_template_shows_its_dialect)
{
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        struct model_dialect dialect;
        own_dialect(shown[i].name, &dialect);
        json_t *json = dialect_write(&dialect);
        check_part(shown[i].name, json, "calls", shown[i].calls);
        check_part(shown[i].name, json, "thoughts", shown[i].thoughts);
        json_decref(json);
        dialect_deinit(&dialect);
    }
}
END_TEST

START_TEST(a_dialect_is_the_same_once_it_was_written_and_read)
{
    for (size_t i = 0; i < n_own_templates; i++) {
        struct model_dialect dialect, read;
        struct error err = {0};
        own_dialect(own_templates[i].name, &dialect);
        json_t *json = dialect_write(&dialect);
        char *text = json_dumps(json, JSON_COMPACT);
        dialect_init(&read);
        ck_assert_msg(dialect_read(bytes_of_string(text), &read, &err) == 0, "%s", err.text);
        json_t *again = dialect_write(&read);
        ck_assert(json_equal(json, again));
        json_decref(json);
        json_decref(again);
        free(text);
        dialect_deinit(&dialect);
        dialect_deinit(&read);
    }
}
END_TEST

START_TEST(what_is_no_dialect_is_refused)
{
    static const char *const texts[] = {"", "[]", "{", "{\"calls\": {\"open\": 5}}",
                                        "{\"calls\": {\"between\": []}}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct model_dialect dialect;
        struct error err = {0};
        dialect_init(&dialect);
        ck_assert_msg(dialect_read(bytes_of_string(texts[i]), &dialect, &err) == -22, "%s", texts[i]);
        ck_assert_str_ne(err.text, "");
        dialect_deinit(&dialect);
    }
}
END_TEST

START_TEST(a_template_that_shows_none_says_why)
{
    static const struct {
        const char *source, *calls, *thoughts;
    } cases[] = {
        {"{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}",
         "the template does not support tools", "the template does not write thoughts"},
        {"{{ tools | tojson if tools }}{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}",
         "the template does not render earlier calls", "the template does not write thoughts"},
        {"{{ raise_exception('not today') }}", "not today", "not today"},
        {"{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}", "too long",
         "too long"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct model_dialect dialect;
        derive_from(cases[i].source, &dialect);
        ck_assert(!dialect.calls.known && !dialect.thoughts.known);
        ck_assert_str_ne(dialect.calls.reason, "");
        if (i < 3) {
            ck_assert_msg(strstr(dialect.calls.reason, cases[i].calls), "%s", dialect.calls.reason);
            ck_assert_msg(strstr(dialect.thoughts.reason, cases[i].thoughts), "%s", dialect.thoughts.reason);
        }
        dialect_deinit(&dialect);
    }
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_template_shows_its_dialect);
    tcase_add_test(tests, a_dialect_is_the_same_once_it_was_written_and_read);
    tcase_add_test(tests, what_is_no_dialect_is_refused);
    tcase_add_test(tests, a_template_that_shows_none_says_why);
}

int main(void)
{
    return run_tests("dialect/derive", add);
}
