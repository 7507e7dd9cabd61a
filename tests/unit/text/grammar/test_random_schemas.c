/* SPDX-License-Identifier: MIT */
/* Random schemas, held against a validator that knows nothing of grammars: what a grammar makes is valid,
 * what is valid and in its order is accepted, and what is not valid is refused. */

#include "tests/unit/run.h"
#include "tests/unit/text/grammar/accepts.h"
#include "tests/unit/text/grammar/random_schema.h"
#include "tests/unit/text/grammar/validate.h"

#include <stdlib.h>

/* ---- texts that a grammar makes ---- */

/* Where a name begins: members come in any order, and chance alone seldom spells one that has to come. */
static bool at_name(const struct buffer *text)
{
    const char *data = (const char *)text->data;
    size_t i = text->len;
    if (i == 0 || data[--i] != '"')
        return false;
    while (i > 0 && strchr(" \n\t", data[i - 1]))
        i--;
    return i > 0 && (data[i - 1] == '{' || data[i - 1] == ',');
}

/* Takes a name of random_schema.c, if one is possible. */
static void take_name(struct grammar_answer *answer, struct buffer *text)
{
    static const char *const names[] = {"a\"", "ab\"", "größe\"", "x y\"", "q\\\"\"", "abc\""};
    struct error err;
    for (int i = 0, first = random_dice(6); i < 6; i++) {
        const char *name = names[(first + i) % 6];
        if (grammar_answer_take(answer, bytes_of_string(name), &err) != 0)
            continue;
        buffer_append(text, name, strlen(name));
        return;
    }
}

/* Tries bytes in random order, those that close things first as the text grows, until the grammar ends. */
static bool make_text(struct grammar *grammar, struct buffer *ret_text)
{
    static const char closing[] = "\"]}0123456789,eaulrs:";
    struct grammar_answer *answer;
    struct error err;
    ck_assert_int_eq(grammar_answer_new(grammar, &answer, &err), 0);
    while (ret_text->len < 1000 && !grammar_answer_must_end(answer)) {
        uint8_t byte = (uint8_t)random_dice(256);
        bool hurry = ret_text->len > 40 && random_dice(8) > 0;
        if (grammar_answer_may_end(answer) && random_dice(3) == 0)
            break;
        for (int tries = 0;; tries++) {
            if (tries == 300) /* not in each round: that is a message to the runner */
                ck_abort_msg("nothing goes on behind %.*s", (int)ret_text->len, ret_text->data);
            byte = hurry && tries < (int)sizeof closing - 1 ? (uint8_t)closing[tries] : (uint8_t)(byte + 1);
            if (grammar_answer_take(answer, (struct bytes){&byte, 1}, &err) == 0)
                break;
        }
        buffer_append(ret_text, &byte, 1);
        if (byte == '"' && at_name(ret_text) && random_dice(4) > 0)
            take_name(answer, ret_text);
    }
    bool whole = grammar_answer_may_end(answer);
    grammar_answer_free(answer);
    return whole;
}

START_TEST(what_a_grammar_makes_is_valid)
{
    int whole = 0;
    random_seed = 11;
    for (int round = 0; round < 150; round++) {
        json_t *schema = random_schema_root();
        char *text = json_dumps(schema, 0);
        struct grammar *grammar = grammar_of(GRAMMAR_SCHEMA, text);
        for (int i = 0; i < 8; i++) {
            struct buffer made = {0};
            if (make_text(grammar, &made)) {
                ck_assert_msg(validate_text(text, (const char *)made.data, made.len), "%s\nmakes\n%.*s", text,
                              (int)made.len, made.data);
                whole++;
            }
            buffer_deinit(&made);
        }
        grammar_free(grammar);
        free(text);
        json_decref(schema);
    }
    ck_assert_int_gt(whole, 800);
}
END_TEST

/* ---- values ---- */

static json_t *random_value(const json_t *root, const json_t *schema, int depth);

static json_t *random_string(size_t least, size_t most)
{
    static const char *const parts[] = {"a", "é", "\\", "\"", " ", "😀", "\n", "7", "/"};
    char text[64] = "";
    size_t n = least + (size_t)random_dice((int)(most - least) + 1);
    for (size_t i = 0; i < n; i++)
        strcat(text, parts[random_dice(9)]);
    return json_string(text);
}

