/* SPDX-License-Identifier: MIT */
/* /proc/PID/stat has the time of all threads together, and each thread's own says whether it waits in a way
 * that no signal ends ('D'), which is how the kernel waits for disks, network file systems and drivers. What
 * cannot be read says nothing against the process. */

#include "supervisor/children/life.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"

#define FIELDS_BEFORE_UTIME 10 /* between the state and that */

/* What stands behind the name, which may hold anything. False when the file cannot be read. */
static bool read_stat(const char *path, char *ret_state, uint64_t *ret_ticks)
{
    char text[1024];
    uint64_t user, kernel;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return false;
    text[n] = 0;
    const char *at = strrchr(text, ')');
    if (!at || at[1] == 0 || at[2] == 0)
        return false;
    *ret_state = at[2];
    at += 3;
    for (int i = 0; at && i < FIELDS_BEFORE_UTIME; i++)
        at = strchr(at + 1, ' ');
    if (!at || sscanf(at, "%" SCNu64 " %" SCNu64, &user, &kernel) != 2)
        return false;
    *ret_ticks = user + kernel;
    return true;
}

static bool waits_for_device(pid_t pid)
{
    char path[64 + sizeof((struct dirent *)0)->d_name], state;
    uint64_t ticks;
    bool waits = false;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    if (!tasks)
        return false;
    for (const struct dirent *entry; !waits && (entry = readdir(tasks));) {
        snprintf(path, sizeof path, "/proc/%d/task/%s/stat", (int)pid, entry->d_name);
        waits = entry->d_name[0] != '.' && read_stat(path, &state, &ticks) && state == 'D';
    }
    closedir(tasks);
    return waits;
}

bool life_has_ceased(struct life *life, pid_t pid, uint32_t most_ms, uint64_t now)
{
    char path[64], state;
    uint64_t ticks;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (!read_stat(path, &state, &ticks)) {
        life->since = now;
        return false;
    }
    uint64_t cpu_ms = ticks * 1000 / (uint64_t)sysconf(_SC_CLK_TCK);
    if (life->since == 0 || cpu_ms >= life->cpu_ms + LIFE_MS || waits_for_device(pid)) {
        life->cpu_ms = cpu_ms;
        life->since = now;
    }
    return now - life->since >= most_ms * CLOCK_NS_PER_MS;
}
