/* SPDX-License-Identifier: MIT */
/* libedit, fed a character at a time, so that a wait can be used for something else; and getline(3). */

#include "client/command/line_editor.h"

#include <errno.h>
#include <histedit.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "client/command/interrupt.h"

#define IDLE_MS       500
#define HISTORY_LINES 1000

struct line_editor {
    line_editor_idle *idle;
    void *arg;
    EditLine *terminal; /* NULL: stdin is none */
    History *history;
    char *line;
    size_t size;
};

/* libedit's source of characters. 1, 0 at the end, -1 when a signal came. */
static int read_character(EditLine *terminal, wchar_t *ret_character)
{
    struct line_editor *editor;
    mbstate_t state = {0};
    el_get(terminal, EL_CLIENTDATA, &editor);
    for (;;) {
        struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
        char byte;
        int ready = poll(&input, 1, IDLE_MS);
        if (interrupt_signal())
            return -1;
        editor->idle(editor->arg);
        if (ready <= 0)
            continue;
        ssize_t n = read(STDIN_FILENO, &byte, 1);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n <= 0)
            return 0;
        size_t used = mbrtowc(ret_character, &byte, 1, &state);
        if (used == (size_t)-2)
            continue; /* in the middle of a character */
        if (used == (size_t)-1) {
            memset(&state, 0, sizeof state);
            continue;
        }
        return 1;
    }
}

static char *prompt_text(EditLine *terminal)
{
    static char text[] = "> ";
    (void)terminal;
    return text;
}

/* What is typed goes to the pool as it is, and there it is UTF-8: a locale that knows less (LANG=C) would
 * lose every character beyond ASCII on the way. */
static void use_utf8(void)
{
    setlocale(LC_CTYPE, "");
    if (strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
        setlocale(LC_CTYPE, "C.UTF-8");
}

static void open_terminal(struct line_editor *editor)
{
    HistEvent event;
    use_utf8();
    editor->terminal = el_init("quern", stdin, stdout, stderr);
    if (!editor->terminal)
        return;
    editor->history = history_init();
    el_set(editor->terminal, EL_CLIENTDATA, editor);
    el_set(editor->terminal, EL_PROMPT, prompt_text);
    el_set(editor->terminal, EL_EDITOR, "emacs");
    el_set(editor->terminal, EL_SIGNAL, 0);
    el_set(editor->terminal, EL_GETCFN, read_character);
    if (editor->history) {
        history(editor->history, &event, H_SETSIZE, HISTORY_LINES);
        el_set(editor->terminal, EL_HIST, history, editor->history);
    }
}

int line_editor_new(line_editor_idle *idle, void *arg, struct line_editor **ret_editor, struct error *err)
{
    struct line_editor *editor = calloc(1, sizeof *editor);
    if (!editor)
        return error_set(err, -ENOMEM, "out of memory");
    editor->idle = idle;
    editor->arg = arg;
    if (isatty(STDIN_FILENO))
        open_terminal(editor);
    *ret_editor = editor;
    return 0;
}

struct line_editor *line_editor_free(struct line_editor *editor)
{
    if (!editor)
        return NULL;
    if (editor->history)
        history_end(editor->history);
    if (editor->terminal)
        el_end(editor->terminal);
    free(editor->line);
    free(editor);
    return NULL;
}

bool line_editor_interactive(const struct line_editor *editor)
{
    return editor->terminal != NULL;
}

static const char *read_typed(struct line_editor *editor)
{
    for (;;) {
        int n;
        HistEvent event;
        const char *got = el_gets(editor->terminal, &n);
        if (!got && interrupt_signal() == SIGINT) {
            /* The line is given up, the program is not. */
            interrupt_forget();
            el_reset(editor->terminal);
            fputs("\n(Ctrl-D or /exit ends the conversation)\n", stderr);
            continue;
        }
        if (!got || n <= 0)
            return NULL;
        if (editor->history && got[0] != '\n')
            history(editor->history, &event, H_ENTER, got);
        free(editor->line);
        editor->line = strndup(got, strcspn(got, "\r\n"));
        return editor->line;
    }
}

const char *line_editor_read(struct line_editor *editor)
{
    if (editor->terminal)
        return read_typed(editor);
    ssize_t n = getline(&editor->line, &editor->size, stdin);
    if (n < 0)
        return NULL;
    editor->line[strcspn(editor->line, "\r\n")] = 0;
    return editor->line;
}
