/* SPDX-License-Identifier: MIT */
/* One flag, which a handler sets and loops look at: handlers can do nothing else safely, and every wait of
 * this command ends when a signal comes. */

#include "client/command/terminal/interrupt.h"

#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t caught;
static const char *volatile farewell;
static const struct termios *volatile settings;

static void on_signal(int number)
{
    if (caught) {
        const char *text = farewell;
        if (text)
            (void)!write(STDOUT_FILENO, text, strlen(text));
        if (settings)
            tcsetattr(STDIN_FILENO, TCSANOW, (const struct termios *)settings);
        _exit(128 + number);
    }
    caught = number;
}

void interrupt_catch(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

void interrupt_farewell(const char *text)
{
    farewell = text;
}

void interrupt_restore(const struct termios *wanted)
{
    settings = wanted;
}

int interrupt_signal(void)
{
    return caught;
}

void interrupt_forget(void)
{
    caught = 0;
}

int interrupt_status(void)
{
    return 128 + caught;
}
