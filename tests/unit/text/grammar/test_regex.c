/* SPDX-License-Identifier: MIT */
/* Regular expressions: what each construct matches as a whole, and what is refused by name. */

#include "tests/unit/run.h"
#include "tests/unit/text/grammar/accepts.h"

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
        {"(?=a)", "regex: at byte 2: assertions and flags, (?…), are not supported"},
        {"(?!a)", "regex: at byte 2: assertions and flags, (?…), are not supported"},
        {"(?<=a)b", "regex: at byte 2: assertions and flags, (?…), are not supported"},
        {"(?<!a)b", "regex: at byte 2: assertions and flags, (?…), are not supported"},
        {"(?i)a", "regex: at byte 2: assertions and flags, (?…), are not supported"},
        {"\\bword", "regex: at byte 0: assertions (\\b and others) are not supported"},
        {"(a)\\1", "regex: at byte 3: back references are not supported"},
        {"a^b", "regex: at byte 1: ^ and $ are supported only at the ends of the whole expression"},
        {"(^a)", "regex: at byte 1: ^ and $ are supported only at the ends of the whole expression"},
        {"a$b", "regex: at byte 1: ^ and $ are supported only at the ends of the whole expression"},
        {"\\p{L}", "regex: at byte 2: unsupported escape"},
        {"a**", "regex: at byte 2: nothing to repeat"},
        {"*a", "regex: at byte 0: nothing to repeat"},
        {"a{2,1}", "regex: at byte 6: invalid repetition: expected {m}, {m,} or {m,n} with m ≤ n ≤ 65536"},
        {"a++", "regex: at byte 3: possessive quantifiers are not supported"},
        {"(a", "regex: at byte 2: unmatched ("},
        {"a)", "regex: at byte 1: unmatched )"},
        {"[a", "regex: at byte 2: character set: missing ] or not a character"},
        {"[a-\\d]", "regex: at byte 5: character range: the end is not a character"},
        {"[z-a]", "regex: at byte 4: character range out of order"},
        {"\xff", "regex: at byte 0: not UTF-8"},
        {"((a{900}){900}){900}",
         "grammar: too large: more than 262144 nodes or 4096 character sets at the rule \"root\""},
        {"(?<a", "regex: at byte 4: assertions and flags, (?…), are not supported"},
        {"(?P<a", "regex: at byte 5: assertions and flags, (?…), are not supported"},
        {"(?", "regex: at byte 2: assertions and flags, (?…), are not supported"},
        {"(?P=a)", "regex: at byte 2: assertions and flags, (?…), are not supported"},
        {"\\Ba", "regex: at byte 0: assertions (\\b and others) are not supported"},
        {"\\Aa", "regex: at byte 0: assertions (\\b and others) are not supported"},
        {"a\\Z", "regex: at byte 1: assertions (\\b and others) are not supported"},
        {"a\\z", "regex: at byte 1: assertions (\\b and others) are not supported"},
        {"\\0", "regex: at byte 0: back references are not supported"},
        {"\\9", "regex: at byte 0: back references are not supported"},
        {"?a", "regex: at byte 0: nothing to repeat"},
        {"{2}", "regex: at byte 0: nothing to repeat"},
        {"+", "regex: at byte 0: nothing to repeat"},
        {"(|*)", "regex: at byte 2: nothing to repeat"},
        {"a{65537}", "regex: at byte 7: invalid repetition: expected {m}, {m,} or {m,n} with m ≤ n ≤ 65536"},
        {"a{", "regex: at byte 2: invalid repetition: expected {m}, {m,} or {m,n} with m ≤ n ≤ 65536"},
        {"a?+", "regex: at byte 3: possessive quantifiers are not supported"},
        {"a{2}+", "regex: at byte 5: possessive quantifiers are not supported"},
        {"[", "regex: at byte 1: character set: missing ] or not a character"},
        {"[]", "regex: at byte 2: character set: missing ] or not a character"},
        {"[\\q]", "regex: at byte 3: character set: missing ] or not a character"},
        {"[a-\xff]", "regex: at byte 3: character range: the end is not a character"},
        {"(a|b$)", "regex: at byte 4: ^ and $ are supported only at the ends of the whole expression"},
        {"a|^|$b", "regex: at byte 4: ^ and $ are supported only at the ends of the whole expression"},
        {"\\", "regex: at byte 1: unsupported escape"},
    };
    for (size_t i = 0; i < N(cases); i++)
        ck_assert_str_eq(why_refused(GRAMMAR_REGEX, cases[i].regex), cases[i].reason);
}
END_TEST

START_TEST(groups_have_a_depth)
{
    static char text[1002];
    memset(text, '(', 500);
    ck_assert_str_eq(why_refused(GRAMMAR_REGEX, text), "regex: at byte 101: groups nested too deeply");
    for (size_t depth = 100; depth <= 101; depth++) {
        memset(text, '(', depth);
        text[depth] = 'a';
        memset(text + depth + 1, ')', depth);
        text[2 * depth + 1] = '\0';
        ck_assert_str_eq(why_refused(GRAMMAR_REGEX, text),
                         depth == 100 ? "" : "regex: at byte 101: groups nested too deeply");
    }
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
