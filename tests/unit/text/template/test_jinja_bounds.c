/* SPDX-License-Identifier: MIT */
/* Where bounds lie, what they say, and that work is charged by its size. */

#include "common/amount.h"
#include "tests/unit/text/template/jinja_examples.h"

START_TEST(what_is_within_the_bounds_is_done)
{
    static const struct example examples[] = {
        {"{{ '{:4096}'.format('a') | length }} {{ '{:.100f}'.format(0.5) | length }} {{ ('%4096d' % 1) | "
         "length }} {{ ('%.100f' % 0.5) | length }}",
         "4096 102 4096 102"},
        {"{{ 'a\\nb' | indent(64) | length }} {{ [1] | tojson(indent=64) | length }}", "67 69"},
        {"{{ 1 | round(18) }} {{ 1 | round(-18) }} {{ 'z' | int(0, 36) }} {{ '11' | int(0, 2) }}",
         "1 0 35 3"},
        {"{{ strftime_now('a' * 127) | length }} {{ strftime_now('%Y' * 63) | length }}", "127 252"},
        {"{{ x[1:] is defined }}{{ none[1:] is defined }}{{ map[1:] is defined }}", "FalseFalseFalse"},
        {"{% for i in items %}{% filter upper %}{% if i == 1 %}{% break %}{% endif %}a{% endfilter %}{% "
         "endfor %}",
         "A"},
        {"{{ 9223372036854775807 - 1 + 1 }} {{ -9223372036854775807 - 1 }} {{ 3037000499 * 3037000499 }}",
         "9223372036854775807 -9223372036854775808 9223372030926249001"},
        {"{{ [] * 9223372036854775807 }}{{ 9223372036854775807 * () }}{{ [1] * -9223372036854775807 }}",
         "[]()[]"},
        {"{{ '9223372036854775807' | int(7) }} {{ '9223372036854775808' | int(7) }}",
         "9223372036854775807 7"},
    };
    EXPECT_ALL(examples);
}
END_TEST

#define NAME_OF_64 "abcdefghijklmnopabcdefghijklmnopabcdefghijklmnopabcdefghijklmnop"

