/* SPDX-License-Identifier: MIT */
#include "tests/unit/text/template/jinja_examples.h"

START_TEST(formats_in_braces_lay_out_as_in_python)
{
    static const struct example examples[] = {
        {"{{ '<{}>'.format(name) }}{{ '{0}{1}{0}'.format('a', 2) }}{{ '{x}-{y}'.format(x=1, y=none) }}",
         "<Ada>a2a1-None"},
        {"{{ '{{{}}}'.format(1) }}{{ ''.format() }}{{ '{}'.format([1, 'a']) }}", "{1}[1, 'a']"},
        {"[{{ '{:>4}|{:<4}|{:^5}|{:*^5}|{:4}'.format('a', 'b', 'cd', 'é', 'f') }}]",
         "[   a|b   | cd  |**é**|f   ]"},
        {"{{ '{:5}|{:<5}|{:^5}|{:05d}|{:+d}|{: d}'.format(42, 42, 42, -42, 42, 42) }}",
         "   42|42   | 42  |-0042|+42| 42"},
        {"{{ '{:x} {:X} {:o} {:b} {:#x} {:,} {:_}'.format(255, 255, 8, 5, 255, 1234567, 1234) }}",
         "ff FF 10 101 0xff 1,234,567 1_234"},
        {"{{ '{:.2f}|{:8.3f}|{:e}|{:g}|{:.1%}|{:.0f}'.format(pi, 2.5, 12345.678, 0.0001, 0.256, 2) }}",
         "3.25|   2.500|1.234568e+04|0.0001|25.6%|2"},
        {"{{ '{:,.2f} {:<8}| {:.3}'.format(1234567.891, 1.5, pi) }}", "1,234,567.89 1.5     | 3.25"},
        {"{{ '{!r} {!s}'.format('q', 'q') }}{{ '{:.2}'.format('héllo') }}", "'q' qhé"},
        {"{{ '{0[b]} {0.a[1]} {1.name} {2[0]}'.format(map, people[0], items) }}", "1 q' Bo 3"},
        {"{{ '{:{w}.{p}f}|'.format(pi, w=7, p=1) }}{{ '{:{}}|'.format('a', 3) }}", "    3.2|a  |"},
        {"{{ '{:d}{}'.format(yes, yes) }}{{ '{:5}'.format(yes) }}", "1True    1"},
    };
    static const struct example failures[] = {
        {"{{ '{} {}'.format(1) }}", "a format refers to value 2 of 1"},
        {"{{ '{x}'.format(y=1) }}", "a format needs \"x\""},
        {"{{ '{0}{}'.format(1, 2) }}", "mixes numbered and unnumbered fields"},
        {"{{ '{}{0}'.format(1, 2) }}", "mixes numbered and unnumbered fields"},
        {"{{ '{'.format(1) }}", "unmatched '{'"},
        {"{{ '}'.format(1) }}", "unmatched '}'"},
        {"{{ '{:d}'.format('a') }}", "the format 'd' does not apply to a string"},
        {"{{ '{:5}'.format(none) }}", "does not apply to none"},
        {"{{ '{:z!}'.format(1) }}", "invalid format"},
        {"{{ '{:99999999}'.format(1) }}", "a width of at most"},
        {"{{ '{:.999f}'.format(1) }}", "a precision of at most"},
        {"{{ '{:99999999999999999999}'.format(1) }}", "too large"},
        {"{{ '{[}'.format(1) }}{{ '{.}'.format(1) }}", "an empty member name"},
        {"{{ '{:{:{:{:}}}}'.format(1, 2, 3, 4) }}", "nested too deep"},
    };
    EXPECT_ALL(examples);
    EXPECT_FAILURES(failures, -EINVAL);
}
END_TEST

