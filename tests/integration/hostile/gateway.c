/* SPDX-License-Identifier: MIT */
/* The port is the kernel's choice, and read from the line with which the gateway says that it serves. What
 * its log says of the pool is how a lost session is seen. */

#include "tests/integration/hostile/gateway.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "tests/integration/hostile/children.h"

#define READY_S    60
#define MOST_BYTES ((rlim_t)4 << 30) /* of address space */
#define READY      "ready: http://127.0.0.1:"

static void write_keys(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || dprintf(fd, "good %s\nmallory %s\n", GATEWAY_GOOD_KEY, GATEWAY_HOSTILE_KEY) < 0) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        abort();
    }
    close(fd);
}

/* Far more than it is judged by: the machine is not to suffer. Sanitizers take address space by the terabyte.
 */
static void limit_memory(void)
{
#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
    const struct rlimit limit = {.rlim_cur = MOST_BYTES, .rlim_max = MOST_BYTES};
    setrlimit(RLIMIT_AS, &limit);
#endif
}

/* Does not return. */
static void become_gateway(const struct gateway_process *gateway, const struct pool *pool)
{
    char program[4096];
    snprintf(program, sizeof program, "%s", build_path("quern-gateway"));
    int fd = open(gateway->log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
    limit_memory();
    dup2(fd, STDERR_FILENO);
    execl(program, program, "--connect", pool->rundir, "--listen", "127.0.0.1:0", "--keys", gateway->keys,
          (char *)NULL);
    _exit(127);
}

bool gateway_start(struct gateway_process *gateway, const struct pool *pool)
{
    snprintf(gateway->keys, sizeof gateway->keys, "%s.http-keys", pool->rundir);
    snprintf(gateway->log, sizeof gateway->log, "%s.http-log", pool->rundir);
    write_keys(gateway->keys);
    gateway->pid = fork_child();
    if (gateway->pid == 0)
        become_gateway(gateway, pool);
    for (uint64_t until = clock_ns() + READY_S * CLOCK_NS_PER_S; clock_ns() < until; usleep(5000)) {
        const char *ready = strstr(gateway_log(gateway), READY);
        gateway->port = ready ? atoi(ready + strlen(READY)) : 0;
        if (gateway->port > 0)
            return true;
        if (!gateway_runs(gateway))
            break;
    }
    fprintf(stderr, "the gateway does not serve:\n%s", gateway_log(gateway));
    return false;
}

bool gateway_runs(const struct gateway_process *gateway)
{
    siginfo_t info = {0};
    return gateway->pid > 0 && waitid(P_PID, (id_t)gateway->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == 0;
}

const char *gateway_log(const struct gateway_process *gateway)
{
    static char text[4096];
    int fd = open(gateway->log, O_RDONLY | O_CLOEXEC);
    off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    off_t from = size > (off_t)sizeof text - 1 ? size - ((off_t)sizeof text - 1) : 0;
    ssize_t n = fd < 0 ? 0 : pread(fd, text, sizeof text - 1, from);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    return text;
}

unsigned gateway_says(const struct gateway_process *gateway, const char *text)
{
    unsigned n = 0;
    char *line = NULL;
    size_t size = 0;
    FILE *file = fopen(gateway->log, "re");
    while (file && getline(&line, &size, file) >= 0)
        n += strstr(line, text) != NULL;
    free(line);
    if (file)
        fclose(file);
    return n;
}

int gateway_end(struct gateway_process *gateway, int timeout_s)
{
    int status = -1;
    pid_t pid = gateway->pid;
    if (pid <= 0)
        return -1;
    kill(pid, SIGTERM);
    uint64_t until = clock_ns() + (uint64_t)timeout_s * CLOCK_NS_PER_S;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        usleep(5000);
        if (clock_ns() < until)
            continue;
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        gateway->pid = 0;
        return -1;
    }
    gateway->pid = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void gateway_forget(struct gateway_process *gateway)
{
    gateway_end(gateway, 0);
    unlink(gateway->keys);
    unlink(gateway->log);
    *gateway = (struct gateway_process){0};
}
