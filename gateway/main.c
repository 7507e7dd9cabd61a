/* SPDX-License-Identifier: MIT */
/* quern-gateway: a pool of Quern, by HTTP.
 *
 * One thread and one loop: server_run takes and sends what HTTP has, pool_wait what the pool has, and waits
 * for both.
 *
 *     SERVING ──SIGTERM, SIGINT──▶ DRAINING ──nothing is being answered, a second signal, too long──▶ end */

#include <argp.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/program.h"
#include "gateway/server.h"

const char *argp_program_version = "quern-gateway " QUERN_VERSION;

#define CLOSING_NS (2 * CLOCK_NS_PER_S) /* for the ends of requests that were cancelled at the end */

static volatile sig_atomic_t signals, hangups;

static void on_signal(int signal)
{
    signals = signals + 1;
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

static void drain(struct gateway *gateway, struct server *server)
{
    log_info("no new requests; %u are being answered", gateway->working);
    gateway->draining = true;
    server_refuse_connections(server);
}

static void serve(struct gateway *gateway, struct server *server)
{
    uint64_t until = 0;
    sig_atomic_t heard = 0;
    while (signals < 2) {
        int timeout_ms = server_run(server);
        if (heard != hangups) {
            heard = hangups;
            request_log_reopen(&gateway->request_log);
        }
        if (signals > 0 && !gateway->draining) {
            drain(gateway, server);
            until = clock_ns() + gateway->options.drain_seconds * CLOCK_NS_PER_S;
        }
        if (gateway->draining && (gateway->working == 0 || clock_ns() >= until))
            break;
        pool_wait(&gateway->pool, timeout_ms);
    }
    if (gateway->working > 0)
        log_warn("%u requests are not finished", gateway->working);
}

/* Requests whose clients were cut off have been cancelled, and their ends free what they hold. */
static void await_ends(struct gateway *gateway)
{
    uint64_t until = clock_ns() + CLOSING_NS;
    while (gateway->pool.client && quern_active(gateway->pool.client) > 0 && clock_ns() < until)
        pool_wait(&gateway->pool, 20);
}

int main(int argc, char **argv)
{
    static struct gateway gateway;
    struct server *server;
    struct error err = {{0}};
    program_hold_standard_files();
    program_forgo_core_dumps();
    argp_err_exit_status = PROGRAM_EXIT_USAGE;
    log_init("gateway");
    options_parse(argc, argv, &gateway.options);
    take_signals();
    obey_parent(gateway.options.parent);
    gateway.started = time(NULL);
    gateway.streams.one = (size_t)gateway.options.stream_kb << 10;
    gateway.streams.all = (size_t)gateway.options.streams_mb << 20;
    if (gateway.options.keys && keys_read(gateway.options.keys, &gateway.keys, &err) < 0) {
        program_error("%s", err.text);
        return EXIT_FAILURE;
    }
    if (gateway.options.request_log) {
        if (request_log_open(&gateway.request_log, gateway.options.request_log, &err) < 0) {
            program_error("--request-log: %s", err.text);
            return EXIT_FAILURE;
        }
        take_hangups();
    }
    if (server_start(&gateway, &server, &err) < 0) {
        program_error("%s", err.text);
        return EXIT_FAILURE;
    }
    pool_init(&gateway.pool, &gateway.options, server_watched(server));
    log_info("ready: %s://%s", gateway.options.tls_cert ? "https" : "http", server_address(server));
    serve(&gateway, server);
    server_stop(server);
    if (gateway.pool.client)
        quern_watch(gateway.pool.client, -1);
    await_ends(&gateway);
    pool_deinit(&gateway.pool);
    keys_deinit(&gateway.keys);
    request_log_close(&gateway.request_log);
    return EXIT_SUCCESS;
}