START_TEST(formats_with_percent_signs_lay_out_as_in_python)
{
    static const struct example examples[] = {
        {"{{ '%s-%d-%5.2f-%r-%%' % (name, 3, 2.5, 'q') }}", "Ada-3- 2.50-'q'-%"},
        {"{{ '%s' % name }}{{ '%s' % none_here }}{{ '%s' % [1] }}{{ '%02d' % 5 }}", "AdaNone[1]05"},
        {"{{ '%(a)s|%(b)03d' % {'a': 1, 'b': 2} }}", "1|002"},
        {"{{ '[%5s|%-5s|%05d|%+d|% d|%x|%X|%o]' % ('a', 'b', 3, 4, 5, 255, 255, 8) }}",
         "[    a|b    |00003|+4| 5|ff|FF|10]"},
        {"{{ '%e %g %i %.2s %c' % (1.5, 2.5, 3.7, 'abc', 'z') }}", "1.500000e+00 2.5 3 ab z"},
        {"{{ '%s: %.1f' | format(name, pi) }}{{ '%(x)s' | format(x=3) }}", "Ada: 3.23"},
    };
    static const struct example failures[] = {
        {"{{ '%s %s' % (1,) }}", "not enough values for a format"},
        {"{{ '%s' % (1, 2) }}", "too many values for a format"},
        {"{{ 'x' % 1 }}", "too many values for a format"},
        {"{{ '%d' % 'x' }}", "the format 'd' does not apply to a string"},
        {"{{ '%' % 1 }}", "ends after %"},
        {"{{ '%(a)s' % 1 }}", "needs a mapping"},
        {"{{ '%(z)s' % map }}", "a format needs \"z\""},
        {"{{ '%y' % 1 }}", "the format 'y' does not apply"},
    };
    EXPECT_ALL(examples);
    EXPECT_FAILURES(failures, -EINVAL);
}
END_TEST

START_TEST(methods_of_strings_do_what_pythons_do)
{
    static const struct example examples[] = {
        {"{{ 'a.b'.removeprefix('a.') }}{{ 'a.b'.removesuffix('.b') }}{{ 'a'.removeprefix('abc') }}", "baa"},
        {"{{ 'a,b,c'.rsplit(',', 1) }}{{ ' a b  c '.rsplit() }}{{ ' a b  c '.rsplit(none, 1) }}{{ "
         "'a'.rsplit('x', 0) }}",
         "['a,b', 'c']['a', 'b', 'c'][' a b', 'c']['a']"},
        {"{{ 'a=b=c'.partition('=') }}{{ 'a=b=c'.rpartition('=') }}{{ 'a'.partition('=') }}{{ "
         "'a'.rpartition('=') }}",
         "('a', '=', 'b=c')('a=b', '=', 'c')('a', '', '')('', '', 'a')"},
        {"[{{ 'ab'.center(5, '*') }}|{{ 'abc'.center(6) }}|{{ 'é'.ljust(3) }}|{{ 'ab'.rjust(4, '.') }}]",
         "[**ab*| abc  |é  |..ab]"},
        {"{{ '  one two  three '.rsplit(none, 1) }}{{ 'ab cd'.rsplit() }}",
         "['  one two', 'three']['ab', 'cd']"},
        {"{{ ('a,' * 200000).rsplit(',', 2000) | length }}", "2001"},
        {"{{ '42'.zfill(5) }}{{ '-4'.zfill(4) }}{{ 'abc'.zfill(2) }}", "00042-004abc"},
        {"{{ 'abcabc'.index('c') }}{{ 'abcabc'.rfind('c') }}{{ 'abc'.rfind('z') }}{{ 'éabé'.rindex('é') }}",
         "25-13"},
        {"{{ 'abcabc'.find('a', 1) }}{{ 'abcabc'.find('c', 0, 2) }}{{ 'abcabc'.count('a', 1) }}{{ "
         "'éabab'.find('b', -2) }}",
         "3-114"},
        {"{{ 'abc'.startswith('b', 1) }}{{ 'abc'.endswith('b', 0, 2) }}{{ 'abc'.endswith(('x', 'c')) }}",
         "TrueTrueTrue"},
        {"{{ 'ab'.isalpha() }}{{ 'a1'.isalpha() }}{{ '12'.isdigit() }}{{ 'é1'.isalnum() }}{{ ' '.isspace() "
         "}}{{ "
         "''.isdigit() }}{{ 'ab'.islower() }}{{ 'AB1'.isupper() }}{{ '1'.isupper() }}",
         "TrueFalseTrueTrueTrueFalseTrueTrueFalse"},
        {"{{ 'a\\nb\\r\\nc\\u2028d'.splitlines() }}{{ 'a\\nb\\n'.splitlines(true) }}{{ ''.splitlines() }}",
         "['a', 'b', 'c', 'd']['a\\n', 'b\\n'][]"},
        {"{{ 'ab'.replace('', '-') }}{{ 'ab'.replace('', '-', 2) }}{{ 'ab' | replace('', '.') }}",
         "-a-b--a-b.a.b."},
        {"{{ 'Ab c'.lower() }}{{ 'Ab c'.upper() }}{{ 'ab cD'.title() }}{{ 'aB c'.capitalize() }}",
         "ab cAB CAb CdAb c"},
        {"[{{ ' a '.lstrip() }}][{{ ' a '.rstrip() }}][{{ 'xaxb'.lstrip('x') }}][{{ 'xax'.rstrip('x') }}]",
         "[a ][ a][axb][xa]"},
        {"{{ '12'.isdecimal() }}{{ '1a'.isdecimal() }}{{ '12'.isnumeric() }}{{ '1a'.isnumeric() }}",
         "TrueFalseTrueFalse"},
        {"[{{ 'ab' | center(6) }}][{{ 'é..é'.strip('.é') }}][{{ 'ab'.strip('') }}]", "[  ab  ][][ab]"},
    };
    static const struct example failures[] = {
        {"{{ 'abc'.index('z') }}", "substring not found"},
        {"{{ [1].index(2) }}", "value not found in the list"},
        {"{{ 'a'.center(5, 'xy') }}", "padding takes a single character"},
        {"{{ 'a'.partition('') }}", "a non-empty string"},
        {"{{ 'a'.split('') }}", "split takes a non-empty separator"},
        {"{{ [1].append(2) }}", "\"append\" is called but not defined"},
    };
    EXPECT_ALL(examples);
    EXPECT_FAILURES(failures, -EINVAL);
}
END_TEST

