/* SPDX-License-Identifier: MIT */
/* Any bytes as the files in which a kernel says how much memory and time there is: what is made of them is
 * not more than the machine has, and has a name.
 *
 * An input is the files, in the order of the list, each ended by a zero byte. */

#include "tests/fuzz/driver.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/system/available.h"
#include "common/system/cpu_quota.h"
#include "common/utf8.h"

static const char *const names[] = {"/proc/meminfo",
                                    "/proc/self/cgroup",
                                    "/proc/self/comm",
                                    "/proc/self/status",
                                    "/proc/7/comm",
                                    "/proc/7/status",
                                    "/proc/7/cgroup",
                                    "/sys/fs/cgroup/a/memory.max",
                                    "/sys/fs/cgroup/a/memory.high",
                                    "/sys/fs/cgroup/a/memory.current",
                                    "/sys/fs/cgroup/a/memory.stat",
                                    "/sys/fs/cgroup/a/cpu.max",
                                    "/sys/fs/cgroup/memory/a/memory.limit_in_bytes",
                                    "/sys/fs/cgroup/memory/a/memory.usage_in_bytes",
                                    "/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us",
                                    "/sys/fs/cgroup/cpu/a/cpu.cfs_period_us"};
enum { N = sizeof names / sizeof *names };

static char root[64];
static int files[N];

static int remove_one(const char *path, const struct stat *stat, int type, struct FTW *ftw)
{
    (void)stat;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void end(void)
{
    nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static int make(const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s%s", root, name);
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        mkdir(path, 0755);
        *slash = '/';
    }
    return open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

static void begin(void)
{
    snprintf(root, sizeof root, "/dev/shm/quern-fuzz-XXXXXX"); /* in memory, where there is such a folder */
    if (!mkdtemp(root)) {
        snprintf(root, sizeof root, "/tmp/quern-fuzz-XXXXXX");
        if (!mkdtemp(root))
            abort();
    }
    atexit(end);
    for (int i = 0; i < N; i++)
        if ((files[i] = make(names[i])) < 0)
            abort();
}

static void write_all(const uint8_t *data, size_t len)
{
    for (size_t i = 0, at = 0; i < N; i++) {
        size_t n = strnlen((const char *)data + at, len - at);
        if (ftruncate(files[i], 0) < 0 || pwrite(files[i], data + at, n, 0) != (ssize_t)n)
            abort();
        at += at + n < len ? n + 1 : n;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct available available;
    struct cpu_quota quota;
    if (!root[0])
        begin();
    write_all(data, len);
    memset(&available, 0x55, sizeof available);
    int r = available_read(root, &available);
    if (r < 0 && r != -ENOENT && r != -ENOMEM)
        abort();
    if (r == 0 && strnlen(available.by, sizeof available.by) == sizeof available.by)
        abort();
    cpu_quota_read(root, &quota);
    if (strnlen(quota.by, sizeof quota.by) == sizeof quota.by || !quota.by[0] != (quota.thousandths == 0))
        abort();
    return 0;
}
