/* SPDX-License-Identifier: MIT */
#include "tests/unit/text/template/jinja_examples.h"

START_TEST(white_space_around_tags_goes_where_jinja_lets_it_go)
{
    static const struct example examples[] = {
        {"a\n{% if yes %}\nb\n{% endif %}\nc", "a\nb\nc"},
        {"a\n   {% if yes %}b{% endif %}  \nc", "a\nb  \nc"},
        {"a  {%- if yes -%}  b  {%- endif -%}  c", "abc"},
        {"a\n  {{ x }}\nb\n", "a\n  7\nb"},
        {"a {{- x -}} b", "a7b"},
        {"a\n  {# note #}\nb", "a\nb"},
        {"a\n  {#- note -#}\n b", "ab"},
        {"a\n  {%+ if yes %}b{% endif %}", "a\n  b"},
        {"{% if yes +%}\nb{% endif %}", "\nb"},
        {"x\r\ny\r\n", "x\ny"},
        {"end\n\n", "end\n"},
        {"{% raw %}{{ x }}{% endraw %}", "{{ x }}"},
        {"{% raw %}\n{{ x }}\n{% endraw %}\ny", "\n{{ x }}\ny"},
        {"{% raw -%}\n{{ x }}\n{%- endraw %}\ny", "{{ x }}y"},
        {"{{ '}}' }}{{ {'a': {'b': 1}}['a']['b'] }}", "}}1"},
        {"", ""},
    };
    EXPECT_ALL(examples);
}
END_TEST

START_TEST(expressions_bind_and_compute_as_in_python)
{
    static const struct example examples[] = {
        {"{{ 1 + 2 * 3 }}", "7"},
        {"{{ (1 + 2) * 3 }}", "9"},
        {"{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 10 }}", "3 -4 2 3.5 1024"},
        {"{{ 1 ~ 2 }}{{ 'a' + 'b' }}{{ 'ab' * 3 }}", "12abababab"},
        {"{{ not yes or x > 6 and x <= 7 }}", "True"},
        {"{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }}", "True False"},
        {"{{ 'a' in name|lower }} {{ 9 not in items }} {{ 'b' in map }}", "True True True"},
        {"{{ 1 if {} else 2 }}{{ 1 if {'a': 0} else 2 }}{{ 1 if namespace() else 2 }}{{ 1 if [] else 2 }}",
         "2112"},
        {"{{ 'yes' if x == 7 else 'no' }}{{ 'x' if false }}", "yes"},
        {"{{ none_here or 'else' }} {{ name and 5 }}", "else 5"},
        {"{{ items[0] }}{{ items[-1] }}{{ items[1:] }}{{ items[::-1] }}{{ items[9] }}", "32[1, 2][2, 1, 3]"},
        {"{{ name[0] }}{{ name[:-1] }}{{ 'héé'[1:] }}{{ name[::-1] }}", "AAdééadA"},
        {"{{ 'abc'[:-10:-1] }}|{{ 'abc'[-10::-1] }}|{{ 'abc'[10::-1] }}|{{ 'abc'[10:] }}|{{ 'abc'[-10:] }}",
         "cba||cba||abc"},
        {"{{ items[none:2:none] }}{{ 'abc'[1:none] }}{{ items[1::none] }}", "[3, 1]bc[1, 2]"},
        {"{{ map.a[1] }}{{ map['b'] }}{{ map.missing }}{{ people[1].name }}", "q'1al"},
        {"{{ true }}{{ none }}{{ 1.0 }}{{ 1e20 }}{{ 0.1 + 0.2 }}", "TrueNone1.01e+200.30000000000000004"},
        {"{{ [1, 'a', none, {'k': 2.5}] }}", "[1, 'a', None, {'k': 2.5}]"},
        {"{{ 'a' 'b' \"c\" }}{{ 'x\\ty\\u00e9\\'' }}", "abcx\ty\xc3\xa9'"},
        {"{{ (1, 2)[1] }}{{ [[1], [2]][1][0] }}", "22"},
        {"{{ 1 == 1.0 }} {{ [1, 2] == [1, 2] }} {{ {'a': 1} == {'a': 1} }} {{ '1' == 1 }}",
         "True True True False"},
        {"{{ -x + 10 }}{{ - 2 ** 2 }}{{ -0.0 }}", "34-0.0"},
        {"{{ (1, 'a') }}{{ (1,) }}{{ () }}{{ [(1, 2)] }}{{ 1, 2 }}", "(1, 'a')(1,)()[(1, 2)](1, 2)"},
        {"{{ (1, 2) == [1, 2] }}{{ (1, 2) + (3,) }}{{ (1, 2, 3)[1:] }}{{ (1, 2) | list }}",
         "False(1, 2, 3)(2, 3)[1, 2]"},
        {"{{ [1, 2] < [1, 3] }}{{ [1, 2] < [1] }}{{ 3 * 'ab' }}{{ [1] * 2 }}{{ 2 * (0,) }}",
         "TrueFalseababab[1, 1](0, 0)"},
    };
    EXPECT_ALL(examples);
}
END_TEST