START_TEST(what_is_beyond_the_bounds_is_refused_by_its_reason)
{
    static const struct example failures[] = {
        {"{{ " NAME_OF_64 "() }}", "\"" NAME_OF_64 "\" is called but not defined"},
        {"{{ " NAME_OF_64 "q() }}", "\"" NAME_OF_64 "\" is called but not defined"},
        {"{{ '{:4097}'.format('a') }}", "a width of at most 4096 and a precision of at most 100"},
        {"{{ '{:.101f}'.format(0.5) }}", "a width of at most 4096 and a precision of at most 100"},
        {"{{ '%4097d' % 1 }}", "a width of at most 4096"},
        {"{{ '%.101f' % 1.5 }}", "a precision of at most 100"},
        {"{{ '{:2147483648}'.format('a') }}", "a number in a format is too large"},
        {"{{ '{:2147483647}'.format('a') }}", "a width of at most 4096"},
        {"{{ '{:{:{}}}'.format(1, 2, 3) }}", "formats nested too deeply"},
        {"{{ [1] | tojson(indent=65) }}", "tojson takes an indent of 0 to 64"},
        {"{{ [1] | tojson(separators=(',',)) }}", "tojson takes two separators"},
        {"{{ [1] | tojson(separators=(1, ',')) }}", "tojson takes two separators"},
        {"{{ [1] | tojson(separators=(',', 1)) }}", "tojson takes two separators"},
        {"{{ [1] | tojson(separators=5) }}", "tojson takes two separators"},
        {"{{ 1 | round(19) }}", "round takes a precision of -18 to 18"},
        {"{{ 1 | round(-19) }}", "round takes a precision of -18 to 18"},
        {"{{ '1' | int(0, 1) }}", "int takes a base of 2 to 36, or 0"},
        {"{{ '1' | int(0, 37) }}", "int takes a base of 2 to 36, or 0"},
        {"{{ '1' | int(0, -1) }}", "int takes a base of 2 to 36, or 0"},
        {"{{ strftime_now('a' * 128) }}", "strftime_now takes a format of at most 127 bytes"},
        {"{{ strftime_now() }}", "strftime_now takes a format of at most 127 bytes"},
        {"{{ 'a' | replace('a') }}", "replace takes two strings"},
        {"{{ 'a' | replace(none, 'b') }}", "replace takes two strings"},
        {"{{ 'a' | attr }}", "attr takes a name"},
        {"{{ 'a'.removesuffix() }}", "removeprefix and removesuffix take a string"},
        {"{{ 'a'.join() }}", "join takes a list"},
        {"{{ 'a'.rindex() }}", "find and index take a string"},
        {"{{ 'a'.count('') }}", "count takes a non-empty string"},
        {"{{ 'a'.ljust(5, '') }}", "padding takes a single character"},
        {"{{ items | select('nope') }}", "unknown test \"nope\""},
        {"{{ items | map }}", "map takes the name of a filter, or attribute="},
        {"{{ items | map('nope') }}", "map takes the name of a filter, or attribute="},
        {"{{ items | batch(0) }}", "batch takes the size of a group"},
        {"{{ range(1, 2, 3, 4) }}", "range takes one to three numbers"},
        {"{{ '%d' % 1e19 }}", "the format 'd' does not apply to a number"},
        {"{{ '%x' % 1.5 }}", "the format 'x' does not apply to a number"},
        {"{{ '{:=5}'.format('a') }}", "the format '=' does not apply to a string"},
        {"{{ '{:+}'.format('a') }}", "the format '+' does not apply to a string"},
        {"{{ '{:0=5}'.format('a') }}", "the format '=' does not apply to a string"},
        {"{{ '{:#5}'.format('a') }}", "the format '#' does not apply to a string"},
        {"{{ '{:05,}'.format('a') }}", "the format ',' does not apply to a string"},
        {"{{ '{:0}'.format(none) }}", "the format 's' does not apply to none"},
        {"{{ '{:5}'.format(items) }}", "the format 's' does not apply to a list"},
        {"{{ '{:c}'.format(1) }}", "the format 'c' does not apply to a whole number"},
        {"{{ '{:é}'.format(1) }}", "invalid format"},
        {"{{ '%\\x01' % 1 }}", "the format '?' does not apply to a whole number"},
        {"{{ 9223372036854775807 + 1 }}", "a number is too large"},
        {"{{ -9223372036854775807 - 2 }}", "a number is too large"},
        {"{{ 3037000500 * 3037000500 }}", "a number is too large"},
        {"{{ (-9223372036854775807 - 1) // -1 }}", "a number is too large"},
        {"{{ 2 ** 63 }}", "a number is too large"},
        {"{{ (-9223372036854775807 - 1) | abs }}", "a number is too large"},
        {"{{ 9223372036854775808 }}", "line 1: the number 9223372036854775808 is too large"},
        {"{% set a, b %}x{% endset %}", "expected \"=\" before \"%}\""},
        {"{{ 'abc'[1:2:3:4] }}", "expected \"]\" before \"4\""},
        {"{{ 'abc'[::-9223372036854775807 - 1] }}", "slice step is out of range"},
    };
    static const struct example refusals[] = {
        {"{{ raise_exception('a\\nb\\x1fc\\x20d') }}", "a b c d"},
        {"{{ raise_exception('') }}", "raise_exception without a message"},
    };
    EXPECT_FAILURES(failures, -EINVAL);
    EXPECT_FAILURES(refusals, JINJA_E_REFUSED);
}
END_TEST

/* A list in a list, n times, and what is done with it. */
static int render_list(int n, const char *what)
{
    char source[256];
    snprintf(
        source, sizeof source,
        "{%% set ns = namespace(l=[], k=[]) %%}{%% for i in range(%d) %%}{%% set ns.l = [ns.l] %%}{%% set "
        "ns.k = [ns.k] %%}{%% endfor %%}{{ %s }}",
        n, what);
    return render(source);
}

START_TEST(values_are_walked_a_hundred_levels_down)
{
    static const char *const walks[] = {"ns.l",           "ns.l | tojson",  "ns.l == ns.k",  "ns.l | string",
                                        "'%r' % (ns.l,)", "{'a': ns.l[0]}", "ns.l in [ns.k]"};
    for (size_t i = 0; i < sizeof walks / sizeof walks[0]; i++) {
        ck_assert_msg(render_list(98, walks[i]) == 0, "%s: %s", walks[i], err.text);
        ck_assert_msg(render_list(102, walks[i]) == -EMSGSIZE, "%s", walks[i]);
        ck_assert_ptr_nonnull(strstr(err.text, "a value is nested more than 100 deep"));
    }
    ck_assert_int_eq(render_list(100, "ns.l"), 0);
    ck_assert_uint_eq(text.len, 202);
    ck_assert_int_eq(render_list(101, "ns.l"), -EMSGSIZE);
    ck_assert_int_eq(render_list(100, "ns.l == ns.k"), 0);
    ck_assert_int_eq(render_list(101, "ns.l == ns.k"), -EMSGSIZE);
    ck_assert_int_eq(render_list(90, "ns.l < [ns.k]"), 0);
    ck_assert_int_eq(render_list(200, "ns.l < [ns.k]"), -EMSGSIZE);
}
END_TEST

