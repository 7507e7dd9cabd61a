/* SPDX-License-Identifier: MIT */
/* JSON Schema keyword by keyword: what it lets through and what it keeps out. Schemas that are refused
 * are in test_json_schema_refused.c. */

#include "tests/unit/run.h"
#include "tests/unit/text/grammar/accepts.h"

#define N(cases) (sizeof(cases) / sizeof *(cases))

START_TEST(any_object_is_any_json_object)
{
    static const char *const yes[] = {
        "{}",
        "{ }",
        "{\n  \"a\": [1, -2.5e+10, true, null, {\"b\": \"\\u00e9\\ud83d\\ude00\\n\"}]\n}",
        "{\"\":\"é😀\"}",
        "{\"a\":0.5,\"b\":[],\"a\":{}}",
        NULL};
    static const char *const no[] = {"",
                                     "[]",
                                     "1",
                                     "{",
                                     "{\"a\"}",
                                     "{\"a\":}",
                                     "{\"a\":1,}",
                                     "{\"a\":01}",
                                     "{\"a\":1.}",
                                     "{\"a\":+1}",
                                     "{'a':1}",
                                     "{\"a\":\"\n\"}",
                                     "{\"a\":\"\\x\"}",
                                     "{\"a\":\"\\ud800\"}",
                                     "{\"a\":\"\\u0000\"}",
                                     "{\"a\":\"\\ude00\"}",
                                     "{} ",
                                     "{\"a\":tru}",
                                     "{\"a\":1e999}",
                                     "{\"a\":\"\x80\"}",
                                     NULL};
    struct grammar *grammar = grammar_of(GRAMMAR_JSON, "");
    for (size_t i = 0; yes[i]; i++)
        ck_assert_msg(accepts(grammar, yes[i]), "%s", yes[i]);
    for (size_t i = 0; no[i]; i++)
        ck_assert_msg(!accepts(grammar, no[i]), "%s", no[i]);
    grammar_free(grammar);
}
END_TEST

START_TEST(types)
{
    static const struct accepted cases[] = {
        {"{}", {"{}", "[1]", "\"a\"", "1", "null", "true"}, {"", "a"}},
        {"true", {"1"}, {""}},
        {"{\"enum\":[3.14,1e300]}", {"3.14"}, {"3.1400000000000001", "3.1"}},
        {"{\"const\":[0.1,19.99]}", {"[0.1,19.99]"}, {"[0.10000000000000001,19.989999999999998]"}},
        {"{\"type\":\"null\"}", {"null"}, {"0", "\"\"", "nul"}},
        {"{\"type\":\"boolean\"}", {"true", "false"}, {"1", "\"true\""}},
        {"{\"type\":\"string\"}", {"\"\"", "\"a b\"", "\"\\\"\""}, {"1", "a", "\"", "\"a\"b"}},
        {"{\"type\":\"integer\"}", {"0", "-5", "123456789012345678"}, {"1.0", "01", "\"1\"", "1e3", "--1"}},
        {"{\"type\":\"number\"}", {"0", "-5.25", "1e5", "1E-5"}, {"\"1\"", ".5", "5."}},
        {"{\"type\":\"array\"}", {"[]", "[1, \"a\"]"}, {"{}", "[1,]"}},
        {"{\"type\":\"object\"}", {"{}", "{\"a\": 1}"}, {"[]"}},
        {"{\"type\":[\"string\",\"null\"]}", {"\"a\"", "null"}, {"1", "[]"}},
        {"{\"type\":[\"integer\",\"string\"],\"minimum\":3}", {"3", "\"a\""}, {"2"}},
    };
    check_accepted(GRAMMAR_SCHEMA, cases, N(cases));
}
END_TEST

