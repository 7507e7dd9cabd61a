/* SPDX-License-Identifier: MIT */
/* Regular expressions: what each construct matches as a whole, and what is refused by name. */

#include "tests/unit/run.h"
#include "tests/unit/worker/grammar/accepts.h"

#define N(cases) (sizeof(cases) / sizeof *(cases))

START_TEST(each_construct_matches_what_it_says)
{
    static const struct accepted cases[] = {
        {"abc", {"abc"}, {"ab", "abcd", ""}},
        {"a|bc|", {"a", "bc", ""}, {"b", "abc"}},
        {"^a$|^b$", {"a", "b"}, {"^a", "a$"}},
        {"(a|b)*c", {"c", "abbac"}, {"ab", "d"}},
        {"(?:ab)+", {"ab", "abab"}, {"aba", ""}},
        {"(?<year>[0-9]{4})-(?P<month>\\d\\d)", {"2024-05"}, {"24-05", "2024-5"}},
        {"[^abc]", {"d", "\n", "é"}, {"a", ""}},
        {"[]x]+", {"]x"}, {"a"}},
        {"[a-]+", {"a-a"}, {"b"}},
        {"[\\w.-]+@\\w+", {"a.b-c@d"}, {"@d", "a@"}},
        {"[\\D]", {"a", "é"}, {"5"}},
        {"\\s\\S", {" a", "\nb"}, {"ab"}},
        {"a{2}b{1,}c{0,2}", {"aab", "aabbbcc"}, {"ab", "aabccc", "aac"}},
        {"a*?b+?c??", {"b", "aabbc"}, {"a"}},
        {".", {"a", "é", "😀"}, {"\n", "", "ab"}},
        {"\\.\\*\\x41\\u00e9\\t", {".*Aé\t"}, {"xyz"}},
        {"((a{1,3}){1,3}){1,3}", {"a", "aaaaaaaaaaaaaaaaaaaaaaaaaaa"}, {"", "aaaaaaaaaaaaaaaaaaaaaaaaaaaa"}},
        {"(a*)*(a|a)*b",
         {"b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"},
         {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}},
    };
    check_accepted(GRAMMAR_REGEX, cases, N(cases));
}
END_TEST

START_TEST(what_is_not_supported_is_named)
{
    static const struct {
        const char *regex, *reason;
    } cases[] = {
        {"(?=a)", "assertions and flags"},
        {"(?!a)", "assertions and flags"},
        {"(?<=a)b", "assertions and flags"},
        {"(?<!a)b", "assertions and flags"},
        {"(?i)a", "assertions and flags"},
        {"\\bword", "assertions (\\b"},
        {"(a)\\1", "back references"},
        {"a^b", "^ and $"},
        {"(^a)", "^ and $"},
        {"a$b", "^ and $"},
        {"\\p{L}", "an escape"},
        {"a**", "a repeat of nothing"},
        {"*a", "a repeat of nothing"},
        {"a{2,1}", "a repeat is none of"},
        {"a++", "possessive"},
        {"(a", "a group has no closing )"},
        {"a)", "a ) that closes nothing"},
        {"[a", "a set has no closing ]"},
        {"[a-\\d]", "a range of a set has no end that is a character"},
        {"[z-a]", "ends before it begins"},
        {"\xff", "it is not UTF-8"},
        {"((a{900}){900}){900}", "too large"},
    };
    for (size_t i = 0; i < N(cases); i++)
        ck_assert_msg(strstr(why_refused(GRAMMAR_REGEX, cases[i].regex), cases[i].reason),
                      "%s: \"%s\" is not in \"%s\"", cases[i].regex, cases[i].reason,
                      why_refused(GRAMMAR_REGEX, cases[i].regex));
}
END_TEST

START_TEST(groups_have_a_depth)
{
    static char text[1002];
    memset(text, '(', 500);
    ck_assert(strstr(why_refused(GRAMMAR_REGEX, text), "groups are nested too deep"));
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, each_construct_matches_what_it_says);
    tcase_add_test(tests, what_is_not_supported_is_named);
    tcase_add_test(tests, groups_have_a_depth);
}

int main(void)
{
    return run_tests("regex", add);
}
