/* SPDX-License-Identifier: MIT */
/* GBNF by hand cases: what each construct accepts, and how each mistake is named. */

#include "tests/unit/run.h"
#include "tests/unit/text/grammar/accepts.h"

#include <stdlib.h>

#define N(cases) (sizeof(cases) / sizeof *(cases))

START_TEST(each_construct_accepts_what_it_says)
{
    static const struct accepted cases[] = {
        {"root ::= \"yes\" | \"no\"", {"yes", "no"}, {"", "y", "yesno", "Yes", "n"}},
        {"root ::= \"a\" \"b\"* \"c\"+ \"d\"?", {"ac", "abbcc", "abcd"}, {"a", "ab", "acdd", "c"}},
        {"root ::= [a-c] [^a-c] .", {"axy", "b\n ", "cé😀"}, {"abx", "dxy", "ax"}},
        {"root ::= [^\"\\\\]{2}", {"ab", "é😀"}, {"a", "a\"", "a\\", "abc"}},
        {"root ::= \"x\"{3} \"y\"{2,} \"z\"{1,2} \"w\"{0,1} \"v\"{,2}",
         {"xxxyyz", "xxxyyyyzzwvv"},
         {"xxyyz", "xxxyz", "xxxyyzzz", "xxxyyzvvv"}},
        {"root ::= (\"a\" | \"b\" \"c\")+", {"a", "bc", "abca"}, {"b", "", "ac"}},
        {"# first\nroot ::= a # then\n\n | b\na ::= \"1\"\nb ::= \"2\"\n  \"3\"", {"1", "23"}, {"2", "123"}},
        {"root ::= \"\\n\\t\\\\\\\"\\x41\\u00e9\\U0001F600\"", {"\n\t\\\"Aé😀"}, {"\n\t\\\"A", "ntA"}},
        {"root ::= \"é\" [à-ü]", {"éè"}, {"é\xc3", "\xc3\xa9x"}},
        {"root ::= list\nlist ::= \"(\" list* \")\"", {"()", "(()())", "((()))"}, {"(", "())", ")("}},
        {"root ::= \"a\" root \"b\" | \"\"", {"", "ab", "aaabbb"}, {"a", "aab", "abb"}},
        {"root ::= \"a\" root | \"b\"", {"b", "aaaaaaaab"}, {"a", "", "ba"}},
        {"root ::= x x\nx ::= \"a\"?", {"", "a", "aa"}, {"aaa", "b"}},
        {"root ::= (\"a\"* )* \"b\"", {"b", "aab"}, {"a"}},
        {"root ::= []\"a\" | \"b\"", {"b"}, {"a", ""}},
        {"root::=[\\]\\-x]+", {"]-x"}, {"\\"}},
        {"root ::= [\\u0000-\\U0010FFFF]",
         {"a", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbf",
          "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"},
         {"\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
          "\xf5\x80\x80\x80", "\xc3"}},
    };
    check_accepted(GRAMMAR_GBNF, cases, N(cases));
}
END_TEST

START_TEST(schemas_stand_among_rules)
{
    static const struct accepted cases[] = {
        {"root ::= \"<\" one \">\" (\"<\" two \">\")*\n"
         "one ::= %json {\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#/$defs/n\"}},"
         "\"required\":[\"a\"],\"$defs\":{\"n\":{\"type\":\"integer\"}}}\n"
         "two ::= "
         "%json{\"properties\":{\"s\":{\"$ref\":\"#/$defs/n\"}},\"$defs\":{\"n\":{\"enum\":[\"}\"]}}} \"!\"?",
         {"<{\"a\": 5}>", "<{\"a\":5}><{\"s\":\"}\"}!><{}>"},
         {"<{}>", "<{\"a\": 5}", "<{\"a\":\"}\"}>", "<{\"a\": 5}><{\"s\":5}>", "{\"a\": 5}"}},
        {"root ::= (%json {\"type\": \"boolean\"} | %json {\"const\": 7}){2}",
         {"true7", "77", "falsetrue"},
         {"7", "true", "777"}},
        {"root ::= %json {\"properties\": {\"in\": {\"$ref\": \"#\"}}} # a comment {",
         {"{}", "{\"in\": {\"in\": {}}}"},
         {"{\"in\": 1}"}},
    };
    check_accepted(GRAMMAR_GBNF, cases, N(cases));
}
END_TEST

