/* SPDX-License-Identifier: MIT */
/* See neutral.h. */

#include "gateway/forms/neutral.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_WORD 32

static bool is_word(const json_t *value, const char *word)
{
    char *end;
    switch (json_typeof(value)) {
    case JSON_TRUE:
        return strcmp(word, "true") == 0;
    case JSON_FALSE:
        return strcmp(word, "false") == 0;
    case JSON_STRING:
        return strcmp(word, json_string_value(value)) == 0;
    case JSON_INTEGER:
    case JSON_REAL: {
        const double number = strtod(word, &end);
        return *word && *end == 0 && number >= json_number_value(value) && number <= json_number_value(value);
    }
    default:
        return false;
    }
}

/* Whether the value is one of those between the spaces. */
static bool is_one_of(const json_t *value, const char *words)
{
    for (const char *at = words; *at;) {
        char word[MOST_WORD];
        const size_t len = strcspn(at, " ");
        snprintf(word, sizeof word, "%.*s", (int)len, at);
        if (is_word(value, word))
            return true;
        at += len + strspn(at + len, " ");
    }
    return false;
}

/* No value at all, in one of the ways to say so, or one of these. */
static bool is_neutral(const json_t *value, const char *words)
{
    if (json_is_array(value)) {
        for (size_t i = 0; i < json_array_size(value); i++)
            if (!is_one_of(json_array_get(value, i), words))
                return false;
        return true;
    }
    return (json_is_string(value) && json_string_length(value) == 0) || is_one_of(value, words);
}

/* "1", "auto or default"; nothing for no words. */
static const char *in_words(const char *words, char text[64])
{
    size_t used = 0;
    text[0] = 0;
    for (const char *at = words; *at && used < 64;) {
        const size_t len = strcspn(at, " ");
        used += (size_t)snprintf(text + used, 64 - used, "%s%.*s", used > 0 ? " or " : "", (int)len, at);
        at += len + strspn(at + len, " ");
    }
    return text;
}

static int refuse_other(const char *path, const char *words, struct refusal *refusal)
{
    char text[64];
    if (!words[0])
        return refuse(refusal, 400, "unsupported_parameter", path, "%s is not supported", path);
    return refuse(refusal, 400, "unsupported_parameter", path, "%s: only %s is supported", path,
                  in_words(words, text));
}

int neutral_only(void *into, const struct json_row *row, const char *path, json_t *value,
                 struct refusal *refusal)
{
    return is_neutral(value, row->name) ? 0 : refuse_other(path, row->name, refusal);
}

int neutral_bool(void *into, const struct json_row *row, const char *path, json_t *value,
                 struct refusal *refusal)
{
    bool unused;
    return json_in_bool(&unused, &(struct json_row){row->key, json_in_bool, NULL, 0}, path, value, refusal);
}

int neutral_penalties(void *into, const struct json_row *row, const char *path, json_t *value,
                      struct refusal *refusal)
{
    struct parameters *parameters = into;
    if (is_neutral(value, row->name))
        return 0;
    if (!json_is_integer(value) && !json_is_boolean(value))
        return refuse_other(path, row->name, refusal);
    char *name = parameters_memory(parameters, strlen(path) + 1, 1);
    if (!name)
        return parameters_out_of_memory(refusal);
    parameters->other_penalties = strcpy(name, path);
    return 0;
}

int neutral_place(void *into, const struct json_row *row, const char *path, json_t *value,
                  struct refusal *refusal)
{
    return json_is_integer(value)
               ? 0
               : refuse_value(refusal, path, "%s is %s, not an integer", path, json_in_kind(value));
}

int neutral_top_k(void *into, const struct json_row *row, const char *path, json_t *value,
                  struct refusal *refusal)
{
    if (!json_is_integer(value) || json_integer_value(value) != -1)
        return parameters_number(into, &(struct json_row){row->key, parameters_number, "top_k", 0}, path,
                                 value, refusal);
    ((struct parameters *)into)->request.top_k = 0;
    return 0;
}
