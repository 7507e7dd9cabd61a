/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_TERMINAL_INTERRUPT_H
#define CLIENT_COMMAND_TERMINAL_INTERRUPT_H

#include <termios.h>

/* Signals that ask a verb to end: SIGINT, SIGTERM, SIGHUP. */

/* From now on the first signal sets a flag instead of ending the program, so that a private pool never
 * outlives it; a second one ends it at once. SIGPIPE is ignored: writes return EPIPE instead. */
void interrupt_catch(void);

/* Text that the second signal writes to stdout before it ends the program, to reset the terminal; NULL:
 * none. The text must stay valid. */
void interrupt_farewell(const char *text);

/* Settings that the second signal restores on the terminal of stdin; NULL: leave them. */
void interrupt_restore(const struct termios *settings);

/* The signal received, or 0. */
int interrupt_signal(void);

/* Forgets the signal: the next one is the first again. */
void interrupt_forget(void);

/* The exit status of a program that was interrupted: 128 + the signal, as in a shell. */
int interrupt_status(void);

#endif
