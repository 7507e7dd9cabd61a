/* SPDX-License-Identifier: MIT */
/* See sampling_options.h. */

#include "broker/settings/sampling_options.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/number.h"

static const struct {
    const char *name;
    size_t parameter;
} short_names[SAMPLING_OPTIONS - SAMPLING_N] = {{"temp", SAMPLING_AT_temperature},
                                                {"repeat-penalty", SAMPLING_AT_repetition_penalty},
                                                {"typical", SAMPLING_AT_typical_p},
                                                {"top-nsigma", SAMPLING_AT_top_n_sigma},
                                                {"dynatemp-exp", SAMPLING_AT_dynatemp_exponent}};

static const char *const letters[SAMPLING_N] = {
#define LETTER(name, least, most, initial, letter, help) letter,
#define HELP(name, least, most, initial, letter, help)   help,
    SAMPLING_PARAMETERS(LETTER, LETTER)};
static const char *const helps[SAMPLING_N] = {SAMPLING_PARAMETERS(HELP, HELP)};

/* "top_k" as "top-k". */
static void dashed(size_t i, char name[32])
{
    snprintf(name, 32, "%s", sampling_name(i));
    for (char *c = name; *c; c++)
        *c = *c == '_' ? '-' : *c;
}

void sampling_options_fill(int first_key, int group, struct sampling_option_texts *texts,
                           struct argp_option *ret_rows)
{
    for (size_t i = 0; i < SAMPLING_N; i++) {
        dashed(i, texts->names[i]);
        snprintf(texts->helps[i], sizeof texts->helps[i], "%s", helps[i]);
        texts->helps[i][0] = (char)toupper((unsigned char)texts->helps[i][0]);
        *ret_rows++ =
            (struct argp_option){texts->names[i], first_key + (int)i, letters[i], 0, texts->helps[i], group};
        for (size_t s = 0; s < sizeof short_names / sizeof *short_names; s++)
            if (short_names[s].parameter == i)
                *ret_rows++ = (struct argp_option){.name = short_names[s].name,
                                                   .key = first_key + (int)(SAMPLING_N + s),
                                                   .flags = OPTION_ALIAS,
                                                   .group = group};
    }
}

size_t sampling_option_find(const char *name)
{
    for (size_t s = 0; s < sizeof short_names / sizeof *short_names; s++)
        if (strcmp(name, short_names[s].name) == 0)
            return short_names[s].parameter;
    return strchr(name, '_') ? SAMPLING_N : sampling_index(bytes_of_string(name));
}

size_t sampling_option_of_key(int beyond_first)
{
    if (beyond_first < 0 || beyond_first >= (int)SAMPLING_OPTIONS)
        return SAMPLING_N;
    return beyond_first < (int)SAMPLING_N ? (size_t)beyond_first
                                          : short_names[beyond_first - (int)SAMPLING_N].parameter;
}

int sampling_option_set(double values[SAMPLING_N], size_t i, const char *text, struct error *err)
{
    char name[32];
    double value = 0;
    struct error reason = {0};
    dashed(i, name);
    int r = number_read_real(text, -1e12, 1e12, &value, &reason);
    if (r < 0)
        return error_set(err, -EINVAL, "%s: %s", name, reason.text);
    if (!sampling_takes(i, value, &reason))
        return error_set(err, -EINVAL, "%s%s", name, reason.text + strlen(sampling_name(i)));
    values[i] = value;
    return 0;
}

void sampling_options_write(const double values[SAMPLING_N], struct command_line *line)
{
    for (size_t i = 0; i < SAMPLING_N; i++) {
        char option[40] = "--", text[32];
        if (sampling_real_is_left(values[i]))
            continue;
        dashed(i, option + 2);
        snprintf(text, sizeof text, "%.15g", values[i]);
        command_line_option(line, option, text);
    }
}

void sampling_options_text(const double values[SAMPLING_N], char text[SAMPLING_DEFAULTS_TEXT])
{
    size_t len = 0;
    text[0] = 0;
    for (size_t i = 0; i < SAMPLING_N && len < SAMPLING_DEFAULTS_TEXT; i++)
        if (!sampling_real_is_left(values[i]))
            len += (size_t)snprintf(text + len, SAMPLING_DEFAULTS_TEXT - len, "%s%s=%.15g", len ? " " : "",
                                    sampling_name(i), values[i]);
}
