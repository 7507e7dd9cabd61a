/* SPDX-License-Identifier: MIT */
/* quern status: how a pool is, as a table or as JSON. */

#include <argp.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/command/pool/pool.h"
#include "client/command/status_json.h"
#include "client/command/status_view.h"
#include "client/command/verbs.h"
#include "common/program/arguments.h"

enum { KEY_JSON = 256 };

struct status_options {
    struct status_arguments common;
    bool json;
};

static int parse(int key, char *arg, struct argp_state *state)
{
    struct status_options *options = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &options->common;
        return 0;
    case KEY_JSON:
        options->json = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void print_json(const struct quern_status *status)
{
    json_t *json = status_json(status);
    json_dumpf(json, stdout, JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(json);
}

int verb_status(int argc, char **argv)
{
    static const struct argp_child children[] = {{&status_argp, 0, NULL, 0}, {0}};
    static const struct argp_option known[] = {{"json", KEY_JSON, NULL, 0, "Print one JSON object", 0}, {0}};
    static const struct argp argp = {
        .children = children,
        .options = known,
        .parser = parse,
        .doc = "Shows the workers of a pool and its totals. On a terminal columns that do "
               "not fit are left out; --json has everything.\v" STATUS_DEFAULT_POOL};
    struct status_options options = {0};
    const struct quern_status *status;
    struct quern *client = NULL;
    struct error err = {0};
    arguments_parse(&argp, argc, argv, &options);
    int r = pool_connect(options.common.connect, options.common.server_key, options.common.client_key,
                         &client, &err);
    if (r == 0)
        r = status_ask(client, &status, &err);
    if (r == 0 && options.json)
        print_json(status);
    else if (r == 0)
        status_print(status, status_columns());
    quern_free(client);
    return r < 0 ? verb_fail(r, &err) : EXIT_SUCCESS;
}
