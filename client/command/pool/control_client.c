/* SPDX-License-Identifier: MIT */
/* One question, and reports until the last one. */

#include "client/command/pool/control_client.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/files/rundir.h"
#include "common/utf8.h"

#define SILENCE_MS (10 * CONTROL_EVERY_MS) /* of a supervisor that is stopped, or hangs */

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
        return error_set(err, -EBADMSG, "the pool in %s is of a different version", rundir);
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

int control_ask(const char *rundir, enum control_kind kind, uint32_t number, struct error *err)
{
    const struct control_numbered_request request = {{CONTROL_VERSION, kind}, number};
    const bool numbered = kind != CONTROL_RELOAD && kind != CONTROL_RELOAD_GATEWAY;
    char path[RUNDIR_PATH_MAX + 1];
    int fd = -1, r = rundir_path(rundir, path, err);
    if (r == 0)
        r = rundir_check(path, err);
    if (r == -ENOENT)
        return error_set(err, r, "no pool is running in %s", path);
    if (r == 0)
        r = connect_to(path, &fd, err);
    if (r < 0)
        return r;
    if (send(fd, &request, numbered ? sizeof request : sizeof request.request, MSG_NOSIGNAL) < 0)
        r = error_set(err, -errno, "%s: %s", path, strerror(errno));
    if (r == 0)
        r = follow(fd, path, err);
    close(fd);
    return r;
}
