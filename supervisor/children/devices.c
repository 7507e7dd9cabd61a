/* SPDX-License-Identifier: MIT */
/* Counting devices.
 *
 * A driver that was asked once stays in the process, with its threads, its memory and whatever it has open;
 * and one that hangs keeps whoever asked it. The supervisor is to outlive all of that, so a worker's program
 * asks, says the number on its last line, and ends. When it says none, one worker is started, and what is
 * wrong is that worker's to say. */

#include "supervisor/children/devices.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broker/choose/worker.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/number.h"
#include "supervisor/children/launch.h"

#define PATIENCE_NS  (60 * CLOCK_NS_PER_S) /* drivers of many GPUs take their time */
#define END_NS       (5 * CLOCK_NS_PER_S)  /* for the process to end, when it has said all */
#define KILLED_NS    CLOCK_NS_PER_S /* or was killed: one that hangs in the kernel does not end by that */
#define END_AGAIN_US 5000
#define MOST_SAID    4096 /* bytes; what a driver has to say comes before the number */

/* The end of what the process says, which is `ret_said` with a zero. False: it was not waited for. */
static bool hear(int fd, int signal_fd, char ret_said[MOST_SAID])
{
    const uint64_t until = clock_ns() + PATIENCE_NS;
    size_t len = 0;
    for (;;) {
        const uint64_t now = clock_ns();
        struct pollfd items[] = {{.fd = fd, .events = POLLIN}, {.fd = signal_fd, .events = POLLIN}};
        if (now >= until)
            return false;
        poll(items, 2, (int)((until - now) / CLOCK_NS_PER_MS) + 1);
        if (!items[0].revents && items[1].revents)
            return false;
        if (len == MOST_SAID - 1) { /* the last half is enough */
            memmove(ret_said, ret_said + len / 2, len - len / 2);
            len -= len / 2;
        }
        ssize_t n = read(fd, ret_said + len, MOST_SAID - 1 - len);
        if (n > 0)
            len += (size_t)n;
        else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
            ret_said[len] = 0;
            return true;
        }
    }
}

/* The number on the last line; 0: there is none. */
static uint32_t number_in(char *said)
{
    uint32_t n;
    size_t len = strlen(said);
    if (len > 0 && said[len - 1] == '\n')
        said[len - 1] = 0;
    const char *before = strrchr(said, '\n');
    return number_read_u32(before ? before + 1 : said, 0, UINT32_MAX, &n, NULL) == 0 ? n : 0;
}

/* Whether it ends within that time. */
static bool ends_within(pid_t pid, uint64_t ns, int *ret_status)
{
    const uint64_t until = clock_ns() + ns;
    pid_t ended;
    while ((ended = waitpid(pid, ret_status, WNOHANG)) == 0 && clock_ns() < until)
        usleep(END_AGAIN_US);
    return ended == pid;
}

static uint32_t count(const struct options *options, const char *program, int signal_fd)
{
    char said[MOST_SAID];
    struct error err;
    pid_t pid;
    int fd, status;
    if (launch_count(program, options, &pid, &fd, &err) < 0) {
        log_debug("cannot count devices: %s", err.text);
        return 0;
    }
    const bool heard = hear(fd, signal_fd, said), ended = heard && ends_within(pid, END_NS, &status);
    close(fd);
    if (!ended) {
        kill(pid, SIGKILL);
        ends_within(pid, KILLED_NS, &status);
    }
    return ended && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? number_in(said) : 0;
}

/* Nobody has to be asked about these. */
static bool has_no_numbers(const char *device)
{
    return strcmp(device, "cpu") == 0 || strcmp(device, "null") == 0;
}

uint32_t devices_workers(const struct options *options, const char *program, int signal_fd)
{
    if (options->workers > 0)
        return options->workers;
    uint32_t n = has_no_numbers(options->device) ? 0 : count(options, program, signal_fd);
    if (n > WORKER_MAX) {
        log_warn("%u devices found; a pool has at most %u workers", n, WORKER_MAX);
        n = WORKER_MAX;
    } else if (n > 1) {
        log_info("%u devices: a worker on each (--workers starts fewer or more)", n);
    }
    return n > 0 ? n : 1;
}