START_TEST(objects)
{
    static const struct accepted cases[] = {
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":{\"type\":\"string\"}},"
         "\"required\":[\"a\",\"b\"]}",
         {"{\"a\":1,\"b\":\"x\"}", "{ \"a\": 1, \"b\": \"x\" }", "{\n  \"a\": 1,\n  \"b\": \"x\"\n}",
          "{\"b\":\"x\",\"a\":1}", "{\"a\":1,\"b\":\"x\",\"c\":1}", "{\"c\":[],\"b\":\"x\",\"d\":0,\"a\":1}"},
         {"{\"a\":1}", "{\"a\":\"1\",\"b\":\"x\"}", "{}", "{,\"a\":1,\"b\":\"x\"}",
          "{\"a\":1,\"b\":\"x\",\"a\":1}", "{\"a\":1,\"b\":\"x\",}", "{\"a\":1 \"b\":\"x\"}"}},
        /* Strict: all have to come, and no others. */
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":{\"type\":\"string\"}},"
         "\"required\":[\"b\",\"a\"],\"additionalProperties\":false}",
         {"{\"a\":1,\"b\":\"x\"}"},
         {"{\"b\":\"x\",\"a\":1}", "{\"a\":1,\"b\":\"x\",\"c\":1}", "{\"a\":1}"}},
        {"{\"type\":\"object\",\"properties\":{\"a\":{},\"b\":{}},\"additionalProperties\":false}",
         {"{}", "{\"b\":1}", "{\"b\":1,\"a\":2}", "{\"a\":1,\"b\":2}"},
         {"{\"b\":1,\"b\":1}", "{\"c\":1}"}},
        {"{\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":{\"type\":\"string\"},\"c\":{\"type\":\"null\"}"
         "}}",
         {"{}", "{\"a\":1}", "{\"b\":\"\"}", "{\"c\":null}", "{\"a\":1,\"c\":null}",
          "{\"a\":1,\"b\":\"\",\"c\":null}"},
         {"{\"a\":1,}", "{,\"b\":\"\"}", "{\"c\":null,\"a\":\"\"}"}},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":{\"type\":\"integer\"}},"
         "\"required\":[\"b\"]}",
         {"{\"b\":1}", "{\"a\":1,\"b\":1}"},
         {"{\"a\":1}", "{}"}},
        {"{\"type\":\"object\",\"properties\":{\"ab\":{\"type\":\"integer\"},\"abc\":{\"type\":\"integer\"}},"
         "\"additionalProperties\":{\"type\":\"boolean\"}}",
         {"{}", "{\"ab\":1}", "{\"x\":true}", "{\"ab\":1,\"x\":true,\"a\":false,\"abcd\":true,\"\":true}",
          "{\"abx\":true}"},
         {"{\"ab\":true}", "{\"abc\":true}", "{\"ab\":1,\"abc\":true}", "{\"x\":1}", "{\"a\\u0062\":true}",
          "{\"x\\u00e9\":1}"}},
        /* In any order, one the beginning of another. */
        {"{\"properties\":{\"ba\":{\"const\":1},\"abc\":{\"const\":1},\"b\":{\"const\":1},\"a\":{\"const\":1}"
         ","
         "\"ab\":{\"const\":1},\"aa\":{\"const\":1}},\"required\":[\"c\","
         "\"ac\"],"
         "\"additionalProperties\":{\"type\":\"null\"}}",
         {"{\"a\":1,\"c\":null,\"ac\":null}",
          "{\"c\":null,\"ac\":null,\"abd\":null,\"bb\":null,\"d\":null,\"acc\":null}",
          "{\"c\":null,\"ac\":null,\"\":null,\"baa\":null,\"abcd\":null}"},
         {"{\"c\":null,\"ac\":null,\"a\":null}", "{\"c\":null,\"ac\":null,\"aa\":null}",
          "{\"c\":null,\"ac\":null,\"ab\":null}", "{\"c\":null,\"ac\":null,\"abc\":null}",
          "{\"c\":null,\"ac\":null,\"b\":null}", "{\"c\":null,\"ac\":null,\"ba\":null}",
          "{\"c\":null,\"ac\":null,\"c\":null}", "{\"c\":null,\"ac\":null,\"ac\":null}"}},
        {"{\"type\":\"object\",\"additionalProperties\":{\"type\":\"integer\"}}",
         {"{}", "{\"k\":1,\"l\":2}"},
         {"{\"k\":\"\"}"}},
        {"{\"type\":\"object\",\"additionalProperties\":false}", {"{}", "{ }"}, {"{\"a\":1}"}},
        {"{\"type\":\"object\",\"required\":[\"x\",\"y\",\"x\"],\"additionalProperties\":true}",
         {"{\"x\":1,\"y\":[]}", "{\"x\":1,\"y\":2,\"z\":3}"},
         {"{\"x\":1}", "{\"x\":1,\"y\":2,\"x\":3}"}},
        {"{\"properties\":{\"a\\\"b\\\\\":{\"type\":\"null\"},\"é\":{\"const\":1}},\"required\":["
         "\"a\\\"b\\\\\"]}",
         {"{\"a\\\"b\\\\\":null}", "{\"a\\\"b\\\\\":null,\"é\":1}"},
         {"{\"é\":1}"}},
        {"{\"properties\":{\"a\":false,\"b\":true}}", {"{}", "{\"b\":[1]}"}, {"{\"a\":1}"}},
        {"{\"properties\":{\"o\":{\"properties\":{\"p\":{\"properties\":{\"q\":{\"const\":7}},\"required\":["
         "\"q\"]}},\"required\":[\"p\"]}},\"required\":[\"o\"]}",
         {"{\"o\":{\"p\":{\"q\":7}}}", "{\"o\": {\"p\": {\"q\": 7}}}"},
         {"{\"o\":{\"p\":{}}}"}},
    };
    check_accepted(GRAMMAR_SCHEMA, cases, N(cases));
}
END_TEST

