/* SPDX-License-Identifier: MIT */
/* Memory by the kernel's files.
 *
 * /proc/meminfo speaks for the machine, also inside a container. A control group limits its members and all
 * groups below it together, so every level counts, from this process's group up to the mount's root. A group
 * that is named in /proc/self/cgroup but cannot be seen here belongs to the host; inside a container the
 * mount's root is then the container's own. Pages of files that nobody used lately are charged to a group but
 * given back before its limit is felt, so they count as free. What cannot be read limits nothing. */

#include "common/available.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* The files of one version of control groups. Beyond its limit a group is killed; beyond its brake, which
 * only version 2 has, it is slowed down until it stands. */
struct version {
    const char *mount;
    const char *limit, *brake, *usage, *idle; /* idle: the key in memory.stat */
};

static const struct version version_1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes", NULL,
                                         "memory.usage_in_bytes", "total_inactive_file"};
static const struct version version_2 = {"/sys/fs/cgroup", "memory.max", "memory.high", "memory.current",
                                         "inactive_file"};

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
static uint64_t read_limit(const char *root, const struct version *version, const char *group)
{
    char path[PATH_MAX];
    uint64_t limit = UINT64_MAX, brake = UINT64_MAX;
    snprintf(path, sizeof path, "%s%s%s/%s", root, version->mount, group, version->limit);
    read_number(path, NULL, &limit);
    if (version->brake) {
        snprintf(path, sizeof path, "%s%s%s/%s", root, version->mount, group, version->brake);
        read_number(path, NULL, &brake);
    }
    return brake < limit ? brake : limit;
}

static void apply_group(const char *root, const struct version *version, const char *group,
                        struct available *available)
{
    char path[PATH_MAX];
    uint64_t limit = read_limit(root, version, group), usage = 0, idle = 0;
    if (limit == UINT64_MAX)
        return;
    snprintf(path, sizeof path, "%s%s%s/%s", root, version->mount, group, version->usage);
    read_number(path, NULL, &usage);
    snprintf(path, sizeof path, "%s%s%s/memory.stat", root, version->mount, group);
    read_number(path, version->idle, &idle);
    usage -= idle < usage ? idle : usage;
    uint64_t left = limit > usage ? limit - usage : 0;
    available->now = left < available->now ? left : available->now;
    if (limit < available->total) {
        available->total = limit;
        snprintf(available->by, sizeof available->by, "control group %.160s", group[0] ? group : "/");
    }
}

/* The group and those above it. */
static void apply_groups(const char *root, const struct version *version, char *group,
                         struct available *available)
{
    size_t len = strlen(group);
    while (len > 0 && group[len - 1] == '/')
        group[--len] = 0;
    for (;;) {
        apply_group(root, version, group, available);
        char *slash = strrchr(group, '/');
        if (!slash)
            return;
        *slash = 0;
    }
}

/* The path of a line of /proc/self/cgroup, number:controllers:path, if it speaks of memory. */
static char *parse_line(char *line, const struct version **ret_version)
{
    char *controllers = strchr(line, ':');
    char *path = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!path)
        return NULL;
    *path++ = 0;
    path[strcspn(path, "\n")] = 0;
    if (strcmp(controllers + 1, "") == 0) {
        *ret_version = &version_2;
        return path;
    }
    for (char *name = controllers + 1; name; name = strchr(name, ',')) {
        name += *name == ',';
        if (strncmp(name, "memory", 6) == 0 && (name[6] == 0 || name[6] == ',')) {
            *ret_version = &version_1;
            return path;
        }
    }
    return NULL;
}

int available_read(const char *root, struct available *ret_available)
{
    struct available available = {.by = "the machine"};
    char path[PATH_MAX], line[PATH_MAX];
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    if (read_number(path, "MemTotal", &available.total) < 0 ||
        read_number(path, "MemAvailable", &available.now) < 0)
        return -ENOENT;
    available.total *= 1024;
    available.now *= 1024;
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        const struct version *version;
        char *group = parse_line(line, &version);
        if (group)
            apply_groups(root, version, group, &available);
    }
    if (file)
        fclose(file);
    *ret_available = available;
    return 0;
}
