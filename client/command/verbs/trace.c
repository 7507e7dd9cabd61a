/* SPDX-License-Identifier: MIT */
/* quern trace: what workers do, step by step, while they do it.
 *
 * Every worker is asked ten times a second for the records behind the last one; each has one question open at
 * most. So the cost is bounded: where a worker makes more records than its answers hold, some are lost, and
 * counted. The list of workers is looked at once a second, because a pool may get more.
 *
 * Beyond the run directory the pool takes fewer questions, and says so by `overloaded`: from then on workers
 * are asked one after the other, whoever has waited longest first. */

#include <argp.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/command/pool/pool.h"
#include "client/command/status_view.h"
#include "client/command/terminal/interrupt.h"
#include "client/command/terminal/io.h"
#include "client/command/trace_view.h"
#include "client/command/verbs.h"
#include "common/clock.h"
#include "common/program/arguments.h"
#include "common/program/program.h"
#include "proto/bounds.h"

#define ASK_NS       (100 * CLOCK_NS_PER_MS)
#define LOOK_NS      CLOCK_NS_PER_S /* between looks at the list of workers */
#define RETRY_NS     (500 * CLOCK_NS_PER_MS)
#define ASK_MS       5000
#define SPACING_NS   (60 * CLOCK_NS_PER_MS) /* between two questions, where the pool takes so few */
#define WAIT_MS      20
#define MOST_WORKERS 64

enum { KEY_REQUEST = 256, KEY_JSON, KEY_SECONDS };

struct options {
    struct worker_arguments of; /* no worker: all */
    const char *request;        /* its x-request-id or id; NULL: all, and steps */
    uint32_t seconds;           /* 0: until it is interrupted */
    bool json;
};

struct trace;

/* A worker that is traced. */
struct traced {
    struct trace *trace;
    char name[PROTO_MAX_NAME_BYTES + 1];
    uint64_t from, next_ns; /* of the next question */
    uint32_t incarnation;   /* 0: not asked yet */
    bool asked, failing;
};

struct trace {
    const struct options *options;
    struct quern *client;
    struct traced workers[MOST_WORKERS];
    size_t n;
    struct buffer out;
    uint64_t spacing_ns, next_ns; /* between two questions; of the next one */
    char wanted[33];              /* id of the request, once its name was told */
    bool over;                    /* the request has ended */
    int code;                     /* -errno: why it ends */
    struct error err;
};

/* A name may stand in the first mark only: the broker forgets requests that have ended. */
static bool is_wanted(struct trace *trace, const struct quern_trace_record *record)
{
    const char *request = trace->options->request;
    if (!request)
        return true;
    if (!record->id[0])
        return false;
    if (strcmp(record->request_id, request) == 0)
        snprintf(trace->wanted, sizeof trace->wanted, "%s", record->id);
    return strcmp(record->id, request) == 0 || strcmp(record->id, trace->wanted) == 0;
}

static int show(struct traced *worker, const struct quern_trace *told)
{
    struct trace *trace = worker->trace;
    const struct options *options = trace->options;
    int r = told->lost > 0 ? trace_view_lost(&trace->out, worker->name, told->lost, options->json) : 0;
    for (size_t i = 0; i < told->n && r == 0 && !trace->over; i++) {
        const struct quern_trace_record *record = &told->records[i];
        if (!is_wanted(trace, record))
            continue;
        r = trace_view_record(&trace->out, worker->name, record, options->json);
        trace->over = options->request && strcmp(record->what, "end") == 0;
    }
    return r;
}

/* Whether the pool has rejected it with this error. */
static bool is_error(const struct quern_answer *answer, const char *name)
{
    const size_t len = strlen(name);
    return answer->code == -EREMOTEIO && strncmp(answer->text, name, len) == 0 && answer->text[len] == ':';
}

/* One that cannot be asked now is said once, and asked again; one that is named wrongly ends it all. */
static void take_failure(struct traced *worker, const struct quern_answer *answer)
{
    struct trace *trace = worker->trace;
    const uint64_t now = clock_ns();
    if (is_error(answer, "overloaded")) {
        worker->next_ns = 0; /* before others */
        trace->spacing_ns = SPACING_NS;
        trace->next_ns = now + SPACING_NS;
        return;
    }
    worker->next_ns = now + RETRY_NS;
    const bool again = answer->code == -EREMOTEIO || answer->code == -ETIMEDOUT;
    if (!again || is_error(answer, "bad_request"))
        trace->code = error_set(&trace->err, answer->code, "%s", answer->text);
    else if (!worker->failing)
        program_error("%s: %s", worker->name, answer->text);
    worker->failing = true;
}

static void on_answer(void *arg, const struct quern_answer *answer)
{
    struct traced *worker = arg;
    struct trace *trace = worker->trace;
    worker->asked = false;
    if (answer->code < 0) {
        take_failure(worker, answer);
        return;
    }
    const struct quern_trace *told = answer->trace;
    const bool restarted = worker->incarnation != 0 && worker->incarnation != told->incarnation;
    worker->failing = false;
    worker->incarnation = told->incarnation;
    worker->from = restarted ? 1 : told->next;
    int r = restarted ? trace_view_restarted(&trace->out, worker->name, trace->options->json)
                      : show(worker, told);
    if (r < 0)
        trace->code = error_set(&trace->err, r, "out of memory");
}