START_TEST(statements_loop_set_and_call)
{
    static const struct example examples[] = {
        {"{% for i in items %}{{ loop.index }}{{ i }}{% if not loop.last %},{% endif %}{% endfor %}",
         "13,21,32"},
        {"{% for i in items if i > 1 %}{{ i }}{{ loop.length }}{% endfor %}", "3222"},
        {"{% for i in empty %}x{% else %}none{% endfor %}", "none"},
        {"{% for k, v in map.items() %}{{ k }}={{ v }};{% endfor %}", "b=1;a=[1, \"q'\"];"},
        {"{% for i in range(5) %}{% if i == 1 %}{% continue %}{% endif %}{% if i == 3 %}{% break %}{% endif "
         "%}{{ i }}"
         "{% endfor %}",
         "02"},
        {"{% for i in items %}{{ loop.previtem }}<{{ loop.nextitem }} {% endfor %}", "<1 3<2 1< "},
        {"{% set y = 1 %}{% for i in items %}{% set y = 2 %}{% endfor %}{{ y }}", "1"},
        {"{% set ns = namespace(n=0) %}{% for i in items %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}",
         "6"},
        {"{% set a, b = 1, 2 %}{{ b }}{{ a }}", "21"},
        {"{% set t %} {{ name }} {% endset %}[{{ t }}]", "[ Ada ]"},
        {"{% set t | trim | upper %} {{ name }} {% endset %}[{{ t }}]", "[ADA]"},
        {"{% filter upper %}a{{ name }}{% endfilter %}", "AADA"},
        {"{% macro m(a, b='B') %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}{{ m(1, b=2) }}{{ m('x', 'y') }}",
         "1B12xy"},
        {"{% macro f(n) %}{% if n %}{{ n }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}", "321"},
        {"{% macro m() %}{{ i }}{% endmacro %}{% for i in items %}{{ m() }}{% endfor %}", ""},
        {"{% for i in items %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}", "312"},
        {"{% set ns = namespace() %}{% for i in items %}{% macro m() %}{{ i }}{% endmacro %}"
         "{% set ns.m = m %}{% endfor %}{{ ns.m() }}",
         "2"},
        {"{% macro m() %}<{{ caller() }}>{% endmacro %}{% call m() %}in {{ x }}{% endcall %}", "<in 7>"},
        {"{% macro each(l) %}{% for i in l %}{{ caller(i, loop.last) }}{% endfor %}{% endmacro %}"
         "{% call(i, end=false) each(items) %}{{ i }}{{ '.' if end else ',' }}{% endcall %}",
         "3,1,2."},
        {"{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}{% call m() %}{% endcall %}",
         "FalseTrue"},
        {"{% macro inner() %}[{{ caller() }}]{% endmacro %}{% macro outer() %}{% call inner() %}"
         "({{ caller() if caller else '-' }}){% endcall %}{% endmacro %}{% call outer() %}x{% endcall %}",
         "[(-)]"},
        {"{% with a = 1, b = x %}{{ a }}{{ b }}{% set c = 2 %}{% endwith %}{{ a is defined }}{{ c is defined "
         "}}",
         "17FalseFalse"},
        {"{% with x = 1, y = x %}{{ y }}{% endwith %}", "7"},
        {"a{% block body %}{% set q = 1 %}{{ x }}{% endblock body %}b{{ q is defined }}", "a7bFalse"},
        {"{% for i in items %}{{ loop.cycle('a', 'b') }}{% endfor %}", "aba"},
        {"{% if x == 1 %}a{% elif x == 7 %}b{% else %}c{% endif %}", "b"},
        {"{% for c in 'aé' %}{{ c }}.{% endfor %}", "a.é."},
        {"{{ strftime_now('%d %b %Y') }}", "15 Jan 2026"},
        {"{% generation %}{{ x }}{% endgeneration %}", "7"},
        {"{% for a in items %}{% for b in items %}{{ loop.depth }}{% endfor %}{% endfor %}", "111111111"},
    };
    EXPECT_ALL(examples);
}
END_TEST