START_TEST(random_sets_hold_their_code_points_and_no_others)
{
    unsigned seed = 7;
    for (int round = 0; round < 60; round++) {
        uint32_t ends[2];
        char text[96];
        static const uint32_t most[] = {0x80, 0x900, 0x11000, 0x110000};
        for (int i = 0; i < 2; i++)
            do
                ends[i] = 1 + (uint32_t)(((uint64_t)(unsigned)rand_r(&seed) << 16 ^ (unsigned)rand_r(&seed)) %
                                         (most[round % 4] - 1));
            while (ends[i] >= 0xd800 && ends[i] <= 0xdfff);
        uint32_t low = ends[0] < ends[1] ? ends[0] : ends[1], high = ends[0] ^ ends[1] ^ low;
        snprintf(text, sizeof text, "root ::= [%s\\U%08x-\\U%08x]", round % 2 ? "^" : "", low, high);
        struct grammar *grammar = grammar_of(GRAMMAR_GBNF, text);
        for (int i = 0; i < 300; i++) {
            uint32_t point = i < 4 ? (i < 2 ? low - 1 + (uint32_t)i : high + (uint32_t)i - 2)
                                   : (uint32_t)rand_r(&seed) % most[round % 4];
            uint8_t utf8[5] = {0};
            if (point == 0 || (point >= 0xd800 && point <= 0xdfff) || point > 0x10ffff)
                continue;
            int n = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
            uint32_t rest = point;
            for (int j = n - 1; j > 0; j--, rest >>= 6)
                utf8[j] = (uint8_t)(0x80 | (rest & 0x3f));
            utf8[0] = n == 1 ? (uint8_t)point : (uint8_t)((0xf00 >> n) | rest);
            bool inside = point >= low && point <= high;
            ck_assert_msg(accepts(grammar, (const char *)utf8) == (inside != (round % 2 == 1)), "%s: U+%04X",
                          text, point);
        }
        grammar_free(grammar);
    }
}
END_TEST