START_TEST(arrays)
{
    static const struct accepted cases[] = {
        {"{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}",
         {"[]", "[1]", "[1, 2,3]", "[\n 1\n]"},
         {"[\"a\"]", "[1 2]", "[,1]"}},
        {"{\"items\":{\"type\":\"null\"},\"minItems\":2,\"maxItems\":3}",
         {"[null,null]", "[null,null,null]"},
         {"[]", "[null]", "[null,null,null,null]"}},
        {"{\"items\":{\"type\":\"null\"},\"maxItems\":1}", {"[]", "[null]"}, {"[null,null]"}},
        {"{\"items\":{\"type\":\"null\"},\"maxItems\":0}", {"[]"}, {"[null]"}},
        {"{\"items\":{\"type\":\"null\"},\"minItems\":1}", {"[null]", "[null,null,null]"}, {"[]"}},
        {"{\"prefixItems\":[{\"type\":\"string\"},{\"type\":\"integer\"}],\"minItems\":2,\"maxItems\":2}",
         {"[\"a\",1]"},
         {"[1,\"a\"]", "[\"a\"]", "[\"a\",1,1]", "[]"}},
        {"{\"prefixItems\":[{\"type\":\"string\"},{\"type\":\"integer\"}]}",
         {"[]", "[\"a\"]", "[\"a\",1]", "[\"a\",1,null]"},
         {"[1]", "[\"a\",\"b\",2]"}},
        {"{\"prefixItems\":[{\"type\":\"string\"}],\"items\":{\"type\":\"boolean\"},\"minItems\":2}",
         {"[\"a\",true]", "[\"a\",true,false]"},
         {"[\"a\"]", "[\"a\",1]"}},
        {"{\"prefixItems\":[{\"type\":\"string\"}],\"items\":false}", {"[]", "[\"a\"]"}, {"[\"a\",1]"}},
        {"{\"type\":\"array\",\"items\":{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}}",
         {"[[1,2],[]]"},
         {"[1]"}},
    };
    check_accepted(GRAMMAR_SCHEMA, cases, N(cases));
}
END_TEST

/* Items that an array must contain so or so often, others between them; unlike items; and both with a length.
 */