START_TEST(filters_tests_and_methods_do_what_jinjas_do)
{
    static const struct example examples[] = {
        {"[{{ word | trim }}][{{ word.strip() }}][{{ 'xxaxx'.strip('x') }}]",
         "[héllo wörld][héllo wörld][a]"},
        {"{{ word | trim | upper }}{{ 'ÉA' | lower }}{{ 'ab cd' | title }}{{ 'aBC' | capitalize }}",
         "HÉLLO WÖRLDéaAb CdAbc"},
        {"{{ items | length }}{{ 'éé' | length }}{{ map | count }}", "322"},
        {"{{ items | join('-') }}{{ items | sort | first }}{{ items | last }}{{ items | max }}{{ items | sum "
         "}}",
         "3-1-21236"},
        {"{{ people | map(attribute='name') | join(',') }} {{ people | sort(attribute='name') | "
         "map(attribute='age') | "
         "join }}",
         "Bo,al 13"},
        {"{{ people | selectattr('age', 'gt', 1) | list | length }}{{ people | rejectattr('age', 'equalto', "
         "3) | "
         "map(attribute='name') | first }}",
         "1al"},
        {"{{ items | select('odd') | list }}{{ items | reject('equalto', 3) | list }}", "[3, 1][1, 2]"},
        {"{{ missing | default('d') }}{{ '' | default('e', true) }}{{ none_here | default('f') }}", "deNone"},
        {"{{ map | tojson }}", "{\"b\": 1, \"a\": [1, \"q'\"]}"},
        {"{{ map | tojson(indent=2) }}", "{\n  \"b\": 1,\n  \"a\": [\n    1,\n    \"q'\"\n  ]\n}"},
        {"{{ 'é\"\\n' | tojson }}{{ 'é' | tojson(ensure_ascii=true) }}{{ [] | tojson }}",
         "\"é\\\"\\n\"\"\\u00e9\"[]"},
        {"{{ 'a,b,c'.split(',') }}{{ 'a b  c'.split() }}{{ 'a,b,c'.split(',', 1)[1] }}",
         "['a', 'b', 'c']['a', 'b', 'c']b,c"},
        {"{{ 'abc'.startswith('ab') }}{{ 'abc'.endswith(('x', 'c')) }}{{ 'aXbX'.replace('X', '-') }}{{ 'ab' "
         "| "
         "replace('a', 'c') }}",
         "TrueTruea-b-cb"},
        {"{{ 'abc'.find('c') }}{{ 'abc'.find('x') }}{{ ', '.join(['a', 'b']) }}", "2-1a, b"},
        {"{{ map.get('b') }}{{ map.get('z') }}{{ map.get('z', 5) }}{{ map.keys() | list }}",
         "1None5['b', 'a']"},
        {"{{ map | dictsort | map('first') | join }}{{ items | reverse | list }}{{ [1, 1, 2] | unique | list "
         "}}",
         "ab[2, 1, 3][1, 2]"},
        {"{{ '12' | int + 1 }}{{ 'x' | int(5) }}{{ '2.5' | float }}{{ 2.6 | round | int }}{{ -3 | abs }}",
         "1352.533"},
        {"{{ 'a\nb\n\nc' | indent(2) }}", "a\n  b\n\n  c"},
        {"{{ x is defined }}{{ zz is defined }}{{ zz is undefined }}{{ none_here is none }}{{ x is not none "
         "}}",
         "TrueFalseTrueTrueTrue"},
        {"{{ name is string }}{{ items is iterable }}{{ map is mapping }}{{ x is number }}{{ yes is boolean "
         "}}{{ x is odd "
         "}}",
         "TrueTrueTrueTrueTrueTrue"},
        {"{{ x is divisibleby 7 }}{{ x is divisibleby(2) }}{{ x is eq 7 and yes is true }}{{ 3 is in items "
         "}}",
         "TrueFalseTrueTrue"},
        {"{{ '<a>' | escape }}{{ '<a>' | safe }}", "&lt;a&gt;<a>"},
        {"{{ none_here | selectattr('type', 'equalto', 'x') | list | length }}{{ none_here | select | list }}"
         "{{ none_here | reject | list }}{{ none_here | rejectattr('x') | list }}"
         "{{ none_here | map('upper') | list }}",
         "0[][][][]"},
        {"{{ map.items() | list }}{{ map | items | first }}{{ map | dictsort }}",
         "[('b', 1), ('a', [1, \"q'\"])]('b', 1)[('a', [1, \"q'\"]), ('b', 1)]"},
        {"{{ [1, {'a': 2}] | tojson(separators=(',', ':')) }}{{ {none: 1, true: 2, 3: 4} | tojson }}",
         "[1,{\"a\":2}]{\"null\": 1, \"true\": 2, \"3\": 4}"},
        {"{{ [1, 2, 3] | batch(2, 0) | list }}{{ [1, 2, 3] | batch(2) | list }}",
         "[[1, 2], [3, 0]][[1, 2], [3]]"},
        {"{% for k, v in people | groupby('age') %}{{ k }}:{{ v | map(attribute='name') | join }} {% endfor "
         "%}",
         "1:al 3:Bo "},
        {"{{ items.index(1) }}{{ [1, 1].count(1) }}{{ items.copy() }}{{ map.copy() | length }}",
         "12[3, 1, 2]2"},
        {"{{ 'a b, c' | wordcount }}{{ 'x' | attr('y') is defined }}{{ map | attr('b') }}", "3False"},
        {"{{ 'a' | string ~ 5 | string }}{{ people | map('length') | list }}", "a5[2, 2]"},
    };
    EXPECT_ALL(examples);
}
END_TEST

