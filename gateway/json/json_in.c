/* SPDX-License-Identifier: MIT */
/* See json_in.h. Nesting is bounded by jansson (2,048 deep), size by the server. */

#include "gateway/json/json_in.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/bytes.h"
#include "common/error.h"
#include "gateway/json/json_memory.h"

/* Where the string that begins behind `at` ends: behind its quotation mark, or `end`. */
static const char *skip_string(const char *at, const char *end)
{
    while (at < end && *at != '"')
        at += *at == '\\' && at + 1 < end ? 2 : 1;
    return at < end ? at + 1 : end;
}

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n'))
        at++;
    return at;
}

/* Where the value of a member "seed" begins, whose key stands at `at`; NULL: it is another key, or none. */
static const char *seed_at(const char *at, const char *end)
{
    static const char key[] = "\"seed\"";
    if ((size_t)(end - at) < sizeof key || memcmp(at, key, sizeof key - 1) != 0)
        return NULL;
    at = skip_blanks(at + sizeof key - 1, end);
    return at < end && *at == ':' ? skip_blanks(at + 1, end) : NULL;
}

/* jansson has no number of 64 bits without a sign. Copies a body with such seeds in quotation marks, which
 * parameters_seed takes. 0, 1 where there are none, or -ENOMEM. */
static int quote_seeds(const char *at, size_t len, struct buffer *ret_copy)
{
    const char *const end = at + len, *copied = at, *seed;
    bool quoted = false;
    int r = 0;
    while (at < end && r == 0) {
        if (*at != '"') {
            at++;
            continue;
        }
        seed = seed_at(at, end);
        at = seed ? seed : skip_string(at + 1, end);
        const char *digits = at;
        while (seed && at < end && *at >= '0' && *at <= '9')
            at++;
        if (at - digits < 19) /* digits of the least number that needs them */
            continue;
        quoted = true;
        r = buffer_append(ret_copy, copied, (size_t)(digits - copied));
        if (r == 0)
            r = buffer_append(ret_copy, "\"", 1);
        if (r == 0)
            r = buffer_append(ret_copy, digits, (size_t)(at - digits));
        if (r == 0)
            r = buffer_append(ret_copy, "\"", 1);
        copied = at;
    }
    if (r == 0)
        r = buffer_append(ret_copy, copied, (size_t)(end - copied));
    return r < 0 ? r : !quoted;
}

/* What jansson makes of a body, in which seeds may have 64 bits. */
static json_t *load(const char *data, size_t len, json_error_t *error)
{
    json_t *json = json_loadb(data, len, JSON_REJECT_DUPLICATES, error);
    if (json || json_error_code(error) != json_error_numeric_overflow)
        return json;
    struct buffer copy = {0};
    int r = quote_seeds(data, len, &copy);
    if (r == 0)
        json = json_loadb((const char *)copy.data, copy.len, JSON_REJECT_DUPLICATES, error);
    buffer_deinit(&copy);
    return json;
}

int json_in_parse(const void *data, size_t len, json_t **ret_object, struct refusal *refusal)
{
    json_error_t error;
    if (len == 0)
        return refuse_value(refusal, NULL, "the body is empty");
    json_t *json = load(data, len, &error);
    if (!json && json_memory_limited())
        return refuse(refusal, 413, "too_large", NULL, "the body has too many values for its size");
    if (!json && json_error_code(&error) == json_error_out_of_memory)
        return refuse_memory(refusal);
    if (!json && json_error_code(&error) == json_error_null_character)
        return refuse_value(refusal, NULL, "line %d of the body has a NUL character in a string", error.line);
    if (!json && json_error_code(&error) == json_error_numeric_overflow)
        return refuse_value(refusal, NULL, "line %d, column %d of the body: a number is out of range: %s",
                            error.line, error.column, error.text);
    if (!json)
        return refuse_value(refusal, NULL, "the body is not JSON: line %d, column %d: %s", error.line,
                            error.column, error.text);
    if (!json_is_object(json)) {
        refuse_value(refusal, NULL, "the body is %s, not an object", json_in_kind(json));
        json_decref(json);
        return REFUSED;
    }
    *ret_object = json;
    return 0;
}

int json_in_take(void *into, const struct json_row *rows, const char *path, json_t *object,
                 struct refusal *refusal)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        char where[sizeof refusal->param];
        const struct json_row *row = rows;
        snprintf(where, sizeof where, "%s%s%s", path, *path ? "." : "", key);
        while (row->key && strcmp(row->key, key) != 0)
            row++;
        if (!row->key)
            return refuse(refusal, 400, "unknown_parameter", where, "unknown parameter: %s", where);
        if (!json_is_null(value) && row->take(into, row, where, value, refusal) != 0)
            return REFUSED;
    }
    return 0;
}

const char *json_in_kind(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "a boolean";
    default:
        return "null";
    }
}

int json_in_bool(void *into, const struct json_row *row, const char *path, json_t *value,
                 struct refusal *refusal)
{
    if (!json_is_boolean(value))
        return refuse_value(refusal, path, "%s is %s, not a boolean", path, json_in_kind(value));
    *(bool *)((char *)into + row->offset) = json_is_true(value);
    return 0;
}

int json_in_ignore(void *into, const struct json_row *row, const char *path, json_t *value,
                   struct refusal *refusal)
{
    return 0;
}

static bool asks_for_nothing(const json_t *value, const char *allowed)
{
    switch (json_typeof(value)) {
    case JSON_FALSE:
    case JSON_NULL:
        return true;
    case JSON_ARRAY:
        return json_array_size(value) == 0;
    case JSON_OBJECT:
        return json_object_size(value) == 0;
    case JSON_INTEGER:
        return json_integer_value(value) == 0;
    case JSON_STRING:
        return json_string_length(value) == 0 || (allowed && strcmp(json_string_value(value), allowed) == 0);
    default:
        return false;
    }
}

int json_in_unsupported(void *into, const struct json_row *row, const char *path, json_t *value,
                        struct refusal *refusal)
{
    if (asks_for_nothing(value, row->name))
        return 0;
    return refuse(refusal, 400, "unsupported_parameter", path, "%s is not supported%s%s%s", path,
                  row->name ? ", except \"" : "", row->name ? row->name : "", row->name ? "\"" : "");
}

static int refuse_range(struct refusal *refusal, const char *path, int64_t number, int64_t least,
                        int64_t most)
{
    struct error err;
    error_out_of_range(&err, -EINVAL, path, number, least, most);
    return refuse_value(refusal, path, "%s", err.text);
}

int json_in_integer(const char *path, json_t *value, int64_t least, int64_t most, int64_t *ret_number,
                    struct refusal *refusal)
{
    int64_t number = json_integer_value(value);
    if (!json_is_integer(value))
        return refuse_value(refusal, path, "%s is %s, not an integer from %lld to %lld", path,
                            json_in_kind(value), (long long)least, (long long)most);
    if (number < least || number > most)
        return refuse_range(refusal, path, number, least, most);
    *ret_number = number;
    return 0;
}
