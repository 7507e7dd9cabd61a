/* SPDX-License-Identifier: MIT */
/* See sampling_hints.h. Files have floats of 32 bits: 0.6 is the shortest number that is the same one. */

#include "model/sampling_hints.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where files have another word for a parameter. */
static const char *const file_names[][2] = {
    {"temperature", "temp"}, {"repetition_penalty", "penalty_repeat"}, {"repeat_last_n", "penalty_last_n"}};

void sampling_hint_key(size_t i, char ret_key[96])
{
    const char *name = sampling_name(i);
    for (size_t f = 0; f < sizeof file_names / sizeof *file_names; f++)
        if (strcmp(name, file_names[f][0]) == 0)
            name = file_names[f][1];
    snprintf(ret_key, 96, "general.sampling.%s", name);
}

static double shortest(double value)
{
    char text[32];
    snprintf(text, sizeof text, "%.7g", value);
    double rounded = strtod(text, NULL);
    return (float)rounded >= (float)value && (float)rounded <= (float)value ? rounded : value;
}

/* NaN for what is no number. */
static double number_of(const struct gguf_value *value)
{
    if (value->type == GGUF_F32)
        return shortest(value->f);
    if (value->type == GGUF_F64)
        return value->f;
    bool other = value->type == GGUF_STRING || value->type == GGUF_ARRAY || value->type == GGUF_BOOL;
    return other ? (double)NAN : (double)value->i;
}

void sampling_hints(const struct gguf *gguf, struct sampling_defaults *defaults, struct error *err)
{
    for (size_t i = 0; i < SAMPLING_N; i++) {
        char key[96];
        struct error reason = {0};
        sampling_hint_key(i, key);
        const struct gguf_value *value = gguf_find(gguf, key);
        if (!value)
            continue;
        double number = number_of(value);
        if (i == SAMPLING_AT_top_k && number < 0)
            number = 0; /* both are off */
        if (sampling_takes(i, number, &reason)) {
            defaults->values[i] = number;
            defaults->sources[i] = SAMPLING_OF_MODEL;
        } else {
            error_set(err, 0, "%s ignored: %s", key, reason.text);
        }
    }
}
