/* SPDX-License-Identifier: MIT */
/* Control groups by the kernel's files.
 *
 * /proc/self/cgroup has a line for each hierarchy, number:controllers:path, the controllers of version 2
 * being none. A group that is named there but cannot be seen belongs to the host; inside a container the
 * mount's root is then the container's own. So every level is visited, from the path that is named up to the
 * root, whether there is a folder or not. */

#include "common/system/control_group.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define MOUNT "/sys/fs/cgroup"

/* A hierarchy in which the process has a place. */
struct hierarchy {
    char mount[PATH_MAX];
    char line[PATH_MAX]; /* of /proc/self/cgroup, cut back level by level */
    char *path;          /* in it */
    bool is_version_2;
};

static bool has_name(const char *list, const char *end, const char *name)
{
    const size_t len = strlen(name);
    for (const char *item = list; item < end; item += strcspn(item, ",:") + 1)
        if (strncmp(item, name, len) == 0 && (item[len] == ',' || item[len] == ':'))
            return true;
    return false;
}

/* Whether the line speaks of the controller. */
static bool parse_line(struct hierarchy *hierarchy, const char *root, const char *controller)
{
    char *controllers = strchr(hierarchy->line, ':');
    char *path = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!path)
        return false;
    hierarchy->path = path + 1;
    hierarchy->path[strcspn(hierarchy->path, "\n")] = 0;
    hierarchy->is_version_2 = path == controllers + 1;
    if (!hierarchy->is_version_2 && !has_name(controllers + 1, path, controller))
        return false;
    snprintf(hierarchy->mount, sizeof hierarchy->mount, "%s%s%s%s", root, MOUNT,
             hierarchy->is_version_2 ? "" : "/", hierarchy->is_version_2 ? "" : controller);
    return true;
}

static void visit_levels(struct hierarchy *hierarchy,
                         void (*visit)(void *arg, const struct control_group *group), void *arg)
{
    char *path = hierarchy->path, folder[2 * PATH_MAX];
    size_t len = strlen(path);
    while (len > 0 && path[len - 1] == '/')
        path[--len] = 0;
    for (;;) {
        snprintf(folder, sizeof folder, "%s%s", hierarchy->mount, path);
        visit(arg, &(struct control_group){.folder = folder,
                                           .name = path[0] ? path : "/",
                                           .line = hierarchy->line,
                                           .is_version_2 = hierarchy->is_version_2});
        char *slash = strrchr(path, '/');
        if (!slash)
            return;
        *slash = 0;
    }
}

void control_group_each(const char *root, const char *controller,
                        void (*visit)(void *arg, const struct control_group *group), void *arg)
{
    struct hierarchy hierarchy;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "re");
    while (file && fgets(hierarchy.line, sizeof hierarchy.line, file))
        if (parse_line(&hierarchy, root, controller))
            visit_levels(&hierarchy, visit, arg);
    if (file)
        fclose(file);
}
