/* SPDX-License-Identifier: MIT */
/* quern scale, drain and undrain: change which workers a running pool has, and wait until it has them. */

#include <argp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "client/command/pool/control_client.h"
#include "client/command/pool/place.h"
#include "client/command/verbs.h"
#include "common/number.h"
#include "common/program/arguments.h"
#include "proto/supervision.h"

enum { KEY_RUNDIR = 1000, KEY_CONNECT };

struct wish {
    const char *rundir; /* NULL: the default one */
    enum control_kind kind;
    const char *what; /* the argument's name */
    bool has_number;
    uint32_t number;
};

/* "1" or "worker-1"; or how many workers there are to be. */
static void take_number(struct wish *wish, const char *text, struct argp_state *state)
{
    static const char prefix[] = "worker-";
    struct error err;
    bool scale = wish->kind == CONTROL_SCALE;
    if (!scale && strncmp(text, prefix, sizeof prefix - 1) == 0)
        text += sizeof prefix - 1;
    if (wish->has_number)
        argp_error(state, "unexpected argument \"%s\"", text);
    if (number_read_u32(text, scale, scale ? SUPERVISION_PLACES_MAX : SUPERVISION_PLACES_MAX - 1,
                        &wish->number, &err) < 0)
        argp_error(state, "%s: %s", wish->what, err.text);
    wish->has_number = true;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct wish *wish = state->input;
    if (key >= '0' && key <= '9')
        argp_error(state, "%s: it cannot be negative", wish->what);
    else if (key == ARGP_KEY_ARG)
        take_number(wish, arg, state);
    else if (key == ARGP_KEY_END && !wish->has_number)
        argp_error(state, "no %s given", wish->what);
    else if (key == KEY_RUNDIR || key == KEY_CONNECT)
        place_take_folder(state, key == KEY_RUNDIR, arg, &wish->rundir);
    else if (key != ARGP_KEY_END)
        return ARGP_ERR_UNKNOWN;
    return 0;
}

/* -1 is an option to argp: of the digits, so that it is refused for what it is. */
#define DIGIT(key)                                                                                           \
    {                                                                                                        \
        NULL, key, NULL, OPTION_HIDDEN, NULL, 0                                                              \
    }

static int ask(int argc, char **argv, enum control_kind kind, const char *what, const char *doc)
{
    static const struct argp_option options[] = {
        {"rundir", KEY_RUNDIR, "DIR", 0,
         "Run directory of the pool (default $XDG_RUNTIME_DIR/quern or /tmp/quern-UID)", 0},
        {"connect", KEY_CONNECT, "DIR", 0, "The same as --rundir", 0},
        DIGIT('0'),
        DIGIT('1'),
        DIGIT('2'),
        DIGIT('3'),
        DIGIT('4'),
        DIGIT('5'),
        DIGIT('6'),
        DIGIT('7'),
        DIGIT('8'),
        DIGIT('9'),
        {0}};
    const struct argp argp = {.options = options, .parser = parse, .args_doc = what, .doc = doc};
    struct wish wish = {.kind = kind, .what = what};
    struct error err = {0};
    arguments_parse(&argp, argc, argv, &wish);
    int r = control_ask(wish.rundir, wish.kind, wish.number, &err);
    return r < 0 ? verb_fail(r, &err) : EXIT_SUCCESS;
}

int verb_scale(int argc, char **argv)
{
    return ask(argc, argv, CONTROL_SCALE, "N",
               "Changes the number of workers of a running pool to N. No request is lost: surplus workers, "
               "those with the highest numbers, hand over their requests to the others and end.\vThe broker "
               "is replaced in the process, without effect on clients. Remaining workers keep their threads "
               "and memory; a reload divides both again.");
}

int verb_drain(int argc, char **argv)
{
    return ask(argc, argv, CONTROL_DRAIN, "WORKER",
               "Takes a worker out of a running pool: it hands over its requests to the others and ends "
               "without being restarted, for example to service its GPU.\vWORKER is worker-1, or 1. The last "
               "serving worker cannot be drained.");
}

int verb_undrain(int argc, char **argv)
{
    return ask(argc, argv, CONTROL_UNDRAIN, "WORKER",
               "Starts a drained worker again, and waits until it serves.\vWORKER is worker-1, or 1.");
}
