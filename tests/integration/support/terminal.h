/* SPDX-License-Identifier: MIT */
#ifndef TESTS_INTEGRATION_SUPPORT_TERMINAL_H
#define TESTS_INTEGRATION_SUPPORT_TERMINAL_H

/* Runs quern on a pseudo-terminal: types input and reads the screen. One at a time. */

#include <stddef.h>
#include <sys/types.h>

/* Output so far, zero-terminated by expect and gather_screen; its length, and the position up to which expect
 * has searched. */
extern char screen[1 << 20];
extern size_t shown, looked;

/* Starts quern with $TERM `term` and the C locale. */
pid_t start(int *ret_terminal, const char *term, char *const *argv);

/* Reads until `text` has appeared after the previously expected text. */
void expect(int terminal, const char *text);

void type(int terminal, const char *text);

/* Reads all output until the program ends. */
void gather_screen(int terminal);

/* Waits for the program's end; returns the exit status, or 128 + the signal. */
int end_of(pid_t pid, int terminal);

#endif