START_TEST(mistakes_are_named)
{
    static const struct {
        const char *grammar, *reason;
    } cases[] = {
        {"", "grammar: undefined rule \"root\""},
        {"x ::= \"a\"", "grammar: undefined rule \"root\""},
        {"root ::= y", "grammar: undefined rule \"y\""},
        {"root ::= \"a\"\nroot ::= \"b\"", "grammar: duplicate rule \"root\""},
        {"root ::= \"a", "grammar: line 1: unterminated literal"},
        {"root ::=\n\"a\nb\"", "grammar: line 2: unterminated literal"},
        {"root ::= [a", "grammar: line 1: character set: missing ] or not a character"},
        {"root ::= [\xff]", "grammar: line 1: character set: missing ] or not a character"},
        {"root ::= [a-\xff]", "grammar: line 1: character range: the end is not a character"},
        {"::= \"b\"", "grammar: line 1: expected a rule name: at most 63 of a-z A-Z 0-9 - _"},
        {"root ::= [b-a]", "grammar: line 1: character range out of order"},
        {"root ::= (\"a\"", "grammar: line 1: unmatched ("},
        {"root ::= \"a\")", "grammar: line 1: unmatched )"},
        {"root ::= \"\\q\"", "grammar: line 1: invalid escape or byte in a literal"},
        {"root ::= \"\xff\"", "grammar: line 1: invalid escape or byte in a literal"},
        {"root ::= \"a\"{3,2}",
         "grammar: line 1: invalid repetition: expected {m}, {m,} or {m,n} with m ≤ n ≤ 65536"},
        {"root ::= \"a\"****", "grammar: line 1: repetitions nested too deeply"},
        {"root ::= \"a\"{99999999}",
         "grammar: line 1: invalid repetition: expected {m}, {m,} or {m,n} with m ≤ n ≤ 65536"},
        {"root = \"a\"", "grammar: line 1: expected ::= after the rule name"},
        {"root ::= <a>", "grammar: line 1: expected a literal, set, group, schema or rule name"},
        {"root ::= %json [1]", "grammar: line 1: expected a JSON object after %json"},
        {"root ::= %json {\"type\": ",
         "grammar: the rule \"root\": schema: line 1: unexpected token near end of file"},
        {"root ::= a\na ::= %json {\"properties\": {\"b\": {\"type\": \"array\", \"uniqueItems\": true}}} "
         "root",
         "grammar: the rule \"a\": schema: at #/properties/b: "
         "uniqueItems is supported where items have listed values (enum, const, boolean, null)"},
        {"root ::= %json {\"$ref\": \"#/$defs/a\"} %json {\"$defs\": {\"a\": true}}",
         "grammar: the rule \"root\": schema: at #: $ref \"#/$defs/a\" not found in the schema"},
        {"root ::= root \"a\" | \"b\"",
         "grammar: the rule \"root\" is left-recursive, which is not supported"},
        {"root ::= a\na ::= b\nb ::= \"x\"? a \"y\" | \"z\"",
         "grammar: the rule \"a\" is left-recursive, which is not supported"},
        {"root ::= \"x\"? e root\ne ::= \"\"",
         "grammar: the rule \"root\" is left-recursive, which is not supported"},
        {"root ::= ((((\"a\"{1000}){1000}){1000}){1000})",
         "grammar: too large: more than 262144 nodes or 4096 character sets at the rule \"root\""},
        {"root ::= [a-z]{60000}{60000}",
         "grammar: too large: more than 262144 nodes or 4096 character sets at the rule \"root\""},
        {"root ::= \"a\"{65537}",
         "grammar: line 1: invalid repetition: expected {m}, {m,} or {m,n} with m ≤ n ≤ 65536"},
        {"root ::= \"a\"{1",
         "grammar: line 1: invalid repetition: expected {m}, {m,} or {m,n} with m ≤ n ≤ 65536"},
        {"root ::= \"a\"\n\nb \"c\"", "grammar: undefined rule \"b\""},
        {"root ::= \"a\" # b\n# c\n b ::=\n [",
         "grammar: line 4: character set: missing ] or not a character"},
        {"root ::= [a-\\q]", "grammar: line 1: character range: the end is not a character"},
        {"root ::= [\\ud800]", "grammar: line 1: character set: missing ] or not a character"},
        {"root ::= %json", "grammar: line 1: expected a JSON object after %json"},
        {"root ::= \"a\" $", "grammar: line 1: expected a literal, set, group, schema or rule name"},
    };
    for (size_t i = 0; i < N(cases); i++)
        ck_assert_str_eq(why_refused(GRAMMAR_GBNF, cases[i].grammar), cases[i].reason);
}
END_TEST

START_TEST(deep_nesting_is_refused_not_followed)
{
    static char text[4096] = "root ::= ";
    size_t n = strlen(text);
    memset(text + n, '(', 2000);
    ck_assert_str_eq(why_refused(GRAMMAR_GBNF, text), "grammar: line 1: groups nested too deeply");
    for (int depth = 100; depth <= 101; depth++) {
        snprintf(text + n, sizeof text - n, "%0*d\"a\"%0*d", depth, 0, depth, 0);
        for (char *c = text + n; *c; c++)
            *c = *c != '0' ? *c : c < strchr(text, 'a') ? '(' : ')';
        ck_assert_str_eq(why_refused(GRAMMAR_GBNF, text),
                         depth == 100 ? "" : "grammar: line 1: groups nested too deeply");
    }
}
END_TEST

