/* SPDX-License-Identifier: MIT */
/* Lines become a turn. The first one says whether more belong to it. */

#include "client/command/terminal/turn.h"

#include <errno.h>
#include <string.h>

#include "client/command/terminal/prompt.h"
#include "common/amount.h"

#define QUOTES   "\"\"\""
#define N_QUOTES (sizeof QUOTES - 1)

/* How many bytes of the line come before the quotes that end it, blanks behind them aside; -1: none do. */
static long before_quotes(const char *line)
{
    size_t len = strlen(line);
    while (len > 0 && strchr(" \t\r\n", line[len - 1]))
        len--;
    bool closes = len >= N_QUOTES && memcmp(line + len - N_QUOTES, QUOTES, N_QUOTES) == 0;
    return closes ? (long)(len - N_QUOTES) : -1;
}

static int append(struct turn *turn, const char *text, size_t len, struct error *err)
{
    if (turn->text.len + len > PROMPT_MAX_BYTES)
        return error_set(err, -EMSGSIZE, "a turn is longer than %s", amount_of_bytes(PROMPT_MAX_BYTES).text);
    return buffer_append(&turn->text, text, len) < 0 ? error_set(err, -ENOMEM, "out of memory") : 0;
}

/* The lines after the quotes, `line` being what follows them; 1 when others close it, 0 at the end. What
 * stands beside quotes is a line of the turn unless it is empty. */
static int read_quoted(struct turn *turn, const char *line, struct line_editor *editor, struct error *err)
{
    size_t n_lines = 0;
    for (bool beside = true;; beside = false) {
        long before = before_quotes(line);
        size_t len = before < 0 ? strlen(line) : (size_t)before;
        int r = 0;
        beside |= before >= 0;
        if (len > 0 || !beside) {
            r = n_lines++ > 0 ? append(turn, "\n", 1, err) : 0;
            r = r == 0 ? append(turn, line, len, err) : r;
        }
        if (r < 0 || before >= 0)
            return r < 0 ? r : 1;
        line = line_editor_read(editor, "... ");
        if (!line)
            return 0;
        if (line_editor_gave_up(editor)) {
            turn->text.len = 0;
            return 1;
        }
    }
}

/* Whether the line opens a turn of several lines. */
static bool opens(const char *line, const struct line_editor *editor)
{
    return strncmp(line, QUOTES, N_QUOTES) == 0 &&
           (!line_editor_pasted(editor) || before_quotes(line + N_QUOTES) >= 0);
}

/* The line, and those that follow it as long as each ends with a backslash; as read_quoted. */
static int read_continued(struct turn *turn, const char *line, struct line_editor *editor, struct error *err)
{
    for (;;) {
        const size_t len = strlen(line);
        const bool goes_on = len > 0 && line[len - 1] == '\\' && !line_editor_pasted(editor);
        int r = append(turn, line, goes_on ? len - 1 : len, err);
        if (r < 0 || !goes_on)
            return r < 0 ? r : 1;
        line = line_editor_read(editor, "... ");
        if (!line) /* a file may end there */
            return line_editor_interactive(editor) ? 0 : 1;
        if (line_editor_gave_up(editor)) {
            turn->text.len = 0;
            return 1;
        }
        r = append(turn, "\n", 1, err);
        if (r < 0)
            return r;
    }
}

int turn_read(struct turn *turn, struct line_editor *editor, struct error *err)
{
    const char *line = line_editor_read(editor, "> ");
    turn->text.len = 0;
    if (!line)
        return 0;
    turn->quoted = opens(line, editor);
    int r = turn->quoted ? read_quoted(turn, line + N_QUOTES, editor, err)
                         : read_continued(turn, line, editor, err);
    if (r == 0 && !line_editor_interactive(editor))
        r = error_set(err, -EINVAL, "stdin ends before " QUOTES " closes a turn");
    if (r == 1 && buffer_append(&turn->text, "", 1) < 0)
        r = error_set(err, -ENOMEM, "out of memory");
    return r;
}

void turn_deinit(struct turn *turn)
{
    buffer_deinit(&turn->text);
}
