/* SPDX-License-Identifier: MIT */
#ifndef COMMON_PROGRAM_COMMAND_LINE_H
#define COMMON_PROGRAM_COMMAND_LINE_H

/* The command line of a program to start, built word by word.
 *
 *     struct command_line line = {0};
 *     command_line_add(&line, "/usr/bin/quern-worker");
 *     command_line_option(&line, "--name", name);
 *     char *const *words = command_line_words(&line);
 *     if (words)
 *         execv(words[0], words);
 *     command_line_deinit(&line);
 *
 * Words are copied. If memory runs out, only command_line_words reports it. A zeroed one is empty. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct command_line {
    char **words; /* [n], and a NULL */
    size_t n, cap;
    bool failed;
};

void command_line_add(struct command_line *line, const char *word);

/* NAME VALUE; nothing if `value` is NULL. */
void command_line_option(struct command_line *line, const char *name, const char *value);

/* NAME VALUE in decimal. */
void command_line_number(struct command_line *line, const char *name, int64_t value);

/* The words for execv(3), borrowed from the line; NULL if memory ran out. */
char *const *command_line_words(const struct command_line *line);

void command_line_deinit(struct command_line *line);

#endif
