/* SPDX-License-Identifier: MIT */
/* What becomes of each kind of value by each operator, filter and method; and everything that is refused, by
 * its reason. */

#include "tests/unit/text/template/jinja_examples.h"

START_TEST(values_of_every_kind_become_what_jinja_makes_of_them)
{
    static const struct example examples[] = {
        {"{{ pi - 1 }} {{ pi * 2 }} {{ pi / 2 }} {{ 7.5 // 2 }} {{ -7.5 // 2 }} {{ 7.5 % 2 }} {{ -7.5 % 2 }} "
         "{{ pi ** 2 }} {{ 4 ** 0.5 }} {{ 2 ** -1 }}",
         "2.25 6.5 1.625 3.0 -4.0 1.5 0.5 10.5625 2.0 0.5"},
        {"{{ (-1) ** 5 }} {{ (-1) ** 8 }} {{ 0 ** 9 }} {{ 1 ** 1000 }} {{ 2 ** 10 }} {{ 3 ** 0 }} {{ -7 // 2 "
         "}} {{ -7 % 3 }} {{ 7 // -2 }} {{ 7 % -3 }}",
         "-1 1 0 1 1024 1 -4 2 -4 -2"},
        {"{{ 1e16 }} {{ 1e22 }} {{ 1.5e300 * 1e300 }} {{ -1.5e300 * 1e300 }} {{ 1E3 }} {{ 1.0 }} {{ 1e-5 }} "
         "{{ 123456.789 }} {{ 0.1 + 0.2 }} {{ 1e+2 }}",
         "1e+16 1e+22 inf -inf 1000.0 1.0 1e-05 123456.789 0.30000000000000004 100.0"},
        {"{{ -pi }} {{ +pi }} {{ -x }} {{ pi > 3 }} {{ pi < 3 }} {{ 2.5 == 2.5 }} {{ 2 == 2.0 }} {{ 1.5 <= "
         "1.5 }} {{ true + 1 }}",
         "-3.25 3.25 -7 True False True True True 2"},
        {"{{ 'y' if 0.0 else 'n' }}{{ 'y' if pi else 'n' }}{{ 'y' if range else 'n' }}{{ 'y' if {} else 'n' "
         "}}{{ 'y' if '' else 'n' }}{{ 'y' if (1,) else 'n' }}",
         "nyynny"},
        {"{{ none == none }}{{ none_here == none }}{{ range == range }}{{ range == dict }}{{ zz == yy }}{{ "
         "none == zz }}{{ none != 1 }}",
         "TrueTrueTrueFalseTrueFalseTrue"},
        {"{% macro m() %}{% endmacro %}{% macro n() %}{% endmacro %}{{ m == m }}{{ m == n }}{{ 'y' if m else "
         "'n' }}{{ m is callable }}",
         "TrueFalseyTrue"},
        {"{% for i in [1] %}{{ loop == loop }}{{ 'y' if loop else 'n' }}{% endfor %}", "Truey"},
        {"{{ [1, 2] == [1, 2] }}{{ [1, 2] == [1, 3] }}{{ [1] == [1, 2] }}{{ (1, 2) == (1, 2) }}{{ {'a': 1} "
         "== {'a': 1} }}{{ {'a': 1} == {'a': 2} }}{{ {'a': 1} == {'b': 1} }}{{ {'a': 1} == {} }}",
         "TrueFalseFalseTrueTrueFalseFalseFalse"},
        {"{{ [1, 2] < [1, 3] }}{{ [1] < [1, 2] }}{{ [2] < [1, 2] }}{{ [] < [1] }}{{ 'a' < 'b' }}{{ 'a' < "
         "'ab' }}{{ 1 < 2.5 }}{{ 2.5 < 1 }}{{ false < true }}",
         "TrueTrueFalseTrueTrueTrueTrueFalseTrue"},
        {"{{ 'ell' in 'hello' }}{{ '' in 'a' }}{{ 'z' not in 'abc' }}{{ 1 in [1, 2] }}{{ 'b' in map }}{{ 'z' "
         "in map }}{{ 2 in (1, 2) }}{{ 1.0 in [1] }}",
         "TrueTrueTrueTrueTrueFalseTrueTrue"},
        {"{{ zz | length }}{{ map | length }}{{ (1, 2) | length }}{{ 'éa' | length }}", "0222"},
        {"{{ [1, 2] + [3] }}{{ (1,) + (2,) }}{{ [0] * 3 }}{{ 'ab' * 2 }}{{ 2 * 'ab' }}{{ 'a' * 0 }}{{ 'a' * "
         "-1 }}{{ 3 * [1] }}{{ [1] * true }}",
         "[1, 2, 3](1, 2)[0, 0, 0]abababab[1, 1, 1][1]"},
        {"{{ items[1:] }}{{ items[:1] }}{{ items[::-1] }}{{ 'abcdef'[1:5:2] }}{{ 'abc'[::-1] }}{{ items[-1] "
         "}}{{ items[5:] }}{{ items[-2:] }}{{ 'éaß'[1:] }}{{ (1, 2, 3)[1:] }}{{ 'abc'[-2] }}{{ items[none:2] "
         "}}",
         "[1, 2][3][2, 1, 3]bdcba2[][1, 2]aß(2, 3)b[3, 1]"},
        {"{{ items.0 }}{{ items.2 }}{{ map['b'] }}{{ map.a.1 }}{{ items['0'] is defined }}{{ items[9] is "
         "defined }}{{ map[none] is defined }}{{ 'abc'[7] is defined }}",
         "321q'FalseFalseFalseFalse"},
        {"{{ -2.5 | abs }}{{ true | abs }}{{ -3 | abs }}{{ 2 | round }} {{ 2.5 | round }} {{ 3.5 | round }} "
         "{{ 2.345 | round(2) }} {{ 2.1 | round(0, 'ceil') }} {{ 2.9 | round(method='floor') }} {{ 1234 | "
         "round(-2) }} {{ -2.5 | round }}",
         "2.5132 2.0 4.0 2.35 3.0 2.0 1200 -2.0"},
        {"{{ 7 | float }} {{ true | float }} {{ 'x' | float }} {{ 'x' | float(1.5) }} {{ '1e3' | float }} {{ "
         "' 2.5 ' | float }} {{ none | float }} {{ 3.9 | int }} {{ true | int }} {{ '0x1f' | int(0, 16) }} "
         "{{ '-7' | int }} {{ '+7' | int }} {{ '7.9' | int }} {{ none | int }} {{ 'ff' | int(base=16) }} {{ "
         "'12' | int(base=8) }}",
         "7.0 1.0 0.0 1.5 1000.0 2.5 0.0 3 1 31 -7 7 7 0 255 10"},
        {"{{ 'a b' | indent }}|{{ 'a\\nb' | indent(2, true) }}|{{ 'a\\n\\nb' | indent(1, blank=true) }}|{{ "
         "'a\\nb' | indent('>') }}|{{ 'a\\nb' | indent(width=2, first=true) }}",
         "a b|  a\n  b|a\n \n b|a\n>b|  a\n  b"},
        {"{{ zz | default }}|{{ zz | default('a') }}|{{ none | default('a', true) }}|{{ zz | d('q') }}|{{ 0 "
         "| default(1, boolean=true) }}",
         "|a|a|q|1"},
        {"{{ 'a\\tb\\r\\\\' | list }}{{ ['\\'', '\"', 'é', '\\x01'] }}{{ [none, true, 1.5, zz] }}{{ {'a': "
         "none} }}{{ () }}{{ (1,) }}",
         "['a', '\\t', 'b', '\\r', '\\\\'][\"'\", '\"', 'é', '\\x01'][None, True, 1.5, Undefined]{'a': "
         "None}()(1,)"},
        {"{{ '\\b\\f\\n\\r\\t\\\\/\\x01' | tojson }}{{ '😀é' | tojson(ensure_ascii=true) }}{{ 1.5 | tojson "
         "}}{{ true | tojson }}{{ none | tojson }}{{ (1, 2) | tojson }}{{ {'b': 1, 'a': {'d': 1, 'c': 2}} | "
         "tojson(sort_keys=true) }}{{ {'b': 1, 'a': 2} | tojson(indent=1, sort_keys=true) }}",
         "\"\\b\\f\\n\\r\\t\\\\/\\u0001\"\"\\ud83d\\ude00\\u00e9\"1.5truenull[1, 2]{\"a\": {\"c\": 2, \"d\": "
         "1}, \"b\": 1}{\n \"a\": 2,\n \"b\": 1\n}"},
        {"{{ 'a\\\nb' }}{{ '\\q' }}{{ '\\x41\\u00e9\\U0001f600' }}{{ \"it's\" }}{{ 'a' 'b' }}",
         "ab\\qAé😀it'sab"},
        {"{{ map.values() | list }}{{ map.keys() | list }}{{ map.items() | list }}{{ map.get('b', 2) }}{{ "
         "map.get('q', 2) }}",
         "[1, [1, \"q'\"]]['b', 'a'][('b', 1), ('a', [1, \"q'\"])]12"},
        {"{{ dict({'a': 1}, b=2) }}{{ dict() }}{{ range(3) | list }}{{ range(1, 4) | list }}{{ range(5, 0, "
         "-2) | list }}{{ range(0) | list }}{{ range(3, 1) | list }}",
         "{'a': 1, 'b': 2}{}[0, 1, 2][1, 2, 3][5, 3, 1][][]"},
        {"{{ people | map(attribute='name') | list }}{{ people | map(attribute='zz', default='q') | list "
         "}}{{ [[1, 2], [3, 4]] | map(attribute=1) | list }}{{ [{'a': {'b': 5}}] | map(attribute='a.b') | "
         "list }}{{ items | map('string') | join('+') }}{{ people | sum(attribute='age') }}{{ items | "
         "sum(start=10) }}",
         "['Bo', 'al']['q', 'q'][2, 4][5]3+1+2416"},
        {"{{ ['b', 'A', 'c'] | sort }}{{ ['b', 'A', 'c'] | sort(case_sensitive=true) }}{{ items | "
         "sort(reverse=true) }}{{ people | sort(attribute='age') | map(attribute='name') | list }}{{ ['b', "
         "'B', 'a'] | unique | list }}{{ ['b', 'B', 'a'] | unique(case_sensitive=true) | list }}{{ ['b', "
         "'A'] | min }}{{ ['b', 'A'] | max }}{{ people | max(attribute='age') }}{{ people | "
         "unique(attribute='age') | list | length }}{{ people | min(attribute='name') }}{{ 2 | round(0, "
         "'ceil') }}{{ 'FF' | int(base=16) }}{{ 'zz' | int(3, 36) }}{{ '9' | int(4, 8) }}{{ ' a b  ' "
         ".rsplit(none, 1) }}",
         "['A', 'b', 'c']['A', 'b', 'c'][3, 2, 1]['al', 'Bo']['b', 'a']['b', 'B', 'a']Ab{'name': 'Bo', "
         "'age': 3}2{'name': 'al', 'age': 1}2.025512959[' a', 'b']"},
        {"{{ map | dictsort(reverse=true) | map('first') | list }}{{ {'b': 1, 'a': 2} | dictsort(by='value') "
         "}}{{ {'b': 1, 'A': 2} | dictsort }}{{ {'b': 1, 'A': 2} | dictsort(case_sensitive=true) }}",
         "['b', 'a'][('b', 1), ('a', 2)][('A', 2), ('b', 1)][('A', 2), ('b', 1)]"},
        {"{{ 'abc' | first }}{{ 'abc' | last }}{{ [] | first is defined }}{{ 'abc' | reverse }}{{ (1, 2) | "
         "reverse | list }}{{ 'abc' | list }}{{ map | list }}{{ 'cab' | sort }}{{ [1, [2]] | join('-') }}{{ "
         "people | join(',', attribute='name') }}",
         "acFalsecba[2, 1]['a', 'b', 'c']['b', 'a']['a', 'b', 'c']1-[2]Bo,al"},
        {"{{ items | select | list }}{{ [0, 1, none, ''] | select | list }}{{ [0, 1] | reject | list }}{{ "
         "people | selectattr('name') | list | length }}{{ people | rejectattr('age', 'gt', 2) | "
         "map(attribute='name') | list }}{{ items | select('in', [1, 2]) | list }}",
         "[3, 1, 2][1][0]2['al'][1, 2]"},
        {"{% for g in people | groupby('name') %}{{ g[1] | length }}{{ g[0] }} {% endfor %}{% for k, l in "
         "[{'a': 1}, {'a': 2}, {'a': 1}] | groupby('a') %}{{ k }}{{ l | length }} {% endfor %}",
         "1al 1Bo 12 21 "},
        {"{{ '%s %r %d %5.2f|%-5d|%05d|%x|%%' % ('a', 'b', 3, 2.5, 7, 42, 255) }}{{ '%s' % 1 }}{{ '%(a)s' % "
         "{'a': 1} }}{{ '%c' % 'x' }}{{ '%e' % 1234.5 }}{{ '%+d' % 5 }}{{ '%#x' % 255 }}",
         "a 'b' 3  2.50|7    |00042|ff|%11x1.234500e+03+50xff"},
        {"{{ '{} {}'.format(1, 'a') }}{{ '{0}{1}{0}'.format('a', 'b') }}{{ '{a}'.format(a=3) }}{{ "
         "'{:>5}|{:<5}|{:^5}'.format('a', 'b', 'c') }}{{ '{:05d}'.format(42) }}{{ '{:.2f}'.format(2.345) "
         "}}{{ '{!r}'.format('a') }}{{ '{!s:>3}'.format('a') }}{{ '{:,}'.format(1234567) }}{{ "
         "'{:e}'.format(12345.678) }}{{ '{:g}'.format(2.0) }}{{ '{:#x}'.format(255) }}{{ '{:+}'.format(3) "
         "}}{{ '{:%}'.format(0.25) }}{{ '{{}}'.format() }}{{ '{}'.format(2.0) }}",
         "1 aaba3    a|b    |  c  000422.35'a'  a1,234,5671.234568e+0420xff+325.000000%{}2.0"},
        {"{{ ' a  b c '.split(none, 1) }}{{ 'a  b '.split(' ') }}{{ 'aXbXc'.split('X', -1) }}{{ '  a b  "
         "'.split(none, 5) }}{{ ' a b '.rsplit(none, 5) }}{{ 'a\\u3000b'.split() }}",
         "['a', 'b c ']['a', '', 'b', '']['a', 'b', 'c']['a', 'b']['a', 'b']['a', 'b']"},
        {"{{ 'abcabc'.rfind('bc') }}{{ 'abcabc'.rfind('bc', 0, 4) }}{{ 'aaa'.count('a') }}{{ "
         "'aaa'.count('aa') }}{{ 'abc'.replace('b', '') }}{{ 'aaa'.replace('a', 'b', 2) }}{{ 'aaa' | "
         "replace('a', 'b', 2) }}{{ 'abc'.find('') }}{{ 'ab'.rfind('') }}{{ 'a'.startswith('') }}{{ "
         "'abc'.removeprefix('b') }}{{ 'abc'.removesuffix('abcd') }}",
         "4131acbbabba02Trueabcabc"},
        {"{{ 'a' ~ 1 ~ none ~ true ~ 1.5 }}{{ [1] ~ 'a' }}{{ 'x' if yes }}{{ 'x' if not yes }}{{ 1 if 0 else "
         "2 if 0 else 3 }}{{ not none }}{{ yes and 'b' }}{{ none or 'c' }}{{ 0 and 1 }}",
         "a1NoneTrue1.5[1]ax3Truebc0"},
        {"{% set a = [1, 2, 3] %}{% for x in a %}{% set b = x %}{{ loop.changed(x) if false else b }}{% "
         "endfor %}",
         "123"},
        {"{% for i in [1, 2, 3] %}{{ loop.cycle('a', 'b', 'c') }}{{ loop.index }}{{ loop.length }}{{ "
         "loop.last }} {% endfor %}{% for k in map %}{{ k }}{% endfor %}{% for i in (1, 2) %}{{ i }}{% else "
         "%}e{% endfor %}",
         "a13False b23False c33True ba12"},
        {"{{ x is divisibleby(7) }}{{ 'a' is in 'abc' }}{{ x is not divisibleby 2 }}{{ none is none }}{{ pi "
         "is number }}{{ true is number }}{{ [] is iterable }}{{ 'a' is iterable }}{{ 1 is iterable }}{{ {} "
         "is mapping }}{{ {} is sequence }}{{ 'A' is upper }}",
         "TrueTrueTrueTrueTrueTrueTrueTrueFalseTrueTrueTrue"},
        {"{{ 'a<b' | e }}{{ 'it\\'s \"q\" & <b>' | escape }}{{ '  x ' | trim }}{{ 'xxaxx' | trim('x') }}{{ "
         "'a b' | title }}{{ 'hello world foo' | wordcount }}{{ 'abc' | string }}{{ 1 | string | length }}",
         "a&lt;bit&#39;s &#34;q&#34; &amp; &lt;b&gt;xaA B3abc1"},
        {"{% if x == 7 and not (x == 8 or x == 9) %}a{% endif %}{% if x > 5 < 10 %}b{% endif %}{% if 1 < 2 < "
         "3 %}c{% endif %}{% if 1 < 3 < 2 %}d{% endif %}{% if x is number and x is odd %}e{% endif %}",
         "abce"},
        {"{{ {'a': 1, 'b': [1, {'c': none}]} }}{{ {1: 2, none: 3, true: 4} }}{{ ({'a': 1}).a }}{{ {'a b': "
         "1}['a b'] }}{{ [[], {}, ()] }}{{ [1, 2,] }}{{ {'a': 1,} }}{{ (1, 2,) }}",
         "{'a': 1, 'b': [1, {'c': None}]}{1: 4, None: 3}11[[], {}, ()][1, 2]{'a': 1}(1, 2)"},
        {"{{ 1_000 }}{{ 1_0.5 }}{{ 1E2 }}{{ 2.50 }}", "100010.5100.02.5"},
        {"{% set x = 5 %}{% block b %}{{ x }}{% endblock %}{% filter upper | replace('A', 'b') %}a{% "
         "endfilter %}{% set ns = namespace(a=1, b='c') %}{{ ns.a }}{{ ns.b }}{% set ns.a = 5 %}{{ ns.a }}",
         "5b1c5"},
    };
    EXPECT_ALL(examples);
}
END_TEST

