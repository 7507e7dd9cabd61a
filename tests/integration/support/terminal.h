/* SPDX-License-Identifier: MIT */
#ifndef TESTS_INTEGRATION_SUPPORT_TERMINAL_H
#define TESTS_INTEGRATION_SUPPORT_TERMINAL_H

/* quern on a terminal of its own: what is typed and what is seen. One at a time. */

#include <stddef.h>
#include <sys/types.h>

/* What has been shown, zero-terminated by expect and gather_screen; how much, and up to where expect has
 * looked. */
extern char screen[1 << 20];
extern size_t shown, looked;

/* Starts quern with $TERM `term` and the C locale. */
pid_t start(int *ret_terminal, const char *term, char *const *argv);

/* Reads until `text` has appeared after what was expected before. */
void expect(int terminal, const char *text);

void type(int terminal, const char *text);

/* Reads all that is shown until the program ends. */
void gather_screen(int terminal);

/* Waits for the end; the exit status, or 128 + the signal. */
int end_of(pid_t pid, int terminal);

#endif
