/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_TERMINAL_TURN_H
#define CLIENT_COMMAND_TERMINAL_TURN_H

/* The user's next turn in a conversation: a line, several lines of which all but the last end with a
 * backslash, or several lines between triple quotes as in Python.
 *
 *     """def f(x):
 *         return x
 *     """
 *
 * A line that begins with """ opens the turn, and one that ends with """ closes it, which may be the same
 * line; the quotes and a newline next to them are not part of the turn. Nor are backslashes at the end of
 * lines, but the newlines are. A pasted line that begins with quotes and does not end with them, or ends with
 * a backslash, is a turn as is. */

#include <stdbool.h>

#include "client/command/terminal/line_editor.h"
#include "common/bytes.h"
#include "common/error.h"

struct turn {
    struct buffer text; /* zero-terminated */
    bool quoted;        /* so it is not a command */
};

/* Reads a turn into a zeroed `turn` or over the previous one. Ctrl-C at a terminal discards all its lines,
 * giving an empty turn. 1; 0 at the end of input; -EMSGSIZE, -ENOMEM, or -EINVAL (quotes still open at the
 * end of a stdin that is not a terminal), with a reason. */
int turn_read(struct turn *turn, struct line_editor *editor, struct error *err);

void turn_deinit(struct turn *turn);

#endif
