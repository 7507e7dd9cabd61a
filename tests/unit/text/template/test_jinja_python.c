/* SPDX-License-Identifier: MIT */
/* Texts, numbers, lists and statements at their edges, beside what jinja2 itself makes of them. */

#include "tests/unit/text/template/jinja_examples.h"

START_TEST(tags_operators_and_statements_are_read_as_jinja2_reads_them)
{
    static const struct example examples[] = {
        {"{{ x -}}  \n b{{ x }}\nc", "7b7\nc"},
        {"{%- if yes %} a{% endif -%} \n b", " ab"},
        {"   {% if yes %}b{% endif %}", "b"},
        {"a\t{% if yes %}b{% endif %}\t\nc", "a\tb\t\nc"},
        {"\v\f{%- if yes -%}\v\fb{% endif %}", "b"},
        {"a\n\n{% if yes %}\n\nb{% endif %}\n\nc", "a\n\n\nb\nc"},
        {"a{# note +#}\nb{# note -#} \n c", "a\nbc"},
        {" {#+ note #} b\n {# note #} c", "  b\n c"},
        {"{#-#} a{##}b", " ab"},
        {"{% raw %} {% endraw -%}  x", " x"},
        {"a  {%- raw %} b {% endraw %}", "a b "},
        {" {%+ raw %} b {%+ endraw +%}\nc", "  b \nc"},
        {"{% raw %}{% endrawx %}{% end %}{{{% endraw %}", "{% endrawx %}{% end %}{{"},
        {"{%raw%}{%x%}{%endraw%}y", "{%x%}y"},
        {"a\rb\r\nc\r", "a\nb\nc"},
        {"{{ 'a\\\\b\\'\\\"\\a\\b\\f\\v\\n\\r\\t' }}", "a\\b'\"\007\010\f\v\n\r\t"},
        {"{ {x} } {a} }} %} #} {", "{ {x} } {a} }} %} #} {"},
        {"{{ 2.5e-1 }} {{ 1e5 }} {{ 0 }} {{ 1_000_000 }} {{ 12.5E+1 }} {{ 1e-7 }}",
         "0.25 100000.0 0 1000000 125.0 1e-07"},
        {"{{ \"a'b\" }}{{ 'a\"b' }}{{ '' }}{{ \"\" 'a' \"\" }}", "a'ba\"ba"},
        {"{{ é_1 }}{% set é_1 = 5 %}{{ é_1 }}{% set _a9Z = 6 %}{{ _a9Z }}", "56"},
        {"{{ x+1 }}{{ x-1 }}{{ x*2 }}{{ x//2 }}{{ x/2 }}{{ x%4 }}{{ x**2 }}{{ x~2 }}{{ x==7 }}{{ x!=7 }}{{ "
         "x<=7 }}{{ x>=8 }}",
         "861433.534972TrueFalseTrueFalse"},
        {"{{ [1,2,3][0:2] }}{{ {'a':1}['a'] }}{{ (1)+(2) }}{{ {'a':{'b':[1]}}.a.b[0] }}", "[1, 2]131"},
        {"{{ 'abc' [1] }}{{ 'abc' | upper | lower | length }}{{ -x | abs }}{{ (-x) | abs }}", "b377"},
        {"{{ not x == 7 }} {{ not x in items }} {{ x not in items }} {{ not not yes }} {{ x is not string }}",
         "False True True True True"},
        {"{{ 1 if yes else 2 if yes else 3 }}{{ (1 if no else 2) }}{{ 1 if no else 2 if no else 3 }}{{ 'a' "
         "if yes and x or no }}",
         "123a"},
        {"{{ 1 == 1 == 1 }} {{ 1 < 2 > 1 }} {{ 1 < 2 == true }} {{ 3 > 2 > 1 > 0 }} {{ 3 > 2 > 2 }} {{ 1 in "
         "[1] == true }}",
         "True True False True False False"},
        {"{{ x is divisibleby 7 and yes }}{{ x is eq 7 or no }}{{ x is in [7] }}{{ x is in items or yes }}{{ "
         "x is eq x if yes else 2 }}{{ 'a' is in 'abc' }}{{ x is eq(7) }}{{ {} is eq {} }}{{ 2.5 is eq 2.5 "
         "}}",
         "TrueTrueTrueTrueTrueTrueTrueTrueTrue"},
        {"{{ items[-3] }}{{ items[-4] }}{{ items[3] }}{{ items[2] }}{{ 'abc'[3] }}{{ 'abc'[-3] }}{{ "
         "'abc'[-4] }}{{ 'héé'[2] }}{{ 'héé'[-2] }}",
         "32aéé"},
        {"{{ 'abcde'[1:-1] }}{{ 'abcde'[-9:2] }}{{ 'abcde'[2:99] }}{{ 'abcde'[3:1] }}{{ 'abcde'[::2] }}{{ "
         "'abcde'[1::2] }}{{ 'abcde'[::-2] }}{{ 'abcde'[3:0:-1] }}{{ 'abcde'[-2:-9:-1] }}{{ 'abcde'[0:0] }}",
         "bcdabcdeacebdecadcbdcba"},
        {"{{ items[0:3] }}{{ items[0:2:1] }}{{ items[2:0:-1] }}{{ items[-1:] }}{{ items[:-1] }}{{ items[1:2] "
         "}}{{ items[4:] }}{{ items[:-9] }}{{ items[::3] }}{{ items[::-3] }}{{ (1,2,3)[::2] }}",
         "[3, 1, 2][3, 1][2, 1][2][3, 1][1][][][3][2](1, 3)"},
        {"{{ 9223372036854775807 }} {{ -9223372036854775807 - 1 }} {{ 4611686018427387904 * 2 - 1 if no else "
         "1 }} {{ 2 ** 62 }} {{ (-2) ** 63 }} {{ 3 ** 39 }} {{ (-1) ** 3 }} {{ (-1) ** 2 }} {{ (-1) ** 1 }} "
         "{{ (-1) ** 0 }} {{ 0 ** 0 }} {{ 0 ** 1 }} {{ 1 ** 2 }}",
         "9223372036854775807 -9223372036854775808 1 4611686018427387904 -9223372036854775808 "
         "4052555153018976267 -1 1 -1 1 1 0 1"},
        {"{{ 7 // 7 }} {{ -7 // 7 }} {{ -8 // 7 }} {{ 8 // -7 }} {{ -8 // -7 }} {{ -8 % 7 }} {{ 8 % -7 }} {{ "
         "-7 % 7 }} {{ 7.0 // 2 }} {{ 7 // 2.0 }} {{ -7.5 % -2 }}",
         "1 -1 -2 -2 1 6 -6 0 3.0 3.0 -1.5"},
        {"{{ 1e15 }} {{ 1e16 }} {{ 123456789012345680.0 }} {{ 0.0001 }} {{ 0.00001 }} {{ 1e-4 }} {{ "
         "12345678.9 }} {{ 1e100 }} {{ 5e-324 }} {{ 1.7976931348623157e308 }} {{ 0.1 }} {{ 100.0 }} {{ "
         "1.5e15 }} {{ 9999999999999998.0 }} {{ -1e16 }} {{ -1e15 }}",
         "1000000000000000.0 1e+16 1.2345678901234568e+17 0.0001 1e-05 0.0001 12345678.9 1e+100 5e-324 "
         "1.7976931348623157e+308 0.1 100.0 1500000000000000.0 9999999999999998.0 -1e+16 "
         "-1000000000000000.0"},
        {"{{ [1, 2] == (1, 2) }}{{ (1, 2) == (1, 3) }}{{ (1, 2) < (1, 3) }}{{ [1, 'a'] == [1, 'a'] }}{{ "
         "{'a': [1]} == {'a': [1]} }}{{ {'a': 1, 'b': 2} == {'b': 2, 'a': 1} }}{{ 'a' == 'a' }}{{ 'a' == 'b' "
         "}}{{ 'a' == 'ab' }}{{ '' == '' }}",
         "FalseFalseTrueTrueTrueTrueTrueFalseFalseTrue"},
        {"{{ 'b' > 'a' }}{{ 'a' > 'b' }}{{ 'ab' > 'a' }}{{ 'a' >= 'a' }}{{ 'a' <= 'a' }}{{ '' < 'a' }}{{ 'é' "
         "> 'z' }}{{ 'Z' < 'a' }}{{ 2 >= 2 }}{{ 2 > 2 }}{{ 2.0 >= 2 }}{{ 2.0 > 2 }}{{ 2.5 <= 2 }}{{ 1 <= 1.5 "
         "}}{{ [2] > [1, 9] }}{{ [1] >= [1] }}{{ [1, 2] > [1] }}{{ [] < [] }}",
         "TrueFalseTrueTrueTrueTrueTrueTrueTrueFalseTrueFalseFalseTrueTrueTrueTrueFalse"},
        {"{{ 'c' in 'abc' }}{{ 'abc' in 'abc' }}{{ 'abcd' in 'abc' }}{{ '' in '' }}{{ 'a' in '' }}{{ 3 in "
         "items }}{{ 2 in items }}{{ 5 in items }}{{ [1] in [[1]] }}{{ 'a' in map }}{{ 'a' in zz }}{{ none "
         "in [none] }}",
         "TrueTrueFalseTrueFalseTrueTrueFalseTrueTrueFalseTrue"},
        {"{% for i in [5, 6, 7] %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ "
         "loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.zz "
         "}};{% endfor %}",
         "1032TrueFalse36;2121FalseFalse357;3210FalseTrue36;"},
        {"{% for i in [5] %}{{ loop.first }}{{ loop.last }}{{ loop.previtem is defined }}{{ loop.nextitem is "
         "defined }}{% endfor %}",
         "TrueTrueFalseFalse"},
        {"{% for i in items if i > 9 %}x{% else %}none{% endfor %}{% for i in items if i > 2 %}{{ i }}{% "
         "else %}none{% endfor %}",
         "none3"},
        {"{% for i in items if loop is defined %}{{ i }}{% endfor %}|{% set i = 9 %}{% for i in items %}{% "
         "endfor %}{{ i }}",
         "|9"},
        {"{% for i in items %}{% for j in items %}{% if j == 1 %}{% break %}{% endif %}{{ j }}{% endfor %}{{ "
         "i }}{% endfor %}",
         "333132"},
        {"{% for i in items %}{% for j in items %}{% if j == 1 %}{% continue %}{% endif %}{{ j }}{% endfor "
         "%}{% if i == 1 %}{% continue %}{% endif %}{{ i }};{% endfor %}",
         "323;32322;"},
        {"{% for i in items %}{% with %}{% if i == 1 %}{% break %}{% endif %}{% endwith %}{{ i }}{% endfor "
         "%}",
         "3"},
        {"{% for a, b in [(1, 2), [3, 4]] %}{{ a }}{{ b }}{% endfor %}{% for (a, b) in [(1, 2)] %}{{ a }}{{ "
         "b }}{% endfor %}{% for a, b in ['xy'] %}{{ b }}{{ a }}{% endfor %}",
         "123412yx"},
        {"{% for i in 'abc' %}{{ i }}{{ loop.last }}{% endfor %}{% for k in map %}{{ k }}{% endfor %}{% for "
         "k in zz %}{{ k }}{% else %}nothing{% endfor %}",
         "aFalsebFalsecTruebanothing"},
        {"{% set a = 1, %}{{ a }}{% set (a, b) = (1, 2) %}{{ a }}{{ b }}{% set a, b = b, a %}{{ a }}{{ b }}",
         "(1,)1221"},
        {"{% set t %}a{% set u %}b{% endset %}{{ u }}{% endset %}{{ t }}", "ab"},
        {"{% if no %}a{% elif no %}b{% elif yes %}c{% else %}d{% endif %}{% if no %}a{% elif no %}b{% else "
         "%}d{% endif %}{% if no %}a{% endif %}",
         "cd"},
        {"{% macro m(a, b=a, c=2) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }} {{ m(1, 2) }} {{ m(1, c=5) "
         "}} {{ m(c=5, a=3) }} {{ m() }}",
         "112 122 115 335 2"},
        {"{% macro m(a) %}{{ a is defined }}{% endmacro %}{{ m() }}{{ m(none) }}{{ m(a=1) }}",
         "FalseTrueTrue"},
        {"{% macro m(x) %}{{ x }}{{ name }}{% endmacro %}{{ m(1) }}{{ x }}", "1Ada7"},
        {"{% macro w(t) %}<{{ t }}>{{ caller('a', 'b') }}</{{ t }}>{% endmacro %}{% call(p, q) w('div') %}{{ "
         "p }}{{ q }}{{ x }}{% endcall %}",
         "<div>ab7</div>"},
        {"{% with a = 1 %}{% with b = 2 %}{{ a }}{{ b }}{% endwith %}{{ b is defined }}{% endwith %}{% with "
         "%}{{ x }}{% endwith %}",
         "12False7"},
        {"{% set ns = namespace(a=1) %}{% set ns.b = ns.a + 1 %}{{ ns.a }}{{ ns.b }}{{ ns.c is defined }}{% "
         "set ns.a = 'q' %}{{ ns.a }}",
         "12Falseq"},
        {"{{ dict(a=1) }}{{ dict({'a': 1}) }}{{ dict({'a': 1, 'c': 3}, a=2) }}{{ {'a': 1, 'a': 2} }}",
         "{'a': 1}{'a': 1}{'a': 2, 'c': 3}{'a': 2}"},
        {"{{ range(0) | list }}{{ range(1) | list }}{{ range(2, 2) | list }}{{ range(2, 3) | list }}{{ "
         "range(3, 2, -1) | list }}{{ range(0, 7, 3) | list }}{{ range(7, 0, -3) | list }}{{ range(-2, 1) | "
         "list }}",
         "[][0][][2][3][0, 3, 6][7, 4, 1][-2, -1, 0]"},
    };
    EXPECT_ALL(examples);
}
END_TEST

