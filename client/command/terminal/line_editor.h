/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_TERMINAL_LINE_EDITOR_H
#define CLIENT_COMMAND_TERMINAL_LINE_EDITOR_H

/* The lines that a user types: edited, with a history, if stdin is a terminal; else the lines of stdin.
 *
 * Pasted text becomes part of the current line, newlines included, and Enter sends it. All but dumb
 * terminals mark pasted text (bracketed paste). */

#include <stdbool.h>

#include "common/error.h"

struct line_editor;

/* Called about twice a second while a terminal is waited for. */
typedef void line_editor_idle(void *arg);

/* 0 or -ENOMEM with a reason. */
int line_editor_new(line_editor_idle *idle, void *arg, struct line_editor **ret_editor, struct error *err);
struct line_editor *line_editor_free(struct line_editor *editor);

/* Whether a person types. */
bool line_editor_interactive(const struct line_editor *editor);

/* The next line without its newline, valid until the next call, after `prompt` at a terminal; NULL at the
 * end, or after a signal other than SIGINT. Ctrl-C at a terminal discards the line: it is then empty, and
 * line_editor_gave_up is true. */
const char *line_editor_read(struct line_editor *editor, const char *prompt);

/* Whether what is typed appears on the terminal before a line is read: during an answer it would stand in the
 * middle of it. It is not lost, and appears with the next line. */
void line_editor_quiet(struct line_editor *editor, bool quiet);

/* Of the last line: whether Ctrl-C discarded it, and whether it begins with pasted text. */
bool line_editor_gave_up(const struct line_editor *editor);
bool line_editor_pasted(const struct line_editor *editor);

#endif
