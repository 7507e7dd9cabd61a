/* SPDX-License-Identifier: MIT */
/* quern status: how a pool is, as a table or as JSON. */

#include <argp.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/command/fleet_status.h"
#include "client/command/pool/pool.h"
#include "client/command/status_json.h"
#include "client/command/status_view.h"
#include "client/command/verbs.h"
#include "common/program/arguments.h"

enum { KEY_JSON = 256, KEY_REQUESTS, KEY_REQUEST, KEY_FLEET };

#define MOST_REQUESTS 1024

struct status_options {
    struct status_arguments common;
    bool json, requests;
    const char *fleet;   /* the folder of its members; NULL: one pool */
    const char *request; /* only those of this name; NULL: all */
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
    case KEY_REQUESTS:
        options->requests = true;
        return 0;
    case KEY_REQUEST:
        options->requests = true;
        options->request = arg;
        return 0;
    case KEY_FLEET:
        options->fleet = arg;
        return 0;
    case ARGP_KEY_END:
        if (options->fleet && (options->common.connect || options->common.server_key || options->requests))
            argp_error(state, "--fleet excludes --connect, --rundir, --server-key, --requests and --request");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int ask_requests(struct quern *client, const char *name, const struct quern_status **ret_status,
                        struct error *err)
{
    struct quern_error said = {0};
    int r = quern_requests(client, name, MOST_REQUESTS, STATUS_TIMEOUT_MS, ret_status, &said);
    return r < 0 ? error_set(err, r, "%s", said.text) : 0;
}

static void print_requests(const struct quern_status *status)
{
    if (status->n_requests == 0) {
        printf("\nno such request is queued or running\n");
        return;
    }
    printf("\n%-32s  %-10s  %-10s  %9s  %8s  %s\n", "REQUEST", "STATE", "WORKER", "SECONDS", "TOKENS",
           "REQUEST ID");
    for (size_t i = 0; i < status->n_requests; i++) {
        const struct quern_request_status *request = &status->requests[i];
        printf("%-32s  %-10s  %-10s  %9.1f  %8" PRIu64 "  %s\n", request->id, request->state,
               request->worker[0] ? request->worker : "-", (double)request->age_ms / 1000, request->tokens,
               request->request_id);
    }
}

static void print_json(const struct quern_status *status, bool requests)
{
    json_t *json = status_json(status);
    if (requests)
        json_object_set_new(json, "requests", status_json_requests(status));
    json_dumpf(json, stdout, JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(json);
}

/* The pool of the options. */
static int show_pool(const struct status_options *options, struct error *err)
{
    const struct quern_status *status;
    struct quern *client = NULL;
    int r = pool_connect(options->common.connect, options->common.server_key, options->common.client_key,
                         &client, err);
    if (r == 0 && options->requests)
        r = ask_requests(client, options->request, &status, err);
    else if (r == 0)
        r = status_ask(client, &status, err);
    if (r == 0 && options->json)
        print_json(status, options->requests);
    else if (r == 0)
        status_print(status, status_columns(), false);
    if (r == 0 && options->requests && !options->json)
        print_requests(status);
    quern_free(client);
    return r;
}

int verb_status(int argc, char **argv)
{
    static const struct argp_child children[] = {{&status_argp, 0, NULL, 0}, {0}};
    static const struct argp_option known[] = {
        {"json", KEY_JSON, NULL, 0, "Print one JSON object", 0},
        {"requests", KEY_REQUESTS, NULL, 0, "Also list unfinished requests (at most 1024)", 0},
        {"request", KEY_REQUEST, "ID", 0, "Also list unfinished requests with this x-request-id", 0},
        {"fleet", KEY_FLEET, "DIR", 0, "Show a line for each pool of the fleet whose member files are in DIR",
         0},
        {0}};
    static const struct argp argp = {
        .children = children,
        .options = known,
        .parser = parse,
        .doc = "Shows the workers of a pool and its totals. On a terminal, columns that do not fit are "
               "omitted; --json has everything.\v" STATUS_DEFAULT_POOL};
    struct status_options options = {0};
    struct error err = {0};
    arguments_parse(&argp, argc, argv, &options);
    int r = options.fleet ? fleet_status(options.fleet, options.common.client_key, options.json, &err)
                          : show_pool(&options, &err);
    return r < 0 ? verb_fail(r, &err) : EXIT_SUCCESS;
}