static void add_worker(struct trace *trace, const char *name)
{
    for (size_t i = 0; i < trace->n; i++)
        if (strcmp(trace->workers[i].name, name) == 0)
            return;
    if (trace->n == MOST_WORKERS)
        return;
    struct traced *worker = &trace->workers[trace->n++];
    *worker = (struct traced){.trace = trace};
    snprintf(worker->name, sizeof worker->name, "%s", name);
}

static void on_status(void *arg, const struct quern_answer *answer)
{
    struct trace *trace = arg;
    if (answer->code < 0) {
        if (answer->code != -ETIMEDOUT)
            trace->code = error_set(&trace->err, answer->code, "%s", answer->text);
        return;
    }
    for (size_t i = 0; i < answer->status->n_workers; i++)
        if (strcmp(answer->status->workers[i].state, "ready") == 0)
            add_worker(trace, answer->status->workers[i].name);
}

/* The one that has waited longest; NULL: none is due. */
static struct traced *find_due(struct trace *trace, uint64_t now)
{
    struct traced *found = NULL;
    for (size_t i = 0; i < trace->n; i++) {
        struct traced *worker = &trace->workers[i];
        if (!worker->asked && now >= worker->next_ns && (!found || worker->next_ns < found->next_ns))
            found = worker;
    }
    return found;
}

static void ask(struct trace *trace, uint64_t now)
{
    struct quern_error said = {0};
    struct traced *worker;
    int r = 0;
    while (r == 0 && now >= trace->next_ns && (worker = find_due(trace, now))) {
        trace->next_ns = trace->spacing_ns > 0 ? now + trace->spacing_ns : 0;
        worker->next_ns = now + ASK_NS;
        worker->asked = true;
        r = quern_ask_trace(trace->client, worker->name, worker->from, ASK_MS, on_answer, worker, &said);
    }
    if (r < 0)
        trace->code = error_set(&trace->err, r, "%s", said.text);
}

static int watch(struct trace *trace)
{
    const struct options *options = trace->options;
    const uint64_t begun = clock_ns();
    uint64_t looked = 0, now;
    struct quern_error said = {0};
    if (options->of.worker)
        add_worker(trace, options->of.worker);
    if (!options->json && !options->request && trace_view_heading(&trace->out) < 0)
        return error_set(&trace->err, -ENOMEM, "out of memory");
    while (trace->code == 0 && !interrupt_signal()) {
        if (trace->out.len > 0 && (trace->code = io_write(trace->out.data, trace->out.len)) < 0)
            break;
        trace->out.len = 0;
        now = clock_ns();
        if (trace->over || (options->seconds > 0 && now - begun >= options->seconds * CLOCK_NS_PER_S))
            break;
        if (!options->of.worker && (looked == 0 || now - looked >= LOOK_NS)) {
            looked = now;
            quern_ask_status(trace->client, STATUS_TIMEOUT_MS, on_status, trace, NULL);
        }
        ask(trace, now);
        int r = quern_dispatch(trace->client, WAIT_MS, &said);
        if (r < 0 && trace->code == 0)
            trace->code = error_set(&trace->err, r, "%s", said.text);
    }
    return trace->code;
}

static const struct argp_child children[] = {{&status_argp, 0, NULL, 0}, {0}};
static const struct argp_option known[] = {
    {"request", KEY_REQUEST, "ID", 0, "Show only this request, by x-request-id or id, until it ends", 0},
    {"seconds", KEY_SECONDS, "N", 0, "End after N seconds instead of running until Ctrl-C", 0},
    {"json", KEY_JSON, NULL, 0, "Print a JSON object per line", 0},
    {0}};
static const struct argument table[] = {
    {KEY_REQUEST, ARGUMENT_TEXT, offsetof(struct options, request), 0, 0},
    {KEY_SECONDS, ARGUMENT_NUMBER, offsetof(struct options, seconds), 1, 86400},
    {KEY_JSON, ARGUMENT_FLAG, offsetof(struct options, json), 0, 0},
    {0}};

int verb_trace(int argc, char **argv)
{
    static const struct argp argp = {
        .children = children,
        .options = known,
        .parser = worker_arguments_parse,
        .args_doc = "[WORKER]",
        .doc = "Shows what workers do, live: a line per step, and a line for each stage of a request "
               "(admitted, tokenized, slot, prefix, prefill_begin, prefill_end, first_token, slot_lost, "
               "given_back, end).\vWithout WORKER: all workers of the pool. The rows of a step are shown as "
               "those that decode, those of prompts, and those that only fill a recorded size. A time that "
               "the backend does not know is shown as \"-\". Lines that were lost are counted. Outside the "
               "run directory, only the client's own requests are shown, and no steps. " STATUS_DEFAULT_POOL};
    struct options options = {.of = {.known = known, .table = table}};
    static struct trace trace;
    trace.options = &options;
    arguments_parse(&argp, argc, argv, &options);
    interrupt_catch();
    int r = pool_connect(options.of.common.connect, options.of.common.server_key,
                         options.of.common.client_key, &trace.client, &trace.err);
    if (r == 0)
        r = watch(&trace);
    quern_free(trace.client);
    buffer_deinit(&trace.out);
    if (r == -EPIPE)
        return IO_EXIT_PIPE;
    if (r < 0 && r != -EINTR)
        return verb_fail(r, &trace.err);
    return interrupt_signal() && interrupt_signal() != SIGINT ? interrupt_status() : EXIT_SUCCESS;
}