/* What comes from outside is as deep at most. */
START_TEST(variables_are_a_hundred_levels_deep)
{
    static const char source[] = "{{ v | length }}";
    for (int n = 99; n <= 103; n++) {
        char json_text[256];
        struct jinja_template *jinja;
        const struct tm date = {.tm_year = 126};
        memset(json_text, '[', (size_t)n);
        memset(json_text + n, ']', (size_t)n);
        json_t *json = json_loadb(json_text, 2 * (size_t)n, 0, NULL);
        const struct jinja_variable variable = {"v", json, true};
        ck_assert_int_eq(jinja_template_new(bytes_of_string(source), &jinja, &err), 0);
        text.len = marks.len = 0;
        ck_assert_int_eq(jinja_render(jinja, &variable, 1, &date, &text, &marks, &err),
                         n <= 101 ? 0 : -EMSGSIZE);
        jinja_template_free(jinja);
        json_decref(json);
    }
    ck_assert_str_eq(err.text, "line 1: a value is nested more than 100 deep");
}
END_TEST

/* "begin", n times "part", "end". */
static int render_many(const char *begin, const char *part, int n, const char *end)
{
    struct buffer source = {0};
    buffer_append(&source, begin, strlen(begin));
    for (int i = 0; i < n; i++)
        buffer_append(&source, part, strlen(part));
    buffer_append(&source, end, strlen(end) + 1);
    int r = render((const char *)source.data);
    buffer_deinit(&source);
    return r;
}

START_TEST(filters_of_filters_are_bounded_in_depth)
{
    static const char begin[] =
        "{% set ns = namespace(l=[]) %}{% for i in range(600) %}{% set ns.l = [ns.l] %}"
        "{% endfor %}{{ ns.l | map(";
    ck_assert_int_eq(render_many("{% filter upper", " | lower", 200, " %}A{% endfilter %}"), 0);
    ck_assert_str_eq((const char *)text.data, "a");
    ck_assert_int_eq(render_many("{% filter upper", " | lower", 600, " %}A{% endfilter %}"), -EMSGSIZE);
    ck_assert_str_eq(err.text, "line 1: nested more than 500 deep");
    ck_assert_int_eq(render_many(begin, "'map', ", 90, "'list') | list | length }}"), 0);
    ck_assert_str_eq((const char *)text.data, "1");
    ck_assert_int_eq(render_many(begin, "'map', ", 590, "'list') | list | length }}"), -EMSGSIZE);
    ck_assert_str_eq(err.text, "line 1: nested more than 500 deep");
    ck_assert_int_eq(render_many("{{ ", "[", 200, " }}"), -EINVAL);
    ck_assert_str_eq(err.text, "line 1: '}' where ']' was expected");
    ck_assert_int_eq(render_many("{{ ", "[", 201, " }}"), -EINVAL);
    ck_assert_str_eq(err.text, "line 1: brackets more than 200 deep");
}
END_TEST

/* What is charged for `what` of the text s. */
static size_t work_of(const char *what)
{
    char source[256];
    snprintf(source, sizeof source, "{%% set s = 'abc ' * 5000 %%}{{ (%s) is defined }}", what);
    ck_assert_msg(render(source) == 0, "%s: %s", what, err.text);
    return failing_calls.work;
}

