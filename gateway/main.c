/* SPDX-License-Identifier: MIT */
/* quern-gateway: a pool of Quern, or a fleet of them, by HTTP.
 *
 * One thread and one loop: server_run takes and sends what HTTP has, fleet_wait what the pools have, and
 * waits for both.
 *
 *     SERVING ──SIGTERM, SIGINT──▶ DRAINING ──nothing is being answered, a second signal, too long──▶ end
 *        └──SIGUSR1──▶ RETIRED ──its last connection ended, two signals, too long──▶ end
 *
 * A draining one refuses what is asked, a retired one answers it: the pool serves on, and another gateway has
 * the connections that come. One that was started to take over, or to be restarted, answers nobody before it
 * has reached the pool: who has connected waits. */

#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "common/amount.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/program/program.h"
#include "gateway/forms/body_reader.h"
#include "gateway/fleet/books.h"
#include "gateway/fleet/carry.h"
#include "gateway/server.h"
#include "gateway/telemetry/exporter.h"
#include "gateway/forms/questions/question.h"
#include "proto/gateway_report.h"
#include "proto/message.h"
#include "proto/supervision.h"

const char *argp_program_version = "quern-gateway " QUERN_VERSION;

#define LOADING_NS (5 * CLOCK_NS_PER_S)  /* for a worker that loads */
#define AWAY_NS    (15 * CLOCK_NS_PER_S) /* for a pool that is not there: who has connected hears of it then */
#define CLOSING_NS (2 * CLOCK_NS_PER_S)  /* for the ends of requests that were cancelled at the end */

static volatile sig_atomic_t signals, hangups, retirements;

static void on_signal(int signal)
{
    signals = signals + 1;
}

static void on_retirement(int signal)
{
    retirements = retirements + 1;
}

static void on_hangup(int signal)
{
    hangups = hangups + 1;
}

/* With a request log a hangup opens it anew, as whoever rotates logs expects. */
static void take_hangups(void)
{
    struct sigaction action = {.sa_handler = on_hangup};
    sigaction(SIGHUP, &action, NULL);
}

/* Two of them count, whatever they come in: waits end early, and the loop looks. */
static void take_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    action.sa_handler = on_retirement;
    sigaction(SIGUSR1, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

/* A parent hears of a Ctrl-C too and tells us; if it is gone nobody will. */
static void obey_parent(uint32_t parent)
{
    if (parent == 0)
        return;
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != (pid_t)parent) /* before that call */
        raise(SIGTERM);
}

/* Tells the parent. */
static void report(const struct gateway *gateway, enum gateway_report_kind kind, const char *text)
{
    struct gateway_report report = {.version = GATEWAY_REPORT_VERSION, .kind = kind};
    if (gateway->options.report_fd == 0)
        return;
    snprintf(report.text, sizeof report.text, "%s", text);
    supervision_send((int)gateway->options.report_fd, &report, sizeof report);
}

static void drain(struct gateway *gateway, struct server *server)
{
    log_info("no new requests; %s in progress", amount_of(gateway->working, "request").text);
    gateway->draining = true;
    server_refuse_connections(server);
}

