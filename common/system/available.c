/* SPDX-License-Identifier: MIT */
/* Memory by the kernel's files.
 *
 * /proc/meminfo speaks for the machine, also inside a container. A control group limits its members and all
 * groups below it together, so every level counts (control_group.h). Pages of files that nobody used lately
 * are charged to a group but given back before its limit is felt, so they count as free. What other processes
 * of this program were promised counts as taken, of the machine and of the groups that they are in
 * (memory_commitments.h). What cannot be read limits nothing. */

#include "common/system/available.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "common/system/control_group.h"
#include "common/system/memory_commitments.h"

/* The files of one version of control groups. Beyond its limit a group is killed; beyond its brake, which
 * only version 2 has, it is slowed down until it stands. */
struct version {
    const char *limit, *brake, *usage, *idle; /* idle: the key in memory.stat */
};

static const struct version version_1 = {"memory.limit_in_bytes", NULL, "memory.usage_in_bytes",
                                         "total_inactive_file"};
static const struct version version_2 = {"memory.max", "memory.high", "memory.current", "inactive_file"};

/* The number after `key` at the start of a line, or at the start of the file without one. "max" is none. */
static int read_number(const char *path, const char *key, uint64_t *ret_number)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return -errno;
    char line[256];
    size_t len = key ? strlen(key) : 0;
    int r = -ENOENT;
    while (r < 0 && fgets(line, sizeof line, file)) {
        if (strlen(line) < len)
            continue;
        size_t gap = strspn(line + len, ": \t");
        if (key && (strncmp(line, key, len) != 0 || gap == 0))
            continue;
        unsigned long long number;
        if (sscanf(line + len + gap, "%llu", &number) != 1)
            break;
        *ret_number = number;
        r = 0;
    }
    fclose(file);
    return r;
}

/* The lower of a group's limit and its brake; UINT64_MAX without either. */
static uint64_t read_limit(const struct version *version, const char *folder)
{
    char path[2 * PATH_MAX];
    uint64_t limit = UINT64_MAX, brake = UINT64_MAX;
    snprintf(path, sizeof path, "%s/%s", folder, version->limit);
    read_number(path, NULL, &limit);
    if (version->brake) {
        snprintf(path, sizeof path, "%s/%s", folder, version->brake);
        read_number(path, NULL, &brake);
    }
    return brake < limit ? brake : limit;
}

struct reading {
    struct available available;
    struct memory_commitments commitments;
};

static void apply_group(void *arg, const struct control_group *group)
{
    struct reading *reading = arg;
    struct available *available = &reading->available;
    const struct version *version = group->is_version_2 ? &version_2 : &version_1;
    char path[2 * PATH_MAX];
    uint64_t limit = read_limit(version, group->folder), usage = 0, idle = 0;
    if (limit == UINT64_MAX)
        return;
    snprintf(path, sizeof path, "%s/%s", group->folder, version->usage);
    read_number(path, NULL, &usage);
    snprintf(path, sizeof path, "%s/memory.stat", group->folder);
    read_number(path, version->idle, &idle);
    usage -= idle < usage ? idle : usage;
    usage += memory_commitments_open(&reading->commitments, group->line);
    uint64_t left = limit > usage ? limit - usage : 0;
    available->now = left < available->now ? left : available->now;
    if (limit < available->total) {
        available->total = limit;
        snprintf(available->by, sizeof available->by, "control group %.160s", group->name);
    }
}

int available_read(const char *root, struct available *ret_available)
{
    struct reading reading = {.available.by = "the machine"};
    struct available *available = &reading.available;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    if (read_number(path, "MemTotal", &available->total) < 0 ||
        read_number(path, "MemAvailable", &available->now) < 0)
        return -ENOENT;
    available->total *= 1024;
    available->now *= 1024;
    int r = memory_commitments_read(root, available->total, &reading.commitments);
    if (r < 0)
        return r;
    available->promised = memory_commitments_open(&reading.commitments, "");
    available->siblings = memory_commitments_of_siblings(&reading.commitments);
    available->now -= available->promised < available->now ? available->promised : available->now;
    control_group_each(root, "memory", apply_group, &reading);
    memory_commitments_deinit(&reading.commitments);
    *ret_available = *available;
    return 0;
}
