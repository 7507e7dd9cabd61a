/* SPDX-License-Identifier: MIT */
/* libedit, fed a character at a time, so that a wait can be used for something else; and getline(3).
 *
 * Bracketed paste: the terminal is asked to put ESC [ 200 ~ before what is pasted and ESC [ 201 ~ behind it.
 * The former is a key like others to libedit, and its function reads up to the latter. The mode is on from
 * the first line to the last, not only while a line is read: what is pasted during an answer waits in the
 * terminal and has to be marked as well. Whatever ends the program switches it off (interrupt_farewell), or
 * the shell would get the marks. */

#include "client/command/terminal/line_editor.h"

#include <errno.h>
#include <histedit.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

#include "client/command/terminal/interrupt.h"
#include "client/command/terminal/io.h"

#define IDLE_MS       500
#define CTRL_D        4
#define HISTORY_LINES 1000

#define PASTE_ON    "\033[?2004h"
#define PASTE_OFF   "\033[?2004l"
#define PASTE_BEGIN L"\033[200~"
#define PASTE_END   L"\033[201~"
#define PASTE_MOST  (1u << 20) /* characters */
#define PASTE_ROOM  (PASTE_MOST + sizeof PASTE_END / sizeof(wchar_t))

struct line_editor {
    line_editor_idle *idle;
    void *arg;
    EditLine *terminal; /* NULL: stdin is none */
    History *history;
    const char *prompt;
    char *line;
    size_t size;
    wchar_t *paste; /* [PASTE_ROOM], once there was one */
    bool marks;     /* the terminal was asked to mark what is pasted */
    bool gave_up, pasted;
    bool quiet;
    struct termios loud; /* the terminal's settings before it was made quiet */
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
        /* A Ctrl-D that was typed before the terminal was ours, during an answer, is a NUL when it becomes
         * that; the key that sends one itself only sets a mark. */
        if (*ret_character == 0)
            *ret_character = CTRL_D;
        return 1;
    }
}

static char *prompt_text(EditLine *terminal)
{
    struct line_editor *editor;
    el_get(terminal, EL_CLIENTDATA, &editor);
    return (char *)editor->prompt;
}

/* ---- what is pasted ---- */

/* Reads up to the mark behind it, however long it is. Lines end with \n, however the terminal sends them. The
 * number of characters, of which PASTE_MOST are kept; -1 at the end of input, and when a signal came. */
static long read_paste(struct line_editor *editor)
{
    static const wchar_t end[] = PASTE_END;
    size_t n = 0, matched = 0;
    wchar_t c;
    while (el_wgetc(editor->terminal, &c) == 1) {
        /* Only its first character is an escape: after a mismatch nothing but that can begin it anew. */
        matched = c == end[matched] ? matched + 1 : c == end[0];
        if (n < PASTE_ROOM && c != 0)
            editor->paste[n++] = c == L'\r' ? L'\n' : c;
        if (end[matched] == 0)
            return (long)(n < PASTE_ROOM ? n - matched : n);
    }
    return -1;
}

/* libedit's function of the key that a paste begins with. */
static unsigned char take_paste(EditLine *terminal, wint_t key)
{
    struct line_editor *editor;
    const LineInfoW *line = el_wline(terminal);
    bool first = line->lastchar == line->buffer;
    (void)key;
    el_get(terminal, EL_CLIENTDATA, &editor);
    if (!editor->paste)
        editor->paste = malloc(PASTE_ROOM * sizeof *editor->paste);
    if (!editor->paste)
        return CC_ERROR;
    long n = read_paste(editor);
    if (n < 0)
        return CC_EOF;
    if (n > (long)PASTE_MOST) {
        fprintf(stderr, "\n(pasted text beyond %u characters was dropped)\n", PASTE_MOST);
        return CC_REDISPLAY;
    }
    while (n > 0 && editor->paste[n - 1] == L'\n') /* what was copied by whole lines */
        n--;
    editor->paste[n] = 0;
    if (n == 0)
        return CC_NORM;
    if (el_winsertstr(terminal, editor->paste) < 0)
        return CC_ERROR;
    editor->pasted |= first;
    return CC_REFRESH;
}