START_TEST(what_makes_no_sense_is_refused_by_its_reason)
{
    static const struct example failures[] = {
        {"{{ x y }}", "expected \"}}\" before \"y\""},
        {"{{ 'a' 5 }}", "expected \"}}\" before \"5\""},
        {"{{ x. }}", "expected a name after the point before \"}}\""},
        {"{{ x.% }}", "expected a name after the point before \"%\""},
        {"{{ items[1 }}", "'}' where ']' was expected"},
        {"{{ items[ }}", "'}' where ']' was expected"},
        {"{{ items[] }}", "expected an index before \"}}\""},
        {"{{ items[1:2:3:4] }}", "expected \"]\" before \"4\""},
        {"{{ x is }}", "expected the name of a test before \"}}\""},
        {"{{ x is 5 }}", "expected the name of a test before \"5\""},
        {"{% set x 5 %}", "expected \"%}\" before \"5\""},
        {"{% set x. = 5 %}", "expected a name after the point before \"=\""},
        {"{% macro %}{% endmacro %}", "expected the name of the macro before \"%}\""},
        {"{% macro 5() %}{% endmacro %}", "expected the name of the macro before \"5\""},
        {"{% macro m(5) %}{% endmacro %}", "expected the name of a parameter before \"5\""},
        {"{% macro m(a %}{% endmacro %}", "'}' where ')' was expected"},
        {"{% block %}{% endblock %}", "expected the name of the block before \"%}\""},
        {"{% block 5 %}{% endblock %}", "expected the name of the block before \"5\""},
        {"{% 5 %}", "expected a statement before \"5\""},
        {"{% %}", "expected a statement before \"%}\""},
        {"{% if x y %}{% endif %}", "expected \"%}\" before \"y\""},
        {"{% for x %}{% endfor %}", "expected \"in\" before \"%}\""},
        {"{% for 5 in x %}{% endfor %}", "expected a name before \"5\""},
        {"{% for x in %}{% endfor %}", "expected a value before \"%}\""},
        {"{% if %}{% endif %}", "expected a value before \"%}\""},
        {"{% else %}", "the statement \"else\" is not supported here"},
        {"{% if x %}{% else %}{% else %}{% endif %}", "the statement \"else\" is not supported here"},
        {"{{ (1, 2 }}", "'}' where ')' was expected"},
        {"{{ {1 2} }}", "expected \":\" before \"2\""},
        {"{{ {1: } }}", "expected a value before \"}\""},
        {"{{ m(a=) }}", "expected a value before \")\""},
        {"{{ 1 if }}", "expected a value before \"}}\""},
        {"{{ not }}", "expected a value before \"}}\""},
        {"{{ x | 5 }}", "expected the name of a filter before \"5\""},
        {"{% filter %}{% endfilter %}", "expected the name of a filter before \"%}\""},
        {"{% with x %}{% endwith %}", "expected \"=\" before \"%}\""},
        {"{% with 5 = 1 %}{% endwith %}", "expected \"%}\" before \"5\""},
        {"{{ x | replace(1) }}", "expected a string, not a whole number"},
        {"{{ 'a'.replace('a') }}", "replace takes two strings"},
        {"{{ 'a' | attr(1) }}", "expected a string, not a whole number"},
        {"{{ 1 | round(99) }}", "round takes a precision of -18 to 18"},
        {"{{ 'a' | round }}", "round takes a number, not a string"},
        {"{{ 'a' | abs }}", "abs takes a number, not a string"},
        {"{{ dict(5) }}", "expected a mapping, not a whole number"},
        {"{{ range() }}", "range takes one to three numbers"},
        {"{{ range('a') }}", "expected a whole number, not a string"},
        {"{{ range(1, 2, 0) }}", "range step is 0"},
        {"{{ items | batch }}", "batch takes the size of a group"},
        {"{{ items | groupby }}", "groupby takes the name of a member"},
        {"{{ map.get() }}", "get takes a key"},
        {"{{ items.index() }}", "index and count take a value"},
        {"{% for i in items %}{{ loop.cycle() }}{% endfor %}", "cycle takes values"},
        {"{{ 5 in 'abc' }}", "cannot search a string for a whole number"},
        {"{{ 5 in 5 }}", "cannot search in a whole number"},
        {"{{ 5 | length }}", "a whole number has no length"},
        {"{{ items['a':] }}", "slice bound is a string"},
        {"{{ zz[1:] }}", "cannot slice an undefined value"},
        {"{{ zz[1] }}", "member of an undefined value requested"},
        {"{{ 'a'.startswith(1) }}", "startswith and endswith take a string"},
        {"{{ 'a'.removeprefix(1) }}", "expected a string, not a whole number"},
        {"{{ 'a'.join(5) }}", "a whole number is not iterable"},
        {"{{ 'a'.find(5) }}", "expected a string, not a whole number"},
        {"{{ 'a'.count() }}", "count takes a non-empty string"},
        {"{{ 'a' - 1 }}", "a string and a whole number cannot be used in arithmetic"},
        {"{{ [1] + 'a' }}", "a list and a string cannot be added"},
        {"{{ 'a' ** 2 }}", "a string and a whole number cannot be used in arithmetic"},
        {"{{ 'a' * 'b' }}", "a string and a string cannot be used in arithmetic"},
        {"{{ -'a' }}", "a whole number and a string cannot be used in arithmetic"},
        {"{{ 1 // 0 }}", "division by zero"},
        {"{{ 1.5 / 0 }}", "division by zero"},
        {"{{ 1.5 % 0 }}", "division by zero"},
        {"{{ {} < {} }}", "a mapping and a mapping cannot be compared"},
        {"{{ none < 1 }}", "none and a whole number cannot be compared"},
        {"{{ range | tojson }}", "a function cannot be written as JSON"},
        {"{{ '{!x}'.format(1) }}", "a format supports only the conversions !s and !r"},
        {"{{ '{:d}'.format('a') }}", "the format 'd' does not apply to a string"},
        {"{{ '{:.2}'.format(1) }}", "the format '.' does not apply to a whole number"},
        {"{{ '{:x}'.format(1.5) }}", "the format 'x' does not apply to a number"},
        {"{{ '{'.format(1) }}", "unmatched '{' in a format"},
        {"{{ '{1}'.format(1) }}", "a format refers to value 2 of 1"},
        {"{{ '{a}'.format(1) }}", "a format needs \"a\", which is missing"},
        {"{{ '%d' % none }}", "the format 'd' does not apply to none"},
        {"{{ '%s %s' % 'a' }}", "not enough values for a format"},
        {"{{ '%s' % ('a', 'b') }}", "too many values for a format"},
        {"{{ [[3], 2] | sort }}", "a list and a whole number cannot be compared"},
        {"{{ ['a', 1] | min }}", "a whole number and a string cannot be compared"},
        {"{{ 'a'.nope() }}", "\"nope\" is called but not defined"},
        {"{{ x.y.z }}", "\"z\" requested of \"y\", which is undefined"},
        {"{{ namespace(5) }}", "expected a mapping, not a whole number"},
        {"{{ strftime_now(5) }}", "expected a string, not a whole number"},
        {"{% set q.a = 1 %}", "\"a\" is set in an undefined value, which is not a namespace"},
        {"{{ 5 | join }}", "a whole number is not iterable"},
        {"{{ 5 | sort }}", "a whole number is not iterable"},
        {"{{ 5 | first }}", "a whole number is not iterable"},
        {"{{ 5 | list }}", "a whole number is not iterable"},
        {"{{ 5 | reverse }}", "a whole number is not iterable"},
        {"{{ 'a' | dictsort }}", "a string has no items"},
        {"{{ 5 | sum }}", "a whole number is not iterable"},
        {"{{ ['a'] | sum }}", "a whole number and a string cannot be added"},
        {"{{ 5.5() }}", "a number cannot be called"},
        {"{{ 'a'() }}", "a string cannot be called"},
        {"{{ map() }}", "a mapping cannot be called"},
        {"{{ none() }}", "none cannot be called"},
        {"{{ 5 | int(base=99) }}", "int takes a base of 2 to 36, or 0"},
        {"{{ [1, 2] | map('string') | length }}", "a generator has no length"},
        {"{{ [1, 2] | select | tojson }}", "a generator cannot be written as JSON"},
        {"{{ [1, 2] | select }}", "a generator cannot be printed"},
        {"{{ [[1, 2] | select] }}", "a generator cannot be printed"},
        {"{{ [1, 2] | select | last }}", "a generator has no last item"},
        {"{{ ([1, 2] | select) + [3] }}", "a generator and a list cannot be added"},
        {"{{ ([1, 2] | select) * 2 }}", "a generator and a whole number cannot be used in arithmetic"},
        {"{{ ([1, 2] | select)[:1] }}", "cannot slice a generator"},
        {"{{ [1] | batch(1) | length }}", "a generator has no length"},
        {"{{ [1] | unique | length }}", "a generator has no length"},
    };
    EXPECT_FAILURES(failures, -EINVAL);
}
END_TEST

