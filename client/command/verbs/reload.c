/* SPDX-License-Identifier: MIT */
/* quern reload: has a running pool replace its processes, and waits until it has. */

#include <argp.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/command/verbs.h"
#include "common/program/arguments.h"
#include "common/program/program.h"
#include "common/files/rundir.h"
#include "common/utf8.h"
#include "proto/control.h"

#define SILENCE_MS (10 * CONTROL_EVERY_MS) /* of a supervisor that is stopped, or hangs */

enum { KEY_RUNDIR = 1000, KEY_GATEWAY };

struct wish {
    const char *rundir; /* NULL: the default one */
    enum control_kind kind;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct wish *wish = state->input;
    if (key == KEY_GATEWAY) {
        wish->kind = CONTROL_RELOAD_GATEWAY;
        return 0;
    }
    if (key != KEY_RUNDIR)
        return ARGP_ERR_UNKNOWN;
    if (!*arg)
        argp_error(state, "DIR is empty");
    wish->rundir = arg;
    return 0;
}

static int connect_to(const char *rundir, int *ret_fd, struct error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/" CONTROL_NAME, rundir);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0) {
        *ret_fd = fd;
        return 0;
    }
    int r = -errno;
    if (fd >= 0)
        close(fd);
    if (r == -ENOENT || r == -ECONNREFUSED)
        return error_set(err, r, "no pool is running in %s", rundir);
    return error_set(err, r, "%s: %s", address.sun_path, strerror(-r));
}

/* The next report. */
static int receive(int fd, const char *rundir, struct control_report *ret_report, struct error *err)
{
    struct pollfd item = {.fd = fd, .events = POLLIN};
    int n = poll(&item, 1, SILENCE_MS);
    if (n == 0)
        return error_set(err, -ETIMEDOUT, "the pool in %s has not answered for %d s", rundir,
                         SILENCE_MS / 1000);
    ssize_t len = n < 0 ? -1 : recv(fd, ret_report, sizeof *ret_report, 0);
    if (len == 0)
        return error_set(err, -EPIPE, "the pool in %s ended", rundir);
    if (len < 0)
        return error_set(err, -errno, "%s: %s", rundir, strerror(errno));
    if (len != sizeof *ret_report)
        return error_set(err, -EBADMSG, "the pool in %s has another version", rundir);
    ret_report->text[sizeof ret_report->text - 1] = 0;
    utf8_clean(ret_report->text);
    return 0;
}

/* Says each step once. 0 when all is replaced. */
static int follow(int fd, const char *rundir, struct error *err)
{
    struct control_report report;
    char said[CONTROL_TEXT_MAX] = "";
    for (;;) {
        int r = receive(fd, rundir, &report, err);
        if (r < 0)
            return r;
        if (report.result == CONTROL_FAILED)
            return error_set(err, -ECANCELED, "%s", report.text);
        if (strcmp(report.text, said) != 0)
            fprintf(stderr, "%s\n", report.text);
        if (report.result == CONTROL_DONE)
            return 0;
        memcpy(said, report.text, sizeof said);
    }
}

static int reload(const struct wish *wish, struct error *err)
{
    const struct control_request request = {.version = CONTROL_VERSION, .kind = wish->kind};
    char rundir[RUNDIR_PATH_MAX + 1];
    int fd = -1, r = rundir_path(wish->rundir, rundir, err);
    if (r == 0)
        r = rundir_check(rundir, err);
    if (r == -ENOENT)
        return error_set(err, r, "no pool is running in %s", rundir);
    if (r == 0)
        r = connect_to(rundir, &fd, err);
    if (r < 0)
        return r;
    if (send(fd, &request, sizeof request, MSG_NOSIGNAL) < 0)
        r = error_set(err, -errno, "%s: %s", rundir, strerror(errno));
    if (r == 0)
        r = follow(fd, rundir, err);
    close(fd);
    return r;
}

int verb_reload(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"rundir", KEY_RUNDIR, "DIR", 0,
         "Run directory of the pool (default $XDG_RUNTIME_DIR/quern or /tmp/quern-UID)", 0},
        {"gateway", KEY_GATEWAY, NULL, 0, "Replace only the gateway, to load new keys or a new certificate",
         0},
        {0}};
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .doc =
            "Replaces the workers of a running pool one by one, then its broker, and its gateway if it "
            "serves HTTP, by the programs that are installed now. No request is lost or computed anew for "
            "its client, who notices nothing."
            "\vWhat a worker runs goes on at another one; where there is none, it finishes first, as far as "
            "the pool's --drain-seconds allow, and the rest waits for the new one. A program that does not "
            "come up is taken back: then this fails, and the pool serves on. The gateway reads keys and "
            "certificate anew. The supervisor itself is not replaced, and options stay as they were: for "
            "those, start the pool anew."};
    struct wish wish = {.kind = CONTROL_RELOAD};
    struct error err = {0};
    arguments_parse(&argp, argc, argv, &wish);
    int r = reload(&wish, &err);
    return r < 0 ? verb_fail(r, &err) : EXIT_SUCCESS;
}