START_TEST(arrays_that_are_counted)
{
    static const struct accepted cases[] = {
        {"{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"contains\":{\"const\":2}}",
         {"[2]", "[1,2]", "[2,1]", "[1,2,3,2]"},
         {"[]", "[1]", "[1,3]", "[\"2\"]"}},
        {"{\"type\":\"array\",\"items\":{\"enum\":[1,2]},\"contains\":{\"const\":2},\"minContains\":2,"
         "\"maxContains\":3}",
         {"[2,2]", "[1,2,1,2]", "[2,1,2,2,1]", "[2,2,2]"},
         {"[]", "[2]", "[1,2]", "[2,2,2,2]", "[2,1,2,2,2]", "[2,3,2]"}},
        {"{\"type\":\"array\",\"items\":{\"enum\":[1,2]},\"contains\":{\"const\":2},\"minContains\":0,"
         "\"maxContains\":1}",
         {"[]", "[1]", "[2]", "[1,2,1]"},
         {"[2,2]", "[2,1,2]"}},
        {"{\"type\":\"array\",\"items\":{\"enum\":[1,2,3]},\"allOf\":[{\"contains\":{\"const\":1}},"
         "{\"contains\":{\"const\":2}}],\"maxItems\":3}",
         {"[1,2]", "[2,1]", "[3,2,1]", "[1,2,2]"},
         {"[1]", "[2,2]", "[1,3]", "[1,2,3,3]"}},
        {"{\"type\":\"array\",\"prefixItems\":[{\"const\":2}],\"items\":{\"enum\":[1,2]},\"contains\":"
         "{\"const\":2},\"minContains\":2}",
         {"[2,2]", "[2,1,2]"},
         {"[2]", "[1,2]", "[2,1]"}},
        {"{\"type\":\"array\",\"items\":{\"enum\":[1,2,3]},\"uniqueItems\":true}",
         {"[]", "[2]", "[1,3]", "[3,2,1]"},
         {"[1,1]", "[1,2,1]", "[4]"}},
        {"{\"type\":\"array\",\"items\":{\"type\":\"boolean\"},\"uniqueItems\":true,\"minItems\":2}",
         {"[true,false]", "[false,true]"},
         {"[true]", "[true,true]", "[true,false,true]"}},
    };
    check_accepted(GRAMMAR_SCHEMA, cases, N(cases));
}
END_TEST

START_TEST(strings)
{
    static const struct accepted cases[] = {
        {"{\"type\":\"string\",\"minLength\":2,\"maxLength\":3}",
         {"\"ab\"", "\"é😀x\"", "\"\\n\\\"\""},
         {"\"a\"", "\"abcd\"", "\"\""}},
        {"{\"minLength\":1}", {"\"a\"", "\"abcdef\""}, {"\"\""}},
        {"{\"pattern\":\"^[a-z]+$\"}", {"\"abc\""}, {"\"\"", "\"aB\"", "\"a1\""}},
        {"{\"pattern\":\"b\"}", {"\"b\"", "\"abc\"", "\"\\\"b\\n\""}, {"\"ac\""}},
        {"{\"pattern\":\"^a|z$\"}", {"\"abc\"", "\"xyz\""}, {"\"ba\""}},
        {"{\"pattern\":\"^[\\\"\\\\\\\\\\n]$\"}", {"\"\\\"\"", "\"\\\\\"", "\"\\n\""}, {"\"\n\"", "\"a\""}},
        {"{\"format\":\"date\"}",
         {"\"2024-02-28\"", "\"1999-12-31\""},
         {"\"2024-13-01\"", "\"2024-02-30\"", "\"24-01-01\"", "\"0000-01-01\""}},
        {"{\"format\":\"time\"}", {"\"23:59:59Z\"", "\"01:02:03.5+02:00\""}, {"\"24:00:00Z\"", "\"01:02Z\""}},
        {"{\"format\":\"date-time\"}",
         {"\"2024-02-28T12:00:00Z\""},
         {"\"2024-02-28\"", "\"2024-02-28 12:00:00Z\""}},
        {"{\"format\":\"duration\"}", {"\"P3D\"", "\"PT5M\"", "\"P1Y2M3D\"", "\"P2W\""}, {"\"P\"", "\"3D\""}},
        {"{\"format\":\"uuid\"}",
         {"\"123e4567-e89b-12d3-a456-426614174000\""},
         {"\"123e4567e89b12d3a456426614174000\""}},
        {"{\"format\":\"email\"}",
         {"\"a.b@example.org\""},
         {"\"a\"", "\"a@b\"", "\"@b.org\"", "\".a@b.org\""}},
        {"{\"format\":\"hostname\"}", {"\"www.example.org\""}, {"\"-a.org\"", "\"a_b.org\""}},
        {"{\"format\":\"ipv4\"}",
         {"\"192.168.0.1\"", "\"255.255.255.255\""},
         {"\"256.1.1.1\"", "\"1.1.1\"", "\"01.1.1.1\""}},
        {"{\"format\":\"uri\"}",
         {"\"https://example.org/a/b?c=d#e\"", "\"http://a.b:80\""},
         {"\"example.org\"", "\"https://\""}},
    };
    check_accepted(GRAMMAR_SCHEMA, cases, N(cases));
}
END_TEST

