/* SPDX-License-Identifier: MIT */
/* quern-broker: options, signals, the broker, its loop. */

#include <argp.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "broker/loop.h"
#include "broker/setup.h"
#include "broker/sockets.h"
#include "common/log.h"
#include "common/program.h"
#include "common/rundir.h"

const char *argp_program_version = "quern-broker " QUERN_VERSION;

/* Signals are taken in the loop, through a descriptor. They are blocked before any thread exists. */
static int take_signals(struct error *err)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    int fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    return fd < 0 ? error_set(err, -errno, "signalfd: %s", strerror(errno)) : fd;
}

static int serve(const struct options *options, int signal_fd, struct error *err)
{
    struct broker *broker = malloc(sizeof *broker);
    if (!broker)
        return error_set(err, -ENOMEM, "out of memory");
    int r = broker_init(broker, options, err);
    if (r == 0) {
        r = broker_run(broker, signal_fd, err);
        broker_deinit(broker);
    }
    free(broker);
    return r;
}

static int fail(int status, const struct error *err)
{
    program_error("%s", err->text);
    return status;
}

int main(int argc, char **argv)
{
    struct options options;
    struct error err = {{0}};
    program_hold_standard_files();
    argp_err_exit_status = PROGRAM_EXIT_USAGE;
    sockets_prepare();
    log_init("broker");
    if (options_parse(argc, argv, &options, &err) < 0)
        return fail(PROGRAM_EXIT_USAGE, &err);
    int signal_fd = take_signals(&err);
    if (signal_fd < 0)
        return fail(EXIT_FAILURE, &err);
    int r = serve(&options, signal_fd, &err);
    close(signal_fd);
    if (options.owner != 0 && getppid() != (pid_t)options.owner) /* killed before it could */
        rundir_remove(options.rundir);
    return r < 0 ? fail(EXIT_FAILURE, &err) : EXIT_SUCCESS;
}
