/* SPDX-License-Identifier: MIT */
/* No memory, no lock, no locale: only write(2), which async-signal-safety(7) lists. */

#include "common/program/last_words.h"

#include <unistd.h>

void last_words_text(struct last_words *words, const char *text)
{
    /* One byte is kept for the newline. */
    for (; text && *text && words->len < LAST_WORDS_MAX - 1; text++) {
        unsigned char byte = (unsigned char)*text;
        words->line[words->len++] = (char)(byte < ' ' || byte == 0x7f ? '?' : byte);
    }
}

void last_words_number(struct last_words *words, unsigned long number)
{
    char digits[24];
    size_t at = sizeof digits;
    digits[--at] = 0;
    do
        digits[--at] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    last_words_text(words, digits + at);
}

void last_words_say(struct last_words *words)
{
    words->line[words->len++] = '\n';
    ssize_t n = write(STDERR_FILENO, words->line, words->len);
    (void)n; /* nobody is left to be told */
}
