/* SPDX-License-Identifier: MIT */
/* Texts that ask for more than they say: each is read, or refused, in seconds of the processor at most and on
 * the stack that threads have. */

#include "tests/unit/run.h"
#include "tests/unit/text/grammar/accepts.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STACK  (8u << 20)
#define MOST_S 20 /* unpatched, the quickest of these took a minute; a sanitizer is slow */

static char text[GRAMMAR_MOST_BYTES + 4096];
static size_t len;

static void say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(text + len, sizeof text - len, format, arguments);
    va_end(arguments);
    ck_assert(n >= 0 && (size_t)n < sizeof text - len);
    len += (size_t)n;
}

static void set_up(void)
{
    len = 0;
}

struct reading {
    enum grammar_kind kind;
    int result;
    struct error err;
    double seconds;
};

static void *read_it(void *arg)
{
    struct reading *reading = arg;
    struct grammar *grammar = NULL;
    struct timespec spent;
    reading->result = grammar_make(reading->kind, (struct bytes){text, len}, &grammar, &reading->err);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
    reading->seconds = (double)spent.tv_sec + (double)spent.tv_nsec / 1e9;
    grammar_free(grammar);
    return NULL;
}

/* What grammar_make says of the text, on a thread as workers have them. */
static struct reading read_text(enum grammar_kind kind)
{
    struct reading reading = {.kind = kind};
    pthread_attr_t attributes;
    pthread_t thread;
    ck_assert_uint_le(len, GRAMMAR_MOST_BYTES);
    ck_assert_int_eq(pthread_attr_init(&attributes), 0);
    ck_assert_int_eq(pthread_attr_setstacksize(&attributes, STACK), 0);
    ck_assert_int_eq(pthread_create(&thread, &attributes, read_it, &reading), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attributes);
    ck_assert_msg(reading.seconds < MOST_S, "%g s", reading.seconds);
    return reading;
}

static void expect_refusal(enum grammar_kind kind, const char *says)
{
    const struct reading reading = read_text(kind);
    ck_assert_int_eq(reading.result, GRAMMAR_E_INVALID);
    ck_assert_msg(strstr(reading.err.text, says), "%s", reading.err.text);
}

START_TEST(items_in_one_another)
{
    say("{\"prefixItems\":[{}");
    for (int i = 1; i < 40000; i++)
        say(",{}");
    say("]}");
    expect_refusal(GRAMMAR_SCHEMA, "prefixItems");
}
END_TEST

START_TEST(rules_in_one_another)
{
    for (int rule = 0; rule < 512; rule++) {
        say(rule ? "r%d::=" : "root::=", rule);
        for (int depth = 0; depth < 100; depth++)
            say("(|");
        say(rule < 511 ? "r%d" : "\"a\"", rule + 1);
        for (int depth = 0; depth < 100; depth++)
            say(")??");
        say("\n");
    }
    read_text(GRAMMAR_GBNF);
}
END_TEST

START_TEST(nothing_many_times)
{
    const int levels = 8, many = 90;
    say("root::=r%d\nr0::=\"a\"\n", levels);
    for (int level = 1; level <= levels; level++) {
        say("r%d::=", level);
        for (int i = 0; i < many; i++)
            say("r%d{0} ", level - 1);
        say("\n");
    }
    read_text(GRAMMAR_GBNF);
}
END_TEST

START_TEST(types_of_values)
{
    say("{\"type\":[");
    for (int i = 0; i < 20000; i++)
        say("\"null\",");
    say("\"string\"],\"enum\":[");
    for (int i = 0; i < 30000; i++)
        say("1,");
    say("\"a\"]}");
    read_text(GRAMMAR_SCHEMA);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 110);
    tcase_add_checked_fixture(tests, set_up, NULL);
    tcase_add_test(tests, items_in_one_another);
    tcase_add_test(tests, rules_in_one_another);
    tcase_add_test(tests, nothing_many_times);
    tcase_add_test(tests, types_of_values);
}

int main(void)
{
    return run_tests("hostile grammars", add);
}
