/* SPDX-License-Identifier: MIT */
/* --connect and what belongs to it, or --model and what belongs to that: not both. */

#include "client/command/pool_arguments.h"

#include "client/command/arguments.h"
#include "proto/launch.h"

enum {
    KEY_CONNECT = 2048, /* beyond the keys of the verbs, and of requests */
    KEY_SERVER_KEY,
    KEY_CLIENT_KEY,
    KEY_DEVICE,
    KEY_CONTEXT
};

static const struct argp_option known_options[] = {
    {"connect", KEY_CONNECT, "EP", 0, "Pool to ask: ipc://PATH, tcp://HOST:PORT or a run directory", 0},
    {"server-key", KEY_SERVER_KEY, "KEY", 0, "Public CURVE key of that pool, or a file that holds it", 0},
    {"client-key", KEY_CLIENT_KEY, "FILE", 0, "Our own CURVE certificate there (its secret file)", 0},
    {"model", 'm', "FILE", 0, "Start a private pool with this model", 0},
    {"device", KEY_DEVICE, "D", 0, "Device of a private pool: " QUERN_DEVICES, 0},
    {"ctx", KEY_CONTEXT, "N", 0, "Context length of a private pool, in tokens", 0},
    {0},
};

static int parse(int key, char *arg, struct argp_state *state)
{
    struct pool_options *pool = state->input;
    switch (key) {
    case KEY_CONNECT:
        pool->connect = arg;
        return 0;
    case KEY_SERVER_KEY:
        pool->server_key = arg;
        return 0;
    case KEY_CLIENT_KEY:
        pool->client_key = arg;
        return 0;
    case 'm':
        pool->model = arg;
        return 0;
    case KEY_DEVICE:
        pool->device = arg;
        return 0;
    case KEY_CONTEXT:
        pool->context = (uint32_t)argument_number(state, "--ctx", arg, 1, LAUNCH_MAX_CONTEXT);
        return 0;
    case ARGP_KEY_END:
        if (pool->connect && pool->model)
            argp_error(state, "--connect and --model exclude each other");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp pool_argp = {.options = known_options, .parser = parse};
