/* SPDX-License-Identifier: MIT */
/* quern trim: memory that workers give back while they serve, one worker after the other. */

#include <argp.h>
#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "client/command/pool/pool.h"
#include "client/command/status_view.h"
#include "client/command/terminal/interrupt.h"
#include "client/command/terminal/io.h"
#include "client/command/verbs.h"
#include "common/amount.h"
#include "common/program/arguments.h"
#include "common/program/program.h"
#include "proto/bounds.h"

#define NAME_BYTES   (PROTO_MAX_NAME_BYTES + 1)
#define MOST_WORKERS 1024  /* as many as a status has */
#define TRIM_MS      60000 /* a worker answers when its step has ended */

enum { KEY_PREFIXES = 256, KEY_JSON };

struct options {
    struct worker_arguments of; /* no worker: all that are ready */
    bool prefixes, json;
};

struct names {
    char (*items)[NAME_BYTES];
    size_t n;
};

/* The workers that are meant: a copy, because a status lives until the next answer. */
static int find_workers(struct quern *client, const struct options *options, struct names *ret_names,
                        struct error *err)
{
    const struct quern_status *status;
    ret_names->items = calloc(MOST_WORKERS, sizeof *ret_names->items);
    if (!ret_names->items)
        return error_set(err, -ENOMEM, "out of memory");
    if (options->of.worker) {
        snprintf(ret_names->items[ret_names->n++], NAME_BYTES, "%s", options->of.worker);
        return 0;
    }
    int r = status_ask(client, &status, err);
    for (size_t i = 0; r == 0 && i < status->n_workers && ret_names->n < MOST_WORKERS; i++)
        if (strcmp(status->workers[i].state, "ready") == 0)
            snprintf(ret_names->items[ret_names->n++], NAME_BYTES, "%s", status->workers[i].name);
    return r < 0 || ret_names->n > 0 ? r : error_set(err, -ENODEV, "no worker is ready");
}

static json_t *to_json(const char *worker, const struct quern_trim *trim)
{
    json_t *given = json_object();
    for (size_t i = 0; i < trim->n; i++)
        json_object_set_new(given, trim->given[i].kind, json_integer((json_int_t)trim->given[i].bytes));
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:o}", "worker", worker, "blocks",
                     (json_int_t)trim->blocks, "resident_before", (json_int_t)trim->resident_before,
                     "resident_after", (json_int_t)trim->resident_after, "device_free_before",
                     (json_int_t)trim->device_free_before, "device_free_after",
                     (json_int_t)trim->device_free_after, "given", given);
}

static void print(const char *worker, const struct quern_trim *trim)
{
    printf("%s: its process held %s, now holds %s\n", worker, amount_of_bytes(trim->resident_before).text,
           amount_of_bytes(trim->resident_after).text);
    if (trim->device_free_after > 0)
        printf("  %-10s  %s free, now %s\n", "GPU", amount_of_bytes(trim->device_free_before).text,
               amount_of_bytes(trim->device_free_after).text);
    for (size_t i = 0; i < trim->n; i++)
        printf("  %-10s  %s\n", trim->given[i].kind, amount_of_bytes(trim->given[i].bytes).text);
    if (trim->n == 0)
        printf("  nothing to release\n");
    if (trim->blocks > 0)
        printf("  %-10s  %s\n", "prefixes", amount_of(trim->blocks, "block").text);
}

static int trim(struct quern *client, const struct options *options, const char *worker, struct error *err)
{
    const struct quern_trim *trim;
    struct quern_error said = {0};
    uint64_t run = 0;
    if (getrandom(&run, sizeof run, 0) != sizeof run)
        return error_set(err, -errno, "getrandom: %s", strerror(errno));
    int r = quern_trim(client, worker, run | 1, options->prefixes, TRIM_MS, &trim, &said);
    if (r < 0)
        return error_set(err, r, "%s: %s", worker, said.text);
    if (options->json)
        return io_write_json(to_json(worker, trim));
    print(worker, trim);
    return 0;
}

static const struct argp_child children[] = {{&status_argp, 0, NULL, 0}, {0}};
static const struct argp_option known[] = {
    {"prefixes", KEY_PREFIXES, NULL, 0, "Also drop cached prefixes that no request uses", 0},
    {"json", KEY_JSON, NULL, 0, "Print a JSON object per worker", 0},
    {0}};
static const struct argument table[] = {
    {KEY_PREFIXES, ARGUMENT_FLAG, offsetof(struct options, prefixes), 0, 0},
    {KEY_JSON, ARGUMENT_FLAG, offsetof(struct options, json), 0, 0},
    {0}};

int verb_trim(int argc, char **argv)
{
    static const struct argp argp = {
        .children = children,
        .options = known,
        .parser = worker_arguments_parse,
        .args_doc = "[WORKER]",
        .doc = "Makes workers release memory that they do not use at the moment, and prints how much of each "
               "kind. They keep serving, and allocate memory again when they need it.\vWithout WORKER: all "
               "workers that are ready. A dropped prefix is computed again when a request needs it. Works "
               "only through the run directory. " STATUS_DEFAULT_POOL};
    struct options options = {.of = {.known = known, .table = table}};
    struct quern *client = NULL;
    struct names names = {0};
    struct error err = {0};
    arguments_parse(&argp, argc, argv, &options);
    interrupt_catch();
    int r = pool_connect(options.of.common.connect, options.of.common.server_key,
                         options.of.common.client_key, &client, &err);
    if (r == 0)
        r = find_workers(client, &options, &names, &err);
    for (size_t i = 0; i < names.n && r == 0; i++)
        r = interrupt_signal() ? -EINTR : trim(client, &options, names.items[i], &err);
    free(names.items);
    quern_free(client);
    if (r == -EINTR)
        return interrupt_status();
    return r < 0 ? verb_fail(r, &err) : EXIT_SUCCESS;
}
