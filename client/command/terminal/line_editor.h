/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_TERMINAL_LINE_EDITOR_H
#define CLIENT_COMMAND_TERMINAL_LINE_EDITOR_H

/* Reads the user's lines: with editing and a history if stdin is a terminal; else the lines of stdin.
 *
 * Pasted text becomes part of the current line, newlines included, and Enter sends it. All terminals except
 * dumb ones mark pasted text (bracketed paste). */

#include <stdbool.h>

#include "common/error.h"

struct line_editor;

/* Called about twice a second while waiting for input from a terminal. */
typedef void line_editor_idle(void *arg);

/* 0 or -ENOMEM with a reason. */
int line_editor_new(line_editor_idle *idle, void *arg, struct line_editor **ret_editor, struct error *err);
struct line_editor *line_editor_free(struct line_editor *editor);

/* Whether stdin is a terminal. */
bool line_editor_interactive(const struct line_editor *editor);

/* The next line without its newline, valid until the next call; at a terminal `prompt` is shown before it.
 * NULL at the end, or after a signal other than SIGINT. Ctrl-C at a terminal discards the line: it is then
 * empty, and line_editor_gave_up is true. */
const char *line_editor_read(struct line_editor *editor, const char *prompt);

/* With `quiet`, text typed while no line is being read is not echoed, because it would appear in the middle
 * of an answer. It is not lost, and appears with the next line. */
void line_editor_quiet(struct line_editor *editor, bool quiet);

/* Of the last line: whether Ctrl-C discarded it, and whether it begins with pasted text. */
bool line_editor_gave_up(const struct line_editor *editor);
bool line_editor_pasted(const struct line_editor *editor);

#endif