START_TEST(filters_methods_and_formats_give_what_pythons_give)
{
    static const struct example examples[] = {
        {"[{{ ' a ' | trim }}][{{ 'xyax' | trim('yx') }}][{{ '\t\n a\v\f\r' | trim }}][{{ 'éaé'.strip('é') "
         "}}][{{ '\\x1ca\\x1f'.strip() }}][{{ '\\u00a0a\\u2028\\u2029\\u3000\\x85'.strip() }}][{{ "
         "'éa'.strip('è') }}][{{ '\\x7fa\\x7f'.strip('\\x7f') }}][{{ '@a`'.strip('@`') }}][{{ '   '.strip() "
         "}}]",
         "[a][a][a][a][a][a][éa][a][a][]"},
        {"[{{ ' a '.lstrip() }}][{{ ' a '.rstrip() }}][{{ 'aaa'.strip('a') }}][{{ ''.strip() }}][{{ "
         "'abcba'.lstrip('ab') }}][{{ 'abcba'.rstrip('ab') }}][{{ 'ab' | trim(none) }}]",
         "[a ][ a][][][cba][abc][ab]"},
        {"{{ 'hello wORLD-foo (bar) [baz] {qux} <q>' | title }}|{{ \"they're bill's\" | title }}|{{ "
         "\"they're a1b\" .title() }}|{{ 'ÉCOLE' | capitalize }}|{{ 'éa' | capitalize }}|{{ '1ab' .title() "
         "}}",
         "Hello World-Foo (Bar) [Baz] {Qux} <Q>|They're Bill's|They'Re A1B|École|Éa|1Ab"},
        {"{{ 'aé1Z' | upper }}{{ 'aÉ1Z' | lower }}{{ 'aé1Z'.upper() }}{{ 5 | upper }}{{ none | lower }}{{ "
         "[1, 'A'] | lower }}",
         "AÉ1Zaé1zAÉ1Z5none[1, 'a']"},
        {"{{ 'aaa' | replace('a', 'b', 1) }}{{ 'aaa' | replace('aa', 'b') }}{{ 'abc' | replace('c', '') }}{{ "
         "'abc'.replace('abc', 'x') }}{{ 'abc'.replace('z', 'x') }}{{ 'aXbX'.replace('X', 'YY', 1) }}{{ "
         "'aaa'.replace('a', 'b', 0) }}{{ 'ab'.replace('', '-', 1) }}{{ 'ab'.replace('', '-', 3) }}{{ "
         "'ab'.replace('', '-', 0) }}{{ ''.replace('', 'x') }}{{ 1221 | replace('2', 'z') }}",
         "baabaabxabcaYYbXaaa-ab-a-b-abx1zz1"},
        {"{{ \"&<>'\\\"a\" | e }}{{ 5 | e }}{{ ('<' | e) | e }}{{ '<' | forceescape }}{{ 'é' | e }}",
         "&amp;&lt;&gt;&#39;&#34;a5&lt;&lt;é"},
        {"{{ '%s|%s' | format('a', 1) }}{{ '%(a)s %(b)s' | format(a=1, b='x') }}{{ '%%' | format }}",
         "a|11 x%"},
        {"{{ 'ab' | center(5) }}|{{ 'ab' | center(2) }}|{{ 'ab' | center(1) }}|{{ 'a' | center(4) }}|{{ "
         "'abc' | center(8) }}|{{ 'ab' | center | length }}|{{ 'ab'.center(5) }}|{{ 'a'.center(4, '-') }}|{{ "
         "'abc'.center(4) }}|{{ 'éa'.center(5, 'ß') }}",
         "  ab |ab|ab| a  |  abc   |80|  ab |-a--|abc |ßßéaß"},
        {"{{ 'ab'.ljust(4, '.') }}|{{ 'ab'.ljust(2) }}|{{ 'ab'.ljust(1) }}|{{ 'ab'.rjust(4) }}|{{ "
         "'ab'.rjust(3, 'é') }}|{{ 'ab'.rjust(-5) }}",
         "ab..|ab|ab|  ab|éab|ab"},
        {"{{ '42'.zfill(4) }}{{ '+42'.zfill(5) }}{{ '-42'.zfill(3) }}{{ '-'.zfill(3) }}{{ ''.zfill(2) }}{{ "
         "'a'.zfill(1) }}{{ '42'.zfill(0) }}{{ '-4'.zfill(1) }}{{ '-é'.zfill(4) }}",
         "0042+0042-42-0000a42-4-00é"},
        {"{{ 'a b_c d1 2' | wordcount }}{{ '' | wordcount }}{{ ' -- ' | wordcount }}{{ 'a-b' | wordcount "
         "}}{{ 'aéb' | wordcount }}{{ 'Z9@z/A:' | wordcount }}{{ 'a[b`c{d' | wordcount }}",
         "4002134"},
        {"{{ 'a\nb' | indent }}|{{ 'a\nb' | indent(0) }}|{{ 'a\nb\n' | indent(1) }}|{{ '\na' | indent(2) "
         "}}|{{ '\n\na' | indent(1, true, true) }}|{{ 'a\n\nb' | indent(1, false, true) }}|{{ 'a\nb' | "
         "indent('--') }}|{{ '' | indent(3) }}",
         "a\n    b|a\nb|a\n b\n|\n  a| \n \n a|a\n \n b|a\n--b|"},
        {"{{ 'a' | tojson }}{{ '\"\\\\/' | tojson }}{{ '\\x00\\x1f\\x7f' | tojson }}{{ "
         "'\\u00e9\\uffff\\U00010000' | tojson(ensure_ascii=true) }}{{ '\\u007f\\u0080' | "
         "tojson(ensure_ascii=true) }}{{ [] | tojson(indent=2) }}{{ {} | tojson(indent=2) }}{{ [[]] | "
         "tojson(indent=1) }}{{ 'é' | tojson(true) }}",
         "\"a\"\"\\\"\\\\/\"\"\\u0000\\u001f\177\"\"\\u00e9\\uffff\\ud800\\udc00\"\"\\u007f\\u0080\"[]{}[\n "
         "[]\n]\"\\u00e9\""},
        {"{{ [1, {'a': [2, 3]}, []] | tojson(indent=3) }}{{ [1, 2] | tojson(indent=0) }}{{ {'b': 1, 'a': 2, "
         "'ab': 3, 'a b': 4} | tojson(sort_keys=true) }}{{ {'a': {'c': 1, 'b': 2}} | tojson(sort_keys=true, "
         "separators=(', ', '=')) }}{{ 1e16 | tojson }}{{ -0.0 | tojson }}{{ {1: 2} | tojson }}{{ {1.5: 2} | "
         "tojson }}{{ [true, false, none, 'a', 1, 1.5] | tojson }}",
         "[\n   1,\n   {\n      \"a\": [\n         2,\n         3\n      ]\n   },\n   "
         "[]\n][\n1,\n2\n]{\"a\": 2, \"a b\": 4, \"ab\": 3, \"b\": 1}{\"a\"={\"b\"=2, "
         "\"c\"=1}}1e+16-0.0{\"1\": 2}{\"1.5\": 2}[true, false, null, \"a\", 1, 1.5]"},
        {"{{ [{'a': 1}] | tojson(indent=20) }}{{ [[[1]]] | tojson(indent=17) }}{{ {'a': 1} | tojson(false, "
         "1, (',', ':'), true) }}",
         "[\n                    {\n                                        \"a\": 1\n                    "
         "}\n][\n                 [\n                                  [\n                                   "
         "                1\n                                  ]\n                 ]\n]{\n \"a\":1\n}"},
        {"{{ '' | default('a') }}{{ '' | default('a', true) }}{{ zz | default(5) }}{{ false | default('a', "
         "boolean=true) }}{{ 'b' | default('a', true) }}{{ none | d('q') }}{{ zz | d(default_value='z') }}",
         "a5abNonez"},
        {"{{ '12' | int }}{{ ' 12 ' | int }}{{ '12a' | int }}{{ '-5' | int }}{{ '' | int }}{{ '' | int(7) "
         "}}{{ '0x1A' | int(0, 16) }}{{ 'z' | int(0, 36) }}{{ '12' | int(0, 3) }}{{ '2' | int(9, 2) }}{{ "
         "3.99 | int }}{{ -3.99 | int }}{{ '3.99' | int }}{{ '1e3' | int }}{{ true | int }}{{ [] | int(4) }}",
         "12120-5072635523-33100014"},
        {"{{ '  ' | int(7) }} {{ ' ' | int(7, 16) }} {{ '  ' | float(1.5) }}", "7 7 1.5"},
        {"{{ '1.5' | float }}{{ '1' | float }}{{ 'a' | float }}{{ 3 | float }}{{ true | float }}{{ ' 1.5\n' "
         "| float }}{{ '' | float(1.5) }}{{ '-2e3' | float }}",
         "1.51.00.03.01.01.51.5-2000.0"},
        {"{{ -5 | abs }}{{ (-5) | abs }}{{ (-1.5) | abs }}{{ 0 | abs }}{{ false | abs }}{{ (0.0 - 0.5) | abs "
         "}}",
         "551.5000.5"},
        {"{{ 2.5 | round }} {{ 3.5 | round }} {{ -2.5 | round }} {{ 2.567 | round(2) }} {{ 2.567 | round(1) "
         "}} {{ 2.5 | round(0, 'floor') }} {{ 2.1 | round(0, 'ceil') }} {{ 2.121 | round(2, 'ceil') }} {{ "
         "2.129 | round(2, 'floor') }} {{ 15 | round(-1) }} {{ 1250 | round(-2) }} {{ 25 | round(-1) }} {{ 7 "
         "| round }} {{ 7 | round(2) }} {{ 7 | round(0, 'ceil') }}",
         "2.0 4.0 -2.0 2.57 2.6 2.0 3.0 2.13 2.12 20 1200 20 7 7 7.0"},
        {"{{ 'abc' | first }}{{ [1] | last }}{{ [] | last is defined }}{{ map | first }}{{ map | last }}{{ "
         "'é' | first }}",
         "a1Falsebaé"},
        {"{{ ['a', 1, none] | join }}{{ ['a', 'b'] | join(', ') }}{{ [] | join('-') }}{{ 'abc' | join('.') "
         "}}{{ people | join(';', 'name') }}{{ [[1, 2], [3, 4]] | join('-', 1) }}{{ map | join('+') }}{{ "
         "['a'] | join('x') }}",
         "a1Nonea, ba.b.cBo;al2-4b+aa"},
        {"{{ 'abc' | reverse }}{{ [1, 2, 3] | reverse | list }}{{ [] | reverse | list }}{{ 'éa' | reverse }}",
         "cba[3, 2, 1][]aé"},
        {"{{ [0, 1, 2] | select | list }}{{ [1, 2, 3, 4] | select('even') | list }}{{ [1, 2, 3, 4] | "
         "select('divisibleby', 3) | list }}{{ [1, 2] | reject('even') | list }}{{ people | "
         "selectattr('name', 'eq', 'Bo') | list | length }}{{ people | rejectattr('name', 'eq', 'Bo') | "
         "map(attribute='name') | list }}{{ [{'a': {'b': 1}}, {'a': {'b': 0}}] | selectattr('a.b') | list | "
         "length }}{{ [] | select | list }}{{ '' | map('upper') | list }}{{ zz | select | list }}{{ people | "
         "selectattr('zz', 'undefined') | list | length }}",
         "[1, 2][2, 4][3][1]1['al']1[][][]2"},
        {"{{ ['a', 'b'] | map('upper') | list }}{{ ['a,b', 'c'] | map('replace', 'a', 'x') | list }}{{ "
         "people | map(attribute='zz', default=3) | list }}{{ people | map(attribute='age', default=3) | "
         "list }}{{ [[3, 1], [2]] | map('sort') | list }}{{ [[[3, 1]]] | map('map', 'sort') | map('list') | "
         "list }}{{ ['a'] | map('default', 'q') | list }}",
         "['A', 'B']['x,b', 'c'][3, 3][3, 1][[1, 3], [2]][[[1, 3]]]['a']"},
        {"{{ [3, 1, 2] | sort }}{{ [3, 1, 2] | sort(true) }}{{ ['b', 'A', 'a', 'B'] | sort }}{{ ['b', 'A', "
         "'a', 'B'] | sort(case_sensitive=true) }}{{ ['b', 'A', 'a', 'B'] | sort(false, true) }}{{ people | "
         "sort(false, false, 'age') | map(attribute='name') | list }}{{ [(1, 'b'), (0, 'c'), (1, 'a')] | "
         "sort(attribute=0) }}{{ [5, 4, 3, 2, 1, 0, 9, 8] | sort }}{{ [] | sort }}{{ [1] | sort }}{{ [(1, "
         "'b'), (0, 'c'), (1, 'a')] | sort(reverse=true, attribute=0) }}",
         "[1, 2, 3][3, 2, 1]['A', 'a', 'b', 'B']['A', 'B', 'a', 'b']['A', 'B', 'a', 'b']['al', 'Bo'][(0, "
         "'c'), (1, 'b'), (1, 'a')][0, 1, 2, 3, 4, 5, 8, 9][][1][(1, 'b'), (1, 'a'), (0, 'c')]"},
        {"{{ {'b': 1, 'A': 3, 'c': 2} | dictsort }}{{ {'b': 1, 'A': 3, 'c': 2} | dictsort(true) }}{{ {'b': "
         "1, 'A': 3, 'c': 2} | dictsort(by='value') }}{{ {'b': 1, 'A': 3, 'c': 2} | dictsort(false, 'key', "
         "true) }}{{ {'b': 1, 'A': 3, 'c': 2} | dictsort(false, 'value', true) }}",
         "[('A', 3), ('b', 1), ('c', 2)][('A', 3), ('b', 1), ('c', 2)][('b', 1), ('c', 2), ('A', 3)][('c', "
         "2), ('b', 1), ('A', 3)][('A', 3), ('c', 2), ('b', 1)]"},
        {"{{ [3, 1, 2] | max }}{{ [3, 1, 2] | min }}{{ ['b', 'A'] | max }}{{ ['b', 'A', 'B'] | min(true) "
         "}}{{ ['b', 'B'] | max }}{{ ['b', 'B'] | min }}{{ ['b', 'B'] | max(case_sensitive=true) }}{{ people "
         "| max(attribute='age') | length }}{{ people | min(false, 'age') }}{{ [1, 1.0] | max }}{{ [2, 2.0] "
         "| min }}{{ [] | max is defined }}",
         "31bAbbb2{'name': 'al', 'age': 1}12False"},
        {"{{ [1, 2.5] | sum }}{{ [] | sum }}{{ people | sum('age') }}{{ people | sum('age', 10) }}{{ [1, 2] "
         "| sum(start=5) }}{{ [[1], [2]] | sum(start=[]) }}",
         "3.504148[1, 2]"},
        {"{{ [1, 1, 2, 1] | unique | list }}{{ ['a', 'A', 'b'] | unique | list }}{{ ['a', 'A'] | "
         "unique(true) | list }}{{ people | unique(false, 'age') | list | length }}{{ [1, 1.0, true] | "
         "unique | list }}",
         "[1, 2]['a', 'b']['a', 'A']2[1]"},
        {"{{ [1, 2, 3, 4, 5] | batch(2) | list }}{{ [1, 2, 3, 4] | batch(2) | list }}{{ [1] | batch(3, 'x') "
         "| list }}{{ [1, 2, 3] | batch(3, 'x') | list }}{{ [] | batch(2, 'x') | list }}{{ [1, 2] | batch(1) "
         "| list }}",
         "[[1, 2], [3, 4], [5]][[1, 2], [3, 4]][[1, 'x', 'x']][[1, 2, 3]][][[1], [2]]"},
        {"{% for k, v in [{'a': 2}, {'a': 1}, {'a': 2}] | groupby('a') %}{{ k }}:{{ v | length }};{% endfor "
         "%}{% for g in people | groupby('age') %}{{ g[0] }}{{ g[1][0].name }}{% endfor %}{{ [] | "
         "groupby('a') | list }}{% for k, v in [{'a': {'b': 2}}, {'a': {'b': 1}}] | groupby('a.b') %}{{ k "
         "}}{% endfor %}",
         "1:1;2:2;1al3Bo[]12"},
        {"{{ map | items | list }}{{ zz | items | list }}{{ map | length }}{{ 'éß' | count }}{{ (1, 2) | "
         "length }}",
         "[('b', 1), ('a', [1, \"q'\"])][]222"},
        {"{{ 'a,b,,c'.split(',') }}{{ ''.split(',') }}{{ ''.split() }}{{ '  '.split() }}{{ 'a'.split() }}{{ "
         "'a b c'.split(' ', 1) }}{{ 'a b c'.split(none, 1) }}{{ '  a  b  '.split(none, 1) }}{{ '  a  b  "
         "'.split(none, 0) }}{{ 'a,b'.split(',', 0) }}{{ 'a--b--c'.split('--') }}{{ 'abc'.split('abc') }}{{ "
         "'a,b,c'.split(sep=',', maxsplit=1) }}{{ 'a\\u3000b\\u2003c'.split() }}{{ 'a b'.split(none, 2) }}",
         "['a', 'b', '', 'c'][''][][]['a']['a', 'b c']['a', 'b c']['a', 'b  ']['a  b  ']['a,b']['a', 'b', "
         "'c']['', '']['a', 'b,c']['a', 'b', 'c']['a', 'b']"},
        {"{{ 'a,b,,c'.rsplit(',', 2) }}{{ ''.rsplit(',', 1) }}{{ ''.rsplit(none, 1) }}{{ '  '.rsplit(none, "
         "1) }}{{ 'a'.rsplit(none, 1) }}{{ '  a  b  '.rsplit(none, 0) }}{{ '  a  b  '.rsplit(none, 1) }}{{ ' "
         " a  b  '.rsplit(none, 2) }}{{ 'a--b--c'.rsplit('--', 1) }}{{ 'abc'.rsplit('abc', 1) }}{{ "
         "'a,b,c'.rsplit(',', 0) }}{{ 'a,b,c'.rsplit(',', 9) }}{{ 'aaa'.rsplit('aa', 1) }}{{ "
         "'a\\u3000b'.rsplit(none, 1) }}{{ ',a'.rsplit(',', 1) }}{{ 'a,'.rsplit(',', 5) }}",
         "['a,b', '', 'c'][''][][]['a']['  a  b']['  a', 'b']['a', 'b']['a--b', 'c']['', '']['a,b,c']['a', "
         "'b', 'c']['a', '']['a', 'b']['', 'a']['a', '']"},
        {"{{ 'a-b-c'.partition('-') }}{{ 'abc'.partition('-') }}{{ 'a-b-c'.rpartition('-') }}{{ "
         "'abc'.rpartition('-') }}{{ '--a'.partition('--') }}{{ 'a--'.rpartition('--') }}{{ "
         "''.partition('x') }}{{ 'aaa'.rpartition('aa') }}",
         "('a', '-', 'b-c')('abc', '', '')('a-b', '-', 'c')('', '', 'abc')('', '--', 'a')('a', '--', '')('', "
         "'', '')('a', 'aa', '')"},
        {"{{ 'a\nb'.splitlines() }}{{ 'a\r\nb\rc'.splitlines() }}{{ '\n'.splitlines() }}{{ "
         "'a\n\nb'.splitlines(true) }}{{ "
         "'a\\x0bb\\x0cc\\x1cd\\x1de\\x1ef\\x85g\\u2028h\\u2029i\\x1fj\\x09k'.splitlines() | length }}{{ "
         "'a\\x85b\\u2029c'.splitlines(keepends=true) | length }}{{ 'a\r'.splitlines() }}{{ "
         "'\\u2027a\\u202ab\\x84c'.splitlines() | length }}",
         "['a', 'b']['a', 'b', 'c']['']['a\\n', '\\n', 'b']93['a']1"},
        {"{{ 'abc'.startswith('abc') }}{{ 'abc'.startswith('abcd') }}{{ 'abc'.startswith('b') }}{{ "
         "'abc'.startswith('') }}{{ 'abc'.startswith(('x', 'a')) }}{{ 'abc'.startswith(('x', 'y')) }}{{ "
         "'abc'.startswith(('a', 'y')) }}{{ 'abc'.startswith('c', 2) }}{{ 'abc'.startswith('b', 1, 2) }}{{ "
         "'abc'.startswith('bc', 1, 2) }}{{ 'éab'.startswith('a', 1) }}{{ 'abc'.startswith('b', -2) }}",
         "TrueFalseFalseTrueTrueFalseTrueTrueTrueFalseTrueTrue"},
        {"{{ 'abc'.endswith('abc') }}{{ 'abc'.endswith('xabc') }}{{ 'abc'.endswith('b') }}{{ "
         "'abc'.endswith('') }}{{ 'abc'.endswith(('x', 'c')) }}{{ 'abc'.endswith('b', 0, 2) }}{{ "
         "'abc'.endswith('ab', 1, 2) }}{{ 'abé'.endswith('é', 2) }}{{ 'abc'.endswith('b', 0, -1) }}",
         "TrueFalseFalseTrueTrueTrueFalseTrueTrue"},
        {"{{ 'abc'.removeprefix('ab') }}{{ 'abc'.removeprefix('abc') }}{{ 'abc'.removeprefix('') }}{{ "
         "'abc'.removeprefix('c') }}{{ 'abc'.removesuffix('bc') }}{{ 'abc'.removesuffix('abc') }}{{ "
         "'abc'.removesuffix('') }}{{ 'abc'.removesuffix('a') }}{{ 'ab'.removesuffix('xab') }}{{ "
         "''.removeprefix('a') }}",
         "cabcabcaabcabcab"},
        {"{{ 'abcabc'.find('b') }}{{ 'abcabc'.find('b', 2) }}{{ 'abcabc'.find('b', 2, 4) }}{{ "
         "'éaéa'.find('a', 2) }}{{ 'abc'.find('', 3) }}{{ 'abc'.find('abcd') }}{{ 'abcabc'.rfind('b') }}{{ "
         "'abcabc'.rfind('b', 0, 4) }}{{ 'éaéa'.rfind('a') }}{{ 'abc'.rfind('') }}{{ 'abc'.rfind('x') }}{{ "
         "'aXXXa'.rfind('XX') }}{{ 'abcabc'.index('c') }}{{ 'abcabc'.rindex('c') }}{{ 'abcabc'.index('c', 3) "
         "}}{{ 'abc'.find('a', 1) }}{{ 'abc'.find('c', -1) }}{{ 'a'.rfind('a') }}{{ ''.find('') }}{{ "
         "''.rfind('') }}",
         "14-133-14133-12255-12000"},
        {"{{ 'abab'.count('ab') }}{{ 'aaaa'.count('aa') }}{{ 'abab'.count('b', 2) }}{{ 'abab'.count('b', 0, "
         "3) }}{{ 'abc'.count('z') }}{{ ''.count('a') }}{{ 'éé'.count('é', 1) }}",
         "2211001"},
        {"{{ 'a'.isalpha() }}{{ 'a1'.isalpha() }}{{ ''.isalpha() }}{{ 'é中'.isalpha() }}{{ 'a b'.isalpha() "
         "}}{{ '1'.isdigit() }}{{ '1a'.isdigit() }}{{ '٣'.isdigit() }}{{ '1.0'.isdigit() }}{{ 'a1'.isalnum() "
         "}}{{ 'a_'.isalnum() }}{{ ' \t'.isspace() }}{{ ' a'.isspace() }}{{ '\\u3000'.isspace() }}{{ "
         "'中'.islower() }}{{ 'a中'.islower() }}{{ 'aB'.islower() }}{{ 'A1'.isupper() }}{{ 'Ab'.isupper() "
         "}}{{ '1'.islower() }}",
         "TrueFalseFalseTrueFalseTrueFalseTrueFalseTrueFalseTrueFalseTrueFalseTrueFalseTrueFalseFalse"},
        {"{{ '-'.join(['a', 'b', 'c']) }}{{ ''.join(['a', 'b']) }}{{ ', '.join([]) }}{{ '-'.join('abc') }}{{ "
         "'-'.join(map) }}{{ '-'.join(('x',)) }}",
         "a-b-caba-b-cb-ax"},
        {"{{ [1, 2, 1].index(1) }}{{ [1, 2].index(2) }}{{ [1, 2, 1].count(1) }}{{ [].count(1) }}{{ (1, "
         "2).index(2) }}{{ map.get('a') }}{{ map.get('zz') }}{{ map.get('zz', 'd') }}{{ {'a': none}.get('a', "
         "1) }}{{ map.copy().b }}{{ map.values() | list | length }}{{ {}.items() | list }}",
         "01201[1, \"q'\"]NonedNone12[]"},
        {"{{ 'x' is lower }}{{ 'X' is lower }}{{ 'xY' is upper }}{{ 'XY' is upper }}{{ 2 is even }}{{ 3 is "
         "even }}{{ 3 is odd }}{{ -3 is odd }}{{ 2.0 is even }}{{ 6 is divisibleby 4 }}{{ 8 is divisibleby 4 "
         "}}{{ 1.5 is float }}{{ 1 is float }}{{ 1 is integer }}{{ true is integer }}{{ 'a' is integer }}{{ "
         "none is none }}{{ zz is none }}{{ false is boolean }}{{ 0 is boolean }}{{ 0 is false }}{{ 1 is "
         "true }}{{ true is true }}{{ false is true }}",
         "TrueFalseFalseTrueTrueFalseTrueTrueTrueFalseTrueTrueFalseTrueFalseFalseTrueFalseTrueFalseFalseFalse"
         "TrueFalse"},
        {"{{ [] is mapping }}{{ {} is mapping }}{{ namespace() is mapping }}{{ 'a' is string }}{{ 1 is "
         "string }}{{ [] is sequence }}{{ 5 is iterable }}{{ none is iterable }}{{ range is callable }}{{ "
         "'a' is callable }}{{ true is number }}{{ '1' is number }}{{ 1.5 is number }}{{ none is number }}",
         "FalseTrueFalseTrueFalseTrueFalseFalseTrueFalseTrueFalseTrueFalse"},
        {"{{ '{:<5}|{:>5}|{:^5}|{:^4}|{:5}|{:*>3}|{:é^5}|{:2}'.format('a', 'b', 'c', 'd', 'e', 'f', 'g', "
         "'hij') }}",
         "a    |    b|  c  | d  |e    |**f|éégéé|hij"},
        {"{{ '{:5}|{:<5}|{:^5}|{:^6}|{:>5}|{:=5}|{:=+5}|{:05}|{:<05}|{:*=5}|{:x<4}|{:1}'.format(42, 42, 42, "
         "42, 42, -42, 42, -42, 42, -4, 7, 123) }}",
         "   42|42   | 42  |  42  |   42|-  42|+  42|-0042|42000|-***4|7xxx|123"},
        {"{{ '{:+}|{: }|{:-}|{:+}|{: d}|{:+d}|{:+.1f}|{: .1f}|{:+}'.format(1, 1, 1, -1, -1, 0, 1.5, 1.5, "
         "1.5) }}",
         "+1| 1|1|-1|-1|+0|+1.5| 1.5|+1.5"},
        {"{{ '{:x}|{:X}|{:#x}|{:#X}|{:o}|{:#o}|{:b}|{:#b}|{:d}|{:#d}|{:x}|{:#06x}|{:#06X}'.format(255, 255, "
         "255, 255, 8, 8, 5, 5, 7, 7, -255, 10, 171) }}",
         "ff|FF|0xff|0XFF|10|0o10|101|0b101|7|7|-ff|0x000a|0X00AB"},
        {"{{ '{:,}|{:,}|{:,}|{:,}|{:_}|{:_x}|{:_b}|{:,.1f}|{:,.3f}|{:,}'.format(1, 999, 1000, -1234567, "
         "1000000, 1048575, 1023, 1234.5, 999.5, 1234567.5) }}",
         "1|999|1,000|-1,234,567|1_000_000|f_ffff|11_1111_1111|1,234.5|999.500|1,234,567.5"},
        {"{{ "
         "'{:.0f}|{:.1f}|{:f}|{:e}|{:E}|{:.2e}|{:g}|{:G}|{:.3g}|{:%}|{:.0%}|{:.1%}|{:F}|{:#.0f}|{:#g}'."
         "format(2.5, 2.25, 1.5, 12345.6789, 12345.6789, 12345.6789, 1e-5, 1e20, 1234.5, 0.5, 0.256, 0.256, "
         "1.5, 3.0, 2.0) }}",
         "2|2.2|1.500000|1.234568e+04|1.234568E+04|1.23e+04|1e-05|1E+20|1.23e+03|50.000000%|26%|25.6%|1."
         "500000|3.|2.00000"},
        {"{{ '{:.3}|{:.3}|{:.1}|{:10.3}|{:.0f}|{:f}|{:e}|{:.2%}'.format(3.14159, 3.0, 100.0, 2.5, 7, 3, "
         "1000, 1) }}",
         "3.14|3.0|1e+02|       2.5|7|3.000000|1.000000e+03|100.00%"},
        {"{{ '{}|{:5}|{:<7}|{:>7}|{:+}|{:07}|{:7}'.format(1.5, 1.5, 1.5, -1.5, 2.0, -2.5, 1e20) }}",
         "1.5|  1.5|1.5    |   -1.5|+2.0|-0002.5|  1e+20"},
        {"{{ '{0}{1}{0}|{a}{b}{a}|{0[0]}{0[1]}|{a.b}|{a[b]}'.format([1, 2], 5, a={'b': 3}, b=4) if no else "
         "'{0}{1}{0}|{a}{b}{a}'.format('x', 5, a=3, b=4) }}",
         "x5x|343"},
        {"{{ '{0[0]}{0[1]}|{1[b]}|{2[0][1]}'.format([1, 2], {'b': 3}, [[4, 5]]) }}", "12|3|5"},
        {"{{ '{!r}|{!s}|{!r:>5}|{0!r}'.format('a', 'b', 'c') if no else '{!r}|{!s}|{!r:>5}'.format('a', 'b', "
         "'c') }}",
         "'a'|b|  'c'"},
        {"{{ '{:{}}|{:{}.{}f}|{:{w}}'.format('a', 3, 1.25, 6, 1, 'b', w=2) }}|{{ '{{{}}}'.format(1) }}{{ "
         "'}}{{'.format() }}{{ 'a{}b{}c'.format(1, 2) }}",
         "a  |   1.2|b |{1}}{a1b2c"},
        {"{{ '{:s}|{:.1s}|{:3.1s}|{:>3s}|{:.0}|{:.9}'.format('ab', 'ab', 'ab', 'ab', 'ab', 'ab') }}{{ "
         "'{:.1}'.format('éa') }}",
         "ab|a|a  | ab||abé"},
        {"{{ "
         "'{:010,}|{:010,}|{:08,}|{:09,}|{:+010,}|{:010,}|{:010,}|{:02,}|{:06,d}|{:07,d}|{:04,}'.format("
         "1234567, 1234, 1234, 1234, 1234, -1234, 0, 1234, 12, 12, 999) }}",
         "01,234,567|00,001,234|0,001,234|0,001,234|+0,001,234|-0,001,234|00,000,000|1,234|00,012|000,012|0,"
         "999"},
        {"{{ '{:0=10,}|{:0<10,}|{:<010,}|{:x=10,}|{:x>010,}|{:^010,}'.format(1234, 1234, 1234, 1234, 1234, "
         "1234) }}",
         "00,001,234|1,23400000|1,23400000|xxxxx1,234|xxxxx1,234|001,234000"},
        {"{{ '{:#012_x}|{:012_b}|{:#014_b}|{:07_o}'.format(48879, 5, -5, 8) }}",
         "0x0_0000_beef|00_0000_0101|-0b0_0000_0101|00_0010"},
        {"{{ "
         "'{:015,.2f}|{:010,.1%}|{:012,}|{:012,}|{:012,e}|{:014_.3f}|{:010,.0f}|{:#010,.0f}|{:010,g}'.format("
         "1234.5, 12.5, 1234.5, 1e+22, 1e+22, -1234.5, 1234.0, 1234.0, 1e+20) }}",
         "0,000,001,234.50|001,250.0%|00,001,234.5|0,000,001e+22|1.000000e+22|-0_001_234.500|00,001,234|0,"
         "001,234.|00,001e+20"},
        {"{{ '{:05}|{:010}|{:>010}|{:^010}|{:010.2}|{:00}|{:07s}|{:<06}|{:*^07}|{:05}'.format('text', "
         "'text', 'text', 'text', 'text', 't', 'text', 'text', 'text', true) }}",
         "text0|text000000|000000text|000text000|te00000000|t|text000|text00|*text**|00001"},
        {"{{ '{:6}|{:06}|{:010,}|{:+}|{:6,}'.format(1e999 - 1e999, -1e999, 1e999, 1e999 - 1e999, 1e999 - "
         "1e999) "
         "}}",
         "   nan|-00inf|0000000inf|+nan|   nan"},
        {"{{ '{:d}|{:5}|{:x}'.format(true, true, true) }}{{ '{}'.format(none) }}{{ '{}'.format({}) }}",
         "1|    1|1None{}"},
        {"{{ '%d|%i|%u|%5d|%-5d|%05d|%+d|% d|%x|%X|%o|%#x|%#o|%-05d|%+5d' % (1, 2, 3, 42, 42, 42, 42, 42, "
         "255, 255, 8, 255, 8, 7, 7) }}",
         "1|2|3|   42|42   |00042|+42| 42|ff|FF|10|0xff|0o10|7    |   +7"},
        {"{{ '%f|%.1f|%7.2f|%-7.2f|%07.2f|%e|%E|%g|%G|%.3g|%F|%#.0f' % (1.5, 2.25, 3.14159, 3.14159, "
         "3.14159, 1234.5, 1234.5, 0.00001, 1e20, 1234.5, 1.5, 3.0) }}",
         "1.500000|2.2|   3.14|3.14   |0003.14|1.234500e+03|1.234500E+03|1e-05|1E+20|1.23e+03|1.500000|3."},
        {"{{ '%s|%5s|%-5s|%.1s|%5.1s|%r|%05s|%c|%+s' % ('a', 'b', 'c', 'de', 'fg', 'h', 'i', 'j', 'k') }}",
         "a|    b|c    |d|    f|'h'|    i|j|k"},
        {"{{ '%d|%d|%s|%s|%r|%5s' % (3.99, true, none, 1.5, none, none) }}{{ '%%%s%%' % 1 }}{{ '%s' % [1, 2] "
         "}}{{ '%s' % 'é' }}{{ '%s' % {'a': 1} }}",
         "3|1|None|1.5|None| None%1%[1, 2]é{'a': 1}"},
        {"{{ '%(a)s|%(b)5.1f|%(a)r' % {'a': 'x', 'b': 2.25} }}{{ 'none' % {} }}{{ '%.2d' % 5 if no else '' "
         "}}{{ '%.0f' % 2.5 }}{{ '%.10f' % 0.1 }}",
         "x|  2.2|'x'none20.1000000000"},
        {"{{ [1.5, 'a\\'b', \"a\\\"b\", \"a'\\\"b\", '\\\\', '\\x00\\x7f\\x1b', 'é', (1,), (), {}, none, "
         "true] }}",
         "[1.5, \"a'b\", 'a\"b', 'a\\'\"b', '\\\\', '\\x00\\x7f\\x1b', 'é', (1,), (), {}, None, True]"},
        {"{{ 'a' ~ none ~ true ~ 1.0 ~ [1] ~ {} ~ zz ~ (1,) }}{{ [none, zz is defined] }}{{ {'a': (1, 2)} }}",
         "aNoneTrue1.0[1]{}(1,)[None, False]{'a': (1, 2)}"},
        {"{{ namespace(a=1).a }}{{ people[0]['name'] }}{{ people[0].name }}{{ people[-1].age }}{{ map['zz'] "
         "is defined }}{{ map.zz is defined }}{{ items.zz is defined }}{{ 'a'.zz is defined }}{{ x.zz is "
         "defined }}",
         "1BoBo1FalseFalseFalseFalseFalse"},
        {"{{ 'abc' | attr('zz') is defined }}{{ map | attr('a') is defined }}{{ [1, 2] | list == [1, 2] }}{{ "
         "(1, 2) | list }}{{ 'ab' | list }}{{ map | list }}",
         "FalseFalseTrue[1, 2]['a', 'b']['b', 'a']"},
        {"{{ ('<' | safe).strip() is escaped }}{{ ('<' | safe).center(3) is escaped }}{{ ('a' | "
         "safe).join(['<', 'b']) }}{{ ('a' | safe) * 2 is escaped }}{{ ('a' | safe) | trim is escaped }}{{ "
         "('a' | safe) | indent is escaped }}{{ ('a' | safe) ~ '<' }}{{ 'a' | string is escaped }}{{ ('a' | "
         "safe) | string is escaped }}{{ ('7' | safe).zfill(3) is escaped }}{{ ('ab' | safe)[::-1] is "
         "escaped }}",
         "TrueTrue&lt;abTrueTruea<FalseTrueTrueTrue"},
    };
    EXPECT_ALL(examples);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, NULL, tear_down);
    tcase_add_test(tests, tags_operators_and_statements_are_read_as_jinja2_reads_them);
    tcase_add_test(tests, filters_methods_and_formats_give_what_pythons_give);
}

int main(void)
{
    return run_tests("jinja_python", add);
}
