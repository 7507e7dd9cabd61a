/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_TERMINAL_TURN_H
#define CLIENT_COMMAND_TERMINAL_TURN_H

/* The user's next turn in a conversation: a line, several of which all but the last end with a backslash, or
 * several between triple quotes as in Python.
 *
 *     """def f(x):
 *         return x
 *     """
 *
 * A line that begins with """ opens it, and one that ends with """ closes it, which may be the same; the
 * quotes and a newline next to them are not part of the turn. Backslashes at the end of lines are not part of
 * it either; the newlines are. A pasted line that begins with quotes and does not end with them, or ends with
 * a backslash, is a turn as is. */

#include <stdbool.h>

#include "client/command/terminal/line_editor.h"
#include "common/bytes.h"
#include "common/error.h"

struct turn {
    struct buffer text; /* zero-terminated */
    bool quoted;        /* so that it is no command */
};

/* Reads one; in a zeroed `turn`, or that of the turn before, whose text ends here. Ctrl-C at a terminal
 * discards all its lines, giving an empty turn. 1; 0 at the end; -EMSGSIZE, -ENOMEM, or -EINVAL for quotes
 * that are still open at the end of a stdin that is not a terminal, with a reason. */
int turn_read(struct turn *turn, struct line_editor *editor, struct error *err);

void turn_deinit(struct turn *turn);

#endif
