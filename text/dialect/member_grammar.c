/* SPDX-License-Identifier: MIT */
/* See member_grammar.h.
 *
 *     arguments-0 ::= more-0-0
 *     more-0-0 ::= member-0-0 more-0-1          required
 *     more-0-1 ::= member-0-1? more-0-2         may be left out
 *     member-0-0 ::= "\n<parameter=" "town" ">\n" raw-0-0-0 "\n</parameter>"
 *
 * Parameters stand in the schema's order. Where something parts them, `some-` stands for `more-` once there
 * was one. Texts are raw: any that does not have the mark in it that ends them. */

#include "text/dialect/member_grammar.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "text/dialect/blank.h"
#include "text/dialect/literal.h"
#include "text/dialect/tool_schema.h"

struct members {
    struct grammar_text *out;
    const struct dialect_calls *calls;
    const struct grammar_tool *tool;
    size_t i;
    struct error *err;
};

static void put_name(struct members *members, const char *what, size_t k)
{
    grammar_put(members->out, what);
    grammar_put_number(members->out, members->i);
    grammar_put(members->out, "-");
    grammar_put_number(members->out, k);
}

/* The rule of a value that is no text, which has a schema: its errors name tool and parameter. */
static void put_other_name(struct members *members, const char *key)
{
    char name[24];
    size_t n = 0;
    for (; *key && n < sizeof name - 1; key++)
        if ((*key >= 'a' && *key <= 'z') || (*key >= 'A' && *key <= 'Z') || (*key >= '0' && *key <= '9') ||
            *key == '_' || *key == '-')
            name[n++] = *key;
    name[n] = 0;
    grammar_put_arguments(members->out, members->i, members->tool->name);
    grammar_put(members->out, "-");
    grammar_put(members->out, name);
}

/* What ends a text, with the key where it is repeated, cut to the part before the key. */
static struct bytes end_of_text(const struct dialect_calls *calls)
{
    const struct bytes mark = without_blanks(calls->behind_text);
    const char *key = memchr(mark.data, DIALECT_KEY, mark.len);
    return (struct bytes){mark.data, key ? (size_t)(key - (const char *)mark.data) : mark.len};
}

/* ---- texts ---- */

static bool is_plain(const json_t *value, struct bytes mark)
{
    const char *text = json_string_value(value);
    return text && !memmem(text, json_string_length(value), mark.data, mark.len);
}

/* The texts that are allowed, where there are so many. False: any are. */
static bool put_choices(struct members *members, const json_t *schema)
{
    const json_t *values = json_object_get(schema, "enum"), *constant = json_object_get(schema, "const");
    const struct bytes mark = end_of_text(members->calls);
    bool any = false;
    if (json_is_string(constant)) {
        grammar_put_literal(members->out, json_string_value(constant), NULL);
        return true;
    }
    for (size_t k = 0; k < json_array_size(values); k++)
        any |= is_plain(json_array_get(values, k), mark);
    if (!any)
        return false;
    grammar_put(members->out, "(");
    any = false;
    for (size_t k = 0; k < json_array_size(values); k++) {
        const json_t *value = json_array_get(values, k);
        if (!is_plain(value, mark))
            continue;
        grammar_put(members->out, any ? " | " : "");
        grammar_put_literal(members->out, json_string_value(value), NULL);
        any = true;
    }
    grammar_put(members->out, ")");
    return true;
}

static int refuse(struct members *members, const char *key, const char *what)
{
    return error_set(members->err, -EINVAL,
                     "the parameter \"%.64s\" of \"%.64s\": \"%s\" of a string is not supported in this "
                     "model's form of tool calls",
                     key, members->tool->name, what);
}

/* The rule raw-I-K for a text. `schema` has its references followed. */
static int put_text_rule(struct members *members, size_t k, const char *key, const json_t *schema)
{
    struct grammar_text *out = members->out;
    const struct bytes mark = end_of_text(members->calls);
    const json_t *least = json_object_get(schema, "minLength"), *most = json_object_get(schema, "maxLength");
    const bool held = members->tool->held;
    char name[64];
    if (held && json_object_get(schema, "pattern"))
        return refuse(members, key, "pattern");
    if (held && json_object_get(schema, "format"))
        return refuse(members, key, "format");
    snprintf(name, sizeof name, "free-%zu-%zu", members->i, k);
    const bool bounded = held && (json_integer_value(least) > 0 || json_is_integer(most));
    const bool quote = mark.len < 3; /* a bare quote: neither it nor what would escape it */
    if (!bounded && !quote)
        grammar_put_free_text(out, name, mark);
    put_name(members, "raw-", k);
    grammar_put(out, " ::= ");
    if (!(held && put_choices(members, schema))) {
        if (bounded || quote) {
            const char not [] = {mark.len > 0 ? *(const char *)mark.data : '<', '\\'};
            grammar_put_others(out, not, quote ? 2 : 1);
            grammar_put(out, "{");
            grammar_put_number(out, bounded ? (size_t)json_integer_value(least) : 0);
            grammar_put(out, ",");
            if (bounded && json_is_integer(most))
                grammar_put_number(out, (size_t)json_integer_value(most));
            grammar_put(out, "}");
        } else {
            grammar_put(out, name);
            grammar_put(out, "-0");
        }
    }
    grammar_put(out, "\n");
    return 0;
}

/* ---- other values ---- */

