/* SPDX-License-Identifier: MIT */
/* Memory by the kernel's files.
 *
 * /proc/meminfo speaks for the machine, also inside a container. A control group limits its members and all
 * groups below it together, so every level counts, from this process's group up to the mount's root. A group
 * that is named in /proc/self/cgroup but cannot be seen here belongs to the host; inside a container the
 * mount's root is then the container's own. Pages of files that nobody used lately are charged to a group but
 * given back before its limit is felt, so they count as free. What other processes of this program were
 * promised counts as taken, of the machine and of the groups that they are in (promises.h). What cannot be
 * read limits nothing. */

#include "common/available.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/promises.h"

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

/* Where a process stands among the groups of one version: a line of /proc/self/cgroup. */
struct place {
    const struct version *version;
    char line[PATH_MAX]; /* number:controllers:path */
    char *group;         /* the path in it; "" is the root */
};

static void apply_group(const char *root, const struct place *place, const struct promises *promises,
                        struct available *available)
{
    const struct version *version = place->version;
    const char *group = place->group;
    char path[PATH_MAX];
    uint64_t limit = read_limit(root, version, group), usage = 0, idle = 0;
    if (limit == UINT64_MAX)
        return;
    snprintf(path, sizeof path, "%s%s%s/%s", root, version->mount, group, version->usage);
    read_number(path, NULL, &usage);
    snprintf(path, sizeof path, "%s%s%s/memory.stat", root, version->mount, group);
    read_number(path, version->idle, &idle);
    usage -= idle < usage ? idle : usage;
    usage += promises_open(promises, place->line);
    uint64_t left = limit > usage ? limit - usage : 0;
    available->now = left < available->now ? left : available->now;
    if (limit < available->total) {
        available->total = limit;
        snprintf(available->by, sizeof available->by, "control group %.160s", group[0] ? group : "/");
    }
}

/* The group and those above it. */
static void apply_groups(const char *root, struct place *place, const struct promises *promises,
                         struct available *available)
{
    char *group = place->group;
    size_t len = strlen(group);
    while (len > 0 && group[len - 1] == '/')
        group[--len] = 0;
    for (;;) {
        apply_group(root, place, promises, available);
        char *slash = strrchr(group, '/');
        if (!slash)
            return;
        *slash = 0;
    }
}

/* Whether the line speaks of memory. */
static bool parse_line(struct place *place)
{
    char *controllers = strchr(place->line, ':');
    char *path = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!path)
        return false;
    place->group = path + 1;
    place->group[strcspn(place->group, "\n")] = 0;
    place->version = path == controllers + 1 ? &version_2 : NULL;
    for (const char *name = controllers + 1; name < path; name += strcspn(name, ",:") + 1)
        if (strncmp(name, "memory", 6) == 0 && (name[6] == ':' || name[6] == ','))
            place->version = &version_1;
    return place->version;
}

int available_read(const char *root, struct available *ret_available)
{
    struct available available = {.by = "the machine"};
    struct promises promises;
    struct place place;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    if (read_number(path, "MemTotal", &available.total) < 0 ||
        read_number(path, "MemAvailable", &available.now) < 0)
        return -ENOENT;
    available.total *= 1024;
    available.now *= 1024;
    int r = promises_read(root, available.total, &promises);
    if (r < 0)
        return r;
    available.promised = promises_open(&promises, "");
    available.siblings = promises_of_siblings(&promises);
    available.now -= available.promised < available.now ? available.promised : available.now;
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "re");
    while (file && fgets(place.line, sizeof place.line, file))
        if (parse_line(&place))
            apply_groups(root, &place, &promises, &available);
    if (file)
        fclose(file);
    promises_deinit(&promises);
    *ret_available = available;
    return 0;
}
