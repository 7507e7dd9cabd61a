/* SPDX-License-Identifier: MIT */
#ifndef BROKER_SETTINGS_SAMPLING_OPTIONS_H
#define BROKER_SETTINGS_SAMPLING_OPTIONS_H

/* A pool's sampling defaults as options and settings: --top-p P, "top-p = P", for each row of the list in
 * common/sampling.h, under its name and some shorter ones. */

#include <argp.h>
#include <stddef.h>

#include "common/error.h"
#include "common/program/command_line.h"
#include "common/sampling_defaults.h"

#define SAMPLING_OPTIONS (SAMPLING_N + 5) /* including the short names */

/* Texts that argp borrows. */
struct sampling_option_texts {
    char names[SAMPLING_N][32], helps[SAMPLING_N][128];
};

/* Writes [SAMPLING_OPTIONS] rows with the keys from `first_key` on. */
void sampling_options_fill(int first_key, int group, struct sampling_option_texts *texts,
                           struct argp_option *ret_rows);

/* The parameter set by this name, or by the option with the key first_key + beyond_first; SAMPLING_N:
 * none. */
size_t sampling_option_find(const char *name);
size_t sampling_option_of_key(int beyond_first);

/* Sets the i-th value from text; NaN means not given. 0 or -EINVAL with the reason. */
int sampling_option_set(double values[SAMPLING_N], size_t i, const char *text, struct error *err);

/* Writes the given values: as options, and as the text of a worker's --sampling (sampling_defaults_set),
 * which may be "". */
void sampling_options_write(const double values[SAMPLING_N], struct command_line *line);
void sampling_options_text(const double values[SAMPLING_N], char text[SAMPLING_DEFAULTS_TEXT]);

#endif
