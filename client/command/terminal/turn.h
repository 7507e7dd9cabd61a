/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_TERMINAL_TURN_H
#define CLIENT_COMMAND_TERMINAL_TURN_H

/* What the user says next in a conversation: a line, or several between lines of quotes as Python has them.
 *
 *     """def f(x):
 *         return x
 *     """
 *
 * A line that begins with """ opens it, and one that ends with """ closes it, which may be the same; the
 * quotes and a newline next to them are no part of the turn. A line that was pasted with quotes at its
 * beginning and none at its end is a turn as it is. */

#include <stdbool.h>

#include "client/command/terminal/line_editor.h"
#include "common/bytes.h"
#include "common/error.h"

struct turn {
    struct buffer text; /* zero-terminated */
    bool quoted;        /* so that it is no command */
};

/* Reads one; in a zeroed `turn`, or that of the turn before, whose text ends here. Ctrl-C at a terminal gives
 * up all of its lines, and an empty turn results. 1; 0 at the end; -EMSGSIZE, -ENOMEM, or -EINVAL for quotes
 * that nothing closes before the end of a stdin that is no terminal, with a reason. */
int turn_read(struct turn *turn, struct line_editor *editor, struct error *err);

void turn_deinit(struct turn *turn);

#endif
