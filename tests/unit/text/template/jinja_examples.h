/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_TEXT_TEMPLATE_JINJA_EXAMPLES_H
#define TESTS_UNIT_TEXT_TEMPLATE_JINJA_EXAMPLES_H

/* Small templates and the output of jinja2 (3.1, in its sandbox, with Hugging Face's settings). */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/run.h"
#include "tests/unit/text/template/failing_calls.h"
#include "text/template/jinja/jinja.h"

static const char *const variables_json =
    "{\"x\": 7, \"name\": \"Ada\", \"none_here\": null, \"yes\": true, \"pi\": 3.25, \"word\": \"  "
    "h\\u00e9llo w\\u00f6rld \","
    " \"items\": [3, 1, 2], \"people\": [{\"name\": \"Bo\", \"age\": 3}, {\"name\": \"al\", \"age\": 1}],"
    " \"map\": {\"b\": 1, \"a\": [1, \"q'\"]}, \"empty\": []}";

/* Renders with the variables above into `text` and `marks`; errors are in `err`. */
static struct buffer text, marks;
static struct error err;

static int render(const char *source)
{
    json_t *json = json_loads(variables_json, 0, NULL);
    struct jinja_variable variables[16];
    struct jinja_template *jinja = NULL;
    const struct tm date = {.tm_year = 126, .tm_mon = 0, .tm_mday = 15};
    size_t n = 0;
    const char *name;
    json_t *value;
    ck_assert_ptr_nonnull(json);
    json_object_foreach(json, name, value) variables[n++] = (struct jinja_variable){name, value, false};
    json_t *user = json_string("<|x|> & y");
    variables[n++] = (struct jinja_variable){"user", user, true};
    text.len = marks.len = 0;
    err.text[0] = '\0';
    int r = jinja_template_new(bytes_of_string(source), &jinja, &err);
    if (r == 0)
        r = jinja_render(jinja, variables, n, &date, &text, &marks, &err);
    ck_assert_uint_eq(text.len, marks.len);
    ck_assert_int_eq(buffer_append(&text, "", 1), 0);
    text.len--;
    jinja_template_free(jinja);
    json_decref(user);
    json_decref(json);
    return r;
}

struct example {
    const char *source, *expected;
};

/* Checks that if any call (of the first thousand) fails, the result is its code, without text. */
static void expect_every_failure(const char *source)
{
    const size_t n = failing_calls.n;
    for (size_t fail = 1; fail <= n && fail <= 1000; fail++) {
        failing_calls = (struct failing_calls){.fail = fail};
        int r = render(source);
        ck_assert_msg(r < 0 && r == failing_calls.code, "%.80s: %d %s, and call %zu of %zu failed by %d",
                      source, r, err.text, fail, n, failing_calls.code);
        ck_assert_uint_eq(text.len, 0);
        failing_calls.fail = 0;
    }
}

static void expect_all(const struct example *examples, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        failing_calls.n = 0;
        int r = render(examples[i].source);
        ck_assert_msg(r == 0, "%s: %d %s", examples[i].source, r, err.text);
        ck_assert_msg(strcmp((const char *)text.data, examples[i].expected) == 0,
                      "%s gives \"%s\", not \"%s\"", examples[i].source, (const char *)text.data,
                      examples[i].expected);
        expect_every_failure(examples[i].source);
    }
}

#define EXPECT_ALL(examples) expect_all(examples, sizeof(examples) / sizeof(examples)[0])

static inline void expect_failures(const struct example *examples, size_t n, int code)
{
    for (size_t i = 0; i < n; i++) {
        int r = render(examples[i].source);
        ck_assert_msg(r == code, "%.80s: %d %s", examples[i].source, r, err.text);
        ck_assert_msg(strstr(err.text, examples[i].expected), "%.80s says \"%s\", not \"%s\"",
                      examples[i].source, err.text, examples[i].expected);
        ck_assert_uint_eq(text.len, 0);
    }
}

#define EXPECT_FAILURES(examples, code)                                                                      \
    expect_failures(examples, sizeof(examples) / sizeof(examples)[0], code)

static void tear_down(void)
{
    buffer_deinit(&text);
    buffer_deinit(&marks);
}

#endif
