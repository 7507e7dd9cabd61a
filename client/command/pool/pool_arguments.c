/* SPDX-License-Identifier: MIT */
/* --connect and what belongs to it, or --model and what belongs to that: not both. */

#include "client/command/pool/pool_arguments.h"

#include "client/command/pool/place.h"
#include "common/program/arguments.h"
#include "proto/launch.h"

enum {
    KEY_CONNECT = 2048, /* beyond the keys of the verbs, and of requests */
    KEY_RUNDIR,
    KEY_SERVER_KEY,
    KEY_CLIENT_KEY,
    KEY_DEVICE,
    KEY_CONTEXT
};

static const struct argp_option known_options[] = {
    {"connect", KEY_CONNECT, "EP", 0, "Pool to use: ipc://PATH, tcp://HOST:PORT or a run directory", 0},
    {"rundir", KEY_RUNDIR, "DIR", 0, "The pool to use, by its run directory", 0},
    {"server-key", KEY_SERVER_KEY, "KEY", 0, "Public CURVE key of that pool, or a file that holds it", 0},
    {"client-key", KEY_CLIENT_KEY, "FILE", 0, "This client's CURVE certificate (its secret file)", 0},
    {"model", 'm', "FILE", 0, "Start a private pool with this model", 0},
    {"device", KEY_DEVICE, "D", 0, "Device of a private pool: " QUERN_DEVICES, 0},
    {"ctx", KEY_CONTEXT, "N", 0, "Context length of a private pool, in tokens", 0},
    {0},
};

static const struct argument arguments[] = {
    {KEY_SERVER_KEY, ARGUMENT_TEXT, offsetof(struct pool_options, server_key), 0, 0},
    {KEY_CLIENT_KEY, ARGUMENT_TEXT, offsetof(struct pool_options, client_key), 0, 0},
    {'m', ARGUMENT_TEXT, offsetof(struct pool_options, model), 0, 0},
    {KEY_DEVICE, ARGUMENT_TEXT, offsetof(struct pool_options, device), 0, 0},
    {KEY_CONTEXT, ARGUMENT_NUMBER, offsetof(struct pool_options, context), 1, LAUNCH_MAX_CONTEXT},
    {0}};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct pool_options *pool = state->input;
    if (key == KEY_CONNECT || key == KEY_RUNDIR) {
        place_take(state, key == KEY_RUNDIR, arg, &pool->connect);
        return 0;
    }
    if (key == ARGP_KEY_END && pool->connect && pool->model)
        argp_error(state, "--connect and --model exclude each other");
    return arguments_take(arguments, known_options, key, arg, state, state->input);
}

const struct argp pool_argp = {.options = known_options, .parser = parse};
