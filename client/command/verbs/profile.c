/* SPDX-License-Identifier: MIT */
/* quern profile: the next steps of a worker that serves, kernel by kernel, as quern bench decode --profile
 * shows those of a model alone. */

#include <argp.h>
#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "client/command/bench/bench.h"
#include "client/command/bench/profile.h"
#include "client/command/pool/pool.h"
#include "client/command/status_view.h"
#include "client/command/terminal/interrupt.h"
#include "client/command/terminal/io.h"
#include "client/command/verbs.h"
#include "common/amount.h"
#include "common/clock.h"
#include "common/program/arguments.h"
#include "common/program/program.h"
#include "proto/bounds.h"

#define ASK_NS     (100 * CLOCK_NS_PER_MS)
#define WAIT_MS    20
#define NAME_BYTES (PROTO_MAX_NAME_BYTES + 1)

enum { KEY_STEPS = 256, KEY_ROOF, KEY_JSON };

struct options {
    struct worker_arguments of; /* no worker: the first that is ready */
    uint32_t steps;
    bool json, roof;
};

struct meant {
    char name[NAME_BYTES];
    bool on_processor;
};

/* The worker that is meant: a copy, because a status lives until the next answer. */
static int find_worker(struct quern *client, const char *name, struct meant *ret_meant, struct error *err)
{
    const struct quern_status *status;
    int r = status_ask(client, &status, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < status->n_workers; i++) {
        const struct quern_worker *worker = &status->workers[i];
        if (name ? strcmp(worker->name, name) != 0 : strcmp(worker->state, "ready") != 0)
            continue;
        snprintf(ret_meant->name, sizeof ret_meant->name, "%s", worker->name);
        ret_meant->on_processor = strncmp(worker->device, "cpu", 3) == 0;
        return 0;
    }
    return name ? error_set(err, -ENOENT, "no worker \"%s\"", name)
                : error_set(err, -ENODEV, "no worker is ready");
}

/* Keeps the session alive meanwhile. */
static int pause_for(struct quern *client, uint64_t ns, struct error *err)
{
    struct quern_error said = {0};
    const uint64_t until = clock_ns() + ns;
    int r = 0;
    while (r >= 0 && clock_ns() < until && !interrupt_signal())
        r = quern_dispatch(client, WAIT_MS, &said);
    return r < 0 ? error_set(err, r, "%s", said.text) : 0;
}

static int measure(struct quern *client, const struct options *options, const char *worker,
                   const struct quern_profile **ret_profile, struct error *err)
{
    struct quern_error said = {0};
    uint64_t run = 0;
    bool told = false;
    if (getrandom(&run, sizeof run, 0) != sizeof run)
        return error_set(err, -errno, "getrandom: %s", strerror(errno));
    run |= 1;
    for (;;) {
        int r = quern_profile(client, worker, run, options->steps, STATUS_TIMEOUT_MS, ret_profile, &said);
        if (r < 0)
            return error_set(err, r, "%s: %s", worker, said.text);
        if ((*ret_profile)->done)
            return 0;
        if (!told && (*ret_profile)->steps == 0)
            program_error("%s: waiting for %s", worker, amount_of(options->steps, "step").text);
        told = true;
        r = pause_for(client, ASK_NS, err);
        if (r < 0)
            return r;
        if (interrupt_signal())
            return -EINTR;
    }
}

/* As the table of a backend has them. */
static uint32_t convert(const struct quern_profile *profile, struct backend_kernel kernels[PROTO_MAX_KERNELS])
{
    uint32_t n = 0;
    for (; n < profile->n && n < PROTO_MAX_KERNELS; n++) {
        const struct quern_kernel *from = &profile->kernels[n];
        kernels[n] = (struct backend_kernel){.n = from->n,
                                             .ns = from->ns,
                                             .bytes = from->bytes,
                                             .macs = from->macs,
                                             .n_blocks = from->blocks,
                                             .n_threads = from->threads,
                                             .shared_bytes = from->shared_bytes,
                                             .loaded = from->loaded,
                                             .sectors = from->sectors,
                                             .asked = from->asked,
                                             .passes = from->passes,
                                             .conflicts = from->conflicts};
        snprintf(kernels[n].name, sizeof kernels[n].name, "%.*s", BACKEND_KERNEL_NAME - 1, from->name);
    }
    return n;
}