/* Checked against jinja2 3.1.6. */
START_TEST(what_select_and_map_give_can_be_walked_through_once)
{
    static const struct example examples[] = {
        {"{% set g = [1, 2] | select %}{% for x in g %}{{ x }}{% endfor %}|{% for x in g %}{{ x }}{% endfor "
         "%}",
         "12|"},
        {"{% if [] | select %}yes{% endif %}", "yes"},
        {"{{ ([1, 2] | map('string'))[0] is defined }}", "False"},
        {"{{ ([1] | select) is sequence }}{{ ([1] | select) is iterable }}{{ ([1] | select) is mapping }}",
         "FalseTrueFalse"},
        {"{{ [1, 2] | select | first }}{{ [2, 1] | select | sort }}{{ [2, 1] | select | max }}", "1[1, 2]2"},
        {"{{ 2 in ([1, 2, 3] | select) }}{% set g = [1, 2] | select %}{{ g == g }}{{ g == [1, 2] }}",
         "TrueTrueFalse"},
        {"{{ [3, 1, 3] | unique | list }}{{ [1, 2] | map('string') | reverse | join(',') }}", "[3, 1]2,1"},
        {"{% for a in [1, 2] | select %}{{ loop.length }}{{ loop.last }}{% endfor %}", "2False2True"},
        {"{{ [1, 2, 3] | select('odd') | map('string') | join }}", "13"},
        {"{% set a, b = [1, 2] | select %}{{ a }}{{ b }}{{ [1, 2] | select | list | length }}", "122"},
    };
    EXPECT_ALL(examples);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, NULL, tear_down);
    tcase_add_test(tests, values_of_every_kind_become_what_jinja_makes_of_them);
    tcase_add_test(tests, what_makes_no_sense_is_refused_by_its_reason);
    tcase_add_test(tests, what_select_and_map_give_can_be_walked_through_once);
}

int main(void)
{
    return run_tests("jinja_values", add);
}
