/* SPDX-License-Identifier: MIT */
/* Values as models write them. */

#include "text/dialect/literal.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/run.h"
#include "text/dialect/tool_schema.h"

START_TEST(values_become_json)
{
    static const struct {
        const char *text, *json;
        int kind;
    } cases[] = {
        {"2", "2", KIND_NUMBER},
        {" -1.5e3 ", "-1.5e3", KIND_NUMBER},
        {"True", "true", KIND_FLAG},
        {"None", "null", KIND_NULL},
        {"\"a\\n\"", "\"a\\n\"", KIND_TEXT},
        {"'it\\'s'", "\"it's\"", KIND_TEXT},
        {"<|q|>so \"x\"<|q|>", "\"so \\\"x\\\"\"", KIND_TEXT},
        {"['a', 1, (True, None)]", "[\"a\", 1, [true, null]]", KIND_ARRAY},
        {"{a: <|q|>x<|q|>, 'b': {\"c\": []}}", "{\"a\": \"x\", \"b\": {\"c\": []}}", KIND_OBJECT},
        {"", NULL, 0},
        {"Ulm", NULL, 0},
        {"2 towns", NULL, 0},
        {"[1, 2", NULL, 0},
        {"{a 1}", NULL, 0},
        {"01", NULL, 0},
        {"'open", NULL, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buffer json = {0};
        ck_assert_msg(literal_read(bytes_of_string(cases[i].text), "<|q|>", "<|q|>", &json) == cases[i].kind,
                      "%s", cases[i].text);
        const struct bytes got = {json.data, json.len};
        ck_assert_msg(bytes_equal(got, bytes_of_string(cases[i].json ? cases[i].json : "")), "%s: %.*s",
                      cases[i].text, (int)got.len, (const char *)got.data);
        buffer_deinit(&json);
    }
}
END_TEST

START_TEST(a_value_nests_only_so_deep)
{
    char deep[5000];
    struct buffer json = {0};
    memset(deep, '[', sizeof deep);
    ck_assert_int_eq(literal_read((struct bytes){deep, sizeof deep}, "", "", &json), 0);
    buffer_deinit(&json);
}
END_TEST

START_TEST(a_schema_says_what_a_parameter_may_be)
{
    static const struct {
        const char *schema;
        unsigned kinds;
    } cases[] = {
        {"{\"type\": \"string\"}", KIND_TEXT},
        {"{\"type\": [\"integer\", \"null\"]}", KIND_NUMBER | KIND_NULL},
        {"{\"enum\": [\"a\", 1]}", KIND_TEXT | KIND_NUMBER},
        {"{\"anyOf\": [{\"type\": \"string\"}, {\"const\": null}]}", KIND_TEXT | KIND_NULL},
        {"{\"allOf\": [{\"type\": [\"string\", \"number\"]}, {\"type\": \"number\"}]}", KIND_NUMBER},
        {"{\"$ref\": \"#/$defs/flag\"}", KIND_FLAG},
        {"{\"$ref\": \"#/$defs/self\"}", KIND_ANY},
        {"{\"$ref\": \"#/$defs/many\"}", KIND_ANY},
        {"{}", KIND_ANY},
    };
    json_t *root =
        json_loads("{\"$defs\": {\"flag\": {\"type\": \"boolean\"}, \"self\": {\"$ref\": "
                   "\"#/$defs/self\"}, \"many\": {\"anyOf\": [{\"$ref\": \"#/$defs/many\"}, {\"$ref\": "
                   "\"#/$defs/many\"}, {\"$ref\": \"#/$defs/many\"}, {\"$ref\": \"#/$defs/many\"}]}}}",
                   0, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *schema = json_loads(cases[i].schema, 0, NULL);
        ck_assert_msg(tool_schema_kinds_of(root, schema) == cases[i].kinds, "%s", cases[i].schema);
        json_decref(schema);
    }
    json_decref(root);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, values_become_json);
    tcase_add_test(tests, a_value_nests_only_so_deep);
    tcase_add_test(tests, a_schema_says_what_a_parameter_may_be);
}

int main(void)
{
    return run_tests("dialect/literal", add);
}