static void retire(struct gateway *gateway, struct server *server)
{
    log_info("another gateway is taking over; %s in progress", amount_of(gateway->working, "request").text);
    gateway->retired = true;
    server_retire(server);
    report(gateway, GATEWAY_LEAVES, "");
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Where nothing else is said: JSON is up to twice as long as the prompt in it. */
#define BODY_TIMES     2
#define BODIES_BYTES   ((size_t)96 << 20)
#define BODIES_AT_ONCE 3  /* of the largest */
#define TREE_TIMES     12 /* a usual tree is twice as large as its text, one of ids so many times */
#define TREE_BYTES     ((size_t)96 << 20)

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t tree_bytes(const struct gateway *gateway)
{
    return larger(TREE_TIMES * gateway->body_bytes, TREE_BYTES);
}

/* What a body may have follows what the pool takes, of which nothing is known before it has told its
 * contexts. */
static void follow_pool(struct gateway *gateway)
{
    const struct options *options = &gateway->options;
    const uint32_t context =
        fleet_context(&gateway->fleet) > 0 ? fleet_context(&gateway->fleet) : PROTO_LEAST_PROMPT_IDS;
    const size_t bytes = options->body_kb > 0 ? (size_t)options->body_kb << 10
                                              : BODY_TIMES * proto_limits(context).generate_bytes;
    if (bytes == gateway->body_bytes)
        return;
    gateway->body_bytes = bytes;
    gateway->bodies.most = options->bodies_mb > 0 ? (size_t)options->bodies_mb << 20
                                                  : larger(BODIES_BYTES, BODIES_AT_ONCE * bytes);
    keys_share(&gateway->keys, &gateway->bodies, bytes);
    if (gateway->body_reader)
        body_reader_allow(gateway->body_reader, tree_bytes(gateway));
}

static void wait_for_pools(struct gateway *gateway, int timeout_ms)
{
    fleet_wait(&gateway->fleet, sharing_wait_ms(&gateway->sharing, timeout_ms));
    sharing_turn(&gateway->sharing, &gateway->fleet, clock_ns());
    books_turn(&gateway->fleet, clock_ns());
    carry_turn(&gateway->fleet);
    question_turn(gateway);
}

static void serve(struct gateway *gateway, struct server *server)
{
    uint64_t until = UINT64_MAX, patience = gateway->options.drain_seconds * CLOCK_NS_PER_S;
    sig_atomic_t heard = 0;
    while (signals < 2) {
        follow_pool(gateway);
        pulses_run(&gateway->pulses, clock_ns()); /* before what they say is sent */
        int timeout_ms = server_run(server);
        if (heard != hangups) {
            heard = hangups;
            request_log_reopen(&gateway->request_log);
        }
        if (retirements > 0 && !gateway->retired) {
            retire(gateway, server);
            until = earlier(until, clock_ns() + patience);
        }
        if (signals > 0 && !gateway->draining) {
            drain(gateway, server);
            until = earlier(until, clock_ns() + patience);
        }
        if ((gateway->draining && gateway->working == 0) ||
            (gateway->retired && server_is_deserted(server)) || clock_ns() >= until)
            break;
        wait_for_pools(gateway, pulses_left_ms(&gateway->pulses, clock_ns(), timeout_ms));
    }
    if (gateway->working > 0)
        log_warn("%s not finished", amount_of(gateway->working, "request").text);
}

/* Requests whose clients were cut off have been cancelled, and their ends free what they hold. */
static void await_ends(struct gateway *gateway)
{
    uint64_t until = clock_ns() + CLOSING_NS;
    while (fleet_active(&gateway->fleet) > 0 && clock_ns() < until) {
        fleet_wait(&gateway->fleet, 20);
        carry_turn(&gateway->fleet);
    }
}

static int fail(const struct gateway *gateway, const struct error *err)
{
    program_error("%s", err->text);
    report(gateway, GATEWAY_FAILS, err->text);
    return EXIT_FAILURE;
}

static int prepare_exporter(struct gateway *gateway, struct error *err)
{
    const struct exporter_options options = {gateway->options.otlp, gateway->options.otlp_headers};
    if (!options.url)
        return 0;
    int r = gateway->options.check ? exporter_check(&options, err)
                                   : exporter_start(&options, &gateway->exporter, err);
    return r < 0 ? error_prefix(err, r, "--otlp") : 0;
}

/* What can be wrong with what we were told is found out here. */
static int prepare(struct gateway *gateway, struct server **ret_server, struct error *err)
{
    const struct options *options = &gateway->options;
    int r = options->keys ? keys_read(options->keys, &gateway->keys, err) : 0;
    if (r == 0 && sharing_init(&gateway->sharing, &gateway->keys, fleet_is_many(&gateway->fleet)) < 0)
        r = error_set(err, -ENOMEM, "out of memory");
    follow_pool(gateway);
    if (r == 0 && options->request_log) {
        r = options->check ? request_log_check(options->request_log, err)
                           : request_log_open(&gateway->request_log, options->request_log, err);
        if (r < 0)
            return error_prefix(err, r, "--request-log");
        take_hangups();
    }
    if (r == 0 && options->report_fd > 0 && fcntl((int)options->report_fd, F_SETFD, FD_CLOEXEC) < 0)
        r = error_set(err, -errno, "--report-fd %u: %s", options->report_fd, strerror(errno));
    if (r == 0)
        r = prepare_exporter(gateway, err);
    if (r == 0)
        r = body_reader_start(tree_bytes(gateway), &gateway->body_reader, err);
    return r < 0 ? r : server_start(gateway, ret_server, err);
}

/* Whether a pool has told its status. */
static bool has_answered(const struct fleet *fleet)
{
    const struct fleet_pool *pool = fleet_named(fleet, NULL);
    return pool && pool->pool.status;
}

/* Until a worker is ready, or for a while: then nothing serves yet, or the pool is not there. Right after a
 * broker's restart its workers are still registering, and an early answer would be that none is ready. */
static void await_pool(struct gateway *gateway)
{
    const struct fleet *fleet = &gateway->fleet;
    uint64_t begun = clock_ns();
    while (signals == 0 && retirements == 0 && !fleet_is_ready(fleet) &&
           clock_ns() - begun < (has_answered(fleet) ? LOADING_NS : AWAY_NS))
        fleet_wait(&gateway->fleet, 50);
    const struct fleet_pool *pool = fleet_named(fleet, NULL);
    if (!has_answered(fleet) && signals == 0 && retirements == 0)
        log_error("the pool cannot be reached: requests get 503 (%s)",
                  pool ? pool->pool.reason : "no member of the fleet answers");
}

/* Connects to nothing yet. */
static int find_pools(struct gateway *gateway, struct error *err)
{
    const struct options *options = &gateway->options;
    if (!options->fleet) {
        int r = fleet_init(&gateway->fleet, &(struct pool_address){.connect = options->connect,
                                                                   .server_key = options->server_key,
                                                                   .client_key = options->client_key});
        return r < 0 ? error_set(err, r, "out of memory") : 0;
    }
    int r =
        fleet_init_members(&gateway->fleet, options->fleet, options->server_key, options->client_key, err);
    if (r == 0 && options->fleet_secret)
        r = fleet_take_secret(&gateway->fleet, options->fleet_secret, err);
    return r;
}

static void serve_pools(struct gateway *gateway, struct server *server)
{
    if (gateway->options.report_fd > 0)
        await_pool(gateway);
    fleet_watch(&gateway->fleet, server_watched(server));
    log_info("ready: %s://%s", gateway->options.tls_cert ? "https" : "http", server_address(server));
    report(gateway, GATEWAY_SERVES, "");
    serve(gateway, server);
}

int main(int argc, char **argv)
{
    static struct gateway gateway;
    struct server *server;
    struct error err = {{0}};
    program_hold_standard_files();
    program_forgo_core_dumps();
    program_survive_file_limits();
    argp_err_exit_status = PROGRAM_EXIT_USAGE;
    log_init("gateway");
    options_parse(argc, argv, &gateway.options);
    take_signals();
    obey_parent(gateway.options.parent);
    gateway.started = time(NULL);
    gateway.pulses.wait_ns[PULSE_HEAD] = PULSES_HEAD_MS * CLOCK_NS_PER_MS;
    gateway.pulses.wait_ns[PULSE_PING] = gateway.options.sse_ping * CLOCK_NS_PER_S;
    gateway.streams.one = (size_t)gateway.options.stream_kb << 10;
    gateway.streams.unread.displace = exchange_displace;
    gateway.streams.unread.budget.most = (size_t)gateway.options.streams_mb << 20;
    if (find_pools(&gateway, &err) < 0 || prepare(&gateway, &server, &err) < 0)
        return fail(&gateway, &err);
    if (!gateway.options.check)
        serve_pools(&gateway, server);
    server_stop(server);
    gateway.body_reader = body_reader_stop(gateway.body_reader);
    fleet_watch(&gateway.fleet, -1);
    await_ends(&gateway);
    carry_end_all(&gateway.fleet);
    fleet_deinit(&gateway.fleet);
    question_forget_all(&gateway);
    sharing_deinit(&gateway.sharing);
    keys_deinit(&gateway.keys);
    request_log_close(&gateway.request_log);
    gateway.exporter = exporter_stop(gateway.exporter);
    return EXIT_SUCCESS;
}