/* Any value, or one that is nearly right. */
static json_t *any_value(int depth)
{
    switch (random_dice(depth > 0 ? 8 : 6)) {
    case 0:
        return json_integer(random_dice(300) - 150);
    case 1:
        return json_real((random_dice(4000) - 2000) / 8.0);
    case 2:
        return random_string(0, 8);
    case 3:
        return json_boolean(random_dice(2));
    case 4:
        return json_null();
    case 5:
        return json_string("a");
    case 6:
        return json_pack("[o,o]", any_value(depth - 1), any_value(depth - 1));
    default:
        return json_pack("{s:o,s:o}", "a", any_value(depth - 1), "x", any_value(depth - 1));
    }
}

static json_t *random_members(const json_t *root, const json_t *schema, int depth)
{
    json_t *value = json_object(), *own;
    const char *key;
    json_object_foreach(json_object_get(schema, "properties"), key, own)
    {
        if (random_dice(3) > 0)
            json_object_set_new(value, key, random_value(root, own, depth));
    }
    if (json_is_object(json_object_get(schema, "additionalProperties")) && random_dice(2))
        json_object_set_new(value, "extra",
                            random_value(root, json_object_get(schema, "additionalProperties"), depth));
    return value;
}

static json_t *random_items(const json_t *root, const json_t *schema, int depth)
{
    const json_t *prefix = json_object_get(schema, "prefixItems");
    json_t *value = json_array();
    for (size_t i = 0, n = (size_t)random_dice(5); i < n; i++)
        json_array_append_new(value,
                              random_value(root,
                                           i < json_array_size(prefix) ? json_array_get(prefix, i)
                                                                       : json_object_get(schema, "items"),
                                           depth));
    return value;
}

/* A value that is valid, or nearly. */
static json_t *random_value(const json_t *root, const json_t *schema, int depth)
{
    const json_t *any = json_object_get(schema, "anyOf"), *list = json_object_get(schema, "enum");
    const char *ref = json_string_value(json_object_get(schema, "$ref"));
    const char *type = json_string_value(json_object_get(schema, "type"));
    if (random_dice(25) == 0 || depth == 0)
        return any_value(2);
    if (ref)
        return random_value(root, json_object_get(json_object_get(root, "$defs"), ref + 8), depth - 1);
    if (any)
        return random_value(root, json_array_get(any, (size_t)random_dice((int)json_array_size(any))), depth);
    if (list)
        return json_incref(json_array_get(list, (size_t)random_dice((int)json_array_size(list))));
    if (json_object_get(schema, "const"))
        return json_boolean(random_dice(2));
    if (!type)
        return random_dice(2) ? json_null() : json_boolean(random_dice(2));
    if (strcmp(type, "object") == 0)
        return random_members(root, schema, depth - 1);
    if (strcmp(type, "array") == 0)
        return random_items(root, schema, depth - 1);
    if (strcmp(type, "string") == 0)
        return random_string(0, 7);
    json_int_t low = json_integer_value(json_object_get(schema, "minimum"));
    return strcmp(type, "integer") == 0 || random_dice(2) ? json_integer(low - 3 + random_dice(130))
                                                          : json_real((double)low + random_dice(99) / 8.0);
}

START_TEST(a_grammar_accepts_exactly_the_valid_values)
{
    int counts[2] = {0};
    random_seed = 5;
    for (int round = 0; round < 150; round++) {
        json_t *schema = random_schema_root();
        char *text = json_dumps(schema, 0);
        struct grammar *grammar = grammar_of(GRAMMAR_SCHEMA, text);
        for (int i = 0; i < 60; i++) {
            json_t *value = random_value(schema, schema, 6);
            char *spelled = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
            bool valid = validate(schema, schema, value), accepted = accepts(grammar, spelled);
            /* An integer is not written as 1.0. */
            ck_assert_msg(!valid || accepted || strstr(spelled, ".0"), "%s\nshould accept\n%s", text,
                          spelled);
            ck_assert_msg(valid || !accepted, "%s\nshould not accept\n%s", text, spelled);
            counts[accepted]++;
            free(spelled);
            json_decref(value);
        }
        grammar_free(grammar);
        free(text);
        json_decref(schema);
    }
    ck_assert_int_gt(counts[0], 1500);
    ck_assert_int_gt(counts[1], 1500);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, what_a_grammar_makes_is_valid);
    tcase_add_test(tests, a_grammar_accepts_exactly_the_valid_values);
}

int main(void)
{
    return run_tests("random schemas", add);
}
