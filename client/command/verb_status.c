/* SPDX-License-Identifier: MIT */
/* quern status: how the pool is, as a table or as JSON; quern top: the table again and again. */

#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/command/pool.h"
#include "client/command/verbs.h"
#include "client/lib/quern.h"

#define TIMEOUT_MS 5000
#define REFRESH_MS 1000

enum { KEY_CONNECT = 256, KEY_SERVER_KEY, KEY_JSON };

struct status_options {
    const char *connect, *server_key;
    bool json;
};

static int parse(int key, char *arg, struct argp_state *state)
{
    struct status_options *options = state->input;
    switch (key) {
    case KEY_CONNECT:
        options->connect = arg;
        return 0;
    case KEY_SERVER_KEY:
        options->server_key = arg;
        return 0;
    case KEY_JSON:
        options->json = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void print_table(const struct quern_status *status)
{
    printf("broker %s, boot %" PRIu64 "%s: %u sessions, %u queued, %u running; %" PRIu64 " admitted, %" PRIu64
           " ended, %" PRIu64 " refused, %" PRIu64 " tokens; journal %.1f MiB\n\n",
           status->version, status->boot, status->draining ? ", draining" : "", status->sessions,
           status->queued, status->running, status->admitted, status->ended, status->rejected, status->tokens,
           (double)status->journal_bytes / (1 << 20));
    printf("%-10s %-9s %7s %8s %9s %8s %11s %10s %8s  %s\n", "WORKER", "STATE", "PID", "RESTARTS", "ACTIVE",
           "WAITING", "KV FREE", "TOKENS", "TOKENS/S", "MODEL, DEVICE");
    for (size_t i = 0; i < status->n_workers; i++) {
        const struct quern_worker *w = &status->workers[i];
        char active[24], blocks[24];
        snprintf(active, sizeof active, "%u/%u", w->active, w->slots);
        snprintf(blocks, sizeof blocks, "%u/%u", w->kv_free, w->kv_total);
        printf("%-10s %-9s %7u %8u %9s %8u %11s %10" PRIu64 " %8.1f  %s%s%s%s%s\n", w->name, w->state, w->pid,
               w->restarts, active, w->waiting, blocks, w->tokens, w->tokens_per_s, w->model,
               w->model[0] && w->device[0] ? ", " : "", w->device, w->reason[0] ? ": " : "", w->reason);
    }
}

static json_t *json_worker(const struct quern_worker *w)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:I, s:I, s:I, s:f, s:s}",
                     "name", w->name, "state", w->state, "model", w->model, "device", w->device, "pid",
                     (int)w->pid, "incarnation", (int)w->incarnation, "restarts", (int)w->restarts, "active",
                     (int)w->active, "waiting", (int)w->waiting, "slots", (int)w->slots, "kv_free",
                     (int)w->kv_free, "kv_total", (int)w->kv_total, "steps", (json_int_t)w->steps, "tokens",
                     (json_int_t)w->tokens, "cache_hits", (json_int_t)w->cache_hits, "tokens_per_s",
                     w->tokens_per_s, "reason", w->reason);
}

static void print_json(const struct quern_status *status)
{
    json_t *workers = json_array();
    for (size_t i = 0; i < status->n_workers; i++)
        json_array_append_new(workers, json_worker(&status->workers[i]));
    json_t *json = json_pack(
        "{s:s, s:I, s:b, s:i, s:i, s:i, s:I, s:I, s:I, s:I, s:I, s:o}", "version", status->version, "boot",
        (json_int_t)status->boot, "draining", status->draining, "sessions", (int)status->sessions, "queued",
        (int)status->queued, "running", (int)status->running, "admitted", (json_int_t)status->admitted,
        "ended", (json_int_t)status->ended, "rejected", (json_int_t)status->rejected, "tokens",
        (json_int_t)status->tokens, "journal_bytes", (json_int_t)status->journal_bytes, "workers", workers);
    json_dumpf(json, stdout, JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(json);
}

/* Asks once and prints. 0 or -errno with the reason. */
static int show(struct quern *client, const struct status_options *options, struct error *err)
{
    const struct quern_status *status;
    struct quern_error said = {0};
    int r = quern_status(client, TIMEOUT_MS, &status, &said);
    if (r < 0)
        return error_set(err, r, "%s", said.text);
    if (options->json)
        print_json(status);
    else
        print_table(status);
    return fflush(stdout) == 0 ? 0 : error_set(err, -errno, "stdout: %s", strerror(errno));
}

#define CONNECT_OPTIONS                                                                                      \
    {"connect", KEY_CONNECT, "EP", 0, "Pool to ask: ipc://PATH, tcp://HOST:PORT or a run directory", 0},     \
    {                                                                                                        \
        "server-key", KEY_SERVER_KEY, "KEY", 0, "Public CURVE key of that pool, or a file that holds it", 0  \
    }
#define DEFAULT_POOL                                                                                         \
    "Without --connect: the pool of the default run directory, $XDG_RUNTIME_DIR/quern or /tmp/quern-UID."

int verb_status(int argc, char **argv)
{
    static const struct argp_option known[] = {
        CONNECT_OPTIONS, {"json", KEY_JSON, NULL, 0, "Print one JSON object", 0}, {0}};
    static const struct argp argp = {.options = known,
                                     .parser = parse,
                                     .doc = "Shows the workers of a pool and its totals.\v" DEFAULT_POOL};
    struct status_options options = {0};
    struct quern *client = NULL;
    struct error err = {0};
    argp_parse(&argp, argc, argv, 0, NULL, &options);
    int r = pool_connect(options.connect, options.server_key, &client, &err);
    if (r == 0)
        r = show(client, &options, &err);
    quern_free(client);
    return r < 0 ? verb_fail(r, &err) : EXIT_SUCCESS;
}

int verb_top(int argc, char **argv)
{
    static const struct argp_option known[] = {CONNECT_OPTIONS, {0}};
    static const struct argp argp = {
        .options = known,
        .parser = parse,
        .doc = "Shows the workers of a pool and its totals, every second, until Ctrl-C.\v" DEFAULT_POOL};
    struct status_options options = {0};
    struct quern *client = NULL;
    struct error err = {0};
    argp_parse(&argp, argc, argv, 0, NULL, &options);
    pool_catch_signals();
    int r = pool_connect(options.connect, options.server_key, &client, &err);
    while (r == 0 && !pool_interrupted()) {
        if (isatty(STDOUT_FILENO))
            fputs("\033[H\033[J", stdout); /* home, clear */
        r = show(client, &options, &err);
        /* The wait keeps the session alive too. */
        if (r == 0)
            quern_dispatch(client, REFRESH_MS, NULL);
    }
    quern_free(client);
    return r < 0 ? verb_fail(r, &err) : EXIT_SUCCESS;
}