START_TEST(numbers)
{
    static const struct accepted cases[] = {
        {"{\"type\":\"integer\",\"minimum\":0}", {"0", "7", "123456"}, {"-1", "-0"}},
        {"{\"type\":\"integer\",\"minimum\":-3,\"maximum\":12}",
         {"-3", "-1", "0", "9", "10", "12"},
         {"-4", "13", "20", "100", "012"}},
        {"{\"type\":\"integer\",\"exclusiveMinimum\":0,\"exclusiveMaximum\":10}", {"1", "9"}, {"0", "10"}},
        {"{\"type\":\"integer\",\"minimum\":1.5,\"maximum\":3.5}", {"2", "3"}, {"1", "4"}},
        {"{\"type\":\"integer\",\"exclusiveMinimum\":1.5}", {"2"}, {"1"}},
        {"{\"type\":\"integer\",\"maximum\":-5}", {"-5", "-123"}, {"-4", "0", "5"}},
        {"{\"type\":\"integer\",\"minimum\":437,\"maximum\":1205}",
         {"437", "999", "1000", "1199", "1205"},
         {"436", "1206", "43", "4370"}},
        {"{\"type\":\"number\",\"minimum\":0,\"maximum\":1}",
         {"0", "0.5", "1"},
         {"1.5", "-0.1", "2", "1.01"}},
        {"{\"type\":\"number\",\"exclusiveMinimum\":0}", {"0.001", "1", "5.5"}, {"0", "0.0", "-1", "0.000"}},
        {"{\"type\":\"number\",\"minimum\":-2,\"maximum\":2}",
         {"-2", "-1.5", "-0.5", "0", "1.999", "2"},
         {"-2.5", "2.5", "-3"}},
        {"{\"minimum\":3}", {"3", "3.5", "\"a\"", "{}", "null"}, {"2.9"}},
    };
    check_accepted(GRAMMAR_SCHEMA, cases, N(cases));
}
END_TEST

START_TEST(every_range_of_integers_has_all_of_its_numbers)
{
    for (int low = -25; low <= 25; low += 3)
        for (int high = low; high <= 130; high += 7) {
            char schema[96], number[16];
            snprintf(schema, sizeof schema, "{\"type\":\"integer\",\"minimum\":%d,\"maximum\":%d}", low,
                     high);
            struct grammar *grammar = grammar_of(GRAMMAR_SCHEMA, schema);
            for (int i = -40; i <= 150; i++) {
                snprintf(number, sizeof number, "%d", i);
                ck_assert_msg(accepts(grammar, number) == (i >= low && i <= high), "%s: %d", schema, i);
            }
            grammar_free(grammar);
        }
}
END_TEST