START_TEST(every_test_has_its_names)
{
    static const struct example examples[] = {
        {"{{ x is even }}{{ 8 is even }}{{ x is odd }}{{ x is integer }}{{ pi is integer }}{{ pi is float "
         "}}{{ x is float }}",
         "FalseTrueTrueTrueFalseTrueFalse"},
        {"{{ items is sequence }}{{ x is sequence }}{{ range is callable }}{{ x is callable }}",
         "TrueFalseTrueFalse"},
        {"{{ yes is sameas true }}{{ x is sameas 8 }}{{ x is ne 7 }}{{ x is ne 8 }}", "TrueFalseFalseTrue"},
        {"{{ x is lt 7 }}{{ x is lt 8 }}{{ x is lessthan 8 }}{{ x is le 7 }}{{ x is le 6 }}",
         "FalseTrueTrueTrueFalse"},
        {"{{ x is gt 7 }}{{ x is gt 6 }}{{ x is greaterthan 6 }}{{ x is ge 7 }}{{ x is ge 8 }}",
         "FalseTrueTrueTrueFalse"},
        {"{{ items | select('<', 2) | list }}{{ items | select('<=', 2) | list }}{{ items | select('>', 2) | "
         "list }}{{ items | select('>=', 2) | list }}{{ items | select('==', 2) | list }}{{ items | "
         "select('!=', 2) | list }}",
         "[1][1, 2][3][3, 2][2][3, 1]"},
        {"{{ yes is true }}{{ yes is false }}{{ false is false }}{{ 'a' is lower }}{{ 'a' is upper }}{{ 'A' "
         "is upper }}{{ 'a' | escape is escaped }}{{ 'a' is escaped }}",
         "TrueFalseTrueTrueFalseTrueTrueFalse"},
        {"{{ items | min }}{{ items | max }}{{ dict(a=1, b=2) }}{{ dict(a=1).a }}", "13{'a': 1, 'b': 2}1"},
        {"{% for i in items %}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ "
         "loop.depth }}{{ loop.depth0 }} {% endfor %}",
         "032True10 121False10 210False10 "},
    };
    EXPECT_ALL(examples);
}
END_TEST

