/* SPDX-License-Identifier: MIT */
/* A growable list of words that always ends with NULL. */

#include "common/program/command_line.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void command_line_add(struct command_line *line, const char *word)
{
    if (line->n + 2 > line->cap) {
        size_t cap = line->cap * 2 + 16;
        char **words = reallocarray(line->words, cap, sizeof *words);
        if (!words) {
            line->failed = true;
            return;
        }
        line->words = words;
        line->cap = cap;
    }
    char *copy = strdup(word);
    line->failed |= !copy;
    if (copy)
        line->words[line->n++] = copy;
    line->words[line->n] = NULL;
}

void command_line_option(struct command_line *line, const char *name, const char *value)
{
    if (!value)
        return;
    command_line_add(line, name);
    command_line_add(line, value);
}

void command_line_number(struct command_line *line, const char *name, int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, value);
    command_line_option(line, name, text);
}

char *const *command_line_words(const struct command_line *line)
{
    return line->failed ? NULL : line->words;
}

void command_line_deinit(struct command_line *line)
{
    for (size_t i = 0; i < line->n; i++)
        free(line->words[i]);
    free(line->words);
    *line = (struct command_line){0};
}