START_TEST(lists_of_values)
{
    static const struct accepted cases[] = {
        {"{\"enum\":[\"red\",\"re\",1,null,{\"a\":[1]}]}",
         {"\"red\"", "\"re\"", "1", "null", "{\"a\":[1]}"},
         {"\"r\"", "2", "red"}},
        {"{\"type\":\"string\",\"enum\":[\"a\",1]}", {"\"a\""}, {"1"}},
        {"{\"type\":[\"integer\",\"null\"],\"enum\":[1,2.0,null,\"x\"]}", {"1", "2.0", "null"}, {"\"x\""}},
        {"{\"const\":\"only \\\"this\\\"\"}", {"\"only \\\"this\\\"\""}, {"\"only\""}},
        {"{\"const\":false}", {"false"}, {"true"}},
    };
    check_accepted(GRAMMAR_SCHEMA, cases, N(cases));
}
END_TEST

START_TEST(schemas_together)
{
    static const struct accepted cases[] = {
        {"{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"null\"}],\"title\":\"t\",\"default\":null}",
         {"1", "null"},
         {"\"\""}},
        {"{\"oneOf\":[{\"const\":1},{\"const\":2},false]}", {"1", "2"}, {"3"}},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"const\":1},\"b\":{\"const\":2}},\"anyOf\":[{"
         "\"required\":[\"a\"]},{\"required\":[\"b\"]}]}",
         {"{\"a\":1}", "{\"b\":2}", "{\"a\":1,\"b\":2}"},
         {"{}"}},
        {"{\"allOf\":[{\"type\":\"object\",\"properties\":{\"a\":{\"const\":1}},\"required\":[\"a\"]},{"
         "\"properties\":{\"b\":{\"const\":2}},\"required\":[\"b\"]}]}",
         {"{\"a\":1,\"b\":2}"},
         {"{\"a\":1}", "{\"b\":2}"}},
        {"{\"allOf\":[{\"type\":\"number\"},{\"type\":\"integer\"},{\"minimum\":3}]}", {"3"}, {"2", "3.5"}},
        {"{\"allOf\":[{\"properties\":{\"a\":{\"type\":\"integer\"}}},{\"properties\":{\"a\":{\"minimum\":3}}"
         "}]}",
         {"{\"a\":3}"},
         {"{\"a\":2}", "{\"a\":3.5}"}},
        {"{\"$ref\":\"#/$defs/n\",\"description\":\"d\",\"$defs\":{\"n\":{\"type\":\"null\"}}}",
         {"null"},
         {"1"}},
        {"{\"$ref\":\"#/definitions/a~1b~0\",\"definitions\":{\"a/b~\":{\"const\":1}}}", {"1"}, {"2"}},
        {"{\"$ref\":\"#/$defs/l/1\",\"$defs\":{\"l\":[1,{\"const\":5}]}}", {"5"}, {"1"}},
        {"{\"properties\":{\"n\":{\"allOf\":[{\"$ref\":\"#/$defs/"
         "n\"}],\"title\":\"x\"}},\"$defs\":{\"n\":{\"enum\":[1,2]}}}",
         {"{\"n\":1}"},
         {"{\"n\":3}"}},
        {"{\"$ref\":\"#/$defs/n\",\"minimum\":3,\"$defs\":{\"n\":{\"type\":\"integer\"}}}", {"3"}, {"2"}},
        {"{\"properties\":{\"v\":{\"type\":\"integer\"},\"next\":{\"anyOf\":[{\"$ref\":\"#\"},{\"type\":"
         "\"null\"}]}},\"required\":[\"v\"]}",
         {"{\"v\":1}", "{\"v\":1,\"next\":null}", "{\"v\":1,\"next\":{\"v\":2,\"next\":{\"v\":3}}}"},
         {"{\"next\":null}", "{\"v\":1,\"next\":{}}"}},
        {"{\"$ref\":\"#/$defs/tree\",\"$defs\":{\"tree\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/"
         "tree\"}}}}",
         {"[]", "[[],[[]]]"},
         {"[1]", "[[]"}},
    };
    check_accepted(GRAMMAR_SCHEMA, cases, N(cases));
}
END_TEST

