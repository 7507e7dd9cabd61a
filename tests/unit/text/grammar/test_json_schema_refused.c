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
         "\"p#\":{\"properties\":{\"a\":{\"properties\":{\"a\":{\"type\":\"object\"}}}}}",
         ": too many objects"},
        {"\"p#\":{\"items\":{\"type\":\"array\"}}", "\"p#\":{\"items\":{\"items\":{\"type\":\"array\"}}}",
         ": too many arrays"},
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

START_TEST(places_that_are_named_have_a_limit)
{
    static char text[GRAMMAR_MOST_BYTES];
    for (int n = 1024; n <= 1025; n++) {
        size_t len = (size_t)snprintf(text, sizeof text, "{\"prefixItems\":[");
        for (int i = 0; i < n; i++)
            len += (size_t)snprintf(text + len, sizeof text - len, "%s{\"$ref\":\"#/$defs/l/%d\"}",
                                    i ? "," : "", i);
        len += (size_t)snprintf(text + len, sizeof text - len, "],\"$defs\":{\"l\":[");
        for (int i = 0; i < n; i++)
            len += (size_t)snprintf(text + len, sizeof text - len, "%s{}", i ? "," : "");
        snprintf(text + len, sizeof text - len, "]}}");
        const char *why = why_refused(GRAMMAR_SCHEMA, text);
        ck_assert_msg(n == 1024 ? !*why : !!strstr(why, "$ref names more than 1024 places"), "%s", why);
    }
}
END_TEST

