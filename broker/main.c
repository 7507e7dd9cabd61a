/* SPDX-License-Identifier: MIT */
/* quern-broker: options, signals, the broker, its loop. */

#include <argp.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "broker/broker.h"
#include "broker/sockets.h"
#include "common/log.h"

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

int main(int argc, char **argv)
{
    struct options options;
    struct error err = {{0}};
    argp_err_exit_status = 2;
    sockets_prepare();
    log_init("broker");
    int signal_fd = -1;
    int r = options_parse(argc, argv, &options, &err);
    if (r == 0)
        r = signal_fd = take_signals(&err);
    struct broker *broker = r < 0 ? NULL : malloc(sizeof *broker);
    if (r >= 0 && !broker)
        r = error_set(&err, -ENOMEM, "out of memory");
    if (r >= 0)
        r = broker_init(broker, &options, &err);
    if (r >= 0) {
        r = broker_run(broker, signal_fd, &err);
        broker_deinit(broker);
    }
    free(broker);
    if (signal_fd >= 0)
        close(signal_fd);
    if (r < 0)
        fprintf(stderr, "quern-broker: %s\n", err.text);
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
