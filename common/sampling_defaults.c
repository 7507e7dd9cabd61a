/* SPDX-License-Identifier: MIT */
/* See sampling_defaults.h. Counts are doubles here: all of their bounds are below 2^53. */

#include "common/sampling_defaults.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST_WORD 96 /* of a text: a name, a value, a source */

static const struct {
    const char *name;
    double least, most, initial;
    bool count;
} parameters[SAMPLING_N] = {
#define REAL_ROW(name, least, most, initial, ...)  {#name, least, most, initial, false},
#define COUNT_ROW(name, least, most, initial, ...) {#name, least, most, initial, true},
    SAMPLING_PARAMETERS(REAL_ROW, COUNT_ROW)
#undef REAL_ROW
#undef COUNT_ROW
};

static const char *const source_names[SAMPLING_SOURCES] = {"default", "model", "pool"};

const char *sampling_source_name(enum sampling_source source)
{
    return source_names[source];
}

const char *sampling_name(size_t i)
{
    return i < SAMPLING_N ? parameters[i].name : NULL;
}

size_t sampling_index(struct bytes name)
{
    const char *given = name.data;
    for (size_t i = 0; i < SAMPLING_N; i++) {
        const char *known = parameters[i].name;
        size_t at = 0;
        while (at < name.len && known[at] &&
               (given[at] == known[at] || (given[at] == '-' && known[at] == '_')))
            at++;
        if (at == name.len && !known[at])
            return i;
    }
    return SAMPLING_N;
}

bool sampling_takes(size_t i, double value, struct error *err)
{
    if (!(value >= parameters[i].least && value <= parameters[i].most)) {
        error_out_of_range_real(err, 0, "", value, parameters[i].least, parameters[i].most);
        error_prefix(err, 0, "%s", parameters[i].name);
        return false;
    }
    if (parameters[i].count && (double)(int64_t)value != value) {
        error_set(err, 0, "%s: %g is not a whole number", parameters[i].name, value);
        return false;
    }
    return true;
}

void sampling_defaults_init(struct sampling_defaults *defaults)
{
    for (size_t i = 0; i < SAMPLING_N; i++) {
        defaults->values[i] = parameters[i].initial;
        defaults->sources[i] = SAMPLING_OF_NOBODY;
    }
}

/* The next word of a text; NULL at its end, "" for one that is longer than any can be. */
static const char *next_word(struct bytes *text, char word[LONGEST_WORD])
{
    const char *at = text->data, *const end = at + text->len;
    while (at < end && *at == ' ')
        at++;
    const char *from = at;
    while (at < end && *at != ' ')
        at++;
    size_t len = (size_t)(at - from);
    *text = (struct bytes){at, (size_t)(end - at)};
    if (len == 0)
        return NULL;
    if (len >= LONGEST_WORD)
        len = 0;
    memcpy(word, from, len);
    word[len] = 0;
    return word;
}

/* "NAME=VALUE", and what stands behind it. */
static int read_word(const char *word, size_t *ret_i, double *ret_value, const char **ret_rest,
                     struct error *err)
{
    const char *equals = strchr(word, '=');
    size_t i = equals ? sampling_index((struct bytes){word, (size_t)(equals - word)}) : SAMPLING_N;
    if (i == SAMPLING_N)
        return error_set(err, -EINVAL, "\"%.40s\" is not NAME=VALUE of a sampling parameter", word);
    char *rest;
    double value = strtod(equals + 1, &rest);
    if (rest == equals + 1)
        return error_set(err, -EINVAL, "%s: \"%.40s\" is not a number", parameters[i].name, equals + 1);
    if (!sampling_takes(i, value, err))
        return -EINVAL;
    *ret_i = i;
    *ret_value = value;
    *ret_rest = rest;
    return 0;
}

int sampling_defaults_set(struct sampling_defaults *defaults, struct bytes text, enum sampling_source source,
                          struct error *err)
{
    char word[LONGEST_WORD];
    while (next_word(&text, word)) {
        size_t i;
        double value;
        const char *rest;
        int r = read_word(word, &i, &value, &rest, err);
        if (r == 0 && *rest)
            r = error_set(err, -EINVAL, "%s: \"%.40s\" is not a number", parameters[i].name, word);
        if (r < 0)
            return r;
        defaults->values[i] = value;
        defaults->sources[i] = source;
    }
    return 0;
}

/* The shortest of 15 digits, or 17, which always say the same double. */
static void write_value(double value, char text[32])
{
    snprintf(text, 32, "%.15g", value);
    if (strtod(text, NULL) != value)
        snprintf(text, 32, "%.17g", value);
}

void sampling_defaults_write(const struct sampling_defaults *defaults, char text[SAMPLING_DEFAULTS_TEXT])
{
    size_t len = 0;
    char value[32];
    text[0] = 0;
    for (size_t i = 0; i < SAMPLING_N && len < SAMPLING_DEFAULTS_TEXT; i++) {
        write_value(defaults->values[i], value);
        len += (size_t)snprintf(text + len, SAMPLING_DEFAULTS_TEXT - len, "%s%s=%s:%s", i ? " " : "",
                                parameters[i].name, value, source_names[defaults->sources[i]]);
    }
}

void sampling_defaults_read(struct bytes text, struct sampling_defaults *ret_defaults)
{
    char word[LONGEST_WORD];
    sampling_defaults_init(ret_defaults);
    while (next_word(&text, word)) {
        size_t i, source = 0;
        double value;
        const char *rest;
        if (read_word(word, &i, &value, &rest, NULL) < 0 || *rest != ':')
            continue;
        while (source < SAMPLING_SOURCES && strcmp(rest + 1, source_names[source]) != 0)
            source++;
        if (source == SAMPLING_SOURCES)
            continue;
        ret_defaults->values[i] = value;
        ret_defaults->sources[i] = (enum sampling_source)source;
    }
}

void sampling_complete(struct sampling *sampling, const double values[SAMPLING_N])
{
    static const double nobody[SAMPLING_N] = {[0 ... SAMPLING_N - 1] = __builtin_nan("")}; /* equals none */
    sampling_complete_for(sampling, values, nobody);
}

void sampling_complete_for(struct sampling *sampling, const double values[SAMPLING_N],
                           const double own[SAMPLING_N])
{
#define IS_TO_SAY(name) (values[SAMPLING_AT_##name] != own[SAMPLING_AT_##name])
#define COMPLETE_REAL(name, ...)                                                                             \
    if (sampling_real_is_left(sampling->name) && IS_TO_SAY(name))                                            \
        sampling->name = values[SAMPLING_AT_##name];
#define COMPLETE_COUNT(name, ...)                                                                            \
    if (sampling->name == SAMPLING_LEFT_COUNT && IS_TO_SAY(name))                                            \
        sampling->name = (int32_t)values[SAMPLING_AT_##name];
    SAMPLING_PARAMETERS(COMPLETE_REAL, COMPLETE_COUNT)
}