START_TEST(what_is_added_to_html_is_escaped)
{
    static const struct example examples[] = {
        {"{{ 'a <b> ' | safe + '<c>' }}{{ '<c>' + '<b>' | safe }}{{ '<b>' | safe ~ '<c>' }}",
         "a <b> &lt;c&gt;&lt;c&gt;<b><b><c>"},
        {"{{ '<' | e | e }}{{ '<' | safe | e }}{{ '<' | e | forceescape }}{{ '<' | e + '<' }}",
         "&lt;<&amp;lt;&lt;&lt;"},
        {"{{ '<' | safe | upper + '<' }}{{ ('<b>' | safe)[0] + '<' }}{{ ('a b' | safe).split()[0] + '<' }}{{ "
         "('<' | safe) * 2 + '<' }}",
         "<&lt;<&lt;a&lt;<<&lt;"},
        {"{{ ('{}' | safe).format('<') }}{{ '%s' | safe % '<' }}{{ ('-' | safe).join(['<', 'a']) }}{{ ('a' | "
         "safe).replace('a', '<') }}",
         "&lt;&lt;&lt;-a&lt;"},
        {"{{ 'a' | safe | replace('a', '<') + '<' }}{{ ['<'] | join('-' | safe) }}{{ '<' | safe | tojson + "
         "'<' "
         "}}",
         "<<<\"<\"<"},
        {"{{ '<' | safe is escaped }}{{ '<' is escaped }}{{ ('<' | safe) == '<' }}", "TrueFalseTrue"},
    };
    EXPECT_ALL(examples);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, NULL, tear_down);
    tcase_add_test(tests, formats_in_braces_lay_out_as_in_python);
    tcase_add_test(tests, formats_with_percent_signs_lay_out_as_in_python);
    tcase_add_test(tests, methods_of_strings_do_what_pythons_do);
    tcase_add_test(tests, what_is_added_to_html_is_escaped);
}

int main(void)
{
    return run_tests("jinja_strings", add);
}
