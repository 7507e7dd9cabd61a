/* SPDX-License-Identifier: MIT */
/* The life of a private gateway. It is bound to us by PR_SET_PDEATHSIG. Its stderr is a pipe: the line that
 * says where it serves is read, what comes later stays in the pipe, which holds more than a gateway has to
 * say. It serves when its /health says so. */

#include "client/command/bench/private_gateway.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/command/bench/http.h"
#include "client/command/terminal/interrupt.h"
#include "common/clock.h"
#include "common/program/program.h"

#define START_NS (20 * CLOCK_NS_PER_S)
#define STOP_NS  (5 * CLOCK_NS_PER_S) /* from SIGTERM to SIGKILL */

static _Noreturn void become_gateway(const char *program, const char *rundir, int log, pid_t parent)
{
    int null = open("/dev/null", O_RDWR);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (null < 0 || getppid() != parent) /* died before the line above */
        _exit(126);
    signal(SIGPIPE, SIG_DFL);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    execl(program, program, "--connect", rundir, "--listen", "127.0.0.1:0", "--connections", "4096", NULL);
    dprintf(STDERR_FILENO, "%s: %s\n", program, strerror(errno));
    _exit(127);
}

static int spawn(struct private_gateway *gateway, const char *rundir, struct error *err)
{
    char program[PATH_MAX];
    int ends[2], r = program_sibling("quern-gateway", program, err);
    if (r < 0)
        return r;
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return error_set(err, -errno, "pipe: %s", strerror(errno));
    pid_t self = getpid(), pid = fork();
    if (pid == 0)
        become_gateway(program, rundir, ends[1], self);
    close(ends[1]);
    gateway->log = ends[0];
    if (pid < 0)
        return error_set(err, -errno, "fork: %s", strerror(errno));
    gateway->pid = pid;
    return 0;
}

/* The port in what it has said; 0: not yet. */
static uint16_t port_of(const char *said)
{
    unsigned port;
    const char *ready = strstr(said, "ready: http://127.0.0.1:");
    return ready && strchr(ready, '\n') && sscanf(ready, "ready: http://127.0.0.1:%u", &port) == 1 &&
                   port < 65536
               ? (uint16_t)port
               : 0;
}

static int read_port(struct private_gateway *gateway, uint64_t until, uint16_t *ret_port, struct error *err)
{
    char said[8192];
    size_t len = 0;
    for (said[0] = 0; (*ret_port = port_of(said)) == 0;) {
        struct pollfd log = {.fd = gateway->log, .events = POLLIN};
        ssize_t n = poll(&log, 1, 100) > 0 ? read(gateway->log, said + len, sizeof said - 1 - len) : -1;
        if (n == 0 || len + 1 == sizeof said) {
            said[strcspn(said, "\n")] = 0;
            return error_set(err, -ECHILD, "the gateway did not start: %s", said);
        }
        len += n > 0 ? (size_t)n : 0;
        said[len] = 0;
        if (interrupt_signal())
            return error_set(err, -EINTR, "interrupted");
        if (clock_ns() > until)
            return error_set(err, -ETIMEDOUT, "the gateway did not start");
    }
    return 0;
}

int private_gateway_start(struct private_gateway *gateway, const char *rundir, struct error *err)
{
    uint64_t until = clock_ns() + START_NS;
    uint16_t port;
    int r = spawn(gateway, rundir, err);
    if (r == 0)
        r = read_port(gateway, until, &port, err);
    if (r < 0)
        return r;
    gateway->address = (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    while (bench_http_status(&gateway->address, "/health") != 200) {
        if (interrupt_signal())
            return error_set(err, -EINTR, "interrupted");
        if (clock_ns() > until)
            return error_set(err, -ETIMEDOUT, "the gateway does not serve");
        usleep(20000);
    }
    return 0;
}

void private_gateway_end(struct private_gateway *gateway)
{
    if (gateway->pid > 0) {
        uint64_t start = clock_ns();
        kill(gateway->pid, SIGTERM);
        while (waitpid(gateway->pid, NULL, WNOHANG) == 0) {
            if (clock_ns() - start > STOP_NS)
                kill(gateway->pid, SIGKILL);
            usleep(2000);
        }
    }
    if (gateway->log >= 0)
        close(gateway->log);
    *gateway = (struct private_gateway){.log = -1};
}

uint64_t private_gateway_memory(const struct private_gateway *gateway)
{
    char path[64], line[256];
    unsigned long long kb = 0;
    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", gateway->pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "Pss: %llu kB", &kb) == 1)
            break;
    if (file)
        fclose(file);
    return kb * 1024;
}
