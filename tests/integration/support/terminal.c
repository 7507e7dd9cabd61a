/* SPDX-License-Identifier: MIT */
#include "tests/integration/support/terminal.h"

#include <check.h>
#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "tests/integration/support/pool.h"

#define WAIT_S 30

char screen[1 << 20];
size_t shown, looked;

pid_t start(int *ret_terminal, const char *term, char *const *argv)
{
    char program[4096];
    snprintf(program, sizeof program, "%s", build_path("quern"));
    shown = looked = 0;
    pid_t pid = forkpty(ret_terminal, NULL, NULL, NULL);
    if (pid < 0) /* no assertion behind it, which the child would run as well: see child.h */
        ck_abort_msg("forkpty: %s", strerror(errno));
    if (pid == 0) {
        setenv("TERM", term, 1);
        setenv("LANG", "C", 1); /* however little the terminal says it can */
        unsetenv("LC_ALL");
        unsetenv("LC_CTYPE");
        execv(program, argv);
        _exit(127);
    }
    return pid;
}

void expect(int terminal, const char *text)
{
    uint64_t until = clock_ns() + WAIT_S * CLOCK_NS_PER_S;
    for (;;) {
        screen[shown] = 0;
        char *at = strstr(screen + looked, text);
        if (at) {
            looked = (size_t)(at - screen) + strlen(text);
            return;
        }
        struct pollfd readable = {.fd = terminal, .events = POLLIN};
        poll(&readable, 1, 100);
        ssize_t n = 0;
        if (readable.revents)
            n = read(terminal, screen + shown, sizeof screen - shown - 1);
        if (n < 0 || clock_ns() > until)
            ck_abort_msg("\"%s\" did not come (%s); the screen ends: %s", text,
                         n < 0 ? "the program is gone" : "waited", screen + (shown > 300 ? shown - 300 : 0));
        shown += (size_t)n;
        if (shown > sizeof screen / 2) { /* a long answer: its end is enough */
            memmove(screen, screen + shown - 100, 100);
            shown = 100;
            looked = 0;
        }
    }
}

void type(int terminal, const char *text)
{
    ck_assert_int_eq(write(terminal, text, strlen(text)), (ssize_t)strlen(text));
}

int end_of(pid_t pid, int terminal)
{
    int status;
    /* What is still to be shown must be read, or the program waits for it. */
    for (ssize_t n = 1; n > 0;)
        n = read(terminal, screen, sizeof screen - 1);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    close(terminal);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void gather_screen(int terminal)
{
    ssize_t n;
    while (shown < sizeof screen - 1 && (n = read(terminal, screen + shown, sizeof screen - 1 - shown)) > 0)
        shown += (size_t)n;
    screen[shown] = 0;
}
