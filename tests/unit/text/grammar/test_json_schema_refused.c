/* SPDX-License-Identifier: MIT */
/* JSON Schemas that are refused, and with which reason: beyond a limit, with what is not supported, made to
 * keep their reader busy. */

#include "tests/unit/run.h"
#include "tests/unit/text/grammar/accepts.h"

#define N(cases) (sizeof(cases) / sizeof *(cases))

/* "PREFIX" n numbered pieces "SUFFIX". */
static const char *of_many(const char *prefix, int n, const char *piece, const char *suffix)
{
    static char text[GRAMMAR_MOST_BYTES];
    size_t len = (size_t)snprintf(text, sizeof text, "%s", prefix);
    for (int i = 0; i < n; i++) {
        len += (size_t)snprintf(text + len, sizeof text - len, "%s", i ? "," : "");
        for (const char *c = piece; *c; c++) /* # is the number */
            len += (size_t)(*c == '#' ? snprintf(text + len, sizeof text - len, "%d", i)
                                      : snprintf(text + len, sizeof text - len, "%c", *c));
    }
    snprintf(text + len, sizeof text - len, "%s", suffix);
    return text;
}

START_TEST(limits_are_met_and_named_beyond)
{
    static const struct {
        const char *prefix, *piece, *suffix, *reason;
        int most;
    } cases[] = {
        {"{\"properties\":{", "\"p#\":{\"const\":1}", "}}", "more than 2048 properties are not supported",
         2048},
        {"{\"prefixItems\":[", "{\"const\":1}", "]}", "more than 2048 prefixItems are not supported", 2048},
    };
    for (size_t i = 0; i < 2; i++) {
        const char *text = of_many(cases[i].prefix, cases[i].most, cases[i].piece, cases[i].suffix);
        ck_assert_str_eq(why_refused(GRAMMAR_SCHEMA, text), "");
        text = of_many(cases[i].prefix, cases[i].most + 1, cases[i].piece, cases[i].suffix);
        ck_assert_msg(strstr(why_refused(GRAMMAR_SCHEMA, text), cases[i].reason), "%s",
                      why_refused(GRAMMAR_SCHEMA, text));
    }
    for (int n = 256; n <= 257; n++) { /* bytes of a name */
        char schema[400];
        snprintf(schema, sizeof schema, "{\"properties\":{\"%0*d\":{}}}", n, 7);
        ck_assert_str_eq(why_refused(GRAMMAR_SCHEMA, schema),
                         n == 256 ? "" : "schema: at #: a name of more than 256 bytes is not supported");
    }
}
END_TEST

/* Each is a rule, and so is what any value may be. */
START_TEST(objects_and_arrays_have_a_limit)
{
    static const struct {
        const char *few, *many, *reason;
    } cases[] = {
        {"\"p#\":{\"properties\":{\"a\":{\"type\":\"object\"}}}",
         "\"p#\":{\"properties\":{\"a\":{\"properties\":{\"a\":{\"properties\":{\"a\":{}}}}}}}",
         ": the schema is too large"},
        {"\"p#\":{\"items\":{\"type\":\"array\"}}",
         "\"p#\":{\"items\":{\"items\":{\"items\":{\"items\":{\"items\":{\"items\":{\"type\":\"null\"}}}}}}}",
         ": the schema is too large"},
    };
    for (size_t i = 0; i < N(cases); i++) {
        ck_assert_str_eq(why_refused(GRAMMAR_SCHEMA, of_many("{\"properties\":{", 500, cases[i].few, "}}")),
                         "");
        const char *why =
            why_refused(GRAMMAR_SCHEMA, of_many("{\"properties\":{", 2000, cases[i].many, "}}"));
        ck_assert_msg(strstr(why, cases[i].reason), "%s", why);
    }
}
END_TEST

