/* SPDX-License-Identifier: MIT */
#ifndef COMMON_PROGRAM_LAST_WORDS_H
#define COMMON_PROGRAM_LAST_WORDS_H

/* One line on stderr from a handler of a signal that ends the process. These functions are safe there; the
 * log and stdio are not. */

#include <stddef.h>

#define LAST_WORDS_MAX 512

/* A line under construction; zeroed, it is empty. Text that does not fit is dropped. */
struct last_words {
    char line[LAST_WORDS_MAX];
    size_t len;
};

/* Appends; a control character becomes a question mark. NULL is "". */
void last_words_text(struct last_words *words, const char *text);
void last_words_number(struct last_words *words, unsigned long number);

/* Ends the line and writes it at once. */
void last_words_say(struct last_words *words);

#endif
