/* SPDX-License-Identifier: MIT */
/* quern reload: has a running pool replace its processes, and waits until it has. */

#include <argp.h>
#include <stdlib.h>

#include "client/command/pool/control_client.h"
#include "client/command/pool/place.h"
#include "client/command/verbs.h"
#include "common/program/arguments.h"

enum { KEY_RUNDIR = 1000, KEY_CONNECT, KEY_GATEWAY, KEY_CONFIG };

struct wish {
    const char *rundir; /* NULL: the default one */
    enum control_kind kind;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct wish *wish = state->input;
    if (key == KEY_GATEWAY || key == KEY_CONFIG) {
        enum control_kind kind = key == KEY_GATEWAY ? CONTROL_RELOAD_GATEWAY : CONTROL_RELOAD_CONFIG;
        if (wish->kind != CONTROL_RELOAD && wish->kind != kind)
            argp_error(state, "--gateway and --config exclude each other");
        wish->kind = kind;
        return 0;
    }
    if (key != KEY_RUNDIR && key != KEY_CONNECT)
        return ARGP_ERR_UNKNOWN;
    place_take_folder(state, key == KEY_RUNDIR, arg, &wish->rundir);
    return 0;
}

int verb_reload(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"rundir", KEY_RUNDIR, "DIR", 0,
         "Run directory of the pool (default $XDG_RUNTIME_DIR/quern or /tmp/quern-UID)", 0},
        {"connect", KEY_CONNECT, "DIR", 0, "The same as --rundir", 0},
        {"config", KEY_CONFIG, NULL, 0, "Read the pool's configuration file again and use its settings", 0},
        {"gateway", KEY_GATEWAY, NULL, 0, "Replace only the gateway, to load new keys or a new certificate",
         0},
        {0}};
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .doc = "Replaces the workers of a running pool one by one, then its broker, and its gateway if it "
               "serves HTTP, with the installed programs. No request is lost, and clients notice "
               "nothing.\vRequests of a worker continue on another one. If there is none, they first get the "
               "pool's --drain-seconds to finish; the others wait for the new worker. If a new program does "
               "not start, the reload is rolled back: the command fails, and the pool continues to serve. "
               "The gateway reloads its keys and certificate. The supervisor itself is not replaced. Without "
               "--config, options do not change. With it, all settings of the file are used or, if one is "
               "invalid, none; options of the pool's own command line still take precedence. Model, "
               "addresses and devices cannot change."};
    struct wish wish = {.kind = CONTROL_RELOAD};
    struct error err = {0};
    arguments_parse(&argp, argc, argv, &wish);
    int r = control_ask(wish.rundir, wish.kind, 0, &err);
    return r < 0 ? verb_fail(r, &err) : EXIT_SUCCESS;
}