START_TEST(what_is_not_supported_is_named_with_its_place)
{
    static const struct {
        const char *schema, *reason;
    } cases[] = {
        {"{\"type\":\"array\",\"uniqueItems\":true}", "schema: at #: uniqueItems is supported where items "
                                                      "have listed values (enum, const, boolean, null)"},
        {"{\"properties\":{\"a\":{\"nicht\":{}}}}",
         "schema: at #/properties/a: the keyword \"nicht\" is not supported"},
        {"{\"anyOf\":[{\"type\":\"null\"},{\"properties\":{\"a/b~\":{\"knows\":1}},\"required\":[\"a/"
         "b~\"]}]}",
         "schema: at #/anyOf/1/properties/a~1b~0: the keyword \"knows\" is not supported"},
        {"{\"prefixItems\":[{},{\"$ref\":\"#/$defs/a\"}],\"$defs\":{\"a\":{\"enum\":1}}}",
         "schema: at #/$defs/a: enum is not an array"},
        {"{\"type\":\"object\",\"not\":{\"patternProperties\":{\"a\":{\"type\":\"null\"}}}}",
         "schema: at #/not: patternProperties cannot be negated"},
        {"{\"type\":\"object\",\"not\":{\"additionalProperties\":{\"type\":\"null\"}}}",
         "schema: at #/not: additionalProperties cannot be negated"},
        {"{\"type\":\"object\",\"not\":{\"propertyNames\":{\"maxLength\":1}}}",
         "schema: at #/not: propertyNames cannot be negated"},
        {"{\"not\":{\"type\":\"array\",\"uniqueItems\":true}}",
         "schema: at #/not: uniqueItems cannot be negated"},
        {"{\"type\":\"number\",\"multipleOf\":0}", "schema: at #: multipleOf is not above 0"},
        {"{\"type\":\"number\",\"multipleOf\":\"2\"}", "schema: at #: multipleOf is not a number"},
        {"{\"type\":\"number\",\"multipleOf\":0.123456789}",
         "schema: at #: the constraints of the number: too complex together"},
        {"{\"uniqueItems\":1}", "schema: at #: uniqueItems is neither true nor false"},
        {"{\"dependentRequired\":[]}", "schema: at #: dependentRequired is not an object"},
        {"{\"dependentRequired\":{\"a\":{}}}",
         "schema: at #: dependentRequired of \"a\" is not an array of strings"},
        {"{\"patternProperties\":[]}", "schema: at #: patternProperties is not an object"},
        {"{\"patternProperties\":{\"(?=a)\":{}}}",
         "schema: at #: pattern: regex: at byte 2: assertions and flags, (?…), are not supported"},
        {"{\"format\":\"regex\"}", "schema: at #: the format \"regex\" is not supported"},
        {"{\"pattern\":\"(?=a)\"}",
         "schema: at #: pattern: regex: at byte 2: assertions and flags, (?…), are not supported"},
        {"{\"type\":\"integer\",\"minimum\":5,\"maximum\":4}",
         "schema: at #: the schema allows nothing: no number lies within the bounds"},
        {"{\"type\":\"string\",\"minLength\":5,\"maxLength\":4}",
         "schema: at #: the schema allows nothing: no string meets all constraints"},
        {"{\"type\":\"array\",\"minItems\":5,\"maxItems\":4}", "schema: at #: the schema allows nothing"},
        {"{\"minLength\":-1}", "schema: at #: minLength is not an integer from 0 to 65536"},
        {"{\"type\":\"thing\"}", "schema: at #: unknown type \"thing\""},
        {"{\"type\":3}", "schema: at #: type is neither a string nor an array of strings"},
        {"{\"$ref\":\"http://x/y\"}",
         "schema: at #: $ref \"http://x/y\" points outside this schema; external schemas are not fetched"},
        {"{\"$ref\":\"#/$defs/x\"}", "schema: at #: $ref \"#/$defs/x\" not found in the schema"},
        {"{\"$ref\":\"#/$defs/l/ 1\",\"$defs\":{\"l\":[1,{\"const\":5}]}}",
         "schema: at #: $ref \"#/$defs/l/ 1\" not found in the schema"},
        {"{\"$ref\":\"#/$defs/l/2\",\"$defs\":{\"l\":[1,{\"const\":5}]}}",
         "schema: at #: $ref \"#/$defs/l/2\" not found in the schema"},
        {"{\"$ref\":\"#\"}", "schema: at #: circular $ref"},
        {"{\"allOf\":[{\"$ref\":\"#\"}]}", "schema: at #/allOf/0: circular $ref"},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#\"}},\"required\":[\"a\"]}",
         "schema: at #: the schema allows nothing: its recursion never ends"},
        {"{\"enum\":[]}", "schema: at #: the schema allows nothing: no value of enum or const is possible"},
        {"{\"enum\":[\"a\"],\"minLength\":2}",
         "schema: at #: the schema allows nothing: no value of enum or const is possible"},
        {"{\"type\":\"object\",\"properties\":{},\"required\":[\"a\"],\"additionalProperties\":false}",
         "schema: at #: the schema allows nothing: \"a\" is required, but no value is allowed for it"},
        {"{\"type\":\"object\",\"required\":[\"b\"],\"allOf\":[{\"properties\":{\"a\":{}},"
         "\"additionalProperties\":"
         "false},{\"properties\":{\"b\":{}}}]}",
         "schema: at #: the schema allows nothing: \"b\" is required, but no value is allowed for it"},
        {"{\"type\":\"integer\",\"allOf\":[{\"minimum\":1},{\"maximum\":0}]}",
         "schema: at #: the schema allows nothing: no number lies within the bounds"},
        {"{\"enum\":3}", "schema: at #: enum is not an array"},
        {"{\"type\":\"string\",\"const\":1}",
         "schema: at #: the schema allows nothing: no value of enum or const is possible"},
        {"{\"anyOf\":{}}", "schema: at #: anyOf is not an array of schemas"},
        {"{\"oneOf\":[]}", "schema: at #: oneOf is not an array of schemas"},
        {"{\"oneOf\":[false,false]}", "schema: at #: the schema allows nothing"},
        {"{\"allOf\":{}}", "schema: at #: allOf is not an array of schemas"},
        {"{\"allOf\":[3]}", "schema: at #/allOf/0: a schema must be an object, true or false"},
        {"{\"allOf\":[{\"type\":\"null\"},{\"type\":[\"string\",\"number\"]}]}",
         "schema: at #: the schema allows nothing"},
        {"{\"$ref\":3}", "schema: at #: $ref is not a string"},
        {"{\"properties\":[]}", "schema: at #: properties is not an object"},
        {"{\"properties\":{\"a\":3}}",
         "schema: at #/properties/a: a schema must be an object, true or false"},
        {"{\"required\":\"a\"}", "schema: at #: required is not an array of strings"},
        {"{\"required\":[\"a\",1]}", "schema: at #: required has an entry that is not a string"},
        {"{\"additionalProperties\":3}", "schema: at #: additionalProperties is not a schema"},
        {"{\"prefixItems\":{}}", "schema: at #: prefixItems is not an array of schemas"},
        {"{\"type\":\"array\",\"prefixItems\":[{}],\"items\":false,\"minItems\":2}",
         "schema: at #: the schema allows nothing: no array can have the required number of items"},
        {"{\"pattern\":3}", "schema: at #: pattern is not a string"},
        {"{\"format\":3}", "schema: at #: format is not a string"},
        {"{\"minimum\":\"1\"}", "schema: at #: minimum is not a number"},
        {"{\"exclusiveMaximum\":true}", "schema: at #: exclusiveMaximum is not a number"},
        {"{\"type\":\"number\",\"minimum\":3,\"exclusiveMaximum\":3}",
         "schema: at #: the schema allows nothing: no number lies within the bounds"},
        {"{\"minLength\":1.5}", "schema: at #: minLength is not an integer from 0 to 65536"},
        {"{\"maxItems\":65537}", "schema: at #: maxItems is not an integer from 0 to 65536"},
        {"{\"type\":[]}", "schema: at #: type is neither a string nor an array of strings"},
        {"{\"type\":[\"null\",3]}", "schema: at #: type is neither a string nor an array of strings"},
        {"{\"type\":[\"null\",\"thing\"]}", "schema: at #: unknown type \"thing\""},
        {"{\"type\":\"object\",\"properties\":{\"a\":false},\"required\":[\"a\"]}",
         "schema: at #: the schema allows nothing: \"a\" is required, but no value is allowed for it"},
        {"{\"type\":\"object\",\"maxProperties\":1,\"required\":[\"a\",\"b\"]}",
         "schema: at #: the schema allows nothing: no object can have the required number of properties"},
        {"{\"type\":\"string\",\"pattern\":\"^a\",\"not\":{\"pattern\":\"a\"}}",
         "schema: at #: the schema allows nothing: no string meets all constraints"},
        {"{\"type\":\"object\",\"dependentSchemas\":{\"a\":false},\"required\":[\"a\"]}",
         "schema: at #: the schema allows nothing: \"a\" is required, but no value is allowed for it"},
        {"false", "schema: at #: the schema allows nothing"},
        {"[]", "schema: at #: a schema must be an object, true or false"},
        {"{\"type\":", "schema: line 1: unexpected token near end of file"},
        {"{\"items\":[{}]}", "schema: at #: items is an array; use prefixItems (JSON Schema 2020-12)"},
        {"{\"maxLength\":60000}",
         "grammar: too large: more than 262144 nodes or 4096 character sets at the rule \"root\""},
    };
    for (size_t i = 0; i < N(cases); i++)
        ck_assert_str_eq(why_refused(GRAMMAR_SCHEMA, cases[i].schema), cases[i].reason);
}
END_TEST