static void ask_for_marks(struct line_editor *editor)
{
    if (!io_redraws(STDOUT_FILENO))
        return;
    editor->marks = true;
    interrupt_farewell(PASTE_OFF);
    el_wset(editor->terminal, EL_ADDFN, L"quern-paste", L"Insert what is pasted", take_paste);
    el_wset(editor->terminal, EL_BIND, PASTE_BEGIN, L"quern-paste", NULL);
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
    /* After the signal of a Ctrl-C the terminal drops what was typed and, perhaps, what we already answer. */
    el_set(editor->terminal, EL_SETTY, "-d", "+noflsh", NULL);
    if (editor->history) {
        history(editor->history, &event, H_SETSIZE, HISTORY_LINES);
        el_set(editor->terminal, EL_HIST, history, editor->history);
    }
    ask_for_marks(editor);
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
    line_editor_quiet(editor, false);
    if (editor->history)
        history_end(editor->history);
    if (editor->terminal)
        el_end(editor->terminal);
    if (editor->marks) {
        io_write(PASTE_OFF, strlen(PASTE_OFF));
        interrupt_farewell(NULL);
    }
    free(editor->paste);
    free(editor->line);
    free(editor);
    return NULL;
}

bool line_editor_interactive(const struct line_editor *editor)
{
    return editor->terminal != NULL;
}

void line_editor_quiet(struct line_editor *editor, bool quiet)
{
    if (!editor->terminal || editor->quiet == quiet)
        return;
    if (!quiet) {
        tcsetattr(STDIN_FILENO, TCSANOW, &editor->loud);
        interrupt_restore(NULL);
        editor->quiet = false;
        return;
    }
    if (tcgetattr(STDIN_FILENO, &editor->loud) < 0)
        return;
    struct termios silent = editor->loud;
    silent.c_lflag &= ~(tcflag_t)(ECHO | ECHONL);
    interrupt_restore(&editor->loud);
    editor->quiet = tcsetattr(STDIN_FILENO, TCSANOW, &silent) == 0;
}

bool line_editor_gave_up(const struct line_editor *editor)
{
    return editor->gave_up;
}

bool line_editor_pasted(const struct line_editor *editor)
{
    return editor->pasted;
}

static const char *read_typed(struct line_editor *editor)
{
    int n = 0;
    HistEvent event;
    if (editor->marks) /* again and again: who came to the front meanwhile may have switched it off */
        io_write(PASTE_ON, strlen(PASTE_ON));
    el_set(editor->terminal, EL_PREP_TERM, 1); /* el_gets does it after the prompt: keys come before that */
    const char *got = el_gets(editor->terminal, &n);
    if (!got && interrupt_signal() == SIGINT) {
        /* The line is given up, the program is not. */
        interrupt_forget();
        tcflush(STDIN_FILENO, TCIFLUSH); /* what was typed before it */
        el_reset(editor->terminal);
        editor->gave_up = true;
        fputs("\n(Ctrl-D or /exit ends the conversation)\n", stderr);
        return "";
    }
    if (!got || n <= 0)
        return NULL;
    if (editor->history && got[0] != '\n')
        history(editor->history, &event, H_ENTER, got);
    free(editor->line);
    size_t len = strlen(got);
    editor->line = strndup(got, len > 0 && got[len - 1] == '\n' ? len - 1 : len);
    return editor->line;
}

const char *line_editor_read(struct line_editor *editor, const char *prompt)
{
    editor->prompt = prompt;
    editor->gave_up = editor->pasted = false;
    if (editor->terminal)
        return read_typed(editor);
    ssize_t n = getline(&editor->line, &editor->size, stdin);
    if (n < 0)
        return NULL;
    editor->line[strcspn(editor->line, "\r\n")] = 0;
    return editor->line;
}