START_TEST(schemas_that_hold_together)
{
    static const struct accepted cases[] = {
        /* A member that would never end may not begin. */
        {"{\"properties\":{\"a\":{\"$ref\":\"#/$defs/e\"},\"f\":{\"$ref\":\"#/$defs/"
         "f\"}},\"$defs\":{\"e\":{\"type\":"
         "\"array\",\"items\":{\"$ref\":\"#/$defs/"
         "f\"},\"minItems\":1},\"f\":{\"type\":\"object\",\"properties\":{\"x\":{"
         "\"$ref\":\"#/$defs/e\"}},\"required\":[\"x\"]}}}",
         {"{}", "{\"b\":1}"},
         {"{\"a\":[]}", "{\"a\":[{\"x\":[]}]}", "{\"f\":{}}"}},
        {"{\"allOf\":[{\"type\":[\"string\",\"integer\",\"null\"]},{\"type\":[\"number\",\"null\"]}]}",
         {"1", "null"},
         {"\"a\"", "1.5"}},
        {"{\"allOf\":[{\"type\":\"number\"},{\"type\":[\"integer\",\"number\"]}]}", {"1.5", "2"}, {"null"}},
        {"{\"allOf\":[true,{\"type\":\"null\"},true]}", {"null"}, {"1"}},
        {"{\"allOf\":[{\"description\":\"a\"},{\"description\":\"b\",\"type\":\"null\"}]}", {"null"}, {"1"}},
        {"{\"allOf\":[{\"allOf\":[{\"type\":\"integer\"}]},{\"allOf\":[{\"minimum\":3}]}]}",
         {"3"},
         {"2", "3.5"}},
        {"{\"allOf\":[{\"properties\":{\"a\":true}},{\"properties\":{\"a\":{\"type\":\"null\"}}}]}",
         {"{\"a\":null}"},
         {"{\"a\":1}"}},
        {"{\"allOf\":[{\"properties\":{\"a\":{\"type\":\"null\"}}},{\"properties\":{\"a\":true}}]}",
         {"{\"a\":null}"},
         {"{\"a\":1}"}},
        {"{\"allOf\":[{\"properties\":{\"a\":{\"minimum\":2}}},{\"properties\":{\"a\":{\"maximum\":3}}}],"
         "\"required\":[\"a\"]}",
         {"{\"a\":2}", "{\"a\":3}"},
         {"{\"a\":1}", "{\"a\":4}", "{}"}},
        {"{\"allOf\":[{\"properties\":{\"a\":{},\"b\":{}},\"required\":[\"a\"]},{\"required\":[\"b\"]}]}",
         {"{\"a\":1,\"b\":2}"},
         {"{\"a\":1}", "{\"b\":1}"}},
        {"{\"properties\":{\"a\":{\"type\":\"null\"}},\"required\":[\"b\"],"
         "\"additionalProperties\":{\"type\":\"boolean\"}}",
         {"{\"b\":true}", "{\"a\":null,\"b\":true,\"c\":false}"},
         {"{\"b\":1}", "{\"a\":null}", "{\"b\":true,\"c\":1}"}},
        {"{\"oneOf\":[false,{\"type\":\"null\"}]}", {"null"}, {"1"}},
        {"{\"type\":\"integer\",\"anyOf\":[{\"maximum\":1},{\"minimum\":8}]}", {"1", "8"}, {"2", "7", "0.5"}},
    };
    check_accepted(GRAMMAR_SCHEMA, cases, N(cases));
}
END_TEST