START_TEST(what_a_user_wrote_stays_marked_through_everything)
{
    static const struct example examples[] = {
        /* expected: the output with user bytes as u, others as . */
        {"<|x|>{{ user }}<|x|>", ".....uuuuuuuuu....."},
        {"{{ '<' + user + '>' }}", ".uuuuuuuuu."},
        {"{{ user | upper }}{{ user[2:4] }}{{ user | trim }}", "uuuuuuuuuuuuuuuuuuuu"},
        {"{{ user.split('|')[1] }}|{{ user.split('&') | join('|') }}", "u.uuuuuu.uu"},
        {"{{ user.replace('&', '\xf0\x90\x90\xa8') | upper }}", "uuuuuu....uu"}, /* U+10428 */
        {"{{ user | tojson }}", ".uuuuuuuuu."},
        {"{{ user | escape }}", "uuuuuuuuuuuuuuuuuuu"},
        {"{{ user.replace('&', '--') }}", "uuuuuu..uu"},
        {"{% set t %}a{{ user }}{% endset %}{{ t }}{{ t[0] }}", ".uuuuuuuuu."},
        {"{% macro m(a) %}[{{ a }}]{% endmacro %}{{ m(user) }}", ".uuuuuuuuu."},
        {"{{ [user] }}", "..uuuuuuuuu.."},
        {"{{ {'k': user} | tojson }}{{ user | length }}", ".......uuuuuuuuu..."},
        {"{% for c in user %}{{ c }}.{% endfor %}", "u.u.u.u.u.u.u.u.u."},
        {"{{ user | replace('&', user) | length }}{{ (user ~ 1)[-2:] }}", "..u."},
        {"{{ user | indent(1, true) }}{{ user * 2 }}", ".uuuuuuuuuuuuuuuuuuuuuuuuuuu"},
        {"{% filter lower %}A{{ user }}{% endfilter %}", ".uuuuuuuuu"},
        {"{{ 'a{}'.format(user) }}{{ user.format() }}", ".uuuuuuuuuuuuuuuuuu"},
        {"{{ '%s-%r' % (user, user) }}", "uuuuuuuuu..uuuuuuuuu."},
        {"{{ '{0:>11}'.format(user) }}{{ '{0[1]:{1}.{1}}'.format(user, 2) }}", "..uuuuuuuuuu."},
        {"{{ user.center(11, '*') }}{{ user.partition('|')[2] }}", ".uuuuuuuuu.uuuuuuu"},
        {"{{ [1, 2] | tojson(separators=(user, ':')) }}{{ strftime_now(user) }}", "..uuuuuuuuu..uuuuuuuuu"},
        {"{{ '{:&>3}'.format(1) }}{{ ('{:' ~ user[0] ~ '>3}').format('a') }}{{ user.zfill(11) }}",
         "...uu...uuuuuuuuu"},
        {"{{ '<b>' | safe + user }}", "...uuuuuuuuuuuuuuuuuuu"},
        {"{% macro m() %}[{{ caller() }}]{% endmacro %}{% call m() %}{{ user }}{% endcall %}", ".uuuuuuuuu."},
    };
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        int r = render(examples[i].source);
        ck_assert_msg(r == 0, "%s: %s", examples[i].source, err.text);
        char shown[256];
        for (size_t k = 0; k <= marks.len; k++)
            shown[k] = k == marks.len ? '\0' : marks.data[k] ? 'u' : '.';
        ck_assert_msg(strcmp(shown, examples[i].expected) == 0, "%s gives %s %s, not %s", examples[i].source,
                      (const char *)text.data, shown, examples[i].expected);
    }
}
END_TEST

