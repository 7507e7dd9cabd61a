/* SPDX-License-Identifier: MIT */
/* quern top: the status of a pool, every second, until q or Ctrl-C, which is how it ends well.
 *
 * Keys come one by one and unseen, so the terminal's settings are changed and put back at every way out; a
 * signal only sets a flag (interrupt.h). While nobody presses one, the session is kept alive. */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include "client/command/terminal/interrupt.h"
#include "client/command/terminal/io.h"
#include "client/command/pool/pool.h"
#include "client/command/latency_view.h"
#include "client/command/status_view.h"
#include "client/command/verbs.h"
#include "common/program/arguments.h"
#include "common/clock.h"

#define REFRESH_NS  CLOCK_NS_PER_S
#define KEY_WAIT_MS 50 /* a key is noticed within that */

struct keyboard {
    bool is_terminal;
    struct termios before;
};

static void keyboard_open(struct keyboard *keyboard)
{
    keyboard->is_terminal = tcgetattr(STDIN_FILENO, &keyboard->before) == 0;
    if (!keyboard->is_terminal)
        return;
    struct termios keys = keyboard->before;
    keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    keys.c_cc[VMIN] = 0; /* a read never waits */
    keys.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSANOW, &keys);
}

static void keyboard_close(const struct keyboard *keyboard)
{
    if (keyboard->is_terminal)
        tcsetattr(STDIN_FILENO, TCSANOW, &keyboard->before);
}

/* Whether q was pressed. */
static bool wants_to_leave(const struct keyboard *keyboard)
{
    char key;
    while (keyboard->is_terminal && read(STDIN_FILENO, &key, 1) == 1)
        if (key == 'q' || key == 'Q')
            return true;
    return false;
}

/* Shows the status once. 0 or -errno with a reason. */
static int show(struct quern *client, struct latency_view *view, struct error *err)
{
    const struct quern_status *status;
    int r = status_ask(client, &status, err);
    if (r < 0)
        return r;
    if (io_redraws(STDOUT_FILENO))
        fputs("\033[H\033[J", stdout); /* home, clear */
    status_print(status, status_columns(), io_colours(STDOUT_FILENO));
    latency_print(view, status, status_columns(), io_colours(STDOUT_FILENO));
    if (!io_redraws(STDOUT_FILENO))
        putchar('\n');
    return fflush(stdout) == 0 ? 0 : error_set(err, -errno, "stdout: %s", strerror(errno));
}

static int watch(struct quern *client, struct error *err)
{
    struct keyboard keyboard;
    static struct latency_view view;
    bool leave = false;
    int r = 0;
    keyboard_open(&keyboard);
    while (r == 0 && !leave && !interrupt_signal()) {
        uint64_t shown_ns = clock_ns();
        r = show(client, &view, err);
        while (r == 0 && !leave && !interrupt_signal() && clock_ns() - shown_ns < REFRESH_NS) {
            struct quern_error said = {0};
            int made = quern_dispatch(client, KEY_WAIT_MS, &said);
            if (made < 0)
                r = error_set(err, made, "%s", said.text);
            leave = wants_to_leave(&keyboard);
        }
    }
    keyboard_close(&keyboard);
    return r;
}

static int parse(int key, char *arg, struct argp_state *state)
{
    if (key != ARGP_KEY_INIT)
        return ARGP_ERR_UNKNOWN;
    state->child_inputs[0] = state->input;
    return 0;
}

int verb_top(int argc, char **argv)
{
    static const struct argp_child children[] = {{&status_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {.children = children,
                                     .parser = parse,
                                     .doc =
                                         "Shows the workers of a pool and its totals, every second, until q "
                                         "or Ctrl-C. Times cover the last second: half of them are below the "
                                         "first number, 99% below the second.\v" STATUS_DEFAULT_POOL};
    struct status_arguments arguments = {0};
    struct quern *client = NULL;
    struct error err = {0};
    arguments_parse(&argp, argc, argv, &arguments);
    interrupt_catch();
    int r = pool_connect(arguments.connect, arguments.server_key, arguments.client_key, &client, &err);
    if (r == 0)
        r = watch(client, &err);
    quern_free(client);
    if (r == -EPIPE)
        return IO_EXIT_PIPE;
    if (r < 0)
        return verb_fail(r, &err);
    return interrupt_signal() && interrupt_signal() != SIGINT ? interrupt_status() : EXIT_SUCCESS;
}
