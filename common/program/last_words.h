/* SPDX-License-Identifier: MIT */
#ifndef COMMON_PROGRAM_LAST_WORDS_H
#define COMMON_PROGRAM_LAST_WORDS_H

/* Writes one line to stderr from the handler of a signal that ends the process. These functions are
 * async-signal-safe; the log and stdio are not. */

#include <stddef.h>

#define LAST_WORDS_MAX 512

/* A line under construction; zeroed: empty. Text that does not fit is dropped. */
struct last_words {
    char line[LAST_WORDS_MAX];
    size_t len;
};

/* Appends; control characters become question marks. NULL is "". */
void last_words_text(struct last_words *words, const char *text);
void last_words_number(struct last_words *words, unsigned long number);

/* Ends the line and writes it. */
void last_words_say(struct last_words *words);

#endif