START_TEST(a_template_may_refuse_with_its_reason)
{
    static const struct example examples[] = {
        {"abc{{ raise_exception('no ' + name) }}", "no Ada"},
        {"{% for i in items %}{{ raise_exception(i) }}{% endfor %}", "3"},
        {"{{ raise_exception() }}", "raise_exception without a message"},
        {"{{ [raise_exception('in a list'), 1] }}", "in a list"},
        {"{{ {raise_exception('in a key'): 1, 2: 3} }}", "in a key"},
        {"{{ {1: raise_exception('in a value'), 2: 3} }}", "in a value"},
        {"{{ range(raise_exception('an argument'), 1) }}", "an argument"},
    };
    EXPECT_FAILURES(examples, JINJA_E_REFUSED);
}
END_TEST

START_TEST(mistakes_are_told_with_their_line)
{
    static const struct example at_compile[] = {
        {"a\n{% if x %}", "line 2: \"endif\" is missing"},
        {"\n\n{{ x", "line 3: unterminated tag"},
        {"{{ 'x }}", "line 1: unterminated string"},
        {"{# x", "line 1: unterminated comment"},
        {"{% raw %}x", "line 1: unterminated raw block"},
        {"{{ }}", "line 1: expected a value before \"}}\""},
        {"{% include 'x' %}", "the statement \"include\" is not supported"},
        {"{% call x %}{% endcall %}", "expected a call"},
        {"{% call(a b) m() %}{% endcall %}", "expected \")\""},
        {"{% for i in x %}{% call m() %}{% break %}{% endcall %}{% endfor %}", "break outside of a loop"},
        {"{% for x in y recursive %}{% endfor %}", "recursive loops are not supported"},
        {"{% break %}", "break outside of a loop"},
        {"{% for i in x %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}", "break outside of a loop"},
        {"{{ 1 +* 2 }}", "expected a value before \"*\""},
        {"{{ a ? b }}", "unexpected character '?'"},
        {"{{ 99999999999999999999 }}", "is too large"},
        {"{% endif %}", "\"endif\" is not supported"},
        {"{{ x | }}", "expected the name of a filter"},
        {"{{ [1, 2 }}", "line 1: '}' where ']' was expected"},
        {"{{ 1) }}", "line 1: unmatched ')'"},
        {"{% set 1 = 2 %}", "expected a name"},
    };
    static const struct example at_run[] = {
        {"\n{{ zz.y }}", "line 2: \"y\" requested of \"zz\", which is undefined"},
        /* Where it begins, whatever line its arguments end in. */
        {"\n{{ x is divisibleby(1\n-\n1) }}", "line 2: "},
        {"\n{{ x.y(1\n-\n1) }}", "line 2: "},
        {"\n{{ x | indent(1\n-\n2) }}", "line 2: "},
        {"{{ zz.y.z }}", "requested of \"zz\""},
        {"{{ empty[0]['role'] }}", "\"role\" requested of an undefined value"},
        {"{{ x() }}", "a whole number cannot be called"},
        {"{{ zz() }}", "\"zz\" is called but not defined"},
        {"{{ x | nope }}", "unknown filter \"nope\""},
        {"{{ x is nope }}", "unknown test \"nope\""},
        {"{{ 'a' + 1 }}", "a string and a whole number cannot be added"},
        {"{{ 1 < 'a' }}", "cannot be compared"},
        {"{{ 1 / 0 }}", "division by zero"},
        {"{{ 1 % 0 }}", "division by zero"},
        {"{{ 9223372036854775807 + 1 }}", "too large"},
        {"{{ 10 ** 30 }}", "too large"},
        {"{% set x.y = 1 %}", "is not a namespace"},
        {"{% for a, b in items %}{% endfor %}", "is not iterable"},
        {"{% for a, b in [[1]] %}{% endfor %}", "1 values for 2 names"},
        {"{% for a in x %}{% endfor %}", "is not iterable"},
        {"{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", "takes 1 arguments, not 2"},
        {"{{ 'a' | indent(-1) }}", "indent takes a width of 0 to 64"},
        {"{{ 'a' | indent(65) }}", "indent takes a width of 0 to 64"},
        {"{% macro m(a) %}{% endmacro %}{{ m(z=2) }}", "has no parameter \"z\""},
        {"{{ items | selectattr }}", "take the name of a member"},
        {"{{ 1 is in }}", "a test lacks an argument"},
        {"{{ x is divisibleby }}", "a test lacks an argument"},
        {"{{ x | items }}", "has no items"},
        {"{{ items[::0] }}", "step is 0"},
        {"{{ items[::'2'] }}", "slice step is a string"},
        {"{{ loop }}{% for i in items %}{{ loop }}{% endfor %}", "a loop cannot be printed"},
    };
    EXPECT_FAILURES(at_compile, -EINVAL);
    EXPECT_FAILURES(at_run, -EINVAL);
}
END_TEST