START_TEST(a_long_chain_of_rules_is_followed)
{
    static char text[120000] = "root ::= r0\n";
    size_t n = strlen(text);
    for (int i = 0; i < 4000; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "r%d ::= r%d\n", i, i + 1);
    snprintf(text + n, sizeof text - n, "r4000 ::= \"a\"\n");
    ck_assert_str_eq(why_refused(GRAMMAR_GBNF, text), "");
    memcpy(strstr(text, "r4000 ::= \"a\""), "r4000 ::= r0 ", 13);
    ck_assert(strstr(why_refused(GRAMMAR_GBNF, text), "left-recursive"));
}
END_TEST

START_TEST(ambiguity_has_a_bound_with_a_name)
{
    /* After n bytes there are 2^n stacks. */
    struct grammar *grammar =
        grammar_of(GRAMMAR_GBNF, "root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"d\"");
    struct grammar_answer *answer;
    struct error err = {0};
    ck_assert_int_eq(grammar_answer_new(grammar, &answer, &err), 0);
    int r = 0;
    for (int i = 0; i < 100 && r == 0; i++)
        r = grammar_answer_take(answer, BYTES_LITERAL("a"), &err);
    ck_assert_int_eq(r, GRAMMAR_E_INVALID);
    ck_assert_str_eq(err.text, "the grammar is too complex: more than 4096 ways to read one text");
    grammar_answer_free(answer);
    grammar_free(grammar);
}
END_TEST

START_TEST(what_is_remembered_is_bounded_and_answers_outlive_it)
{
    /* Every way of nesting is a state of its own, so that all is forgotten now and then; the other answer
     * waits in the middle of one. */
    struct grammar *grammar = grammar_of(
        GRAMMAR_GBNF, "root ::= item+\nitem ::= \"a\" item* \"0\" | \"b\" item* \"1\" | "
                      "\"c\" item* \"2\" | \"d\" item* \"3\" | \"e\" item* \"4\" | \"f\" item* \"5\"");
    struct grammar_answer *waiting, *busy, *last;
    struct error err = {0};
    unsigned seed = 3;
    char open[400];
    ck_assert_int_eq(grammar_answer_new(grammar, &waiting, &err), 0);
    ck_assert_int_eq(grammar_answer_take(waiting, BYTES_LITERAL("dbce42"), &err), 0);
    ck_assert_int_eq(grammar_answer_new(grammar, &busy, &err), 0);
    ck_assert_int_eq(grammar_answer_new(grammar, &last, &err), 0);
    ck_assert_int_eq(grammar_answer_take(last, BYTES_LITERAL("f"), &err), 0);
    for (int i = 0, depth = 0; i < 200000; i++) {
        const bool in = depth == 0 || (depth < 400 && rand_r(&seed) % 2);
        const char kind = in ? (char)(rand_r(&seed) % 6) : open[--depth];
        const char byte = (char)((in ? 'a' : '0') + kind), other = (char)('0' + (kind + 1) % 6);
        if (!in && i % 100 == 0) /* what closes another */
            ck_assert_int_eq(grammar_answer_try(busy, (struct bytes){&other, 1}, &err), GRAMMAR_E_INVALID);
        ck_assert_int_eq(grammar_answer_take(busy, (struct bytes){&byte, 1}, &err), 0);
        if (in)
            open[depth++] = kind;
        ck_assert(grammar_answer_may_end(busy) == (depth == 0));
    }
    grammar_answer_free(busy); /* from between the others */
    ck_assert_int_eq(grammar_answer_take(last, BYTES_LITERAL("5"), &err), 0);
    grammar_answer_free(last);
    ck_assert_int_eq(grammar_answer_try(waiting, BYTES_LITERAL("3"), &err), GRAMMAR_E_INVALID);
    ck_assert_int_eq(grammar_answer_try(waiting, BYTES_LITERAL("13"), &err), 0); /* which takes nothing */
    ck_assert_int_eq(grammar_answer_take(waiting, BYTES_LITERAL("1"), &err), 0);
    ck_assert(!grammar_answer_may_end(waiting));
    ck_assert_int_eq(grammar_answer_take(waiting, BYTES_LITERAL("3"), &err), 0);
    ck_assert(grammar_answer_may_end(waiting) && !grammar_answer_must_end(waiting));
    ck_assert_int_eq(grammar_answer_take(waiting, BYTES_LITERAL("3"), &err), GRAMMAR_E_INVALID);
    grammar_answer_free(waiting);
    grammar_free(grammar);
}
END_TEST

