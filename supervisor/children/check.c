/* SPDX-License-Identifier: MIT */
/* See check.h.
 *
 *     begin ──▶ quern-worker --check ──status 0──▶ quern-gateway --check, if there is one ──status 0──▶ good
 *
 * The reason is the line that begins with the program's name, as program_error writes it; lines of its log
 * may stand before it. A process that does not end is killed, and so is one that goes on after its reason. */

#include "supervisor/children/check.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "supervisor/children/launch.h"

#define PATIENCE_S 60 /* a model of a thousand tensors on a disk that is busy */

static int start(struct check *check, const char *program, bool is_gateway, uint64_t now, struct error *err)
{
    int r = is_gateway ? launch_gateway_check(program, check->options, check->listen_fd, &check->pid,
                                              &check->fd, err)
                       : launch_worker_check(program, check->options, &check->pid, &check->fd, err);
    if (r < 0)
        return r;
    check->program = program;
    check->give_up_at = now + PATIENCE_S * CLOCK_NS_PER_S;
    check->len = 0;
    return 0;
}

int check_begin(struct check *check, const char *worker, const char *gateway, int listen_fd,
                const struct options *options, uint64_t now, struct error *err)
{
    *check = (struct check){.options = options, .gateway = gateway, .listen_fd = listen_fd};
    return start(check, worker, false, now, err);
}

static void stop_listening(struct check *check)
{
    if (check->fd >= 0)
        close(check->fd);
    check->fd = -1;
}

void check_stop(struct check *check)
{
    if (!check->program)
        return;
    kill(check->pid, SIGKILL);
    waitpid(check->pid, NULL, 0);
    stop_listening(check);
    *check = (struct check){0};
}

/* What it says beyond the room is lost: else it would wait for us to read. */
static void listen_to(struct check *check)
{
    char more[512];
    ssize_t n;
    if (check->fd < 0)
        return;
    while ((n = read(check->fd, more, sizeof more)) > 0) {
        const size_t room = sizeof check->said - 1 - check->len, taken = (size_t)n < room ? (size_t)n : room;
        memcpy(check->said + check->len, more, taken);
        check->len += taken;
    }
    check->said[check->len] = 0;
    if (n == 0)
        stop_listening(check); /* an end that is not taken up would be news for ever */
}

static const char *name_of(const char *program)
{
    const char *slash = strrchr(program, '/');
    return slash ? slash + 1 : program;
}

/* What follows "NAME: " on the line that begins with it; NULL: there is none. Ends it. */
static const char *reason_in(char *said, const char *name)
{
    const size_t len = strlen(name);
    for (char *line = said; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        if (strncmp(line, name, len) == 0 && strncmp(line + len, ": ", 2) == 0) {
            line[strcspn(line, "\n")] = 0;
            return line + len + 2;
        }
    return NULL;
}

static int judge(struct check *check, int status, struct error *err)
{
    const char *name = name_of(check->program), *reason = reason_in(check->said, name);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    if (reason)
        return error_set(err, -EINVAL, "%s", reason);
    if (WIFEXITED(status))
        return error_set(err, -EINVAL, "%s ended with status %d while checking the settings", name,
                         WEXITSTATUS(status));
    return error_set(err, -EINVAL, "%s was killed by signal %d while checking the settings", name,
                     WTERMSIG(status));
}

int check_turn(struct check *check, uint64_t now, struct error *err)
{
    int status = 0;
    listen_to(check);
    const pid_t ended = waitpid(check->pid, &status, WNOHANG);
    if (ended == 0 && now < check->give_up_at)
        return 1;
    int r = 0;
    if (ended == check->pid) {
        listen_to(check);
        r = judge(check, status, err);
        stop_listening(check);
        check->program = NULL;
    } else {
        r = error_set(err, -ETIMEDOUT, "%s did not finish checking the settings within %d s",
                      name_of(check->program), PATIENCE_S);
        check_stop(check);
    }
    if (r < 0 || !check->gateway)
        return r;
    const char *gateway = check->gateway;
    check->gateway = NULL;
    r = start(check, gateway, true, now, err);
    return r < 0 ? r : 1;
}