START_TEST(work_is_charged_by_the_length_of_its_text)
{
    static const struct {
        const char *what;
        double steps; /* for a byte, about */
    } operations[] = {
        {"s == s ~ ''", 0.032},
        {"s ~ 'x'", 0.016},
        {"s < s", 0.016},
        {"'z' in s", 0.016},
        {"s | length", 0.016},
        {"s | upper", 1.1},
        {"s | title", 1.1},
        {"s | trim", 0.063},
        {"s | trim('z')", 0.063},
        {"s.strip('x' * 9999)", 1.1},
        {"s | replace('z', 'y')", 0.078},
        {"s | replace('b', 'yy')", 0.56},
        {"s.replace('', '-')", 2.1},
        {"s.split()", 0.31},
        {"s.split('z')", 0.063},
        {"s.split('b')", 0.31},
        {"s.rsplit('z', 1)", 0.13},
        {"s.rsplit(none, 5000)", 0.31},
        {"s.splitlines()", 0.063},
        {"s.partition('z')", 0.063},
        {"s.find('z')", 0.063},
        {"s.count('b')", 0.063},
        {"s.startswith(s)", 0.016},
        {"s.removeprefix(s)", 0.016},
        {"s.isspace()", 0.063},
        {"s.islower()", 2.3},
        {"s[::-1]", 3},
        {"s[1:]", 0.016},
        {"s | list", 1},
        {"s | join", 3},
        {"s | wordcount", 0.063},
        {"s | tojson", 0.016},
        {"s | e", 1},
        {"s | center(20009)", 0.032},
        {"s.zfill(20009)", 0.048},
        {"s | indent", 0.016},
        {"'%s' % s", 0.031},
        {"'{}'.format(s)", 0.031},
        {"s * 2", 0.032},
        {"'a' * 9999", 1},
        {"[1] * 9999", 0.5},
        {"range(9999)", 0.5},
        {"{s: 1}[s]", 0.016},
    };
    const size_t nothing = work_of("1");
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
        const double steps = (double)(work_of(operations[i].what) - nothing) / 20000;
        ck_assert_msg(steps > operations[i].steps / 1.5 && steps < operations[i].steps * 1.5, "%s: %g",
                      operations[i].what, steps);
    }
}
END_TEST

/* The list l has the numbers 0 … 999, the mapping d has as many members. */
START_TEST(work_is_charged_by_the_number_of_items)
{
    static const struct {
        const char *what;
        double steps; /* for an item, about */
    } operations[] = {
        {"l | length", 0},
        {"l | list", 0},
        {"l | first", 0},
        {"l | last", 0},
        {"l | reverse", 1},
        {"l[::2]", 0.5},
        {"l[:500]", 0.5},
        {"l + l", 2},
        {"l * 2", 2},
        {"l == l", 1},
        {"l < l", 1},
        {"999 in l", 1},
        {"l.index(999)", 1},
        {"l.count(999)", 1},
        {"l | select", 2},
        {"l | select('odd')", 2.5},
        {"l | reject('odd')", 2.5},
        {"l | selectattr('x')", 1},
        {"l | map('abs')", 1},
        {"l | map(attribute='x')", 1},
        {"l | sort", 11},
        {"l | sort(reverse=true)", 11},
        {"l | min", 1},
        {"l | max", 1},
        {"l | sum", 1},
        {"l | unique", 502},
        {"l | batch(10)", 1.1},
        {"l | batch(2000, 0)", 2},
        {"l | join", 2},
        {"l | string", 3},
        {"l | tojson", 3},
        {"d | list", 1},
        {"d | items", 3},
        {"d.items()", 3},
        {"d.keys()", 1},
        {"d.values()", 1},
        {"d.get(999)", 1.3},
        {"d[999]", 1.3},
        {"999 in d", 2},
        {"dict(d)", 625},
        {"d == d", 752},
        {"d | dictsort", 14},
        {"d | string", 6},
        {"d | tojson", 9},
    };
    static char begins[24000], source[25000];
    size_t n = (size_t)snprintf(begins, sizeof begins, "{%% set l = range(1000) | list %%}{%% set d = {");
    for (int i = 0; i < 1000; i++)
        n += (size_t)snprintf(begins + n, sizeof begins - n, "%d: %d, ", i, i);
    snprintf(begins + n, sizeof begins - n, "} %%}");
    snprintf(source, sizeof source, "%s{{ (1) is defined }}", begins);
    ck_assert_msg(render(source) == 0, "%s", err.text);
    const size_t nothing = failing_calls.work;
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
        snprintf(source, sizeof source, "%s{{ (%s) is defined }}", begins, operations[i].what);
        ck_assert_msg(render(source) == 0, "%s: %s", operations[i].what, err.text);
        const double steps = (double)(failing_calls.work - nothing) / 1000;
        ck_assert_msg(steps > operations[i].steps / 1.2 - 0.1 && steps < operations[i].steps * 1.2 + 0.1,
                      "%s: %g", operations[i].what, steps);
    }
}
END_TEST