/* Small texts that ask for much. */
START_TEST(hostile_schemas_are_refused_or_read_in_time)
{
    static char text[GRAMMAR_MOST_BYTES];
    size_t n = (size_t)snprintf(text, sizeof text, "{\"allOf\":[");
    for (int i = 0; n < sizeof text - 200; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s{\"properties\":{\"a%d\":{},\"b%d\":{}}}",
                              i ? "," : "", i, i);
    strcpy(text + n, "]}");
    ck_assert(strstr(why_refused(GRAMMAR_SCHEMA, text), "too large"));
    n = (size_t)snprintf(text, sizeof text, "{\"properties\":{");
    for (int i = 0; n < sizeof text - 200; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s\"p%d\":{}", i ? "," : "", i);
    strcpy(text + n, "}}");
    ck_assert(strstr(why_refused(GRAMMAR_SCHEMA, text), "more than 2048 properties"));
    n = (size_t)snprintf(text, sizeof text, "{\"enum\":[");
    for (int i = 0; n < sizeof text - 200; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%d", i ? "," : "", i);
    strcpy(text + n, "]}");
    ck_assert(strstr(why_refused(GRAMMAR_SCHEMA, text), "too"));
    memset(text, '[', 100000);
    text[100000] = 0;
    ck_assert(strstr(why_refused(GRAMMAR_SCHEMA, text), "schema: line 1"));
    n = (size_t)snprintf(text, sizeof text, "{\"items\":");
    for (int i = 0; i < 300; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "{\"items\":");
    n += (size_t)snprintf(text + n, sizeof text - n, "{}");
    memset(text + n, '}', 301);
    text[n + 301] = 0;
    ck_assert(strstr(why_refused(GRAMMAR_SCHEMA, text), "nested more than"));
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, limits_are_met_and_named_beyond);
    tcase_add_test(tests, objects_and_arrays_have_a_limit);
    tcase_add_test(tests, what_is_not_supported_is_named_with_its_place);
    tcase_add_test(tests, hostile_schemas_are_refused_or_read_in_time);
}

int main(void)
{
    return run_tests("json_schema_refused", add);
}
