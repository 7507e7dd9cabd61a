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

/* "PREFIX" n pieces, in which # is their number, "SUFFIX". */
static void say_many(const char *prefix, int n, const char *piece, const char *suffix)
{
    say("%s", prefix);
    for (int i = 0; i < n; i++) {
        say("%s", i ? "," : "");
        for (const char *c = piece; *c; c++)
            if (*c == '#')
                say("%d", i);
            else
                say("%c", *c);
    }
    say("%s", suffix);
}

START_TEST(schemas_that_grow)
{
    static const struct {
        const char *prefix, *piece, *suffix, *says;
        int n;
    } cases[] = {
        {"{\"properties\":{", "\"p#\":{}", "}}", "more than 2048 properties", 10000},
        {"{\"dependentRequired\":{", "\"a#\":[\"b#\"]", "}}", "more than 1024 combinations of alternatives",
         30},
        {"{\"allOf\":[", "{\"anyOf\":[{\"minimum\":#},{\"maximum\":#},{\"minLength\":#}]}", "]}",
         "more than 1024 combinations of alternatives", 20},
        {"{\"type\":\"string\",\"minLength\":2,\"allOf\":[", "{\"pattern\":\"(a|b)*a(a|b){2#}\"}", "]}",
         "too complex together", 2},
        {"{\"type\":\"integer\",\"allOf\":[", "{\"multipleOf\":1999#}", "]}", "too complex together", 8},
        {"{\"type\":\"array\",\"allOf\":[", "{\"contains\":{\"const\":#},\"minContains\":9}", "]}",
         "more than 1024 combinations of counts", 3},
        {"{\"not\":{\"enum\":[", "#", "]}}", "too complex together", 20000},
        {"{\"type\":\"object\",\"patternProperties\":{", "\"#.*#\":{}", "}}", "more than 32 ways", 8},
        {"{\"oneOf\":[", "{\"properties\":{\"x#\":{\"type\":\"integer\"}}}", "]}", "too large", 60},
        {"{\"type\":\"array\",\"items\":false,\"uniqueItems\":true,\"prefixItems\":[",
         "{\"enum\":[0,1,2,3,4,5,6,7,8,9]}", "]}", "more than 1024 combinations", 5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        len = 0;
        say_many(cases[i].prefix, cases[i].n, cases[i].piece, cases[i].suffix);
        expect_refusal(GRAMMAR_SCHEMA, cases[i].says);
    }
}
END_TEST

START_TEST(schemas_that_refer_to_themselves)
{
    static const char *const schemas[] = {"{\"$ref\":\"#\"}", "{\"not\":{\"$ref\":\"#\"}}",
                                          "{\"if\":{\"$ref\":\"#\"},\"then\":true}",
                                          "{\"anyOf\":[{\"type\":\"null\"},{\"$ref\":\"#\"}]}",
                                          "{\"dependentSchemas\":{\"a\":{\"$ref\":\"#\"}}}"};
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++) {
        len = 0;
        say("%s", schemas[i]);
        expect_refusal(GRAMMAR_SCHEMA, "circular $ref");
    }
}
END_TEST

/* As a worker takes an answer: a little in each turn. */
static bool accepts_slowly(struct grammar *grammar, const char *answer_text)
{
    struct grammar_answer *answer;
    struct error err = {0};
    ck_assert_int_eq(grammar_answer_new(grammar, &answer, &err), 0);
    int r = 0;
    for (const char *c = answer_text; *c && r == 0; c++)
        r = grammar_answer_take(answer, (struct bytes){c, 1}, &err);
    bool whole = r == 0 && grammar_answer_may_end(answer);
    ck_assert_msg(!strstr(err.text, "too complex"), "%s", err.text);
    grammar_answer_free(answer);
    return whole;
}

/* 2^1000 sets of members, and more orders: only those are kept that an answer was in. */
START_TEST(members_in_any_order_are_no_more_than_come)
{
    static char answer[64000];
    say_many("{\"type\":\"object\",\"required\":[\"p7\"],\"properties\":{", 1000, "\"p#\":{\"const\":#}",
             "}}");
    struct grammar *grammar = NULL;
    struct error err = {0};
    ck_assert_int_eq(grammar_make(GRAMMAR_SCHEMA, (struct bytes){text, len}, &grammar, &err), 0);
    for (unsigned round = 0; round < 4; round++) {
        size_t n = 0;
        for (unsigned i = 0; i < 1000; i++) { /* 7 and its multiples are apart from 1000 */
            unsigned member = (i * 77 + round * 13) % 1000;
            n += (size_t)snprintf(answer + n, sizeof answer - n, "%s\"p%u\":%u", i ? "," : "{", member,
                                  member);
        }
        strcpy(answer + n, "}");
        ck_assert_msg(accepts_slowly(grammar, answer), "round %u", round);
        snprintf(answer + n, sizeof answer - n, ",\"p%u\":%u}", round, round);
        ck_assert(!accepts_slowly(grammar, answer));
    }
    ck_assert(!accepts_slowly(grammar, "{\"p6\":6}"));
    grammar_free(grammar);
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
    tcase_add_test(tests, schemas_that_grow);
    tcase_add_test(tests, schemas_that_refer_to_themselves);
    tcase_add_test(tests, members_in_any_order_are_no_more_than_come);
}

int main(void)
{
    return run_tests("hostile grammars", add);
}