START_TEST(steps_are_bounded_by_five_million)
{
    static const struct example within[] = {{"{{ ('x' * 2400000) | length }}", "2400000"}};
    static const struct example beyond[] = {
        {"{{ 'x' * 2600000 }}", "line 1: the template takes more than 5000000 steps"}};
    ck_assert_int_eq(render(within[0].source), 0);
    ck_assert_str_eq((const char *)text.data, within[0].expected);
    EXPECT_FAILURES(beyond, -EMSGSIZE);
}
END_TEST

/* 64 MiB, and 64 bytes for each byte of the variables, of which a value has 32 and its text. */
START_TEST(memory_is_bounded_by_what_the_template_was_given)
{
    static const char source[] = "{% set ns = namespace(s='x' * 999) %}{% for i in range(60) %}"
                                 "{% set ns.s = ns.s ~ ns.s %}{% endfor %}";
    static const struct {
        const char *variable;
        unsigned bytes;
    } cases[] = {
        {"1", 32}, {"\"four\"", 36}, {"[\"ab\", null]", 98}, {"{\"key\": [\"ab\", {\"e\": 1.5}]}", 166}};
    struct jinja_template *jinja;
    const struct tm date = {.tm_year = 126};
    ck_assert_int_eq(jinja_template_new(bytes_of_string(source), &jinja, &err), 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char says[128];
        json_t *json = json_loads(cases[i].variable, JSON_DECODE_ANY, NULL);
        const struct jinja_variable variables[] = {{"v", json, true}, {"w", json, false}};
        text.len = marks.len = 0;
        ck_assert_int_eq(jinja_render(jinja, variables, 2, &date, &text, &marks, &err), -EMSGSIZE);
        snprintf(says, sizeof says, "line 1: the template needs more than %s",
                 amount_of_bytes((64u << 20) + 64 * 2 * cases[i].bytes).text);
        ck_assert_str_eq(err.text, says);
        json_decref(json);
    }
    jinja_template_free(jinja);
}
END_TEST

START_TEST(a_template_has_a_quarter_of_a_mebibyte_at_most)
{
    char *source = malloc(JINJA_MAX_SOURCE + 2);
    memset(source, 'x', JINJA_MAX_SOURCE + 1);
    source[JINJA_MAX_SOURCE + 1] = '\0';
    ck_assert_int_eq(render(source), -EMSGSIZE);
    ck_assert_str_eq(err.text, "the template has 262145 bytes, at most 262144 are allowed");
    source[JINJA_MAX_SOURCE] = '\0';
    ck_assert_int_eq(render(source), 0);
    ck_assert_uint_eq(text.len, JINJA_MAX_SOURCE);
    free(source);
}
END_TEST

/* The more names and members there are, the more is charged for one. */
START_TEST(work_is_charged_by_the_number_of_names)
{
    const size_t nothing = work_of("1");
    static char source[40000];
    size_t n = 0;
    for (int i = 0; i < 1000; i++)
        n += (size_t)snprintf(source + n, sizeof source - n, "{%% set n%d = 1 %%}", i);
    snprintf(source + n, sizeof source - n, "{{ zz is defined }}");
    ck_assert_int_eq(render(source), 0);
    ck_assert_uint_gt(failing_calls.work, nothing + 1000 * 1000 / 8); /* each name was looked for */
    ck_assert_uint_lt(failing_calls.work, nothing + 1000 * 1000 * 2);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, NULL, tear_down);
    tcase_add_test(tests, what_is_within_the_bounds_is_done);
    tcase_add_test(tests, what_is_beyond_the_bounds_is_refused_by_its_reason);
    tcase_add_test(tests, values_are_walked_a_hundred_levels_down);
    tcase_add_test(tests, variables_are_a_hundred_levels_deep);
    tcase_add_test(tests, filters_of_filters_are_bounded_in_depth);
    tcase_add_test(tests, work_is_charged_by_the_length_of_its_text);
    tcase_add_test(tests, work_is_charged_by_the_number_of_items);
    tcase_add_test(tests, work_is_charged_by_the_number_of_names);
    tcase_add_test(tests, steps_are_bounded_by_five_million);
    tcase_add_test(tests, memory_is_bounded_by_what_the_template_was_given);
    tcase_add_test(tests, a_template_has_a_quarter_of_a_mebibyte_at_most);
}

int main(void)
{
    return run_tests("jinja_bounds", add);
}