/* What the device can read, bytes a second: by its driver, or, if it is asked for and it is the processor,
 * measured now. 0: not known. */
static int find_roof(const struct quern_profile *profile, const struct meant *worker, bool measured,
                     double *ret_roof, struct error *err)
{
    struct spread spread;
    *ret_roof = (double)profile->bandwidth;
    if (profile->bandwidth > 0 || !measured)
        return 0;
    if (!worker->on_processor)
        return error_set(err, -ENOTSUP, "--roof: the driver does not report the memory bandwidth of %s",
                         worker->name);
    int r = bench_read_bandwidth(0, &spread, err);
    if (r == 0)
        *ret_roof = spread.median;
    return r;
}

static int print(const struct quern_profile *profile, const char *worker, double roof, bool json)
{
    static struct backend_kernel kernels[PROTO_MAX_KERNELS];
    const uint32_t n = convert(profile, kernels);
    if (json)
        return io_write_json(json_pack("{s:s, s:i, s:o, s:f}", "worker", worker, "steps", (int)profile->steps,
                                       "kernels", bench_kernels_json(kernels, n, roof), "bandwidth", roof));
    printf("%s: %s, each kernel measured by itself\n", worker, amount_of(profile->steps, "step").text);
    bench_print_kernels(kernels, n, roof);
    if (roof > 0)
        printf("\nroof: %.1f GB/s\n", roof / 1e9);
    return 0;
}

static const struct argp_child children[] = {{&status_argp, 0, NULL, 0}, {0}};
static const struct argp_option known[] = {
    {"steps", KEY_STEPS, "N", 0, "Number of steps to measure (default 16)", 0},
    {"roof", KEY_ROOF, NULL, 0, "For a CPU worker: also measure how fast 512 MiB of memory can be read", 0},
    {"json", KEY_JSON, NULL, 0, "Print one JSON object", 0},
    {0}};
static const struct argument table[] = {
    {KEY_STEPS, ARGUMENT_NUMBER, offsetof(struct options, steps), 1, PROTO_MAX_PROFILE},
    {KEY_ROOF, ARGUMENT_FLAG, offsetof(struct options, roof), 0, 0},
    {KEY_JSON, ARGUMENT_FLAG, offsetof(struct options, json), 0, 0},
    {0}};

int verb_profile(int argc, char **argv)
{
    static const struct argp argp = {
        .children = children,
        .options = known,
        .parser = worker_arguments_parse,
        .args_doc = "[WORKER]",
        .doc = "Measures the kernels of the next steps of a serving worker, and prints them as quern bench "
               "decode --profile does. Meanwhile the worker's steps are slower.\vWithout WORKER: the first "
               "worker that is ready. A worker makes steps only while requests run; the command waits for "
               "them. Works only through the run directory. " STATUS_DEFAULT_POOL};
    struct options options = {.of = {.known = known, .table = table}, .steps = 16};
    const struct quern_profile *profile;
    struct quern *client = NULL;
    struct error err = {0};
    struct meant worker = {0};
    double roof = 0;
    arguments_parse(&argp, argc, argv, &options);
    interrupt_catch();
    int r = pool_connect(options.of.common.connect, options.of.common.server_key,
                         options.of.common.client_key, &client, &err);
    if (r == 0)
        r = find_worker(client, options.of.worker, &worker, &err);
    if (r == 0)
        r = measure(client, &options, worker.name, &profile, &err);
    if (r == 0)
        r = find_roof(profile, &worker, options.roof, &roof, &err);
    if (r == 0)
        r = print(profile, worker.name, roof, options.json);
    quern_free(client);
    if (r == -EINTR)
        return interrupt_status();
    return r < 0 ? verb_fail(r, &err) : EXIT_SUCCESS;
}