/* A schema inside the tool's, with what it may refer to. */
static json_t *with_definitions(const json_t *root, const json_t *schema)
{
    static const char *const keys[] = {"$defs", "definitions"};
    json_t *copy = json_is_object(schema) ? json_copy((json_t *)schema) : json_object();
    for (size_t i = 0; i < 2 && copy; i++) {
        json_t *definitions = json_object_get(root, keys[i]);
        if (definitions && !json_object_get(copy, keys[i]))
            json_object_set(copy, keys[i], definitions);
    }
    return copy;
}

static void put_other_value(struct members *members, const json_t *schema, unsigned kinds)
{
    if (members->calls->python && kinds == KIND_FLAG) {
        grammar_put(members->out, "(\"True\" | \"False\")");
        return;
    }
    if (members->calls->python && kinds == KIND_NULL) {
        grammar_put(members->out, "\"None\"");
        return;
    }
    json_t *whole = with_definitions(members->tool->schema, schema);
    grammar_put(members->out, "%json ");
    if (whole)
        grammar_put_json(members->out, whole);
    else
        members->out->failed = true;
    json_decref(whole);
}

/* ---- members ---- */

static void put_around(struct members *members, const char *to, const char *behind,
                       const struct grammar_names *names, size_t k, const char *rule)
{
    grammar_put_literal(members->out, members->calls->before_key, names);
    grammar_put(members->out, " ");
    grammar_put_literal(members->out, "\4", names);
    grammar_put(members->out, " ");
    grammar_put_literal(members->out, to, names);
    grammar_put(members->out, " ");
    if (rule)
        put_name(members, rule, k);
    else
        put_other_name(members, names->key);
    grammar_put(members->out, " ");
    grammar_put_literal(members->out, behind, names);
}

/* The rule member-I-K. */
static int put_member(struct members *members, size_t k, const char *key, const json_t *schema)
{
    const struct dialect_calls *calls = members->calls;
    const json_t *resolved = tool_schema_resolve(members->tool->schema, schema);
    const unsigned kinds = tool_schema_kinds_of(members->tool->schema, schema);
    const bool text = kinds & KIND_TEXT, other = kinds & ~(unsigned)KIND_TEXT;
    const bool as_text = text, as_other = other && (calls->quoted || !text);
    const struct grammar_names names = {members->tool->name, key, kinds};
    int r = as_text ? put_text_rule(members, k, key, resolved) : 0;
    if (r != 0)
        return r;
    if (as_other) {
        put_other_name(members, key);
        grammar_put(members->out, " ::= ");
        put_other_value(members, schema, kinds);
        grammar_put(members->out, "\n");
    }
    put_name(members, "member-", k);
    grammar_put(members->out, " ::= ");
    if (as_text)
        put_around(members, calls->to_text, calls->behind_text, &names, k, "raw-");
    grammar_put(members->out, as_text && as_other ? " | " : "");
    if (as_other)
        put_around(members, calls->to_other, calls->behind_other, &names, k, NULL);
    grammar_put(members->out, "\n");
    return 0;
}

static bool is_required(const json_t *schema, const char *key)
{
    const json_t *required = json_object_get(schema, "required");
    for (size_t i = 0; i < json_array_size(required); i++) {
        const char *name = json_string_value(json_array_get(required, i));
        if (name && strcmp(name, key) == 0)
            return true;
    }
    return false;
}

/* The rules more-I-K and some-I-K: what follows the first K parameters, where there was none, and some. */
static void put_chain(struct members *members, size_t k, bool required, bool after_some)
{
    const char *separator = members->calls->separator;
    put_name(members, after_some ? "some-" : "more-", k);
    grammar_put(members->out, " ::= ");
    if (after_some && separator[0]) {
        grammar_put_literal(members->out, separator, NULL);
        grammar_put(members->out, " ");
    }
    put_name(members, "member-", k);
    grammar_put(members->out, " ");
    put_name(members, separator[0] ? "some-" : "more-", k + 1);
    if (!required) {
        grammar_put(members->out, " | ");
        put_name(members, after_some ? "some-" : "more-", k + 1);
    }
    grammar_put(members->out, "\n");
}

static void put_end(struct members *members, size_t n)
{
    put_name(members, "more-", n);
    grammar_put(members->out, " ::= \"\"\n");
    if (members->calls->separator[0]) {
        put_name(members, "some-", n);
        grammar_put(members->out, " ::= \"\"\n");
    }
}

int member_grammar_write(struct grammar_text *out, const struct dialect_calls *calls,
                         const struct grammar_tool *tool, size_t i, struct error *err)
{
    struct members members = {out, calls, tool, i, err};
    const json_t *schema = tool_schema_resolve(tool->schema, tool->schema);
    const char *key;
    json_t *member;
    size_t k = 0;
    int r = 0;
    grammar_put_arguments(out, i, tool->name);
    grammar_put(out, " ::= ");
    put_name(&members, "more-", 0);
    grammar_put(out, "\n");
    json_object_foreach(json_object_get(schema, "properties"), key, member)
    {
        const bool required = is_required(schema, key);
        r = put_member(&members, k, key, member);
        if (r != 0)
            return r;
        put_chain(&members, k, required, false);
        if (calls->separator[0])
            put_chain(&members, k, required, true);
        k++;
    }
    put_end(&members, k);
    return 0;
}