START_TEST(what_is_not_supported_is_named_with_its_place)
{
    static const struct {
        const char *schema, *reason;
    } cases[] = {
        {"{\"type\":\"array\",\"uniqueItems\":true}",
         "schema: at #: the keyword \"uniqueItems\" is not supported"},
        {"{\"properties\":{\"a\":{\"not\":{}}}}", "schema: at #/a: the keyword \"not\" is not supported"},
        {"{\"if\":{}}", "schema: at #: the keyword \"if\" is not supported"},
        {"{\"patternProperties\":{}}", "schema: at #: the keyword \"patternProperties\" is not supported"},
        {"{\"multipleOf\":2}", "schema: at #: the keyword \"multipleOf\" is not supported"},
        {"{\"anyOf\":[{\"type\":\"null\"},{\"contains\":1}]}",
         "schema: at #/anyOf/1: the keyword \"contains\" is not supported"},
        {"{\"type\":\"object\",\"minProperties\":1}",
         "schema: at #: the keyword \"minProperties\" is not supported"},
        {"{\"format\":\"ipv6\"}", "schema: at #: the format \"ipv6\" is not supported"},
        {"{\"pattern\":\"(?=a)\"}",
         "schema: at #: pattern: regex: at byte 2: assertions and flags, (?…), are not supported"},
        {"{\"pattern\":\"a\",\"maxLength\":3}",
         "schema: at #: only one of pattern, format and minLength/maxLength is supported"},
        {"{\"type\":\"number\",\"minimum\":0.5}",
         "schema: at #: minimum is 0.5; numbers with fractions support only whole bounds"},
        {"{\"type\":\"integer\",\"minimum\":5,\"maximum\":4}",
         "schema: at #: no number lies within the bounds"},
        {"{\"minLength\":5,\"maxLength\":4}", "schema: at #: no string can have minLength characters"},
        {"{\"minItems\":5,\"maxItems\":4}", "schema: at #: no array can have minItems items"},
        {"{\"minLength\":-1}", "schema: at #: minLength is not an integer from 0 to 65536"},
        {"{\"type\":\"thing\"}", "schema: at #: unknown type \"thing\""},
        {"{\"type\":3}", "schema: at #: type is neither a string nor an array of strings"},
        {"{\"$ref\":\"http://x/y\"}",
         "schema: at #: $ref \"http://x/y\" does not point into this schema (#/…)"},
        {"{\"$ref\":\"#/$defs/x\"}", "schema: at #: $ref \"#/$defs/x\" not found in the schema"},
        {"{\"$ref\":\"#/$defs/l/ 1\",\"$defs\":{\"l\":[1,{\"const\":5}]}}",
         "schema: at #: $ref \"#/$defs/l/ 1\" not found in the schema"},
        {"{\"$ref\":\"#/$defs/l/2\",\"$defs\":{\"l\":[1,{\"const\":5}]}}",
         "schema: at #: $ref \"#/$defs/l/2\" not found in the schema"},
        {"{\"$ref\":\"#\"}", "grammar: the rule \"#\" is left-recursive, which is not supported"},
        {"{\"allOf\":[{\"$ref\":\"#\"}]}", "schema: at #: circular $ref"},
        {"{\"enum\":[]}", "schema: at #: no value of enum or const is possible"},
        {"{\"enum\":[\"a\"],\"minLength\":1}",
         "schema: at #: minLength beside enum or const is not supported"},
        {"{\"type\":\"object\",\"properties\":{},\"required\":[\"a\"],\"additionalProperties\":false}",
         "schema: at #: \"a\" is required but not an allowed property"},
        {"{\"allOf\":[{\"properties\":{\"a\":{}},\"additionalProperties\":false},{\"properties\":{\"b\":{}}}]"
         "}",
         "schema: at #: additionalProperties is not supported where other schemas have properties too"},
        {"{\"allOf\":[{\"minimum\":1},{\"minimum\":2}]}",
         "schema: at #: minimum applies twice to one value, which is not supported"},
        {"{\"enum\":3}", "schema: at #: enum is not an array"},
        {"{\"type\":\"string\",\"const\":1}", "schema: at #: no value of enum or const is possible"},
        {"{\"anyOf\":{}}", "schema: at #: anyOf is not an array of schemas"},
        {"{\"oneOf\":[]}", "schema: at #: oneOf is not an array of schemas"},
        {"{\"oneOf\":[false,false]}", "schema: at #: no alternative of oneOf can match"},
        {"{\"allOf\":{}}", "schema: at #: allOf is not an array of schemas"},
        {"{\"allOf\":[3]}", "schema: at #: a schema combined with others is not an object"},
        {"{\"allOf\":[{\"type\":\"null\"},{\"type\":[\"string\",\"number\"]}]}",
         "schema: at #: type applies twice to one value, which is not supported"},
        {"{\"$ref\":3}", "schema: at #: $ref is not a string"},
        {"{\"properties\":[]}", "schema: at #: properties is not an object"},
        {"{\"properties\":{\"a\":3}}", "schema: at #/a: a schema must be an object, true or false"},
        {"{\"required\":\"a\"}", "schema: at #: required is not an array of strings"},
        {"{\"required\":[\"a\",1]}", "schema: at #: required has an entry that is not a string"},
        {"{\"additionalProperties\":3}", "schema: at #: additionalProperties is not a schema"},
        {"{\"prefixItems\":{}}", "schema: at #: prefixItems is not an array of schemas"},
        {"{\"prefixItems\":[{}],\"items\":false,\"minItems\":2}",
         "schema: at #: no array can have minItems items"},
        {"{\"pattern\":3}", "schema: at #: pattern is not a string"},
        {"{\"format\":3}", "schema: at #: the format \"?\" is not supported"},
        {"{\"minimum\":\"1\"}", "schema: at #: minimum is not a number"},
        {"{\"exclusiveMaximum\":true}", "schema: at #: exclusiveMaximum is not a number"},
        {"{\"minimum\":3,\"exclusiveMaximum\":3}", "schema: at #: no number lies within the bounds"},
        {"{\"minLength\":1.5}", "schema: at #: minLength is not an integer from 0 to 65536"},
        {"{\"maxItems\":65537}", "schema: at #: maxItems is not an integer from 0 to 65536"},
        {"{\"type\":[]}", "schema: at #: type is neither a string nor an array of strings"},
        {"{\"type\":[\"null\",3]}", "schema: at #: type is neither a string nor an array of strings"},
        {"{\"type\":[\"null\",\"thing\"]}", "schema: at #: unknown type \"thing\""},
        {"{\"properties\":{\"a\":false},\"required\":[\"a\"]}",
         "schema: at #/a: the schema false allows nothing"},
        {"false", "schema: at #: the schema false allows nothing"},
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
    tcase_add_test(tests, places_that_are_named_have_a_limit);
    tcase_add_test(tests, what_is_not_supported_is_named_with_its_place);
    tcase_add_test(tests, hostile_schemas_are_refused_or_read_in_time);
}

int main(void)
{
    return run_tests("json_schema_refused", add);
}