START_TEST(a_text_has_a_quarter_of_a_mebibyte_at_most)
{
    static char text[GRAMMAR_MOST_BYTES + 2];
    struct grammar *grammar = NULL;
    struct error err = {0};
    memset(text, '\n', sizeof text - 1);
    memcpy(text, "root::=\"a\"", 10);
    ck_assert_int_eq(grammar_make(GRAMMAR_GBNF, (struct bytes){text, GRAMMAR_MOST_BYTES}, &grammar, &err), 0);
    ck_assert(accepts(grammar, "a"));
    grammar_free(grammar);
    ck_assert_str_eq(why_refused(GRAMMAR_GBNF, text), "grammar: 262145 bytes; at most 262144 are allowed");
    ck_assert_str_eq(why_refused((enum grammar_kind)77, "a"), "grammar: unknown kind");
}
END_TEST

/* 63 bytes of a name, 8192 rules, 65536 repeats. */
START_TEST(names_rules_and_repeats_have_limits)
{
    static char text[200000];
    for (int len = 63; len <= 64; len++) {
        snprintf(text, sizeof text, "root ::= r%0*d\nr%0*d ::= \"a\"", len - 1, 7, len - 1, 7);
        ck_assert_str_eq(why_refused(GRAMMAR_GBNF, text),
                         len == 63 ? ""
                                   : "grammar: line 2: expected a rule name: at most 63 of a-z A-Z 0-9 - _");
    }
    for (int n = 8192; n <= 8193; n++) {
        for (int defined = 0; defined < 2;
             defined++) { /* one that is defined is one too many, or one that is named */
            size_t len = 0;
            for (int i = 0; i < n; i++)
                if (i < 8192 || defined)
                    len += (size_t)snprintf(text + len, sizeof text - len,
                                            i ? "r%d ::= \"a\"\n" : "root ::= \"a\"\n", i);
                else
                    len += (size_t)snprintf(text + len, sizeof text - len, "| r%d\n", i);
            ck_assert_str_eq(why_refused(GRAMMAR_GBNF, text),
                             n == 8192 ? "" : "grammar: line 8193: too many rules");
        }
    }
    ck_assert_str_eq(why_refused(GRAMMAR_GBNF, "root ::= \"a\"{65536}"), "");
    ck_assert_str_eq(why_refused(GRAMMAR_REGEX, "a{65536}"), "");
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, names_rules_and_repeats_have_limits);
    tcase_add_test(tests, each_construct_accepts_what_it_says);
    tcase_add_test(tests, schemas_stand_among_rules);
    tcase_add_test(tests, random_sets_hold_their_code_points_and_no_others);
    tcase_add_test(tests, mistakes_are_named);
    tcase_add_test(tests, deep_nesting_is_refused_not_followed);
    tcase_add_test(tests, a_long_chain_of_rules_is_followed);
    tcase_add_test(tests, ambiguity_has_a_bound_with_a_name);
    tcase_add_test(tests, what_is_remembered_is_bounded_and_answers_outlive_it);
    tcase_add_test(tests, a_text_has_a_quarter_of_a_mebibyte_at_most);
}

int main(void)
{
    return run_tests("gbnf", add);
}
