/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_TERMINAL_LINE_EDITOR_H
#define CLIENT_COMMAND_TERMINAL_LINE_EDITOR_H

/* The lines that a user types: edited, with a history, where stdin is a terminal; else the lines of stdin.
 *
 * What is pasted into a terminal becomes part of the line that is edited, its newlines too, and is sent by
 * Enter like what was typed. Terminals mark what is pasted (bracketed paste) unless they are dumb. */

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
 * end, or when a signal other than SIGINT came. Ctrl-C at a terminal gives up the line: that is an empty
 * line, and line_editor_gave_up says so. */
const char *line_editor_read(struct line_editor *editor, const char *prompt);

/* Whether what is typed appears on the terminal before a line is read: during an answer it would stand in the
 * middle of it. It is not lost, and appears with the next line. */
void line_editor_quiet(struct line_editor *editor, bool quiet);

/* Of the line that was read last: whether Ctrl-C gave it up, and whether it begins with something pasted. */
bool line_editor_gave_up(const struct line_editor *editor);
bool line_editor_pasted(const struct line_editor *editor);

#endif