START_TEST(lists_are_narrowed_by_their_type)
{
    static const struct accepted cases[] = {
        {"{\"type\":[\"object\",\"boolean\",\"null\"],\"enum\":[{},[],true,null,1,\"a\"]}",
         {"{}", "true", "null"},
         {"[]", "1", "\"a\""}},
        {"{\"type\":[\"array\",\"string\"],\"enum\":[{},[],true,null,1,\"a\"]}",
         {"[]", "\"a\""},
         {"{}", "true", "null", "1"}},
        {"{\"type\":\"number\",\"enum\":[1,1.5,\"1\"]}", {"1", "1.5"}, {"\"1\""}},
        {"{\"type\":\"integer\",\"enum\":[1,2.0,2.5,1e300]}", {"1", "2.0", "1e300"}, {"2.5"}},
        {"{\"enum\":[1,2],\"const\":2}", {"2"}, {"1"}},
        {"{\"type\":\"null\",\"const\":null}", {"null"}, {"1"}},
    };
    check_accepted(GRAMMAR_SCHEMA, cases, N(cases));
}
END_TEST

/* Of two bounds on one side the narrower counts, of two that are equal the open one. */
START_TEST(bounds_of_both_kinds)
{
    static const struct accepted cases[] = {
        {"{\"type\":\"integer\",\"minimum\":5,\"exclusiveMinimum\":5}", {"6"}, {"5", "4"}},
        {"{\"type\":\"integer\",\"minimum\":5,\"exclusiveMinimum\":4.5}", {"5"}, {"4"}},
        {"{\"type\":\"integer\",\"minimum\":4,\"exclusiveMinimum\":5}", {"6"}, {"4", "5"}},
        {"{\"type\":\"integer\",\"minimum\":6,\"exclusiveMinimum\":5}", {"6"}, {"5"}},
        {"{\"type\":\"integer\",\"maximum\":5,\"exclusiveMaximum\":5}", {"4"}, {"5", "6"}},
        {"{\"type\":\"integer\",\"maximum\":5,\"exclusiveMaximum\":5.5}", {"5"}, {"6"}},
        {"{\"type\":\"integer\",\"maximum\":6,\"exclusiveMaximum\":5}", {"4"}, {"5", "6"}},
        {"{\"type\":\"integer\",\"maximum\":4,\"exclusiveMaximum\":5}", {"4"}, {"5"}},
        {"{\"type\":\"number\",\"exclusiveMinimum\":2,\"exclusiveMaximum\":3}", {"2.5"}, {"2", "3", "2.0"}},
        {"{\"type\":\"integer\",\"minimum\":1.5,\"maximum\":2.5}", {"2"}, {"1", "3"}},
    };
    check_accepted(GRAMMAR_SCHEMA, cases, N(cases));
}
END_TEST

START_TEST(a_schema_of_many_optional_properties_is_no_larger_than_long)
{
    static char schema[64000] = "{\"type\":\"object\",\"properties\":{";
    for (int i = 0; i < 800; i++)
        snprintf(schema + strlen(schema), 64, "%s\"property%d\":{\"type\":\"string\"}", i ? "," : "", i);
    strcat(schema, "}}");
    struct grammar *grammar = grammar_of(GRAMMAR_SCHEMA, schema);
    ck_assert(accepts(grammar, "{\"property3\":\"\",\"property700\":\"x\"}"));
    ck_assert(accepts(grammar, "{\"property700\":\"x\",\"property3\":\"\"}"));
    ck_assert(!accepts(grammar, "{\"property700\":\"x\",\"property3\":\"\",\"property700\":\"x\"}"));
    grammar_free(grammar);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, any_object_is_any_json_object);
    tcase_add_test(tests, types);
    tcase_add_test(tests, objects);
    tcase_add_test(tests, arrays);
    tcase_add_test(tests, arrays_that_are_counted);
    tcase_add_test(tests, strings);
    tcase_add_test(tests, numbers);
    tcase_add_test(tests, every_range_of_integers_has_all_of_its_numbers);
    tcase_add_test(tests, lists_of_values);
    tcase_add_test(tests, schemas_together);
    tcase_add_test(tests, schemas_that_hold_together);
    tcase_add_test(tests, lists_are_narrowed_by_their_type);
    tcase_add_test(tests, bounds_of_both_kinds);
    tcase_add_test(tests, a_schema_of_many_optional_properties_is_no_larger_than_long);
}

int main(void)
{
    return run_tests("json_schema", add);
}
