/* SPDX-License-Identifier: MIT */
/* See gateway.h. It is started when the pool can be reached for the first time, drains when the pool does,
 * and goes with the supervisor (PR_SET_PDEATHSIG). */

#include "supervisor/gateway.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/program.h"
#include "supervisor/launch.h"

#define END_NS       (3 * CLOCK_NS_PER_S)
#define END_AGAIN_US 10000

int gateway_child_init(struct gateway_child *child, const struct options *options, struct error *err)
{
    *child = (struct gateway_child){.options = options, .start_at = options->http[0] ? 0 : UINT64_MAX};
    if (!options->http[0])
        return 0;
    int r = program_sibling("quern-gateway", child->program, err);
    return r == -ENOENT
               ? error_set(err, r, "http: quern-gateway is not there: it was built without libmicrohttpd")
               : r;
}

uint64_t gateway_child_due(const struct gateway_child *child)
{
    return child->pid > 0 ? UINT64_MAX : child->start_at;
}

void gateway_child_start(struct gateway_child *child, uint64_t now)
{
    struct error err;
    if (gateway_child_due(child) > now)
        return;
    if (launch_gateway(child->program, child->options, &child->pid, &err) < 0) {
        log_error("the gateway cannot be started: %s", err.text);
        child->pid = 0;
        child->start_at = now + CLOCK_NS_PER_S;
        return;
    }
    restart_ready(&child->restart, now); /* it does not load: it serves at once or ends */
}

bool gateway_child_reap(struct gateway_child *child, uint64_t now)
{
    int status;
    if (child->pid <= 0 || waitpid(child->pid, &status, WNOHANG) != child->pid)
        return true;
    child->pid = 0;
    if (child->start_at == UINT64_MAX)
        return true; /* it was told to */
    if (WIFEXITED(status)) {
        log_error("the gateway ended with status %d", WEXITSTATUS(status));
        return false;
    }
    restart_died(&child->restart, now, &child->start_at);
    log_error("the gateway was killed by signal %d (%s): it is started again", WTERMSIG(status),
              strsignal(WTERMSIG(status)));
    return true;
}

void gateway_child_stop(struct gateway_child *child, int signal)
{
    child->start_at = UINT64_MAX;
    if (child->pid > 0)
        kill(child->pid, signal);
}

void gateway_child_end(struct gateway_child *child)
{
    uint64_t until = clock_ns() + END_NS;
    gateway_child_stop(child, SIGTERM);
    while (child->pid > 0 && clock_ns() < until) {
        gateway_child_reap(child, clock_ns());
        if (child->pid > 0)
            usleep(END_AGAIN_US);
    }
    if (child->pid <= 0)
        return;
    kill(child->pid, SIGKILL);
    waitpid(child->pid, NULL, 0);
    child->pid = 0;
}