START_TEST(no_template_runs_without_bounds)
{
    static const struct example examples[] = {
        {"{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}", "the template "},
        {"{% for i in range(1000000000000) %}{% endfor %}", "the template "},
        {"{{ 'x' * 1000000000000 }}", "the template "},
        {"{% set s = 'x' * 1000 %}{% set ns = namespace(s=s) %}{% for i in range(60) %}{% set ns.s = ns.s + "
         "ns.s %}"
         "{% endfor %}",
         "the template "},
        {"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "deep"},
        {"{% set ns = namespace() %}{% set ns.l = [ns] %}{{ ns.l }}", "deep"},
        {"{% set ns = namespace() %}{% set ns.l = [ns] %}{{ ns.l == [ns] }}{{ ns.l | tojson }}", "deep"},
        {"{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ "
         "ns.l }}",
         "the template "},
        {"{% macro f(n) %}{{ f(n + 1) }}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}", "deep"},
        {"{% macro f() %}{% call f() %}{% endcall %}{% endmacro %}{{ f() }}", "deep"},
        {"{{ 'x'.rjust(1000000000000) }}", "the template "},
        {"{{ [1] * 1000000000000 }}", "the template "},
    };
    EXPECT_FAILURES(examples, -EMSGSIZE);
}
END_TEST

/* A template of `n` times `open`, then `middle`, then `n` times `close`. */
static int render_nested(const char *open, const char *middle, const char *close, int n)
{
    struct buffer source = {0};
    for (int i = 0; i < n; i++)
        buffer_append(&source, open, strlen(open));
    buffer_append(&source, middle, strlen(middle));
    for (int i = 0; i < n; i++)
        buffer_append(&source, close, strlen(close));
    buffer_append(&source, "", 1);
    int r = render((const char *)source.data);
    buffer_deinit(&source);
    return r;
}

/* These search one long string in another, again and again. To do it and charge afterwards took 11 s. */
START_TEST(work_is_charged_before_it_is_done)
{
    static const struct example examples[] = {
        {"{{ ('é' * 400000).strip('x' * 400000 ~ 'é') }}", "the template "},
        {"{{ ('é' * 400000) | trim('x' * 400000 ~ 'é') }}", "the template "},
        {"{% set s = 'a' * 400000 %}{{ (s ~ 'b' ~ s).rfind('a' * 300000 ~ 'b') }}", "the template "},
        {"{% set s = 'a' * 400000 %}{{ (s ~ 'b' ~ s).rsplit('a' * 300000 ~ 'b', 1) }}", "the template "},
        {"{% set s = 'a' * 400000 %}{{ (s ~ 'b' ~ s).rpartition('a' * 300000 ~ 'b') }}", "the template "},
        {"{% set s = 'a' * 1000000 %}{{ s.startswith([s] * 1000) }}{{ s.startswith([s] * 1000) }}",
         "the template "},
    };
    static const char begins[] = "{{ '", ends[] = "'.rsplit(none, 1) | length }}";
    static char source[200000]; /* malformed: a step back is charged as one, however far it looks */
    const clock_t begin = clock();
    EXPECT_FAILURES(examples, -EMSGSIZE);
    memset(source, 0x80, sizeof source);
    memcpy(source, begins, sizeof begins - 1);
    memcpy(source + sizeof source - sizeof ends, ends, sizeof ends);
    (void)render(source);
    ck_assert_msg(clock() - begin < 2 * CLOCKS_PER_SEC, "%.1f s", (double)(clock() - begin) / CLOCKS_PER_SEC);
}
END_TEST

/* What a template may take grows with what it is given: the copies it makes of a long conversation are fair.
 */
START_TEST(a_long_text_may_be_copied_more_often_than_a_short_template_may_take)
{
    static const char source[] = "{% set a = text ~ '1' %}{% set b = text ~ '2' %}{% set c = text ~ '3' %}"
                                 "{% set d = text ~ '4' %}{% set e = text ~ '5' %}{{ e[-1:] }}";
    struct jinja_template *jinja;
    struct buffer long_text = {0};
    const struct tm date = {.tm_year = 126};
    ck_assert_int_eq(buffer_reserve(&long_text, 8 << 20), 0);
    memset(long_text.data, 'x', 8 << 20);
    json_t *json = json_stringn((const char *)long_text.data, 8 << 20);
    const struct jinja_variable variable = {"text", json, true};
    ck_assert_int_eq(jinja_template_new(bytes_of_string(source), &jinja, &err), 0);
    text.len = marks.len = 0;
    int r = jinja_render(jinja, &variable, 1, &date, &text, &marks, &err);
    ck_assert_msg(r == 0, "%d %s", r, err.text);
    ck_assert(bytes_equal((struct bytes){text.data, text.len}, BYTES_LITERAL("5")));
    jinja_template_free(jinja);
    json_decref(json);
    buffer_deinit(&long_text);
}
END_TEST

START_TEST(nesting_in_the_source_is_bounded)
{
    struct buffer source = {0};
    ck_assert_int_eq(render_nested("{% if yes %}", "x", "{% endif %}", 50), 0);
    ck_assert_int_eq(render_nested("{% if yes %}", "x", "{% endif %}", 5000), -EINVAL);
    buffer_append(&source, "{% if no %}", 11);
    for (int i = 0; i < 5000; i++) /* the parser calls itself for each */
        buffer_append(&source, "{% elif no %}", 13);
    buffer_append(&source, "{% endif %}", 12);
    ck_assert_int_eq(render((const char *)source.data), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "deep"));
    source.len = 0;
    buffer_append(&source, "{{ ", 3);
    for (int i = 0; i < 20000; i++)
        buffer_append(&source, "[", 1);
    buffer_append(&source, "", 1);
    ck_assert_int_eq(render((const char *)source.data), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "deep"));
    source.len = 0;
    buffer_append(&source, "{{ 1", 4);
    for (int i = 0; i < 10000; i++) /* a chain is no nesting, but its tree is as deep */
        buffer_append(&source, "+1", 2);
    buffer_append(&source, " }}", 4);
    ck_assert_int_eq(render((const char *)source.data), -EMSGSIZE);
    source.len = 0;
    while (source.len <= JINJA_MAX_SOURCE)
        buffer_append(&source, "xxxxxxxxxxxxxxxx", 16);
    buffer_append(&source, "", 1);
    ck_assert_int_eq(render((const char *)source.data), -EMSGSIZE);
    buffer_deinit(&source);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, NULL, tear_down);
    tcase_add_test(tests, white_space_around_tags_goes_where_jinja_lets_it_go);
    tcase_add_test(tests, expressions_bind_and_compute_as_in_python);
    tcase_add_test(tests, statements_loop_set_and_call);
    tcase_add_test(tests, filters_tests_and_methods_do_what_jinjas_do);
    tcase_add_test(tests, every_test_has_its_names);
    tcase_add_test(tests, what_a_user_wrote_stays_marked_through_everything);
    tcase_add_test(tests, a_template_may_refuse_with_its_reason);
    tcase_add_test(tests, mistakes_are_told_with_their_line);
    tcase_add_test(tests, no_template_runs_without_bounds);
    tcase_add_test(tests, work_is_charged_before_it_is_done);
    tcase_add_test(tests, a_long_text_may_be_copied_more_often_than_a_short_template_may_take);
    tcase_add_test(tests, nesting_in_the_source_is_bounded);
}

int main(void)
{
    return run_tests("jinja", add);
}
