/* SPDX-License-Identifier: MIT */
/* quern-broker: a pool. It starts as the supervisor, which starts this program again as the broker. */

#include <argp.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "broker/loop.h"
#include "broker/setup.h"
#include "common/log.h"
#include "common/program/program.h"
#include "common/files/rundir.h"
#include "common/system/sparse.h"
#include "supervisor/supervise.h"

const char *argp_program_version = "quern-broker " QUERN_VERSION;

static int fail(int status, const struct error *err)
{
    program_error("%s", err->text);
    return status;
}

/* The broker's part. Signals are the supervisor's business, in whose process group we are, and in whose name
 * we speak. */
static int serve(struct options *options, struct error *err)
{
    prctl(PR_SET_NAME, "quern-broker"); /* it may have been started as /proc/self/exe */
    if (options->said_by[0])
        program_invocation_short_name = options->said_by;
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    struct broker *broker = sparse_new(1, sizeof *broker); /* it has room for the most workers */
    if (!broker)
        return error_set(err, -ENOMEM, "out of memory");
    int r = broker_init(broker, options, err);
    if (r == -ENOMEM) { /* it may pass, and who dies of a signal is started again */
        program_error("%s", err->text);
        abort();
    }
    if (r == 0) {
        r = broker_run(broker, err);
        if (r == LOOP_E_LEFT) {
            broker_leave(broker);
            _exit(EXIT_SUCCESS);
        }
        broker_deinit(broker);
    }
    sparse_free(broker, 1, sizeof *broker);
    return r;
}

int main(int argc, char **argv)
{
    struct options options;
    struct error err = {{0}};
    program_hold_standard_files();
    program_forgo_core_dumps();
    program_survive_file_limits();
    argp_err_exit_status = PROGRAM_EXIT_USAGE;
    log_init("broker");
    if (options_parse(argc, argv, &options, &err) < 0)
        return fail(PROGRAM_EXIT_USAGE, &err);
    if (options.supervision_fd > 0) {
        int r = serve(&options, &err);
        if (r == LOOP_E_UNFIT) /* no other start changes that */
            return fail(PROGRAM_EXIT_PERMANENT, &err);
        return r == 0 ? EXIT_SUCCESS : fail(EXIT_FAILURE, &err);
    }
    log_init("supervisor");
    int status = supervise(&options, argc, argv, &err);
    if (options.owner != 0 && getppid() != (pid_t)options.owner) /* killed before it could */
        rundir_remove(options.rundir);
    if (err.text[0])
        return fail(status < 0 ? EXIT_FAILURE : status, &err);
    return status;
}
